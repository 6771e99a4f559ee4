"""The results of dp.iqr and dp.mad: a spread by quantiles,
with an interval from noisy counts alone (reference.md B6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.inference.quantiles.quantiles import interval_of, sampling_variance_of
from discreet.inference.results.decode import as_kind, search_answers
from discreet.inference.results.results import Quantity, Result
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.histograms import GridCounts

RANK_CORRELATION = 1 / 3  # of the numbers of rows below the two quartiles: √(¼·¼ / (¾·¾))
# 1.4826: the standard deviation of normal data over their median absolute deviation
NORMAL_FACTOR = 1 / float(ndtri(0.75))


@dataclass(frozen=True, slots=True)
class QuantileCells:
    """A quantile in cells: estimate and interval, and the share of its error that is sampling."""

    estimate: float
    low: float
    high: float
    sampling_share: float


def quantile_ends(
    chosen: int,
    search: CountSearch,
    transcript: tuple[int, ...],
    cells: int,
    level: float,
    target: str,
) -> QuantileCells:
    """The estimate that was chosen and the ends that a search found about it.

    Method.   A place belongs to the interval unless its noisy count differs from what the quantile
              would give by more than chance, sampling and noise together, explains at `level`;
              sampling is left out for the data set itself.
    """
    found = search_answers(search, transcript)
    first, last = interval_of(search, found, cells, level, target=target)
    sampling = sampling_variance_of(search, found, target)
    private = min((answer.deviation**2 for answer in found), default=1.0)
    return QuantileCells(
        float(min(max(chosen, first), last)),
        float(first),
        float(last),
        sampling / (sampling + private),
    )


class ScaleResult(Result):
    """What both spreads share."""

    __slots__ = ()

    def _quantity(
        self,
        name: str,
        estimate: float,
        low: float,
        high: float,
        level: float,
        sampling_share: float,
    ) -> Quantity:
        """Standard errors are the half-width over the normal quantile; the parts are those of the
        counts that the interval rests on.
        """
        variance = ((high - low) / (2 * float(ndtri(0.5 + level / 2)))) ** 2
        return Quantity(
            name,
            *(
                np.array([value])
                for value in (
                    estimate,
                    low,
                    high,
                    variance * sampling_share,
                    variance * (1 - sampling_share),
                )
            ),
        )

    @property
    def _grid(self) -> GridCounts:
        return as_kind(self.release.query, GridCounts)


class IQRResult(ScaleResult):
    """The interquartile range of a column clamped to its declared range.

    *Method*: both quartiles have an interval of their own from noisy counts; the two are joined by
    Zou and Donner's rule (the square root of the sum of squared distances, less what the
    correlation of the two ranks, 1/3 of the sampling part, takes away). *Validity*: independent
    rows; no shape is assumed; ties make it wider.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private interquartile range"
    about: ClassVar[str] = (
        "Intervals of both quartiles from noisy counts, joined as for a difference of two "
        "correlated estimates."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        found, step = self._cells(level, target), self._grid.step
        low, high = found.low, found.high
        if target == "population":
            # sampling makes the quartiles alike, noise alone does not: the whole holds both
            own = self._cells(level, "data")
            low, high = min(low, own.low), max(high, own.high)
        numbers = found.estimate * step, low * step, high * step
        return (self._quantity("iqr", *numbers, level, found.sampling_share),)

    def _cells(self, level: float, target: str) -> QuantileCells:
        """The range between the quartiles, in cells."""
        query, mechanism = self._grid, as_kind(self.release.mechanism, InTurn)
        answers = mechanism.split(self.release.integers)
        lower, upper = (
            quantile_ends(
                answers[place][0],
                as_kind(mechanism.stages[place + 1], CountSearch),
                answers[place + 1],
                query.size,
                level,
                target,
            )
            for place in (0, 2)
        )
        correlation = RANK_CORRELATION * math.sqrt(lower.sampling_share * upper.sampling_share)
        estimate = max(upper.estimate - lower.estimate, 0.0)
        down = _joined(upper.estimate - upper.low, lower.high - lower.estimate, correlation)
        up = _joined(upper.high - upper.estimate, lower.estimate - lower.low, correlation)
        low, high = estimate - down, estimate + up
        if query.factor.encoding.is_exact:  # whole numbers: outward to the next one
            low, high = math.floor(low + 1e-9), math.ceil(high - 1e-9)
        else:  # half a step of rounding for each quartile
            low, high = low - 1.0, high + 1.0
        low, high = max(low, 0.0), min(high, query.size - 1.0)
        share = (lower.sampling_share + upper.sampling_share) / 2
        return QuantileCells(estimate, low, high, share)


def _joined(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0))


class MADResult(ScaleResult):
    """The median absolute deviation about the released centre (`centre`),
    of a column clamped to its declared range.

    *Validity*: independent rows; no shape is assumed. What is estimated is the median of
    |x − centre| for the centre that was released, near the median.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private median absolute deviation"
    about: ClassVar[str] = (
        "The median of |x − centre| about the released centre, with an interval from noisy counts."
    )
    factor: ClassVar[float] = 1.0

    @property
    def centre(self) -> float:
        """The released centre: a private median."""
        return float(self._grid.value(self._answers[0][0]))

    @property
    def _answers(self) -> list[tuple[int, ...]]:
        """The integers of the centre, of the choice and of the search."""
        return as_kind(self.release.mechanism, AboutCentre).split(self.release.integers)

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        query, mechanism = self._grid, as_kind(self.release.mechanism, AboutCentre)
        _, choice, transcript = self._answers
        search = as_kind(mechanism.distances.stages[1], CountSearch)
        found = quantile_ends(choice[0], search, transcript, query.size, level, target)
        rounding = 0.0 if query.factor.encoding.is_exact else 0.5
        low, high = max(found.low - rounding, 0.0), min(found.high + rounding, query.size - 1.0)
        unit = query.step * self.factor
        return (
            self._quantity(
                "mad", found.estimate * unit, low * unit, high * unit, level, found.sampling_share
            ),
        )


class NormalMADResult(MADResult):
    """The median absolute deviation times 1.4826: the standard deviation, if the data are normal.

    *Validity*: as for `MADResult`.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private median absolute deviation × 1.4826"
    about: ClassVar[str] = (
        "The median of |x − centre| about the released centre, scaled to the standard "
        "deviation of normal data."
    )
    factor: ClassVar[float] = NORMAL_FACTOR
