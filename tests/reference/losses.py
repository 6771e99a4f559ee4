"""ε of composed, sampled mechanisms by a plain distribution of the privacy loss on a grid.

The loss ln(p/q) of one step is put on the multiples of a step h, the law of a sum of losses is a
power of the Fourier transform, and δ(ε) = E(1 − e^(ε − loss))₊ (reference.md A1). Both orders of
the neighbours are composed and the larger ε counts (reference.md E8).

Mass between two points of the grid is divided between them so that its probability under p and
under q stay what they are: an upper bound whose error falls with h². `coarse` values have h = 1e-4,
which is how the stored ones were made; the others have h = 2e-5 and are closer to the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tests.reference.stored import stored

HERE = "tests/accounting/test_pld_exact.py"
SAMPLED = "tests/accounting/test_subsampling.py"
LENGTH = 2**20  # points of the grid
COARSE, FINE = 1e-4, 2e-5
MNIST = 0.004266666666666667  # 256 rows of 60 000

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Cells:
    """The probabilities under p and q that the loss is in (kh, (k+1)h], k = first, first + 1, …"""

    first: int
    p: Array
    q: Array

    def reversed(self) -> Cells:
        """The same with the laws exchanged, whose losses have the other sign."""
        return Cells(-self.first - len(self.p), self.q[::-1], self.p[::-1])


def gaussian_laws(sigma: float) -> Callable[[Array], tuple[Array, Array]]:
    """P(loss ≤ r) under N(1, σ²) and under N(0, σ²), the loss of the first (reference.md B5)."""

    def laws(r: Array) -> tuple[Array, Array]:
        x = sigma**2 * r + 0.5
        return ndtr((x - 1) / sigma), ndtr(x / sigma)

    return laws


def laplace_laws(distance: float) -> Callable[[Array], tuple[Array, Array]]:
    """P(loss ≤ r) under Lap(1) at `distance` and at 0; the loss is |x| − |x − distance|
    (reference.md B2).
    """

    def laws(r: Array) -> tuple[Array, Array]:
        x = (np.clip(r, -distance, distance) + distance) / 2
        far, near = np.exp(x - distance) / 2, 1 - np.exp(-x) / 2
        below, above = r < -distance, r >= distance
        return (
            np.where(below, 0.0, np.where(above, 1.0, far)),
            np.where(below, 0.0, np.where(above, 1.0, near)),
        )

    return laws


def sampled_cells(
    laws: Callable[[Array], tuple[Array, Array]], rate: float, step: float, largest: float
) -> Cells:
    """One step on a Poisson sample: w = (1 − γ)q + γp against q, whose loss ln(1 − γ + γe^r) grows
    with r, the loss of p against q (reference.md E2).
    """
    low = math.log1p(-rate) if rate < 1 else -largest
    first, last = math.floor(low / step) - 1, math.ceil(largest / step)
    loss = step * np.arange(first, last + 1)
    inside = np.expm1(loss) + rate
    r = np.where(inside > 0, np.log(np.maximum(inside, 1e-300) / rate), -np.inf)
    p, q = (np.diff(law) for law in laws(r))
    return Cells(first, (1 - rate) * q + rate * p, q)


def on_grid(cells: Cells, step: float, downwards: bool) -> Array:
    """The masses at the multiples of h modulo the length of the grid: divided between the ends of
    each cell, or all of it at the lower end.
    """
    k = cells.first + np.arange(len(cells.p))
    upper = np.zeros_like(cells.p)
    if not downwards:
        upper = (cells.p - cells.q * np.exp(step * k)) / -math.expm1(-step)
    grid = np.zeros(LENGTH)
    np.add.at(grid, k % LENGTH, cells.p - upper)
    np.add.at(grid, (k + 1) % LENGTH, upper)
    return grid


def composed_epsilon(
    cells: Cells, step: float, steps: int, delta: float, downwards: bool = False
) -> float:
    """The least ε with E(1 − e^(ε − loss))₊ ≤ δ for a sum of so many losses (reference.md A1)."""
    mean = steps * float(cells.p @ (cells.first + np.arange(len(cells.p))))
    power = np.fft.rfft(on_grid(cells, step, downwards)) ** steps
    start = round(mean) - LENGTH // 2  # the window of losses around their mean
    mass = np.maximum(np.roll(np.fft.irfft(power, LENGTH), -(start % LENGTH)), 0)
    loss = step * (start + np.arange(LENGTH))
    mass, loss = mass[loss > 0], loss[loss > 0]
    above = np.cumsum(mass[::-1])[::-1]
    other = np.cumsum((mass * np.exp(-loss))[::-1])[::-1]
    # δ at each point of the grid; between two of them it is above − e^ε·other
    deltas = np.append(above[1:] - np.exp(loss[:-1]) * other[1:], 0)
    place = int(np.argmax(deltas <= delta))
    return math.log((above[place] - delta) / other[place])


def larger_epsilon(cells: Cells, step: float, steps: int, delta: float) -> float:
    """ε of the larger of both orders."""
    return max(composed_epsilon(one, step, steps, delta) for one in (cells, cells.reversed()))


def gaussian_epsilon(
    sigma: float, rate: float, steps: int, delta: float, step: float = COARSE
) -> float:
    """ε of T Gaussian steps on Poisson samples (reference.md E7)."""
    cells = sampled_cells(gaussian_laws(sigma), rate, step, reach(sigma, rate))
    return larger_epsilon(cells, step, steps, delta)


def gaussian_epsilon_rounded_down(sigma: float, rate: float, steps: int, delta: float) -> float:
    """The same with every loss rounded down to the grid: no guarantee, and far too small."""
    cells = sampled_cells(gaussian_laws(sigma), rate, COARSE, reach(sigma, rate))
    return composed_epsilon(cells, COARSE, steps, delta, downwards=True)


def reach(sigma: float, rate: float) -> float:
    """The loss at ten standard deviations beyond the mean of p."""
    return math.log1p(rate * math.expm1((1 + 20 * sigma) / (2 * sigma**2)))


def laplace_epsilon(epsilon0: float, rate: float, steps: int, delta: float) -> float:
    """ε of so many Laplace steps, each ε₀-DP, on Poisson samples (reference.md B2, E1)."""
    cells = sampled_cells(laplace_laws(epsilon0), rate, COARSE, epsilon0 + COARSE)
    return larger_epsilon(cells, COARSE, steps, delta)


VALUES = [
    stored(
        0.9469993068930963,
        f"{HERE} {SAMPLED}",
        gaussian_epsilon,
        4.0,
        0.01,
        10_000,
        1e-5,
        within=1e-6,
    ),
    stored(
        0.8645889419787726,
        f"{HERE} {SAMPLED}",
        gaussian_epsilon,
        1.3,
        MNIST,
        3516,
        1e-5,
        within=1e-6,
    ),
    stored(
        5.63971643638149,
        f"{HERE} {SAMPLED}",
        gaussian_epsilon,
        0.7,
        MNIST,
        10_547,
        1e-5,
        within=1e-6,
    ),
    stored(
        2.1245225256749363,
        f"{HERE} {SAMPLED}",
        gaussian_epsilon,
        1.0,
        0.01,
        1000,
        1e-6,
        within=1e-6,
    ),
    stored(
        2.620243126133915, f"{HERE} {SAMPLED}", gaussian_epsilon, 0.8, 0.02, 100, 1e-5, within=1e-6
    ),
    stored(0.9468692918417012, HERE, gaussian_epsilon, 4.0, 0.01, 10_000, 1e-5, FINE, within=1e-5),
    stored(2.1245159955758575, HERE, gaussian_epsilon, 1.0, 0.01, 1000, 1e-6, FINE, within=1e-5),
    stored(4.377178519105701, HERE, gaussian_epsilon, 10.0, 1.0, 100, 1e-5, within=1e-6),
    stored(4.692667438643727, HERE, laplace_epsilon, 0.1, 1.0, 100, 1e-6, within=1e-6),
    stored(1.2864239338488, HERE, laplace_epsilon, 1.0, 0.01, 1000, 1e-6, within=1e-6),
    stored(
        5.111574570142356,
        "tests/accounting/test_approximations.py",
        gaussian_epsilon_rounded_down,
        0.7,
        MNIST,
        10_547,
        1e-5,
        within=1e-6,
    ),
]
