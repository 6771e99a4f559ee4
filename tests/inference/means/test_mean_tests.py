"""Tests of means from noisy moments: classical limits, size with the true noise and not with
another, agreement with the interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.estimators.hypotheses.plans import _mean_laws
from discreet.inference.counts.part_tests import best_split, planned_power
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.means.hidden_spread import studentising_variance
from discreet.inference.means.mean_tests import (
    EqualMeans,
    MeanNoise,
    anova_statistic,
    fit_equal_means,
    mean_p_value,
    means_p_value,
    simulated_means,
    welch_statistic,
)
from discreet.inference.means.means import MeanStatistics, mean_interval
from discreet.inference.results.laws import Noise

REPETITIONS, DRAWS = 500, 99
LIMIT = 6.2 * np.sqrt(0.05 * 0.95 / REPETITIONS)
WORTHS = (1.0, 1.0, 1.0)
LAW = ReleasedNoise("gaussian", 6.0)


def moments(groups, law=None, rng=None):
    """(count, Σc, Σ(1−c²)) by group, with noise where a law is given."""
    values = np.array(
        [[len(c) for c in groups], [c.sum() for c in groups], [(1 - c**2).sum() for c in groups]]
    )
    noise = Noise(0.0 if law is None else law.variance)
    return MeanStatistics(
        *(values + (law.quantile(rng.random(values.shape)) if law is not None else 0.0)),
        noise,
        noise,
        noise,
    )


def test_without_noise_the_two_group_statistic_is_welchs():
    rng = np.random.default_rng(1)
    a, b = np.clip(rng.normal(0.0, 0.2, 400), -1, 1), np.clip(rng.normal(0.05, 0.4, 300), -1, 1)
    statistics = moments([a, b])
    classical = stats.ttest_ind(b, a, equal_var=False).statistic
    assert welch_statistic(statistics) == pytest.approx(classical, rel=0.03)
    assert anova_statistic(statistics) == pytest.approx(classical**2, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(("assumed", "nominal"), [(1.0, True), (0.7, False)])
def test_size_is_nominal_with_the_released_noise_and_not_with_less(assumed, nominal):
    rng = np.random.default_rng(4)
    law = replace(LAW, spread=assumed * LAW.spread)
    noise, rejected = Noise(law.variance), []
    for place in range(REPETITIONS):
        groups = [
            np.clip(rng.normal(0.1, spread, size), -1, 1) for spread, size in ((0.2, 80), (0.4, 60))
        ]
        noisy = moments(groups, LAW, rng)
        seen = MeanStatistics(noisy.count, noisy.first, noisy.even, noise, noise, noise)
        rejected.append(
            means_p_value(
                seen,
                MeanNoise(law, WORTHS),
                anova_statistic,
                104_729 * place,
                few=DRAWS,
                many=DRAWS,
            )[1]
            <= 0.05
        )
    assert (np.mean(rejected) < 0.05 + LIMIT) == nominal


def test_the_p_value_of_a_mean_is_the_level_that_its_interval_needs():
    rng = np.random.default_rng(2)
    statistics = moments([np.clip(rng.normal(0.2, 0.3, 200), -1, 1)], LAW, rng)
    low, high = mean_interval(statistics, 0.95)
    for end in (low, high):
        assert mean_p_value(statistics, float(end[0])) == pytest.approx(0.05, rel=1e-4)
    assert mean_p_value(statistics, float(statistics.mean[0])) > 0.99
    assert mean_p_value(statistics, -0.9) < 1e-6
    assert (
        mean_p_value(
            MeanStatistics(np.array([-3.0]), np.array([1.0]), np.array([0.0]), *[Noise(1.0)] * 3),
            0.0,
        )
        == 1.0
    )


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((3, 2)),
        np.full((3, 2), -9.0),
        np.array([[0.0, 50], [0, 50], [0, 0]]),
        np.array([[1e6, 3], [-1e6, 2], [0, 5]]),
    ],
)
def test_every_release_has_a_p_value(values):
    statistics = MeanStatistics(*values, *[Noise(LAW.variance)] * 3)
    value, p, _ = means_p_value(
        statistics, MeanNoise(LAW, WORTHS), anova_statistic, 1, few=DRAWS, many=DRAWS
    )
    assert np.isfinite(value)
    assert 0 < p <= 1


def test_a_p_value_of_means_does_not_depend_on_how_many_data_sets_are_simulated_at_a_time(
    monkeypatch,
):
    rng = np.random.default_rng(6)
    statistics = moments([np.clip(rng.normal(0.1, 0.3, 60), -1, 1) for _ in range(3)], LAW, rng)
    whole = means_p_value(
        statistics, MeanNoise(LAW, WORTHS), anova_statistic, 1, few=DRAWS, many=DRAWS
    )
    monkeypatch.setattr("discreet.inference.means.mean_tests.CHUNK", 250)
    assert (
        means_p_value(statistics, MeanNoise(LAW, WORTHS), anova_statistic, 1, few=DRAWS, many=DRAWS)
        == whole
    )


def test_simulated_moments_have_the_fitted_means_and_variances():
    statistics = moments([np.full(100, 0.5), np.linspace(0, 1, 200)])
    fit = fit_equal_means(statistics)
    drawn = simulated_means(
        statistics, fit, MeanNoise(LAW, WORTHS), np.random.default_rng(1).random((5, 20_000, 2))
    )
    np.testing.assert_allclose(drawn.first.mean(axis=0), fit.rows * fit.mean, atol=0.5)
    np.testing.assert_allclose(drawn.first.var(axis=0), fit.squares + LAW.variance, rtol=0.05)
    seen = statistics.first.sum() / 300
    exact = np.array(
        [((np.full(100, 0.5) - seen) ** 2).sum(), ((np.linspace(0, 1, 200) - seen) ** 2).sum()]
    )
    np.testing.assert_allclose(fit.squares, exact, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.rows, [100, 200], rtol=0.01)


def test_rows_and_the_mean_are_drawn_in_as_far_as_noise_hides_them():
    loud = Noise(60.0**2)
    statistics = MeanStatistics(
        np.array([90.0, 10.0]),
        np.array([30.0, -10.0]),
        np.array([50.0, 5.0]),
        loud,
        loud,
        loud,
        total=100,
    )
    fit = fit_equal_means(statistics)
    np.testing.assert_allclose(fit.rows, [50, 50])
    assert fit.mean == 0
    assert (fit.squares <= fit.rows).all()
    quiet = fit_equal_means(
        replace(
            statistics, **dict.fromkeys(("count_noise", "first_noise", "even_noise"), Noise(1e-4))
        )
    )
    np.testing.assert_allclose(quiet.rows, [90, 10], atol=0.6)  # a row more is spread over both
    assert quiet.mean == pytest.approx(0.2, rel=0.1)


def noisy_groups(rng, number, mean, spread, rows, scale):
    """Statistics of two groups with one mean and Laplace noise of this scale in all of them."""
    law = Noise(2 * scale**2, scale**4)
    moments = [
        np.broadcast_to(rows, (number, 2)),
        rng.normal(rows * mean, np.sqrt(rows) * spread, (number, 2)),
        np.broadcast_to(rows * (1 - mean**2 - spread**2), (number, 2)),
    ]
    return MeanStatistics(
        *(part + rng.laplace(0, scale, (number, 2)) for part in moments), law, law, law
    )


@pytest.mark.slow
def test_the_tail_hardly_moves_with_the_common_mean_but_would_with_rows_as_they_are():
    """Groups of 25 rows and noise of 8: 0.95 quantiles for a common mean in the middle and at 0.8
    of the range. Sums less m times noisy rows, m their weighted mean, move by more.
    """
    rng, scale = np.random.default_rng(3), 8.0
    ours, plain = [], []
    for mean in (0.0, 0.8):
        seen = noisy_groups(rng, 20_000, mean, 0.15, 25.0, scale)
        ours.append(np.quantile(anova_statistic(seen), 0.95))
        m = np.clip((seen.count * seen.first).sum(axis=-1) / (seen.count**2).sum(axis=-1), -1, 1)[
            :, None
        ]
        plain.append(
            np.quantile(
                ((seen.first - m * seen.count) ** 2 / (2 * scale**2 * (1 + m**2) + 0.6)).sum(
                    axis=-1
                ),
                0.95,
            )
        )
    assert abs(ours[1] - ours[0]) < 0.5 < 1.0 < plain[1] - plain[0]


def null_statistics(rng, number, mean, squares, *, total):
    """`anova_statistic` of two groups of 25 rows with this common mean and Σ(c − m)², and Gaussian
    noise of variance 4 in every number.
    """
    law = ReleasedNoise("gaussian", 2.0)
    start = MeanStatistics(
        np.zeros(2), np.zeros(2), np.zeros(2), *[Noise(law.variance)] * 3, total=total
    )
    return anova_statistic(
        simulated_means(
            start,
            EqualMeans(np.array([mean]), np.full(2, 25.0), np.full(2, squares)),
            MeanNoise(law, WORTHS),
            rng.random((5, number, 2)),
        )
    )


@pytest.mark.slow
def test_the_tail_hardly_moves_with_the_spread_but_would_if_deviation_predicted_noise(
    monkeypatch,
):
    """Common mean at 0.7 of the range: the noise of a sum moves the deviation and the spread.

    Spreads as they were released make the tail move with what they hide.
    """
    rng = np.random.default_rng(9)

    def moved():
        low, high = (
            np.quantile(null_statistics(rng, 30_000, 0.7, squares, total=50), 0.95)
            for squares in (0.05, 4.0)
        )
        return high - low

    ours, about = moved(), MeanStatistics.squares_about
    monkeypatch.setattr(
        MeanStatistics,
        "squares_about",
        lambda self, m, rows: (
            (1 + m**2) * rows - self.even - 2 * m * self.first,
            *about(self, m, rows)[1:],
        ),
    )
    assert abs(ours) < 0.35 < 0.7 < moved()


@pytest.mark.slow
def test_rows_that_add_up_to_a_public_total_show_the_spread_better():
    """Power at one alternative, each test with its own true quantile."""
    rng, number, law = np.random.default_rng(10), 40_000, ReleasedNoise("gaussian", 2.0)

    def power(total):
        start = MeanStatistics(
            np.zeros(2), np.zeros(2), np.zeros(2), *[Noise(law.variance)] * 3, total=total
        )
        means = EqualMeans(np.array([[-0.14, 0.14]]), np.full(2, 25.0), np.full(2, 3.0))
        seen = anova_statistic(
            simulated_means(start, means, MeanNoise(law, WORTHS), rng.random((5, number, 2)))
        )
        return np.mean(
            seen > np.quantile(null_statistics(rng, number, 0.0, 3.0, total=total), 0.95)
        )

    assert power(50) > power(None) + 0.012  # 3 standard errors of this difference


@pytest.mark.slow
@pytest.mark.parametrize("parts", [0, 2, 3, 4])
@pytest.mark.parametrize("ratio", [0.2, 1.0, 2.0])
def test_a_deviation_over_the_studentising_variance_has_its_size_whatever_its_hidden_spread(
    parts, ratio
):
    """Noise of this many Laplace parts, or normal.

    Simulated, not by the quadrature that solved for it; dividing by the noise's variance and the
    positive part of the spread fails.
    """
    rng, number = np.random.default_rng(5), 400_000

    def sizes(variance):
        found = []
        for true in (0.0, 0.5 * ratio, 1.5 * ratio, 4.0 * ratio):
            noise = (
                rng.laplace(0, np.sqrt(0.5 / parts), (parts, number)).sum(axis=0)
                if parts
                else rng.normal(0, 1, number)
            )
            error = (
                rng.laplace(0, 0.5, (2, number)).sum(axis=0) if parts else rng.normal(0, 1, number)
            )
            deviation, spread = (
                np.sqrt(true) * rng.normal(0, 1, number) + noise,
                true + ratio * error,
            )
            found.append(np.mean(deviation**2 > stats.chi2.isf(0.05, 1) * variance(spread)))
        return np.array(found)

    ours = sizes(
        lambda spread: studentising_variance(
            spread, np.full(number, ratio), np.ones(number), excess=3 / parts if parts else 0.0
        )
    )
    plain = sizes(lambda spread: 1 + np.maximum(spread, 0.0))
    # a smooth function cannot be exact where noise hides much
    limit = {0.2: 0.002, 1.0: 0.004, 2.0: 0.012}[ratio]
    assert np.abs(ours - 0.05).max() < limit
    assert np.abs(plain - 0.05).max() > 1.5 * limit


@pytest.mark.slow
def test_the_studentising_variance_scales_with_its_units_and_is_the_sum_where_the_spread_is_seen():
    spread = np.array([-3.0, 0.0, 2.0, 9.0, 1e6])
    for excess in (0.0, 0.9, 1.5):
        one = studentising_variance(spread, np.full(5, 1.3), np.full(5, 0.7), excess=excess)
        np.testing.assert_allclose(
            studentising_variance(100 * spread, np.full(5, 130.0), np.full(5, 70.0), excess=excess),
            100 * one,
            rtol=1e-9,
        )
        assert one[-1] == pytest.approx(1e6 + 0.7)
        assert (np.diff(one) >= 0).all()
        beyond = [
            studentising_variance(
                spread[:4] * size, np.full(4, 1.3 * size), np.full(4, 1e-6), excess=excess
            )
            / size
            for size in (1.0, 1e3)
        ]
        np.testing.assert_allclose(beyond[0], beyond[1], rtol=1e-9)


@pytest.mark.slow
def test_power_is_planned_where_the_means_lie():
    """1000 rows, ε = 1, means about −0.7 of the half range: the plan's power is that of simulated
    tests; planned in the middle it is not.
    """
    rng, number, rows, epsilon = np.random.default_rng(8), 20_000, 500.0, 1.0
    law, worths = _mean_laws(dp.PureDP(epsilon), 2)
    noises = [
        Noise(law.variance * worth**2, (law.variance * worth**2 / 2) ** 2) for worth in worths
    ]

    def statistic(difference):
        means = -0.7 + difference * np.array([-0.5, 0.5])
        exact = (
            np.full(2, rows),
            rng.normal(rows * means, 0.2 * np.sqrt(rows), (number, 2)),
            rows * (1 - means**2 - 0.04),
        )
        return anova_statistic(
            MeanStatistics(
                *(
                    part + law.quantile(rng.random((number, 2))) * worth
                    for part, worth in zip(exact, worths, strict=True)
                ),
                *noises,
            )
        )

    true = np.mean(statistic(0.06) > np.quantile(statistic(0.0), 0.95))
    assumed = {"difference": 0.06, "standard_deviation": 0.2, "low": -1, "high": 1}
    assert dp.power(
        dp.compare_means, rows=1000, spend=dp.PureDP(epsilon), mean=-0.7, **assumed
    ).power == pytest.approx(true, abs=0.03)
    assert (
        dp.power(dp.compare_means, rows=1000, spend=dp.PureDP(epsilon), **assumed).power
        > true + 0.2
    )
    with pytest.raises(InvalidParameter, match="outside the declared range"):
        dp.power(dp.compare_means, rows=1000, spend=dp.PureDP(epsilon), mean=0.99, **assumed)


@pytest.mark.slow
def test_the_split_into_parts_suits_the_noise():
    loud, quiet = ReleasedNoise("tulap", 10.0), ReleasedNoise("tulap", 0.5)
    (many, inner), (few, _) = best_split(loud, 10**9), best_split(quiet, 10**9)
    assert many > few
    assert 0 < inner < 1
    assert best_split(loud, 7)[0] <= 7
    signal = 6.0
    assert planned_power(few, best_split(quiet, 10**9)[1], quiet, signal) > planned_power(
        200, 0.02, quiet, signal
    )
    assert planned_power(20, 0.2, quiet, 0.0) == pytest.approx(0.05, abs=1e-6)
