"""A fair queue: seats take turns, so that nobody waits behind another one's many questions."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from typing import Any

Job = dict[str, Any]


class FairQueue:
    """Jobs by seat; the seat whose turn is longest ago comes next."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[Job]] = OrderedDict()
        self._known: set[str] = set()
        self._ready = threading.Condition()
        self._closed = False

    def put(self, seat: str, job: Job) -> bool:
        """Whether a job is new: one that waits or runs already is not taken twice."""
        with self._ready:
            if job["id"] in self._known:
                return False
            self._known.add(job["id"])
            self._waiting.setdefault(seat, deque()).append(job)
            self._ready.notify()
            return True

    def take(self) -> Job | None:
        """The next job, waited for; None once the queue is closed."""
        with self._ready:
            while not self._waiting and not self._closed:
                self._ready.wait()
            if self._closed:
                return None
            seat, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft()
            if jobs:
                self._waiting[seat] = jobs  # at the end of the line
            return job

    def done(self, job: Job) -> None:
        """A job that was taken has ended."""
        with self._ready:
            self._known.discard(job["id"])

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify_all()

    def __len__(self) -> int:
        with self._ready:
            return len(self._known)
