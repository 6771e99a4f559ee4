"""dp.holdout: rows that are asked again and again whether what was found elsewhere holds.

*Method.* A question claims a mean. The holdout compares its own with it: where they differ by no
more than a threshold, but for noise, the claim stands, and this costs nothing; else it answers
with a noisy mean of its own, of which so many were paid for at the opening (reference.md J2).
The comparison is |Σ(φ − t)| against T·rows, of exact whole numbers, so that no number of rows
needs to be known for it.
*Validity.* An answer's interval is about the holdout's rows; the guarantee holds for any questions,
however they were chosen.
*Reference.* docs/theory/holdout.md; Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Where
from discreet.asking.sessions import Session
from discreet.estimators.basic import _open
from discreet.inference.holdout.answers import HoldoutAnswer, HoldoutFacts, HoldoutHistory
from discreet.inference.results.summary import Summary
from discreet.models.holdout import questions as build
from discreet.specs.holdout.surprises import Surprise
from discreet.trusted.losses.pricing import guarantee_of

if TYPE_CHECKING:
    from discreet.trusted.aggregation.holdout.threshold import NoisyHoldout


@plain.door
def holdout(session: Session, *, threshold: float, answers: int, spend: Guarantee) -> Holdout:
    """A reusable holdout on a session's rows: it answers any number of questions, of which at most
    `answers` may be surprises; paid once, here.

    `threshold` is how far a claimed mean may be off before it is a surprise, as a share of the
    range of what is averaged. As a watch it has no key and cannot be resumed: a crash ends it, and
    the debit stands.

    Formula.
            surprise   if |mean on these rows − claimed| + V > threshold + W

            V, W  noise; a surprise is answered with the mean on these rows and noise of its own

    Validity. Answers hold whatever was asked before, adaptively chosen questions included
              (docs/theory/holdout.md).
    Price.    The spend, once, at the opening: for `answers` surprises and any number of agreements.
    Example.
            session = dp.load_census().open(budget=dp.GDP(2))
            holdout = dp.holdout(session, threshold=0.05, answers=5, spend=dp.GDP(1))
            print(holdout.share({"education": "degree"}, training=0.30))
            print(holdout.left, "surprises left")
    See also. `dp.watch`, `dp.accuracy`; docs/how-to/holdout.md.
    """
    opened = _open(session)
    question = build.holdout_question(
        opened.public, threshold=threshold, answers=answers, spend=spend
    )
    return Holdout(opened.open_threshold(question), opened)


class Holdout:
    """An open reusable holdout; see `holdout`. It is not copied, pickled or used after a fork."""

    __slots__ = ("_answers", "_facts", "_noisy", "_session")

    def __init__(self, noisy: Any, session: Session) -> None:
        self._noisy: NoisyHoldout = noisy
        self._session = session
        question = noisy.question
        public = session.public.neighbors.row_count_is_public
        self._facts = HoldoutFacts(
            question.mechanism,
            question.query.tolerance,
            session.public.rows if public else None,
            None if public else self._noisy.rows(),
            session.public.neighbors,
            question.spend,
            guarantee_of(question.mechanism),
            noisy.secure,
        )
        self._answers: list[HoldoutAnswer] = []

    @plain.door
    def share(self, where: Where, *, training: float) -> HoldoutAnswer:
        """The share of rows that a filter keeps: ``holdout.share({"age": (18, 30)},
        training=0.31)``.
        """
        return self._ask(*build.share_asked(self._session.public, where, training))

    @plain.door
    def mean(
        self,
        what: str | Sequence[str] | Callable[..., Any],
        *,
        training: float,
        columns: Sequence[str] | None = None,
    ) -> HoldoutAnswer:
        """The mean of a number column, of a product of columns (a list of up to three), or of a
        function of one row between 0 and 1: ``holdout.mean(lambda row: row["a"] * row["b"],
        training=0.1)``.

        A function is called on one row at a time, on plain values (numbers, text, True, False,
        None where there is none) of the columns that it names, or of `columns`. What it gives is
        clipped to 0 … 1; where it fails or gives no number the row counts as 0. It must be written
        so that it can keep nothing between rows: see docs/how-to/holdout.md.
        """
        return self._ask(*build.mean_asked(self._session.public, what, training, columns))

    @plain.door
    def accuracy(self, fit: Any, *, training: float) -> HoldoutAnswer:
        """The share of rows that a fit decides rightly; `fit` is what dp.logistic or dp.network
        returned.
        """
        spend = self._facts.spend
        return self._ask(*build.accuracy_asked(self._session.public, fit, training, spend))

    @property
    def left(self) -> int:
        """How many surprises it can still answer."""
        return self._noisy.left

    @property
    def facts(self) -> HoldoutFacts:
        """What is public of it: mechanism, price, number of rows."""
        return self._facts

    @property
    def history(self) -> HoldoutHistory:
        """All answers so far."""
        return HoldoutHistory(self._facts, tuple(self._answers))

    def summary(self, level: float = 0.95) -> Summary:
        """A table of all answers so far."""
        return self.history.summary(level)

    def plot(self, level: float = 0.95, **given: Any) -> Any:
        """A picture of all answers so far; saved if a path is given."""
        return self.history.plot(level, **given)

    def _ask(self, part: Any, claim: Any) -> HoldoutAnswer:
        steps = build.claimed_steps(claim)
        query = Surprise(part, steps, self._facts.tolerance)
        integer = self._noisy.answer(query)
        number = len(self._answers) + 1
        answer = HoldoutAnswer(self._facts, claim, steps, integer, number, self._noisy.left)
        self._answers.append(answer)
        return answer

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        self._noisy.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return (
            f"Holdout(threshold {self._facts.threshold:g}, {len(self._answers)} questions, "
            f"{self.left} answers left)"
        )
