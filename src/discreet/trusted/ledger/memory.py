"""A ledger that lives and dies with one process.

It refuses to go on in a forked child, whose copy could spend the same budget again; `core.Ledger`
refuses to be pickled or copied for the same reason.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.errors import ledger as refusals
from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.stores import Balance, Holding


class MemoryView:
    """The ledger's entries and balance; one change may be pending until the transaction commits."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._index: dict[tuple[str, str], Entry] = {}
        self._holdings: dict[str, Holding] = {}
        self._balance: Balance | None = None
        self.pending: list[tuple[Entry, Balance, Holding | None]] = []

    def balance(self) -> Balance:
        assert self._balance is not None
        return self._balance

    def find(self, kind: str, key: str) -> Entry | None:
        return self._index.get((kind, key))

    def first(self, kind: str) -> Entry | None:
        return next((entry for entry in self._entries if entry.kind == kind), None)

    def at(self, number: int) -> Entry | None:
        return self._entries[number] if 0 <= number < len(self._entries) else None

    def holding(self, key: str) -> Holding | None:
        return self._holdings.get(key)

    def entries(self) -> list[Entry]:
        return list(self._entries)

    def holdings(self) -> list[Holding]:
        return list(self._holdings.values())

    def damage(self) -> list[str]:
        return []

    def append(self, entry: Entry, balance: Balance, holding: Holding | None = None) -> None:
        assert not self.pending, "one change a transaction"
        self.pending.append((entry, balance, holding))

    def commit(self) -> None:
        for entry, balance, holding in self.pending:
            self._entries.append(entry)
            self._index[entry.kind, entry.key] = entry
            self._balance = balance
            if holding is not None:
                self._holdings[holding.key] = holding
        self.pending.clear()


class MemoryStore:
    """Entries in memory, behind one lock."""

    name = "the memory ledger"
    persistent = False

    def __init__(self, first: Entry, balance: Balance) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._view = MemoryView()
        self._view.append(first, balance)
        self._view.commit()

    @contextmanager
    def read(self) -> Iterator[MemoryView]:
        self._same_process()
        with self._lock:
            yield self._view

    @contextmanager
    def write(self) -> Iterator[MemoryView]:
        self._same_process()
        with self._lock:
            try:
                yield self._view
                # the block may have forked: then the child has no right to go on
                self._same_process()
                self._view.commit()
            finally:
                self._view.pending.clear()

    def _same_process(self) -> None:
        if os.getpid() != self._process:
            raise refusals.forked_memory()
