"""Posterior laws as mixtures: of Beta laws, of the cells of a grid, or weighted draws.

Every law has names, means, deviations, a distribution function and quantiles of each parameter, and
draws that are a fixed function of its seed, so that two readings of a release never differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import betainc

from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

BISECTIONS = 60
LEAST_WEIGHT = 1e-14  # of the largest: an atom below it is left out


class Law(Protocol):
    """A posterior of several parameters."""

    @property
    def size(self) -> int:
        """How many parameters."""
        ...

    @property
    def means(self) -> Array: ...

    @property
    def deviations(self) -> Array: ...

    def cdf(self, place: int, values: Array) -> Array:
        """P(parameter ≤ value)."""
        ...

    def quantiles(self, place: int, probabilities: Array) -> Array: ...

    def draws(self, size: int, seed: str) -> Array:
        """Draws of all parameters jointly, (size, parameters)."""
        ...


@dataclass(frozen=True)
class SharesLaw:
    """Dirichlet laws, one for each atom (row of `concentrations`), mixed with `weights`; the first
    `shown` shares are the parameters.
    """

    concentrations: Array
    weights: Array
    shown: int

    @property
    def size(self) -> int:
        return self.shown

    @property
    def means(self) -> Array:
        return np.asarray((self.weights @ self._atom_means())[: self.shown])

    @property
    def deviations(self) -> Array:
        atoms, totals = self._atom_means(), self.concentrations.sum(axis=1, keepdims=True)
        off = atoms - self.weights @ atoms
        variances = self.weights @ (atoms * (1 - atoms) / (totals + 1) + off * off)
        return np.asarray(np.sqrt(np.maximum(variances, 0.0))[: self.shown])

    def cdf(self, place: int, values: Array) -> Array:
        return _beta_mixture(*self._marginal(place), values)

    def quantiles(self, place: int, probabilities: Array) -> Array:
        marginal, exact = self._marginal(place), 1e-8 * float(max(self.deviations[place], 1e-12))
        return bisected(lambda at: _beta_mixture(*marginal, at), probabilities, (0.0, 1.0), exact)

    def draws(self, size: int, seed: str) -> Array:
        stream = Stream(seed)
        atoms = chosen(self.weights, stream.uniforms((size,), "atoms"))
        shapes = self.concentrations[atoms]
        gammas = stream.gammas(shapes.ravel(), "gammas").reshape(shapes.shape)
        gammas = np.maximum(gammas, 1e-300)
        return np.asarray((gammas / gammas.sum(axis=1, keepdims=True))[:, : self.shown])

    def _marginal(self, place: int) -> tuple[Any, Any, Any]:
        """The Beta laws of one share, each once, with their weights."""
        first = self.concentrations[:, place]
        pairs = np.stack([first, self.concentrations.sum(axis=1) - first], axis=1)
        known, which = np.unique(pairs, axis=0, return_inverse=True)
        weights = np.bincount(np.ravel(which), weights=self.weights).astype(float)
        return known[:, 0], known[:, 1], weights

    def _atom_means(self) -> Array:
        return np.asarray(
            self.concentrations / self.concentrations.sum(axis=1, keepdims=True), dtype=float
        )


@dataclass(frozen=True)
class GridLaw:
    """Points of one or two working coordinates with weights. A parameter is a linear function of
    the coordinates, or the exponential of one: `points` (points, parameters) before exponentials,
    `halves` (points, parameters, coordinates) half a cell's width along each, `logs` which
    parameters are exponentials, then all are `shift` + `scale`·parameter.
    """

    points: Array
    halves: Array
    weights: Array
    logs: tuple[bool, ...]
    shift: tuple[float, ...]
    scale: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.logs)

    @property
    def means(self) -> Array:
        return np.asarray(self.weights @ self._values(self.points))

    @property
    def deviations(self) -> Array:
        off = self._values(self.points) - self.means
        return np.asarray(np.sqrt(self.weights @ (off * off)))

    def cdf(self, place: int, values: Array) -> Array:
        found = (np.atleast_1d(np.asarray(values, dtype=float)) - self.shift[place]) / self.scale[
            place
        ]
        if self.logs[place]:
            with np.errstate(divide="ignore"):
                found = np.where(found > 0, np.log(np.maximum(found, 1e-320)), -np.inf)
        return self._worked(place, found)

    def quantiles(self, place: int, probabilities: Array) -> Array:
        points = self.points[:, place]
        reach = float(np.max(np.sum(np.abs(self.halves[:, place]), axis=1)))
        ends = float(points.min()) - reach, float(points.max()) + reach
        exact = 1e-13 * (ends[1] - ends[0])
        worked = bisected(lambda at: self._worked(place, at), probabilities, ends, exact)
        found = np.exp(worked) if self.logs[place] else worked
        return np.asarray(self.shift[place] + self.scale[place] * found)

    def draws(self, size: int, seed: str) -> Array:
        stream = Stream(seed)
        atoms = chosen(self.weights, stream.uniforms((size,), "atoms"))
        within = 2 * stream.uniforms((size, self.halves.shape[2]), "within") - 1
        return self._values(
            self.points[atoms] + np.einsum("npc,nc->np", self.halves[atoms], within)
        )

    def _values(self, points: Array) -> Array:
        with np.errstate(over="ignore"):
            found = np.where(self.logs, np.exp(np.minimum(points, 600.0)), points)
        return np.asarray(np.array(self.shift) + np.array(self.scale) * found)

    def _worked(self, place: int, values: Array) -> Array:
        """The distribution function in working coordinates: each point's mass is spread evenly over
        its cell, whose image has the law of a sum of uniforms.
        """
        kept = self.weights > LEAST_WEIGHT * self.weights.max()
        points, weights = self.points[kept, place], self.weights[kept]
        widths = np.abs(self.halves[kept, place])
        wide = np.maximum(widths.max(axis=1), 1e-300)
        narrow = widths.min(axis=1) if widths.shape[1] > 1 else np.zeros(len(wide))
        return np.array(
            [float(weights @ _spread(at - points, wide, narrow)) for at in np.atleast_1d(values)]
        ) / float(weights.sum())


@dataclass(frozen=True)
class DrawnLaw:
    """Weighted draws (draws, parameters)."""

    values: Array
    weights: Array

    @property
    def size(self) -> int:
        return int(self.values.shape[1])

    @property
    def means(self) -> Array:
        return np.asarray(self.weights @ self.values)

    @property
    def deviations(self) -> Array:
        off = self.values - self.means
        return np.asarray(np.sqrt(self.weights @ (off * off)))

    @property
    def effective(self) -> float:
        """How many draws of equal weight are worth as much."""
        return float(1 / np.sum(self.weights**2))

    def cdf(self, place: int, values: Array) -> Array:
        order = np.argsort(self.values[:, place], kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        return np.asarray(
            sums[np.searchsorted(self.values[order, place], np.atleast_1d(values), side="right")]
        )

    def quantiles(self, place: int, probabilities: Array) -> Array:
        order = np.argsort(self.values[:, place], kind="stable")
        weights = self.weights[order]
        middles = np.cumsum(weights) - weights / 2
        found = np.interp(np.atleast_1d(probabilities), middles, self.values[order, place])
        return np.asarray(found)

    def draws(self, size: int, seed: str) -> Array:
        return np.asarray(
            self.values[chosen(self.weights, Stream(seed).uniforms((size,), "resampled"))]
        )


def _beta_mixture(first: Array, rest: Array, weights: Array, values: Array) -> Array:
    """The distribution function of a mixture of Beta laws."""
    inside = np.clip(np.atleast_1d(np.asarray(values, dtype=float)), 0.0, 1.0)
    return np.array([float(weights @ betainc(first, rest, one)) for one in inside])


def mixed(atoms: Array, logs: Array, shown: int) -> SharesLaw:
    """Dirichlet atoms with log-weights; those of no weight are left out."""
    weights = normalised(logs)
    kept = weights > LEAST_WEIGHT * weights.max()
    return SharesLaw(atoms[kept], weights[kept] / weights[kept].sum(), shown)


def normalised(logs: Array) -> Array:
    """Weights of sum 1, from their logarithms."""
    found = np.exp(logs - np.max(logs))
    return np.asarray(found / found.sum())


def chosen(weights: Array, uniforms: Array) -> Any:
    """The place that each uniform number chooses, with the weights as probabilities."""
    sums = np.cumsum(weights)
    places = np.searchsorted(sums, uniforms * sums[-1], side="right")
    return np.asarray(np.minimum(places, len(weights) - 1))


def bisected(
    cdf: Callable[[Array], Array], probabilities: Array, ends: tuple[float, float], exact: float
) -> Array:
    """Where a distribution function passes each probability, to within `exact`."""
    wanted = np.atleast_1d(np.asarray(probabilities, dtype=float))
    low, high = np.full(wanted.shape, ends[0]), np.full(wanted.shape, ends[1])
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = cdf(middle) < wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        if np.all(high - low <= exact):
            break
    return np.asarray((low + high) / 2)


def _spread(off: Array, wide: Array, narrow: Array) -> Array:
    """P(U + V ≤ off), U and V uniform on ±wide and ±narrow, narrow ≤ wide."""
    sharp = narrow <= 1e-9 * wide
    ratio = np.where(sharp, 1.0, narrow / wide)
    at = np.clip(off / wide, -1 - ratio, 1 + ratio)
    straight = (np.clip(at, -1.0, 1.0) + 1) / 2
    tail = np.minimum(ratio + 1 - np.abs(at), 2 * ratio)
    bent = np.where(np.abs(at) > 1 - ratio, tail**2 / (8 * ratio), (1 - np.abs(at)) / 2)
    return np.asarray(np.where(sharp, straight, np.where(at > 0, 1 - bent, bent)))
