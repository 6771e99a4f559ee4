"""What to divide a deviation by, where its sampling variance is itself seen through noise.

A deviation D = √σ²·z + e has a sampling variance σ² that nobody knows and noise e of known variance
v; of σ² one sees S = σ² + error, the error's standard deviation τ being known too. With
v + max(S, 0) for the variance, D²/variance exceeds its nominal quantile too often where τ is as
large as σ² and too seldom where σ² is small: 0.03 to 0.10 for 0.05 at τ = 2.4v. The function
v·H(S/v) here is solved for, so that it does so equally often whatever σ² is (docs/theory/tests.md).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtr, ndtri, roots_genlaguerre

from discreet.inference.results.laws import Array

QUANTILE = 3.8414588206941236  # of χ² with one degree of freedom, at 0.95
# H is at least this: S below 0 is an error of S,
# and little evidence that the noise is less than it is
LEAST = 0.5
# weight of second differences of log H: without it H wavers and costs power (measured at 50 rows,
# ε = 2: 4 points)
SMOOTH = 0.3
# asinh of S over its scale, where H is tabled
PLACES = np.linspace(-math.asinh(6.0), math.asinh(140.0), 28)
RATIOS = np.geomspace(0.03, 60.0, 20)  # τ/v for which it is solved
SMALLEST_SCALE = 0.3
ERRORS = 240  # equally likely errors of S
# excess kurtosis of e: normal, the sum of four Laplace variables, of two (a difference of two
# groups has the noise of two sums, and of two counts times m)
EXCESSES = (0.0, 0.75, 1.5)


def studentising_variance(
    spread: Array, error: Array, noise: Array, *, excess: Array | float
) -> Array:
    """v·H(S/v): the variance to divide a squared deviation by, given S = `spread`, τ = `error` and
    v = `noise`, e having this excess kurtosis (0 if normal, up to 1.5).

    Method. H is solved for on a grid of τ/v and of `EXCESSES` and interpolated; beyond the grid
            noise is negligible against τ and everything scales with τ. Far above its error S is as
            good as σ²: v + S.
    """
    noise = np.maximum(noise, 1e-300)
    ratio = error / noise
    stretch = np.maximum(ratio / RATIOS[-1], 1.0)  # beyond the grid: units of τ instead of v
    ratio = np.clip(ratio / stretch, RATIOS[0], RATIOS[-1])
    place = np.arcsinh(spread / (noise * stretch) / np.maximum(ratio, SMALLEST_SCALE))
    level = np.log(ratio / RATIOS[0]) / math.log(RATIOS[1] / RATIOS[0])
    lower = np.minimum(level.astype(int), RATIOS.size - 2)
    share = level - lower
    peak = np.clip(excess, EXCESSES[0], EXCESSES[-1]) / EXCESSES[1]
    shape = np.broadcast_shapes(place.shape, lower.shape, np.shape(peak))
    logged = np.zeros(shape)
    place, lower, share, peak = (
        np.broadcast_to(part, shape) for part in (place, lower, share, peak)
    )
    for kind in range(len(EXCESSES)):
        part = np.maximum(1 - np.abs(peak - kind), 0.0)
        for row in np.unique(lower[part > 0]):
            here = (lower == row) & (part > 0)
            below, above = (
                np.interp(place[here], PLACES, solved(int(row) + up, kind)) for up in (0, 1)
            )
            logged[here] += part[here] * ((1 - share[here]) * below + share[here] * above)
    return np.asarray(
        np.where(place >= PLACES[-1], noise + spread, noise * stretch * np.exp(logged))
    )


@lru_cache(maxsize=len(EXCESSES) * RATIOS.size)
def solved(row: int, kind: int) -> Array:
    """log H at `PLACES` for one of `RATIOS` and one of `EXCESSES`: sizes at a grid of σ² are as
    near to 0.05 as a smooth H ≥ `LEAST` can bring them.
    """
    ratio = float(RATIOS[row])
    scale = max(ratio, SMALLEST_SCALE)
    true = np.concatenate([[0.0], np.geomspace(0.03 * scale, 80 * scale, 40)])
    seen = np.arcsinh((true[:, None] + ratio * _errors(kind > 0)) / scale)
    cell = np.clip(np.searchsorted(PLACES, seen) - 1, 0, PLACES.size - 2)
    upper = np.clip((seen - PLACES[cell]) / (PLACES[1] - PLACES[0]), 0.0, 1.0)
    bend = math.sqrt(SMOOTH) * np.diff(np.eye(PLACES.size), 2, axis=0)
    root = np.sqrt(true)[:, None]

    def tails(logged: Array, factor: float = 1.0) -> Array:
        return _two_tails(
            factor
            * np.sqrt(QUANTILE * np.exp((1 - upper) * logged[cell] + upper * logged[cell + 1])),
            root,
            EXCESSES[kind],
        )

    def residual(logged: Array) -> Array:
        return np.concatenate([tails(logged).mean(axis=1) / 0.05 - 1, bend @ logged])

    def slope(logged: Array) -> Array:
        # of a half in log H, that is of 1 in the logarithm of the limit
        rate = (tails(logged, 1 + 5e-6) - tails(logged, 1 - 5e-6)) / (2e-5 * 0.05 * ERRORS)
        rows = np.arange(true.size)[:, None]
        found = np.zeros((true.size, PLACES.size))
        np.add.at(found, (rows, cell), rate * (1 - upper))
        np.add.at(found, (rows, cell + 1), rate * upper)
        return np.concatenate([found, bend])

    start = np.log(np.maximum(1 + np.maximum(scale * np.sinh(PLACES), 0.0), LEAST * 1.001))
    found = np.asarray(
        least_squares(residual, start, jac=slope, bounds=(math.log(LEAST), 30.0), max_nfev=60).x
    )
    found.flags.writeable = False
    return found


def _errors(heavy: bool) -> Array:
    """Equally likely errors of S with variance 1: normal, or the sum of two Laplace variables
    (a spread has the noise of a count and of a sum of squares).
    """
    tail = (np.arange(ERRORS // 2) + 0.5) / ERRORS
    if heavy:
        x = np.linspace(0.0, 10.0, 20_001)  # two of scale ½: P(> x) = (2 + 2x)·e^(−2x)/4
        size = np.interp(tail, ((2 + 2 * x) * np.exp(-2 * x) / 4)[::-1], x[::-1])
    else:
        size = -ndtri(tail)
    return np.concatenate([-size, size[::-1]])


def _two_tails(limit: Array, deviation: Array, excess: float) -> Array:
    """P(|deviation·z + e| > limit), e of variance 1: normal, or the sum of 3/excess Laplace
    variables, a normal one whose variance has a gamma law; tails to 0.0003 of themselves.
    """
    if not excess:
        return np.asarray(2 * ndtr(-limit / np.sqrt(1 + deviation**2)))
    nodes, weights = roots_genlaguerre(12, 3 / excess - 1)
    return np.asarray(
        sum(
            2 * weight * ndtr(-limit / np.sqrt(variance + deviation**2))
            for variance, weight in zip(nodes * excess / 3, weights / weights.sum(), strict=True)
        )
    )
