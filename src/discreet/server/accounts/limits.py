"""Limits of calls: a lockout after failed logins, and a rate for each person.

A lockout is about a name, whether or not somebody has it, and grows with the failures; it stands in
the database, so that replicas share it. Rates are counted in each process: they protect it, and
promise nothing.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict

from discreet.server.refusals import bad_login, too_fast
from discreet.server.store.database import Rows

FREE_FAILURES = 5
FIRST_LOCK, LONGEST_LOCK = 30.0, 3600.0  # seconds
MOST_NAMES = 10_000  # that a process counts at a time


def require_unlocked(rows: Rows, login: str, now: float) -> None:
    """Refuses a login under a name that failed too often of late."""
    row = rows.one("SELECT locked_until FROM failures WHERE login = ?", login)
    if row is not None and row["locked_until"] > now:
        raise bad_login()


def note_failure(rows: Rows, login: str, now: float) -> None:
    """Counts a failed login; from the sixth on each doubles the time of the lock."""
    row = rows.one("SELECT count FROM failures WHERE login = ?", login)
    count = 1 + (row["count"] if row else 0)
    lock = 0.0
    if count > FREE_FAILURES:
        lock = min(FIRST_LOCK * 2 ** min(count - FREE_FAILURES - 1, 12), LONGEST_LOCK)
    rows.changed(
        "INSERT INTO failures (login, count, locked_until) VALUES (?, ?, ?) ON CONFLICT (login)"
        " DO UPDATE SET count = excluded.count, locked_until = excluded.locked_until",
        *(login, count, now + lock),
    )


def forget_failures(rows: Rows, login: str) -> None:
    rows.changed("DELETE FROM failures WHERE login = ?", login)


class Rates:
    """So many calls at once, and then so many a second, for each name."""

    def __init__(self, *, burst: float, per_second: float) -> None:
        self._burst, self._rate = burst, per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._guard = threading.Lock()

    def take(self, name: str, now: float | None = None) -> None:
        """Counts a call; refused where there were too many."""
        moment = time.monotonic() if now is None else now
        with self._guard:
            left, last = self._left.pop(name, (self._burst, moment))
            left = min(self._burst, left + (moment - last) * self._rate)
            granted = left >= 1
            self._left[name] = (left - 1 if granted else left), moment
            while len(self._left) > MOST_NAMES:
                self._left.popitem(last=False)
        if not granted:
            raise too_fast(max(1, round((1 - left) / self._rate)))
