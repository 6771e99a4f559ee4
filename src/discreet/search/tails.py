"""What noisy counts say about the two tails of a column, and where a mean is best clipped.

Arithmetic of released numbers: no data comes here.

On one side of a centre, with n rows in all, N(d) rows lie further out than the distance d. Noisy
counts of N at several d are read with two kinds of tails, weighed against each other by Bayes'
rule:

    smooth   d = s·(e^(θ(z − z₀)) − 1)/θ where N(d) = n·(1 − Φ(z)): θ = 0 is normal, 1 lognormal,
             below 0 bounded (Tukey's g distributions)
    edge     rows stop at a distance x; nothing is said about the counts before it

Distances are measured from the point on the other side beyond which a small share of the rows lies,
so that a centre at the very edge of a lump of equal values does no harm. Everything here chooses
places and ranges, or describes what a range leaves out: a bad fit costs accuracy, never privacy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def ndtr(x: Any) -> Any:
    """Φ; scipy is imported on first use, so that specs stay light."""
    from scipy.special import ndtr as normal

    return normal(x)


def ndtri(p: Any) -> Any:
    """Φ⁻¹."""
    from scipy.special import ndtri as quantile

    return quantile(p)


TAIL_SHARE = 0.06  # of the rows lie beyond the `extent` of a side
# fmt: off
_SHAPES = np.array([
    -1.8, -1.3, -0.95, -0.7, -0.5, -0.33, -0.18, -0.05, 0.08,
    0.2, 0.32, 0.45, 0.6, 0.75, 0.9, 1.1, 1.3, 1.6,
])
# fmt: on
_NEAR, _FAR = -1.6, 0.9  # distances between e^-1.6 and e^0.9 times the extent are looked at
_SHAPE, _SHIFT = (
    part.ravel() for part in np.meshgrid(_SHAPES, np.linspace(_NEAR, _FAR, 57), indexing="ij")
)
_EDGES = np.linspace(_NEAR, _FAR, 201)
_EDGE_PRIOR = 0.4
_SMOOTH_PRIOR = np.log(
    (1 - _EDGE_PRIOR)
    * np.exp(-0.5 * ((_SHAPE - 0.15) / 0.5) ** 2)
    / (0.5 * np.sqrt(2 * np.pi))
    * np.gradient(_SHAPES).repeat(57)
    / 57
)
_MISFIT = 0.08  # a smooth tail is believed up to this relative error of a count
_LEVELS = (np.arange(24) + 0.5) / 24
_CANDIDATES = np.linspace(-0.7, 0.9, 50)


@dataclass(frozen=True, slots=True)
class Seen:
    """A noisy count of the rows beyond a distance, and the standard deviation of its noise."""

    distance: float
    rows: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Tail:
    """One side: n rows in all, `beyond` of them beyond the centre, a small share beyond `extent`;
    `offset` is the extent of the other side.

    `aim` is the number of rows that a search looks for beyond the end of the range.
    """

    rows: float
    beyond: float
    extent: float
    offset: float
    other: float  # rows beyond the offset, on the other side
    aim: float
    seen: tuple[Seen, ...]

    @property
    def far(self) -> float:
        """The rows that are meant to lie beyond the extent."""
        return float(
            np.clip(max(TAIL_SHARE * self.rows, 4 * self.aim), 1e-3, max(self.beyond / 3, 2e-3))
        )

    @property
    def target(self) -> float:
        return min(self.aim, self.far / 2)

    @property
    def origin(self) -> float:
        """z₀: the normal score of the point from which distances are measured."""
        return float(ndtri(np.clip(self.other / max(self.rows, 1e-3), 1e-6, 0.45)))

    def score(self, rows: float) -> float:
        return float(ndtri(1 - np.clip(rows / max(self.rows, 1e-3), 1e-9, 0.75)))


@dataclass(frozen=True)
class Posterior:
    """Weighted tails: smooth ones (shape, scale) and edges (position, rows just before)."""

    tail: Tail
    shape: Array
    scale: Array
    smooth_weight: Array
    edge: Array
    before: Array
    edge_weight: Array

    @property
    def weight(self) -> Array:
        return np.concatenate([self.smooth_weight, self.edge_weight])

    def distances(self, rows: float) -> Array:
        """How far from the centre each tail has `rows` rows left."""
        smooth = (
            self.scale * _stretch(self.shape, self.tail.score(rows) - self.tail.origin)
            - self.tail.offset
        )
        return np.asarray(np.maximum(np.concatenate([smooth, self.edge - self.tail.offset]), 0.01))

    def quantile(self, values: Array, share: float) -> float:
        order = np.argsort(values)
        place = int(np.searchsorted(np.cumsum(self.weight[order]), share))
        return float(values[order][min(place, len(order) - 1)])

    def beyond(self, distance: float) -> Array:
        """Rows beyond a distance, for each tail."""
        d = distance + self.tail.offset
        return np.concatenate(
            [
                self.tail.rows * ndtr(-self._scores(np.array([d]))[0]),
                np.where(d < self.edge, self.before, 0.0),
            ]
        )

    def excess(self, distance: Array) -> tuple[Array, Array]:
        """E(x − d)₊ and E(x − d)₊² a row, for each distance (rows of the result) and each tail
        (columns).
        """
        d = distance + self.tail.offset
        z, theta = self._scores(d), self.shape
        unit = self.scale / theta * np.exp(-theta * self.tail.origin)
        here, first, second = (
            ndtr(-z),
            ndtr(theta - z) * np.exp(theta**2 / 2),
            ndtr(2 * theta - z) * np.exp(2 * theta**2),
        )
        at = np.exp(np.clip(theta * z, -300.0, 300.0))
        over = np.maximum(self.edge - d[:, None], 0.0) if d.ndim else np.maximum(self.edge - d, 0.0)
        share = self.before / max(self.tail.rows, 1e-3)
        one = np.concatenate([np.maximum(unit * (first - at * here), 0.0), share * over], axis=1)
        two = np.concatenate(
            [np.maximum(unit**2 * (second - 2 * at * first + at**2 * here), 0.0), share * over**2],
            axis=1,
        )
        return one, two

    def _scores(self, d: Array) -> Array:
        inside = np.maximum(1 + self.shape * d[:, None] / self.scale, 1e-300)
        return np.asarray(self.tail.origin + np.log(inside) / self.shape)


def posterior(tail: Tail) -> Posterior:
    """The tails that fit the counts, with their weights (those below a ten-thousandth of the
    greatest are left out).
    """
    extent = max(tail.extent + tail.offset, 1e-300)
    scale, smooth = _smooth(replace(tail, seen=()), tail.seen)
    d, count, deviation = (
        np.array([getattr(seen, name) for seen in tail.seen])
        for name in ("distance", "rows", "deviation")
    )
    edges, before, rough = _edges(tail, extent, d + tail.offset, count, deviation)
    top = max(smooth.max(), rough.max())
    weights = np.exp(smooth - top), np.exp(rough - top)
    kept = weights[0] > 1e-4, weights[1] > 1e-4
    total = weights[0][kept[0]].sum() + weights[1][kept[1]].sum()
    return Posterior(
        tail,
        _SHAPE[kept[0]],
        scale[kept[0]],
        weights[0][kept[0]] / total,
        edges[kept[1]],
        before[kept[1]],
        weights[1][kept[1]] / total,
    )


@lru_cache(maxsize=64)
def _smooth(tail: Tail, seen: tuple[Seen, ...]) -> tuple[Array, Array]:
    """Scales of the smooth tails and the log-likelihood of each,
    count by count (a search adds one at a time).
    """
    if not seen:
        return max(tail.extent + tail.offset, 1e-300) * np.exp(_SHIFT) / _stretch(
            _SHAPE, tail.score(tail.far) - tail.origin
        ), _SMOOTH_PRIOR
    (scale, before), last = _smooth(tail, seen[:-1]), seen[-1]
    inside = np.maximum(1 + _SHAPE * ((last.distance + tail.offset) / scale), 1e-300)
    expected = tail.rows * ndtr(-(tail.origin + np.log(inside) / _SHAPE))
    variance = (
        last.deviation**2
        + 0.5 * expected * np.maximum(1 - expected / max(tail.rows, 1e-3), 0.0)
        + (_MISFIT * expected) ** 2
    )
    return scale, before - 0.5 * (last.rows - expected) ** 2 / variance - 0.5 * np.log(variance)


def _edges(
    tail: Tail, extent: float, d: Array, count: Array, deviation: Array
) -> tuple[Array, Array, Array]:
    """Edges, the rows just before them, and the log-likelihood of each: counts before it are
    log-uniform, those after it next to none.
    """
    order = np.argsort(d)
    ordered = d[order]
    middles = (ordered[1:] + ordered[:-1]) / 2
    middles = middles[(middles > extent * np.exp(_NEAR)) & (middles < extent * np.exp(_FAR))]
    edges = np.sort(np.concatenate([extent * np.exp(_EDGES), middles]))
    aim, most = tail.target, max(tail.beyond, 2 * tail.target)
    levels = aim * (most / aim) ** _LEVELS
    # the gaps between levels are filled
    spread = np.sqrt(
        deviation[:, None] ** 2 + (0.5 * np.log(most / aim) / len(_LEVELS) * levels) ** 2
    )
    inner = np.log(
        (np.exp(-0.5 * ((count[:, None] - levels) / spread) ** 2) / spread).mean(axis=1) + 1e-13
    )
    spread = deviation**2 + (aim / 3) ** 2
    outer = np.maximum(-0.5 * (count - aim / 3) ** 2 / spread - 0.5 * np.log(spread), -60.0)
    fits = np.where(d[:, None] < edges, inner[:, None], outer[:, None]).sum(axis=0) + np.log(
        _EDGE_PRIOR / len(edges)
    )
    last = np.searchsorted(ordered, edges) - 1
    clipped = np.clip(count[order], aim, most)
    before = (
        np.where(last >= 0, clipped[np.maximum(last, 0)], most)
        if len(ordered)
        else np.full(len(edges), most)
    )
    return edges, before, fits


def _stretch(shape: Array, z: float) -> Array:
    return np.asarray(np.expm1(shape * max(z, 1e-3)) / shape)


@dataclass(frozen=True)
class Choices:
    """Distances at which one side may be clipped, and what each tail would lose there."""

    distance: Array
    lost: Array
    squares: Array
    weight: Array

    def losses(self, place: int) -> tuple[float, float, float]:
        """(mean, variance, mean square) of what is lost at one of the distances."""
        mean = float(self.lost[place] @ self.weight)
        return (
            mean,
            max(float(self.lost[place] ** 2 @ self.weight) - mean**2, 0.0),
            float(self.squares[place] @ self.weight),
        )


def choices(tail: Tail, limit: float) -> Choices:
    """Candidates about the distance that has `aim` rows beyond it;
    only the centre itself where nothing is known.
    """
    if not tail.seen or tail.extent <= 0:
        return Choices(np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1))
    fitted = posterior(tail)
    base = float(np.exp(fitted.weight @ np.log(fitted.distances(tail.target))))
    distance = np.unique(
        np.clip(np.ceil((base + tail.offset) * np.exp(_CANDIDATES) - tail.offset), 0.0, limit)
    )
    return Choices(distance, *fitted.excess(distance), fitted.weight)


def best_distances(sides: Iterable[Choices], rows: float, noise: float) -> tuple[float, float]:
    """Where to clip on both sides: the least expected root of  noise² + bias² + variance of what is
    lost,  one side after the other.

    `noise` times the width is the standard deviation of the noise in the sum. Losses of the two
    sides cancel by half only: nobody knows that the tails are alike.
    """
    both = list(sides)
    chosen = [len(side.distance) * 7 // 16 for side in both]
    for _ in range(3):
        for here in (0, 1):
            side, (mean, variance, square) = both[here], both[1 - here].losses(chosen[1 - here])
            width = (side.distance + both[1 - here].distance[chosen[1 - here]] + 1)[:, None]
            error = (
                (noise * width / rows) ** 2
                + side.lost**2
                - 1.2 * side.lost * mean
                + mean**2
                + variance
                + (side.squares + square) / rows
            )
            chosen[here] = int(np.argmin(np.sqrt(error) @ side.weight))
    return float(both[0].distance[chosen[0]]), float(both[1].distance[chosen[1]])
