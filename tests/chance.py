"""What is random in the texts of a ledger, taken out,
so that a search for private words finds none by chance.
"""

from __future__ import annotations

import json

from discreet.trusted.ledger.core import Ledger


def without_chance(text: str, ledger: Ledger) -> str:
    """`text` without the hashes, times, keys and ids that `ledger` made:
    random digits spell any short word now and then.
    """
    first, *entries = ledger.entries()
    words = {json.loads(first.body)["ledger"], ledger.head[:12]} | {
        word for entry in (first, *entries) for word in (entry.hash, entry.timestamp)
    }
    words |= {
        word
        for entry in entries
        for word in (entry.key, (entry.request or {}).get("data", ""))
        if len(word) >= 32
    }
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "")
    return text
