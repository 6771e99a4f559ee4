"""The results of the basic estimators: count, sum, mean, variance, proportion, histogram, table."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from discreet.inference.counts.proportion_tests import ProportionInference
from discreet.inference.counts.shares import ShareStatistics, poisson_interval, share_interval
from discreet.inference.means.means import MeanStatistics, mean_interval, total_interval
from discreet.inference.means.variances import variance_interval
from discreet.inference.results.decode import (
    decode_means,
    decode_shares,
    decode_variance,
    noise_of,
    to_float,
)
from discreet.inference.results.laws import Array, half_width
from discreet.inference.results.results import Quantity, Result
from discreet.trusted.release import Release


def _integers(result: Result, cells: int) -> Any:
    return np.array(result.release.integers, dtype=object).reshape(-1, cells)


def _grid(result: Result) -> tuple[float, float, float]:
    """(center, worth of c = 1, half a grid step) of the column, in its own units."""
    encoding = result.release.query.factor.encoding  # type: ignore[attr-defined]
    step = float(encoding.step)
    return encoding.center, encoding.high * step, 0.0 if encoding.is_exact else step / 2


def _mean_statistics(result: Result) -> MeanStatistics:
    release = result.release
    cells = release.query.cells  # type: ignore[attr-defined]
    public = release.public_rows if not release.query.design.count else None  # type: ignore[attr-defined]
    return decode_means(
        release.query,
        release.mechanism,
        _integers(result, cells),
        public_rows=public,
        cluster=release.neighbors.rows,
    )


def _clip_range(result: Result, low: Array, high: Array) -> tuple[Array, Array]:
    center, worth, half_step = _grid(result)
    bottom, top = center - worth, center + worth
    return np.clip(center + worth * low - half_step, bottom, top), np.clip(
        center + worth * high + half_step, bottom, top
    )


def _mean_quantity(
    result: Result, statistics: MeanStatistics, level: float, target: str
) -> Quantity:
    center, worth, _ = _grid(result)
    low, high = _clip_range(result, *mean_interval(statistics, level, target=target))
    rows2 = statistics.rows**2
    sampling = statistics.sampling_variance() / rows2 if target == "population" else 0.0 * rows2
    privacy = statistics.noise().variance / rows2
    return Quantity(
        "mean", center + worth * statistics.mean, low, high, sampling * worth**2, privacy * worth**2
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
        return (_mean_quantity(self, _mean_statistics(self), level, target),)


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
        statistics = _mean_statistics(self)
        center, worth, half_step = _grid(self)
        public = self.release.public_rows is not None and not self.release.query.design.count  # type: ignore[attr-defined]
        estimate, half, sampling, privacy = total_interval(
            statistics, center / worth, level, target=target, public_rows=public
        )
        half = half * worth + half_step * statistics.rows
        kept = sampling if target == "population" else 0.0 * sampling
        return (
            Quantity(
                "sum",
                estimate * worth,
                estimate * worth - half,
                estimate * worth + half,
                kept * worth**2,
                privacy * worth**2,
            ),
        )


class VarianceResult(Result):
    """A variance (n−1 form).

    *Validity*: independent rows with a fourth moment; no shape is assumed.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private variance"
    about: ClassVar[str] = "The fourth moment is released jointly, so no shape is assumed."

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        release = self.release
        public = release.public_rows if not release.query.design.count else None  # type: ignore[attr-defined]
        statistics = decode_variance(
            release.query,
            release.mechanism,
            _integers(self, release.query.cells),  # type: ignore[attr-defined]
            public_rows=public,
            cluster=release.neighbors.rows,
        )
        _, worth, half_step = _grid(self)
        rounding = (2 * half_step) ** 2 / 12  # rounding to the grid adds this much variance
        low, high = variance_interval(statistics, level, target=target)
        sampling = (
            statistics.sampling_variance() if target == "population" else 0.0 * statistics.rows
        )
        scale = worth**2
        ends = (np.maximum(low * scale - rounding, 0.0), np.maximum(high * scale - rounding, 0.0))
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
        main = self.quantities(level)[0]
        return tuple(
            float(np.sqrt(max(value[0], 0.0))) for value in (main.estimate, main.low, main.high)
        )  # type: ignore[return-value]


def _share_quantities(
    statistics: ShareStatistics, level: float, target: str
) -> tuple[Quantity, Quantity]:
    """Counts of this data set (privacy error alone) and shares (as asked)."""
    low, high = share_interval(statistics, level, target=target)
    p = np.clip(statistics.share, 0.0, 1.0)
    rows2 = statistics.rows**2
    sampling = statistics.sampling_variance(p) / rows2 if target == "population" else 0.0 * p
    half = half_width(level, 0.0 * statistics.count, statistics.noise)
    flat = np.asarray(statistics.noise.variance + 0.0 * statistics.count)
    count = Quantity(
        "count",
        statistics.count,
        np.maximum(statistics.count - half, 0.0),
        np.maximum(statistics.count + half, 0.0),
        0.0 * flat,
        flat,
    )
    return count, Quantity(
        "share",
        statistics.share,
        low,
        high,
        sampling,
        np.asarray(statistics.noise_at(p).variance) / rows2,
    )


def _share_statistics(result: Result) -> ShareStatistics:
    release = result.release
    integers = np.array(release.integers, dtype=object)
    return decode_shares(
        release.mechanism,
        integers,
        public_rows=_public_total(release),
        cluster=release.neighbors.rows,
    )


def _public_total(release: Release) -> int | None:
    """What shares are shares of: all rows where their number is public and none is filtered out,
    else the cells' sum.
    """
    return None if release.description.where else release.public_rows


class CountResult(Result):
    """A count of rows.

    *Validity*: population intervals take rows as independent (binomial, or Poisson where n is
    private).
    """

    __slots__ = ()
    title: ClassVar[str] = "Private count"
    about: ClassVar[str] = (
        "Population: the expected count in a data set of this size. Data: this data set's own "
        "count."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        release = self.release
        count = to_float(release.mechanism, np.array(release.integers, dtype=object), 1.0)
        noise = noise_of(release.mechanism, 1.0)
        privacy = np.asarray(noise.variance + 0.0 * count)
        if target == "data":
            half = half_width(level, 0.0 * count, noise)
            return (
                Quantity(
                    "count",
                    count,
                    np.maximum(count - half, 0.0),
                    np.maximum(count + half, 0.0),
                    0.0 * count,
                    privacy,
                ),
            )
        if release.public_rows is not None:
            statistics = decode_shares(
                release.mechanism,
                np.array(release.integers, dtype=object),
                public_rows=release.public_rows,
                cluster=release.neighbors.rows,
            )
            low, high = share_interval(statistics, level)
            sampling = statistics.sampling_variance(np.clip(statistics.share, 0.0, 1.0))
            return (
                Quantity(
                    "count",
                    count,
                    low * release.public_rows,
                    high * release.public_rows,
                    sampling,
                    privacy,
                ),
            )
        low, high = poisson_interval(count, noise, level, cluster=release.neighbors.rows)
        return (
            Quantity(
                "count", count, low, high, release.neighbors.rows * np.maximum(count, 0.0), privacy
            ),
        )


class ProportionResult(ProportionInference):
    """A proportion, with `test` and intervals by several methods.

    *Validity*: independent rows; exact coverage where their number is public.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private proportion"
    about: ClassVar[str] = (
        "Exact for the binomial law and the noise as released where the number of rows is "
        "public, else a score interval; the noisy count is never clamped."
    )

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [self.release.description.labels[0][:1]]

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        _, share = _share_quantities(_share_statistics(self), level, target)
        low, high = self._ends(level, target, self._interval_method(target))
        return (
            Quantity(
                "proportion",
                np.clip(share.estimate[:1], 0.0, 1.0),
                np.array([low]),
                np.array([high]),
                share.sampling_variance[:1],
                share.privacy_variance[:1],
            ),
        )


class HistogramResult(Result):
    """Counts and shares of all bins or levels. *Validity*: intervals are for one cell at a time."""

    __slots__ = ()
    title: ClassVar[str] = "Private histogram"
    about: ClassVar[str] = (
        "count: of this data set, privacy error alone. share: of the population, both errors. "
        "One cell at a time."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        return _share_quantities(_share_statistics(self), level, target)


class TableResult(Result):
    """Counts, shares and (where a column was named) means by declared cells.

    *Validity*: one cell at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private table"
    about: ClassVar[str] = (
        "count: of this data set, privacy error alone. share, mean: of the population, both "
        "errors. One cell at a time."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        if self.release.description.column is None:
            return _share_quantities(_share_statistics(self), level, target)
        statistics = _mean_statistics(self)
        cells = statistics.count.shape[-1]
        row = statistics.count.reshape(cells)
        release = self.release
        noise = statistics.count_noise
        total = _public_total(release)
        if total is not None:
            shares = ShareStatistics(
                row,
                np.full(cells, float(total)),
                noise,
                noise.scaled(0.0),
                release.neighbors.rows,
                True,
            )
        else:
            others = type(noise)(noise.variance * (cells - 1), noise.fourth * (cells - 1))
            shares = ShareStatistics(
                row, np.full(cells, row.sum()), noise, others, release.neighbors.rows, False
            )
        return (
            *_share_quantities(shares, level, target),
            _mean_quantity(self, statistics, level, target),
        )
