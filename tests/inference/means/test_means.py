"""Intervals for means and totals: the textbook's where noise is tiny,
honest where a count is small or negative.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference.means.means import MeanStatistics, mean_interval, total_interval
from discreet.inference.results.laws import Noise

QUIET = Noise(1e-18)


def statistics_of(
    codes: np.ndarray, noise: Noise = QUIET, *, public: bool = True, cluster: int = 1
) -> MeanStatistics:
    count, first, even = (
        np.array([value]) for value in (float(len(codes)), codes.sum(), (1 - codes**2).sum())
    )
    return MeanStatistics(
        count, first, even, Noise(0.0) if public else noise, noise, noise, cluster
    )


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    return np.clip(np.random.default_rng(5).normal(0.2, 0.3, 120), -1, 1)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_without_noise_it_is_the_t_interval(codes: np.ndarray, level: float) -> None:
    """Fieller's variance is about the candidate m, so the two agree to second order:
    t·s·√(1 + t²/n).
    """
    low, high = (float(end[0]) for end in mean_interval(statistics_of(codes), level))
    n = len(codes)
    t = stats.t.ppf(0.5 + level / 2, n - 1)
    textbook = t * codes.std(ddof=1) / np.sqrt(n)
    assert (low + high) / 2 == pytest.approx(codes.mean(), abs=1e-9)
    spread = codes.var()  # {m : (x̄−m)² ≤ t²(spread + (x̄−m)²)/n}
    assert (high - low) / 2 == pytest.approx(t * np.sqrt(spread / (n - t**2)), rel=1e-6)
    assert (high - low) / 2 == pytest.approx(textbook, rel=0.03)


def test_without_noise_it_tends_to_the_t_interval() -> None:
    codes = np.random.default_rng(6).uniform(-1, 1, 40_000)
    low, high = (float(end[0]) for end in mean_interval(statistics_of(codes), 0.95))
    reference = stats.ttest_1samp(codes, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(
        (low, high), (reference.low, reference.high), atol=2e-4 * (high - low)
    )


def test_a_private_count_without_noise_changes_nothing(codes: np.ndarray) -> None:
    public, private = (
        mean_interval(statistics_of(codes), 0.95),
        mean_interval(statistics_of(codes, public=False), 0.95),
    )
    np.testing.assert_allclose(public, private, atol=1e-6)


def test_for_the_data_only_noise_counts(codes: np.ndarray) -> None:
    n, noise = len(codes), Noise(4.0)
    low, high = (
        float(end[0]) for end in mean_interval(statistics_of(codes, noise), 0.95, target="data")
    )
    np.testing.assert_allclose(
        (low, high), codes.mean() + np.array([-1, 1]) * stats.norm.ppf(0.975) * 2 / n, rtol=1e-9
    )


def test_for_the_data_a_noisy_count_gives_fiellers_interval(codes: np.ndarray) -> None:
    """{m : (first − m·count)² ≤ z²(v + m²v)}: a quadratic."""
    noise, z2 = Noise(4.0), stats.norm.ppf(0.975) ** 2
    count, first = float(len(codes)), codes.sum()
    roots = np.sort(np.roots([count**2 - z2 * 4, -2 * first * count, first**2 - z2 * 4]).real)
    np.testing.assert_allclose(
        [
            float(end[0])
            for end in mean_interval(statistics_of(codes, noise, public=False), 0.95, target="data")
        ],
        roots,
        rtol=1e-9,
    )


@pytest.mark.parametrize("count", [-30.0, 0.0, 0.5])
def test_a_count_that_is_noise_gives_the_whole_range(count: float) -> None:
    noise = Noise(100.0)
    statistics = MeanStatistics(
        np.array([count]), np.array([1.0]), np.array([0.2]), noise, noise, noise
    )
    assert [float(end[0]) for end in mean_interval(statistics, 0.95)] == [-1.0, 1.0]


def test_more_noise_and_alike_rows_never_narrow(codes: np.ndarray) -> None:
    def width(statistics: MeanStatistics) -> float:
        low, high = mean_interval(statistics, 0.95)
        return float(high[0] - low[0])

    assert (
        width(statistics_of(codes))
        < width(statistics_of(codes, Noise(25.0)))
        < width(statistics_of(codes, Noise(100.0)))
    )
    assert width(statistics_of(codes, cluster=3)) == pytest.approx(
        np.sqrt(3) * width(statistics_of(codes)), rel=0.06
    )


def test_totals(codes: np.ndarray) -> None:
    n, center = len(codes), 2.5
    estimate, half, sampling, privacy = (
        float(value[0])
        for value in total_interval(
            statistics_of(codes), center, 0.95, target="population", public_rows=n
        )
    )
    assert estimate == pytest.approx((codes + center).sum())
    assert half == pytest.approx(
        stats.t.ppf(0.975, n - 1) * np.sqrt(n) * codes.std(ddof=1), rel=1e-6
    )
    assert sampling == pytest.approx(n * codes.var(ddof=1), rel=1e-9)
    assert privacy < 1e-15
    estimate, half, sampling, _ = (
        float(value[0])
        for value in total_interval(
            statistics_of(codes, public=False), center, 0.95, target="population", public_rows=None
        )
    )
    # rows arrive at random
    assert sampling == pytest.approx(((codes + center) ** 2).sum(), rel=1e-9)
    _, half, _, privacy = (
        float(value[0])
        for value in total_interval(
            statistics_of(codes, Noise(4.0), public=False),
            center,
            0.95,
            target="data",
            public_rows=None,
        )
    )
    assert privacy == pytest.approx(4 + 4 * center**2)
    assert half == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(privacy))
