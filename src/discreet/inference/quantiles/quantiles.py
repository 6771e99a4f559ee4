"""The results of dp.median, dp.quantile and dp.quantiles:
estimates, and intervals by inverting tests on noisy counts.

*Method*: t lies below the q-quantile of the population if clearly fewer than a share q of the rows
lie below t. The release holds a chosen estimate and noisy counts below places that a search picked;
the interval runs between the innermost places that are refused (docs/theory/quantile-intervals.md).
*Validity*: rows are independent draws; no shape is assumed, ties are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeGuard

import numpy as np
from scipy.special import ndtri

from discreet.inference.quantiles.classical_quantiles import point_of
from discreet.inference.quantiles.tree_quantiles import quantiles_from_tree
from discreet.inference.results.decode import as_kind, search_answers, wrong_kind
from discreet.inference.results.results import Quantity, Result, checked_level, checked_target
from discreet.inference.results.summary import Summary
from discreet.search.checked_ends import CheckedEnds
from discreet.search.policies import AllRows
from discreet.search.policy import Count
from discreet.search.quantile_ends import Block, QuantileEnds, pooled
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.histograms import GridCounts


def has_search(mechanism: Mechanism) -> TypeGuard[InTurn]:
    """Whether a release searched the ends of an interval."""
    return isinstance(mechanism, InTurn) and not any(
        isinstance(stage, CountSearch) and isinstance(stage.policy, AllRows)
        for stage in mechanism.stages
    )


NO_INTERVAL = "This release holds one number and no search: the interval is the declared range."
FROM_SEARCH = "The estimate is read from the counts of the search for the interval."
NOT_RELEASED = "Nothing was released (⊥): the data could not be shown to be stable."


def ends_policy(search: CountSearch) -> QuantileEnds:
    """The policy of a search for the ends of a quantile's interval."""
    policy = search.policy
    return policy.ends if isinstance(policy, CheckedEnds) else as_kind(policy, QuantileEnds)


def rows_of(search: CountSearch, found: Sequence[Count]) -> float:
    """The number of rows: public, or from the first two answers,
    which are about both ends of the grid.
    """
    policy = ends_policy(search)
    if policy.rows is not None:
        return float(policy.rows)
    return (
        max((found[1].value - found[0].value) / (policy.below + policy.above), 0.0)
        if len(found) > 1
        else 0.0
    )


def sampling_variance_of(search: CountSearch, found: Sequence[Count], target: str) -> float:
    """Of the search's weighted count at the quantile; 0 for the data set itself."""
    if target != "population":
        return 0.0
    return ends_policy(search).cluster * rows_of(search, found) * search.below * search.above


def interval_of(
    search: CountSearch,
    found: Sequence[Count],
    cells: int,
    level: float,
    *,
    target: str = "population",
) -> tuple[int, int]:
    """(first, last) cell that may hold the quantile.

    Method.   For the data set itself all of the noise counts, for the population its sampling error
              and, where the two are alike, less of the noise: the population's interval is made to
              hold the data set's.
    """
    policy = ends_policy(search)
    low, high = policy.ends(found, cells, 0.0, level)
    if target == "population":
        ends = policy.ends(found, cells, rows_of(search, found), level)
        low, high = min(low, ends[0]), max(high, ends[1])
    last = min(max(high - 1, 0), cells - 1)
    return min(low, last), last


class QuantileResult(Result):
    """One quantile, or up to three of them from one release."""

    __slots__ = ()
    title: ClassVar[str] = "Private quantile"
    about: ClassVar[str] = (
        "Noisy counts of the rows below the ends exclude all beyond them; no shape is assumed. "
        "Best at 95%: other levels use the same counts."
    )

    @property
    def released(self) -> bool:
        """False where propose-test-release answered ⊥; the estimate is then that of the search for
        the interval, and nan where there was none.
        """
        whole, integers = self.release.mechanism, self.release.integers
        if isinstance(whole, InTurn):
            first, integers = whole.stages[0], whole.split(integers)[0]
        else:
            first = whole
        return not (isinstance(first, ProposeTestRelease) and integers[0] == 0)

    @property
    def q(self) -> np.ndarray[Any, Any]:
        """The quantiles that were asked for, as shares."""
        mechanism = self.release.mechanism
        chosen = mechanism.stages[::2] if isinstance(mechanism, InTurn) else (mechanism,)
        return np.array([_share(one) for one in chosen])

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        name = "median" if self.release.description.estimator == "median" else "quantile"
        mechanism = self.release.mechanism
        if not has_search(mechanism):
            return (self._without_interval(name),)
        steps, answers = mechanism.stages, mechanism.split(self.release.integers)
        rows = [
            self._one(
                steps[place],
                answers[place],
                as_kind(steps[place + 1], CountSearch),
                answers[place + 1],
                (level, target),
            )
            for place in range(0, len(steps), 2)
        ]
        return (Quantity(name, *(np.array(column) for column in zip(*rows, strict=True))),)

    def _one(
        self,
        mechanism: Mechanism,
        chosen: tuple[int, ...],
        search: CountSearch,
        transcript: tuple[int, ...],
        asked: tuple[float, str],
    ) -> tuple[float, ...]:
        """(estimate, low, high, sampling variance, privacy variance); standard errors are
        half-widths over the normal quantile.

        A chosen estimate has light tails, and the interval is made to hold it. Noisy ones have
        heavy tails or are missing: the interval is made to hold the place that the search started
        from instead, and the estimate is projected.
        """
        query = as_kind(self.release.query, GridCounts)
        level, target = asked
        answers = search_answers(search, transcript)
        found: Sequence[Count] = answers
        start = None
        if isinstance(search.policy, CheckedEnds):
            found, start = search.policy.found(answers, query.size, chosen)
        first, last = interval_of(search, found, query.size, level, target=target)
        answered = point_of(mechanism, chosen, query)
        estimate = crossing(answers, query) if answered is None else answered
        low, high = (query.value(cell) for cell in (first, last))
        half_step = 0.0 if query.factor.encoding.is_exact else query.step / 2
        bottom, top = query.value(0), query.value(query.size - 1)
        low, high = max(low - half_step, bottom), min(high + half_step, top)
        sampling = sampling_variance_of(search, found, target)
        if isinstance(mechanism, QuantileChoice):
            low, high = min(low, estimate), max(high, estimate)
            private = 2 / float(mechanism.rate) ** 2 * _row_size(mechanism)
        else:
            private = min((answer.deviation**2 for answer in answers), default=1.0)
            if start is not None:
                low, high = min(low, query.value(start)), max(high, query.value(start))
        share = sampling / (sampling + private)
        variance = ((high - low) / (2 * float(ndtri(0.5 + level / 2)))) ** 2
        return estimate, low, high, variance * share, variance * (1 - share)

    def _without_interval(self, name: str) -> Quantity:
        query = as_kind(self.release.query, GridCounts)
        whole, integers = self.release.mechanism, self.release.integers
        if isinstance(whole, InTurn):
            value = point_of(whole.stages[0], whole.split(integers)[0], query)
        else:
            value = point_of(whole, integers, query)
        numbers = (
            math.nan if value is None else value,
            query.value(0),
            query.value(query.size - 1),
            math.nan,
            math.nan,
        )
        return Quantity(name, *(np.array([number], dtype=float) for number in numbers))

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        whole = Result.summary(self, checked_level(level), target=checked_target(target))
        if has_search(self.release.mechanism):
            return whole if self.released else whole.with_notes(NOT_RELEASED, FROM_SEARCH)
        notes = tuple(note for note in whole.notes if note != self.about) + (
            (NO_INTERVAL,) if self.released else (NOT_RELEASED, NO_INTERVAL)
        )
        return Summary(whole.title, whole.header, whole.rows, notes)


def _row_size(choice: QuantileChoice) -> int:
    """A row in the units of a search's counts over one in those of the choice's loss, squared."""
    return choice.b**2 if choice.rule == "inverse" else 1


def crossing(found: Sequence[Count], query: GridCounts) -> float:
    """Where the noisy counts of a search pass from below the quantile to above it, between the two
    nearest places that were asked; the middle of the range where none was.
    """
    blocks = [Block(0, -1.0, 1.0), *pooled(found), Block(query.size, 1.0, 1.0)]
    place = max(at for at, block in enumerate(blocks[:-1]) if block.value <= 0 or at == 0)
    low, high = blocks[place], blocks[place + 1]
    part = low.value / (low.value - high.value) if high.value > low.value else 0.5
    cell = low.place + part * (high.place - low.place)
    return float(query.value(min(max(cell, 0.0), query.size - 1.0)))


def _share(mechanism: Mechanism) -> float:
    """The quantile that a mechanism looks for, as a share."""
    if isinstance(mechanism, (QuantileChoice, SmoothNoise, ProposeTestRelease)):
        return float(Fraction(mechanism.a, mechanism.b))
    raise wrong_kind(mechanism, "QuantileChoice")


class MedianResult(QuantileResult):
    """The median."""

    __slots__ = ()
    title: ClassVar[str] = "Private median"


class QuantilesResult(QuantileResult):
    """Several quantiles; more than three come from one noisy tree of counts.

    *Validity*: intervals are for one quantile at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private quantiles"
    about: ClassVar[str] = (
        "Noisy counts exclude all beyond the ends; no shape is assumed. One quantile at a time."
    )

    @property
    def q(self) -> np.ndarray[Any, Any]:
        return np.array([float(Fraction(label)) for label in self.release.description.labels[0]])

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        if isinstance(self.release.mechanism, InTurn):
            return QuantileResult.quantities(self, level, target=target)
        found = quantiles_from_tree(self.release, self.q, level, target=target)
        variance = ((found.high - found.low) / (2 * float(ndtri(0.5 + level / 2)))) ** 2
        return (
            Quantity(
                "quantile",
                found.estimate,
                found.low,
                found.high,
                variance * (1 - found.noise_share),
                variance * found.noise_share,
            ),
        )

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        return Result.summary(self, checked_level(level), target=checked_target(target))
