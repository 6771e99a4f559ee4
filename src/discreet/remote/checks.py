"""A release that came from afar is the one that was asked for, or it is refused.

What can be known beforehand is not believed: question, mechanism, spend, guarantee, relation and
public count are the caller's own, and the far side's must equal them word for word. Only the noisy
integers, the keys that were discovered, the place in the ledger and whether noise was secure are
read.
"""

from __future__ import annotations

import json
import re
from typing import Any

from discreet import plain
from discreet.errors.remote import another_release, foreign_words
from discreet.neighbors import require_neighbors
from discreet.remote.far import Words
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import FORMAT, VERSION, PublicFacts, Question, Release

ASKED = ("asked", "query", "mechanism", "spend", "delta")
LONGEST_INTEGER = 4000  # digits
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_HASH = re.compile(r"[0-9a-f]{64}")


def release_of(
    told: Words, question: Question, key: str, public: PublicFacts, *, made_up: bool
) -> Release:
    """The release of a question, read from what the far side says."""
    if type(told) is not dict or (told.get("format"), told.get("version")) != (FORMAT, VERSION):
        raise foreign_words(f"no {FORMAT} of version {VERSION}")
    guarantee = guarantee_of(question.mechanism)
    filled = public.schema.filled_in(question.query.plan().columns)
    known: Words = question.to_dict() | {
        "neighbors": public.neighbors.to_dict(),
        "guarantee": guarantee.to_dict(),
        "public_count": public.count,
        "key": key,
        "filled": [list(pair) for pair in filled],
    }
    for word, mine in known.items():
        theirs = told.get(word, [] if word == "filled" else None)
        if _canonical(theirs) != _canonical(mine):
            raise another_release(f"its {word!r} is not what was asked")
    query, mechanism = plain.twin((question.query, question.mechanism))
    return Release(
        description=question.description,
        query=query,
        mechanism=mechanism,
        integers=_integers(told, question),
        neighbors=require_neighbors(public.neighbors),
        spend=question.spend,
        guarantee=guarantee,
        public_count=public.count,
        key=key,
        entry=_entry(told),
        entry_hash=_hash(told),
        secure=told.get("secure") is True,
        delta=question.delta,
        found=_found(told),
        filled=filled,
        made_up=made_up or told.get("made_up") is True,
    )


def _integers(told: Words, question: Question) -> tuple[int, ...]:
    listed = told.get("integers")
    if type(listed) is not list or not all(
        type(text) is str and len(text) <= LONGEST_INTEGER and _INTEGER.fullmatch(text)
        for text in listed
    ):
        raise foreign_words("integers that are none")
    if isinstance(question.mechanism, AdditiveNoise) and len(listed) != question.query.size:
        raise another_release(
            f"it has {len(listed)} numbers, and the question asks for {question.query.size}"
        )
    return tuple(int(text) for text in listed)


def _found(told: Words) -> tuple[str, ...]:
    found = told.get("found", [])
    if type(found) is not list or not all(type(name) is str for name in found):
        raise foreign_words("keys that are no texts")
    return tuple(found)


def _entry(told: Words) -> int:
    number = told.get("entry")
    if type(number) is not int or number < 1:
        raise foreign_words("no place in a ledger")
    return number


def _hash(told: Words) -> str:
    digest = told.get("entry_hash")
    if type(digest) is not str or not _HASH.fullmatch(digest):
        raise foreign_words("no hash of an entry")
    return digest


def _canonical(told: Any) -> str:
    """One spelling: what was written as 1.0 and read as 1 is the same number."""
    return json.dumps(json.loads(json.dumps(told)), sort_keys=True)
