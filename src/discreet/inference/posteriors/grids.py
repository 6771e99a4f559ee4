"""Posteriors of one or two parameters on a grid, from noisy sums of clamped rows.

Method.    y = (Σc, Σ(1 − c²)) + noise; given n rows and parameters θ the sums are normal with mean
           n·m(θ) and covariance n·C(θ), those of the *clamped* row. Gaussian noise adds its
           variance. Laplace noise of scale b is a normal law of variance 2b²E, E exponential of
           mean 1: the likelihood is summed over ln E. Where n is private its own noisy count is
           part of the likelihood, and every n is believed alike beforehand.
Validity.  The normal law of sums of n bounded rows: right where n is large or noise dominates. For
           Poisson counts of a few rows with next to no noise it is an approximation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.posteriors.families import GammaPoisson, NormalModel
from discreet.inference.posteriors.laws import GridLaw, normalised
from discreet.inference.posteriors.row_moments import RowMoments, clamped_normal, clamped_poisson
from discreet.inference.results.laws import Array

LINE, PLANE = 2001, 81  # points along a grid of one, of two parameters
STRETCH = 4.2  # a plane's points go from −2·sinh(4.2) to 2·sinh(4.2) standard deviations
DEEP = 45.0  # logarithms below the greatest density that a line holds
COUNTS, FEW_COUNTS = 33, 64  # private numbers of rows: points, and whole numbers taken one by one


@dataclass(frozen=True)
class NoisySums:
    """Released sums of (c, 1 − c²) with the law of each one's noise; `rows` where public, else the
    noisy count with its noise and a public bound.
    """

    values: Array
    noises: tuple[ReleasedNoise, ReleasedNoise]
    rows: int | None
    count: tuple[float, ReleasedNoise] | None = None
    most: int | None = None

    def likely_rows(self) -> float:
        """The number of rows, or the noisy count put into its range."""
        if self.rows is not None:
            return float(self.rows)
        assert self.count is not None
        return min(max(self.count[0], 1.0), np.inf if self.most is None else float(self.most))


def poisson_law(released: NoisySums, family: GammaPoisson, low: float, high: float) -> GridLaw:
    """λ on a grid of its logarithm."""
    shape, rate = family.shape_and_rate

    def density(at: Array, exact: bool) -> Array:
        found = np.exp(at)
        prior = shape * at - rate * found
        return prior + log_likelihood(released, clamped_poisson(found, low, high), exact=exact)

    middle = np.log(shape / rate)
    ends = middle - 46.0 / min(shape, 1.0), middle + 10.0 + np.log1p(1 / shape)
    grid = np.linspace(max(ends[0], -600.0), ends[1], LINE)
    for _ in range(6):
        logs = density(grid, False)
        near = np.flatnonzero(logs > logs.max() - DEEP)
        first, last = max(near[0] - 1, 0), min(near[-1] + 1, LINE - 1)
        if last - first > LINE // 3:
            break
        grid = np.linspace(grid[first], grid[last], LINE)
    logs, width = density(grid, True), float(grid[1] - grid[0])
    halves = np.full((LINE, 1, 1), width / 2)
    return GridLaw(grid[:, None], halves, normalised(logs), (True,), (0.0,), (1.0,))


def normal_law(released: NoisySums, family: NormalModel, center: float, half: float) -> GridLaw:
    """(mean, standard deviation) on a grid of (mean, ln deviation) that is aligned with the
    posterior's own axes and stretches far beyond it.
    """
    mean, rows, shape, scale = family.in_half_ranges(center, half)

    def density(at: Array, exact: bool) -> Array:
        place, log = at[0], np.clip(at[1], -300.0, 300.0)
        with np.errstate(over="ignore"):
            prior = (
                -2 * shape * log
                - scale * np.exp(-2 * log)
                - log
                - rows / 2 * ((place - mean) * np.exp(-log)) ** 2
            )
            spread = np.exp(np.clip(log, -60.0, 60.0))
        likely = log_likelihood(released, clamped_normal(place, spread), exact=exact)
        return np.asarray(np.maximum(prior + likely, -1e300))

    center_at, axes = _axes(lambda at: density(at, False), _starts(released, mean, shape, scale))
    line = np.linspace(-STRETCH, STRETCH, PLANE)
    along, width = 2 * np.sinh(line), 2 * np.cosh(line) * (line[1] - line[0])
    first, second = (each.ravel() for each in np.meshgrid(along, along, indexing="ij"))
    widths = [each.ravel() for each in np.meshgrid(width, width, indexing="ij")]
    points = center_at[:, None] + axes @ np.stack([first, second])
    logs = density(points, True) + np.log(widths[0]) + np.log(widths[1])
    halves = np.stack(
        [np.stack([axes[row, c] * widths[c] / 2 for c in (0, 1)], axis=1) for row in (0, 1)], axis=1
    )
    kept = logs > logs.max() - DEEP
    return GridLaw(
        points.T[kept],
        halves[kept],
        normalised(logs[kept]),
        (False, True),
        (center, 0.0),
        (half, half),
    )


# ── the likelihood ────────────────────────────────────────────────────────────────────────────────


def log_likelihood(released: NoisySums, row: RowMoments, *, exact: bool = True) -> Array:
    """log p(y | θ) up to a constant, for all θ of `row`. Not `exact`: Laplace noise and a private
    count as if normal, to find where the posterior is.
    """
    if not exact:
        variances = [noise.variance for noise in released.noises]
        doubt = 0.0 if released.count is None else released.count[1].variance
        return _normal(released.values, row, (released.likely_rows(), doubt), variances)
    found = None
    mixtures = list(itertools.product(*map(_scales, released.noises)))
    for rows, weight in _row_counts(released):
        for (one, first), (other, second) in mixtures:
            logs = _normal(released.values, row, (rows, 0.0), [one, other])
            logs = logs + (weight + first + second)
            found = logs if found is None else np.logaddexp(found, logs)
    assert found is not None
    return found


def _normal(
    values: Array, row: RowMoments, rows: tuple[float, float], variances: list[float]
) -> Array:
    """The log-density of normal sums of `rows` (a number and its variance) with normal noise."""
    count, doubt = rows
    one, both, other = (
        count * row.covariances[place] + doubt * row.means[a] * row.means[b]
        for place, (a, b) in enumerate(((0, 0), (0, 1), (1, 1)))
    )
    one, other = one + variances[0], other + variances[1]
    off = values[:, None] - count * row.means.reshape(2, -1)
    left = other - both * both / one  # of the second given the first
    left = np.maximum(left, 1e-12 * other)
    rest = off[1] - both / one * off[0]
    return np.asarray(-0.5 * (off[0] ** 2 / one + rest**2 / left + np.log(one) + np.log(left)))


def _scales(noise: ReleasedNoise) -> list[tuple[float, float]]:
    """A law as normal laws: (variance, log-weight). Laplace: over t = ln E, weights e^(t − e^t),
    which a sum in steps of 0.8 integrates to 1e-5.
    """
    if noise.kind == "gaussian":
        return [(noise.variance, 0.0)]
    line = np.arange(-11.2, 3.7, 0.8)
    grid = noise.step**2 / 12
    return [(2 * noise.spread**2 * float(np.exp(t)) + grid, float(t - np.exp(t))) for t in line]


def _row_counts(released: NoisySums) -> list[tuple[float, float]]:
    """Numbers of rows with the log-weight that the noisy count gives each."""
    if released.rows is not None or released.count is None:
        return [(float(released.rows or 0), 0.0)]
    count, noise = released.count
    most = np.inf if released.most is None else float(released.most)
    reach = {"gaussian": 7.0}.get(noise.kind, 18.0) * noise.spread + 1
    center = min(max(count, 0.0), most)
    low, high = max(np.floor(center - reach), 0.0), min(np.ceil(center + reach), most)
    if high - low <= FEW_COUNTS:
        line = np.arange(low, high + 1)
    else:  # closer together where they are likelier
        line = center + reach / np.sinh(3.0) * np.sinh(np.linspace(-3.0, 3.0, COUNTS))
        line = np.unique(np.clip(line, low, high))
    widths = np.gradient(line) if len(line) > 1 else np.ones(1)
    at = np.abs(count - line) / noise.spread
    logs = (-0.5 * at * at if noise.kind == "gaussian" else -at) + np.log(widths)
    return [
        (float(rows), float(log))
        for rows, log in zip(line, logs - logs.max(), strict=True)
        if log > logs.max() - 40
    ]


# ── where a posterior of two parameters is ────────────────────────────────────────────────────────


def _starts(released: NoisySums, mean: float, shape: float, scale: float) -> list[Array]:
    """What the prior says, and what the sums say as they are."""
    rows = released.likely_rows()
    usual = 0.5 * np.log(scale / (shape + 0.5))
    place = float(np.clip(released.values[0] / max(rows, 1.0), -1.0, 1.0))
    square = 1 - float(released.values[1]) / max(rows, 1.0)
    seen = 0.5 * np.log(min(max(square - place * place, 1e-4), 4.0))
    starts = [np.array([mean, usual]), np.array([place, seen])]
    starts += [np.array([place, log]) for log in (-3.0, -2.0, -1.0, 0.0, 1.0)]
    return [*starts, np.array([place / 2 + mean / 2, usual])]


def _axes(density: Callable[[Array], Array], starts: list[Array]) -> tuple[Array, Array]:
    """The greatest density's place, and the root of the inverse curvature there."""

    def worth(at: Array) -> float:
        return -float(density(at[:, None])[0])

    best = starts[int(np.argmax(density(np.stack(starts, axis=1))))]
    for reach in (0.05, 0.005):
        simplex = best + reach * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        options = {"initial_simplex": simplex, "xatol": 1e-4, "fatol": 0.01, "maxiter": 200}
        best = minimize(worth, best, method="Nelder-Mead", options=options).x
    steps = np.array([1e-3, 1e-3])
    for _ in range(3):
        curvature = _curvature(density, best, steps)
        steps = np.clip(0.5 / np.sqrt(np.maximum(np.diag(curvature), 1e-12)), 1e-7, 0.5)
    values, vectors = np.linalg.eigh(curvature)
    inverse = (vectors / np.clip(values, 1e-4, 1e16)) @ vectors.T
    return best, np.linalg.cholesky(inverse)


def _curvature(density: Callable[[Array], Array], at: Array, steps: Array) -> Array:
    """Minus the second differences of a log-density of two parameters."""
    offs = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1], [1, 1], [-1, -1], [1, -1], [-1, 1]])
    found = density(at[:, None] + (offs * steps).T)
    one = (2 * found[0] - found[1] - found[2]) / steps[0] ** 2
    other = (2 * found[0] - found[3] - found[4]) / steps[1] ** 2
    both = -(found[5] + found[6] - found[7] - found[8]) / (4 * steps[0] * steps[1])
    return np.array([[one, both], [both, other]])
