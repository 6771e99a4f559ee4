"""Connections to one SQLite file, held between operations.

The last one that closes copies the log into the file, which takes longer than a commit; so they
stay open, and one is used again only while file and log are still those that it opened. None
crosses a fork, and what raised inside is closed, which undoes it.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from discreet.errors import ledger as refusals

BUSY = 120.0  # seconds that others are waited for
MOST_IDLE = 4  # connections to a file that are held between operations


class Connection:
    """One connection, of one process, whose errors are refusals that say what to do; a commit on it
    is durable before it returns.
    """

    def __init__(self, path: Path | None, name: str) -> None:
        """A connection to the file `path`, or to a new database in memory."""
        self.name, self.process = name, os.getpid()
        address = "file::memory:" if path is None else f"{path.as_uri()}?mode=rw"
        with self._refusals():  # one operation at a time has it, in whichever thread
            self.raw = sqlite3.connect(address, uri=True, timeout=BUSY, check_same_thread=False)
            self.raw.isolation_level = None
            for setting in ("synchronous = FULL", "fullfsync = ON", "trusted_schema = OFF"):
                self.raw.execute(f"PRAGMA {setting}")

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        if os.getpid() != self.process:
            raise refusals.forked_inside()
        with self._refusals():
            return self.raw.execute(statement, values).fetchall()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            said = f"SQLite said: {error}"
            if "locked" in said or "busy" in said:
                said = f"other processes held it for {BUSY:.0f} seconds"
            raise refusals.failed(f"using {self.name}", said) from None
        except sqlite3.IntegrityError as error:
            raise refusals.rule_broken(self.name, error) from None
        except (sqlite3.Error, UnicodeDecodeError, OverflowError) as error:
            raise refusals.not_a_ledger(
                f"{self.name} cannot be read by SQLite ({type(error).__name__})"
            ) from None


# never closed: a forked child must not touch its parent's; closing one whose file was replaced
# removes the log of the new file
_left: list[Connection] = []


class File:
    """A file of transactions."""

    def __init__(self, path: Path, name: str, gone: Callable[[str], Exception], most: int) -> None:
        """`most` connections are held; `gone` is raised where file or log was replaced."""
        self.path, self.name, self._gone, self._most = path, name, gone, most
        # which file and which log each opened; the one used last at the end
        self._idle: list[tuple[list[tuple[int, int]], Connection]] = []
        weakref.finalize(self, _let_go, path, self._idle)

    @contextmanager
    def transaction(self, begin: str) -> Iterator[Connection]:
        """Committed when the block ends, undone if it raises."""
        connection, done = self._taken() or Connection(self.path, self.name), False
        try:
            connection.run(begin)
            yield connection
            connection.run("COMMIT")
            done = True
        finally:
            place = _place(self.path)
            if done and len(place) == 2 and len(self._idle) < self._most:
                self._idle.append((place, connection))
            else:
                _let_go(self.path, [(place, connection)])

    def close(self) -> None:
        """Lets go of what is held between operations."""
        _let_go(self.path, self._idle)

    def _taken(self) -> Connection | None:
        """A connection of this process, if file and log are still those that it opened."""
        while self._idle:
            with suppress(IndexError):  # another thread took the last one
                before, connection = self._idle.pop()
                if connection.process == os.getpid():
                    if before == _place(self.path):
                        return connection
                    self._idle.append((before, connection))
                    raise self._gone(self.name)
                _left.append(connection)
        return None


def _place(path: Path) -> list[tuple[int, int]]:
    found = []
    for name in (path, f"{path}-wal"):
        with suppress(OSError):
            facts = os.stat(name)
            found.append((facts.st_dev, facts.st_ino))
    return found


def _let_go(path: Path, idle: list[tuple[list[tuple[int, int]], Connection]]) -> None:
    while idle:
        before, connection = idle.pop()
        if connection.process == os.getpid() and before == _place(path):
            connection.raw.close()
        else:
            _left.append(connection)
