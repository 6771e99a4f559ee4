"""The results of dp.count, dp.proportion, dp.accuracy, dp.histogram and dp.table."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from discreet.inference.counts.proportion_tests import ProportionInference
from discreet.inference.counts.shares import (
    ShareStatistics,
    decode_held_shares,
    decode_shares,
    poisson_interval,
    share_interval,
)
from discreet.inference.counts.unit_counts import unit_counts
from discreet.inference.means.results import mean_quantity, mean_statistics
from discreet.inference.results.decode import all_rows, noise_of, to_float
from discreet.inference.results.laws import Array, half_width
from discreet.inference.results.results import Quantity, Result, checked_level
from discreet.specs.queries.sums import Sum
from discreet.specs.queries.unit_sums import UnitSums


def share_quantities(
    statistics: ShareStatistics, level: float, target: str
) -> tuple[Quantity, Quantity]:
    """Counts of this data set (privacy error alone) and shares (as asked)."""
    low, high = share_interval(statistics, level, target=target)
    p = np.clip(statistics.share, 0.0, 1.0)
    rows2 = statistics.rows**2
    sampling = statistics.sampling_variance(p) / rows2 if target == "population" else 0.0 * p
    half = half_width(level, 0.0 * statistics.count, statistics.noise)
    flat = np.asarray(statistics.noise.variance + 0.0 * statistics.count)
    most = statistics.total if statistics.public_total else np.inf
    count = Quantity(
        "count",
        statistics.count,
        np.clip(statistics.count - half, 0.0, most),
        np.clip(statistics.count + half, 0.0, most),
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


def share_statistics(result: Result) -> ShareStatistics:
    release = result.release
    if isinstance(release.query, UnitSums):
        return unit_counts(release).shares()
    mechanism, cluster = release.mechanism, release.neighbors.rows
    integers = np.array(release.integers, dtype=object)
    if isinstance(release.query, Sum) and release.query.absent:
        rows = release.public_rows or 0
        return decode_held_shares(mechanism, integers, rows=rows, cluster=cluster)
    total = all_rows(release)
    return decode_shares(mechanism, integers, public_rows=total, cluster=cluster)


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
        noise, cluster = noise_of(release.mechanism, 1.0), np.asarray(release.neighbors.rows)
        if isinstance(release.query, UnitSums):
            units = unit_counts(release)
            count, noise, cluster = units.count, units.noise, units.count_effect()
        privacy = np.asarray(noise.variance + 0.0 * count)
        if target == "data":
            half = half_width(level, 0.0 * count, noise)
            most = np.inf if release.public_rows is None else release.public_rows
            return (
                Quantity(
                    "count",
                    count,
                    np.clip(count - half, 0.0, most),
                    np.clip(count + half, 0.0, most),
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
        low, high = poisson_interval(count, noise, level, cluster=cluster)
        return (Quantity("count", count, low, high, cluster * np.maximum(count, 0.0), privacy),)


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
        _, share = share_quantities(self._statistics(), level, target)
        low, high = self._ends(level, target, self._interval_method(target))
        return (
            Quantity(
                "proportion",
                share.unprojected[:1],
                np.array([low]),
                np.array([high]),
                share.sampling_variance[:1],
                share.privacy_variance[:1],
            ),
        )


class AccuracyResult(ProportionResult):
    """The share of rows whose response is what a fit decides.

    Method.    A noisy count of the rows that are right; the fit is taken as given, and its decision
               for a row is exact.
    Validity.  Rows that the fit has not seen, independent draws: then the interval is about the
               accuracy on the population that they come from. On the rows of the fit itself the
               count is as private, and says how well they are remembered.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private accuracy"
    about: ClassVar[str] = (
        "The share of rows that the fit decides rightly; exact for the binomial law and the noise "
        "as released where the number of rows is public, else a score interval. It says how good "
        "the fit is on new rows only where these rows were not fitted."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        (share,) = ProportionResult.quantities(self, level, target=target)
        return (dataclasses.replace(share, name="accuracy"),)


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
        return share_quantities(share_statistics(self), level, target)


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
            return share_quantities(share_statistics(self), level, target)
        statistics = mean_statistics(self)
        cells = statistics.count.shape[-1]
        row = statistics.count.reshape(cells)
        release = self.release
        noise = statistics.count_noise
        total = all_rows(release)
        if isinstance(release.query, UnitSums):
            shares = unit_counts(release).shares()
        elif total is not None:
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
            *share_quantities(shares, level, target),
            mean_quantity(self, statistics, level, target),
        )


class ResidualsResult(HistogramResult):
    """Counts and shares of residuals by bins.

    *Validity*: at the released coefficients, taken as given; one cell at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private residuals"
    about: ClassVar[str] = (
        "Residuals (y − η)/σ at the released coefficients and scale. count: of this data set. "
        "share: of the population. One cell at a time."
    )

    def normal_shares(self) -> Array:
        """The shares that standard normal errors would have, for comparison."""
        return np.asarray(np.diff(ndtr([-np.inf, *self.release.description.edges, np.inf])))

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """Bars with intervals, the normal law beside them; saved if a path is given."""
        from discreet.plots.regression import plot_residuals

        return plot_residuals(self, checked_level(level), ax=ax, title=title, path=path)
