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
from collections.abc import Callable
from typing import Any

from discreet.errors import questions
from discreet.seclusion import Failed, aside
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.specs.queries.scores import CandidateScores
from discreet.trusted.extensions.open_runs import OpenRun
from discreet.trusted.later import later
from discreet.trusted.release import WATCH, Question


def require_threshold(question: Question) -> Question:
    """The question, refused before its debit where its mechanism or its name is another one."""
    if type(question.mechanism) not in _OPENED or question.description.estimator != WATCH:
        raise questions.not_a_threshold()
    return question


def opened(question: Question, *given: Any) -> Any:
    """The open run of a question that was debited, by its mechanism."""
    return _OPENED[type(question.mechanism)](question, *given)


class NoisyThreshold(OpenRun):
    """An open run of AboveThreshold; made by `Session.open_threshold`, which has debited its
    question.
    """

    __slots__ = ()

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

    def __repr__(self) -> str:
        return f"NoisyThreshold({self._run.left} positive answers left)"


_OPENED: dict[type[Any], Callable[..., Any]] = {
    AboveThreshold: NoisyThreshold,
    Thresholdout: later("discreet.trusted.aggregation.holdout.threshold", "NoisyHoldout"),
}
