"""A budget tree in one SQLite file, or in memory.

Every operation on a file has a connection to itself, and none crosses a fork; `BEGIN IMMEDIATE`
takes the write lock before anything is read, and `synchronous=FULL` makes a commit durable before
it returns. Where a service holds connections open between operations (the last one that closes
copies the log into the file, which takes longer than a commit), one is used again only while file
and log are still those that it opened. A tree in memory is a database of one connection behind one
lock; it refuses to go on in a forked child, whose copy could spend the same budget again.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet import plain
from discreet.errors import ledger as refusals
from discreet.errors.tree import rolled_back
from discreet.trusted.ledger.sqlite import BUSY_SECONDS
from discreet.trusted.tree import schema
from discreet.trusted.tree.work import Database, Rows, Statement, Work

MOST_IDLE = 32  # connections of a process that are held between operations, of all its trees
Place = tuple[tuple[int, int], ...]  # which file and which log

# never closed: a forked child must not touch its parent's; closing one whose file was replaced
# removes the log of the new file
_kept_for_parents: list[sqlite3.Connection] = []
_idle: list[tuple[Path, Place, sqlite3.Connection]] = []  # those used last at the end
_guard = threading.Lock()


def _of_parents() -> None:
    global _guard
    _guard = threading.Lock()
    _kept_for_parents.extend(raw for _, _, raw in _idle)
    _idle.clear()


os.register_at_fork(after_in_child=_of_parents)


class SQLiteConnection:
    """One connection, whose errors are refusals that say what to do."""

    def __init__(self, raw: sqlite3.Connection, name: str) -> None:
        self.raw, self.name = raw, name

    def ask(self, *statements: Statement) -> list[Rows]:
        return [self.run(text, *values) for text, values in statements]

    def tell(self, statement: str, *values: object) -> None:
        self.run(statement, *values)

    def run(self, statement: str, *values: object) -> Rows:
        try:
            return self.raw.execute(statement, values).fetchall()
        except sqlite3.OperationalError as error:
            said = f"SQLite said: {error}"
            if "locked" in said or "busy" in said:
                said = f"other processes held it for {BUSY_SECONDS:.0f} seconds"
            raise refusals.failed(f"using {self.name}", said) from None
        except sqlite3.IntegrityError as error:
            raise refusals.rule_broken(self.name, error) from None
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise refusals.not_a_ledger(
                f"{self.name} cannot be read by SQLite ({type(error).__name__})"
            ) from None


def _asked(self: Database, *statements: Statement) -> list[Rows]:
    with self.read() as work:
        return work.ask(*statements)


class MemoryDatabase:
    """A tree that lives and dies with one process."""

    name, persistent = "the budget tree in memory", False

    def __init__(self) -> None:
        self._process, self._lock, self._depth = os.getpid(), threading.RLock(), 0
        raw = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection = SQLiteConnection(raw, self.name)
        migrate(self._connection)

    @contextmanager
    def read(self) -> Iterator[Work]:
        self._same_process()
        with self._lock:
            yield Work(self._connection)

    ask = _asked

    @contextmanager
    def write(self) -> Iterator[Work]:
        self._same_process()
        with self._lock:
            work = Work(self._connection)
            self._connection.run("BEGIN IMMEDIATE")
            try:
                yield work
                self._same_process()  # the block may have forked: the child has no right to go on
                work.settle()
                self._connection.run("COMMIT")
            finally:
                if self._connection.raw.in_transaction:
                    self._connection.run("ROLLBACK")

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
        self._held = held
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
        connection = self._connected()
        try:
            if connection.run("PRAGMA journal_mode = WAL")[0][0] != "wal":
                raise refusals.failed(
                    f"opening {self.name}", "SQLite cannot use write-ahead logging there"
                )
            migrate(connection)
        finally:
            connection.raw.close()

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
        connection = self._connected()
        try:
            return damage_of(connection)
        finally:
            connection.raw.close()

    def close(self) -> None:
        """Let go of what is held between operations."""
        while (raw := self._taken()) is not None:
            raw.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Work]:
        process, raw = os.getpid(), self._taken() if self._held else None
        connection = self._connected() if raw is None else SQLiteConnection(raw, self.name)
        done = False
        try:
            connection.run(begin)
            work = Work(connection)
            yield work
            if os.getpid() != process:
                raise refusals.forked_inside()
            work.settle()
            connection.run("COMMIT")
            done = True
        finally:
            if os.getpid() != process:
                _kept_for_parents.append(connection.raw)
            elif not (done and self._held and self._given_back(connection.raw)):
                connection.raw.close()

    def _taken(self) -> sqlite3.Connection | None:
        """A connection that is held, if file and log are still those that it opened."""
        with _guard:
            mine = [number for number, held in enumerate(_idle) if held[0] == self.path]
            place = self._place() if mine else ()
            for number in reversed(mine):
                _, before, raw = _idle[number]
                if before != place and before[:1] == place[:1]:
                    raise rolled_back(self.name)  # its log is not the one beside it any more
                _idle.pop(number)
                if before == place:
                    return raw
                _kept_for_parents.append(raw)
        return None

    def _given_back(self, raw: sqlite3.Connection) -> bool:
        place = self._place()
        if len(place) < 2:
            return False
        with _guard:
            _idle.append((self.path, place, raw))
            if len(_idle) > MOST_IDLE:
                _idle.pop(0)[2].close()
        return True

    def _place(self) -> Place:
        found = []
        for name in (self.path, f"{self.path}-wal"):
            with suppress(OSError):
                facts = os.stat(name)
                found.append((facts.st_dev, facts.st_ino))
        return tuple(found)

    def _connected(self) -> SQLiteConnection:
        address = f"{self.path.as_uri()}?mode=rw"
        try:
            raw = sqlite3.connect(
                address,
                uri=True,
                isolation_level=None,
                timeout=BUSY_SECONDS,
                check_same_thread=False,  # one at a time has it
            )
        except sqlite3.Error as error:
            raise refusals.failed(f"opening {self.name}", f"SQLite said: {error}") from None
        connection = SQLiteConnection(raw, self.name)
        try:
            for setting in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
                connection.run(f"PRAGMA {setting}")
        except BaseException:
            raw.close()
            raise
        return connection


def migrate(connection: SQLiteConnection) -> None:
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


def damage_of(connection: SQLiteConnection) -> list[str]:
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
