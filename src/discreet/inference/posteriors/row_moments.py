"""Mean and covariance of what one row adds to (Σc, Σ(1 − c²)), c its place in the declared range,
from −1 to 1, where rows are normal or Poisson and *clamped* to that range.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, pdtr

from discreet.inference.results.laws import Array

WIDEST = 30.0  # half ranges: a wider normal law, clamped, is that of this width to 1e-3
_BINOMIALS = ((1,), (1, 1), (1, 2, 1), (1, 3, 3, 1), (1, 4, 6, 4, 1))


@dataclass(frozen=True)
class RowMoments:
    """Of (c, 1 − c²), for many parameters at once: means (2, …) and covariances (11, 12, 22)."""

    means: Array
    covariances: Array


def clamped_normal(mean: Array, deviation: Array) -> RowMoments:
    """Rows N(mean, deviation²) clamped to [−1, 1].

    Method. ∫ zᵏφ over (a, b) by parts, k ≤ 4, and the two atoms at the ends.
    """
    narrower = np.minimum(WIDEST / deviation, 1.0)
    middle, spread = np.clip(mean * narrower, -1e3, 1e3), deviation * narrower
    low, high = (-1 - middle) / spread, (1 - middle) / spread
    below, above = ndtr(low), ndtr(-high)
    density_low, density_high = _density(low), _density(high)
    partial = [ndtr(high) - below, density_low - density_high]
    for power in (2, 3, 4):
        ends = low ** (power - 1) * density_low - high ** (power - 1) * density_high
        partial.append((power - 1) * partial[power - 2] + ends)
    powers = []
    for k in range(5):
        inner = sum(
            _BINOMIALS[k][j] * middle ** (k - j) * spread**j * partial[j] for j in range(k + 1)
        )
        powers.append(inner + above + (-1) ** k * below)
    return _from_powers(powers)


def clamped_poisson(rate: Array, low: float, high: float) -> RowMoments:
    """Counts Poisson(rate) clamped to the whole numbers low … high, low ≥ 0.

    Method. E[x(x−1)…(x−k+1); low ≤ x ≤ high] = rateᵏ·P(low − k ≤ x ≤ high − k).
    """
    center, half = (low + high) / 2, (high - low) / 2
    rate = np.minimum(rate, 1e12)

    def upto(at: float) -> Array:
        return np.asarray(pdtr(at, rate) if at >= 0 else np.zeros_like(rate))

    falling = [rate**k * (upto(high - k) - upto(low - 1 - k)) for k in range(5)]
    raw = [
        falling[0],
        falling[1],
        falling[2] + falling[1],
        falling[3] + 3 * falling[2] + falling[1],
        falling[4] + 6 * falling[3] + 7 * falling[2] + falling[1],
    ]
    below, above = upto(low - 1), 1 - upto(high)
    powers = []
    for k in range(5):
        inner = sum(_BINOMIALS[k][j] * (-center) ** (k - j) * raw[j] for j in range(k + 1))
        powers.append(inner / half**k + above + (-1) ** k * below)
    return _from_powers(powers)


def _density(at: Array) -> Array:
    """φ, exactly 0 where it and its products with powers would be no number."""
    inside = np.clip(at, -38.0, 38.0)
    return np.where(np.abs(at) < 38.0, np.exp(-0.5 * inside * inside) / np.sqrt(2 * np.pi), 0.0)


def _from_powers(powers: list[Array]) -> RowMoments:
    _, first, second, third, fourth = powers
    return RowMoments(
        np.stack([first, 1 - second]),
        np.stack(
            [
                np.maximum(second - first * first, 0.0),
                -(third - first * second),
                np.maximum(fourth - second * second, 0.0),
            ]
        ),
    )
