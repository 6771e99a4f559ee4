"""A budget tree in one SQLite file, or in memory.

Every operation on a file has a connection to itself, and none crosses a fork
(`trusted.ledger.held`); `BEGIN IMMEDIATE` takes the write lock before anything is read, and
`synchronous=FULL` makes a commit durable before it returns. A tree in memory is a database of one
connection behind one lock; it refuses to go on in a forked child, whose copy could spend the same
budget again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from discreet import plain
from discreet.errors import ledger as refusals
from discreet.errors.tree import rolled_back
from discreet.trusted.ledger.held import MOST_IDLE, Connection, File
from discreet.trusted.tree import schema
from discreet.trusted.tree.work import Database, Rows, Statement, Work


class SQLiteConnection:
    """What is asked within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self.run = connection.run

    def ask(self, *statements: Statement) -> list[Rows]:
        return [self.run(text, *values) for text, values in statements]

    def tell(self, statement: str, *values: object) -> None:
        self.run(statement, *values)


def _asked(self: Database, *statements: Statement) -> list[Rows]:
    with self.read() as work:
        return work.ask(*statements)


class MemoryDatabase:
    """A tree that lives and dies with one process."""

    name, persistent = "the budget tree in memory", False

    def __init__(self) -> None:
        self._process, self._lock, self._depth = os.getpid(), threading.RLock(), 0
        self._connection = Connection(None, self.name)
        migrate(self._connection)

    @contextmanager
    def read(self) -> Iterator[Work]:
        self._same_process()
        with self._lock:
            yield Work(SQLiteConnection(self._connection))

    ask = _asked

    @contextmanager
    def write(self) -> Iterator[Work]:
        self._same_process()
        with self._lock:
            work = Work(SQLiteConnection(self._connection))
            self._connection.run("BEGIN IMMEDIATE")
            try:
                yield work
                self._same_process()  # the block may have forked: the child has no right to go on
                work.settle()
                self._connection.run("COMMIT")
            finally:
                self._connection.raw.rollback()

    def damage(self) -> list[str]:
        with self._lock:
            return damage_of(self._connection)

    def close(self) -> None:
        self._connection.raw.close()

    def _same_process(self) -> None:
        if os.getpid() != self._process:
            raise refusals.forked_memory()


class SQLiteDatabase:
    """A tree in one file."""

    persistent = True

    def __init__(self, path: str | os.PathLike[str], *, held: bool = False) -> None:
        """`held`: connections stay open between operations, until `close`."""
        text = plain.path(path, "budget tree")
        if not text or "\0" in text or text.startswith((":memory:", "file:")):
            raise refusals.bad_path("it does not name a file")
        self.path = Path(text).resolve()
        if self.path.is_dir():
            raise refusals.bad_path("it is a folder")
        self.name = f"the budget tree {self.path.name!r}"
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise refusals.not_created(self.name, self.path.parent.name, error) from None
        self._file = File(self.path, self.name, rolled_back, MOST_IDLE * held)
        connection = Connection(self.path, self.name)
        with closing(connection.raw):
            if connection.run("PRAGMA journal_mode = WAL")[0][0] != "wal":
                raise refusals.failed(
                    f"opening {self.name}", "SQLite cannot use write-ahead logging there"
                )
            migrate(connection)

    @contextmanager
    def read(self) -> Iterator[Work]:
        with self._transaction("BEGIN") as work:
            yield work

    ask = _asked

    @contextmanager
    def write(self) -> Iterator[Work]:
        with self._transaction("BEGIN IMMEDIATE") as work:
            yield work

    def damage(self) -> list[str]:
        connection = Connection(self.path, self.name)
        with closing(connection.raw):
            return damage_of(connection)

    def close(self) -> None:
        """Let go of what is held between operations."""
        self._file.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Work]:
        with self._file.transaction(begin) as connection:
            work = Work(SQLiteConnection(connection))
            yield work
            work.settle()


def migrate(connection: Connection) -> None:
    """Bring the tables up to this version, in one transaction; newer ones are refused."""
    connection.run("BEGIN IMMEDIATE")
    try:
        connection.run(schema.MIGRATIONS_TABLE)
        done = connection.run("SELECT number FROM tree_migrations ORDER BY number")
        for number in schema.missing([number for (number,) in done], schema.SQLITE):
            for statement in schema.SQLITE[number - 1]:
                connection.run(statement)
            connection.run("INSERT INTO tree_migrations VALUES (?)", number)
        connection.run("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.raw.rollback()
        raise


def damage_of(connection: Connection) -> list[str]:
    problems = [
        f"SQLite: {said}" for (said,) in connection.run("PRAGMA integrity_check") if said != "ok"
    ]
    found = connection.run(
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name LIKE 'tree!_%' ESCAPE '!'"
    )
    written = {statement for one in schema.SQLITE for statement in one}
    if {text for (text,) in found} != written | {schema.STORED_MIGRATIONS_TABLE}:
        problems.append(
            "the tables, constraints or triggers are not the ones that this library writes"
        )
    return problems
