"""The posterior of a line from noisy first and second moments of (x, y).

Method.    Rows (x, y) jointly normal; predictors x ~ N(m, Σ), y = a + b'x + N(0, σ²), in half
           ranges. The released sums (Σc, Σcc') are then normal with mean n·E and covariance
           n·Cov, the fourth moments being those of normal rows, plus the noise that was drawn. All
           parameters together: the greatest density is found by a quasi-Newton search, and 2000
           draws from a t law (5 degrees of freedom) about it are weighted; where fewer than a
           tenth of them count, another t law is fitted to them and drawn from, up to four times.
Validity.  Clamping is *not* in this likelihood: ranges must hold ± 4 standard deviations of every
           column, or the result says that they do not. Private numbers of rows are one more
           parameter, every number believed alike beforehand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.inference.posteriors.laws import DrawnLaw, normalised
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis.descent import least

DRAWS, FREEDOM, ROUNDS = 2000, 5.0, 5
WIDER = 1.15  # of the t law, in standard deviations
LOWEST = -1e100


@dataclass(frozen=True)
class NoisySecondMoments:
    """Released sums: `first` Σc_j, `second` the upper triangle of Σc_jc_k, diagonal entries as
    Σ(1 − c_j²), with each one's noise variance; `rows` where public, else a noisy count, its
    variance and a public bound. The response is the last column.
    """

    columns: int
    first: Array
    second: Array
    variances: Array
    rows: int | None
    count: tuple[float, float] | None = None
    most: int | None = None

    @property
    def pairs(self) -> tuple[Any, Any]:
        return np.triu_indices(self.columns)


@dataclass(frozen=True)
class Line:
    """Parameters of many lines at once, in half ranges: means (lines, columns), covariances,
    slopes, intercepts (at the middle of the ranges), residual deviations, numbers of rows.
    """

    means: Array
    covariances: Array
    slopes: Array
    intercepts: Array
    residuals: Array
    rows: Array


def line_law(
    released: NoisySecondMoments, scales: tuple[float, ...], seed: str
) -> tuple[DrawnLaw, Array]:
    """Weighted draws of (intercept, slopes, residual deviation), all in half ranges; and for every
    column the least number of standard deviations that its range holds on a side, on average.
    """
    size = parameters_of(released)

    def density(at: Array) -> Array:
        return log_posterior(released, scales, at)

    center = _greatest(density, _starts(released, scales, size))
    root = _root(density, center)
    draws, weights = _weighted(density, center, root, Stream(seed))
    line = unpacked(released, scales, draws)
    values = np.column_stack([line.intercepts, line.slopes, line.residuals])
    deviations = np.sqrt(np.einsum("ljj->lj", line.covariances))
    room = (1 - np.abs(line.means)) / np.maximum(deviations, 1e-12)
    return DrawnLaw(values, weights), np.asarray(weights @ room)


def parameters_of(released: NoisySecondMoments) -> int:
    """How many numbers are unknown."""
    p = released.columns - 1
    return 2 * p + p * (p - 1) // 2 + p + 2 + (released.count is not None)


def unpacked(released: NoisySecondMoments, scales: tuple[float, ...], at: Array) -> Line:
    """Lines from standard-normal scores (lines, parameters): every prior is N(0, 1) in them."""
    slope, place, spread, factor = scales
    p, lines = released.columns - 1, len(at)
    places, logs = place * at[:, :p], np.log(spread) + np.log(factor) * at[:, p : 2 * p]
    start = 2 * p + p * (p - 1) // 2
    chain = np.zeros((lines, p, p))
    chain[:, np.arange(p), np.arange(p)] = 1.0
    rows, columns = np.tril_indices(p, -1)
    chain[:, rows, columns] = at[:, 2 * p : start]
    roots = chain * np.exp(np.clip(logs, -30, 30))[:, None, :]
    inner = roots @ np.swapaxes(roots, 1, 2)
    slopes = slope * at[:, start : start + p]
    intercepts = place * at[:, start + p]
    residuals = np.exp(np.clip(np.log(spread) + np.log(factor) * at[:, start + p + 1], -30, 30))
    across = np.einsum("ljk,lk->lj", inner, slopes)
    covariances = np.empty((lines, p + 1, p + 1))
    covariances[:, :p, :p] = inner
    covariances[:, :p, p] = covariances[:, p, :p] = across
    covariances[:, p, p] = np.einsum("lj,lj->l", across, slopes) + residuals**2
    ends = intercepts + np.einsum("lj,lj->l", places, slopes)
    means = np.column_stack([places, ends])
    return Line(means, covariances, slopes, intercepts, residuals, _rows(released, at))


def log_posterior(released: NoisySecondMoments, scales: tuple[float, ...], at: Array) -> Array:
    """Up to a constant, for many score vectors (lines, parameters)."""
    line = unpacked(released, scales, at)
    means, covariances = row_law(line.means, line.covariances, released.pairs)
    rows = line.rows[:, None]
    off = np.concatenate([released.first, released.second]) - rows * means
    whole = rows[:, :, None] * covariances + np.diag(released.variances)
    with np.errstate(all="ignore"):
        try:
            root = np.linalg.cholesky(whole)
        except np.linalg.LinAlgError:
            root = np.stack([_cholesky(each) for each in whole])
        solved = np.linalg.solve(root, off[:, :, None])[:, :, 0]
        logs = -0.5 * np.sum(solved**2, axis=1)
        logs = logs - np.log(np.einsum("ljj->lj", root)).sum(axis=1)
        prior = -0.5 * np.sum(at * at, axis=1)  # a private count's score has the count's own law
    return np.asarray(np.where(np.isfinite(logs), logs + prior, LOWEST))


def row_law(means: Array, covariances: Array, pairs: tuple[Any, Any]) -> tuple[Array, Array]:
    """Mean and covariance of one normal row's (c, c c' with 1 − c² on the diagonal)."""
    j, k = pairs
    sign = np.where(j == k, -1.0, 1.0)
    products = covariances[:, j, k] + means[:, j] * means[:, k]
    second = np.where(j == k, 1 - products, products)
    three = (
        means[:, None, j] * covariances[:, :, k] + means[:, None, k] * covariances[:, :, j]
    ) * sign
    a, b = np.meshgrid(np.arange(len(j)), np.arange(len(j)), indexing="ij")
    one, two, three_, four = j[a], k[a], j[b], k[b]

    def cov(left: Array, right: Array) -> Array:
        return np.asarray(covariances[:, left, right])

    def both(left: Array, right: Array) -> Array:
        return np.asarray(means[:, left] * means[:, right])

    fourth = cov(one, three_) * (cov(two, four) + both(two, four))
    fourth = fourth + cov(one, four) * (cov(two, three_) + both(two, three_))
    fourth = fourth + both(one, three_) * cov(two, four) + both(one, four) * cov(two, three_)
    fourth = fourth * sign[a] * sign[b]
    whole = np.concatenate(
        [
            np.concatenate([covariances, three], axis=2),
            np.concatenate([np.swapaxes(three, 1, 2), fourth], axis=2),
        ],
        axis=1,
    )
    return np.concatenate([means, second], axis=1), whole


def naive_line(
    released: NoisySecondMoments, scales: tuple[float, ...], seed: str, size: int = DRAWS
) -> DrawnLaw:
    """As if the released moments were those of the rows: conjugate draws of (intercept, slopes,
    residual deviation), slopes shrunk by their prior.
    """
    p = released.columns - 1
    rows = float(_rows(released, np.zeros((1, parameters_of(released))))[0])
    rows = max(rows, 3.0)
    matrix = np.zeros((p + 2, p + 2))
    matrix[0, 0] = rows
    matrix[0, 1:] = matrix[1:, 0] = released.first
    j, k = released.pairs
    second = np.where(j == k, rows - released.second, released.second)
    matrix[1 + j, 1 + k] = matrix[1 + k, 1 + j] = second
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, 1e-6 * rows)) @ vectors.T
    inner, across = matrix[: p + 1, : p + 1], matrix[: p + 1, p + 1]
    least = float(max(matrix[p + 1, p + 1] - across @ np.linalg.solve(inner, across), 1e-6 * rows))
    ridge = np.diag(np.array([scales[1], *[scales[0]] * p]) ** -2.0)
    precision = inner / (least / rows) + ridge
    center = np.linalg.solve(precision, across / (least / rows))
    stream = Stream(seed)
    normal = ndtri(stream.uniforms((size, p + 1), "normal"))
    found = center + normal @ np.linalg.inv(np.linalg.cholesky(precision))
    freedom = max(rows - p - 1, 1.0)
    gammas = stream.gammas(np.full(size, freedom / 2), "residual")
    residual = np.sqrt(least / (2 * np.maximum(gammas, 1e-300)))
    return DrawnLaw(np.column_stack([found, residual]), np.full(size, 1 / size))


# ── where it is, and draws ────────────────────────────────────────────────────────────────────────


def _rows(released: NoisySecondMoments, at: Array) -> Array:
    if released.count is None:
        return np.full(len(at), float(released.rows or 0))
    count, variance = released.count
    most = np.inf if released.most is None else float(released.most)
    return np.asarray(np.clip(count + np.sqrt(variance) * at[:, -1], 0.0, most))


def _cholesky(matrix: Array) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        return np.full(matrix.shape, np.nan)


def _starts(released: NoisySecondMoments, scales: tuple[float, ...], size: int) -> list[Array]:
    """What the prior says, and what the moments say where they are those of rows."""
    p, starts = released.columns - 1, [np.zeros(size)]
    slope, place, spread, factor = scales
    rows = float(_rows(released, np.zeros((1, size)))[0])
    if rows < 2:
        return starts
    means = np.clip(released.first / rows, -1, 1)
    j, k = released.pairs
    matrix = np.zeros((p + 1, p + 1))
    matrix[j, k] = matrix[k, j] = np.where(j == k, rows - released.second, released.second) / rows
    values, vectors = np.linalg.eigh(matrix - np.outer(means, means))
    matrix = (vectors * np.maximum(values, 0.05 * spread**2)) @ vectors.T
    root = np.linalg.cholesky(matrix)
    logs = (np.log(np.diag(root)) - np.log(spread)) / np.log(factor)
    chain = root / np.diag(root)
    slopes = np.linalg.solve(matrix[:p, :p], matrix[:p, p])
    start = np.zeros(size)
    start[:p], start[p : 2 * p] = means[:p] / place, logs[:p]
    rows_at, columns_at = np.tril_indices(p, -1)
    begin = 2 * p + p * (p - 1) // 2
    start[2 * p : begin] = chain[rows_at, columns_at]
    start[begin : begin + p] = slopes / slope
    start[begin + p] = (means[p] - slopes @ means[:p]) / place
    start[begin + p + 1] = logs[p]
    return [*starts, np.clip(start, -6.0, 6.0)]


def _greatest(density: Callable[[Array], Array], starts: list[Array]) -> Array:
    """The place of the greatest density that a quasi-Newton search finds."""
    size = len(starts[0])
    step = 1e-4 * np.eye(size)

    def worth(at: Array) -> tuple[float, Array]:
        found = density(np.concatenate([at[None], at + step, at - step]))
        slope = (found[1 : size + 1] - found[size + 1 :]) / 2e-4
        return -float(found[0]), -np.nan_to_num(slope)

    start = starts[int(np.argmax(density(np.stack(starts))))]
    return least(worth, start, 300, _settled)


def _settled(values: list[float]) -> bool:
    return len(values) > 1 and values[-2] - values[-1] < 1e-7 * max(abs(values[-1]), 1.0)


def _root(density: Callable[[Array], Array], center: Array) -> Array:
    """The root of the inverse curvature: columns that standard-normal numbers multiply."""
    size = len(center)
    step = 0.02
    for _ in range(2):
        units = np.eye(size)
        ups, downs = density(center + step * units), density(center - step * units)
        top = float(density(center[None])[0])
        j, k = np.triu_indices(size, 1)
        corners = [
            density(center + step * (a * units[j] + b * units[k])) if len(j) else np.zeros(0)
            for a, b in ((1, 1), (-1, -1), (1, -1), (-1, 1))
        ]
        curvature = np.diag((2 * top - ups - downs) / step**2)
        curvature[j, k] = -(corners[0] + corners[1] - corners[2] - corners[3]) / (4 * step**2)
        curvature[k, j] = curvature[j, k]
        step = float(np.clip(0.3 / np.sqrt(max(np.abs(np.diag(curvature)).max(), 1e-6)), 1e-4, 0.3))
    values, vectors = np.linalg.eigh(np.nan_to_num(curvature))
    return np.asarray(vectors / np.sqrt(np.clip(values, 0.2, 1e12)))


def _weighted(
    density: Callable[[Array], Array], center: Array, root: Array, stream: Stream
) -> tuple[Array, Array]:
    """Draws of all parameters with their weights."""
    for turn in range(ROUNDS):
        normal = ndtri(stream.uniforms((DRAWS, len(center)), f"normal {turn}"))
        shrink = stream.gammas(np.full(DRAWS, FREEDOM / 2), f"chi {turn}") / (FREEDOM / 2)
        standard = WIDER * normal / np.sqrt(shrink)[:, None]
        draws = center + standard @ root.T
        size = len(center)
        proposed = (
            -(FREEDOM + size) / 2 * np.log1p(np.sum(standard**2, axis=1) / (WIDER**2 * FREEDOM))
        )
        weights = normalised(density(draws) - proposed)
        if 1 / np.sum(weights**2) >= DRAWS / 10 or turn == ROUNDS - 1:
            break
        flat = normalised(np.log(np.maximum(weights, 1e-300)) * 0.5)  # tempered, so that many count
        center = flat @ draws
        off = draws - center
        spread = (off * flat[:, None]).T @ off + 1e-10 * np.eye(size)
        root = np.linalg.cholesky(spread)
    return draws, weights
