"""Intervals for means and totals from noisy counts, sums and spreads (reference.md F1–F4).

Everything is in code units: c ∈ [−1, 1], `count` = N, `first` = Σc, `even` = Σ(1−c²), each with its
own noise. For a candidate mean m, T(m) = first − m·count has mean 0 and variance
Σ(c−m)² + Var(noise), and the interval is the set of m for which T(m) is not too large
(Fieller's idea). So a noisy or tiny count widens the interval, to the whole declared range if need
be, instead of breaking it. Σ(c−m)² is read from the same noisy numbers; the part of its error that
T(m) predicts is taken out first, which leaves the two independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.results.decode import at_most, noise_of, to_float
from discreet.inference.results.laws import (
    Array,
    Noise,
    allow_for_noisy_variance,
    half_width,
    score_half_widths,
    student_factor,
)
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.unit_sums import UnitShares, UnitSums

MomentsQuery = Moments | DifferenceMoments | UnitSums
FEW_CELLS = 16


@dataclass(frozen=True)
class UnitGaps:
    """What makes squares of units' sums out of sums, for units of at most k rows: Σ S(k − N) and
    Σ N(k − N) over units with N rows and Σc = S, and their noise.
    """

    rows: int
    first: Array
    count: Array
    first_noise: Noise
    count_noise: Noise


@dataclass(frozen=True)
class MeanStatistics:
    """Noisy count, sum and spread of c by cell; `cluster` rows of one unit may be perfectly alike;
    `total` is the number of rows in all cells where it is public.

    With `units` the spread is that between units: `even` is Σ(N² − S²) over units with N rows and
    Σc = S, and what is said of Σ(c−m)² below is said of Σ(S − mN)².
    """

    count: Array
    first: Array
    even: Array
    count_noise: Noise
    first_noise: Noise
    even_noise: Noise
    cluster: int = 1
    total: int | None = None
    units: UnitGaps | None = None

    @property
    def mean(self) -> Array:
        """Σc/N, unclamped; the middle of the range where the noisy count is not positive."""
        positive = self.count > 0
        return np.asarray(np.where(positive, self.first / np.where(positive, self.count, 1.0), 0.0))

    @property
    def bounded_mean(self) -> Array:
        return np.asarray(np.clip(self.mean, -1.0, 1.0))

    @property
    def rows(self) -> Array:
        """The count, at least 1, where a variance needs one."""
        return np.asarray(np.maximum(self.count, 1.0))

    @property
    def freedom(self) -> Array:
        """Degrees of freedom of the spread: rows less 1, or as many units as of equal size would
        have this Σ N and Σ N², less 1.
        """
        if self.units is None:
            return self.rows - 1
        pairs, _ = self.products(self.count, self.units)
        fewest = self.rows / self.units.rows
        return np.asarray(np.clip(self.rows**2 / np.maximum(pairs, 1.0), fewest, self.rows) - 1)

    def products(self, rows: Array, units: UnitGaps) -> tuple[Array, Array]:
        """Σ N² and Σ N·S over units, with these rows in all."""
        return np.asarray(units.rows * rows - units.count), np.asarray(
            units.rows * self.first - units.first
        )

    def noise(self) -> Noise:
        """Noise of T(m) at the estimate."""
        return self.first_noise + self.count_noise.scaled(self.bounded_mean)

    def squares(self) -> Array:
        """Σ(c−m)² at the estimate, corrected for the noise in m and for n−1; may be negative."""
        m = self.bounded_mean
        count, first = self.count, self.first
        correction = self.noise().variance / self.rows
        if self.units is not None:
            count, first = self.products(self.count, self.units)
            # m is read off the same noisy sums: twice what one of k rows has, less its square
            ratio = np.clip(count / self.rows, 1.0, self.units.rows)
            correction = correction * (2 * self.units.rows - ratio)
        raw = (1 + m**2) * count - self.even - 2 * m * first
        drawn = self.rows if self.units is None else self.freedom + 1
        return np.asarray((raw + correction) * drawn / np.maximum(self.freedom, 1.0))

    def squares_noise_variance(self) -> Array:
        """Variance of `squares` that the privacy noise adds."""
        m = self.bounded_mean
        v_count, v_first = self.product_noise()
        return np.asarray((1 + m**2) ** 2 * v_count + self.even_noise.variance + 4 * m**2 * v_first)

    def product_noise(self) -> tuple[Array, Array]:
        """Variances of the noise in Σ N² and Σ N·S over units; in count and sum over rows."""
        v_count, v_first = self.count_noise.variance, self.first_noise.variance
        if self.units is None:
            return v_count, v_first
        squared = self.units.rows**2
        return np.asarray(squared * v_count + self.units.count_noise.variance), np.asarray(
            squared * v_first + self.units.first_noise.variance
        )

    def sampling_variance(self) -> Array:
        """Sampling variance of T(m), never negative;
        rows of one unit are allowed to be perfectly correlated.
        """
        return np.asarray(self.cluster * np.maximum(self.squares(), 0.0))

    def squares_about(self, m: Array, rows: Array) -> tuple[Array, Array, Array]:
        """(Σ(c−m)² less the part of its error that T(m) predicts, the variance of its noise before,
        and what that part takes off it); Σ(c−m)² counts these rows. It may be negative.

        Method. The noise in T(m) and in Σ(c−m)² has the covariance s, and Var T(m) = V solves
                V = noise + Σ(c−m)² − s·T(m)/V.
        """
        v_count, v_first, deviation = (
            self.count_noise.variance,
            self.first_noise.variance,
            self.first - m * self.count,
        )
        shared = -2 * m * v_first - m * (1 + m**2) * v_count
        noise = v_first + m**2 * v_count
        first, (w_count, w_first) = self.first, self.product_noise()
        if self.units is not None:
            shared = self.units.rows * shared
            rows, first = self.products(rows, self.units)
        base = noise + (1 + m**2) * rows - self.even - 2 * m * first
        # V
        spread = np.maximum(
            (base + np.sqrt(np.maximum(base**2 - 4 * shared * deviation, 0.0))) / 2, noise + 1e-300
        )
        error = (1 + m**2) ** 2 * w_count + self.even_noise.variance + 4 * m**2 * w_first
        return (
            np.asarray(base - noise - shared * deviation / spread),
            np.asarray(error),
            np.asarray(shared**2 / spread),
        )

    def covers(self, m: Array, level: float, target: str, student: Array) -> npt.NDArray[np.bool_]:
        """Whether the interval contains the candidate means m, of shape (candidates, …);
        `student` widens it for the estimated variance.
        """
        deviation = self.first - m * self.count
        noises = (self.first_noise, self.count_noise)
        if target == "data":
            return np.asarray(
                np.abs(deviation) <= score_half_widths(level, noises, m, sampling=None)
            )
        squares, error, predicted = self.squares_about(m, self.count)
        seen = (
            self.cluster * squares,
            self.cluster * np.sqrt(np.maximum(error - predicted, 0.0)),
        )
        return np.asarray(
            np.abs(deviation) <= score_half_widths(level, noises, m, sampling=seen) * student
        )


def decode_sums(
    query: MomentsQuery | UnitShares,
    mechanism: Mechanism,
    integers: npt.NDArray[Any],
    public_rows: int | None,
) -> tuple[list[Array], list[Noise]]:
    """The sums of the features of c, count first, and their noise; a public count has none.

    Of a public number of rows no more than all are counted: a noisy count beyond it is that number.
    """
    units = query.unit_values()
    values = [to_float(mechanism, row, unit) for row, unit in zip(integers, units, strict=True)]
    noises = [noise_of(mechanism, unit) for unit in units]
    if public_rows is not None and not query.design.count:
        values.insert(0, np.full(values[0].shape, float(public_rows)))
        noises.insert(0, Noise(0.0))
    elif public_rows is not None and query.cells == 1:
        values[0], noises[0] = at_most(values[0], noises[0], public_rows)
    return values, noises


def decode_means(
    query: MomentsQuery | UnitShares,
    mechanism: Mechanism,
    integers: npt.NDArray[Any],
    *,
    public_rows: int | None,
    cluster: int,
) -> MeanStatistics:
    """Order-2 moments; `integers` has shape (coordinates, cells)."""
    values, noises = decode_sums(query, mechanism, integers, public_rows)
    units = None
    if isinstance(query, (UnitSums, UnitShares)):
        units, cluster = UnitGaps(query.rows, values[3], values[4], noises[3], noises[4]), 1
    return MeanStatistics(
        values[0], values[1], values[2], noises[0], noises[1], noises[2], cluster, units=units
    )


def mean_interval(
    statistics: MeanStatistics, level: float, *, target: str = "population"
) -> tuple[Array, Array]:
    """The interval for the mean of c, within [−1, 1]; `target="data"` leaves sampling error out.

    Method. Both ends between the estimate and the end of the range, halved again and again; for a
            few cells, where calls cost more than numbers, cut in sixteen.
    """
    student = student_factor(level, statistics.freedom)
    start = statistics.bounded_mean
    limits = np.stack([np.full_like(start, -1.0), np.full_like(start, 1.0)])
    inner, outer = np.stack([start, start]), limits
    whole = statistics.covers(outer, level, target, student) | (statistics.count <= 0)
    bits = 4 if start.size <= FEW_CELLS else 1
    parts = np.linspace(0.0, 1.0, (1 << bits) + 1).reshape(-1, *(1 for _ in limits.shape))
    for _ in range(48 // bits):
        steps = inner + (outer - inner) * parts
        inside = statistics.covers(steps[1:-1], level, target, student)
        last = np.cumprod(inside, axis=0).sum(axis=0)  # the last one from the estimate on
        inner, outer = (
            np.take_along_axis(steps, (last + further)[None], axis=0)[0] for further in (0, 1)
        )
    low, high = np.where(whole, limits, (inner + outer) / 2)
    return low, high


def _squares_of_all(
    statistics: MeanStatistics, center: float, estimate: Array, privacy: Array, rows: int | None
) -> tuple[Array, Array]:
    """(Σ z², less (Σ z)²/n where n is public, and the variance of its noise)."""
    count, first = statistics.count, statistics.first
    v_count, v_first = statistics.product_noise()
    if statistics.units is not None:
        count, first = statistics.products(count, statistics.units)
    squares = (1 + center**2) * count + 2 * center * first - statistics.even
    mean = np.zeros_like(estimate)  # of z
    if rows is not None:
        mean = estimate / max(rows, 1)
        squares = (squares - estimate * mean + privacy / max(rows, 1)) * rows / max(rows - 1, 1)
    uncertain = (
        (1 + center**2 - 2 * mean * center) ** 2 * v_count
        + 4 * (center - mean) ** 2 * v_first
        + statistics.even_noise.variance
    )
    return np.asarray(squares), np.asarray(uncertain)


def total_interval(
    statistics: MeanStatistics,
    center: float,
    level: float,
    *,
    target: str,
    public_rows: int | None,
) -> tuple[Array, Array, Array, Array]:
    """(estimate, half-width, sampling variance, privacy variance) of Σ z, z = center + c for a row
    that counts and 0 for all others.

    With a public number of rows n the target is n times the population mean of z, and
    Σ z² − (Σ z)²/n the sampling variance; otherwise rows arrive at random (Poisson), and Σ z² is.
    """
    estimate = center * statistics.count + statistics.first
    noise = statistics.first_noise + statistics.count_noise.scaled(center)
    privacy = np.asarray(noise.variance + 0.0 * estimate)
    if public_rows is not None and not np.any(statistics.count_noise.variance):
        squares, uncertain = statistics.squares(), statistics.squares_noise_variance()
    else:
        squares, uncertain = _squares_of_all(statistics, center, estimate, privacy, public_rows)
    if target == "data":
        return (
            estimate,
            half_width(level, 0.0 * privacy, noise),
            np.maximum(statistics.cluster * squares, 0.0),
            privacy,
        )
    sampling, factor = allow_for_noisy_variance(
        level, statistics.cluster * squares, statistics.cluster * np.sqrt(uncertain), privacy
    )
    half = half_width(level, sampling, noise) * factor * student_factor(level, statistics.freedom)
    return estimate, half, np.maximum(statistics.cluster * squares, 0.0), privacy
