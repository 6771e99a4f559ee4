"""What a store must do: keep entries, a balance and reservations,
and change them together or not at all.

A store takes no decision about privacy: `core.Ledger` decides inside one `write()`, of which there
is only one at a time for all threads and processes; what it saw cannot change before its changes
are durable. That is why two requests never both see the last unit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.units import NOTHING, Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Where a ledger stands: `reserved` is set aside by open reservations and not yet debited."""

    box: Amounts
    spent: Amounts = NOTHING
    reserved: Amounts = NOTHING
    entries: int = 0
    head: str = ""

    @property
    def free(self) -> Amounts:
        return self.box - self.spent - self.reserved


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """A reservation: what was set aside, and how much of it was debited."""

    key: str
    amounts: Amounts
    used: Amounts = NOTHING
    is_open: bool = True

    @property
    def left(self) -> Amounts:
        return self.amounts - self.used if self.is_open else NOTHING


class View(Protocol):
    """A consistent picture of a ledger."""

    def balance(self) -> Balance: ...

    def find(self, kind: str, key: str) -> Entry | None: ...

    def first(self, kind: str) -> Entry | None: ...

    def at(self, number: int) -> Entry | None: ...

    def holding(self, key: str) -> Holding | None: ...

    def entries(self) -> list[Entry]: ...

    def holdings(self) -> list[Holding]: ...

    def damage(self) -> list[str]:
        """What is wrong with the container itself; empty when all is well."""
        ...


class Transaction(View, Protocol):
    """A picture that nobody else can change before this transaction ends."""

    def append(self, entry: Entry, balance: Balance, holding: Holding | None = None) -> None:
        """Add `entry` and put `balance` and `holding` in place of what was there."""
        ...


class Store(Protocol):
    """Where a ledger is kept."""

    @property
    def name(self) -> str:
        """How messages call it."""
        ...

    @property
    def persistent(self) -> bool: ...

    def read(self) -> AbstractContextManager[View]: ...

    def write(self) -> AbstractContextManager[Transaction]:
        """One transaction at a time; durable when the block ends, undone if it raises."""
        ...
