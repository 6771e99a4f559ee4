"""A reusable holdout: a noisy threshold that stays open, and answers with a noisy number
whenever it is exceeded.

Theorem.  Everything that a `NoisyHoldout` answers is private as its mechanism `Thresholdout` says,
          which was debited whole at its opening.
Proof.    Each question's three numbers move by at most the Δ that all noises are calibrated to
          (`_own` computes it again). A question is a 0 or a 1 of one run of AboveThreshold; after a
          1, and only then, its number is answered with fresh noise, so at most `positives` are; the
          number of rows is drawn once and then repeated (loss.py composes them). What fails is a
          refusal that says nothing of the data, and its noise is not drawn again. As a watch it is
          not copied, pickled or used after a fork (extensions/open_runs.py).
Checked.  tests/claims/test_holdout.py, tests/models/test_reusable_holdout.py
"""

from __future__ import annotations

from typing import Any

from discreet import plain
from discreet.errors import questions
from discreet.seclusion import Failed, aside
from discreet.specs.holdout.surprises import Surprise
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.trusted.extensions.open_runs import OpenRun
from discreet.trusted.extensions.selection import ThresholdRun
from discreet.trusted.noise.additive import add_noise
from discreet.trusted.noise.source import SecureSource, Source

_NOT_DRAWN = None


def thresholdout(mechanism: Thresholdout, statistic: list[int], source: Source) -> tuple[int, ...]:
    """(0,), or 1 and the noisy number: one question alone."""
    return _answered(mechanism, ThresholdRun(mechanism.above, source), statistic, source)


def _answered(
    mechanism: Thresholdout, run: ThresholdRun, statistic: list[int], source: Source
) -> tuple[int, ...]:
    score, number, _ = statistic
    if not run.above(score):
        return (0,)
    return 1, *add_noise(mechanism.answer, [number], source)


class NoisyHoldout(OpenRun):
    """An open run of Thresholdout on a session's data; made by `Session.open_threshold`."""

    __slots__ = ("_rows",)

    def __init__(self, question: Any, neighbors: Any, source: Any, *more: Any) -> None:
        super().__init__(question, neighbors, source, *more)
        self._rows: Any = _NOT_DRAWN

    def answer(self, query: Surprise) -> int | None:
        """The noisy number of a surprise, in steps of its noise; None for what is no surprise."""
        query = self._own(query)
        with self._here():
            if not self._run.left:
                raise questions.holdout_used_up()
            statistic, mechanism = self._statistic(query), self._mechanism
            given = aside(
                lambda: _answered(mechanism, self._run, statistic.take(), self._run.source)
            )
        if isinstance(given, Failed):
            raise questions.watch_failed("the draw failed", "open another one with dp.holdout")
        return given[1] if given[0] else None

    def rows(self) -> int:
        """The noisy number of rows, in steps of its noise; drawn once."""
        noise = self._mechanism.count
        if noise is None:
            raise questions.holdout_rows_are_public()
        with self._here():
            if self._rows is _NOT_DRAWN:
                statistic = self._statistic(self._own(self._question.query))
                source = self._run.source
                self._rows = aside(lambda: add_noise(noise, [statistic.take()[2]], source)[0])
            if isinstance(self._rows, Failed):
                raise questions.watch_failed("the draw failed", "open another one with dp.holdout")
            return int(self._rows)

    @property
    def secure(self) -> bool:
        """Whether its noise is the system's, and not that of a test."""
        return type(self._run.source) is SecureSource

    @property
    def _mechanism(self) -> Thresholdout:
        assert isinstance(self._question.mechanism, Thresholdout)
        return self._question.mechanism

    def _own(self, query: Any) -> Surprise:
        """A copy of its own: what is checked is what runs."""
        if type(query) is not Surprise:
            raise questions.not_one_mean()
        own: Surprise = plain.rebuilt(query)
        if own.sensitivity(self._neighbors) != self._mechanism.sensitivity:
            raise questions.not_one_mean()
        self._readable(own)
        return own

    def __repr__(self) -> str:
        return f"NoisyHoldout({self._run.left} answers left)"
