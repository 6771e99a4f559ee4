"""Bands that hold everywhere at once, calibrated by simulating the known law of the noise together
with the sampling error.

Simulations repeat exactly: their numbers are a fixed function of a counter (SplitMix64), so a
result never changes between two readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from discreet.inference.counts.shares import ShareStatistics
from discreet.inference.quantiles.cumulative import Cumulative
from discreet.inference.quantiles.trees import least_squares, prefix_counts
from discreet.inference.results.laws import Array, Noise, half_width, tail_and_density
from discreet.inference.simulation.streams import uniforms

# finer trees are calibrated on their upper levels and widened by monotony below
MOST_BOUNDARIES = 1 << 12
MOST_NUMBERS, CHUNK = 1 << 21, 1 << 17
FEWEST, MOST = 800, 6000
LEAST_EXCEEDING = 5  # repetitions beyond the limit; with fewer a proven bound is used instead


def _noise(uniform: Array, noise: Noise) -> Array:
    """Noise of the law that `noise` describes: normal, or Laplace for pure-DP noise."""
    if not np.any(np.asarray(noise.fourth) > 0):
        return np.asarray(ndtri(uniform) * np.sqrt(noise.variance))
    folded = np.log(2 * np.minimum(uniform, 1 - uniform)) * np.sqrt(noise.variance / 2)
    return np.asarray(np.where(uniform < 0.5, folded, -folded))


@dataclass(frozen=True)
class _Plan:
    """How often to repeat a simulation of so many numbers,
    and which of the ordered results is the limit.

    The limit is one standard error to the safe side of the `level` quantile.
    """

    numbers: int
    level: float

    @property
    def repetitions(self) -> int:
        return int(np.clip(MOST_NUMBERS // self.numbers, FEWEST, MOST))

    @property
    def place(self) -> int:
        size = self.repetitions
        return int(np.ceil(size * self.level + np.sqrt(size * self.level * (1 - self.level))))

    @property
    def resolves(self) -> bool:
        return self.repetitions - self.place >= LEAST_EXCEEDING

    def chunks(self) -> Iterator[Array]:
        """Uniform numbers of shape (some repetitions, numbers)."""
        rows = max(1, CHUNK // self.numbers)
        for start in range(0, self.repetitions, rows):
            yield uniforms(
                start * self.numbers, (min(rows, self.repetitions - start), self.numbers)
            )

    def limit(self, largest: list[Array]) -> float:
        return float(np.sort(np.concatenate(largest))[self.place - 1])


def band(
    cumulative: Cumulative,
    boundaries: npt.NDArray[np.int64],
    level: float,
    *,
    target: str = "population",
) -> tuple[Array, Array]:
    """A band that contains the whole distribution function with probability `level`.

    Method.    F̂ ± c at the boundaries of the (upper) tree, c the simulated `level` quantile of sup
               |bridge(F̂)·√(N·cluster) + noise|/N, the bridge a Brownian bridge, the noise with its
               own law through least squares. Then clipped to [0, 1] and made monotone, and between
               boundaries extended by monotony, which keep what is covered.
    Validity.  Rows are independent draws. Exact in the noise; F̂ in place of F changes only where
               the bridge is looked at, and the bridge is the limit of √N(Fₙ − F) (for small N the
               law of the supremum lies below it). Levels beyond what the simulation resolves use
               the Dvoretzky–Kiefer–Wolfowitz–Massart and Bonferroni bounds, which are proven.
    Reference. Massart (1990).
    """
    shape = cumulative.shape.cut(MOST_BOUNDARIES)
    stride = cumulative.shape.leaves // shape.leaves
    knots = np.arange(stride, cumulative.inside, stride)
    half = band_half_width(cumulative, level, target=target)
    center = cumulative.prefix[knots] / cumulative.rows
    low = np.maximum.accumulate(np.concatenate([[0.0], np.clip(center - half, 0.0, 1.0)]))
    high = np.minimum.accumulate(np.concatenate([[1.0], np.clip(center + half, 0.0, 1.0)[::-1]]))[
        ::-1
    ]
    last = len(knots)
    return low[np.minimum(boundaries // stride, last)], high[
        np.minimum(-(-boundaries // stride) - 1, last)
    ]


def band_half_width(cumulative: Cumulative, level: float, *, target: str = "population") -> float:
    """The half-width c of `band`, before it is clipped and made monotone."""
    stride = cumulative.shape.leaves // cumulative.shape.cut(MOST_BOUNDARIES).leaves
    knots = np.arange(stride, cumulative.inside, stride)
    simulated = _simulated_half_width(cumulative, knots, level, target)
    return _proven_half_width(cumulative, knots, level, target) if simulated is None else simulated


def _simulated_half_width(
    cumulative: Cumulative, knots: npt.NDArray[np.int64], level: float, target: str
) -> float | None:
    if knots.size == 0:
        return 0.0
    shape = cumulative.shape.cut(MOST_BOUNDARIES)
    stride, nodes, rows = cumulative.shape.leaves // shape.leaves, sum(shape.sizes), cumulative.rows
    curve = np.clip(cumulative.consistent[knots] / rows, 0.0, 1.0)
    steps = np.sqrt(np.diff(curve, prepend=0.0, append=1.0).clip(0.0))
    scale = np.sqrt(rows * cumulative.cluster) if target == "population" else 0.0
    variances = np.ones(nodes)
    variances[-shape.leaves :] = shape.leaf_variance
    plan, largest = _Plan(nodes + steps.size, level), []
    for uniform in plan.chunks() if plan.resolves else ():
        noise = _noise(uniform[:, :nodes], cumulative.noise) * np.sqrt(variances)
        error = prefix_counts(
            least_squares(shape, noise, total=0.0 if cumulative.public_total else None)
        )
        path = error[:, knots // stride] - (
            0.0 if cumulative.public_total else curve * error[:, -1:]
        )
        if scale:
            walk = np.cumsum(ndtri(uniform[:, nodes:]) * steps, axis=1)
            path += scale * (walk[:, :-1] - curve * walk[:, -1:])
        largest.append(np.abs(path).max(axis=1))
    return float(plan.limit(largest) / rows) if plan.resolves else None


def _proven_half_width(
    cumulative: Cumulative, knots: npt.NDArray[np.int64], level: float, target: str
) -> float:
    """Sampling by Massart's inequality and noise by Bonferroni's, half of the error probability
    each (all to noise where that is all there is).
    """
    sampled, wrong = target == "population", 1 - level
    noise = cumulative.noise_at(
        knots, np.clip(cumulative.prefix[knots] / cumulative.rows, 0.0, 1.0)
    )
    part = wrong / 2 if sampled else wrong
    private = float(
        np.max(half_width(1 - part / max(knots.size, 1), 0.0 * knots, noise), initial=0.0)
        / cumulative.rows
    )
    return private + (
        float(np.sqrt(np.log(2 / part) * cumulative.cluster / (2 * cumulative.rows)))
        if sampled
        else 0.0
    )


def cell_level(statistics: ShareStatistics, level: float, *, target: str = "population") -> float:
    """The level at which all cells' intervals hold at once with probability `level`: between
    `level` and Šidák's level^(1/cells).

    Method.    The joint error of all cells (multinomial and noise) is simulated, each cell's error
               is read as the level of the least interval that contains it, and the answer is the
               `level` quantile of the largest. Never above Bonferroni's 1 − (1 − level)/cells.
    Validity.  As that of one cell's interval; Bonferroni's level,
               used beyond what the simulation resolves, needs nothing else.
    """
    cells = statistics.count.size
    bonferroni, plan = 1 - (1 - level) / cells, _Plan(2 * cells + 1, level)
    if not plan.resolves:
        return bonferroni
    share = np.clip(statistics.share, 0.0, 1.0)
    share = share / max(1.0, float(share.sum()))
    rows, noise = float(np.max(statistics.rows)), statistics.noise_at(share)
    sampling = np.asarray(
        statistics.sampling_variance(share) if target == "population" else 0.0 * share
    )
    scale = np.sqrt(rows * statistics.cluster) if target == "population" else 0.0
    rest = float(np.sqrt(max(1 - share.sum(), 0.0)))
    largest = []
    for uniform in plan.chunks():
        normal = ndtri(uniform[:, : cells + 1])
        parts = normal[:, :cells] * np.sqrt(share)
        error = _noise(uniform[:, cells + 1 :], statistics.noise)
        if not statistics.public_total:
            error = error - share * error.sum(axis=1, keepdims=True)
        error += scale * (
            parts - share * (parts.sum(axis=1, keepdims=True) + rest * normal[:, cells:])
        )
        largest.append(_level_of(error, sampling, noise).max(axis=1))
    return min(max(plan.limit(largest), level), bonferroni)


def _level_of(error: Array, normal_variance: Array, noise: Noise) -> Array:
    """The level of the interval that just contains an error: P(|E| ≤ |error|),
    E = N(0, normal_variance) + noise.
    """
    total = normal_variance + noise.variance
    scale: Any = np.broadcast_to(np.asarray(noise.fourth, dtype=float) ** 0.25, total.shape)
    if not np.any(scale > 0):
        return np.asarray(1 - 2 * ndtr(-np.abs(error) / np.sqrt(np.maximum(total, 1e-300))))
    gaussian = np.broadcast_to(np.sqrt(np.maximum(total - 2 * scale**2, 0.0)), error.shape)
    tail, _ = tail_and_density(np.abs(error), gaussian, np.broadcast_to(scale, error.shape))
    return np.asarray(1 - 2 * tail)
