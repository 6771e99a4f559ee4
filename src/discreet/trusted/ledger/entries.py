"""The lines of a ledger and the hash chain that runs through them.

    kind      key                amounts            body
    open      ""                 the box            budget and format, as canonical JSON
    debit     the request's      what it cost       the request, as canonical JSON
    answer    the same key       nothing            the answer's own text
    reserve   the reservation's  what was set aside ""
    close     the same key       what was returned  ""

An entry's hash is SHA-256 of its canonical JSON, which holds the hash of the entry before it: text
and whole numbers only, keys sorted. Changing an entry changes every later hash, and the last one,
the head, commits to the whole history. The chain has no secret key: it catches accidents, edits and
(with a head noted elsewhere) restored old files, not an owner of the file who rewrites all of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from discreet import plain
from discreet.errors import ledger as refusals
from discreet.trusted.ledger.units import COORDINATES, NOTHING, Amounts

FIRST_PREVIOUS = "0" * 64
LONGEST_KEY = 512
KINDS = ("open", "debit", "answer", "reserve", "close")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a ledger; `previous` is the hash of the line before."""

    number: int
    kind: str
    key: str
    reservation: str
    amounts: Amounts
    body: str
    timestamp: str
    previous: str
    hash: str = ""

    @property
    def request(self) -> dict[str, Any] | None:
        """The public description that a debit is bound to; None for other kinds."""
        if self.kind != "debit":
            return None
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed

    @property
    def answer(self) -> str | None:
        """The stored answer's text; None for other kinds."""
        return self.body if self.kind == "answer" else None

    def digest(self) -> str:
        """The hash that this entry must carry."""
        record: dict[str, object] = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("hash", "amounts")
        }
        record |= dict(zip(COORDINATES, self.amounts.as_tuple(), strict=True))
        return hashlib.sha256(canonical(record).encode("ascii")).hexdigest()

    def after(self, number: int, previous: str) -> Entry:
        """This entry with its place in the chain, and the hash that seals it there."""
        placed = replace(self, number=number, previous=previous)
        return replace(placed, hash=placed.digest())


def draft(
    kind: str, key: str, *, amounts: Amounts = NOTHING, body: str = "", reservation: str = ""
) -> Entry:
    """An entry of this moment that has no place in the chain yet."""
    return Entry(
        number=-1,
        kind=kind,
        key=key,
        reservation=reservation,
        amounts=amounts,
        body=body,
        timestamp=now(),
        previous="",
    )


def canonical(record: object) -> str:
    """JSON with one spelling: sorted keys, no blanks, ASCII. Refuses NaN and infinity."""
    return json.dumps(
        record, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def bound_request(request: object, *, secure: bool) -> tuple[dict[str, Any], str]:
    """A request as plain values and as canonical text, marked where its noise is not secure."""
    if not issubclass(type(request), Mapping):
        raise refusals.not_a_dict(plain.kind_name(request))
    # the first is quick, and knows no numbers of numpy's and no other mappings
    for copied in (plain.copied, plain.value):
        record = copied(request)
        if type(record) is not dict:
            continue
        if "secure" in record:
            raise refusals.marked_request()
        if not secure:
            record["secure"] = False
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            return record, canonical(record)
    raise refusals.not_json()


def checked_answer(answer: object) -> str:
    """`answer` as exact text, if every store keeps it as it is."""
    read = str.__str__(answer) if plain.derives(type(answer), str) else "\0"
    if "\0" not in read and read.encode("utf-8", "replace").decode("utf-8") == read:
        return read
    raise refusals.not_text()


def checked_key(key: object, name: str = "key") -> str:
    """`key` as exact text, if it can be stored."""
    read = str.__str__(key) if plain.derives(type(key), str) else ""
    if not 0 < len(read) <= LONGEST_KEY or not read.isprintable():
        raise refusals.bad_key(name, LONGEST_KEY)
    return read


def now() -> str:
    """The time in UTC, to the second: finer times would tell how long a computation on the data
    took.
    """
    return datetime.now(UTC).isoformat(timespec="seconds")
