"""Intervals for shares (proportions, histogram cells) from noisy counts (reference.md M1, M2).

For a candidate share p, T(p) = X − p·N has mean 0 and variance N·p(1−p) + Var(noise), evaluated at
p itself (a score interval), so the interval is right for rare cells and never clamps the noisy
count first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.results.decode import at_most, noise_of, to_float
from discreet.inference.results.ends import last_kept
from discreet.inference.results.laws import Array, Noise, allow_for_noisy_variance, half_width
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.queries.shares import ShareCounts

NONE = Noise(0.0)
USUAL = 0.95  # the level at which a noisy variance between units is allowed for


@dataclass(frozen=True)
class ShareStatistics:
    """Noisy counts X by cell and the number N they are shares of.

    `others` is the noise of N − X: 0 where N is public,
    else the noise of the sum of all other cells. Where N is a public number less a noisy one,
    `total_noise` is its noise, and `in_count` how much of that noise X has. `cluster` is how many
    times the variance of independent rows the sampling variance is.
    """

    count: Array
    total: Array
    noise: Noise
    others: Noise
    cluster: Any = 1
    public_total: bool = True
    total_noise: Noise = NONE
    in_count: float = 0.0

    @property
    def rows(self) -> Array:
        return np.asarray(np.maximum(self.total, 1.0))

    @property
    def share(self) -> Array:
        """X/N, unclamped."""
        return np.asarray(self.count / self.rows)

    def noise_at(self, p: Array) -> Noise:
        """Noise of T(p): (1−p)·noise of X − p·noise of the others; of X alone where N is public."""
        if self.public_total:
            left = self.total_noise.scaled(self.in_count - p)
            return Noise(self.noise.variance + left.variance, self.noise.fourth + left.fourth)
        return self.noise.scaled(1 - p) + self.others.scaled(p)

    def sampling_variance(self, p: Array) -> Array:
        return np.asarray(self.cluster * self.rows * p * (1 - p))


def decode_shares(
    mechanism: Mechanism, integers: npt.NDArray[Any], *, public_rows: int | None, cluster: int
) -> ShareStatistics:
    """Counts of disjoint cells; `integers` has shape (cells, …).

    Without a public total, N is the sum of the cells.
    """
    counts = to_float(mechanism, integers, 1.0)
    noise = noise_of(mechanism, 1.0)
    if public_rows is not None:
        return ShareStatistics(
            counts, np.full(counts.shape, float(public_rows)), noise, NONE, cluster, True
        )
    total = np.broadcast_to(counts.sum(axis=0), counts.shape)
    others = counts.shape[0] - 1
    return ShareStatistics(
        counts, total, noise, Noise(noise.variance * others, noise.fourth * others), cluster, False
    )


def decode_held_shares(
    mechanism: Mechanism, integers: npt.NDArray[Any], *, rows: int, cluster: int
) -> ShareStatistics:
    """Counts of disjoint cells of which the last one, of rows without a value, is taken away from a
    public number of rows.
    """
    counts, noise = to_float(mechanism, integers, 1.0), noise_of(mechanism, 1.0)
    held, left = at_most(rows - counts[-1], noise, rows)
    cells = counts[:-1]
    total = np.full(cells.shape, float(np.maximum(held, 1.0)))
    return ShareStatistics(cells, total, noise, NONE, cluster, True, left)


def decode_share(
    query: ShareCounts,
    mechanism: Mechanism,
    integers: npt.NDArray[Any],
    *,
    public_rows: int | None,
    cluster: int,
) -> ShareStatistics:
    """One level's count k among k + r rows, from k + r and k − r."""
    (rows, rows_noise), (difference, noise) = (
        (to_float(mechanism, integers[place : place + 1], unit), noise_of(mechanism, unit))
        for place, unit in enumerate(query.unit_values())
    )
    if public_rows is not None:
        rows, rows_noise = at_most(rows, rows_noise, public_rows)
    return ShareStatistics(
        (rows + difference) / 2,
        rows,
        noise.scaled(0.5),
        NONE,
        cluster,
        True,
        rows_noise,
        0.5,
    )


def unit_effect(
    squares: Array, deviation: Array, known: Array, binomial: Array, most: int
) -> Array:
    """How many times the variance of independent rows that between units is: from the noisy
    `squares` of units' sums with the standard deviation of their noise, beside the `known` variance
    of the noise in a count.

    Method.   The variance and the widening of `allow_for_noisy_variance`, as one variance; one row
              with the largest effect, `most`, is added, so that a cell in which nothing is seen has
              that one.
    Validity. At most `most`: (Σ rows)² ≤ k·Σ rows² for units of k rows.
    """
    variance, factor = allow_for_noisy_variance(USUAL, squares, deviation, known)
    whole = factor**2 * (variance + known) - known
    return np.asarray(np.clip((whole + most) / (np.maximum(binomial, 0.0) + 1), 0.0, most))


@dataclass(frozen=True)
class UnitCounts:
    """Noisy counts by cell of units with at most `rows` rows, Σ N(k − N) and Σ N(T − N) over units
    with N rows in the cell and T in all, and their noise.
    """

    rows: int
    count: Array
    gap: Array
    elsewhere: Array
    noise: Noise
    gap_noise: Noise
    elsewhere_noise: Noise

    @property
    def squares(self) -> tuple[Array, Array]:
        """Σ N² and the variance of its noise."""
        noise = self.rows**2 * self.noise.variance + self.gap_noise.variance
        return np.asarray(self.rows * self.count - self.gap), np.asarray(noise)

    def count_effect(self) -> Array:
        """The effect on a count, of units that arrive at random."""
        squares, noise = self.squares
        known = np.asarray(self.noise.variance + 0.0 * self.count)
        return unit_effect(squares, np.sqrt(noise), known, self.count, self.rows)

    def shares(self) -> ShareStatistics:
        """Shares of all that is counted, with the variance of Σ(N − pT)² between units."""
        cells = self.count.size
        total = np.full(self.count.shape, float(self.count.sum()))
        noise, others = self.noise, cells - 1
        made = ShareStatistics(
            self.count,
            total,
            noise,
            Noise(noise.variance * others, noise.fourth * others),
            self.rows,
            False,
        )
        p = np.clip(made.share, 0.0, 1.0)
        (squares, v), v_else = self.squares, self.elsewhere_noise.variance
        products = squares + self.elsewhere
        spread = squares - 2 * p * products + p**2 * products.sum()
        error = (1 - p) ** 4 * v + (2 * p - p**2) ** 2 * v_else + others * p**4 * (v + v_else)
        known = np.asarray(made.noise_at(p).variance + 0.0 * p)
        binomial = made.rows * p * (1 - p)
        effect = unit_effect(spread, np.sqrt(error), known, binomial, self.rows)
        return replace(made, cluster=effect)


def share_interval(
    statistics: ShareStatistics, level: float, *, target: str = "population"
) -> tuple[Array, Array]:
    """The interval for the share, within [0, 1]."""
    low, high = _endpoint(statistics, level, -1, target), _endpoint(statistics, level, +1, target)
    # a count below 0 (above N) still allows every share that a count of 0 (of N) allows
    below, above = statistics.count < 0, statistics.count > statistics.rows
    if below.any():
        empty = replace(statistics, count=0.0 * statistics.count)
        high = np.where(below, np.maximum(high, _endpoint(empty, level, +1, target)), high)
    if above.any():
        full = replace(statistics, count=statistics.rows)
        low = np.where(above, np.minimum(low, _endpoint(full, level, -1, target)), low)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _endpoint(statistics: ShareStatistics, level: float, side: int, target: str) -> Array:
    """The end of {p : |X − pN| ≤ half-width at p} on one side; the excess is monotone."""

    def allowed(p: Array) -> npt.NDArray[np.bool_]:
        sampling = statistics.sampling_variance(p) if target == "population" else 0.0 * p
        half = half_width(level, sampling, statistics.noise_at(p))
        return np.asarray(side * (p * statistics.rows - statistics.count) <= half)

    inner = np.clip(statistics.share, 0.0, 1.0)
    # where 0 (or 1) itself is allowed, exactly that
    return last_kept(allowed, inner, np.full_like(inner, 1.0 if side > 0 else 0.0), 40)[1]


def poisson_interval(
    count: Array, noise: Noise, level: float, *, cluster: Any
) -> tuple[Array, Array]:
    """The interval {λ ≥ 0 : |X − λ| ≤ half-width at sampling variance cluster·λ} for an expected
    count.
    """

    def end(start: Array, side: int) -> Array:
        inner = np.maximum(start, 0.0)
        wide = half_width(level, cluster * (inner + 1), noise)
        outer = inner + 4 * (cluster + 1) * (wide + 1) if side > 0 else np.zeros_like(inner)

        def allowed(mean: Array) -> npt.NDArray[np.bool_]:
            return np.asarray(side * (mean - start) <= half_width(level, cluster * mean, noise))

        return last_kept(allowed, inner, outer, 60)[1]

    low, high = end(count, -1), end(count, +1)
    if (count < 0).any():
        high = np.where(count < 0, np.maximum(high, end(0.0 * count, +1)), high)
    return low, high
