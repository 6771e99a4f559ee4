"""Tests of means from noisy moments: classical limits, size with the true noise and not with another, agreement with the interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from discreet.inference.laws import Noise
from discreet.inference.mean_tests import (
    SEEN,
    MeanNoise,
    anova_statistic,
    fit_equal_means,
    mean_p_value,
    means_p_value,
    simulated_means,
    squares_draws,
    welch_statistic,
)
from discreet.inference.means import MeanStatistics, mean_interval
from discreet.inference.part_tests import best_split, planned_power
from discreet.inference.tulap import ReleasedNoise

REPETITIONS, DRAWS = 700, 99
LIMIT = 6.2 * np.sqrt(0.05 * 0.95 / REPETITIONS)
WORTHS = (1.0, 1.0, 1.0)
LAW = ReleasedNoise("gaussian", 6.0)


def moments(groups, law=None, rng=None):
    """(count, Σc, Σ(1−c²)) by group, with noise where a law is given."""
    values = np.array([[len(c) for c in groups], [c.sum() for c in groups], [(1 - c**2).sum() for c in groups]])
    noise = Noise(0.0 if law is None else law.variance)
    return MeanStatistics(*(values + (law.quantile(rng.random(values.shape)) if law is not None else 0.0)), noise, noise, noise)


def test_without_noise_the_two_group_statistic_is_welchs():
    rng = np.random.default_rng(1)
    a, b = np.clip(rng.normal(0.0, 0.2, 400), -1, 1), np.clip(rng.normal(0.05, 0.4, 300), -1, 1)
    statistics = moments([a, b])
    classical = stats.ttest_ind(b, a, equal_var=False).statistic
    assert welch_statistic(statistics) == pytest.approx(classical, rel=0.03)
    assert anova_statistic(statistics) == pytest.approx(classical**2, rel=0.06)


@pytest.mark.parametrize(("assumed", "nominal"), [(1.0, True), (0.7, False)])
def test_size_is_nominal_with_the_released_noise_and_not_with_less(assumed, nominal):
    rng = np.random.default_rng(4)
    law = replace(LAW, spread=assumed * LAW.spread)
    noise, rejected = Noise(law.variance), []
    for place in range(REPETITIONS):
        groups = [np.clip(rng.normal(0.1, spread, size), -1, 1) for spread, size in ((0.2, 80), (0.4, 60))]
        noisy = moments(groups, LAW, rng)
        seen = MeanStatistics(noisy.count, noisy.first, noisy.even, noise, noise, noise)
        rejected.append(means_p_value(seen, MeanNoise(law, WORTHS), anova_statistic, 104_729 * place, few=DRAWS, many=DRAWS)[1] <= 0.05)
    assert (np.mean(rejected) < 0.05 + LIMIT) == nominal


def test_the_p_value_of_a_mean_is_the_level_that_its_interval_needs():
    rng = np.random.default_rng(2)
    statistics = moments([np.clip(rng.normal(0.2, 0.3, 200), -1, 1)], LAW, rng)
    low, high = mean_interval(statistics, 0.95)
    for end in (low, high):
        assert mean_p_value(statistics, float(end[0])) == pytest.approx(0.05, rel=1e-4)
    assert mean_p_value(statistics, float(statistics.mean[0])) > 0.99
    assert mean_p_value(statistics, -0.9) < 1e-6
    assert mean_p_value(MeanStatistics(np.array([-3.0]), np.array([1.0]), np.array([0.0]), *[Noise(1.0)] * 3), 0.0) == 1.0


@pytest.mark.parametrize("values", [np.zeros((3, 2)), np.full((3, 2), -9.0), np.array([[0.0, 50], [0, 50], [0, 0]]), np.array([[1e6, 3], [-1e6, 2], [0, 5]])])
def test_every_release_has_a_p_value(values):
    statistics = MeanStatistics(*values, *[Noise(LAW.variance)] * 3)
    value, p, _ = means_p_value(statistics, MeanNoise(LAW, WORTHS), anova_statistic, 1, few=DRAWS, many=DRAWS)
    assert np.isfinite(value)
    assert 0 < p <= 1


def test_simulated_moments_have_the_fitted_means_and_variances():
    statistics = moments([np.full(100, 0.5), np.linspace(0, 1, 200)])
    fit = fit_equal_means(replace(statistics, first_noise=Noise(LAW.variance)))
    uniform = np.random.default_rng(1).random((6, 20_000, 2))
    drawn = simulated_means(statistics, fit, MeanNoise(LAW, WORTHS), uniform)
    squares = squares_draws(statistics, fit, uniform[5]).mean(axis=0)
    np.testing.assert_allclose(drawn.first.mean(axis=0), fit.rows * fit.mean, atol=0.5)
    np.testing.assert_allclose(drawn.first.var(axis=0), squares + LAW.variance, rtol=0.05)
    exact = np.array([((np.full(100, 0.5) - fit.mean) ** 2).sum(), ((np.linspace(0, 1, 200) - fit.mean) ** 2).sum()])
    np.testing.assert_allclose(squares, exact, rtol=1e-6, atol=1e-6)  # nothing hides them


def test_hidden_spreads_are_drawn_as_far_as_they_are_hidden():
    loud = Noise(40.0**2)
    statistics = MeanStatistics(np.array([100.0]), np.array([0.0]), np.array([95.0]), loud, loud, loud)  # Σ(c − m)² is seen as 5 ± 56
    fit = fit_equal_means(statistics)
    drawn = squares_draws(statistics, fit, (np.arange(10_000)[:, None] + 0.5) / 10_000)
    assert (drawn >= 0).all()
    assert (drawn <= 100).all()
    assert np.mean(drawn == 5.0) == pytest.approx(SEEN, abs=0.01)
    assert drawn[drawn != 5.0].mean() > 30


def test_the_split_into_parts_suits_the_noise():
    loud, quiet = ReleasedNoise("tulap", 10.0), ReleasedNoise("tulap", 0.5)
    (many, inner), (few, _) = best_split(loud, 10**9), best_split(quiet, 10**9)
    assert many > few
    assert 0 < inner < 1
    assert best_split(loud, 7)[0] <= 7
    signal = 6.0
    assert planned_power(few, best_split(quiet, 10**9)[1], quiet, signal) > planned_power(200, 0.02, quiet, signal)
    assert planned_power(20, 0.2, quiet, 0.0) == pytest.approx(0.05, abs=1e-6)
