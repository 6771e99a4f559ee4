"""What stays open between questions: the noise of a run lives in one object, in one process.

Theorem.  The noise of an open run is in this object alone: it is not written, printed, copied,
          pickled or used after a fork, and questions come to it one at a time. A failure of the
          engine says nothing about the data.
Proof.    `__reduce_ex__` refuses, the process is the one that opened it, one lock is held from the
          question to its answer, and a failure is replaced by one text.
Checked.  tests/estimators/test_select_and_watch.py, tests/models/test_reusable_holdout.py
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from discreet import plain
from discreet.errors import ReleaseFailed, questions
from discreet.neighbors import Neighbors
from discreet.seclusion import Sealed
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.specs.queries.query import Query
from discreet.trusted.extensions.selection import ThresholdRun
from discreet.trusted.noise.source import Source
from discreet.trusted.release import Question


class OpenRun:
    """A run of AboveThreshold that stays open on a session's data.

    `aggregate` gives the session's exact statistic of a query, sealed; `readable` refuses a query
    that the session would not run.
    """

    __slots__ = ("_aggregate", "_lock", "_neighbors", "_process", "_question", "_readable", "_run")

    def __init__(
        self,
        question: Question,
        neighbors: Neighbors,
        source: Source,
        aggregate: Callable[[Query], Sealed],
        readable: Callable[[Query], None],
    ) -> None:
        """Reads no data."""
        self._readable = readable
        self._question, self._neighbors, self._aggregate = question, neighbors, aggregate
        self._process, self._lock = os.getpid(), threading.Lock()
        above = getattr(question.mechanism, "above", question.mechanism)
        assert isinstance(above, AboveThreshold)  # by `require_threshold`
        self._run = ThresholdRun(above, source)

    @property
    def question(self) -> Question:
        """What was paid for: a copy, which is not what runs."""
        own = self._question
        return replace(
            own,
            description=plain.rebuilt(own.description),
            query=plain.rebuilt(own.query),
            mechanism=plain.rebuilt(own.mechanism),
            spend=plain.rebuilt(own.spend),
        )

    @property
    def left(self) -> int:
        """How many positive answers it can still give."""
        return self._run.left

    def _here(self) -> threading.Lock:
        """The lock, in the process that opened it and in no fork."""
        if self._process != os.getpid():
            raise questions.watch_in_fork()
        return self._lock

    def _statistic(self, query: Query) -> Sealed:
        """The exact numbers; a failure of the engine says nothing about the data and uses up
        nothing, for no noise was drawn.
        """
        try:
            return self._aggregate(query)
        except ReleaseFailed:
            pass
        raise questions.watch_failed(
            "the engine failed",
            "look at the data source (is the file still there?), then ask again",
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise questions.watch_copied()
