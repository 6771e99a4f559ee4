"""Half-widths against numerical integration that shares nothing with them,
and the coverage that laws.py claims.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from discreet.inference.results.laws import (
    Noise,
    allow_for_noisy_variance,
    half_width,
    student_factor,
    tail_and_density,
)

LEVELS = (0.5, 0.9, 0.95, 0.99)


def laplace_noise(*scales: float) -> Noise:
    return Noise(sum(2 * b**2 for b in scales), sum(b**4 for b in scales))


def coverage_by_convolution(x: float, sigma: float, scale: float) -> float:
    """P(|sigma·Z + scale·L| ≤ x), integrated over Z,
    split at the kinks of Laplace's distribution function.
    """
    law = stats.laplace(scale=scale)
    kinks = sorted(point for point in (-x / sigma, x / sigma) if abs(point) < 12)
    edges = [-12.0, *kinks, 12.0]
    parts = [
        integrate.quad(
            lambda z: stats.norm.pdf(z) * (law.cdf(x - sigma * z) - law.cdf(-x - sigma * z)),
            low,
            high,
            epsabs=1e-12,
            limit=200,
        )[0]
        for low, high in itertools.pairwise(edges)
    ]
    return float(sum(parts))


def coverage_by_inversion(x: float, sigma: float, scales: tuple[float, ...]) -> float:
    """P(|E| ≤ x) from the characteristic function: (2/π)∫ sin(tx)/t·φ(t) dt, Simpson's rule."""
    t = np.linspace(0.0, 300.0, 600_001)
    kernel = x * np.sinc(t * x / np.pi) * np.exp(-0.5 * (sigma * t) ** 2)
    for scale in scales:
        kernel = kernel / (1 + (scale * t) ** 2)
    return float(2 / np.pi * integrate.simpson(kernel, x=t))


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1e-3, 0.1, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("level", LEVELS)
def test_normal_and_one_laplace_is_exact(sigma: float, level: float) -> None:
    x = float(half_width(level, np.array([sigma**2]), laplace_noise(1.0))[0])
    assert coverage_by_convolution(x, sigma, 1.0) == pytest.approx(level, abs=1e-8)
    assert abs(coverage_by_convolution(1.02 * x, sigma, 1.0) - level) > 1e-4  # the test sees 2 %


@pytest.mark.parametrize("level", LEVELS)
def test_bare_laws(level: float) -> None:
    assert half_width(level, np.zeros(1), laplace_noise(2.5))[0] == pytest.approx(
        2.5 * -np.log(1 - level), rel=1e-10
    )
    assert half_width(level, np.array([9.0]), Noise(16.0))[0] == pytest.approx(
        5 * stats.norm.ppf(0.5 + level / 2), rel=1e-12
    )
    assert half_width(level, np.zeros(1), Noise(0.0))[0] == 0


def test_half_width_is_elementwise_and_scales() -> None:
    sampling, noise = (
        np.array([0.0, 1.0, 4.0]),
        Noise(np.array([2.0, 2.0, 0.5]), np.array([1.0, 0.0, 0.0625])),
    )
    together = half_width(0.95, sampling, noise)
    alone = [
        float(
            half_width(
                0.95, sampling[i : i + 1], Noise(noise.variance[i : i + 1], noise.fourth[i : i + 1])
            )[0]
        )
        for i in range(3)
    ]
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    np.testing.assert_allclose(
        half_width(0.95, 9 * sampling, noise.scaled(3.0)), 3 * together, rtol=1e-9
    )


@pytest.mark.parametrize("ratio", [1e-12, 1e-8, 1e-3, 1.0, 30.0, 1e4])
def test_tail_and_density_belong_together(ratio: float) -> None:
    x, gaussian, scale = (
        np.linspace(0.01, 12, 40) * max(ratio, 1.0),
        np.full(40, ratio),
        np.ones(40),
    )
    step = 1e-5 * max(ratio, 1.0)
    tail, density = tail_and_density(x, gaussian, scale)
    slope = (
        tail_and_density(x - step, gaussian, scale)[0]
        - tail_and_density(x + step, gaussian, scale)[0]
    ) / (2 * step)
    np.testing.assert_allclose(density, slope, rtol=1e-4, atol=1e-12)
    assert np.all(np.isfinite(tail))
    assert np.all((tail >= 0) & (tail <= 0.5))


SEVERAL = [(1.0, 1.0), (1.0, 1.0, 1.0), (1.0,) * 9, (1.0, 0.5), (1.0, 0.9, 0.1)]
ALLOWED = {0.5: 0.015, 0.9: 0.004, 0.95: 0.003, 0.99: 0.003}


@pytest.mark.slow
@pytest.mark.parametrize("scales", SEVERAL)
@pytest.mark.parametrize("sigma", [0.0, 0.3, 1.0, 3.0])
def test_several_laplace_parts_cover_as_claimed(scales: tuple[float, ...], sigma: float) -> None:
    for level, allowed in ALLOWED.items():
        x = float(half_width(level, np.array([sigma**2]), laplace_noise(*scales))[0])
        error = coverage_by_inversion(x, sigma, scales) - level
        assert abs(error) <= allowed
        if sigma >= 1 and level == 0.95:  # sampling error as large as one part: within 0.002
            assert abs(error) <= 0.002


def test_the_inversion_agrees_with_the_convolution_and_the_claim_can_fail() -> None:
    assert coverage_by_inversion(2.0, 0.7, (1.0,)) == pytest.approx(
        coverage_by_convolution(2.0, 0.7, 1.0), abs=1e-7
    )
    normal_only = float(half_width(0.99, np.zeros(1), Noise(4.0))[0])  # the kurtosis ignored
    assert abs(coverage_by_inversion(normal_only, 0.0, (1.0, 1.0)) - 0.99) > ALLOWED[0.99]


Z = np.linspace(-8.5, 8.5, 4001)
WEIGHTS = stats.norm.pdf(Z) / stats.norm.pdf(Z).sum()
SAMPLING = np.concatenate([[0.0], np.logspace(-2, 3.5, 70)])  # in units of the known part


def coverage_with_noisy_variance(
    level: float, deviation: float, *, widen: bool = True
) -> np.ndarray:
    """Coverage at each true sampling variance, when it is estimated with normal noise of the given
    deviation (known part 1).
    """
    sampling, factor = allow_for_noisy_variance(
        level, SAMPLING[:, None] + deviation * Z, deviation, 1.0
    )
    half = stats.norm.ppf(0.5 + level / 2) * np.sqrt(sampling + 1.0) * (factor if widen else 1.0)
    return np.asarray((2 * stats.norm.cdf(half / np.sqrt(SAMPLING[:, None] + 1.0)) - 1) @ WEIGHTS)


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [0.01, 0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 1.8, 2.0])
def test_noisy_variance_covers_as_claimed(deviation: float) -> None:
    coverage = coverage_with_noisy_variance(0.95, deviation)
    assert coverage.min() >= 0.943
    assert coverage.max() <= 0.975
    if deviation <= 1.5:
        assert coverage.min() >= 0.946
    assert coverage_with_noisy_variance(0.99, deviation).min() >= 0.976


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [2.05, 2.5, 4.0, 20.0, 500.0])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_very_noisy_variance_never_covers_too_little(deviation: float, level: float) -> None:
    assert coverage_with_noisy_variance(level, deviation).min() >= level - 1e-4


def test_without_the_widening_the_claim_fails() -> None:
    assert coverage_with_noisy_variance(0.95, 1.5, widen=False).min() < 0.94
    np.testing.assert_allclose(coverage_with_noisy_variance(0.95, 1e-9), 0.95, atol=1e-6)


@pytest.mark.parametrize("freedom", [3, 4.5, 10, 1000])
@pytest.mark.parametrize("level", LEVELS)
def test_student_factor(freedom: float, level: float) -> None:
    tail = 0.5 + level / 2
    assert student_factor(level, freedom) == pytest.approx(
        stats.t.ppf(tail, freedom) / stats.norm.ppf(tail), rel=1e-9
    )


def test_student_factor_stays_finite_where_the_count_is_noise() -> None:
    np.testing.assert_array_equal(
        student_factor(0.95, np.array([-5.0, 0.0, 3.0])), student_factor(0.95, np.full(3, 3.0))
    )
    assert student_factor(0.95, 1e30) == pytest.approx(1, abs=1e-8)
