"""Statistics of noisy tables of counts whose rows and columns may be independent, and their null
law with the noise as it was released.

A table X of r × c cells is the table of the data plus noise of variance v in every cell. Under
independence its cells have means λ = N·p_i·q_j. Statistics are weighted by the variance λ + v of a
cell, so that they turn into the textbook's where noise is small and into unweighted ones where it
rules. What is unknown (N, p, q) is read off the same noisy table, and the null law is simulated
from there: sampling, noise and the reading are all repeated (a parametric bootstrap of a
studentised statistic). Tests of independence use the distance to the nearest independent table
(`discreet.inference.tables.association`); power is planned with `chi_square`. See
docs/theory/tests.md.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtri

from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import uniforms
from discreet.inference.tables.rank_one import proportional_evidence

FEW_DRAWS, MANY_DRAWS = 1999, 19_999
LEAST_EXCEEDING = 20  # with fewer draws beyond the statistic the simulation is continued
CHUNK = 1 << 20
# over Var(d)/d² of a difference d of two margins: less than two standard errors of it are not kept
DRAWN_IN = 4.0
LARGEST_TABLED = 1e6  # Poisson laws of larger means are rounded normal laws


@dataclass(frozen=True)
class NoisyTables:
    """Noisy tables of shape (…, rows, columns), never clamped, and what is known about them.

    `total` is the number of rows in each table (shape …) where it is public, else None; `cluster`
    rows of one unit may be fully alike; `at_most` bounds all rows where a public number does.
    """

    counts: Array
    noise: ReleasedNoise
    total: Any = None
    cluster: int = 1
    at_most: float | None = None

    @property
    def cells(self) -> int:
        return int(self.counts.shape[-1] * self.counts.shape[-2])

    @property
    def lost(self) -> bool:
        """Whether the noise of a contrast of all cells exceeds all rows there are, so that no
        association could be told from it.
        """
        rows = max(
            min(float(self.known.sum()), math.inf if self.at_most is None else self.at_most), 1.0
        )
        return bool(math.sqrt(self.noise.variance * self.counts.size) >= rows)

    @property
    def known(self) -> Array:
        """The tables, moved equally in every cell to a public total:
        least squares, given the total.
        """
        if self.total is None:
            return self.counts
        excess = self.counts.sum(axis=(-2, -1)) - self.total
        return np.asarray(self.counts - (excess / self.cells)[..., None, None])


@dataclass(frozen=True)
class Independence:
    """The fitted null: N, row shares p and column shares q, all read off the noisy table."""

    rows: Array
    p: Array
    q: Array

    @property
    def means(self) -> Array:
        return np.asarray(self.rows[..., None, None] * self.p[..., :, None] * self.q[..., None, :])


def read_margins(tables: NoisyTables) -> Independence:
    """Margins of the noisy table as they are: negative ones count as 0;
    where nothing is left, all shares are equal.
    """
    known = tables.known
    total = np.maximum(known.sum(axis=(-2, -1)), 0.0)
    return Independence(
        np.asarray(total), shares_of(known.sum(axis=-1)), shares_of(known.sum(axis=-2))
    )


def fit_independence(tables: NoisyTables) -> Independence:
    """The null that tables are simulated from: margins of the noisy table, drawn in as far as noise
    explains their spread, negative ones 0, and one row more, spread over all levels.

    Validity. Levels that nobody saw may exist, and so they do in the simulation: without the row
              tables with expected counts below 1 are rejected too often (0.060 to 0.067 for 0.05 at
              50 rows, ε = 2).
    """
    known, variance = tables.known, tables.noise.variance
    total = np.maximum(known.sum(axis=(-2, -1)), 0.0)
    rows, columns = known.shape[-2:]
    return Independence(
        np.asarray(total),
        drawn_in(known.sum(axis=-1), columns * variance, tables.cluster),
        drawn_in(known.sum(axis=-2), rows * variance, tables.cluster),
    )


def drawn_in(margin: Array, variance: float, cluster: int) -> Array:
    """Shares of a noisy margin, drawn towards equal ones: two levels by `kept_difference`, k of
    them by the positive-part rule of James and Stein, f = 1 − (k−2)·v/Σ(m − m̄)², v the variance of
    each m's noise.
    """
    levels = margin.shape[-1]
    middle = margin.mean(axis=-1, keepdims=True)
    if levels == 2:
        kept = kept_difference(margin, variance, cluster)[..., None]
    else:
        spread = ((margin - middle) ** 2).sum(axis=-1, keepdims=True)
        kept = np.maximum(1 - (levels - 2) * variance / np.maximum(spread, 1e-200), 0.0)
    return shares_of(np.maximum(middle + kept * (margin - middle), 0.0) + 1 / levels)


def kept_difference(margin: Array, variance: float, cluster: int) -> Array:
    """How much of the difference d of two noisy margins is kept (0 to 1): √(1 − r − (4r)³)⁺,
    r = Var(d)/d² with sampling and noise.

    Method. d² is too large by the variance of d: 1 − r takes that off. Near 0 its positive part
            leaves too much, and what is left turns variances by chance, at a cost of power: (4r)³
            takes off whatever is below two standard errors (`DRAWN_IN`).
    """
    positive = np.maximum(margin, 0.0)
    sampling = (
        4
        * cluster
        * positive[..., 0]
        * positive[..., 1]
        / np.maximum(positive.sum(axis=-1), 1e-300)
    )
    error = np.minimum(
        (sampling + 2 * variance) / np.maximum((margin[..., 0] - margin[..., 1]) ** 2, 1e-200), 1e3
    )
    return np.asarray(np.sqrt(np.maximum(1 - error - (DRAWN_IN * error) ** 3, 0.0)))


def shares_of(margin: Array) -> Array:
    """Non-negative numbers that add up to 1."""
    positive = np.maximum(margin, 0.0)
    whole = positive.sum(axis=-1, keepdims=True)
    return np.asarray(
        np.where(whole > 0, positive / np.where(whole > 0, whole, 1.0), 1 / margin.shape[-1])
    )


def cell_variance(tables: NoisyTables, means: Array) -> Array:
    """Variance of a cell under the null: sampling (Poisson, `cluster` rows at a time) and noise."""
    return np.asarray(tables.cluster * means + max(tables.noise.variance, 1e-9))


def chi_square(tables: NoisyTables) -> Array:
    """The least weighted distance of the table to the plane that touches independent tables at the
    fitted one; about χ² with (r−1)(c−1) degrees of freedom where noise is small.

    Method.    Σ(X − λ − Mβ)²/(λ + v) minimised over β,
               M the tangent space of independent tables at λ (row and column effects).
    Reference. Kifer and Rogers (2017), minimum χ² with noise in its covariance.
    """
    fit = read_margins(tables)
    means = fit.means
    weight = 1 / cell_variance(tables, means)
    residual = tables.known - means
    p, q = fit.p, fit.q
    rows, columns = p.shape[-1], q.shape[-1]
    normal = np.zeros((*p.shape[:-1], rows + columns, rows + columns))
    normal[..., range(rows), range(rows)] = (weight * q[..., None, :] ** 2).sum(axis=-1)
    normal[..., range(rows, rows + columns), range(rows, rows + columns)] = (
        weight * p[..., :, None] ** 2
    ).sum(axis=-2)
    normal[..., :rows, rows:] = weight * q[..., None, :] * p[..., :, None]
    normal[..., rows:, :rows] = np.swapaxes(normal[..., :rows, rows:], -1, -2)
    free = np.concatenate([p, -q], axis=-1)  # (p, −q) moves nothing: one parameter is redundant
    scale = (
        np.trace(normal, axis1=-2, axis2=-1)[..., None, None]
        / (free**2).sum(axis=-1)[..., None, None]
    )
    normal = normal + scale * free[..., :, None] * free[..., None, :]
    right = np.concatenate(
        [
            (weight * q[..., None, :] * residual).sum(axis=-1),
            (weight * p[..., :, None] * residual).sum(axis=-2),
        ],
        axis=-1,
    )
    solution = np.linalg.solve(normal, right[..., None])[..., 0]
    return np.asarray((weight * residual**2).sum(axis=(-2, -1)) - (right * solution).sum(axis=-1))


def rank_scores(fit: Independence) -> Array:
    """Mid-ranks of the columns among all rows, as shares in (0, 1)."""
    return np.asarray(np.cumsum(fit.q, axis=-1) - fit.q / 2)


def rank_weights(tables: NoisyTables, fit: Independence) -> Array:
    """Centred mid-ranks of the columns, less where a column cannot be seen: (s − s̄)·λ/(λ + G·v),
    λ the column's rows and v the noise in each of its G cells.

    Method. A shift of one row of the table against the others moves column j by about λ·(s − s̄),
            and the difference of its cells has variance λ + G·v: these weights find it best.
            Without noise they are the mid-ranks; with noise they ignore empty tails, where ranks
            are extreme and counts are noise.
    """
    scores = rank_scores(fit)
    centred = scores - (scores * fit.q).sum(axis=-1, keepdims=True)
    sampling = tables.cluster * fit.rows[..., None] * fit.q
    weights = (
        centred * sampling / (sampling + tables.counts.shape[-2] * max(tables.noise.variance, 1e-9))
    )
    return np.asarray(weights - (weights * fit.q).sum(axis=-1, keepdims=True))


def rank_statistic(tables: NoisyTables, fit: Independence, weights: Array) -> tuple[Array, Array]:
    """(t, variance) by row: t = Σ w_j·X_gj; sampling variance N_g·Σ w²q and noise v·Σ w².

    The weights are centred: Σ wq = 0.
    """
    spread = (weights**2 * fit.q).sum(axis=-1)
    variance = (
        tables.cluster * fit.rows[..., None] * fit.p * spread[..., None]
        + max(tables.noise.variance, 1e-9) * (weights**2).sum(axis=-1)[..., None]
    )
    return (weights[..., None, :] * tables.known).sum(axis=-1), np.maximum(variance, 1e-300)


def _rows_and_rank_sums(tables: NoisyTables) -> tuple[Array, Array, Array]:
    """(N, t, variance of t) by row, t = Σ w_j·X_gj with weights that add up to 0, so that N and t
    have independent noise; without a shift t is proportional to N.
    """
    fit = fit_independence(tables)
    weights = rank_weights(tables, fit)
    sampling = (
        tables.cluster * fit.rows[..., None] * fit.p * (weights**2 * fit.q).sum(axis=-1)[..., None]
    )
    even = weights - weights.mean(axis=-1, keepdims=True)
    variance = sampling + max(tables.noise.variance, 1e-9) * (even**2).sum(axis=-1)[..., None]
    return (
        tables.counts.sum(axis=-1),
        (even[..., None, :] * tables.counts).sum(axis=-1),
        np.maximum(variance, 1e-12),
    )


def kruskal_wallis(tables: NoisyTables) -> Array:
    """Whether some rows of the table lie higher than others: the distance of row totals N and rank
    sums t to proportional ones (`proportional_evidence`), about χ² with r − 1 degrees of freedom.

    Method. Rank sums less a common multiple of noisy N, as if N were known, reject up to 0.22 for
            0.05 where one bin holds most of the rows and one group a tenth of them.
    """
    rows, sums, variance = _rows_and_rank_sums(tables)
    found = proportional_evidence(
        rows, sums, tables.counts.shape[-1] * tables.noise.variance, variance
    )[1]
    # without rows nothing is told
    return (
        found
        if tables.total is None
        else np.asarray(np.where(np.asarray(tables.total) > 0, found, 0.0))
    )


def mann_whitney(tables: NoisyTables) -> Array:
    """Of two rows: the signed root of `kruskal_wallis`,
    positive where the second row lies higher.
    """
    rows, sums, _ = _rows_and_rank_sums(tables)
    side = np.sign(rows[..., 0] * sums[..., 1] - rows[..., 1] * sums[..., 0])
    return np.asarray(side * np.sqrt(np.maximum(kruskal_wallis(tables), 0.0)))


def poisson_draws(uniform: Array, mean: float) -> Array:
    """Poisson numbers by inversion of uniform ones."""
    if mean <= 0:
        return np.zeros_like(uniform)
    if mean > LARGEST_TABLED:
        return np.asarray(np.maximum(np.rint(mean + math.sqrt(mean) * ndtri(uniform)), 0.0))
    reach = 9 * math.sqrt(mean) + 30
    values = np.arange(max(0, math.floor(mean - reach)), math.ceil(mean + reach) + 1, dtype=float)
    law = np.cumsum(np.exp(values * math.log(mean) - mean - gammaln(values + 1)))
    return np.asarray(values[np.minimum(np.searchsorted(law, uniform), values.size - 1)])


def simulated(tables: NoisyTables, fit: Independence, draws: int, start: int) -> NoisyTables:
    """`draws` noisy tables of the fitted null (a new first axis): Poisson cells, `cluster` rows at
    a time, and the released noise.

    A Poisson total stands for the fixed one: no statistic here depends on it to first order, and
    each simulated table knows its own where it is public.
    """
    means = fit.means
    size = means.size
    uniform = uniforms(start, (draws, 2 * size))
    counts = np.stack(
        [
            tables.cluster * poisson_draws(uniform[:, cell], mean / tables.cluster)
            for cell, mean in enumerate(means.ravel())
        ],
        axis=1,
    )
    noisy = (counts + tables.noise.quantile(uniform[:, size:])).reshape(draws, *means.shape)
    total = None if tables.total is None else counts.reshape(draws, *means.shape).sum(axis=(-2, -1))
    return replace(tables, counts=noisy, total=total)


def tail_by_simulation(
    value: float,
    simulate: Callable[[int, int], Array],
    *,
    few: int = FEW_DRAWS,
    many: int = MANY_DRAWS,
) -> tuple[float, int]:
    """(p-value, draws): the share of simulated statistics that reach `value`, itself counted;
    `simulate(draws, first)` gives the next ones.

    More draws are made where fewer than `LEAST_EXCEEDING` of the first reach it; the least p-value
    is 1/(many + 1). What is not a number is no evidence: p = 1.
    """
    reached, done = 0, 0
    for goal in (few, many):
        while done < goal:
            drawn = simulate(goal - done, done)
            reached += int(
                np.count_nonzero(
                    ~(drawn < value * (1 - 1e-12) if value > 0 else drawn < value * (1 + 1e-12))
                )
            )
            done += len(drawn)
        if reached >= LEAST_EXCEEDING:
            break
    return (reached + 1) / (done + 1), done


def table_p_value(
    tables: NoisyTables,
    statistic: Callable[[NoisyTables], Array],
    seed: int,
    *,
    few: int = FEW_DRAWS,
    many: int = MANY_DRAWS,
) -> tuple[float, float, int]:
    """(statistic, p-value, draws) against large values of `statistic`,
    which gives one number a draw.
    """
    fit = fit_independence(tables)
    size = 2 * fit.means.size

    def simulate(draws: int, first: int) -> Array:
        # statistics may need a matrix of rows and columns for each
        draws = min(draws, max(1, CHUNK // max(size, sum(fit.means.shape[-2:]) ** 2)))
        return statistic(simulated(tables, fit, draws, seed + first * size))

    value = float(statistic(tables))
    return value, *tail_by_simulation(value, simulate, few=few, many=many)


def seed_of(release: Any) -> int:
    """Where the simulation for a release begins: fixed with its ledger entry, so that a result
    never changes and simulation errors of different releases are unrelated.
    """
    text = f"discreet.inference/simulation/{release.key}/{release.entry}/{release.entry_hash}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 2
