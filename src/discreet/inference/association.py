"""How far a noisy table is from the nearest independent one, on a scale whose law hardly depends on what noise hides.

Independent tables are the matrices λ = a·b′ of rank one, with Σλ = n where the number of rows is public. They are a curved surface: where noise is as large as the table, a distance to
its tangent plane (Pearson's χ², and χ² with noise in its weights) has a law that depends on where on the surface the truth is, which is what nobody can see. The distance to the surface
itself, weighed by its curvature, does not (docs/theory/tests.md; sizes: benchmarks/tests_size.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, gammaincc, ndtri

from discreet.inference.laws import Array
from discreet.inference.tables import NoisyTables, kept_difference

SWEEPS, ROUNDS, STILL = 10, 6, 1e-3  # turns in a round, rounds, and what counts as standing still (in standard deviations of a cell)
POWER_STEPS = 3
NODES, NODE_WEIGHTS = (np.asarray(part) for part in np.polynomial.legendre.leggauss(16))
ONE_DEGREE = 0.38  # of the fourth cumulant: with it the gamma law has the 0.95 quantile of one squared Laplace variable, 4.49
HELD_MORE, HIDDEN_MORE = 1.4, 0.8  # what is counted of it in larger tables: with a public total; where noise hides a table with a private one, times kept²
FLOOR = 0.5  # of the noise's variance: fitted means below 0 make up for those that are too large, so that variances are right on average
DEEP = 600.0  # −log of a tail below which deviates grow in proportion to it


@dataclass(frozen=True)
class Nearest:
    """λ = a·b′, the nearest independent table: the table itself (moved to a public total), means, the variance of every cell, and both factors; `held` where Σλ is the public total."""

    table: Array
    means: Array
    variance: Array
    a: Array
    b: Array
    held: bool

    @property
    def squared(self) -> Array:
        """The squared distance Σ(X − λ)²/variance."""
        return np.asarray(((self.table - self.means) ** 2 / self.variance).sum(axis=(-2, -1)))


def nearest_independent(tables: NoisyTables) -> Nearest:
    """The matrix of rank one, with the public total where there is one, that minimises Σ(X − λ)²/variance.

    Method. a given b is a weighted mean for every row, and b given a for every column; in turn. λ may be negative: cut at 0 the surface would have edges. A cell's variance is λ + v at
            the fit, found along with it; in 2 × 2 tables at even margins of a first fit (`_even_means`), because there an error of the fit turns the one direction of the residual.
            Margins of the table itself would do worse: they move with the residual, so that one side seems nearer than the other.
    """
    table, noise = tables.known, max(tables.noise.variance, 1e-9)
    if table.shape[-2:] != (2, 2):
        return _nearest(tables, np.full(table.shape, noise))
    for _ in range(2):
        fit = _nearest(tables, np.maximum(tables.cluster * _even_means(table, noise, tables.cluster) + noise, noise * FLOOR))
        table = fit.means
    return fit


def _nearest(tables: NoisyTables, variance: Array) -> Nearest:
    """The nearest matrix of rank one from these variances.

    Method. The distance has two valleys, with a public total above all (a descent from one margin ends in the wrong one for up to 4 in 100 tables that noise hides): one is entered from
            the columns and one from the rows, so that a table and its transpose are equally far.
    """
    table, held = tables.known, tables.total is not None
    turned = np.swapaxes(table, -1, -2)
    columns, rows = (table.sum(axis=-2), table.sum(axis=-1)) if held else (_leading(table), _leading(turned))
    if held:
        whole = np.broadcast_to(np.asarray(tables.total, dtype=float), table.shape[:-2])[..., None]
        columns = np.where(whole > 0, columns / np.where(whole > 0, whole, 1.0), 1 / columns.shape[-1])
    response = _factor(np.moveaxis(turned, (-2, -1), (0, 1)), np.moveaxis(rows, -1, 0), np.moveaxis(variance, (-2, -1), (1, 0)), 1.0 if held else None)
    first, second = _nearest_from(tables, columns, variance), _nearest_from(tables, np.moveaxis(response, 0, -1), variance)
    nearer = second.squared < first.squared

    def best(one: Array, other: Array) -> Array:
        return np.asarray(np.where(nearer.reshape(nearer.shape + (1,) * (one.ndim - nearer.ndim)), other, one))

    return Nearest(table, best(first.means, second.means), best(first.variance, second.variance), best(first.a, second.a), best(first.b, second.b), held)


def _nearest_from(tables: NoisyTables, b: Array, variance: Array) -> Nearest:
    """`SWEEPS` turns from the factor b of the columns, and as many again, up to `ROUNDS` times, for tables that still move; variances follow the fit, but for 2 × 2 tables.

    Tables are the last axis here, so that every step is a few passes over long rows of numbers.
    """
    known, held, (rows, columns) = tables.known, tables.total is not None, tables.counts.shape[-2:]
    table, variance, b = (np.moveaxis(array.reshape(-1, *array.shape[known.ndim - 2 :]), 0, -1).copy() for array in (known, variance, b))
    total = np.broadcast_to(np.asarray(tables.total, dtype=float), known.shape[:-2]).ravel() if held else None
    a, b, variance, moved = _turns(tables, table, b, variance, total)
    moving = np.flatnonzero(moved > STILL)
    for _ in range(ROUNDS - 1):
        if not moving.size:
            break
        a[:, moving], b[:, moving], variance[..., moving], moved = _turns(tables, table[..., moving], b[:, moving], variance[..., moving], None if total is None else total[moving])
        moving = moving[moved > STILL]
    shape = known.shape[:-2]
    a, b, variance = np.moveaxis(a, -1, 0).reshape(*shape, rows), np.moveaxis(b, -1, 0).reshape(*shape, columns), np.moveaxis(variance, -1, 0).reshape(known.shape)
    return Nearest(known, np.asarray(a[..., :, None] * b[..., None, :]), variance, a, b, held)


def _turns(tables: NoisyTables, table: Array, b: Array, variance: Array, total: Array | None) -> tuple[Array, Array, Array, Array]:
    """(a, b, variance, how far the means moved in the last turn, in standard deviations) after `SWEEPS` turns."""
    noise, small = max(tables.noise.variance, 1e-9), table.shape[:2] == (2, 2)
    turned, one = np.swapaxes(table, 0, 1), None if total is None else 1.0
    means = np.zeros_like(table)
    for sweep in range(SWEEPS):
        a = _factor(table, b, variance, total)
        b = _factor(turned, a, np.swapaxes(variance, 0, 1), one)
        if total is None:
            length = np.sqrt(np.maximum((b**2).sum(axis=0), 1e-300))
            a, b = a * length, b / length
        before, means = means, a[:, None] * b
        if not small and sweep + 1 < SWEEPS:
            variance = np.maximum(tables.cluster * means + noise, noise * FLOOR)
    return a, b, variance, np.abs((means - before) / np.sqrt(variance)).max(axis=(0, 1))


def _even_means(table: Array, noise: float, cluster: int) -> Array:
    """Means of 2 × 2 cells that variances are read off: both margins, each drawn to ½ as far as its error explains, and a row more.

    Method. The square of a noisy difference of two margins is too large, so p(1−p) is read too small, and most where p is ½ (`kept_difference`). With variances at the fit
            itself, not drawn in, 50 rows with shares of ½ are rejected 0.057 for 0.05.
    """
    rows = np.maximum(table.sum(axis=(-2, -1)), 0.0)

    def shares(margin: Array) -> Array:
        first = 0.5 + kept_difference(margin, 2 * noise, cluster) * (margin[..., 0] - margin[..., 1]) / (2 * (rows + 1))
        return np.stack([first, 1 - first], axis=-1)

    p, q = shares(table.sum(axis=-1)), shares(table.sum(axis=-2))
    return np.asarray(rows[..., None, None] * p[..., :, None] * q[..., None, :])


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


def _factor(table: Array, b: Array, variance: Array, whole: Any = None) -> Array:
    """The best a for given b, row by row (axes: rows, columns, tables); the best of those with Σa = `whole` where that is given."""
    weighted = b / variance
    precision = np.maximum((b * weighted).sum(axis=1), 1e-300)
    a = np.asarray((table * weighted).sum(axis=1) / precision)
    if whole is None:
        return a
    give = precision.min(axis=0) / precision
    return np.asarray(a + (whole - a.sum(axis=0)) * give / give.sum(axis=0))


def curvatures(fit: Nearest) -> tuple[Array, Array]:
    """(κ·distance, kept): principal curvatures of the surface at its nearest point along the residual, and the share of every cell's error that the residual keeps.

    Method. With J the derivatives of λ by (a, b) and W the weights, G = J′WJ is the expected and G − B the observed curvature of half the squared distance, B holding the second
            derivatives times the weighted residual. κ·distance are the eigenvalues of G⁻¹B; det(G − B)/det G = Π(1 − κ·distance). Where the total is held, Σa and Σb stay as they are, and
            the residual has lost the mean of all cells.
    """
    rows, columns = fit.means.shape[-2:]
    size = rows + columns
    balance = np.sqrt(np.maximum(np.sqrt((fit.a**2).sum(axis=-1, keepdims=True) / np.maximum((fit.b**2).sum(axis=-1, keepdims=True), 1e-200)), 1e-100))
    a, b, variance = fit.a / balance, fit.b * balance, fit.variance  # both factors equally long: as accurate for a million rows as for ten
    metric = np.zeros((*fit.means.shape[:-2], size, size))
    twist = np.zeros_like(metric)
    metric[..., range(rows), range(rows)] = (b[..., None, :] ** 2 / variance).sum(axis=-1)
    metric[..., range(rows, size), range(rows, size)] = (a[..., :, None] ** 2 / variance).sum(axis=-2)
    metric[..., :rows, rows:] = fit.means / variance
    twist[..., :rows, rows:] = (fit.table - fit.means) / variance
    for matrix in (metric, twist):
        matrix[..., rows:, :rows] = np.swapaxes(matrix[..., :rows, rows:], -1, -2)
    scale = np.trace(metric, axis1=-2, axis2=-1)
    if fit.held:
        free = _contrasts(rows, columns)
        metric, twist = free.T @ metric @ free, free.T @ twist @ free
    else:
        free = np.eye(size)
        idle = np.concatenate([a, -b], axis=-1)  # moves nothing: one parameter is redundant, and the residual has no part in it
        metric = metric + (scale / np.maximum((idle**2).sum(axis=-1), 1e-300))[..., None, None] * idle[..., :, None] * idle[..., None, :]
    metric = metric + (1e-9 * scale + 1e-60)[..., None, None] * np.eye(free.shape[1])
    root = np.linalg.inv(np.linalg.cholesky(metric))
    bent = np.asarray(np.linalg.eigvalsh(root @ twist @ np.swapaxes(root, -1, -2)), dtype=float)
    inverse = free @ (np.swapaxes(root, -1, -2) @ root) @ free.T
    spread = np.diagonal(inverse, axis1=-2, axis2=-1)
    taken = b[..., None, :] ** 2 * spread[..., :rows, None] + a[..., :, None] ** 2 * spread[..., None, rows:] + 2 * fit.means * inverse[..., :rows, rows:]
    return bent, np.clip(1 - taken / variance - (1 / (rows * columns) if fit.held else 0.0), 0.0, 1.0)


def _contrasts(rows: int, columns: int) -> Array:
    """Orthonormal directions of (a, b) that leave Σa and Σb as they are."""
    free = np.zeros((rows + columns, rows + columns - 2))
    for first, number, place in ((0, rows, 0), (rows, columns, rows - 1)):
        for step in range(1, number):
            free[first : first + step, place + step - 1] = 1 / math.sqrt(step * (step + 1))
            free[first + step, place + step - 1] = -step / math.sqrt(step * (step + 1))
    return free


def association(tables: NoisyTables, fit: Nearest | None = None) -> Array:
    """Evidence against independence: the squared distance to the nearest independent table, on the scale of χ² with (r−1)(c−1) degrees of freedom.

    Method.    Q = Σ(X − λ)²/(λ + v). Its mean is m = (r−1)(c−1) and its variance 2m + Σ kept²·κ₄, fourth cumulants of Poisson counts and of Laplace noise as far as the fit does
               not follow it (`_tail_share`): the tail of the gamma law with these moments gives a distance x on the normal scale. Given the nearest point and the direction, x has density
               ∝ x^(m−1)·e^(−x²/2)·Π(1 − κx)^γ, γ = 1 where nothing is seen and ½ for a table that can be seen; the upper tail beyond x is the evidence, turned into a quantile of χ².
    Validity.  A statistic, not a p-value: its law is simulated (`table_p_value`), and near χ² where noise is small.
    Reference. Weyl (1939) for the volume of tubes; Cox and Reid (1987) for the power ½; Choi, Taylor and Tibshirani (2017) for singular values given the first; docs/theory/tests.md.
    """
    fit = nearest_independent(tables) if fit is None else fit
    bent, kept = curvatures(fit)
    noise, cluster = max(tables.noise.variance, 1e-9), tables.cluster
    freedom = (fit.means.shape[-2] - 1) * (fit.means.shape[-1] - 1)
    squared = fit.squared
    seen = (fit.means**2 / fit.variance).sum(axis=(-2, -1))
    heavy = 0.0 if tables.noise.kind == "gaussian" else 3 * noise**2 * _tail_share(fit, kept, seen)
    excess = (kept**2 * (heavy + cluster**3 * np.maximum(fit.means, 0.0)) / fit.variance**2).sum(axis=(-2, -1))
    normal = _normal_scale(squared, freedom, 2 * freedom + excess)
    distance = np.sqrt(np.maximum(normal, 1e-12))
    curvature = bent / np.sqrt(np.maximum(squared, 1e-12))[..., None]
    found = _chi_scale(_log_tail(distance, curvature, freedom, _curvature_power(fit, seen)), freedom)
    return found if tables.total is None else np.asarray(np.where(np.asarray(tables.total) > 0, found, 0.0))  # without rows nothing is told


def _edge(fit: Nearest) -> float:
    """(√r + √c)²: the edge of the squared singular values of noise alone in large tables; in small ones Σλ²/variance has a mean of about half to two thirds of it."""
    rows, columns = fit.means.shape[-2:]
    return (math.sqrt(rows) + math.sqrt(columns)) ** 2


def _curvature_power(fit: Nearest, seen: Array) -> Array:
    """The power γ of the curvature: 1 where nothing is seen, ½ for a table that can be seen.

    Method. Between them e^(−2·seen/edge); where a public total holds the fit of a larger table, 1 up to ¾ of the edge and steeply down from there. The way between is empirical: with it
            the tail moves least between tables with full and with empty corners.
    """
    edge = _edge(fit)
    beyond = np.maximum(seen / edge - 0.75, 0.0) * 4 if fit.held and fit.means.shape[-2:] != (2, 2) else 2 * seen / edge
    return np.asarray((1 + np.exp(-np.minimum(beyond, DEEP))) / 2)


def _tail_share(fit: Nearest, kept: Array, seen: Array) -> Any:
    """How much of the fourth cumulant of a cell's Laplace noise is counted, apart from kept².

    Method. With one degree of freedom what gives the 0.95 quantile of one squared variable (`ONE_DEGREE`), else all of it, the variance of a quadratic form: the more are summed, the
            nearer is the gamma law. But an outlier in one cell is itself a table of rank one: where noise hides the table and the total is private, the fit follows the outlier instead,
            and a share of kept² is left of it. A public total keeps the fit from following; that more than all of it is counted then has no derivation, it makes the tail move least
            between tables with full and with empty corners.
    """
    if fit.means.shape[-2:] == (2, 2):
        return ONE_DEGREE
    if fit.held:
        return HELD_MORE
    hidden = np.minimum(1.0, (_edge(fit) / (2 * np.maximum(seen, 1e-9))) ** 4)[..., None, None]
    return 1 - hidden + hidden * HIDDEN_MORE * kept**2


def signed_association(tables: NoisyTables) -> Array:
    """Of 2 × 2 tables: the root of `association`, positive where the share of the first column is larger in the first row.

    Method. Independent tables have determinant 0 and part all others in two: the sign of the determinant is the side of the table, wherever the nearest independent one lies. (The
            sign of one cell's residual is not: where noise makes a factor of the fit negative, it points the wrong way, and one-sided sizes at 50 rows and ε = 0.1 are .031 and .067.)
    """
    x = tables.known
    side = np.sign(x[..., 0, 0] * x[..., 1, 1] - x[..., 0, 1] * x[..., 1, 0])
    return np.asarray(side * np.sqrt(np.maximum(association(tables), 0.0)))


def _chi_quantile(freedom: int, tail: Array) -> Array:
    """The value with this upper tail under χ²; with 1 degree of freedom by the normal quantile, a hundred times faster."""
    return np.asarray(ndtri(tail / 2) ** 2 if freedom == 1 else chdtri(freedom, tail))


def _normal_scale(squared: Array, freedom: int, variance: Array) -> Array:
    """The χ² value with the tail that `squared` has in the gamma law of mean `freedom` and this variance; in proportion beyond 40 standard deviations."""
    known = np.minimum(squared, freedom + 40 * np.sqrt(variance))
    tail = np.clip(gammaincc(freedom**2 / variance, known * freedom / variance), 1e-290, 1.0)
    return np.asarray(_chi_quantile(freedom, tail) * squared / np.maximum(known, 1e-300))


def _log_tail(distance: Array, curvature: Array, freedom: int, power: Array) -> Array:
    """log P(x ≥ distance) for the density x^(m−1)·e^(−x²/2)·Π(1 − κx)^power up to its first zero."""
    most = np.maximum(curvature.max(axis=-1), 1e-12)
    curvature = curvature * np.minimum(1.0, 0.999 / (most * distance))[..., None]  # the end lies beyond what was seen
    end = np.maximum(1 / np.maximum(curvature.max(axis=-1), 1e-12), 1.001 * distance)
    reach = math.sqrt(freedom) + 8

    def logged(start: Array, width: Array) -> Array:
        """log ∫ from start to start + width, plus start²/2; in logarithms, because x^(m−1) overflows with many degrees of freedom."""
        step = width[..., None] * (1 + NODES) / 2
        x = start[..., None] + step
        surface = np.maximum(1 - curvature[..., None, :] * x[..., None], 0.0).prod(axis=-1)
        exponent = (freedom - 1) * np.log(np.maximum(x, 1e-300)) - step * (start[..., None] + x) / 2 + power[..., None] * np.log(np.maximum(surface, 1e-300))
        largest = exponent.max(axis=-1, keepdims=True)
        return np.asarray(largest[..., 0] + np.log(np.maximum((NODE_WEIGHTS * np.exp(exponent - largest)).sum(axis=-1) * width / 2, 1e-300)))

    start = np.maximum(np.minimum(distance, math.sqrt(freedom)) - 8, 0.0)
    inner = logged(start, np.minimum(distance - start, reach)) - start**2 / 2
    outer = logged(distance, np.minimum(end - distance, reach / (1 + distance / 4))) - distance**2 / 2
    return np.asarray(outer - np.logaddexp(inner, outer))


def _chi_scale(log_tail: Array, freedom: int) -> Array:
    """The quantile of χ² with this tail; in proportion to its logarithm in the far tail."""
    return np.asarray(_chi_quantile(freedom, np.exp(np.maximum(log_tail, -DEEP))) * np.maximum(log_tail / -DEEP, 1.0))
