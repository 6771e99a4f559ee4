"""Results of selection: what was chosen, and how far its score can be behind the best.

A choice has no standard error. What can be said without another look at the data is the *utility
theorem* of the mechanism that ran: with probability at least `level`, over its noise alone and
whatever the data, the chosen candidate's score is within `score_gap(level)` of the best.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet.accounting import statement
from discreet.accounting.composition import compose
from discreet.inference.results.decode import as_kind, wrong_kind
from discreet.inference.results.held import cautions, data_notes, left_out
from discreet.inference.results.results import _frame, checked_level
from discreet.inference.results.stored import PROCEDURE, fit_to_json
from discreet.inference.results.summary import SHOWN_CELLS, Summary
from discreet.inference.results.told import Told
from discreet.specs.mechanisms.selection import (
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.specs.queries.scores import CandidateScores
from discreet.trusted.release import Release

ALONE = (
    "A cell without a value adds nothing to its column's sum; dp.missing tells how many there are."
)
_LARGEST_GAP = 2.0**80


@dataclass(frozen=True, slots=True, repr=False)
class SelectionResult(Told):
    """What was chosen, by which method, under which guarantee;
    see `score_gap`, `summary`, `to_frame`, `to_json`.

    `before` is the count of the rows that hold a value, where it was released beside the choice.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            found = dp.mode(session, "region", spend=dp.GDP(0.1))
            print(found.summary())
    See also. `dp.select`, `dp.top`, `dp.above_threshold`.
    """

    release: Release
    before: tuple[Release, ...] = ()
    title: ClassVar[str] = ""

    @property
    def candidates(self) -> tuple[str, ...]:
        """The declared candidates, in order."""
        return self.release.description.labels[0]

    @property
    def method(self) -> str:
        """The mechanism that ran."""
        return self.release.mechanism.kind

    @property
    def guarantee(self) -> Any:
        """The privacy guarantee of this answer, with that of the count before it: then of the
        spends of both, each of which bounds what its step cost.
        """
        if not self.before:
            return self.release.guarantee
        return compose(*(release.spend for release in (*self.before, self.release)))

    @property
    def unit(self) -> str:
        """What scores are measured in."""
        query = self._scores
        return (
            "rows"
            if query.counts
            else f"sum of {query.columns[0]}"
            if len(query.columns) == 1
            else "sum"
        )

    def score_gap(self, level: float = 0.95) -> float:
        """A gap g such that the statement of this result holds with probability at least `level`;
        in rows, or in units of the summed column.
        """
        return score_gap_steps(self.release, checked_level(level)) * float(self._scores.unit)

    @property
    def _scores(self) -> CandidateScores:
        return as_kind(self.release.query, CandidateScores)

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The tidy rows as dictionaries."""
        raise NotImplementedError

    def statement(self, level: float = 0.95) -> str:
        """The utility theorem in words."""
        raise NotImplementedError

    def summary(self, level: float = 0.95) -> Summary:
        """A table to print; renders in a notebook too."""
        records, release = self.records(level), self.release
        header = tuple(
            f"score gap ({100 * level:g}%)" if name == "score_gap" else name for name in records[0]
        )
        rows = tuple(
            tuple(
                gap_text(value) if isinstance(value, float) else str(value)
                for value in record.values()
            )
            for record in records[:SHOWN_CELLS]
        )
        notes = [
            self.statement(level),
            (
                f"Method: {self.method}, {len(self.candidates)} declared candidates. Privacy of "
                f"{self._cost()}, neighbours {release.neighbors}."
            ),
        ]
        if release.description.where:
            notes.append(f"Only rows where {release.description.where}.")
        notes += self._of_cells()
        if len(records) > SHOWN_CELLS:
            notes.append(f"The first {SHOWN_CELLS} of {len(records)}; to_frame() has all.")
        notes += cautions(release)
        of = f" of {release.description.column}" if release.description.column else ""
        return Summary(self.title + of, header, rows, tuple(notes))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the answer and its theorem, what it cost, what was asked."""
        release = self.release
        asked = release.description
        of = f" of {asked.column}" if asked.column else ""
        where = f" where {asked.where}" if asked.where else ""
        return (
            f"{self.title}{of}: {self.statement(0.95)}",
            f"Privacy: {self.guarantee}, neighbours {release.neighbors}.",
            f"Asked: {asked.estimator}{of}{where}, {len(self.candidates)} candidates, by "
            f"{self.method}.",
        )

    def to_frame(self, level: float = 0.95, *, backend: str = "pandas") -> Any:
        """A tidy data frame (`backend` is pandas, polars or pyarrow)."""
        records = self.records(level)
        return _frame({name: [record[name] for record in records] for name in records[0]}, backend)

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        if not self.before:
            return self.release.to_json()
        return fit_to_json((*self.before, self.release), None, layout=PROCEDURE)

    def _cost(self) -> str:
        if self.before:
            return f"these 2 releases together: {self.guarantee}"
        told = statement.privacy(self.release.spend, self.release.guarantee)
        return f"this release: {told}"

    def _of_cells(self) -> list[str]:
        """What was done with cells that hold no value."""
        notes = data_notes(*self.before, self.release)
        groups = self._scores.groups
        if len({group.factor for group in groups}) == 1:
            return notes
        filled = [note for note in notes if note not in data_notes(self.release)[:1]]
        return notes if not left_out(self.release) else [ALONE, *filled]

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """What was chosen, beside how far it can be behind the best; saved if a path is given."""
        from discreet.plots.selections import plot_selection

        return plot_selection(self, checked_level(level), ax=ax, title=title, path=path)

    def _gap_text(self, level: float) -> str:
        gap = self.score_gap(level)
        return f"{gap_text(gap)} rows" if self.unit == "rows" else f"{gap_text(gap)} ({self.unit})"


def gap_text(gap: float) -> str:
    """A gap with at least four digits; a whole number of rows as it is."""
    return f"{gap:,.0f}".replace(",", " ") if gap >= 1000 or gap == int(gap) else f"{gap:.4g}"


@dataclass(frozen=True, slots=True, repr=False)
class ChoiceResult(SelectionResult):
    """One candidate.

    *Validity*: `score_gap` holds for every data set; the chosen one is not certainly the best.
    """

    title: ClassVar[str] = "Private choice"

    @property
    def chosen(self) -> str:
        """The label of the chosen candidate."""
        return self.candidates[self.release.integers[0]]

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        return [
            {
                self.release.description.by[0]: self.chosen,
                "score_gap": self.score_gap(level),
                "unit": self.unit,
            }
        ]

    def statement(self, level: float = 0.95) -> str:
        return (
            f"With probability at least {100 * level:g}% the score of {self.chosen!r} is at most "
            f"{self._gap_text(level)} below the best."
        )


@dataclass(frozen=True, slots=True, repr=False)
class TopResult(SelectionResult):
    """Candidates in the order in which they were chosen.

    *Validity*: as a choice's, for all of them at once.
    """

    title: ClassVar[str] = "Private top choices"

    @property
    def chosen(self) -> list[str]:
        """The labels in the order of choice: about, not certainly, from the best down."""
        return [self.candidates[place] for place in self.release.integers]

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        gap = self.score_gap(level)
        return [
            {
                "place": place + 1,
                self.release.description.by[0]: label,
                "score_gap": gap,
                "unit": self.unit,
            }
            for place, label in enumerate(self.chosen)
        ]

    def statement(self, level: float = 0.95) -> str:
        return (
            f"With probability at least {100 * level:g}% each of them scores at most "
            f"{self._gap_text(level)} below the best that was left when it was chosen."
        )


@dataclass(frozen=True, slots=True, repr=False)
class ThresholdResult(SelectionResult):
    """Which counts are above a public threshold, in order, until it stopped.

    *Validity*: `score_gap` is for all answers at once.
    """

    title: ClassVar[str] = "Private comparison with a threshold"

    @property
    def threshold(self) -> int:
        """The public number of rows that counts were compared with."""
        return int(as_kind(self.release.mechanism, AboveThreshold).threshold)

    @property
    def above(self) -> dict[str, bool]:
        """The answer to each question that was reached, in order."""
        return {
            label: bool(answer)
            for label, answer in zip(self.candidates, self.release.integers, strict=False)
        }

    @property
    def hits(self) -> list[str]:
        """The questions that were answered with yes."""
        return [label for label, answer in self.above.items() if answer]

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The questions that were not reached,
        because the last positive answer came before them.
        """
        return self.candidates[len(self.release.integers) :]

    def records(self, level: float = 0.95) -> list[dict[str, Any]]:
        gap = self.score_gap(level)
        answers = [
            *("above" if answer else "below" for answer in self.above.values()),
            *("not reached",) * len(self.unanswered),
        ]
        return [
            {
                self.release.description.by[0]: label,
                "answer": answer,
                "score_gap": gap,
                "unit": self.unit,
            }
            for label, answer in zip(self.candidates, answers, strict=True)
        ]

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """Each question with its answer, and what that says of its count."""
        from discreet.plots.selections import plot_threshold

        return plot_threshold(self, checked_level(level), ax=ax, title=title, path=path)

    def statement(self, level: float = 0.95) -> str:
        gap = self._gap_text(level)
        return (
            f"Threshold: {self.threshold} rows. With probability at least {100 * level:g}% every "
            f"count above is at least {self.threshold} − {gap}, and every one below less than "
            f"{self.threshold} + {gap}."
        )


def score_gap_steps(release: Release, level: float) -> float:
    """`score_gap` in steps of the scores: the least whole g whose bound on the probability of a
    greater gap is at most 1 − level.

    Method.     One choice among m candidates fails by more than g with a probability of at most
                exponential   x/(1 + x), x = (m−1)·exp(−rate·(g+1)) permute-and-flip
                1 − (1 − (1−y)^m)/(m·y), y = exp(−rate·(g+1)) noisy max
                (m−1)·P(N − N′ ≥ g+1), N and N′ two draws of its noise. The first two are attained
                where all others are g+1 behind. Several choices: the sum over the steps.
                Thresholds: by the two tails.
    Validity.   For every data set, over the mechanism's noise.
    Reference.  docs/theory/selection.md
    """
    mechanism, candidates, missed = release.mechanism, release.query.size, 1 - level
    if isinstance(mechanism, AboveThreshold):
        return threshold_gap(mechanism, candidates, missed)
    if candidates == 1:
        return 0.0
    if isinstance(mechanism, TopChoices):
        fails = _exponential_fails if mechanism.step == "exponential" else _flip_fails
        rate = float(mechanism.rate)
        sizes = [
            candidates - step
            for step in range(min(mechanism.count, candidates))
            if candidates - step > 1
        ]
        return _least(
            lambda gap: math.fsum(fails(rate, left, gap + 1) for left in sizes),
            missed,
        )
    if isinstance(mechanism, NoisyMax):
        spread = float(mechanism.spread)
        return _least(lambda gap: (candidates - 1) * _difference_tail(spread, gap + 1), missed)
    if isinstance(mechanism, (ExponentialChoice, PermuteAndFlip)):
        rate = float(mechanism.rate)
        fails = _exponential_fails if isinstance(mechanism, ExponentialChoice) else _flip_fails
        return _least(lambda gap: fails(rate, candidates, gap + 1), missed)
    raise wrong_kind(mechanism, "ExponentialChoice")


def watched_gap(release: Release, questions: int, level: float) -> float:
    """The `score_gap` of a watch that will be asked so many questions, in rows."""
    mechanism = as_kind(release.mechanism, AboveThreshold)
    return threshold_gap(mechanism, questions, 1 - checked_level(level))


def _exponential_fails(rate: float, candidates: int, gap: float) -> float:
    others = (candidates - 1) * math.exp(-rate * gap)
    return others / (1 + others)


def _flip_fails(rate: float, candidates: int, gap: float) -> float:
    """E[B/(1+B)], B ~ Bin(m−1, y): the chance that a uniform one of the heads is not the best,
    which is always among them.
    """
    heads = math.exp(-rate * gap)
    if candidates * heads < 1e-12:
        return (candidates - 1) * heads  # an upper bound: E[B/(1+B)] ≤ E[B]
    some = -math.expm1(candidates * math.log1p(-heads)) if heads < 1 else 1.0
    return 1 - some / (candidates * heads)


def _difference_tail(spread: float, gap: float) -> float:
    """P(N − N′ ≥ g) of two draws of two-sided geometric noise, g ≥ 0:
    ((1−q)/(1+q))²·q^g·((g+1)/(1−q) + q/(1−q)² + 2q²/((1−q²)(1−q))).
    """
    ratio, short = math.exp(-1 / spread), -math.expm1(-1 / spread)
    tail = (gap + 1) * short + ratio + 2 * ratio**2 / (1 + ratio)
    return min(1.0, math.exp(-gap / spread) * tail / (1 + ratio) ** 2)


def threshold_gap(mechanism: AboveThreshold, questions: int, missed: float) -> float:
    """The least of several bounds: each question's two noises together, or g₁ + g₂ with P(|noise of
    a threshold| > g₁ for some) + P(|noise of a score| > g₂ for some) ≤ missed.

    In the first the smaller spread counts as the greater: with X symmetric and unimodal,
    P(|X + k| > g) rises with |k|, and a greater spread raises |k| in law.
    """
    draws = min(mechanism.positives, questions) if mechanism.renewed else 1
    greater = float(max(mechanism.threshold_spread, mechanism.query_spread))
    sums = [_least(lambda gap: 2 * questions * _difference_tail(greater, gap + 1), missed)]
    for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
        first = _least(
            lambda gap, share=share: (  # type: ignore[misc]
                draws * _two_sided_tail(float(mechanism.threshold_spread), gap + 1) / share
            ),
            missed,
        )
        second = _least(
            lambda gap, share=share: (  # type: ignore[misc]
                questions * _two_sided_tail(float(mechanism.query_spread), gap + 1) / (1 - share)
            ),
            missed,
        )
        sums.append(first + second)
    return min(sums)


def _two_sided_tail(spread: float, gap: float) -> float:
    """P(|N| ≥ g), g ≥ 1: 2q^g/(1+q)."""
    return 2 * math.exp(-gap / spread) / (1 + math.exp(-1 / spread))


def _least(fails: Callable[[float], float], missed: float) -> float:
    """The least whole gap ≥ 0 at which a decreasing bound is at most `missed`, by bisection;
    doubles beyond 2**53 are whole too.
    """
    if fails(0.0) <= missed:
        return 0.0
    low, high = 0.0, 1.0
    while fails(high) > missed and high < _LARGEST_GAP:
        low, high = high, 2 * high
    while high - low > max(1.0, math.ulp(high)):
        middle = math.floor((low + high) / 2)
        low, high = (middle, high) if fails(middle) > missed else (low, middle)
    return high
