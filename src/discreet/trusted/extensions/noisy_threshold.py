"""A noisy threshold that stays open: paid once, asked one count after another,
each chosen after the answers before it.

Theorem.  A watch of `positives` positives, whatever is asked of it and whatever else the session
          releases meanwhile, is private as its mechanism `AboveThreshold` says, and the one debit
          at its opening pays for it in the ledger's box.
Proof.    The proof of AboveThreshold conditions on the answers so far, so it holds for questions
          chosen adaptively. A watch is one interactive ε-DP mechanism (or several, one after
          another); each can be simulated by randomised response of ε, drawn at its opening, and a
          post-processing of it that answers questions (Vadhan and Wang 2021;
          docs/theory/selection.md gives the argument), so whatever is interleaved with it composes
          as if it had ended. The noisy threshold lives in this object alone: it is not written,
          printed, copied, pickled or used after a fork.
Checked.  tests/claims/test_selection.py::test_a_watch_has_the_law_of_its_mechanism,
          tests/estimators/test_select_and_watch.py
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from discreet import plain
from discreet.errors import ReleaseFailed, questions
from discreet.neighbors import Neighbors
from discreet.seclusion import Failed, Sealed, aside
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.specs.queries.query import Query
from discreet.specs.queries.scores import CandidateScores
from discreet.trusted.extensions.selection import ThresholdRun
from discreet.trusted.later import later
from discreet.trusted.noise.source import Source
from discreet.trusted.release import WATCH, Question


def require_threshold(question: Question) -> Question:
    """The question, refused before its debit where its mechanism or its name is another one."""
    if type(question.mechanism) not in _OPENED or question.description.estimator != WATCH:
        raise questions.not_a_threshold()
    return question


def opened(question: Question, *given: Any) -> NoisyThreshold:
    """The open run of a question that was debited, by its mechanism."""
    run: NoisyThreshold = _OPENED[type(question.mechanism)](question, *given)
    return run


class NoisyThreshold:
    """An open run of AboveThreshold on a session's data; made by `Session.open_threshold`, which
    has debited its question.

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

    def above(self, query: CandidateScores) -> bool:
        """Whether a count plus noise reaches the noisy threshold."""
        query = self._one_count(query)
        with self._here():
            if not self._run.left:
                raise questions.watch_used_up()
            count = self._statistic(query)
            above = aside(lambda: self._run.above(count.take()[0]))
        if isinstance(above, Failed):
            raise questions.watch_failed("the draw failed", "open another watch with dp.watch")
        return above

    def _here(self) -> threading.Lock:
        """The lock, in the process that opened it and in no fork."""
        if self._process != os.getpid():
            raise questions.watch_in_fork()
        return self._lock

    def _one_count(self, query: CandidateScores) -> CandidateScores:
        """A copy of its own: what is checked is what runs."""
        if type(query) is not CandidateScores:
            raise questions.not_one_count()
        query = CandidateScores.from_dict(json.loads(json.dumps(query.to_dict())))
        sensitivity = self._question.mechanism.sensitivity
        if query.size != 1 or not query.counts or query.sensitivity(self._neighbors) != sensitivity:
            raise questions.not_one_count()
        self._readable(query)
        return query

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

    def __repr__(self) -> str:
        return f"NoisyThreshold({self._run.left} positive answers left)"


_OPENED: dict[type[Any], Callable[..., Any]] = {
    AboveThreshold: NoisyThreshold,
    Thresholdout: later("discreet.trusted.aggregation.holdout.threshold", "NoisyHoldout"),
}
