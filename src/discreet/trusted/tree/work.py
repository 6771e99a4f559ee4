"""One transaction on a budget tree: what is read in it, and what is written.

A store takes no decision about privacy. On SQLite a transaction is the only one there is; on
PostgreSQL it is the only one that has locked the meters it changes, always from the root down, and
nothing that is decided on was read before its lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from discreet.trusted.tree.records import (
    TABLES,
    Aside,
    Kept,
    Line,
    Meter,
    Record,
    columns,
    record_of,
    row,
)

Statement = tuple[str, tuple[object, ...]]
Rows = list[tuple[Any, ...]]
Found = TypeVar("Found")


class Connection(Protocol):
    """One connection inside one transaction."""

    def ask(self, *statements: Statement) -> list[Rows]:
        """The rows of each, in one go."""
        ...

    def tell(self, statement: str, *values: object) -> None:
        """Run it before the next question, or the end."""
        ...


class Database(Protocol):
    """Where a tree is kept."""

    name: str
    persistent: bool

    def read(self) -> AbstractContextManager[Work]: ...

    def ask(self, *statements: Statement) -> list[Rows]:
        """The rows of each, in one go; what one of them finds, those after it find too."""
        ...

    def write(self) -> AbstractContextManager[Work]:
        """Durable when the block ends, undone if it raises."""
        ...

    def damage(self) -> list[str]:
        """What is wrong with the container itself; empty when all is well."""
        ...

    def close(self) -> None: ...


class Work:
    """A transaction; `lock` is what a statement ends with that locks its rows, `alone` what makes
    it the only one of its kind, where a store has more than one writer.
    """

    def __init__(self, connection: Connection, lock: str = "", alone: str = "") -> None:
        self._connection, self._lock, self._alone = connection, lock, alone
        self._before: dict[str, Meter] = {}
        self.meters: dict[str, Meter] = {}
        self.heads: dict[str, tuple[int, str]] = {}  # number and hash of what was appended

    # ── questions, which may be asked together ────────────────────────────────────────────────────

    def path(self, ids: Sequence[str]) -> Statement:
        """The meters of a path, locked from the root down."""
        marks = ", ".join("?" * len(ids))
        return select(Meter, f"WHERE id IN ({marks}) ORDER BY depth, id {self._lock}", *ids)

    def children(self, ids: Sequence[str]) -> Statement:
        """The meters right below some nodes, locked; none can be added while those are."""
        marks = ", ".join("?" * len(ids))
        return select(Meter, f"WHERE parent IN ({marks}) ORDER BY depth, id {self._lock}", *ids)

    @staticmethod
    def line_at(node: str, kind: str, key: str) -> Statement:
        """The line of a node, kind and key."""
        return select(Line, "WHERE node = ? AND kind = ? AND key = ?", node, kind, key)

    @staticmethod
    def numbered(chain: str, number: int) -> Statement:
        """The line of a chain at a number."""
        return select(Line, "WHERE chain = ? AND number = ?", chain, number)

    def locked_line(self, node: str, kind: str, key: str) -> Statement:
        """The same, whose row nobody else may lock before the end."""
        text, values = self.line_at(node, kind, key)
        return f"{text} {self._lock}", values

    def ask(self, *statements: Statement) -> list[Rows]:
        return self._connection.ask(*statements)

    def alone(self) -> None:
        """Be the only transaction that makes roots, which have no row above them to lock."""
        if self._alone:
            self._connection.tell(self._alone)

    def all(self, kind: type[Kept], where: str = "", *values: object) -> list[Kept]:
        return read_as(kind, self.ask(select(kind, where, *values))[0])

    def meter(self, node: str) -> Meter | None:
        return first(self.all(Meter, "WHERE id = ?", node))

    def line(self, node: str, kind: str, key: str) -> Line | None:
        return first(read_as(Line, self.ask(self.line_at(node, kind, key))[0]))

    # ── changes ───────────────────────────────────────────────────────────────────────────────────

    def take(self, rows: Rows) -> list[Meter]:
        """Meters whose rows are locked, to be changed."""
        found = read_as(Meter, rows)
        self._before |= {meter.id: meter for meter in found}
        self.meters |= {meter.id: meter for meter in found}
        return found

    def subtree(self, top: Sequence[str]) -> list[Meter]:
        """Everything below some locked meters, level by level, locked."""
        found: list[Meter] = []
        while top:
            level = self.take(self.ask(self.children(top))[0])
            found, top = found + level, [one.id for one in level]
        return found

    def append(self, line: Line) -> Line:
        """Add a line to the chain of a meter that is locked."""
        owner = self.meters[line.chain]
        sealed = line.after(owner.entries, owner.head)
        self.change(owner.id, entries=owner.entries + 1, head=sealed.hash)
        self.add(sealed)
        self.heads[line.chain] = sealed.number, sealed.hash
        return sealed

    def change(self, node: str, **changes: Any) -> Meter:
        """Change a meter that is locked."""
        self.meters[node] = replace(self.meters[node], **changes)
        return self.meters[node]

    def create(self, meter: Meter) -> None:
        """Put in a new meter, which may be changed on."""
        self.add(meter)
        self._before[meter.id] = self.meters[meter.id] = meter

    def add(self, record: Record) -> None:
        kind = type(record)
        marks = ", ".join("?" * len(columns(kind)))
        self._connection.tell(
            f"INSERT INTO {TABLES[kind]} ({', '.join(columns(kind))}) VALUES ({marks})",
            *row(record),
        )

    def put(self, before: Meter | Aside, after: Meter | Aside) -> None:
        """Put a record in the place of one with the same name."""
        names = ("id",) if type(after) is Meter else ("node", "owner", "key")
        pairs = zip(columns(type(after)), row(before), row(after), strict=True)
        changed = [(column, new) for column, old, new in pairs if old != new]
        if changed:
            self._connection.tell(
                f"UPDATE {TABLES[type(after)]} SET "
                f"{', '.join(f'{column} = ?' for column, _ in changed)} "
                f"WHERE {' AND '.join(f'{name} = ?' for name in names)}",
                *(new for _, new in changed),
                *(getattr(after, name) for name in names),
            )

    def settle(self) -> None:
        """Write what changed of the meters that were taken."""
        for node, before in self._before.items():
            self.put(before, self.meters[node])


def select(kind: type[Record], where: str, *values: object) -> Statement:
    return f"SELECT {', '.join(columns(kind))} FROM {TABLES[kind]} {where}", values


def read_as(kind: type[Kept], rows: Rows) -> list[Kept]:
    return [record_of(kind, cells) for cells in rows]


def first(found: list[Found]) -> Found | None:
    return found[0] if found else None
