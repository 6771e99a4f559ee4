"""What a budget tree keeps: meters (one a node), lines (of hash chains) and holdings.

A carved node owns a chain, which is a ledger of its own: pooled nodes below it write their lines
there, and nobody else does. So its numbers, hashes and balance follow from requests below it alone.

    kind      node     key               amounts (chain's box)       body
    open      chain    ""                its box                     budget, relation, format
    debit     asker    the request's     what it cost                the request
    answer    asker    the same key      nothing                     the answer's own text
    reserve   asker    the reservation's what was set aside          ""
    close     asker    the same key      what was handed back        ""
    carve     chain    the child's id    its box, set aside          name and key of the child
    return    chain    the child's id    what it did not spend       ""
    pool      parent   the child's id    nothing                     name, key and box of the child
    end       node     ""                nothing                     why it takes no more debits
    freeze, thaw, note, lost             facts of administration; `lost` debits what was forgotten

`paid` holds what the pooled boxes between the chain's node and the asker were charged.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, TypeVar

from discreet.trusted.ledger.entries import FIRST_PREVIOUS, Entry, canonical, now
from discreet.trusted.ledger.stores import Balance
from discreet.trusted.ledger.units import COORDINATES, NOTHING, Amounts

FORMAT = 1
KINDS = (
    *("open", "debit", "answer", "reserve", "close", "carve", "return", "pool", "end"),
    *("freeze", "thaw", "note", "lost"),
)
ROOT, CARVED, POOLED = "root", "carved", "pooled"


def fresh() -> str:
    """A name that says nothing of how many there are."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """A node as it stands. `chain` is the nearest carved node: itself, where it is carved; only
    there `entries` and `head` say something. `stopped` where it or a node above it is frozen.
    """

    id: str
    parent: str
    chain: str
    depth: int
    kind: str
    name: str
    key: str
    budget: str
    promise: str
    box: Amounts
    spent: Amounts = NOTHING
    reserved: Amounts = NOTHING
    entries: int = 0
    head: str = FIRST_PREVIOUS
    frozen: int = 0
    stopped: int = 0
    closed: int = 0

    @property
    def free(self) -> Amounts:
        return self.box - self.spent - self.reserved

    @property
    def owns_chain(self) -> bool:
        return self.chain == self.id

    @property
    def balance(self) -> Balance:
        return Balance(
            box=self.box,
            spent=self.spent,
            reserved=self.reserved,
            entries=self.entries,
            head=self.head,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a chain."""

    chain: str
    number: int
    node: str
    kind: str
    key: str
    reservation: str
    amounts: Amounts
    paid: str
    body: str
    timestamp: str
    previous: str
    hash: str = ""

    def digest(self) -> str:
        """The hash that this line must carry."""
        record: dict[str, object] = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("hash", "amounts")
        }
        record |= dict(zip(COORDINATES, self.amounts.as_tuple(), strict=True))
        return hashlib.sha256(canonical(record).encode("ascii")).hexdigest()

    def after(self, number: int, previous: str) -> Line:
        """This line with its place in its chain, and the hash that seals it there."""
        placed = replace(self, number=number, previous=previous)
        return replace(placed, hash=placed.digest())

    def paid_by(self, node: str) -> Amounts:
        """What the box of a node on the path was charged, set aside or handed back."""
        return self.amounts if node == self.chain else charges_in(self.paid).get(node, NOTHING)

    def seen_by(self, node: str) -> Entry:
        """This line as an entry of its asker's own account."""
        return Entry(
            number=self.number,
            kind=self.kind,
            key=self.key,
            reservation=self.reservation,
            amounts=self.paid_by(node),
            body=self.body,
            timestamp=self.timestamp,
            previous=self.previous,
            hash=self.hash,
        )


def draft_line(
    meter: Meter,
    kind: str,
    key: str,
    charges: dict[str, Amounts] | None = None,
    *,
    body: str = "",
    reservation: str = "",
) -> Line:
    """A line of this moment, about a node, that has no place in its chain yet; `charges` are what
    the boxes of its path are charged.
    """
    charges = charges or {}
    below = {node: [*paid.as_tuple()] for node, paid in charges.items() if node != meter.chain}
    return Line(
        chain=meter.chain,
        number=-1,
        node=meter.id,
        kind=kind,
        key=key,
        reservation=reservation,
        amounts=charges.get(meter.chain, NOTHING),
        paid=canonical(below) if below else "",
        body=body,
        timestamp=now(),
        previous="",
    )


def charges_in(paid: str) -> dict[str, Amounts]:
    """The charges of pooled boxes, by node."""
    told: dict[str, list[int]] = json.loads(paid) if paid else {}
    return {node: Amounts(*units) for node, units in told.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """What a reservation of `owner` sets aside in the box of `node`."""

    node: str
    owner: str
    key: str
    amounts: Amounts
    used: Amounts = NOTHING
    is_open: int = 1

    @property
    def left(self) -> Amounts:
        return self.amounts - self.used if self.is_open else NOTHING


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────

Record = Meter | Line | Aside
Kept = TypeVar("Kept", Meter, Line, Aside)
TABLES: dict[type[Record], str] = {
    Meter: "tree_nodes",
    Line: "tree_lines",
    Aside: "tree_reservations",
}
_FIELDS = {
    kind: [(field.name, field.type == "Amounts") for field in fields(kind)] for kind in TABLES
}


def columns(kind: type[Record]) -> tuple[str, ...]:
    """The columns of a record: one a field, and one a coordinate for amounts."""
    names: list[str] = []
    for name, is_amounts in _FIELDS[kind]:
        prefix = "" if name == "amounts" else f"{name}_"
        names += [prefix + one for one in COORDINATES] if is_amounts else [name]
    return tuple(names)


def row(record: Record) -> tuple[object, ...]:
    """The values of a record's columns."""
    cells: list[object] = []
    for name, is_amounts in _FIELDS[type(record)]:
        value = getattr(record, name)
        cells += value.as_tuple() if is_amounts else (value,)
    return tuple(cells)


def record_of(kind: type[Kept], cells: Iterable[Any]) -> Kept:
    """The record of a row."""
    held = iter(cells)
    values: dict[str, Any] = {
        name: Amounts(*islice(held, len(COORDINATES))) if is_amounts else next(held)
        for name, is_amounts in _FIELDS[kind]
    }
    return kind(**values)
