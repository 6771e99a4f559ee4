"""A ledger in one SQLite file, shared by threads and processes of one machine.

Every operation has a connection to itself, and none crosses a fork (`trusted.ledger.held`).
`BEGIN IMMEDIATE` takes the write lock before anything is read; `journal_mode=WAL` with
`synchronous=FULL` makes a commit durable before it returns. CHECK constraints repeat the
invariants, and triggers forbid changing or deleting an entry. The file must be on a local disk: WAL
needs shared memory and locks that network file systems do not give.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from discreet import plain
from discreet.errors import ledger as refusals
from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.held import MOST_IDLE, Connection, File
from discreet.trusted.ledger.stores import Balance, Holding
from discreet.trusted.ledger.units import COORDINATES, Amounts

APPLICATION_ID = 0x64697363  # "disc"
FORMAT = 2  # 1 had no ρ; it was never released, and is refused

Record = Entry | Balance | Holding
Kept = TypeVar("Kept", Entry, Balance, Holding)
_TABLES: dict[type[Record], str] = {Entry: "entries", Balance: "balance", Holding: "reservations"}
# the fields of each record, and whether they are amounts
_FIELDS = {
    kind: [(field.name, field.type == "Amounts") for field in fields(kind)] for kind in _TABLES
}


def _columns(kind: type[Record]) -> tuple[str, ...]:
    """The columns of a record: one a field, and one a coordinate for amounts."""
    names: list[str] = []
    for name, is_amounts in _FIELDS[kind]:
        prefix = "" if name == "amounts" else f"{name}_"
        names += [prefix + one for one in COORDINATES] if is_amounts else [name]
    return tuple(names)


def _row(record: Record) -> tuple[object, ...]:
    """The values of a record's columns."""
    values = ((getattr(record, name), whole) for name, whole in _FIELDS[type(record)])
    return tuple(cell for one, whole in values for cell in (one.as_tuple() if whole else (one,)))


def _read(kind: type[Kept], row: Iterable[Any]) -> Kept:
    """The record of a row."""
    cells = iter(row)
    values: dict[str, Any] = {
        name: Amounts(*islice(cells, len(COORDINATES))) if is_amounts else next(cells)
        for name, is_amounts in _FIELDS[kind]
    }
    return kind(**values)


def _whole(*names: str) -> str:
    return ", ".join(
        f"{name} INTEGER NOT NULL CHECK (typeof({name}) = 'integer' AND {name} >= 0)"
        for name in names
    )


def _each(rule: str) -> str:
    """A check of every coordinate."""
    return ", ".join(f"CHECK ({rule.format(name=name)})" for name in COORDINATES)


def _never(change: str) -> str:
    vanish = "vanish" if change == "DELETE" else "change"
    return (
        f"CREATE TRIGGER entries_never_{vanish} BEFORE {change} ON entries BEGIN SELECT "
        "RAISE(ABORT, 'a ledger is append-only'); END"
    )


SCHEMA = (
    f"""CREATE TABLE entries (
        number INTEGER PRIMARY KEY CHECK (number >= 0),
        kind TEXT NOT NULL CHECK (kind IN ('open', 'debit', 'answer', 'reserve', 'close')),
        key TEXT NOT NULL, reservation TEXT NOT NULL, {_whole(*COORDINATES)},
        body TEXT NOT NULL, timestamp TEXT NOT NULL, previous TEXT NOT NULL UNIQUE, \
hash TEXT NOT NULL UNIQUE,
        UNIQUE (kind, key))""",
    f"""CREATE TABLE balance (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        {_whole(*_columns(Balance)[:-1])}, head TEXT NOT NULL,
        {_each("spent_{name} + reserved_{name} <= box_{name}")})""",
    f"""CREATE TABLE reservations (
        key TEXT PRIMARY KEY NOT NULL, {_whole(*_columns(Holding)[1:-1])},
        is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
        {_each("used_{name} <= {name}")})""",
    _never("UPDATE"),
    _never("DELETE"),
)


class SQLiteView:
    """One connection inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def balance(self) -> Balance:
        found = self._all(Balance)
        if not found:
            raise refusals.not_a_ledger("its balance is missing")
        return found[0]

    def find(self, kind: str, key: str) -> Entry | None:
        return next(iter(self._all(Entry, "WHERE kind = ? AND key = ?", kind, key)), None)

    def first(self, kind: str) -> Entry | None:
        return next(iter(self._all(Entry, "WHERE kind = ? ORDER BY number LIMIT 1", kind)), None)

    def at(self, number: int) -> Entry | None:
        return next(iter(self._all(Entry, "WHERE number = ?", number)), None)

    def holding(self, key: str) -> Holding | None:
        return next(iter(self._all(Holding, "WHERE key = ?", key)), None)

    def entries(self) -> list[Entry]:
        return self._all(Entry, "ORDER BY number")

    def holdings(self) -> list[Holding]:
        return self._all(Holding, "ORDER BY key")

    def damage(self) -> list[str]:
        run = self._connection.run
        problems = [f"SQLite: {said}" for (said,) in run("PRAGMA integrity_check") if said != "ok"]
        found = {sql for (sql,) in run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
        if found != set(SCHEMA):
            problems.append(
                "the tables, constraints or triggers are not the ones that this library writes"
            )
        if run("SELECT count(*) FROM balance") != [(1,)]:
            problems.append("there is not exactly one balance")
        return problems

    def append(self, entry: Entry, balance: Balance, holding: Holding | None = None) -> None:
        self._put("INSERT", entry)
        self._put("INSERT OR REPLACE", balance, only_row=1)
        if holding is not None:
            self._put("INSERT OR REPLACE", holding)

    def _all(self, kind: type[Kept], where: str = "", *values: object) -> list[Kept]:
        columns = ", ".join(_columns(kind))
        rows = self._connection.run(f"SELECT {columns} FROM {_TABLES[kind]} {where}", *values)
        return [_read(kind, row) for row in rows]

    def _put(self, verb: str, record: Record, **others: object) -> None:
        columns, values = (*others, *_columns(type(record))), (*others.values(), *_row(record))
        marks = ", ".join("?" * len(values))
        self._connection.run(
            f"{verb} INTO {_TABLES[type(record)]} ({', '.join(columns)}) VALUES ({marks})", *values
        )


class SQLiteStore:
    """Entries in one file."""

    persistent = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = plain.path(path, "ledger path")
        if not text or "\0" in text or text.startswith((":memory:", "file:")):
            raise refusals.bad_path("it does not name a file")
        try:
            self.path = Path(text).resolve()
            is_folder = self.path.is_dir()
        except (OSError, RuntimeError, ValueError):
            # a loop of links, a name that is too long or no text of the file system
            raise refusals.bad_path("the file system has no such path") from None
        if is_folder:
            raise refusals.bad_path("it is a folder")
        self.name = f"the ledger file {self.path.name!r}"
        self._file = File(self.path, self.name, refusals.replaced, MOST_IDLE)

    def create(self, first: Entry, balance: Balance) -> None:
        """Make the file with its first entry, whole or not at all;
        if another process made it first, theirs stays.

        The file is written under a temporary name, readable by its owner only, and appears under
        its own name by one atomic link, so no one ever sees a ledger without its box.
        """
        new = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.new")
        try:
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            self._fill(new, first, balance)
            with suppress(FileExistsError):
                os.link(new, self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise refusals.not_created(self.name, self.path.parent.name, error) from None
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                new.with_name(new.name + suffix).unlink(missing_ok=True)

    def _fill(self, path: Path, first: Entry, balance: Balance) -> None:
        connection = Connection(path, self.name)
        with closing(connection.raw):
            if connection.run("PRAGMA journal_mode = WAL")[0][0] != "wal":
                raise refusals.failed(
                    f"creating {self.name}", "SQLite cannot use write-ahead logging there"
                )
            connection.run("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.run(statement)
            SQLiteView(connection).append(first, balance)
            connection.run(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.run(f"PRAGMA user_version = {FORMAT}")
            connection.run("COMMIT")

    def read(self) -> AbstractContextManager[SQLiteView]:
        return self._transaction("BEGIN")

    def write(self) -> AbstractContextManager[SQLiteView]:
        return self._transaction("BEGIN IMMEDIATE")

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SQLiteView]:
        with self._file.transaction(begin) as connection:
            self._recognise(connection)
            yield SQLiteView(connection)

    def _recognise(self, connection: Connection) -> None:
        version = connection.run("PRAGMA user_version")[0][0]
        if connection.run("PRAGMA application_id") != [(APPLICATION_ID,)]:
            raise refusals.not_a_ledger(f"{self.name} was not written by discreet")
        if version != FORMAT:
            raise refusals.not_a_ledger(
                f"{self.name} has format {version}, and this version reads format {FORMAT}"
            )
        if connection.run("PRAGMA journal_mode")[0][0] != "wal":
            raise refusals.not_a_ledger(f"{self.name} does not use write-ahead logging any more")


def _sync_folder(folder: Path) -> None:
    """Make a new name durable; folders cannot be synced on every system."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
