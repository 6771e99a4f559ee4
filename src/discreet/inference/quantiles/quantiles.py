"""The results of dp.median, dp.quantile and dp.quantiles:
estimates, and intervals by inverting tests on noisy counts.

*Method*: t lies below the q-quantile of the population if clearly fewer than a share q of the rows
lie below t. The release holds a chosen estimate and noisy counts below places that a search picked;
the interval runs between the innermost places that are refused (docs/theory/quantile-intervals.md).
*Validity*: rows are independent draws; no shape is assumed, ties are allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.inference.quantiles.classical_quantiles import point
from discreet.inference.quantiles.tree_quantiles import quantiles_from_tree
from discreet.inference.results.results import Quantity, Result, checked_level, checked_target
from discreet.inference.results.summary import Summary

NO_INTERVAL = (
    'This method releases one number: the interval is the declared range. method="exponential" '
    "gives one that can be narrower."
)
NOT_RELEASED = "Nothing was released (⊥): the data could not be shown to be stable."


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a search: the noisy weighted count `value` at `place`,
    and the standard deviation of its noise.
    """

    place: int
    share: int
    value: float
    deviation: float


def answers(search: Any, integers: tuple[int, ...]) -> list[Answer]:
    """The transcript (place, share, steps)* of a search."""
    found = []
    for place, share, steps in zip(integers[::3], integers[1::3], integers[2::3], strict=True):
        noise = search.noise(share)
        found.append(Answer(place, share, steps / (1 << noise.refinement), search.deviation(share)))
    return found


def rows_of(search: Any, found: list[Answer]) -> float:
    """The number of rows: public, or from the first two answers,
    which are about both ends of the grid.
    """
    policy = search.policy
    if policy.rows is not None:
        return float(policy.rows)
    return (
        max((found[1].value - found[0].value) / (policy.below + policy.above), 0.0)
        if len(found) > 1
        else 0.0
    )


def interval_of(
    search: Any, found: list[Answer], cells: int, level: float, *, target: str = "population"
) -> tuple[int, int]:
    """(first, last) cell that may hold the quantile."""
    low, high = search.policy.ends(
        found, cells, rows_of(search, found) if target == "population" else 0.0, level
    )
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
        """False where propose-test-release answered ⊥; the estimate is then nan."""
        return not (
            self.release.mechanism.kind == "propose test release" and self.release.integers[0] == 0
        )

    @property
    def q(self) -> np.ndarray[Any, Any]:
        """The quantiles that were asked for, as shares."""
        return np.array([float(Fraction(part.a, part.b)) for part in self._choices()])

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        name = "median" if self.release.description.estimator == "median" else "quantile"
        if self.release.mechanism.kind != "in turn":
            return (self._without_interval(name),)
        mechanism: Any = self.release.mechanism
        parts, pieces = mechanism.stages, mechanism.split(self.release.integers)
        rows = [
            self._one(parts[j], pieces[j], parts[j + 1], pieces[j + 1], (level, target))
            for j in range(0, len(parts), 2)
        ]
        return (Quantity(name, *(np.array(column) for column in zip(*rows, strict=True))),)

    def _one(
        self,
        choice: Any,
        chosen: tuple[int, ...],
        search: Any,
        integers: tuple[int, ...],
        asked: tuple[float, str],
    ) -> tuple[float, ...]:
        """(estimate, low, high, sampling variance, privacy variance); standard errors are
        half-widths over the normal quantile.
        """
        query: Any = self.release.query
        level, target = asked
        found = answers(search, integers)
        first, last = interval_of(search, found, query.size, level, target=target)
        estimate = float(query.value(chosen[0]))
        low, high = (query.value(cell) for cell in (first, last))
        half_step = 0.0 if query.factor.encoding.is_exact else query.step / 2
        bottom, top = query.value(0), query.value(query.size - 1)
        low, high = (
            min(max(low - half_step, bottom), estimate),
            max(min(high + half_step, top), estimate),
        )
        sampling = (
            search.policy.cluster * rows_of(search, found) * search.below * search.above
            if target == "population"
            else 0.0
        )
        share = sampling / (sampling + 2 / float(choice.rate) ** 2)
        variance = ((high - low) / (2 * float(ndtri(0.5 + level / 2)))) ** 2
        return estimate, low, high, variance * share, variance * (1 - share)

    def _without_interval(self, name: str) -> Quantity:
        query: Any = self.release.query
        value = point(self.release)
        numbers = (
            math.nan if value is None else value,
            query.value(0),
            query.value(query.size - 1),
            math.nan,
            math.nan,
        )
        return Quantity(name, *(np.array([number], dtype=float) for number in numbers))

    def _choices(self) -> list[Any]:
        mechanism: Any = self.release.mechanism
        return list(mechanism.stages[::2]) if mechanism.kind == "in turn" else [mechanism]

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        whole = Result.summary(self, checked_level(level), target=checked_target(target))
        if self.release.mechanism.kind == "in turn":
            return whole
        notes = tuple(note for note in whole.notes if note != self.about) + (
            (NO_INTERVAL,) if self.released else (NOT_RELEASED, NO_INTERVAL)
        )
        return Summary(whole.title, whole.header, whole.rows, notes)


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
        if self.release.mechanism.kind == "in turn":
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
