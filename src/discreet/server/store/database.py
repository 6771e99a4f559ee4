"""One adapter over SQLite and PostgreSQL: statements with ``?`` for values, rows as dicts.

Statements are written once, in what both understand. A `write` is one transaction that is durable
when its block ends and undone if the block raises; each statement of a `read` sees what was
committed before it. Where the database is away, both raise one refusal (503), and whoever asked
with a key asks again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from discreet.errors import MissingExtra
from discreet.server.refusals import unavailable

Row = dict[str, Any]
BUSY_SECONDS = 60.0
MOST_IDLE = 16  # connections to PostgreSQL that are kept for later
_SOON = "SET synchronous_commit = off"


class Rows(Protocol):
    """One connection inside one transaction."""

    def run(self, statement: str, *values: object) -> list[Row]:
        """The rows of a statement; none for one that changes something."""
        ...

    def one(self, statement: str, *values: object) -> Row | None:
        """The first row, or None."""
        ...

    def changed(self, statement: str, *values: object) -> int:
        """How many rows a statement changed."""
        ...


class Database(Protocol):
    """Where the service remembers: people, data sets, studies, questions."""

    kind: str
    one_log: bool  # what is durable here makes all that was written before it durable, ledgers too

    def read(self) -> contextlib.AbstractContextManager[Rows]: ...

    def write(self) -> contextlib.AbstractContextManager[Rows]: ...

    def soon(self) -> contextlib.AbstractContextManager[Rows]:
        """A `write` that a crash of the machine may undo as a whole: for what is found again."""
        ...

    def soon_one(self, statement: str, *values: object) -> int:
        """One statement as a whole transaction of that kind; how many rows it changed."""
        ...

    def alone(self) -> contextlib.AbstractContextManager[Rows]:
        """A `write` that no other process begins meanwhile, whatever it changes."""
        ...


class SQLiteDatabase:
    """A file in the folder of the service; each thread has a connection of its own."""

    kind, one_log = "sqlite", False

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path, self._local = Path(path).resolve(), threading.local()
        if not self._path.exists():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o660))

    @contextlib.contextmanager
    def read(self) -> Iterator[Rows]:
        with self._transaction("BEGIN") as rows:
            yield rows

    @contextlib.contextmanager
    def write(self) -> Iterator[Rows]:
        with self._transaction("BEGIN IMMEDIATE") as rows:
            yield rows

    alone = write

    @contextlib.contextmanager
    def soon(self) -> Iterator[Rows]:
        try:
            raw = self._connection()
            raw.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.OperationalError:
            raise unavailable() from None
        try:
            with self._transaction("BEGIN IMMEDIATE") as rows:
                yield rows
        finally:
            raw.execute("PRAGMA synchronous = FULL")

    def soon_one(self, statement: str, *values: object) -> int:
        with self.soon() as rows:
            return rows.changed(statement, *values)

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Rows]:
        try:
            raw = self._connection()
            raw.execute(begin)
        except sqlite3.OperationalError:
            raise unavailable() from None
        try:
            yield SQLiteRows(raw)
            raw.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.Error):
                raw.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise unavailable() from None
            raise

    def _connection(self) -> sqlite3.Connection:
        """This thread's connection, made anew in a forked process."""
        held = getattr(self._local, "held", None)
        if held is not None and held[0] == os.getpid():
            return held[1]  # type: ignore[no-any-return]
        raw = sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_SECONDS)
        raw.row_factory = sqlite3.Row
        settings = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
        for setting in (*settings, "trusted_schema = OFF"):
            raw.execute(f"PRAGMA {setting}")
        self._local.held = os.getpid(), raw
        return raw


class SQLiteRows:
    """Statements of one transaction on SQLite."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def run(self, statement: str, *values: object) -> list[Row]:
        return [dict(row) for row in self._raw.execute(statement, values).fetchall()]

    def one(self, statement: str, *values: object) -> Row | None:
        row = self._raw.execute(statement, values).fetchone()
        return None if row is None else dict(row)

    def changed(self, statement: str, *values: object) -> int:
        return self._raw.execute(statement, values).rowcount


class PostgresDatabase:
    """A PostgreSQL, which several replicas of the service may share."""

    kind, one_log = "postgresql", True
    _LOCK = 0x64697363  # "disc"

    def __init__(self, address: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("psycopg", "server", "a service on PostgreSQL") from None
        self._driver, self._address = psycopg, address
        # connections by their settings: those of statements that a crash may undo are others
        self._idle: dict[str, list[Any]] = {"": [], _SOON: []}
        self._guard, self._process = threading.Lock(), os.getpid()
        weakref.finalize(self, _close_all, self._idle)

    @contextlib.contextmanager
    def read(self) -> Iterator[Rows]:
        with self._connection() as raw:
            yield PostgresRows(raw)

    @contextlib.contextmanager
    def write(self) -> Iterator[Rows]:
        with self._transaction() as rows:
            yield rows

    def soon_one(self, statement: str, *values: object) -> int:
        with self._connection(_SOON) as raw:
            return PostgresRows(raw).changed(statement, *values)

    @contextlib.contextmanager
    def soon(self) -> Iterator[Rows]:
        with self._transaction(_SOON) as rows:
            yield rows

    @contextlib.contextmanager
    def alone(self) -> Iterator[Rows]:
        with self._transaction() as rows:
            rows.run("SELECT pg_advisory_xact_lock(?)", self._LOCK)
            yield rows

    @contextlib.contextmanager
    def _transaction(self, setting: str = "") -> Iterator[Rows]:
        with self._connection(setting) as raw, raw.transaction():
            yield PostgresRows(raw)

    @contextlib.contextmanager
    def _connection(self, setting: str = "") -> Iterator[Any]:
        """A connection whose statements are transactions of their own, until one is begun."""
        away = self._driver.OperationalError, self._driver.InterfaceError
        try:
            raw = self._taken(setting)
        except away:
            raise unavailable() from None
        try:
            yield raw
        except away:
            raise unavailable() from None
        finally:
            self._given_back(raw, setting)

    def _taken(self, setting: str) -> Any:
        with self._guard:
            if self._process != os.getpid():  # connections of a parent are not ours
                for held in self._idle.values():
                    _inherited.extend(held)
                    held.clear()
                self._process = os.getpid()
            idle = self._idle[setting]
            while idle:
                raw = idle.pop()
                if not raw.closed and not raw.broken:
                    return raw
        from psycopg.rows import dict_row

        raw = self._driver.connect(
            self._address, row_factory=dict_row, connect_timeout=10, autocommit=True
        )
        if setting:
            raw.execute(setting)
        return raw

    def _given_back(self, raw: Any, setting: str) -> None:
        status = self._driver.pq.TransactionStatus
        with self._guard:
            idle = self._idle[setting]
            if raw.info.transaction_status == status.IDLE and len(idle) < MOST_IDLE:
                idle.append(raw)
                return
        with contextlib.suppress(Exception):
            raw.close()


# never closed: a forked child must not touch its parent's connections
_inherited: list[Any] = []


def _close_all(idle: dict[str, list[Any]]) -> None:
    for raw in (one for held in idle.values() for one in held):
        with contextlib.suppress(Exception):
            raw.close()


class PostgresRows:
    """Statements of one transaction on PostgreSQL."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def run(self, statement: str, *values: object) -> list[Row]:
        cursor = self._raw.execute(_numbered(statement), values)
        return list(cursor.fetchall()) if cursor.description is not None else []

    def one(self, statement: str, *values: object) -> Row | None:
        rows = self.run(statement, *values)
        return rows[0] if rows else None

    def changed(self, statement: str, *values: object) -> int:
        return int(self._raw.execute(_numbered(statement), values).rowcount)


def _numbered(statement: str) -> str:
    """A statement with the marks of psycopg; values never stand in its text."""
    return statement.replace("%", "%%").replace("?", "%s")
