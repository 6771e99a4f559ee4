"""What a holdout would notice, before anything is spent: from public facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.asking.preview import Assumptions
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.inference.holdout.answers import HoldoutFacts
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.specs.holdout.surprises import STEPS, Surprise
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import Question

ASKED = (1, 10, 100, 1000)  # questions to a holdout


@dataclass(frozen=True, slots=True, repr=False)
class HoldoutPreview(Told):
    """A forecast of a holdout: free, and made without data.

    `unseen` is how far off a claim that stood can be, for so many questions at once, and `noise`
    the standard deviation of an answer; both as a share of the range.
    """

    question: Question
    unseen: tuple[tuple[int, float], ...]
    noise: float
    price: str
    how_many: int
    assumed: str
    level: float

    def summary(self) -> Summary:
        mechanism = self.question.mechanism
        assert isinstance(mechanism, Thresholdout)
        rows = [
            (f"{count} question{'s' if count > 1 else ''}", f"{gap:.3g}")
            for count, gap in self.unseen
        ]
        return Summary(
            "Preview of a reusable holdout",
            ("", f"off by at most, where a claim stands ({100 * self.level:g}%)"),
            tuple(rows),
            (
                (
                    f"{mechanism.above.positives} answers, each with noise of {self.noise:.3g} of "
                    f"the range. Method: {mechanism.kind}, {guarantee_of(mechanism)}. Price: "
                    f"{self.price}. About {self.how_many} like this fit in what is left."
                ),
                f"Assumed: {self.assumed}. Nothing was spent and no data was read.",
            ),
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """How far off a claim that stood can be; saved if a path is given."""
        from discreet.plots.previews import plot_bars

        shown = self.summary()
        return plot_bars(
            [label for label, _ in shown.rows],
            [gap for _, gap in self.unseen],
            shown.header[1],
            f"spend {self.question.spend}; for every data set",
            shown.title if title is None else title,
            ax=ax,
            path=path,
        )


def holdout_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> HoldoutPreview:
    """The forecast of opening a holdout; the number of rows is assumed where it is private."""
    mechanism, price, public = question.mechanism, session.price(question), session.public
    assert isinstance(mechanism, Thresholdout)
    assert isinstance(question.query, Surprise)
    rows = public.rows if public.rows is not None else assume.rows
    if rows is None:
        raise InvalidParameter(
            "preview",
            "the number of rows is private, and none is assumed",
            "what a holdout notices depends on it",
            "pass assume=dp.Assumptions(rows=10_000)",
        )
    counted = None if mechanism.count is None else int(rows * STEPS / mechanism.count.step)
    facts = HoldoutFacts(
        mechanism,
        question.query.tolerance,
        None if counted is not None else round(rows),
        counted,
        public.neighbors,
        question.spend,
        guarantee_of(mechanism),
    )
    return HoldoutPreview(
        question,
        tuple((count, facts.unseen(level, count)) for count in ASKED),
        facts.answer_error,
        str(price),
        session.ledger.how_many(price),
        f"{rows:g} rows",
        level,
    )
