"""Tests of means from noisy counts, sums and spreads: one sample, pairs, two groups (Welch), several groups (analysis of variance) (math.md F1–F4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri

from discreet.inference.basic import MeanResult, _grid, _integers, _mean_statistics
from discreet.inference.decode import decode_means
from discreet.inference.evidence import BaselineResult, Evidence, TestedResult, freedom_text, place_of, sign_of
from discreet.inference.laws import Array, student_factor
from discreet.inference.means import MeanStatistics, mean_interval
from discreet.inference.results import Quantity
from discreet.inference.simultaneous import uniforms
from discreet.inference.summary import Summary
from discreet.inference.tables import FEW_DRAWS, MANY_DRAWS, seed_of, tail_by_simulation
from discreet.inference.tulap import ReleasedNoise, released_noise

SMALLEST_TAIL = 1e-9
SEEN = 0.85  # of the draws of a spread are at its estimate
HIDDEN_ROWS = 0.6  # how soon noise counts as hiding the sizes of groups


def mean_p_value(statistics: MeanStatistics, null: float) -> float:
    """1 − the least level whose interval contains the mean `null` (in units of c): the test that belongs to `mean_interval`.

    A null outside [−1, 1], the range of c, is told from every possible mean: p = 0 there is reported as the least p-value.
    """
    if statistics.count[0] <= 0:
        return 1.0
    candidate = np.array([null])

    def inside(tail: float) -> bool:
        level = 1 - tail
        return bool(statistics.covers(candidate, level, "population", student_factor(level, statistics.rows - 1))[0])

    low, high = np.log(SMALLEST_TAIL), 0.0  # logarithms of the p-value
    if not inside(SMALLEST_TAIL):
        return SMALLEST_TAIL
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(float(np.exp(middle))) else (low, middle)
    return float(np.exp(low))


class MeanTestResult(MeanResult):
    """A mean, or the mean difference of two columns, and a test of its null value. *Validity*: independent rows; values outside the declared range count as the nearest bound."""

    __slots__ = ()
    title: ClassVar[str] = "Private test of a mean"

    @property
    def null(self) -> float:
        """The mean that is tested."""
        return self.release.asked.edges[0]

    @property
    def p_value(self) -> float:
        """Of the two-sided test."""
        return self.test().p_value

    def test(self, null: float | None = None, *, alternative: str = "two-sided") -> Evidence:
        """Whether the population's mean is `null` (default: the value that was asked about); another value costs nothing.

        Method.   Inverts `confidence_interval`: Fieller's statistic with noise and a sampling variance that is known with noise.
        Validity. As the interval's coverage, 0.943 to 0.975 at nominal 0.95: tests/inference/test_laws.py, benchmarks/coverage_basic.py.
        """
        sign, value = sign_of(alternative), float(self.null if null is None else null)
        statistics = _mean_statistics(self)
        center, worth, _ = _grid(self)
        candidate = (value - center) / worth
        both = mean_p_value(statistics, candidate)
        deviation = float(statistics.first[0] - candidate * statistics.count[0])
        agrees = sign * deviation > 0
        p = both if not sign else (both / 2 if agrees else 1 - both / 2)
        error = float(np.sqrt(np.ravel(statistics.sampling_variance() + statistics.noise().variance)[0]))
        method = "by inverting the interval" if p > SMALLEST_TAIL else f"by inverting the interval; p is at most this: below {SMALLEST_TAIL:g} nothing is told apart"
        return Evidence(f"the mean of {self.release.asked.column} is {value:g}", alternative, deviation / max(error, 1e-300), p, method)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print, with what the test says below it."""
        return TestedResult.summary(self, level, target=target)  # type: ignore[arg-type]


class PairedResult(MeanTestResult):
    """The mean difference of two columns of the same rows. *Validity*: independent rows (pairs)."""

    __slots__ = ()
    title: ClassVar[str] = "Private paired comparison"


@dataclass(frozen=True)
class EqualMeans:
    """The fitted null of equal means in units of c: the common mean, and rows by group."""

    mean: Array
    rows: Array


def _sampling(statistics: MeanStatistics, m: Array) -> Array:
    """Noisy Σ(c − m)² by group, between 0 and the most that values in [−1, 1] with mean m can have."""
    squares = (1 + m**2) * statistics.count - statistics.even - 2 * m * statistics.first
    return np.asarray(statistics.cluster * np.clip(squares, 0.0, np.maximum(statistics.count, 0.0) * np.maximum(1 - m**2, 0.0) + 0.0))


def fit_equal_means(statistics: MeanStatistics, total: int | None = None) -> EqualMeans:
    """The common mean that is nearest to all groups, each weighted by its sampling and noise variance (groups are the last axis).

    Rows by group are moved equally to the public `total` of all groups where there is one, negative ones 0, and drawn towards equal ones as far as noise hides them:
    f·N̂ + (1−f)·N/G, f = 1/(1 + 0.6ρ^2.5), ρ the noise's standard deviation over N/G; else they would be unlike the true ones where noise rules (two means at 50 rows, ε = 0.1 are
    rejected 0.040 for 0.05 without the total and 0.048 with it).
    """
    positive = np.maximum(statistics.count, 0.0)
    whole = positive.sum(axis=-1, keepdims=True)
    m = np.clip(np.where(whole > 0, statistics.first.sum(axis=-1, keepdims=True) / np.where(whole > 0, whole, 1.0), 0.0), -1.0, 1.0)
    for _ in range(3):
        weight = statistics.count / _total_variance(statistics, m)
        below = (weight * statistics.count).sum(axis=-1, keepdims=True)
        m = np.clip(np.where(below > 0, (weight * statistics.first).sum(axis=-1, keepdims=True) / np.where(below > 0, below, 1.0), 0.0), -1.0, 1.0)
    return EqualMeans(m, _rows_of_groups(statistics, total))


def _rows_of_groups(statistics: MeanStatistics, total: int | None) -> Array:
    groups, noisy = statistics.count.shape[-1], statistics.count.sum(axis=-1, keepdims=True)
    whole = np.maximum(noisy, 0.0) if total is None else np.full_like(noisy, float(total))
    rows = np.maximum(statistics.count + (whole - noisy) / groups, 0.0)
    rows = rows * whole / np.maximum(rows.sum(axis=-1, keepdims=True), 1e-9)
    hidden = HIDDEN_ROWS * (groups * np.sqrt(statistics.count_noise.variance) / np.maximum(whole, 1e-9)) ** 2.5
    return np.asarray(whole / groups + (rows - whole / groups) / (1 + hidden))


def _total_variance(statistics: MeanStatistics, m: Array) -> Array:
    noise = statistics.first_noise.variance + m**2 * statistics.count_noise.variance
    return np.asarray(np.maximum(_sampling(statistics, m) + noise, 1e-12))


def anova_statistic(statistics: MeanStatistics) -> Array:
    """Σ(Σc − m·N)²/variance over groups at the best common mean m; about χ² with groups − 1 degrees of freedom."""
    m = fit_equal_means(statistics).mean
    return np.asarray(((statistics.first - m * statistics.count) ** 2 / _total_variance(statistics, m)).sum(axis=-1))


def welch_statistic(statistics: MeanStatistics) -> Array:
    """Of two groups: the signed root of `anova_statistic`, positive where the second mean is the larger."""
    m = fit_equal_means(statistics).mean
    deviation = statistics.first - m * statistics.count
    variance = _total_variance(statistics, m)
    n = np.maximum(statistics.count, 1e-9)
    return np.asarray((deviation[..., 1] / n[..., 1] - deviation[..., 0] / n[..., 0]) / np.sqrt((variance / n**2).sum(axis=-1)))


@dataclass(frozen=True)
class MeanNoise:
    """The released law of noise in whole units of the statistic, and what a unit of count, sum and spread is worth."""

    law: ReleasedNoise
    worths: tuple[float, float, float]


def squares_draws(statistics: MeanStatistics, fit: EqualMeans, uniform: Array) -> Array:
    """Σ(c − m)² of all groups, drawn by how well noise lets them be seen: most at the estimate (`SEEN`), the others from its normal error cut to [0, N(1 − m²)].

    The noise of the spread can exceed the spread. Simulated at the estimate alone, tests reject too often where it is hidden by half (0.063 for 0.05), and with
    its error alone too seldom where it is hidden altogether (0.036); `SEEN` was chosen by sizes of two groups at 50 and 200 rows (docs/theory/tests.md).
    """
    m = fit.mean
    seen = (1 + m**2) * statistics.count - statistics.even - 2 * m * statistics.first
    variance = (1 + m**2) ** 2 * statistics.count_noise.variance + statistics.even_noise.variance + 4 * m**2 * statistics.first_noise.variance
    error = np.sqrt(np.maximum(variance, 1e-18))
    most = fit.rows * np.maximum(1 - m**2, 0.0)
    low, high = ndtr((0.0 - seen) / error), ndtr((most - seen) / error)
    place = np.clip(low + (high - low) * np.maximum(uniform - SEEN, 0.0) / (1 - SEEN), 1e-15, 1 - 1e-15)
    return np.asarray(np.where(uniform < SEEN, np.clip(seen, 0.0, most), np.clip(seen + error * ndtri(place), 0.0, most)))


def simulated_means(statistics: MeanStatistics, fit: EqualMeans, noise: MeanNoise, uniform: Array) -> MeanStatistics:
    """Noisy statistics of the fitted null, from uniform numbers of shape (6, draws, …, groups): normal values in every group, rows of a unit alike, and the released noise."""
    k = statistics.cluster
    units = np.maximum(fit.rows / k, 1e-9)
    variances = squares_draws(statistics, fit, uniform[5]) / np.maximum(fit.rows, 1.0)
    first = fit.rows * fit.mean + k * np.sqrt(units * variances) * ndtri(uniform[0])
    squares = k * variances * 2 * gammaincinv(units / 2, uniform[1])
    even = (1 + fit.mean**2) * fit.rows - 2 * fit.mean * first - squares
    error = [noise.law.quantile(uniform[2 + place]) * worth for place, worth in enumerate(noise.worths)]
    return MeanStatistics(fit.rows + error[0], first + error[1], even + error[2], statistics.count_noise, statistics.first_noise, statistics.even_noise, k)


def means_p_value(statistics: MeanStatistics, noise: MeanNoise, statistic: Callable[[MeanStatistics], Array], seed: int, *, total: int | None = None, few: int = FEW_DRAWS, many: int = MANY_DRAWS) -> tuple[float, float, int]:
    """(statistic, p-value, draws) against large values of `statistic`; `total` is the number of rows in all groups where it is public."""
    fit = fit_equal_means(statistics, total)
    groups = fit.rows.shape[-1]
    value = float(statistic(statistics))

    def simulate(draws: int, first: int) -> Array:
        uniform = np.moveaxis(uniforms(seed + first * 6 * groups, (draws, 6, groups)), 1, 0)
        return statistic(simulated_means(statistics, fit, noise, uniform))

    return value, *tail_by_simulation(value, simulate, few=few, many=many)


class MeansResult(BaselineResult):
    """Means of groups compared with a baseline (the first declared level), and a test that all are equal. *Validity*: independent rows; one pair at a time."""

    __slots__ = ()
    title: ClassVar[str] = "Private comparison of means"
    about: ClassVar[str] = "Differences from the baseline: intervals of both means combined (MOVER). p-values simulate the null with the noise as it was released."

    def means(self, level: float = 0.95, *, target: str = "population") -> dict[str, tuple[float, float, float]]:
        """(estimate, low, high) of every group's mean."""
        estimate, low, high, _ = self._intervals(level, target)
        return {name: (float(estimate[g]), float(low[g]), float(high[g])) for g, name in enumerate(self.groups)}

    def _intervals(self, level: float, target: str) -> tuple[Array, Array, Array, MeanStatistics]:
        statistics = _mean_statistics(self)
        center, worth, half_step = _grid(self)
        low, high = mean_interval(statistics, level, target=target)
        return center + worth * statistics.bounded_mean, center + worth * low - half_step, center + worth * high + half_step, statistics

    def quantities(self, level: float = 0.95, *, target: str = "population") -> tuple[Quantity, ...]:
        estimate, low, high, statistics = self._intervals(level, target)
        _, worth, _ = _grid(self)
        sampling = (statistics.sampling_variance() if target == "population" else 0.0 * statistics.rows) * (worth / statistics.rows) ** 2
        privacy = (statistics.noise().variance + 0.0 * statistics.rows) * (worth / statistics.rows) ** 2
        difference = estimate[1:] - estimate[0]
        down = np.sqrt((estimate[1:] - low[1:]) ** 2 + (high[0] - estimate[0]) ** 2)
        up = np.sqrt((high[1:] - estimate[1:]) ** 2 + (estimate[0] - low[0]) ** 2)
        return (Quantity("difference of means", difference, difference - down, difference + up, sampling[1:] + sampling[0], privacy[1:] + privacy[0]),)

    def test(self, *, group: object = None, baseline: object = None, alternative: str = "two-sided", few: int = FEW_DRAWS, many: int = MANY_DRAWS) -> Evidence:
        """Without arguments: whether all groups have one mean (analysis of variance; Welch for two). With a group, its baseline or an alternative: these two alone.

        Method.   Σ(Σc − m·N)²/variance at the best common mean, every term with noise; variances are not taken as equal. The null law is simulated: normal
                  values, their variances at the estimates and spread as noise hides them, the released noise, everything estimated anew.
        Validity. Size by simulation for 50 to 10 000 rows: benchmarks/tests_size.py. One group has p = 1.
        """
        release, sign = self.release, sign_of(alternative)
        statistics, column = _mean_statistics(self), release.asked.column
        noise, total = mean_noise(release), None if release.query.optional else release.public_rows
        if len(self.groups) == 1:
            return Evidence(f"{column} has one mean in all groups", alternative, 0.0, 1.0, "there is nothing to compare")
        if group is None and baseline is None and not sign:
            value, p, draws = means_p_value(statistics, noise, anova_statistic, seed_of(release), total=total, few=few, many=many)
            return Evidence(f"{column} has one mean in all groups", "some differ", value, p, f"{freedom_text(len(self.groups) - 1)}, null law simulated {draws} times with the released noise")
        low = place_of(baseline, self.groups, "baseline=")
        high = place_of(group, self.groups, "group=") if group is not None else (1 if low == 0 else 0)
        chosen = _integers(self, len(self.groups))[:, [low, high]]
        pair = decode_means(release.query, release.mechanism, chosen, public_rows=None, cluster=release.neighbors.rows)

        def statistic(given: MeanStatistics) -> Array:
            value = welch_statistic(given)
            return np.asarray(sign * value if sign else np.abs(value))

        value, p, draws = means_p_value(pair, noise, statistic, seed_of(release), total=total if len(self.groups) == 2 else None, few=few, many=many)
        return Evidence(f"{column} has one mean in {self.groups[high]} and {self.groups[low]}", alternative, value if sign >= 0 else -value, p, f"Welch type, null law simulated {draws} times with the released noise")


def mean_noise(release: Any) -> MeanNoise:
    """The noise of a release of counts, sums and spreads."""
    worths = release.query.worths()
    return MeanNoise(released_noise(release.mechanism), (0.0, *worths) if len(worths) == 2 else worths)
