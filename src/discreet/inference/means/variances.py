"""Intervals for a variance from noisy moments up to the fourth (reference.md F2).

The estimate is Σ(c−m)²/N; its sampling variance is (μ₄ − σ⁴)/N, with μ₄ from the same joint
release, so no shape is assumed. Where the estimate stands clear of the noise the sampling variance
is taken proportional to σ⁴ at each candidate value (a score interval), which repairs the skewness
of the plain one. Where the mean itself is lost in noise, its square is no longer nearly linear in
it, and the interval is that of the likelihood ratio (`profiled_interval`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.means.means import MomentsQuery, decode_sums
from discreet.inference.results.laws import (
    Array,
    Noise,
    allow_for_noisy_variance,
    half_width,
    student_factor,
)
from discreet.specs.mechanisms.mechanism import Mechanism

# noise of the mean, in half-ranges, up to which its square is linear in it for an interval
LARGEST_LINEAR = 0.05
TWO_FOR_ONE = 1.56  # the 0.95 quantile of chi-square with two degrees of freedom over that with one
MEANS, VARIANCES = 161, 401  # points of the grids of `profiled_interval`


@dataclass(frozen=True)
class VarianceStatistics:
    """Noisy N, Σc, Σc², Σc(1−c²), Σc²(1−c²) and their noise."""

    values: tuple[Array, ...]
    noises: tuple[Noise, ...]
    cluster: int = 1

    @property
    def rows(self) -> Array:
        return np.asarray(np.maximum(self.values[0], 2.0))

    @property
    def mean(self) -> Array:
        return np.asarray(np.clip(self.values[1] / self.rows, -1.0, 1.0))

    @property
    def estimate(self) -> Array:
        """Sample variance of c, corrected for the noise in the mean and for n−1; may be negative,
        or above 1.
        """
        n = self.rows
        # not clipped: the square of a clipped mean has lost the noise that the correction is for
        m = self.values[1] / n
        noise_in_mean = (self.noises[1] + self.noises[0].scaled(m)).variance / n**2
        raw = self.values[2] / n - m**2 + noise_in_mean
        return np.asarray(raw * n / (n - 1))

    @property
    def bounded(self) -> Array:
        """The estimate within [0, 1 − m²], for use inside standard errors."""
        return np.asarray(np.clip(self.estimate, 0.0, np.maximum(1 - self.mean**2, 0.0)))

    def noise(self) -> Noise:
        """Noise of the estimate, to first order: Σc² − 2mΣc + (m² − v)N over N."""
        n, m, v = self.rows, self.mean, self.bounded
        return (
            self.noises[2].scaled(1 / n)
            + self.noises[1].scaled(2 * m / n)
            + self.noises[0].scaled((v - m**2) / n)
        )

    def lost(self) -> npt.NDArray[np.bool_]:
        """Where noise in the mean, or in the number of rows, is too large for first order."""
        first, rows = self.noises[1].variance, self.noises[0].variance
        return np.asarray((first + rows) / self.rows**2 > LARGEST_LINEAR**2)

    def most(self) -> Array:
        """The largest variance of c in n−1 form: n/(n − 1), n being as small as noise in the number
        of rows allows.
        """
        rows = np.maximum(self.rows - 3 * np.sqrt(self.noises[0].variance), 2.0)
        return np.asarray(rows / (rows - 1))

    def fourth(self) -> tuple[Array, Array]:
        """(μ₄ − σ⁴, its variance from noise): the fourth central moment by expansion of (c−m)⁴."""
        n, m, v = self.rows, self.mean, self.bounded
        s1, s2, g, f = (value / n for value in self.values[1:])
        third, fourth = s1 - g, s2 - f
        central = fourth - 4 * m * third + 6 * m**2 * s2 - 4 * m**3 * s1 + m**4
        variance = (
            self.noises[4].scaled(1 / n)
            + self.noises[3].scaled(4 * m / n)
            + self.noises[2].scaled((1 + 6 * m**2 - 2 * v) / n)
            + self.noises[1].scaled((4 * m + 4 * m**3) / n)
        ).variance
        return np.asarray(central - v**2), np.asarray(variance)

    def sampling_variance(self) -> Array:
        """(μ₄ − σ⁴)/N within its bounds 0 … v(1+|m|)², and 2σ⁴/N²: all that is left where a column
        has two values, each in half of the rows, and μ₄ = σ⁴.
        """
        spread, _ = self.fourth()
        ceiling = self.bounded * (1 + np.abs(self.mean)) ** 2
        rows = self.rows / self.cluster
        return np.asarray(np.clip(spread, 0.0, ceiling) / rows + 2 * (self.bounded / rows) ** 2)


def decode_variance(
    query: MomentsQuery,
    mechanism: Mechanism,
    integers: npt.NDArray[Any],
    *,
    public_rows: int | None,
    cluster: int,
) -> VarianceStatistics:
    """Order-4 moments: the coordinates are count, c, c², c(1−c²), c²(1−c²)."""
    values, noises = decode_sums(query, mechanism, integers, public_rows)
    return VarianceStatistics(tuple(values), tuple(noises), cluster)


def variance_interval(
    statistics: VarianceStatistics, level: float, *, target: str = "population"
) -> tuple[Array, Array]:
    """The interval for the variance of c, within [0, n/(n − 1)]."""
    noise, estimate, most = statistics.noise(), statistics.estimate, statistics.most()
    half = half_width(level, 0.0 * estimate, noise)
    ends = np.clip(estimate - half, 0.0, most), np.clip(estimate + half, 0.0, most)
    q2 = half**2 / np.maximum(noise.variance, 1e-300)
    own = profiled_where(statistics, ends, q2, sampling=None)
    if target == "data":
        return own
    _, fourth_noise = statistics.fourth()
    deviation = statistics.cluster * np.sqrt(fourth_noise) / statistics.rows
    normal = (
        statistics.cluster
        * 2
        * (statistics.bounded + np.sqrt(noise.variance)) ** 2
        / statistics.rows
    )
    sampling, factor = allow_for_noisy_variance(
        level,
        *supported_by_normal(statistics.sampling_variance(), deviation, normal),
        noise.variance,
    )
    half = half_width(level, sampling, noise) * factor * student_factor(level, statistics.rows / 4)
    total = np.maximum(sampling + noise.variance, 1e-300)
    ends = score_interval(estimate, half**2 / total, sampling, np.asarray(total - sampling))
    low, high = profiled_where(statistics, ends, half**2 / total, sampling=sampling)
    lost = statistics.lost()
    # the whole holds what privacy alone leaves open
    return np.where(lost, np.minimum(low, own[0]), low), np.where(
        lost, np.maximum(high, own[1]), high
    )


def profiled_where(
    statistics: VarianceStatistics,
    ends: tuple[Array, Array],
    q2: Array,
    *,
    sampling: Array | None,
) -> tuple[Array, Array]:
    """The ends, by `profiled_interval` in the cells that are lost in noise; without `sampling` for
    the data set itself.
    """
    low, high = (np.array(end, dtype=float) for end in ends)
    most = statistics.most()
    for cell in zip(*np.nonzero(statistics.lost()), strict=True):
        low[cell], high[cell] = profiled_interval(
            [float(value[cell]) for value in statistics.values[:3]],
            [
                float(np.broadcast_to(noise.variance, low.shape)[cell])
                for noise in statistics.noises[:3]
            ],
            None if sampling is None else float(sampling[cell]),
            float(q2[cell]),
            float(most[cell]),
        )
    return low, high


def profiled_interval(
    sums: list[float], variances: list[float], sampling: float | None, q2: float, most: float
) -> tuple[float, float]:
    """The variances v that noisy N, Σc, Σc² do not exclude, whatever the mean.

    Method.    The likelihood ratio: {v : min over m, N of Q(v, m, N) ≤ min Q + q²} with
               Q = (Ñ − N)²/Var + (S̃₁ − Nm)²/Var + (S̃₂ − N(w + m²))²/Var, w = v(N − 1)/N, over
               |m| ≤ 1, N ≥ 2 and, for the data set itself, w + m² ≤ 1. Q is quadratic in N, w is
               taken at the noisy N, and m and v run through grids. A variance so large that it
               leaves the mean no room stands for two parameters: there q² is that of two.
    Validity.  The law is normal with these variances; `q2` is a quantile of its square.
               Coverage by simulation: tests/inference/means/test_variances.py.
    """
    rows, first, square = sums
    known = max(rows, 2.0)
    reach = 5 * math.sqrt(variances[0] + variances[1]) / known
    middle = min(max(first / known, -1.0), 1.0)
    m = np.linspace(max(-1.0, middle - reach), min(1.0, middle + reach), MEANS)
    v = np.linspace(0.0, most, VARIANCES)[:, None]
    spread = variances[2] + (sampling or 0.0) * known**2
    mean_square = v * (known - 1) / known + m**2
    at = known + 0.0 * mean_square
    if variances[0] > 0:
        weight = 1 / variances[0] + m**2 / variances[1] + mean_square**2 / spread
        top = rows / variances[0] + first * m / variances[1] + square * mean_square / spread
        at = np.maximum(top / weight, 2.0)
    loss = (first - at * m) ** 2 / variances[1] + (square - at * mean_square) ** 2 / spread
    if variances[0] > 0:
        loss = loss + (rows - at) ** 2 / variances[0]
    possible = (v / most + m**2 <= 1 + 1e-9) | (sampling is not None)
    profile = np.where(possible, loss, np.inf).min(axis=1)
    room = np.sqrt(np.maximum(1 - v[:, 0] / most, 0.0))
    allowed = np.where(room < reach / 5, TWO_FOR_ONE, 1.0) * q2
    kept = np.flatnonzero(profile <= profile.min() + allowed)
    ends = max(kept[0] - 1, 0), min(kept[-1] + 1, VARIANCES - 1)
    return float(v[ends[0], 0]), float(v[ends[1], 0])


def supported_by_normal(estimate: Array, deviation: Array, normal: Array) -> tuple[Array, Array]:
    """(sampling variance, its deviation) where noise of standard deviation `deviation` hides it:
    never below its mean with the normal one.

    `normal` is what normal data would have, taken as a guess that may be wrong by its own size:
    the mean weighs the two by inverse variances. Estimates above it stay as they are, since data
    may well have heavier tails; where the noise is small nothing changes.
    """
    weight = normal**2 / np.maximum(normal**2 + deviation**2, 1e-300)
    return np.asarray(np.maximum(estimate, weight * estimate + (1 - weight) * normal)), np.asarray(
        deviation * np.sqrt(weight)
    )


def score_interval(
    estimate: Array, q2: Array, sampling: Array, privacy: Array
) -> tuple[Array, Array]:
    """{v : (estimate − v)² ≤ q²·(sampling·(v/estimate)² + privacy)},
    plain where the noise is as large as the estimate.
    """
    clear = (estimate > 0) & (estimate**2 > 4 * q2 * (sampling + privacy))
    relative = np.where(clear, q2 * sampling / np.where(clear, estimate, 1.0) ** 2, 0.0)
    fixed = np.where(clear, q2 * privacy, q2 * (sampling + privacy))
    leading = 1 - relative
    radius = np.sqrt(np.maximum(estimate**2 - leading * (estimate**2 - fixed), 0.0))
    return np.clip((estimate - radius) / leading, 0.0, 1.0), np.clip(
        (estimate + radius) / leading, 0.0, 1.0
    )
