"""What a selection would give, before anything is spent: how far a chosen score can be behind the
best, from public facts alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.asking.expected import imagined_release
from discreet.asking.preview import Assumptions
from discreet.asking.records import result_class
from discreet.asking.sessions import Session
from discreet.inference.counts.selection import ThresholdResult, watched_gap
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.trusted.losses.pricing import Price, guarantee_of
from discreet.trusted.release import Question

WATCHED = (1, 10, 100, 1000)  # questions to a watch


@dataclass(frozen=True, slots=True, repr=False)
class SelectionPreview(Told):
    """A forecast of a selection: free, and made without data."""

    question: Question
    gaps: tuple[tuple[str, float], ...]
    unit: str
    price: str
    how_many: int
    level: float

    @property
    def score_gap(self) -> float:
        """The bound on how far the chosen score is behind the best, or a count on the wrong side of
        the threshold; in rows, or units of the column.
        """
        return self.gaps[0][1]

    def summary(self) -> Summary:
        asked, mechanism = self.question.description, self.question.mechanism
        what = (
            "on the wrong side of the threshold by at most"
            if isinstance(mechanism, AboveThreshold)
            else "behind the best by at most"
        )
        rows = tuple((label, f"{gap:.6g}", self.unit) for label, gap in self.gaps)
        return Summary(
            f"Preview of {asked.estimator}" + (f" of {asked.column}" if asked.column else ""),
            ("", f"{what} ({100 * self.level:g}%)", "unit"),
            rows,
            (
                (
                    f"Method: {mechanism.kind}, {guarantee_of(mechanism)}. Price: {self.price}. "
                    f"About {self.how_many} like this fit in what is left."
                ),
                "It holds for every data set. Nothing was spent and no data was read.",
            ),
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """How far behind the best a choice can be; saved if a path is given."""
        from discreet.plots.previews import plot_bars

        shown = self.summary()
        return plot_bars(
            [label for label, _ in self.gaps],
            [gap for _, gap in self.gaps],
            f"{shown.header[1]}, {self.unit}",
            f"spend {self.question.spend}; for every data set",
            shown.title if title is None else title,
            ax=ax,
            path=path,
        )


def selection_preview(
    session: Session,
    question: Question | tuple[Question, Question],
    assume: Assumptions,
    level: float,
) -> SelectionPreview:
    """The forecast of a question of selection_questions, at the price of the count before it too;
    nothing needs to be assumed.
    """
    price = Price()
    for one in question if isinstance(question, tuple) else (question,):
        price += session.price(one)
    question = question[-1] if isinstance(question, tuple) else question
    release = imagined_release(session.public, question, (0,))
    kind = result_class(question.description.estimator) or ThresholdResult  # a watch has no class
    if question.description.estimator == "watch":
        gaps = tuple(
            (
                f"{count} questions" if count > 1 else "1 question",
                watched_gap(release, count, level),
            )
            for count in WATCHED
        )
    else:
        gaps = ((f"{question.query.size} candidates", kind(release).score_gap(level)),)
    return SelectionPreview(
        question,
        gaps,
        kind(release).unit,
        str(price),
        session.ledger.how_many(price),
        level,
    )
