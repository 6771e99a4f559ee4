"""The nearest matrix of rank one to a noisy matrix, and how far it is,
on a scale whose law hardly depends on what noise hides.

Independent tables are matrices λ = a·b′ of rank one; so are numbers of rows N and sums F of groups
with one mean, F = m·N. Such matrices are a curved surface. The distance to it is weighed by its
curvature (docs/theory/tests.md). Used by `discreet.inference.tables.association` and
`discreet.inference.means.mean_tests`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri, gammaincc, ndtri

from discreet.inference.results.laws import Array

# turns in a round, rounds, and what counts as standing still (in standard deviations of a cell)
SWEEPS, ROUNDS, STILL = 10, 6, 1e-3
POWER_STEPS = 3
NODES, NODE_WEIGHTS = (np.asarray(part) for part in np.polynomial.legendre.leggauss(16))
DEEP = 600.0  # −log of a tail below which deviates grow in proportion to it

Follow = Callable[[Array], Array]


@dataclass(frozen=True)
class Nearest:
    """λ = a·b′, the nearest matrix of rank one: the table itself (moved to a public total), means,
    the variance of every cell, and both factors; `held` where Σλ is the public total.
    """

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

    @property
    def seen(self) -> Array:
        """Σλ²/variance: how well the matrix is seen through its errors."""
        return np.asarray((self.means**2 / self.variance).sum(axis=(-2, -1)))

    @property
    def freedom(self) -> int:
        return int((self.means.shape[-2] - 1) * (self.means.shape[-1] - 1))

    @property
    def edge(self) -> float:
        """(√r + √c)²: the edge of the squared singular values of noise alone in large tables;
        in small ones Σλ²/variance has a mean of about half to two thirds of it.
        """
        rows, columns = self.means.shape[-2:]
        return (math.sqrt(rows) + math.sqrt(columns)) ** 2


def nearest_rank_one(
    table: Array, variance: Array, *, total: Any = None, follow: Follow | None = None
) -> Nearest:
    """The matrix of rank one, with Σλ = `total` where that is given, that minimises
    Σ(X − λ)²/variance; variances are `follow(λ)`, found along with it, where that is given.

    Method. a given b is a weighted mean for every row, and b given a for every column; in turn.
            The distance has two valleys, with a public total above all (a descent from one margin
            ends in the wrong one for up to 4 in 100 tables that noise hides): one is entered from
            the columns and one from the rows, so that a table and its transpose are equally far.
    """
    held = total is not None
    turned = np.swapaxes(table, -1, -2)
    columns, rows = (
        (table.sum(axis=-2), table.sum(axis=-1)) if held else (_leading(table), _leading(turned))
    )
    if held:
        whole = np.broadcast_to(np.asarray(total, dtype=float), table.shape[:-2])[..., None]
        columns = np.where(
            whole > 0, columns / np.where(whole > 0, whole, 1.0), 1 / columns.shape[-1]
        )
    response = _factor(
        np.moveaxis(turned, (-2, -1), (0, 1)),
        np.moveaxis(rows, -1, 0),
        np.moveaxis(variance, (-2, -1), (1, 0)),
        1.0 if held else None,
    )
    first, second = (
        nearest_from(table, start, variance, total=total, follow=follow)
        for start in (columns, np.moveaxis(response, 0, -1))
    )
    nearer = second.squared < first.squared

    def best(one: Array, other: Array) -> Array:
        return np.asarray(
            np.where(nearer.reshape(nearer.shape + (1,) * (one.ndim - nearer.ndim)), other, one)
        )

    return Nearest(
        table,
        best(first.means, second.means),
        best(first.variance, second.variance),
        best(first.a, second.a),
        best(first.b, second.b),
        held,
    )


def nearest_from(
    known: Array, b: Array, variance: Array, *, total: Any = None, follow: Follow | None = None
) -> Nearest:
    """`SWEEPS` turns from the factor b of the columns, and as many again, up to `ROUNDS` times,
    for tables that still move.

    Tables are the last axis here, so that every step is a few passes over long rows of numbers.
    """
    held, (rows, columns) = total is not None, known.shape[-2:]
    table, variance, b = (
        np.moveaxis(array.reshape(-1, *array.shape[known.ndim - 2 :]), 0, -1).copy()
        for array in (known, variance, b)
    )
    whole = (
        np.broadcast_to(np.asarray(total, dtype=float), known.shape[:-2]).ravel() if held else None
    )
    a, b, variance, moved = _turns(table, b, variance, whole, follow)
    moving = np.flatnonzero(moved > STILL)
    for _ in range(ROUNDS - 1):
        if not moving.size:
            break
        a[:, moving], b[:, moving], variance[..., moving], moved = _turns(
            table[..., moving],
            b[:, moving],
            variance[..., moving],
            None if whole is None else whole[moving],
            follow,
        )
        moving = moving[moved > STILL]
    shape = known.shape[:-2]
    a, b, variance = (
        np.moveaxis(a, -1, 0).reshape(*shape, rows),
        np.moveaxis(b, -1, 0).reshape(*shape, columns),
        np.moveaxis(variance, -1, 0).reshape(known.shape),
    )
    return Nearest(known, np.asarray(a[..., :, None] * b[..., None, :]), variance, a, b, held)


def _turns(
    table: Array, b: Array, variance: Array, total: Array | None, follow: Follow | None
) -> tuple[Array, Array, Array, Array]:
    """(a, b, variance, how far the means moved in the last turn, in standard deviations) after
    `SWEEPS` turns.
    """
    turned, one = np.swapaxes(table, 0, 1), None if total is None else 1.0
    means = np.zeros_like(table)
    for sweep in range(SWEEPS):
        a = _factor(table, b, variance, total)
        b = _factor(turned, a, np.swapaxes(variance, 0, 1), one)
        if total is None:
            length = np.sqrt(np.maximum((b**2).sum(axis=0), 1e-300))
            a, b = a * length, b / length
        before, means = means, a[:, None] * b
        if follow is not None and sweep + 1 < SWEEPS:
            variance = follow(means)
    return a, b, variance, np.abs((means - before) / np.sqrt(variance)).max(axis=(0, 1))


def _leading(table: Array) -> Array:
    """The leading right singular vector, nearly: power steps from the longest row;
    its sum is not negative.
    """
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
    """The best a for given b, row by row (axes: rows, columns, tables); the best of those with
    Σa = `whole` where that is given.
    """
    weighted = b / variance
    precision = np.maximum((b * weighted).sum(axis=1), 1e-300)
    a = np.asarray((table * weighted).sum(axis=1) / precision)
    if whole is None:
        return a
    give = precision.min(axis=0) / precision
    return np.asarray(a + (whole - a.sum(axis=0)) * give / give.sum(axis=0))


def curvatures(fit: Nearest) -> tuple[Array, Array]:
    """(κ·distance, kept): principal curvatures of the surface at its nearest point along the
    residual, and the share of every cell's error that the residual keeps.

    Method. With J the derivatives of λ by (a, b) and W the weights, G = J′WJ is the expected and
            G − B the observed curvature of half the squared distance, B holding the second
            derivatives times the weighted residual. κ·distance are the eigenvalues of G⁻¹B;
            det(G − B)/det G = Π(1 − κ·distance). Where the total is held, Σa and Σb stay as they
            are, and the residual has lost the mean of all cells.
    """
    rows, columns = fit.means.shape[-2:]
    size = rows + columns
    balance = np.sqrt(
        np.maximum(
            np.sqrt(
                (fit.a**2).sum(axis=-1, keepdims=True)
                / np.maximum((fit.b**2).sum(axis=-1, keepdims=True), 1e-200)
            ),
            1e-100,
        )
    )
    # both factors equally long: as accurate for a million rows as for ten
    a, b, variance = fit.a / balance, fit.b * balance, fit.variance
    metric = np.zeros((*fit.means.shape[:-2], size, size))
    twist = np.zeros_like(metric)
    metric[..., range(rows), range(rows)] = (b[..., None, :] ** 2 / variance).sum(axis=-1)
    metric[..., range(rows, size), range(rows, size)] = (a[..., :, None] ** 2 / variance).sum(
        axis=-2
    )
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
        # moves nothing: one parameter is redundant, and the residual has no part in it
        idle = np.concatenate([a, -b], axis=-1)
        metric = (
            metric
            + (scale / np.maximum((idle**2).sum(axis=-1), 1e-300))[..., None, None]
            * idle[..., :, None]
            * idle[..., None, :]
        )
    metric = metric + (1e-9 * scale + 1e-60)[..., None, None] * np.eye(free.shape[1])
    root = np.linalg.inv(np.linalg.cholesky(metric))
    bent = np.asarray(np.linalg.eigvalsh(root @ twist @ np.swapaxes(root, -1, -2)), dtype=float)
    inverse = free @ (np.swapaxes(root, -1, -2) @ root) @ free.T
    spread = np.diagonal(inverse, axis1=-2, axis2=-1)
    taken = (
        b[..., None, :] ** 2 * spread[..., :rows, None]
        + a[..., :, None] ** 2 * spread[..., None, rows:]
        + 2 * fit.means * inverse[..., :rows, rows:]
    )
    return bent, np.clip(
        1 - taken / variance - (1 / (rows * columns) if fit.held else 0.0), 0.0, 1.0
    )


def _contrasts(rows: int, columns: int) -> Array:
    """Orthonormal directions of (a, b) that leave Σa and Σb as they are."""
    free = np.zeros((rows + columns, rows + columns - 2))
    for first, number, place in ((0, rows, 0), (rows, columns, rows - 1)):
        for step in range(1, number):
            free[first : first + step, place + step - 1] = 1 / math.sqrt(step * (step + 1))
            free[first + step, place + step - 1] = -step / math.sqrt(step * (step + 1))
    return free


def evidence(fit: Nearest, normal: Array, bent: Array, power: Array) -> Array:
    """The distance weighed by curvature, on the scale of χ² with (r−1)(c−1) degrees of freedom.

    Method. With x² = `normal`, the squared distance on the normal scale, x has
            density ∝ x^(m−1)·e^(−x²/2)·Π(1 − κx)^γ given the nearest point and the direction;
            the upper tail beyond x is turned into a quantile of χ². κ·distance are `bent`, γ is
            `power`.
    """
    curvature = bent / np.sqrt(np.maximum(fit.squared, 1e-12))[..., None]
    return _chi_scale(
        _log_tail(np.sqrt(np.maximum(normal, 1e-12)), curvature, fit.freedom, power), fit.freedom
    )


def proportional_evidence(
    rows: Array, sums: Array, rows_noise: float, variance: Array
) -> tuple[Nearest, Array]:
    """Whether sums are proportional to rows (… × groups), both of them with independent errors:
    the nearest matrix of rank one, and the distance to it on the scale of χ² with groups − 1
    degrees of freedom. Rows are taken as known to a hundredth at best.
    """
    counted = np.full(variance.shape, max(rows_noise, 1e-4))
    fit = nearest_rank_one(np.stack([rows, sums], axis=-2), np.stack([counted, variance], axis=-2))
    return fit, evidence(fit, fit.squared, curvatures(fit)[0], curvature_power(fit))


def curvature_power(fit: Nearest) -> Array:
    """The power γ of the curvature: 1 where nothing is seen, ½ for a table that can be seen;
    between them e^(−2·seen/edge), which is empirical.
    """
    return np.asarray((1 + np.exp(-np.minimum(2 * fit.seen / fit.edge, DEEP))) / 2)


def _chi_quantile(freedom: int, tail: Array) -> Array:
    """The value with this upper tail under χ²;
    with 1 degree of freedom by the normal quantile, a hundred times faster.
    """
    return np.asarray(ndtri(tail / 2) ** 2 if freedom == 1 else chdtri(freedom, tail))


def normal_scale(squared: Array, freedom: int, variance: Array) -> Array:
    """The χ² value with the tail that `squared` has in the gamma law of mean `freedom` and this
    variance; in proportion beyond 40 standard deviations.
    """
    known = np.minimum(squared, freedom + 40 * np.sqrt(variance))
    tail = np.clip(gammaincc(freedom**2 / variance, known * freedom / variance), 1e-290, 1.0)
    return np.asarray(_chi_quantile(freedom, tail) * squared / np.maximum(known, 1e-300))


def _log_tail(distance: Array, curvature: Array, freedom: int, power: Array) -> Array:
    """log P(x ≥ distance) for the density x^(m−1)·e^(−x²/2)·Π(1 − κx)^power up to its first
    zero.
    """
    most = np.maximum(curvature.max(axis=-1), 1e-12)
    # the end lies beyond what was seen
    curvature = curvature * np.minimum(1.0, 0.999 / (most * distance))[..., None]
    end = np.maximum(1 / np.maximum(curvature.max(axis=-1), 1e-12), 1.001 * distance)
    reach = math.sqrt(freedom) + 8

    def logged(start: Array, width: Array) -> Array:
        """log ∫ from start to start + width, plus start²/2; in logarithms, because x^(m−1)
        overflows with many degrees of freedom.
        """
        step = width[..., None] * (1 + NODES) / 2
        x = start[..., None] + step
        surface = np.maximum(1 - curvature[..., None, :] * x[..., None], 0.0).prod(axis=-1)
        exponent = (
            (freedom - 1) * np.log(np.maximum(x, 1e-300))
            - step * (start[..., None] + x) / 2
            + power[..., None] * np.log(np.maximum(surface, 1e-300))
        )
        largest = exponent.max(axis=-1, keepdims=True)
        return np.asarray(
            largest[..., 0]
            + np.log(
                np.maximum(
                    (NODE_WEIGHTS * np.exp(exponent - largest)).sum(axis=-1) * width / 2, 1e-300
                )
            )
        )

    start = np.maximum(np.minimum(distance, math.sqrt(freedom)) - 8, 0.0)
    inner = logged(start, np.minimum(distance - start, reach)) - start**2 / 2
    outer = (
        logged(distance, np.minimum(end - distance, reach / (1 + distance / 4))) - distance**2 / 2
    )
    return np.asarray(outer - np.logaddexp(inner, outer))


def _chi_scale(log_tail: Array, freedom: int) -> Array:
    """The quantile of χ² with this tail; in proportion to its logarithm in the far tail."""
    return np.asarray(
        _chi_quantile(freedom, np.exp(np.maximum(log_tail, -DEEP)))
        * np.maximum(log_tail / -DEEP, 1.0)
    )
