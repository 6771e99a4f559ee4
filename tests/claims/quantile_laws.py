"""Exact output laws of the quantile mechanisms on small grids, and the checkers that proven and
refuted mechanisms go through alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache, lru_cache

import numpy as np
from scipy import special, stats

from discreet.specs.mechanisms.quantiles import (
    ProposeTestRelease,
    QuantileChoice,
    SmoothNoise,
    order_index,
)
from discreet.specs.statistics import Histogram, histogram_of_cells
from discreet.trusted.extensions.data_dependent.order_statistics import (
    ends,
    rank_losses,
    smooth_sensitivity,
    stability_distance,
)

Values = tuple[int, ...]
BEYOND = 16  # scales of Laplace noise past the grid: the rest has probability 1e-7


@cache
def histogram(cells: int, values: Values) -> Histogram:
    return histogram_of_cells(cells, np.array(values, dtype=np.int64))


def data_sets(cells: int, rows: int) -> list[Values]:
    return list(itertools.combinations_with_replacement(range(cells), rows))


@cache
def neighbors(cells: int, values: Values, change: str) -> frozenset[Values]:
    """All data sets that one row turns `values` into."""
    fewer = {values[:i] + values[i + 1 :] for i in range(len(values))}
    more = {tuple(sorted((*values, new))) for new in range(cells)}
    replaced = {tuple(sorted((*some, new))) for some in fewer for new in range(cells)}
    return frozenset(
        {
            "replaced": replaced,
            "added or removed": fewer | more,
            "changed": replaced | fewer | more,
        }[change]
        - {values}
    )


def pairs(cells: int, rows: tuple[int, ...], change: str) -> Iterator[tuple[Values, Values]]:
    for count in rows:
        for values in data_sets(cells, count):
            for other in neighbors(cells, values, change):
                yield values, other


def with_ends(cells: int, values: Values) -> list[int]:
    return [0, *sorted(values), cells - 1]


def naive_smooth(cells: int, values: Values, a: int, b: int, beta: float) -> float:
    """reference.md B8, word for word."""
    x, n = with_ends(cells, values), len(values)
    m = order_index(a, b, n)
    at = lambda i: x[min(max(i, 0), n + 1)]
    return max(
        math.exp(-k * beta) * max(at(m + t) - at(m + t - k - 1) for t in range(k + 2))
        for k in range(n + 1)
    )


def naive_gamma(cells: int, values: Values, a: int, b: int, eta: float) -> int:
    """reference.md B9, word for word."""
    x, n = with_ends(cells, values), len(values)
    m = order_index(a, b, n)
    return min(
        (j - i - 1 for i in range(m + 1) for j in range(m, n + 2) if i < j and x[j] - x[i] > eta),
        default=n + 1,
    )


@cache
def slide_distance(cells: int, values: Values, eta: float) -> int:
    """The lectures' distance: the least number of replaced values that moves the median by more
    than eta (the reference point moves with the data).
    """
    x, n = sorted(values), len(values)
    m = order_index(1, 2, n)
    at = lambda i: 0 if i < 1 else cells - 1 if i > n else x[i - 1]
    return next(
        (k for k in range(1, n + 1) if max(at(m + k) - at(m), at(m) - at(m - k)) > eta), n + 1
    )


def cell_losses(choice: QuantileChoice, data: Histogram) -> np.ndarray:
    """The loss of every cell, from the runs that the sampler reads."""
    runs = rank_losses(choice, data)
    assert int(runs.sizes.sum()) == data.cells
    return np.repeat(runs.losses, runs.sizes)


def choice_law(choice: QuantileChoice, data: Histogram) -> np.ndarray:
    weights = np.exp(-float(choice.rate) * cell_losses(choice, data))
    return weights / weights.sum()


def geometric_at_least(epsilon: float, k: int) -> float:
    """P(G ≥ k) of two-sided geometric noise."""
    b = math.exp(-epsilon)
    return b**k / (1 + b) if k > 0 else 1 - b ** (1 - k) / (1 + b)


@lru_cache(maxsize=512)
def release_law(
    proposal: ProposeTestRelease, distance: int, quantile: int, cells: int
) -> tuple[float, np.ndarray]:
    """P(⊥), and the probabilities of all values up to BEYOND scales beyond the grid."""
    passed = geometric_at_least(1 / float(proposal.test_spread), proposal.threshold - distance)
    if proposal.eta == 0:
        return 1 - passed, passed * (np.arange(cells) == quantile)
    s, beyond = float(proposal.noise().steps), math.ceil(BEYOND * float(proposal.spread))
    cut = 1 << proposal.refinement
    k = np.abs(np.arange(-beyond * cut, (cells + beyond) * cut) - quantile * cut).astype(np.float64)
    return 1 - passed, passed * np.where(
        k == 0, -math.expm1(-0.5 / s), 0.5 * np.exp(-(k - 0.5) / s) * -math.expm1(-1 / s)
    )


def release_excess(
    proposal: ProposeTestRelease,
    epsilon: float,
    pair: tuple[tuple[int, int], tuple[int, int]],
    cells: int,
) -> float:
    """The hockey-stick divergence at ε of the laws for two (distance, quantile)."""
    (bottom, law), (other_bottom, other) = (
        release_law(proposal, distance, quantile, cells) for distance, quantile in pair
    )
    return max(bottom - math.exp(epsilon) * other_bottom, 0.0) + float(
        np.maximum(law - math.exp(epsilon) * other, 0.0).sum()
    )


@cache
def reads(cells: int, values: Values, a: int, b: int, eta: int) -> tuple[int, int]:
    """(γ, x_(m)) as the sampler reads them."""
    around = ends(histogram(cells, values), a, b)
    return stability_distance(around, eta), around.value


@cache
def smooth_read(noise: SmoothNoise, cells: int, values: Values) -> tuple[float, float]:
    """(x_(m), S) as the sampler reads them."""
    around = ends(histogram(cells, values), noise.a, noise.b)
    smooth = smooth_sensitivity(around, noise.beta)
    return float(around.value), smooth.width * math.exp(-float(noise.beta) * smooth.steps)


def smooth_pairs(
    noise: SmoothNoise, cells: int, rows: tuple[int, ...]
) -> set[tuple[tuple[float, float], tuple[float, float]]]:
    """((0, 1), (shift, stretch)) of all neighbours, in units of the first one's S:
    what their laws depend on.
    """
    found = set()
    for x, y in pairs(cells, rows, "replaced"):
        (value, scale), (other, stretched) = (
            smooth_read(noise, cells, x),
            smooth_read(noise, cells, y),
        )
        found.add(
            ((0.0, 1.0), (round(abs(other - value) / scale, 12), round(stretched / scale, 12)))
        )
    return found


_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(90)


def density(law: str, shape: float) -> Callable[[np.ndarray], np.ndarray]:
    if law == "gaussian":
        return lambda z: np.asarray(stats.norm.pdf(z))
    if law == "laplace":
        return lambda z: 0.5 * np.exp(-np.abs(z))
    if law == "student":
        return lambda z: np.asarray(stats.t.pdf(z, shape))
    if law == "cauchy":
        return lambda z: (
            shape * math.sin(math.pi / shape) / (2 * math.pi) / (1 + np.abs(z) ** shape)
        )
    scales = np.exp(-shape * _NODES)
    return lambda z: (
        (0.5 * scales * np.exp(-np.abs(np.asarray(z)[..., None]) * scales))
        @ _NODE_WEIGHTS
        / math.sqrt(2 * math.pi)
    )


def upper_tail(law: str, shape: float) -> Callable[[np.ndarray], np.ndarray]:
    """P(|Z| > z)."""
    if law == "gaussian":
        return lambda z: 2 * np.asarray(stats.norm.sf(z))
    if law == "laplace":
        return lambda z: np.exp(-np.asarray(z))
    if law == "student":
        return lambda z: 2 * np.asarray(stats.t.sf(z, shape))
    if law == "cauchy":
        return lambda z: np.asarray(
            1
            - special.betainc(
                1 / shape, 1 - 1 / shape, np.asarray(z) ** shape / (1 + np.asarray(z) ** shape)
            )
        )
    scales = np.exp(-shape * _NODES)
    return lambda z: (
        np.exp(-np.asarray(z)[..., None] * scales) @ _NODE_WEIGHTS / math.sqrt(2 * math.pi)
    )


def _points(scales: tuple[float, float], centers: tuple[float, float]) -> np.ndarray:
    """Points that resolve both laws, near and far."""
    far = np.geomspace(1e-3, 1e3, 200)
    steps = np.concatenate([-far[::-1], [0.0], far])
    return np.unique(
        np.concatenate([center + scale * steps for center in centers for scale in scales])
    )


def log_ratio(
    law: str, shape: float, first: tuple[float, float], second: tuple[float, float]
) -> float:
    """The largest |log density ratio| of two (center, scale)."""
    h = density(law, shape)
    x = _points((first[1], second[1]), (first[0], second[0]))
    one, two = (
        np.log(h((x - center) / scale)) - math.log(scale) for center, scale in (first, second)
    )
    return float(np.abs(one - two).max())


def hockey_stick(
    law: str, shape: float, epsilon: float, first: tuple[float, float], second: tuple[float, float]
) -> float:
    """∫ (p − e^ε q)₊ of two (center, scale),
    over cells between points (exact for a rounded output, so a lower bound).
    """
    tail = upper_tail(law, shape)
    x = _points((first[1], second[1]), (first[0], second[0]))

    def masses(center: float, scale: float) -> np.ndarray:
        z = (x - center) / scale
        half = 0.5 * tail(np.abs(z))
        edges, left = np.where(z >= 0, half, 1 - half), np.where(z >= 0, 1 - half, half)
        return np.concatenate(
            [
                [left[0]],
                np.where(z[:-1] >= 0, edges[:-1] - edges[1:], left[1:] - left[:-1]),
                [edges[-1]],
            ]
        )

    one, two = masses(*first), masses(*second)
    return float(np.maximum(one - math.exp(epsilon) * two, 0.0).sum())


def renyi(
    law: str, shape: float, order: float, first: tuple[float, float], second: tuple[float, float]
) -> float:
    """D_α of two (center, scale), by the trapezium rule."""
    h = density(law, shape)
    x = _points((first[1], second[1]), (first[0], second[0]))
    one, two = (
        np.log(np.maximum(h((x - center) / scale), 1e-300)) - math.log(scale)
        for center, scale in (first, second)
    )
    return float(np.log(np.trapezoid(np.exp(order * one + (1 - order) * two), x)) / (order - 1))
