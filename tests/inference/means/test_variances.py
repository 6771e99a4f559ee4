"""Intervals for variances: the score interval where noise is tiny,
never outside what a variance can be.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference.means.variances import VarianceStatistics, variance_interval
from discreet.inference.results.laws import Noise, student_factor


def statistics_of(codes: np.ndarray, noise: Noise, *, cluster: int = 1) -> VarianceStatistics:
    sums = [
        float(len(codes)),
        codes.sum(),
        (codes**2).sum(),
        (codes * (1 - codes**2)).sum(),
        (codes**2 * (1 - codes**2)).sum(),
    ]
    return VarianceStatistics(
        tuple(np.array([value]) for value in sums), (Noise(0.0), *(noise,) * 4), cluster
    )


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    return np.random.default_rng(8).beta(2, 4, 500) * 2 - 1


def test_moments_are_the_textbooks(codes: np.ndarray) -> None:
    statistics = statistics_of(codes, Noise(1e-20))
    assert float(statistics.estimate[0]) == pytest.approx(codes.var(ddof=1), rel=1e-12)
    fourth, _ = statistics.fourth()
    assert float(fourth[0]) == pytest.approx(
        stats.moment(codes, 4) - codes.var(ddof=1) ** 2, rel=1e-9
    )
    first, second = float(fourth[0]) / len(codes), 2 * (codes.var(ddof=1) / len(codes)) ** 2
    assert float(statistics.sampling_variance()[0]) == pytest.approx(first + second, rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_without_noise_it_is_the_score_interval(codes: np.ndarray, level: float) -> None:
    """(s² − v)² ≤ q²·V·(v/s²)², so v = s²/(1 ∓ q√V/s²)."""
    statistics = statistics_of(codes, Noise(1e-20))
    low, high = (float(end[0]) for end in variance_interval(statistics, level))
    s2, sampling = codes.var(ddof=1), float(statistics.sampling_variance()[0])
    q = (
        stats.norm.ppf(0.5 + level / 2)
        * float(student_factor(level, len(codes) / 4))
        * np.sqrt(sampling)
        / s2
    )
    np.testing.assert_allclose((low, high), (s2 / (1 + q), s2 / (1 - q)), rtol=1e-6)


def test_for_the_data_only_noise_counts(codes: np.ndarray) -> None:
    statistics = statistics_of(codes, Noise(1.0))
    low, high = (float(end[0]) for end in variance_interval(statistics, 0.95, target="data"))
    deviation = np.sqrt(1 + 4 * codes.mean() ** 2) / len(codes)
    assert (high - low) / 2 == pytest.approx(stats.norm.ppf(0.975) * deviation, rel=1e-6)


def test_the_noise_in_the_mean_is_taken_out() -> None:
    """E[Σc²/n − (Σc/n + noise)²] falls short by Var(noise); the estimate gives it back."""
    codes, rng, noise = np.full(50, 0.1), np.random.default_rng(3), Noise(25.0)
    values = statistics_of(codes, noise).values
    repeated = tuple(
        value + (rng.normal(0, 5, 200_000) if i == 1 else 0.0) for i, value in enumerate(values)
    )
    quiet = Noise(0.0)
    raw = VarianceStatistics(repeated, (quiet,) * 5).estimate.mean()
    corrected = VarianceStatistics(repeated, (quiet, noise, quiet, quiet, quiet)).estimate.mean()
    assert abs(corrected) < 3e-4
    assert raw < -5e-3


@pytest.mark.parametrize("second", [-40.0, 0.0, 300.0])
def test_ends_stay_in_the_range_of_a_variance(second: float) -> None:
    noise = Noise(900.0)
    values = tuple(np.array([value]) for value in (60.0, 5.0, second, -10.0, 20.0))
    low, high = (
        float(end[0]) for end in variance_interval(VarianceStatistics(values, (noise,) * 5), 0.95)
    )
    assert 0 <= low <= high <= 2  # n/(n − 1), and noise hides n
    assert high > 0


def test_more_noise_and_alike_rows_widen(codes: np.ndarray) -> None:
    widths = [
        float(
            np.subtract(
                *variance_interval(statistics_of(codes, Noise(noise), cluster=cluster), 0.95)[::-1]
            )[0]
        )
        for noise, cluster in ((1e-20, 1), (9.0, 1), (100.0, 1), (1e-20, 3))
    ]
    assert widths[0] < widths[1] < widths[2]
    assert widths[3] > 1.6 * widths[0]


SHAPES = {
    "normal": (lambda rng, shape: rng.normal(0.0, 0.2, shape), 0.04),
    "at a bound": (lambda rng, shape: rng.uniform(-1.0, -0.6, shape), 0.16 / 12),
    "two points": (lambda rng, shape: rng.choice([-1.0, 1.0], shape), 1.0),
}


def noisy_variances(
    rows: int, mu: float, codes: np.ndarray, rng: np.random.Generator, *, private: bool
) -> VarianceStatistics:
    """Joint moments of many data sets (one a cell) with the noise of a release of order 4."""
    spread = 2.38 / mu  # of one moment, as `dp.variance` draws it
    sums = [
        np.full(len(codes), float(rows)),
        codes.sum(axis=1),
        (codes**2).sum(axis=1),
        (codes * (1 - codes**2)).sum(axis=1),
        (codes**2 * (1 - codes**2)).sum(axis=1),
    ]
    spreads = [spread if private else 0.0, *[spread] * 4]
    values = tuple(
        one + size * rng.standard_normal(len(codes))
        for one, size in zip(sums, spreads, strict=True)
    )
    return VarianceStatistics(values, tuple(Noise(size**2) for size in spreads))


@pytest.mark.few(3)
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mu", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("rows", [pytest.param(30, marks=pytest.mark.slow), 200])
def test_a_variance_that_is_lost_in_noise_is_covered(
    rows: int, mu: float, shape: str, private: bool
) -> None:
    """Of 60 data sets at 0.95 fewer than 48 intervals would cover by chance once in 10⁹ cases."""
    rng = np.random.default_rng(rows)
    draw, population = SHAPES[shape]
    codes = np.clip(draw(rng, (60, rows)), -1, 1)
    statistics = noisy_variances(rows, mu, codes, rng, private=private)
    for target, truth in (("data", codes.var(axis=1, ddof=1)), ("population", population)):
        low, high = variance_interval(statistics, 0.95, target=target)
        assert np.count_nonzero((low <= truth + 1e-12) & (truth <= high + 1e-12)) >= 48


def test_a_noise_that_differs_by_cell_is_read_by_cell() -> None:
    """Of counts that are at most the public number of rows, the noise has a variance a cell."""
    values = tuple(np.full(2, value) for value in (60.0, 1.0, 0.5, 0.0, 0.1))
    alike = VarianceStatistics(values, (Noise(400.0),) * 5, 1)
    by_cell = VarianceStatistics(values, (Noise(np.array([400.0, 1e-9])), *(Noise(400.0),) * 4), 1)
    assert alike.lost()[0]
    low, high = variance_interval(by_cell, 0.95)
    again = variance_interval(alike, 0.95)
    assert (low[0], high[0]) == (again[0][0], again[1][0])


def test_two_values_in_equal_halves_have_an_error_of_second_order() -> None:
    """μ₄ = σ⁴ there: s² is 4·p̂(1 − p̂)·n/(n − 1) for values ±1, within about 2√2/n of 1."""
    rng, rows = np.random.default_rng(6), 400
    covered = 0
    for _ in range(200):
        codes = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
        low, high = variance_interval(statistics_of(codes, Noise(1e-6)), 0.95)
        covered += low[0] <= 1 <= high[0]
    assert covered >= 180  # of 200 by the exact law 0.94 or more; without it below 20
