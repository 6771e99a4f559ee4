"""Intervals for a variance from noisy moments up to the fourth (reference.md F2).

The estimate is Σ(c−m)²/N; its sampling variance is (μ₄ − σ⁴)/N, with μ₄ from the same joint
release, so no shape is assumed. Where the estimate stands clear of the noise the sampling variance
is taken proportional to σ⁴ at each candidate value (a score interval), which repairs the skewness
of the plain one.
"""

from __future__ import annotations

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
        """Sample variance of c, corrected for the noise in the mean and for n−1;
        may be negative.
        """
        n, m = self.rows, self.mean
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
        """(μ₄ − σ⁴)/N within its bounds 0 … v(1+|m|)²."""
        spread, _ = self.fourth()
        ceiling = self.bounded * (1 + np.abs(self.mean)) ** 2
        return np.asarray(self.cluster * np.clip(spread, 0.0, ceiling) / self.rows)


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
    """The interval for the variance of c, within [0, 1]."""
    noise, estimate = statistics.noise(), statistics.estimate
    if target == "data":
        half = half_width(level, 0.0 * estimate, noise)
        return np.clip(estimate - half, 0.0, 1.0), np.clip(estimate + half, 0.0, 1.0)
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
    return score_interval(estimate, half**2 / total, sampling, np.asarray(total - sampling))


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
