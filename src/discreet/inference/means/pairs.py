"""Covariances and correlations with their errors,
from noisy moments of pairs up to the fourth (reference.md G5, F2).

Everything is in code units, c ∈ [−1, 1]. An estimate's error is, to first order, the mean of its
influence function, a polynomial q(x, y) of degree two about the released means; its sampling
variance is E[q²]/N, read from the same joint release, so no shape is assumed. The noise of both is
read from the weight that each released feature has in q and in q².
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet.inference.means.variances import score_interval, supported_by_normal
from discreet.inference.results.laws import Array, allow_for_noisy_variance, student_factor

Powers = tuple[int, int]
Polynomial = Mapping[Powers, Any]  # coefficient of x^r·y^s

# x^r·y^s in released features: 1, x, y, Ex = 1−x², Ey, xy, T = x(1−x²), Q = x²(1−x²), U = x(1−y²),
# V = xy(1−x²), W = (1−x²)(1−y²); the features of the second column, or of the pair turned round,
# are written y…
_IN_FEATURES: dict[Powers, dict[str, int]] = {
    (0, 0): {"1": 1},
    (1, 0): {"x": 1},
    (0, 1): {"y": 1},
    (2, 0): {"1": 1, "Ex": -1},
    (0, 2): {"1": 1, "Ey": -1},
    (1, 1): {"xy": 1},
    (3, 0): {"x": 1, "Tx": -1},
    (0, 3): {"y": 1, "Ty": -1},
    (4, 0): {"1": 1, "Ex": -1, "Qx": -1},
    (0, 4): {"1": 1, "Ey": -1, "Qy": -1},
    (1, 2): {"x": 1, "Ux": -1},
    (2, 1): {"y": 1, "Uy": -1},
    (3, 1): {"xy": 1, "Vx": -1},
    (1, 3): {"xy": 1, "Vy": -1},
    (2, 2): {"W": 1, "1": 1, "Ex": -1, "Ey": -1},
}


def times(first: Polynomial, second: Polynomial) -> dict[Powers, Any]:
    """The product of two polynomials."""
    product: dict[Powers, Any] = {}
    for (r, s), a in first.items():
        for (t, u), b in second.items():
            product[r + t, s + u] = product.get((r + t, s + u), 0.0) + a * b
    return product


@dataclass(frozen=True)
class PairFeatures:
    """The noisy sums of one pair's features over all rows, and the variance of each one's noise;
    `rows` is N, at least 2.
    """

    sums: Mapping[str, Array]
    noise: Mapping[str, Any]
    cluster: int = 1

    @property
    def rows(self) -> Array:
        return np.asarray(np.maximum(self.sums["1"], 2.0))

    def means(self) -> tuple[Array, Array]:
        return np.clip(self.sums["x"] / self.rows, -1.0, 1.0), np.clip(
            self.sums["y"] / self.rows, -1.0, 1.0
        )

    def weights(self, polynomial: Polynomial) -> dict[str, Any]:
        """The weight of each feature in a polynomial."""
        found: dict[str, Any] = {}
        for powers, coefficient in polynomial.items():
            for feature, part in _IN_FEATURES[powers].items():
                found[feature] = found.get(feature, 0.0) + part * coefficient
        return found

    def mean_of(self, polynomial: Polynomial) -> Array:
        """Σ of a polynomial over the rows, divided by N."""
        return np.asarray(
            sum(weight * self.sums[feature] for feature, weight in self.weights(polynomial).items())
            / self.rows
        )

    def noise_of(self, polynomial: Polynomial) -> Array:
        """The variance that privacy noise gives `mean_of`."""
        return np.asarray(
            sum(
                weight**2 * self.noise[feature]
                for feature, weight in self.weights(polynomial).items()
            )
            / self.rows**2
        )

    def centred(self) -> tuple[Polynomial, Polynomial]:
        """x and y less their released means."""
        m_x, m_y = self.means()
        return {(1, 0): 1.0, (0, 0): -m_x}, {(0, 1): 1.0, (0, 0): -m_y}

    def second(self, which: str) -> Array:
        """Variance ("xx", "yy") or covariance ("xy"), n−1 form, corrected for the noise in the
        means; variances may be negative.
        """
        x, y = self.centred()
        first, other = {"xx": (x, x), "yy": (y, y), "xy": (x, y)}[which]
        n, (m_x, m_y) = self.rows, self.means()
        m_first, m_other = (m_y if which == "yy" else m_x), (m_x if which == "xx" else m_y)
        noise = m_first * m_other * self.noise["1"] + (self.noise["x"] if which != "xy" else 0.0)
        return np.asarray((self.mean_of(times(first, other)) + noise / n**2) * n / (n - 1))


@dataclass(frozen=True)
class Estimate:
    """An estimate with its noisy sampling variance, the noise of that,
    and the variance that privacy gives the estimate.
    """

    value: Array
    sampling: Array
    sampling_noise: Array
    privacy: Array
    normal: Array  # the sampling variance that normal data would have

    @property
    def supported(self) -> Array:
        """The sampling variance that standard errors report (see `supported_by_normal`)."""
        return supported_by_normal(self.sampling, self.sampling_noise, self.normal)[0]

    def allowed(self, level: float, privacy: Array) -> tuple[Array, Array]:
        """(sampling variance to use, widening factor), see `allow_for_noisy_variance`."""
        return allow_for_noisy_variance(
            level, *supported_by_normal(self.sampling, self.sampling_noise, self.normal), privacy
        )


def _estimate(
    pair: PairFeatures, value: Array, influence: Polynomial, ceiling: Any, normal: Any
) -> Estimate:
    square = times(influence, influence)
    sampling = (
        pair.cluster
        * np.clip(pair.mean_of(square) - pair.mean_of(influence) ** 2, 0.0, ceiling)
        / pair.rows
    )
    return Estimate(
        value,
        np.asarray(sampling),
        pair.cluster * np.sqrt(pair.noise_of(square)) / pair.rows,
        pair.noise_of(influence),
        np.asarray(pair.cluster * normal / pair.rows),
    )


def covariance_estimate(pair: PairFeatures, which: str = "xy") -> Estimate:
    """Covariance or variance of a pair; the sampling variance is E[(x−m)²(y−m′)²] − cov²,
    over N.
    """
    value = pair.second(which)
    x, y = pair.centred()
    first, other = {"xx": (x, x), "yy": (y, y), "xy": (x, y)}[which]
    influence = times(first, other)
    bounded = np.clip(value, 0.0, 1.0) if which != "xy" else np.clip(value, -1.0, 1.0)
    influence[0, 0] = influence[0, 0] - bounded
    m_x, m_y = pair.means()
    ceiling = ((1 + np.abs(m_x)) * (1 + np.abs(m_y))) ** 2
    normal = np.prod(
        [
            np.clip(pair.second(each), 0.0, 1.0) + np.sqrt(pair.noise_of(times(one, one)))
            for each, one in zip(("xx", "yy"), (x, y), strict=True)
            if each == which or which == "xy"
        ],
        axis=0,
    )
    return _estimate(
        pair, value, influence, ceiling, normal + bounded**2 if which == "xy" else 2 * normal**2
    )


def covariance_interval(
    estimate: Estimate, rows: Array, level: float, *, target: str, is_variance: bool
) -> tuple[Array, Array]:
    """The interval of a covariance, within [−1, 1], or of a variance, within [0, 1]."""
    z = float(ndtri(0.5 + level / 2))
    if target == "data":
        half = z * np.sqrt(estimate.privacy)
        return np.clip(estimate.value - half, 0.0 if is_variance else -1.0, 1.0), np.clip(
            estimate.value + half, 0.0 if is_variance else -1.0, 1.0
        )
    sampling, factor = estimate.allowed(level, estimate.privacy)
    q = z * factor * student_factor(level, rows / 4)
    if is_variance:
        return score_interval(estimate.value, q**2, sampling, estimate.privacy)
    half = q * np.sqrt(sampling + estimate.privacy)
    return np.clip(estimate.value - half, -1.0, 1.0), np.clip(estimate.value + half, -1.0, 1.0)


@dataclass(frozen=True)
class CorrelationEstimate:
    """A correlation, and its privacy variance at any candidate ρ as p₀ + p₁ρ + p₂ρ²."""

    estimate: Estimate
    privacy: tuple[Array, Array, Array]
    rows: Array

    def privacy_at(self, rho: Array) -> Array:
        p0, p1, p2 = self.privacy
        return np.asarray(p0 + p1 * rho + p2 * rho**2)


def correlation_estimate(pair: PairFeatures) -> CorrelationEstimate:
    """r = cov/√(v·v′), where a variance is taken no lower than the standard deviation of its own
    noise.

    The influence function at a candidate ρ is (x−m)(y−m′)/√(v v′) − ρ/2·((x−m)²/v + (y−m′)²/v′).
    """
    x, y = pair.centred()
    n = pair.rows
    floors = [np.sqrt(pair.noise_of(times(one, one))) + 1e-12 for one in (x, y)]
    v_x, v_y = (
        np.maximum(pair.second(which), floor)
        for which, floor in zip(("xx", "yy"), floors, strict=True)
    )
    root = np.sqrt(v_x * v_y)
    r = pair.second("xy") / root

    def influence(rho: Any) -> dict[Powers, Any]:
        both = {powers: value / root for powers, value in times(x, y).items()}
        for one, v in ((x, v_x), (y, v_y)):
            for powers, value in times(one, one).items():
                both[powers] = both.get(powers, 0.0) - rho / 2 * value / v
        return both

    at = [pair.noise_of(influence(rho)) for rho in (0.0, 1.0, -1.0)]
    quadratic = (at[0], (at[1] - at[2]) / 2, (at[1] + at[2]) / 2 - at[0])
    bounded = np.clip(r, -1.0, 1.0)
    surely = np.maximum(np.abs(bounded) - 2 * np.sqrt(pair.noise_of(influence(bounded))), 0.0)
    estimate = _estimate(pair, r, influence(bounded), n, (1 - surely**2) ** 2)
    return CorrelationEstimate(estimate, quadratic, n)


def correlation_interval(
    correlation: CorrelationEstimate, level: float, *, target: str
) -> tuple[Array, Array]:
    """The candidates ρ for which (r − ρ)² ≤ q²·(sampling part at ρ + privacy variance at ρ),
    within [−1, 1].

    Method.    The sampling part is S·g²: S the variance of Fisher's z = atanh r and
               g = (r − ρ)/(atanh r − atanh ρ), so that without noise the interval is Fisher's with
               an estimated variance. Noise is additive on the scale of r, so its part is not
               transformed. A variance lost in noise widens the interval to [−1, 1] (Fieller's idea)
               instead of breaking it.
    Validity.  Independent rows with fourth moments.
    """
    estimate = correlation.estimate
    r = np.clip(estimate.value, -1.0, 1.0)
    z = float(ndtri(0.5 + level / 2))
    if target == "data":
        q, transformed, inside = np.full(r.shape, z), np.zeros(r.shape), r
    else:
        known = correlation.privacy_at(r)
        sampling, factor = estimate.allowed(level, known)
        q = z * factor * student_factor(level, correlation.rows / 4)
        gap = np.clip(np.maximum(1 - r**2, q * np.sqrt(sampling + known)), 1e-9, 1.0)
        inside = np.sign(r) * np.sqrt(1 - gap)
        transformed = sampling / gap**2

    def covers(rho: Array) -> npt.NDArray[np.bool_]:
        variance = correlation.privacy_at(rho)
        if target == "population":
            variance = variance + transformed * _stretch(inside, rho) ** 2
        return np.asarray((estimate.value - rho) ** 2 <= q**2 * variance)

    low, high = (_end(r, end, covers) for end in (-1.0, 1.0))
    return low, high


def _stretch(r: Array, rho: Array) -> Array:
    """(r − ρ)/(atanh r − atanh ρ), which is 1 − r² where the two meet."""
    apart = np.abs(r - rho) > 1e-6
    bounded = np.clip(rho, -1 + 1e-15, 1 - 1e-15)
    slope = np.where(apart, np.arctanh(r) - np.arctanh(bounded), 1.0)
    return np.asarray(np.where(apart, (r - rho) / slope, 1 - r**2))


def _end(start: Array, outermost: float, covers: Callable[[Array], npt.NDArray[np.bool_]]) -> Array:
    inner, outer = np.array(start, dtype=float), np.full(start.shape, outermost)
    whole = covers(outer)
    for _ in range(40):
        middle = (inner + outer) / 2
        inside = covers(middle)
        inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
    return np.asarray(np.where(whole, outermost, (inner + outer) / 2))
