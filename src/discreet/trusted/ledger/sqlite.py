"""A ledger in one SQLite file, shared by threads and processes of one machine.

Every operation opens its own short-lived connection, so nothing crosses a fork or a thread.
`BEGIN IMMEDIATE` takes the write lock before anything is read; `journal_mode=WAL` with
`synchronous=FULL` makes a commit durable before it returns. CHECK constraints repeat the
invariants, and triggers forbid changing or deleting an entry. The file must be on a local disk: WAL
needs shared memory and locks that network file systems do not give.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet import plain
from discreet.errors import LedgerRefused
from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.stores import Balance, Holding
from discreet.trusted.ledger.units import COORDINATES, Amounts

APPLICATION_ID = 0x64697363  # "disc"
FORMAT = 2  # 1 had no ρ; it was never released, and is refused
BUSY_SECONDS = 120.0
_SIZE = len(COORDINATES)
_USED = tuple(f"used_{name}" for name in COORDINATES)
_TOTALS = tuple(f"{part}_{name}" for part in ("box", "spent", "reserved") for name in COORDINATES)
_ENTRY_COLUMNS = ", ".join(
    ("number", "kind", "key", "reservation", *COORDINATES, "body", "timestamp", "previous", "hash")
)
_BALANCE_COLUMNS = ", ".join((*_TOTALS, "entries", "head"))
_HOLDING_COLUMNS = ", ".join(("key", *COORDINATES, *_USED, "is_open"))

# never closed: a forked child must not touch its parent's transaction
_inherited: list[Connection] = []


def _whole(*names: str) -> str:
    return ", ".join(
        f"{name} INTEGER NOT NULL CHECK (typeof({name}) = 'integer' AND {name} >= 0)"
        for name in names
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
        {_whole(*_TOTALS, "entries")}, head TEXT NOT NULL,
        {
        ", ".join(f"CHECK (spent_{name} + reserved_{name} <= box_{name})" for name in COORDINATES)
    })""",
    f"""CREATE TABLE reservations (
        key TEXT PRIMARY KEY NOT NULL, {_whole(*COORDINATES, *_USED)},
        is_open INTEGER NOT NULL CHECK (is_open IN (0, 1)),
        {", ".join(f"CHECK (used_{name} <= {name})" for name in COORDINATES)})""",
    (
        "CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, "
        "'a ledger is append-only'); END"
    ),
    (
        "CREATE TRIGGER entries_never_vanish BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, "
        "'a ledger is append-only'); END"
    ),
)


class Connection:
    """One connection, whose errors are refusals that say what to do."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        with self._refusals():
            self._raw = sqlite3.connect(
                f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, timeout=BUSY_SECONDS
            )
        try:
            for setting in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
                self.run(f"PRAGMA {setting}")
        except BaseException:
            self._raw.close()
            raise

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._refusals():
            return self._raw.execute(statement, values).fetchall()

    def close(self) -> None:
        """Undoes what was not committed."""
        with self._refusals():
            self._raw.close()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise _failed(
                    f"using {self.name}", f"other processes held it for {BUSY_SECONDS:.0f} seconds"
                ) from None
            raise _failed(f"using {self.name}", f"SQLite said: {error}") from None
        except sqlite3.IntegrityError as error:
            raise LedgerRefused(
                f"a change of {self.name}",
                f"it would break a rule of the file ({error})",
                "the rules keep what is spent within the budget",
                "check the ledger with ledger.verify()",
            ) from None
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise _not_a_ledger(
                f"{self.name} cannot be read by SQLite ({type(error).__name__})"
            ) from None


class SQLiteView:
    """One connection inside one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def balance(self) -> Balance:
        row = self._one(f"SELECT {_BALANCE_COLUMNS} FROM balance")
        if row is None:
            raise _not_a_ledger("its balance is missing")
        box, spent, reserved = (
            Amounts(*row[start : start + _SIZE]) for start in range(0, 3 * _SIZE, _SIZE)
        )
        return Balance(box=box, spent=spent, reserved=reserved, entries=row[-2], head=row[-1])

    def find(self, kind: str, key: str) -> Entry | None:
        return _entry(
            self._one(f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE kind = ? AND key = ?", kind, key)
        )

    def first(self, kind: str) -> Entry | None:
        return _entry(
            self._one(
                f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE kind = ? ORDER BY number LIMIT 1", kind
            )
        )

    def at(self, number: int) -> Entry | None:
        return _entry(self._one(f"SELECT {_ENTRY_COLUMNS} FROM entries WHERE number = ?", number))

    def holding(self, key: str) -> Holding | None:
        row = self._one(f"SELECT {_HOLDING_COLUMNS} FROM reservations WHERE key = ?", key)
        return None if row is None else _holding(row)

    def entries(self) -> list[Entry]:
        rows = self._connection.run(f"SELECT {_ENTRY_COLUMNS} FROM entries ORDER BY number")
        return [entry for entry in map(_entry, rows) if entry is not None]

    def holdings(self) -> list[Holding]:
        return [
            _holding(row)
            for row in self._connection.run(
                f"SELECT {_HOLDING_COLUMNS} FROM reservations ORDER BY key"
            )
        ]

    def damage(self) -> list[str]:
        problems = [
            f"SQLite: {row[0]}"
            for row in self._connection.run("PRAGMA integrity_check")
            if row[0] != "ok"
        ]
        found = {
            row[0]
            for row in self._connection.run("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        }
        if found != set(SCHEMA):
            problems.append(
                "the tables, constraints or triggers are not the ones that this library writes"
            )
        if self._one("SELECT count(*) FROM balance") != (1,):
            problems.append("there is not exactly one balance")
        return problems

    def append(self, entry: Entry, balance: Balance, holding: Holding | None = None) -> None:
        values = (
            entry.number,
            entry.kind,
            entry.key,
            entry.reservation,
            *entry.amounts.as_tuple(),
            entry.body,
            entry.timestamp,
            entry.previous,
            entry.hash,
        )
        self._connection.run(
            f"INSERT INTO entries ({_ENTRY_COLUMNS}) VALUES ({_marks(len(values))})", *values
        )
        totals = (
            *balance.box.as_tuple(),
            *balance.spent.as_tuple(),
            *balance.reserved.as_tuple(),
            balance.entries,
            balance.head,
        )
        self._connection.run(
            f"INSERT OR REPLACE INTO balance (only_row, {_BALANCE_COLUMNS}) VALUES (1, "
            f"{_marks(len(totals))})",
            *totals,
        )
        if holding is not None:
            row = (
                holding.key,
                *holding.amounts.as_tuple(),
                *holding.used.as_tuple(),
                int(holding.is_open),
            )
            self._connection.run(
                f"INSERT OR REPLACE INTO reservations ({_HOLDING_COLUMNS}) VALUES "
                f"({_marks(len(row))})",
                *row,
            )

    def _one(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        return next(iter(self._connection.run(statement, *values)), None)


class SQLiteStore:
    """Entries in one file."""

    persistent = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = plain.path(path, "ledger path")
        if not text or "\0" in text or text.startswith((":memory:", "file:")):
            raise LedgerRefused(
                "ledger path",
                "it does not name a file",
                "a persistent ledger is one file on a local disk",
                "pass a file name, or path=None for a ledger in memory",
            )
        try:
            self.path = Path(text).resolve()
            self.path.exists()
        except (OSError, RuntimeError, ValueError):
            # a loop of links, a name that is too long or no text of the file system
            raise LedgerRefused(
                "ledger path",
                "the file system has no such path",
                "a persistent ledger is one file on a local disk",
                "pass a file name, or path=None for a ledger in memory",
            ) from None
        self.name = f"the ledger file {self.path.name!r}"

    def exists(self) -> bool:
        return self.path.exists()

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
            raise _failed(
                f"creating {self.name}", f"the file system said: {error.strerror}"
            ) from None
        finally:
            for suffix in ("", "-wal", "-shm", "-journal"):
                new.with_name(new.name + suffix).unlink(missing_ok=True)

    def _fill(self, path: Path, first: Entry, balance: Balance) -> None:
        with closing(Connection(path, self.name)) as connection:
            if connection.run("PRAGMA journal_mode = WAL")[0][0] != "wal":
                raise _failed(
                    f"creating {self.name}", "SQLite cannot use write-ahead logging there"
                )
            connection.run("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.run(statement)
            SQLiteView(connection).append(first, balance)
            connection.run(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.run(f"PRAGMA user_version = {FORMAT}")
            connection.run("COMMIT")

    @contextmanager
    def read(self) -> Iterator[SQLiteView]:
        with self._transaction("BEGIN") as view:
            yield view

    @contextmanager
    def write(self) -> Iterator[SQLiteView]:
        with self._transaction("BEGIN IMMEDIATE") as view:
            yield view

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SQLiteView]:
        process, connection = os.getpid(), Connection(self.path, self.name)
        try:
            self._recognise(connection)
            connection.run(begin)
            yield SQLiteView(connection)
            if os.getpid() != process:
                raise LedgerRefused(
                    "a ledger transaction",
                    "the process forked inside it",
                    "only the process that began it may end it",
                    "do not fork while an answer is being made",
                )
            connection.run("COMMIT")
        finally:
            if os.getpid() == process:
                connection.close()
            else:
                _inherited.append(connection)

    def _recognise(self, connection: Connection) -> None:
        identity = connection.run("PRAGMA application_id")[0][0]
        version = connection.run("PRAGMA user_version")[0][0]
        if identity != APPLICATION_ID:
            raise _not_a_ledger(f"{self.name} was not written by discreet")
        if version != FORMAT:
            raise _not_a_ledger(
                f"{self.name} has format {version}, and this version reads format {FORMAT}"
            )
        if connection.run("PRAGMA journal_mode")[0][0] != "wal":
            raise _not_a_ledger(f"{self.name} does not use write-ahead logging any more")


def _entry(row: Any) -> Entry | None:
    if row is None:
        return None
    number, kind, key, reservation, *amounts, body, timestamp, previous, digest = row
    return Entry(
        number=number,
        kind=kind,
        key=key,
        reservation=reservation,
        amounts=Amounts(*amounts),
        body=body,
        timestamp=timestamp,
        previous=previous,
        hash=digest,
    )


def _holding(row: Any) -> Holding:
    return Holding(
        key=row[0],
        amounts=Amounts(*row[1 : 1 + _SIZE]),
        used=Amounts(*row[1 + _SIZE : 1 + 2 * _SIZE]),
        is_open=bool(row[-1]),
    )


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _sync_folder(folder: Path) -> None:
    """Make a new name durable; folders cannot be synced on every system."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _failed(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        asked,
        found,
        "a debit counts only when it is durably written",
        "when the cause is gone, ask again with the same key: nothing is debited twice",
    )


def _not_a_ledger(found: str) -> LedgerRefused:
    return LedgerRefused(
        "opening a ledger",
        found,
        "spending from a file that is not understood could overspend the budget",
        "name another file, or open it with the version of discreet that wrote it",
    )
