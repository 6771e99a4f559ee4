"""Tests of means from noisy counts, sums and spreads: one sample, pairs, two groups (Welch),
several groups (analysis of variance) (reference.md F1–F4).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv, ndtri

from discreet.inference.counts.tulap import ReleasedNoise, released_noise
from discreet.inference.means.hidden_spread import studentising_variance
from discreet.inference.means.means import MeanStatistics, decode_means, mean_interval
from discreet.inference.means.results import (
    MeanResult,
    cell_integers,
    column_grid,
    mean_statistics,
    moments_of,
    within,
)
from discreet.inference.results.evidence import (
    Evidence,
    freedom_text,
    place_of,
    sign_of,
    with_evidence,
)
from discreet.inference.results.laws import Array, student_factor
from discreet.inference.results.null_law import NullLaw, Recorded, from_intervals
from discreet.inference.results.results import Quantity, checked_level, checked_target
from discreet.inference.results.summary import Summary
from discreet.inference.simulation.streams import uniforms
from discreet.inference.tables.groups import BaselineResult, Pair, pair_level
from discreet.inference.tables.rank_one import (
    Nearest,
    curvature_power,
    curvatures,
    evidence,
    nearest_rank_one,
)
from discreet.inference.tables.tables import (
    CHUNK,
    FEW_DRAWS,
    MANY_DRAWS,
    drawn_in,
    seed_of,
    tail_by_simulation,
)
from discreet.trusted.release import Release

SMALLEST_TAIL = 1e-9
TURNS = 3  # between the common mean and the variances it gives
# of the noise of a sum is left to its variance, whatever the noise of the rows takes of it
LEAST_SHARE = 0.3


def mean_p_value(statistics: MeanStatistics, null: float) -> float:
    """1 − the least level whose interval contains the mean `null` (in units of c):
    the test that belongs to `mean_interval`.

    A null outside [−1, 1], the range of c, is told from every possible mean: p = 0 there is
    reported as the least p-value.
    """
    if statistics.count[0] <= 0:
        return 1.0
    candidate = np.array([[null]])

    def inside(tail: float) -> bool:
        level = 1 - tail
        return bool(
            statistics.covers(
                candidate, level, "population", student_factor(level, statistics.freedom)
            )[0, 0]
        )

    low, high = np.log(SMALLEST_TAIL), 0.0  # logarithms of the p-value
    if not inside(SMALLEST_TAIL):
        return SMALLEST_TAIL
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low))


class MeanTestResult(MeanResult):
    """A mean, or the mean difference of two columns, and a test of its null value.

    *Validity*: independent rows; values outside the declared range count as the nearest bound.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private test of a mean"

    @property
    def null(self) -> float:
        """The mean that is tested."""
        return self.release.description.edges[0]

    @property
    def p_value(self) -> float:
        """Of the two-sided test."""
        return self.test().p_value

    def test(self, null: float | None = None, *, alternative: str = "two-sided") -> Evidence:
        """Whether the population's mean is `null` (default: the value that was asked about);
        another value costs nothing.

        Method.   Inverts `confidence_interval`: Fieller's statistic with noise and a sampling
                  variance that is known with noise.
        Validity. As the interval's coverage, 0.943 to 0.975 at nominal 0.95:
                  tests/inference/results/test_laws.py, benchmarks/coverage_basic.py.
        """
        sign, value = sign_of(alternative), float(self.null if null is None else null)
        statistics = mean_statistics(self)
        center, half_range, _ = column_grid(self)
        candidate = (value - center) / half_range
        both = mean_p_value(statistics, candidate)
        deviation = float(statistics.first[0] - candidate * statistics.count[0])
        agrees = sign * deviation > 0
        p = both if not sign else (both / 2 if agrees else 1 - both / 2)
        error = float(
            np.sqrt(np.ravel(statistics.sampling_variance() + statistics.noise().variance)[0])
        )
        method = (
            "by inverting the interval"
            if p > SMALLEST_TAIL
            else f"by inverting the interval; p ≤ {SMALLEST_TAIL:g}, below which none is told apart"
        )
        return Evidence(
            f"the mean of {self.release.description.column} is {value:g}",
            alternative,
            deviation / max(error, 1e-300),
            p,
            method,
            law=functools.partial(self._null_law, value, alternative),
        )

    def _null_law(self, null: float, alternative: str) -> NullLaw:
        estimate = float(self.quantities()[-1].estimate[0])

        def ends(level: float) -> tuple[float, float]:
            found = self.quantities(level)[-1]
            return float(found.low[0]), float(found.high[0])

        return from_intervals(ends, estimate, null, alternative, "mean that would be estimated")

    def plot(
        self,
        level: float = 0.95,
        *,
        ax: Any = None,
        title: str | None = None,
        path: str | None = None,
    ) -> Any:
        """The mean with its intervals, beside the null law of the test."""
        from discreet.plots.nulls import plot_tested

        return plot_tested(self, checked_level(level), ax=ax, title=title, path=path)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print, with what the test says below it."""
        return with_evidence(MeanResult.summary(self, level, target=target), self.test())


class PairedResult(MeanTestResult):
    """The mean difference of two columns of the same rows. *Validity*: independent rows (pairs)."""

    __slots__ = ()
    title: ClassVar[str] = "Private paired comparison"


@dataclass(frozen=True)
class EqualMeans:
    """The fitted null of equal means in units of c:
    the common mean, and rows and Σ(c − m)² by group.
    """

    mean: Array
    rows: Array
    squares: Array


def _rows(statistics: MeanStatistics) -> Array:
    """Noisy rows by group, moved equally to the public total where there is one."""
    if statistics.total is None:
        return statistics.count
    return np.asarray(
        statistics.count
        + (statistics.total - statistics.count.sum(axis=-1, keepdims=True))
        / statistics.count.shape[-1]
    )


def _drawn_rows(statistics: MeanStatistics) -> Array:
    """Rows by group, at least 0, drawn towards equal ones as far as noise explains their spread
    (`drawn_in`, as the margins of tables).
    """
    rows = _rows(statistics)
    whole = np.maximum(rows.sum(axis=-1, keepdims=True), 0.0)
    return np.asarray(
        whole * drawn_in(rows, float(np.max(statistics.count_noise.variance)), statistics.cluster)
    )


def _drawn_squares(statistics: MeanStatistics, m: Array, drawn: Array) -> Array:
    """Σ(c − m)² by group; more than two are drawn towards one variance per row by the positive-part
    rule of James and Stein (as margins, `drawn_in`). May be negative. `drawn` are rows by group.
    """
    squares, error, predicted = statistics.squares_about(m, _rows(statistics))
    together = (
        drawn
        * squares.sum(axis=-1, keepdims=True)
        / np.maximum(drawn.sum(axis=-1, keepdims=True), 1e-300)
    )
    apart = squares - together
    expected = (error - predicted).sum(axis=-1, keepdims=True) * (1 - 2 / drawn.shape[-1])
    return np.asarray(
        together
        + np.maximum(1 - expected / np.maximum((apart**2).sum(axis=-1, keepdims=True), 1e-200), 0.0)
        * apart
    )


def _compared_squares(statistics: MeanStatistics, m: Array, drawn: Array) -> tuple[Array, Array]:
    """Σ(c − m)² by group, at most what the range allows, and the variance of the noise that these
    bring into the variance of a difference of means; `drawn` are rows by group.

    Method. A group is compared with the others: with p the share of the difference's variance that
            is its own and q = 1 − p, the variance is p·S₁ + q·S₂ in units of both. Its noise has
            the variance (p² + q²)·Var S, less what is known of rows that add up to a total (their
            errors cancel in two equal groups), less what the difference itself predicts:
            the covariance of p·S₁ + q·S₂ with it goes by p^1.5 − q^1.5, which is 0 for equal groups
            too.
    """
    rows = _rows(statistics)
    squares, error, predicted = statistics.squares_about(m, rows)
    others = (drawn.sum(axis=-1, keepdims=True) - drawn) / (drawn.shape[-1] - 1)
    own = others**2 / np.maximum(drawn**2 + others**2, 1e-300)
    known = (
        0.0
        if statistics.total is None
        else (1 + m**2) ** 2 * statistics.count_noise.variance / drawn.shape[-1]
    )
    error = (
        (own**2 + (1 - own) ** 2) * error - known - (own**1.5 - (1 - own) ** 1.5) ** 2 * predicted
    )
    return np.minimum(squares, np.maximum(rows, 0.0) * np.maximum(1 - m**2, 0.0)), np.maximum(
        error, 0.0
    )


def nearest_means(statistics: MeanStatistics) -> Nearest:
    """The nearest rows N and sums F = m·N of groups with one mean m:
    a matrix of rank one (groups are the last axis).

    Method. Both N and F have noise: a common mean from the noisy N as they are is drawn to the
            middle of the range, and where it lies far from there equal means were rejected up to
            0.11 for 0.05. A sum's variance is what `studentising_variance` says at that m, less
            what N takes; its Laplace parts are those of two groups' sums and rows. m is not bound
            to the range here (the surface would have edges); for variances it is.
    """
    count_noise, first_noise = (
        max(float(np.max(statistics.count_noise.variance)), 1e-4),
        max(float(np.max(statistics.first_noise.variance)), 1e-6),
    )
    first_fourth, count_fourth = (
        float(np.max(part.fourth)) for part in (statistics.first_noise, statistics.count_noise)
    )
    table = np.stack([statistics.count, statistics.first], axis=-2)
    whole = statistics.count.sum(axis=-1, keepdims=True)
    m = np.clip(
        np.where(
            whole > 0,
            statistics.first.sum(axis=-1, keepdims=True) / np.where(whole > 0, whole, 1.0),
            0.0,
        ),
        -1.0,
        1.0,
    )
    drawn = _drawn_rows(statistics)
    for _ in range(TURNS):
        noise = first_noise + m**2 * count_noise
        squares, error = _compared_squares(statistics, m, drawn)
        variance = (
            studentising_variance(
                statistics.cluster * squares,
                statistics.cluster * np.sqrt(error),
                noise,
                excess=6 * (first_fourth + m**4 * count_fourth) / noise**2,
            )
            - m**2 * count_noise
        )
        fit = nearest_rank_one(
            table,
            np.stack(
                [
                    np.full_like(variance, count_noise),
                    np.maximum(variance, LEAST_SHARE * first_noise),
                ],
                axis=-2,
            ),
        )
        one, other = fit.a[..., :1], fit.a[..., 1:]
        m = np.clip(
            np.where(one != 0, other / np.where(one != 0, one, 1.0), np.sign(other)), -1.0, 1.0
        )
    return fit


def anova_statistic(statistics: MeanStatistics) -> Array:
    """Evidence against one mean in all groups: the distance to the nearest groups with one mean,
    weighed by curvature, on the scale of χ² with groups − 1 degrees of freedom.
    """
    fit = nearest_means(statistics)
    return evidence(fit, fit.squared, curvatures(fit)[0], curvature_power(fit))


def welch_statistic(statistics: MeanStatistics) -> Array:
    """Of two groups: the signed root of `anova_statistic`, positive where the second mean is the
    larger (the sign of N₁F₂ − N₂F₁, as in `signed_association`).

    Without noise it is Welch's t with squares about the common mean, so below t where t²/n is not
    small (3.14 for 3.36 at 50 rows a group).
    """
    count, first = statistics.count, statistics.first
    side = np.sign(count[..., 0] * first[..., 1] - count[..., 1] * first[..., 0])
    return np.asarray(side * np.sqrt(np.maximum(anova_statistic(statistics), 0.0)))


def fit_equal_means(statistics: MeanStatistics) -> EqualMeans:
    """The null that is simulated from.

    Method. Rows by group (`_drawn_rows`); the mean of all rows, m·√(1 − Var(m)/m²)⁺: its square
            would else be too large by its variance, and noise in N counts by m²; Σ(c − m)² by group
            (`_drawn_squares`), between 0 and N(1 − m²).
    """
    rows = _drawn_rows(statistics)
    known = np.maximum(rows.sum(axis=-1, keepdims=True), 1e-9)
    pooled = np.clip(statistics.first.sum(axis=-1, keepdims=True) / known, -1e3, 1e3)
    error = (
        np.maximum(nearest_means(statistics).variance[..., 1, :].sum(axis=-1, keepdims=True), 0.0)
        / known**2
    )
    seen = np.clip(pooled, -1.0, 1.0)
    mean = seen * np.sqrt(np.maximum(1 - error / np.maximum(pooled**2, 1e-12), 0.0))
    squares = np.clip(
        _drawn_squares(statistics, seen, rows), 0.0, rows * np.maximum(1 - mean**2, 0.0)
    )
    return EqualMeans(np.asarray(mean), np.asarray(rows), np.asarray(squares))


@dataclass(frozen=True)
class MeanNoise:
    """The released law of noise in whole units of the statistic, and the units of count, sum and
    spread.
    """

    law: ReleasedNoise
    units: tuple[float, float, float]


def simulated_means(
    statistics: MeanStatistics, fit: EqualMeans, noise: MeanNoise, uniform: Array
) -> MeanStatistics:
    """Noisy statistics of the fitted null, from uniform numbers of shape (5, draws, …, groups):
    normal values in every group, rows of a unit alike, and the released noise.
    """
    k = statistics.cluster
    units = np.maximum(fit.rows / k, 1e-9)
    variances = fit.squares / np.maximum(fit.rows, 1.0)
    first = fit.rows * fit.mean + k * np.sqrt(units * variances) * ndtri(uniform[0])
    squares = k * variances * 2 * gammaincinv(units / 2, uniform[1])
    even = (1 + fit.mean**2) * fit.rows - 2 * fit.mean * first - squares
    error = [
        noise.law.quantile(uniform[2 + place]) * unit for place, unit in enumerate(noise.units)
    ]
    return MeanStatistics(
        fit.rows + error[0],
        first + error[1],
        even + error[2],
        statistics.count_noise,
        statistics.first_noise,
        statistics.even_noise,
        k,
        statistics.total,
    )


def means_p_value(
    statistics: MeanStatistics,
    noise: MeanNoise,
    statistic: Callable[[MeanStatistics], Array],
    seed: int,
    *,
    few: int = FEW_DRAWS,
    many: int = MANY_DRAWS,
) -> tuple[float, float, int]:
    """(statistic, p-value, draws) against large values of `statistic`."""
    fit = fit_equal_means(statistics)
    groups = fit.rows.shape[-1]
    value = float(statistic(statistics))

    def simulate(draws: int, first: int) -> Array:
        # curvatures need a matrix of rows and groups for each
        draws = min(draws, max(1, CHUNK // (groups + 2) ** 2))
        uniform = np.moveaxis(uniforms(seed + first * 5 * groups, (draws, 5, groups)), 1, 0)
        return statistic(simulated_means(statistics, fit, noise, uniform))

    return value, *tail_by_simulation(value, simulate, few=few, many=many)


class MeansResult(BaselineResult):
    """Means of groups compared with a baseline (the first declared level), and a test that all are
    equal. *Validity*: independent rows; one pair at a time, all at once in `pairs`.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private comparison of means"
    about: ClassVar[str] = (
        "Differences from the baseline: intervals of both means combined (MOVER). p-values "
        "simulate the null with the noise as it was released."
    )
    joint: ClassVar[str] = (
        "Groups one at a time; pairs by both means' intervals combined (MOVER). p-values simulate "
        "the null with the noise as it was released."
    )

    def means(
        self, level: float = 0.95, *, target: str = "population"
    ) -> dict[str, tuple[float, float, float]]:
        """(estimate, low, high) of every group's mean."""
        arms = self.arms(level, target=target)
        ends = zip(arms.unprojected.tolist(), arms.low.tolist(), arms.high.tolist(), strict=True)
        return dict(zip(self.groups, ends, strict=True))

    def arms(self, level: float = 0.95, *, target: str = "population") -> Quantity:
        """Every group's own mean; one group at a time."""
        statistics, grid = mean_statistics(self), column_grid(self)
        level, target = checked_level(level), checked_target(target)
        low, high = within(grid, *mean_interval(statistics, level, target=target))
        scale = (grid.half_range / statistics.rows) ** 2
        sampling = (
            statistics.sampling_variance() if target == "population" else 0.0 * statistics.rows
        )
        return Quantity(
            "mean",
            grid.center + grid.half_range * statistics.bounded_mean,
            low,
            high,
            sampling * scale,
            (statistics.noise().variance + 0.0 * statistics.rows) * scale,
        )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        baseline = [(place, 0) for place in range(1, len(self.groups))]
        return (self._differences(baseline, level, target),)

    def _differences(self, pairs: Sequence[Pair], level: float, target: str) -> Quantity:
        arms = self.arms(level, target=target)
        one, two = [high for high, _ in pairs], [low for _, low in pairs]
        estimate, low, high = arms.unprojected, arms.low, arms.high
        difference = estimate[one] - estimate[two]
        down = np.sqrt((estimate[one] - low[one]) ** 2 + (high[two] - estimate[two]) ** 2)
        up = np.sqrt((high[one] - estimate[one]) ** 2 + (estimate[two] - low[two]) ** 2)
        return Quantity(
            "difference of means",
            difference,
            difference - down,
            difference + up,
            arms.sampling_variance[one] + arms.sampling_variance[two],
            arms.privacy_variance[one] + arms.privacy_variance[two],
        )

    def _joint_level(self, level: float, target: str) -> float:
        statistics = mean_statistics(self)
        noise = statistics.noise().scaled(1 / statistics.rows)
        sampling = statistics.sampling_variance() / statistics.rows**2
        return pair_level(sampling if target == "population" else 0.0 * sampling, noise, level)

    def overall(self) -> Evidence:
        """Whether all groups have one mean: `test` without arguments."""
        return self.test()

    def test(
        self,
        *,
        group: object = None,
        baseline: object = None,
        alternative: str = "two-sided",
        few: int = FEW_DRAWS,
        many: int = MANY_DRAWS,
    ) -> Evidence:
        """Without arguments: whether all groups have one mean (analysis of variance; Welch for
        two). With a group, its baseline or an alternative: these two alone.

        Method.   The distance of rows and sums to the nearest ones with a common mean, every term
                  with noise; variances are not taken as equal (`anova_statistic`). The null law is
                  simulated: normal values, the released noise, everything estimated anew.
        Validity. Size by simulation for 50 to 10 000 rows:
                  benchmarks/tests_size.py. One group has p = 1.
        """
        release, sign = self.release, sign_of(alternative)
        statistics, column = (
            replace(
                mean_statistics(self),
                total=None if release.query.optional else release.public_rows,
            ),
            release.description.column,
        )
        noise = mean_noise(release)
        if len(self.groups) == 1:
            return Evidence(
                f"{column} has one mean in all groups",
                alternative,
                0.0,
                1.0,
                "there is nothing to compare",
            )
        if group is None and baseline is None and not sign:
            kept = Recorded(anova_statistic)
            value, p, draws = means_p_value(
                statistics, noise, kept, seed_of(release), few=few, many=many
            )
            return Evidence(
                f"{column} has one mean in all groups",
                "some differ",
                value,
                p,
                f"{freedom_text(len(self.groups) - 1)}, null law simulated {draws} times with the "
                "released noise",
                law=kept.law(value, "distance from one mean"),
            )
        low = place_of(baseline, self.groups, "baseline=")
        high = (
            place_of(group, self.groups, "group=") if group is not None else (1 if low == 0 else 0)
        )
        chosen = cell_integers(self, len(self.groups))[:, [low, high]]
        pair = replace(
            decode_means(
                moments_of(release),
                release.mechanism,
                chosen,
                public_rows=None,
                cluster=release.neighbors.rows,
            ),
            total=statistics.total if len(self.groups) == 2 else None,
        )

        def statistic(given: MeanStatistics) -> Array:
            value = welch_statistic(given)
            return np.asarray(sign * value if sign else np.abs(value))

        kept = Recorded(statistic)
        value, p, draws = means_p_value(pair, noise, kept, seed_of(release), few=few, many=many)
        seen = value if sign >= 0 else -value
        return Evidence(
            f"{column} has one mean in {self.groups[high]} and {self.groups[low]}",
            alternative,
            seen,
            p,
            f"Welch type, null law simulated {draws} times with the released noise",
            law=kept.law(seen, "difference, in standard errors", sign=sign or 1.0),
        )


def mean_noise(release: Release) -> MeanNoise:
    """The noise of a release of counts, sums and spreads."""
    units = moments_of(release).unit_values()
    count = units[0] if len(units) == 3 else 0.0
    return MeanNoise(released_noise(release.mechanism), (count, units[-2], units[-1]))
