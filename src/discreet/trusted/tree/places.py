"""Where a tree is kept, what this process has seen of it, and what is noted of it elsewhere.

Every operation checks that the newest line of a chain that this process has seen, or that was
pinned before an answer left, is still there. So a database that was replaced by an older copy is
noticed at the first operation on a chain that it forgot.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from discreet.errors import tree as refusals
from discreet.trusted.ledger.entries import FIRST_PREVIOUS
from discreet.trusted.tree.records import Line
from discreet.trusted.tree.work import Database, Work, first, read_as

if TYPE_CHECKING:
    from discreet.trusted.tree.pins import Pins

Place = tuple[int, str]  # number and hash of a line
START: Place = (-1, FIRST_PREVIOUS)


class Places:
    """One database, shared by the threads of a process."""

    def __init__(self, database: Database, pins: Pins | None = None) -> None:
        self.database, self.pins = database, pins
        self._lock = threading.Lock()
        self._seen: dict[str, Place] = {} if pins is None else pins.pinned()

    @contextmanager
    def changing(self) -> Iterator[Work]:
        """One transaction; what it appended is what was seen, once it is durable."""
        with self.database.write() as work:
            yield work
        for chain, place in work.heads.items():
            self.note(chain, place)

    def note(self, chain: str, place: Place) -> None:
        with self._lock:
            self._seen[chain] = max(self._seen.get(chain, START), place)

    def seen(self, chain: str) -> Place:
        """The newest line of a chain that is known to have been there."""
        return self._seen.get(chain, START)

    def require_known(self, chain: str, line: Line | None, seen: Place) -> None:
        """Refuse if the database does not know what was seen."""
        if seen[0] >= 0 and (line is None or line.hash != seen[1]):
            raise refusals.rolled_back(self.database.name)

    def require_in(self, work: Work, chain: str) -> None:
        """The same for a chain whose meter is locked."""
        seen = self.seen(chain)
        if seen[0] >= 0:
            found = read_as(Line, work.ask(work.numbered(chain, seen[0]))[0])
            self.require_known(chain, first(found), seen)

    def known(self) -> dict[str, Place]:
        """What is known to have been there, by chain."""
        with self._lock:
            return dict(self._seen)

    def reset(self, chain: str, place: Place | None) -> None:
        """Forget what was seen of a chain, which was lost and is counted as spent."""
        with self._lock:
            self._seen.pop(chain, None)
            if place is not None:
                self._seen[chain] = place

    def pin(self, line: Line, above: tuple[str, ...]) -> None:
        """Note the line of an answer outside the database, durably."""
        if self.pins is not None:
            self.pins.pin(line.chain, above, line.number, line.hash)
