"""A budget tree in PostgreSQL, shared by the processes of many machines.

A change locks the meters of its path with `SELECT … FOR UPDATE`, from the root down, and what it
decides on is read after the lock (READ COMMITTED: each statement sees what was committed before
it). Questions that do not depend on each other's answers travel together, so that a lock is held
for two round trips and one durable commit.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from discreet.errors import ledger as refusals
from discreet.trusted.tree import schema
from discreet.trusted.tree.work import Rows, Statement, Work

MOST_IDLE = 16
LOCK = 0x64697363726565  # "discree": the advisory lock of roots and migrations
BEGIN_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
BEGIN_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
SETTINGS = (
    "SET synchronous_commit = on",
    "SET lock_timeout = '120s'",
    "SET client_encoding = 'UTF8'",
    "SET search_path = public",
)


class PostgreSQLConnection:
    """One connection, whose errors are refusals that say what to do."""

    def __init__(self, raw: psycopg.Connection[Any], name: str) -> None:
        self.raw, self.name = raw, name
        self._told: list[Statement] = []

    def ask(self, *statements: Statement) -> list[Rows]:
        told, self._told = self._told, []
        try:
            with self.raw.pipeline():
                for one in told:
                    self._run(one)
                cursors = [self._run(one) for one in statements]
                return [cursor.fetchall() for cursor in cursors]
        except (errors.IntegrityError, errors.CheckViolation) as error:
            raise refusals.rule_broken(
                self.name, ValueError(error.diag.message_primary or "a constraint")
            ) from None
        except psycopg.Error as error:
            said = f"PostgreSQL said: {error.diag.message_primary or type(error).__name__}"
            raise refusals.failed(f"using {self.name}", said) from None

    def tell(self, statement: str, *values: object) -> None:
        self._told.append((statement, values))

    def end(self, word: str) -> None:
        """Commit or roll back; a commit that was none is refused."""
        self.tell(word)
        self.ask()
        if self.raw.info.transaction_status != TransactionStatus.IDLE:
            raise refusals.failed(f"using {self.name}", "the transaction did not end")

    def drop(self) -> None:
        """Forget what was not sent yet."""
        self._told.clear()

    def _run(self, statement: Statement) -> psycopg.Cursor[Any]:
        text, values = statement
        return self.raw.execute(_translated(text), values or None)


@functools.lru_cache(512)
def _translated(text: str) -> Any:
    return text.replace("?", "%s").encode()


class PostgreSQLDatabase:
    """A tree in the tables `tree_…` of one database."""

    persistent = True

    def __init__(self, address: str) -> None:
        self._address, self._lock = address, threading.Lock()
        self._idle: list[tuple[int, psycopg.Connection[Any]]] = []
        self.name = "the budget tree in PostgreSQL"  # its address may hold a password
        weakref.finalize(self, _close_all, self._idle)
        with self._connection() as connection:
            _migrate(connection)

    @contextmanager
    def read(self) -> Iterator[Work]:
        with self._transaction(BEGIN_READ, "") as work:
            yield work

    def ask(self, *statements: Statement) -> list[Rows]:
        with self._connection() as connection:
            return connection.ask(*statements)

    @contextmanager
    def write(self) -> Iterator[Work]:
        with self._transaction(BEGIN_WRITE, "FOR UPDATE") as work:
            yield work
            work.settle()

    def damage(self) -> list[str]:
        expected = sum(text.count("CHECK (") for one in schema.POSTGRESQL for text in one)
        with self._connection() as connection:
            checks, triggers = connection.ask(
                (
                    "SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND convalidated "
                    "AND conrelid::regclass::text LIKE 'tree\\_%'",
                    (),
                ),
                (
                    "SELECT count(*) FROM pg_trigger WHERE tgname = 'tree_lines_never' "
                    "AND tgenabled = 'O'",
                    (),
                ),
            )
        if checks != [(expected,)] or triggers != [(1,)]:
            return ["the constraints or triggers are not the ones that this library writes"]
        return []

    def close(self) -> None:
        with self._lock:
            _close_all(self._idle)

    @contextmanager
    def _transaction(self, begin: str, lock: str) -> Iterator[Work]:
        process = os.getpid()
        with self._connection() as connection:
            connection.tell(begin)
            yield Work(connection, lock, f"SELECT pg_advisory_xact_lock({LOCK})")
            if os.getpid() != process:
                raise refusals.forked_inside()
            connection.end("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[PostgreSQLConnection]:
        process, raw = os.getpid(), self._taken()
        connection = PostgreSQLConnection(raw, self.name)
        try:
            yield connection
        except BaseException:
            connection.drop()
            if process == os.getpid():
                self._undo(raw)
            raise
        self._give_back(raw)

    def _taken(self) -> psycopg.Connection[Any]:
        with self._lock:
            mine = [one for one in self._idle if one[0] == os.getpid()]
            if mine:
                self._idle.remove(mine[-1])
                return mine[-1][1]
        try:
            raw = psycopg.connect(self._address, autocommit=True)
            for setting in SETTINGS:
                raw.execute(setting)
        except psycopg.Error as error:
            said = "it cannot be reached" if error.diag.message_primary is None else "it refuses"
            raise refusals.failed(f"opening {self.name}", said) from None
        return raw

    def _give_back(self, raw: psycopg.Connection[Any]) -> None:
        with self._lock:
            if not raw.closed and len(self._idle) < MOST_IDLE:
                self._idle.append((os.getpid(), raw))
                return
        raw.close()

    def _undo(self, raw: psycopg.Connection[Any]) -> None:
        """Nothing of a block that failed stays; a connection in doubt is not used again."""
        with suppress(psycopg.Error):
            if raw.info.transaction_status in (
                TransactionStatus.INTRANS,
                TransactionStatus.INERROR,
            ):
                raw.execute("ROLLBACK")
            if raw.info.transaction_status == TransactionStatus.IDLE:
                self._give_back(raw)
                return
        raw.close()


def _close_all(idle: list[tuple[int, psycopg.Connection[Any]]]) -> None:
    """Close the connections of this process; those of a parent are not a child's to close."""
    for process, raw in idle:
        if process == os.getpid():
            raw.close()
    idle.clear()


def _migrate(connection: PostgreSQLConnection) -> None:
    """Bring the tables up to this version, in one transaction; newer ones are refused."""
    connection.tell(BEGIN_WRITE)
    connection.tell(f"SELECT pg_advisory_xact_lock({LOCK})")
    connection.tell(schema.MIGRATIONS_TABLE)
    done = connection.ask(("SELECT number FROM tree_migrations ORDER BY number", ()))[0]
    for number in schema.missing([number for (number,) in done], schema.POSTGRESQL):
        for statement in schema.POSTGRESQL[number - 1]:
            connection.tell(statement)
        connection.tell("INSERT INTO tree_migrations VALUES (?)", number)
    connection.end("COMMIT")
