"""How far a noisy table is from the nearest independent one, on a scale whose law hardly depends on what noise hides.

Independent tables are the matrices λ = a·b′ of rank one. They are a curved surface: where noise is as large as the table, a distance to its tangent plane (Pearson's χ², and χ² with
noise in its weights) has a law that depends on where on the surface the truth is, which is what nobody can see. The distance to the surface itself, weighed by its curvature, does
not (docs/theory/tests.md; sizes: benchmarks/tests_size.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, gammaincc, gammainccinv

from discreet.inference.laws import Array
from discreet.inference.tables import NoisyTables

SWEEPS, POWER_STEPS = 10, 3
NODES, NODE_WEIGHTS = (np.asarray(part) for part in np.polynomial.legendre.leggauss(16))
HEAVY = 0.6  # of the fourth cumulant of Laplace noise: a fitted direction spreads over more cells than the true one
FLOOR = 0.5  # of the noise's variance: fitted means below 0 make up for those that are too large, so that variances are right on average
DEEP = 600.0  # −log of a tail below which deviates grow in proportion to it


@dataclass(frozen=True)
class Nearest:
    """λ = a·b′, the nearest independent table: means, the variance of every cell there, and both factors."""

    means: Array
    variance: Array
    a: Array
    b: Array


def nearest_independent(tables: NoisyTables) -> Nearest:
    """The matrix of rank one that minimises Σ(X − λ)²/(λ + v).

    Method. a given b is a weighted mean for every row, and b given a for every column; in turn, the weights following, from the leading singular vector. λ may be
            negative: cut at 0 the surface would have edges. A public total is not used here: it would bend the surface more than it tells.
    """
    table, noise = tables.counts, max(tables.noise.variance, 1e-9)
    b, turned = _leading(table), np.swapaxes(table, -1, -2)
    variance = np.full(table.shape, noise)
    for sweep in range(SWEEPS):
        a = _factor(table, b, variance)
        b = _factor(turned, a, np.swapaxes(variance, -1, -2))
        length = np.sqrt(np.maximum((b**2).sum(axis=-1, keepdims=True), 1e-300))
        a, b = a * length, b / length
        means = a[..., :, None] * b[..., None, :]
        if sweep + 1 < SWEEPS:
            variance = np.maximum(tables.cluster * means + noise, noise * FLOOR)
    return Nearest(means, variance, a, b)


def _leading(table: Array) -> Array:
    """The leading right singular vector, nearly: power steps from the longest row; its sum is not negative."""
    longest = (table**2).sum(axis=-1).argmax(axis=-1)
    b = np.take_along_axis(table, longest[..., None, None], axis=-2)[..., 0, :]
    b = np.where((b**2).sum(axis=-1, keepdims=True) > 0, b, 1.0)
    for _ in range(POWER_STEPS):
        b = b / np.sqrt((b**2).sum(axis=-1, keepdims=True))
        moved = np.einsum("...ij,...ik,...k->...j", table, table, b)
        b = np.where((moved**2).sum(axis=-1, keepdims=True) > 0, moved, b)
    b = b / np.sqrt((b**2).sum(axis=-1, keepdims=True))
    return np.asarray(np.where(b.sum(axis=-1, keepdims=True) < 0, -b, b))


def _factor(table: Array, b: Array, variance: Array) -> Array:
    """The best a for given b, row by row."""
    weighted = b[..., None, :] / variance
    return np.asarray((table * weighted).sum(axis=-1) / np.maximum((b[..., None, :] * weighted).sum(axis=-1), 1e-300))


def curvatures(tables: NoisyTables, fit: Nearest) -> tuple[Array, Array]:
    """(κ·distance, kept): principal curvatures of the surface at its nearest point along the residual, and the share of every cell's error that the residual keeps.

    Method. With J the derivatives of λ by (a, b) and W the weights, G = J′WJ is the expected and G − B the observed curvature of half the squared distance, B holding the second
            derivatives times the weighted residual. κ·distance are the eigenvalues of G⁻¹B; det(G − B)/det G = Π(1 − κ·distance).
    """
    rows, columns = fit.means.shape[-2:]
    balance = np.sqrt(np.maximum(np.sqrt((fit.a**2).sum(axis=-1, keepdims=True)), 1e-100))  # both factors equally long: as accurate for a million rows as for ten
    a, b, variance = fit.a / balance, fit.b * balance, fit.variance
    metric = np.zeros((*fit.means.shape[:-2], rows + columns, rows + columns))
    twist = np.zeros_like(metric)
    metric[..., range(rows), range(rows)] = (b[..., None, :] ** 2 / variance).sum(axis=-1)
    metric[..., range(rows, rows + columns), range(rows, rows + columns)] = (a[..., :, None] ** 2 / variance).sum(axis=-2)
    metric[..., :rows, rows:] = fit.means / variance
    twist[..., :rows, rows:] = (tables.counts - fit.means) / variance
    for matrix in (metric, twist):
        matrix[..., rows:, :rows] = np.swapaxes(matrix[..., :rows, rows:], -1, -2)
    scale = np.trace(metric, axis1=-2, axis2=-1)
    idle = np.concatenate([a, -b], axis=-1)  # moves nothing: one parameter is redundant, and the residual has no part in it
    metric += (scale / np.maximum((idle**2).sum(axis=-1), 1e-300))[..., None, None] * idle[..., :, None] * idle[..., None, :]
    metric += (1e-9 * scale + 1e-60)[..., None, None] * np.eye(rows + columns)
    root = np.linalg.inv(np.linalg.cholesky(metric))
    bent = np.asarray(np.linalg.eigvalsh(root @ twist @ np.swapaxes(root, -1, -2)), dtype=float)
    inverse = np.swapaxes(root, -1, -2) @ root
    spread = np.diagonal(inverse, axis1=-2, axis2=-1)
    taken = b[..., None, :] ** 2 * spread[..., :rows, None] + a[..., :, None] ** 2 * spread[..., None, rows:] + 2 * fit.means * inverse[..., :rows, rows:]
    return bent, np.clip(1 - taken / variance, 0.0, 1.0)


def association(tables: NoisyTables, fit: Nearest | None = None) -> Array:
    """Evidence against independence: the squared distance to the nearest independent table, on the scale of χ² with (r−1)(c−1) degrees of freedom.

    Method.    Q = Σ(X − λ)²/(λ + v). Its mean is m = (r−1)(c−1) and its variance 2m + Σ kept²·κ₄, κ₄ the fourth cumulants of the cells (Laplace noise, Poisson counts): the tail of the gamma law
               with these moments gives a distance x on the normal scale. Given the nearest point and the direction, x has density ∝ x^(m−1)·e^(−x²/2)·Π(1 − κx)^½; the upper tail
               beyond x is the evidence, turned into a quantile of χ².
    Validity.  A statistic, not a p-value: its law is simulated (`table_p_value`), and near χ² where noise is small.
    Reference. Weyl (1939) for the volume of tubes; Cox and Reid (1987) for the power ½; Choi, Taylor and Tibshirani (2017) for singular values given the first; docs/theory/tests.md.
    """
    fit = nearest_independent(tables) if fit is None else fit
    bent, kept = curvatures(tables, fit)
    noise, cluster = max(tables.noise.variance, 1e-9), tables.cluster
    freedom = (fit.means.shape[-2] - 1) * (fit.means.shape[-1] - 1)
    squared = ((tables.counts - fit.means) ** 2 / fit.variance).sum(axis=(-2, -1))
    heavy = 0.0 if tables.noise.kind == "gaussian" else 3 * HEAVY * noise**2
    excess = (kept**2 * (heavy + cluster**3 * np.maximum(fit.means, 0.0)) / fit.variance**2).sum(axis=(-2, -1))
    normal = _normal_scale(squared, freedom, 2 * freedom + excess)
    distance = np.sqrt(np.maximum(normal, 1e-12))
    curvature = bent / np.sqrt(np.maximum(squared, 1e-12))[..., None]
    return _chi_scale(_log_tail(distance, curvature, freedom), freedom)


def signed_association(tables: NoisyTables) -> Array:
    """Of 2 × 2 tables: the root of `association`, positive where the share of the first column is larger in the first row."""
    fit = nearest_independent(tables)
    value = np.sqrt(np.maximum(association(tables, fit), 0.0))
    return np.asarray(np.where(tables.counts[..., 0, 0] >= fit.means[..., 0, 0], value, -value))


def _normal_scale(squared: Array, freedom: int, variance: Array) -> Array:
    """The χ² value with the tail that `squared` has in the gamma law of mean `freedom` and this variance; in proportion beyond 40 standard deviations."""
    known = np.minimum(squared, freedom + 40 * np.sqrt(variance))
    tail = np.clip(gammaincc(freedom**2 / variance, known * freedom / variance), 1e-290, 1.0)
    return np.asarray(2 * gammainccinv(freedom / 2, tail) * squared / np.maximum(known, 1e-300))


def _log_tail(distance: Array, curvature: Array, freedom: int) -> Array:
    """log P(x ≥ distance) for the density x^(m−1)·e^(−x²/2)·Π(1 − κx)^½ up to its first zero."""
    most = np.maximum(curvature.max(axis=-1), 1e-12)
    curvature = curvature * np.minimum(1.0, 0.999 / (most * distance))[..., None]  # the end lies beyond what was seen
    end = np.maximum(1 / np.maximum(curvature.max(axis=-1), 1e-12), 1.001 * distance)
    reach = math.sqrt(freedom) + 8

    def weighed(start: Array, width: Array) -> Array:
        """∫ from start to start + width, times e^(start²/2)."""
        step = width[..., None] * (1 + NODES) / 2
        x = start[..., None] + step
        surface = np.maximum(1 - curvature[..., None, :] * x[..., None], 0.0).prod(axis=-1)
        return np.asarray((NODE_WEIGHTS * x ** (freedom - 1) * np.exp(-step * (start[..., None] + x) / 2) * np.sqrt(surface)).sum(axis=-1) * width / 2)

    inner = weighed(np.zeros_like(distance), np.minimum(distance, reach))
    outer = weighed(distance, np.minimum(end - distance, reach / (1 + distance / 4)))
    log_outer = np.log(np.maximum(outer, 1e-300)) - distance**2 / 2
    return np.asarray(log_outer - np.logaddexp(np.log(np.maximum(inner, 1e-300)), log_outer))


def _chi_scale(log_tail: Array, freedom: int) -> Array:
    """The quantile of χ² with this tail; in proportion to its logarithm in the far tail."""
    return np.asarray(chdtri(freedom, np.exp(np.maximum(log_tail, -DEEP))) * np.maximum(log_tail / -DEEP, 1.0))
