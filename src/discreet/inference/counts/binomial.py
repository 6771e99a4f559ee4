"""Exact inference on one proportion from one noisy count Y = X + N, X ~ Binomial(n, θ), N the noise
as it was released (reference.md M2, M3).

Tails are finite sums over the binomial law, never a normal approximation. Rows further than
9 standard deviations + 30 from the mean are left out: by Bernstein's inequality they weigh less
than 1e-17. P(Y ≥ y) increases with θ (a coupling: X does), so one-sided p-values are valid for
composite hypotheses and equal-tailed sets are intervals. See docs/theory/binomial.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.errors import InvalidParameter
from discreet.inference.counts.tulap import (
    ReleasedNoise,
    public_uniform,
    released_noise,
    released_value,
)
from discreet.inference.results.laws import Array
from discreet.inference.results.null_law import NullLaw, from_survival
from discreet.trusted.release import Release

ALTERNATIVES = ("two-sided", "less", "greater")
_SMALL = 16
# the parts of the binomial law that do not depend on θ are kept for data sets of up to so many rows
MOST_TABLE = 1 << 15


def _stirling_error(x: Array) -> Array:
    """ln x! − ln(√(2πx)·(x/e)^x), to 1e-15."""
    large = np.maximum(x, _SMALL)
    inverse = 1 / large
    square = inverse * inverse
    series = inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )
    return np.asarray(
        np.where(x < _SMALL, _small_errors()[np.minimum(x, _SMALL).astype(np.int64)], series)
    )


@functools.cache
def _small_errors() -> Array:
    exact = [
        math.lgamma(x + 1) - (x + 0.5) * math.log(x) + x - 0.5 * math.log(2 * math.pi)
        for x in range(1, _SMALL + 1)
    ]
    return np.array([0.0, *exact])


def _log_height(rows: int, x: Array) -> Array:
    """ln of the binomial probability at x when θ = x/n:
    what does not depend on θ (0 at the ends, where it is exactly so).
    """
    inner = (x > 0) & (x < rows)
    safe = np.where(inner, x, 1.0)
    rest = np.where(inner, rows - x, 1.0)
    height = (
        0.5 * np.log(rows / (2 * np.pi * safe * rest))
        + _stirling_error(np.array([float(rows)]))[0]
        - _stirling_error(safe)
        - _stirling_error(rest)
    )
    return np.asarray(np.where(inner, height, 0.0))


@functools.lru_cache(maxsize=32)
def _table(rows: int) -> tuple[Array, Array]:
    x = np.arange(rows + 1.0)
    heights = _log_height(rows, x)
    x.setflags(write=False)
    heights.setflags(write=False)
    return x, heights


def binomial_law(rows: int, theta: float) -> tuple[Array, Array]:
    """(counts, probabilities) of Binomial(rows, theta), less a set of probability below 1e-17.

    Method.    Loader's saddle-point form: no cancellation for any number of rows.
    Reference. Loader (2000).
    """
    mean = rows * theta
    if theta <= 0 or theta >= 1 or rows == 0:
        return np.array([float(rows) if theta >= 1 else 0.0]), np.ones(1)
    reach = 9 * math.sqrt(mean * (1 - theta)) + 30
    low, high = max(0, math.floor(mean - reach)), min(rows, math.ceil(mean + reach))
    if rows <= MOST_TABLE:
        everything, heights = _table(rows)
        x, height = everything[low : high + 1], heights[low : high + 1]
    else:
        x = np.arange(float(low), high + 1.0)
        height = _log_height(rows, x)
    rest, off = rows - x, x - mean
    ratio, other = np.maximum(off / mean, -1.0), np.maximum(-off / (rows * (1 - theta)), -1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = np.where(x > 0, x * np.log1p(ratio), 0.0) + np.where(
            rest > 0, rest * np.log1p(other), 0.0
        )
    return x, np.exp(height - deviance)


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """A released count: its value (never clamped),
    the public number of rows and the law of its noise.
    """

    value: float
    rows: int
    noise: ReleasedNoise

    def at_least(self, theta: float) -> float:
        """P(a release ≥ this one) at share θ: the p-value against greater shares."""
        x, weights = binomial_law(self.rows, theta)
        return min(1.0, float(weights @ self.noise.above(self.value - x)))

    def at_most(self, theta: float) -> float:
        """P(a release ≤ this one) at share θ: the p-value against smaller shares."""
        x, weights = binomial_law(self.rows, theta)
        return min(1.0, float(weights @ self.noise.below(self.value - x)))

    def p_value(self, null: float, alternative: str) -> float:
        """The exact p-value; two-sided is twice the smaller tail.

        Validity. P(p ≤ α) ≤ α at every θ of the null hypothesis, for the law that was released;
                  equality for continuous noise at θ = null.
        """
        if alternative == "greater":
            return self.at_least(null)
        if alternative == "less":
            return self.at_most(null)
        return min(1.0, 2 * min(self.at_least(null), self.at_most(null)))

    def symmetric_p_value(self, null: float) -> float:
        """P(|Y − n·null| ≥ the distance seen):
        exact size, and nearly unbiased for many rows (reference.md M3).
        """
        centre, x_weights = self.rows * null, binomial_law(self.rows, null)
        distance = abs(self.value - centre)
        x, weights = x_weights
        if distance == 0:
            return 1.0
        both = self.noise.above(centre + distance - x) + self.noise.below(centre - distance - x)
        return min(1.0, float(weights @ both))

    def null_law(
        self, null: float, alternative: str, axis: str, *, symmetric: bool = False
    ) -> NullLaw:
        """The law of a release at the share `null`, with this one in it."""
        x, weights = binomial_law(self.rows, null)
        total, spread = (
            float(weights.sum()),
            math.sqrt(self.rows * null * (1 - null) + self.noise.variance),
        )

        def survival(t: Array) -> Array:
            return np.array([float(weights @ self.noise.above(at - x)) / total for at in t])

        centre = self.rows * null
        return from_survival(
            survival,
            (centre - 8 * spread - 1, centre + 8 * spread + 1),
            self.value,
            alternative,
            axis,
            centre=centre if symmetric else None,
            step=1.0 if self.noise.kind == "geometric" else 0.0,
            source="the exact law of counts and noise",
        )

    def interval(self, level: float, *, sides: str = "both") -> tuple[float, float]:
        """Shares that neither one-sided exact test rejects:
        {θ : both tails > (1 − level)/2}, or one tail > 1 − level.

        Method.   Newton's method on the normal scale of each tail, inside a bracket; to 1e-12.
                  `sides` is "both", "low" (an interval up to 1) or "high".
        Validity. Covers with probability ≥ level for every θ, n and noise. An empty set gives the
                  end point that is nearest: 0 for counts far below 0, 1 for counts far above n.
                  Without rows the interval is [0, 1].
        """
        if self.rows == 0:
            return 0.0, 1.0
        tail = (1 - level) / 2 if sides == "both" else 1 - level
        low = 0.0 if sides == "high" else self._end(tail)
        mirrored = replace(self, value=self.rows - self.value)
        high = 1.0 if sides == "low" else 1 - mirrored._end(tail)
        return (low, high) if low <= high else ((low, low) if low == 1.0 else (high, high))

    def _end(self, tail: float) -> float:
        """The share with P(Y ≥ value) = tail;
        0 or 1 where it is never so small or never so large.
        """
        rows, noise, value = self.rows, self.noise, self.value
        if noise.above(value) >= tail:
            return 0.0
        if noise.above(value - rows) <= tail:
            return 1.0
        goal = float(ndtri(tail))
        low, high, theta = 0.0, 1.0, _first_guess(value, rows, noise.variance, goal)
        whole = None
        if rows <= MOST_TABLE:
            whole = noise.above(value - _table(rows)[0])
        for _ in range(80):
            x, weights = binomial_law(rows, theta)
            tails = (
                noise.above(value - x) if whole is None else whole[int(x[0]) : int(x[0]) + x.size]
            )
            both = weights * tails
            chance = float(both.sum())
            low, high = (theta, high) if chance < tail else (low, theta)
            slope = (float(both @ x) - rows * theta * chance) / (theta * (1 - theta))
            step = math.inf
            if 0 < chance < 1 and slope > 0:
                gap = float(ndtri(chance))
                step = (goal - gap) * math.exp(-gap * gap / 2) / math.sqrt(2 * math.pi) / slope
            if abs(step) <= 1e-13 * min(theta, 1 - theta) + 1e-15:
                break
            theta = theta + step if low < theta + step < high else (low + high) / 2
            if high - low <= 1e-15:
                break
        return theta

    def symmetric_interval(self, level: float) -> tuple[float, float]:
        """Shares that the symmetric test does not reject: from the smallest to the largest of them
        (the hull where there are gaps).

        Method.   Bisection on each side of Y/n (of the nearest end where Y is outside [0, n]) for
                  continuous noise, where the p-value moves smoothly.
        Validity. Covers with probability ≥ level (up to the search: gaps narrower than a 64th of
                  each side could be missed beyond an end).
        """
        centre = min(1.0, max(0.0, self.value / self.rows)) if self.rows else 0.5
        if self.rows == 0 or self.symmetric_p_value(centre) <= 1 - level:
            return (centre, centre) if self.rows else (0.0, 1.0)
        return self._accepted_end(centre, 0.0, 1 - level), self._accepted_end(
            centre, 1.0, 1 - level
        )

    def _accepted_end(self, centre: float, edge: float, alpha: float) -> float:
        if self.symmetric_p_value(edge) > alpha or centre == edge:
            return edge
        marks = centre + (edge - centre) * np.arange(1, 65) / 64
        inside, outside = centre, edge
        for mark in marks[-2::-1]:  # from the edge inwards: the outermost accepted mark
            if self.symmetric_p_value(float(mark)) > alpha:
                inside = float(mark)
                break
            outside = float(mark)
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (
                (middle, outside) if self.symmetric_p_value(middle) > alpha else (inside, middle)
            )
            if abs(inside - outside) <= 1e-14:
                break
        return inside


def _first_guess(value: float, rows: int, noise_variance: float, goal: float) -> float:
    """A score end: (y − nθ)² = goal²·(nθ(1−θ) + noise), the root on the side of `goal` < 0,
    inside (0, 1).
    """
    square, share = goal * goal, value / rows
    a, half_b, c = (
        rows + square,
        value + square / 2,
        rows * share * share - square * noise_variance / rows,
    )
    root = math.sqrt(max(half_b * half_b - a * c, 0.0))
    guess = (half_b - root if goal < 0 else half_b + root) / a
    return min(max(guess, 0.25 / rows), 1 - 0.25 / rows)


def normal_p_value(count: NoisyCount, null: float, alternative: str) -> float:
    """Vu and Slavković's normal approximation: Y ~ N(nθ, nθ(1−θ) + noise variance) at the null
    (reference.md M2). Approximate: its size can exceed α.
    """
    variance = count.rows * null * (1 - null) + count.noise.variance
    z = (count.value - count.rows * null) / math.sqrt(max(variance, 1e-300))
    if alternative == "two-sided":
        return float(2 * ndtr(-abs(z)))
    return float(ndtr(-z if alternative == "greater" else z))


def normal_interval(count: NoisyCount, level: float) -> tuple[float, float]:
    """Shares that the normal approximation does not reject:
    the roots of its quadratic, within [0, 1]. Approximate.
    """
    if count.rows == 0:
        return 0.0, 1.0
    goal = float(ndtri(0.5 + level / 2))
    square, rows = goal * goal, count.rows
    a, half_b, c = (
        rows + square,
        count.value + square / 2,
        count.value**2 / rows - square * count.noise.variance / rows,
    )
    root = math.sqrt(max(half_b * half_b - a * c, 0.0))
    return min(max((half_b - root) / a, 0.0), 1.0), min(max((half_b + root) / a, 0.0), 1.0)


def noisy_count(release: Release, *, uniform: bool = False) -> NoisyCount:
    """The one noisy count of a release whose number of rows is public;
    with `uniform`, a geometric count becomes a Tulap count.
    """
    assert release.public_rows is not None
    noise, value = (
        released_noise(release.mechanism),
        released_value(release.mechanism, release.integers[0]),
    )
    if uniform and noise.kind == "geometric":
        noise, value = noise.smoothed(), value + public_uniform(release)
    return NoisyCount(value, release.public_rows, noise)


def checked_alternative(alternative: object) -> str:
    if alternative not in ALTERNATIVES:
        raise InvalidParameter(
            "alternative=",
            "it is none of 'two-sided', 'less', 'greater'",
            "it decides which tail counts",
            "pass one of them: 'greater' tests whether the share exceeds the null",
        )
    return str(alternative)
