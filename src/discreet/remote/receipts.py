"""Receipts: what a service signed of its ledger, kept by those whom it answered.

A receipt says that a node's entry of some number has some hash. Kept outside the service, receipts
tell an older copy of its database: a number that now has another hash, or that is not there any
more. The client sends its last one with each call, so that the service notices too.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from discreet.errors.remote import forgotten
from discreet.remote.far import Words

WORDS = ("node", "number", "hash", "signature", "key")


class Receipts:
    """Receipts in memory, and in a file of one JSON line each where a path is given."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._path = None if path is None else Path(path)
        self._kept: dict[tuple[str, int], Words] = {}
        self._last: Words | None = None
        if self._path is not None and self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                self._take(json.loads(line))

    def __len__(self) -> int:
        return len(self._kept)

    def all(self) -> tuple[Words, ...]:
        """All of them, in the order of their numbers."""
        return tuple(self._kept[place] for place in sorted(self._kept))

    def header(self) -> dict[str, str]:
        """The last one, as a header of a call."""
        if self._last is None:
            return {}
        text = json.dumps(self._last, sort_keys=True).encode()
        return {"Discreet-Receipt": base64.b64encode(text).decode("ascii")}

    def keep(self, told: Any, release: Words) -> None:
        """Keep the receipt of a release; refused where it is about another entry, or where an
        earlier one says something else of the same entry.
        """
        if told is None:
            return
        if type(told) is not dict or any(name not in told for name in WORDS):
            raise forgotten("a receipt is not one")
        if (told["number"], told["hash"]) != (release.get("entry"), release.get("entry_hash")):
            raise forgotten("a receipt is about another entry than its release")
        if self._take(told) and self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(told, sort_keys=True) + "\n")

    def _take(self, told: Words) -> bool:
        """Whether a receipt was new."""
        place = str(told["node"]), int(told["number"])
        known = self._kept.get(place)
        if known is not None and known["hash"] != told["hash"]:
            raise forgotten(
                f"entry {told['number']} had the hash {known['hash'][:12]}… and now has "
                f"{str(told['hash'])[:12]}…"
            )
        self._last = told if self._last is None or known is None else self._last
        self._kept[place] = told
        return known is None
