"""The results of dp.mean, dp.sum and dp.variance."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter
from discreet.inference.means.means import (
    MeanStatistics,
    MomentsQuery,
    decode_means,
    mean_interval,
    total_interval,
)
from discreet.inference.means.variances import decode_variance, variance_interval
from discreet.inference.results.decode import wrong_kind
from discreet.inference.results.laws import Array
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.summary import Summary
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.unit_sums import UnitSums
from discreet.trusted.release import Release


def moments_of(release: Release) -> MomentsQuery:
    """The query of a release of joint moments: of a column, or of the difference of two."""
    query = release.query
    if isinstance(query, (Moments, DifferenceMoments)) or (
        isinstance(query, UnitSums) and query.factor is not None
    ):
        return query
    raise wrong_kind(query, "Moments")


def cell_integers(result: Result, cells: int) -> npt.NDArray[Any]:
    """Released integers of shape (coordinates, cells)."""
    return np.array(result.release.integers, dtype=object).reshape(-1, cells)


class ColumnGrid(NamedTuple):
    """The range of a column in its own units: the value of c = 0, that of c = 1 less it, and half
    a grid step.
    """

    center: float
    half_range: float
    half_step: float


def column_grid(result: Result) -> ColumnGrid:
    """The range that a result's values were clipped to."""
    factor = moments_of(result.release).factor
    assert factor is not None, "moments of no column"
    encoding = factor.encoding
    step = float(encoding.step)
    return ColumnGrid(encoding.center, encoding.high * step, 0.0 if encoding.is_exact else step / 2)


def mean_statistics(result: Result) -> MeanStatistics:
    """Counts, sums and spreads by cell, as released."""
    release, query = result.release, moments_of(result.release)
    return decode_means(
        query,
        release.mechanism,
        cell_integers(result, query.cells),
        public_rows=release.public_rows,
        cluster=release.neighbors.rows,
    )


def mean_quantity(
    result: Result, statistics: MeanStatistics, level: float, target: str
) -> Quantity:
    """The mean of the clipped values with its interval, as `dp.mean` gives it."""
    grid = column_grid(result)
    low, high = within(grid, *mean_interval(statistics, level, target=target))
    rows2 = statistics.rows**2
    sampling = statistics.sampling_variance() / rows2 if target == "population" else 0.0 * rows2
    privacy = statistics.noise().variance / rows2
    return Quantity(
        "mean",
        grid.center + grid.half_range * statistics.mean,
        low,
        high,
        sampling * grid.half_range**2,
        privacy * grid.half_range**2,
    )


def within(grid: ColumnGrid, low: Array, high: Array) -> tuple[Array, Array]:
    """The ends of an interval for the mean of c in the column's units, within its range."""
    bottom, top = grid.center - grid.half_range, grid.center + grid.half_range
    return np.clip(grid.center + grid.half_range * low - grid.half_step, bottom, top), np.clip(
        grid.center + grid.half_range * high + grid.half_step, bottom, top
    )


class MeanResult(Result):
    """A mean.

    *Validity*: rows are independent draws;
    values outside the declared range count as the nearest bound.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private mean"
    about: ClassVar[str] = (
        "Normal or Laplace-and-normal error at every candidate mean; the sampling variance is "
        "estimated privately."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        return (mean_quantity(self, mean_statistics(self), level, target),)


class SumResult(Result):
    """A total.

    *Validity*: as the mean's; where the number of rows is private, rows arrive at random (Poisson).
    """

    __slots__ = ()
    title: ClassVar[str] = "Private sum"
    about: ClassVar[str] = (
        "Population: n times the mean where n is public, else rows arrive at random. Data: "
        "this data set's own total."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        statistics = mean_statistics(self)
        center, half_range, half_step = column_grid(self)
        estimate, half, sampling, privacy = total_interval(
            statistics,
            center / half_range,
            level,
            target=target,
            public_rows=self.release.public_rows,
        )
        half = half * half_range + half_step * statistics.rows
        kept = sampling if target == "population" else 0.0 * sampling
        ends = self._ends(center - half_range, center + half_range)
        return (
            Quantity(
                "sum",
                estimate * half_range,
                np.clip(estimate * half_range - half, *ends),
                np.clip(estimate * half_range + half, *ends),
                kept * half_range**2,
                privacy * half_range**2,
            ),
        )

    def _ends(self, bottom: float, top: float) -> tuple[float, float]:
        """Between which numbers a total of values from bottom to top lies: n times them where n is
        public and all rows count, else on their side of 0, and no further than n times where n is
        public.
        """
        public = self.release.public_rows
        rows = np.inf if public is None else float(public)
        if moments_of(self.release).design.count:
            bottom, top = min(bottom, 0.0), max(top, 0.0)
        return (rows * bottom if bottom else 0.0), (rows * top if top else 0.0)


# a sampling error of a variance above this share of it is that of a few rows
FEW_ROWS = 0.25
FEW = (
    "Few rows far from the rest make most of this variance: such an interval covers less than it "
    "says (0.88 … 0.92 of 0.95 where 2 % of 200 rows do)."
)


class VarianceResult(Result):
    """A variance (n−1 form), in every cell.

    *Validity*: independent rows with a fourth moment; no shape is assumed. Of several cells, one at
    a time. Where a few rows make most of it the normal approximation is poor, and the summary says
    so.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private variance"
    about: ClassVar[str] = "The fourth moment is released jointly, so no shape is assumed."

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        told = Result.summary(self, level, target=target)
        return told.with_notes(*few_rows_note(self)) if target == "population" else told

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        release = self.release
        statistics = decode_variance(
            moments_of(release),
            release.mechanism,
            cell_integers(self, moments_of(release).cells),
            public_rows=release.public_rows,
            cluster=release.neighbors.rows,
        )
        _, half_range, half_step = column_grid(self)
        rounding = (2 * half_step) ** 2 / 12  # rounding to the grid adds this much variance
        low, high = variance_interval(statistics, level, target=target)
        sampling = (
            statistics.sampling_variance() if target == "population" else 0.0 * statistics.rows
        )
        scale = half_range**2
        # values at the ends of the range are not rounded: the largest variance stays as it is
        top = np.where(high >= 1, high * scale, np.maximum(high * scale - rounding, 0.0))
        ends = (np.maximum(low * scale - rounding, 0.0), top)
        return (
            Quantity(
                "variance",
                statistics.estimate * scale - rounding,
                *ends,
                sampling * scale**2,
                statistics.noise().variance * scale**2,
            ),
        )

    def standard_deviation(self, level: float = 0.95) -> tuple[float, float, float]:
        """(estimate, low, high) of the standard deviation:
        square roots of the variance and its interval.
        """
        if self.params.size != 1:
            raise InvalidParameter(
                "standard_deviation",
                f"this result has {self.params.size} cells",
                "one number was asked for",
                "use dp.std with by=, or the square roots of params and confidence_interval()",
            )
        main = self.quantities(level)[0]
        estimate, low, high = (
            float(np.sqrt(max(value[0], 0.0))) for value in (main.estimate, main.low, main.high)
        )
        return estimate, low, high


def few_rows_note(result: Result) -> tuple[str, ...]:
    """What a summary says where few rows make most of a variance, by the released fourth moment."""
    (variance,) = VarianceResult.quantities(VarianceResult(result.release))
    size = np.maximum(np.asarray(variance.unprojected), np.finfo(float).tiny)
    few = np.sqrt(np.asarray(variance.sampling_variance)) > FEW_ROWS * size
    return (FEW,) if few.any() else ()
