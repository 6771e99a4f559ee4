"""Draws follow the exact law: accepted at the true spread, rejected at one that is off by 10 %."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
    geometric_variance,
)
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import SecureSource

ALPHA = 1e-9  # a true law is rejected once in 10⁹ runs of a test
DRAWS = 400_000
ONE = Fraction(1)

MAKERS = {
    "gaussian": lambda steps: GaussianNoise(L2(ONE), Fraction(steps), 0),
    "laplace": lambda steps: LaplaceNoise(L1(ONE), Fraction(steps), 0),
    "geometric": lambda steps: GeometricNoise(L1(ONE), Fraction(steps), 0),
    "tulap": lambda steps: TulapNoise(L1(ONE), Fraction(steps), 32),
}
SPREADS = [
    ("gaussian", 1200.3),
    ("gaussian", 2.0**33 * 1.3),
    ("laplace", 1200.3),
    ("laplace", 2.0**33 * 1.3),
]
SPREADS += [("geometric", s) for s in (0.3, 1.0, 7.5, 12345.6)] + [
    ("tulap", s) for s in (0.5, 1.0, 20.5)
]


def tulap_cdf(x: np.ndarray, spread: float) -> np.ndarray:
    """reference.md M3 with q = 0."""
    b, nearest = math.exp(-1 / spread), np.floor(x + 0.5)
    left = b ** np.abs(nearest) / (1 + b) * (b + (x - nearest + 0.5) * (1 - b))
    right = 1 - b ** np.abs(nearest) / (1 + b) * (b + (nearest - x + 0.5) * (1 - b))
    return np.where(x <= 0, left, right)


def cdf_below(kind: str, spread: float, k: np.ndarray) -> np.ndarray:
    """P(noise < k) for whole k, in steps."""
    if kind == "gaussian":
        return stats.norm.cdf((k - 0.5) / spread)
    if kind == "laplace":
        return stats.laplace.cdf((k - 0.5) / spread)
    if kind == "tulap":
        return tulap_cdf(k / 2.0**32, spread)
    b = math.exp(-1 / spread)
    return np.where(
        k <= 0, b ** (1 - np.minimum(k, 0)) / (1 + b), 1 - b ** np.maximum(k, 1) / (1 + b)
    )


def edges(kind: str, spread: float) -> np.ndarray:
    """Whole numbers that cut the law into at most 64 cells of enough probability."""
    unit = 2.0**32 if kind == "tulap" else 1.0
    if kind in ("geometric", "tulap") and spread <= 8:
        reach = math.floor(spread * math.log(DRAWS / 1000))
        inner = np.arange(1 - reach, reach + 1) * unit / (2 if kind == "tulap" else 1)
    else:
        quantiles = (stats.norm if kind == "gaussian" else stats.laplace).ppf(np.arange(1, 64) / 64)
        inner = np.unique(np.round(quantiles * spread * unit))
    return inner.astype(np.int64)


def p_value(kind: str, spread: float, draws: np.ndarray) -> float:
    """Chi-square test of draws against the law with this spread."""
    inner = edges(kind, spread)
    below = np.concatenate([[0.0], cdf_below(kind, spread, inner.astype(np.float64)), [1.0]])
    expected = np.diff(below) * len(draws)
    assert expected.min() > 20
    counts = np.bincount(np.searchsorted(inner, draws, side="right"), minlength=len(inner) + 1)
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(inner)))


def sample(mechanism: AdditiveNoise) -> np.ndarray:
    return draw(mechanism, DRAWS, SecureSource())


@pytest.mark.parametrize(("kind", "spread"), SPREADS)
def test_draws_follow_the_law(kind, spread):
    assert p_value(kind, spread, sample(MAKERS[kind](spread))) > ALPHA


@pytest.mark.few(3)
@pytest.mark.parametrize(("kind", "spread"), SPREADS)
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_spread_off_by_a_tenth_is_rejected(kind, spread, factor):
    assert p_value(kind, spread, sample(MAKERS[kind](spread * factor))) < ALPHA


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_low_bits_are_uniform(kind):
    """At 10⁶ steps the last six bits of the noise carry nothing of its size."""
    counts = np.bincount(sample(MAKERS[kind](1.1e6)) & 63, minlength=64)
    assert stats.chisquare(counts).pvalue > ALPHA


def test_uniform_part_of_tulap_is_uniform_and_independent():
    draws = sample(MAKERS["tulap"](1.0))
    shifted = draws + 2**31
    fraction, whole = (shifted & (2**32 - 1)) >> 28, shifted >> 32
    assert stats.chisquare(np.bincount(fraction, minlength=16)).pvalue > ALPHA
    table = np.array([np.bincount(fraction[whole == k], minlength=16) for k in (-2, -1, 0, 1, 2)])
    assert stats.chi2_contingency(table).pvalue > ALPHA
    assert stats.chisquare(np.bincount(draws & 63, minlength=64)).pvalue > ALPHA


@pytest.mark.parametrize("spread", [0.05, 0.3, 1.0, 7.5])
def test_geometric_probability_of_zero(spread):
    b = math.exp(-1 / spread)
    zeros = int(np.count_nonzero(sample(MAKERS["geometric"](spread)) == 0))
    assert stats.binomtest(zeros, DRAWS, (1 - b) / (1 + b)).pvalue > ALPHA


def test_signs_are_fair_and_neighbouring_draws_are_independent():
    draws = sample(MAKERS["gaussian"](1200.3))
    assert (
        stats.binomtest(
            int(np.count_nonzero(draws[draws != 0] > 0)), int(np.count_nonzero(draws))
        ).pvalue
        > ALPHA
    )
    correlation = np.corrcoef(draws[:-1], draws[1:])[0, 1]
    assert abs(correlation) * math.sqrt(DRAWS) < stats.norm.isf(ALPHA / 2)


@pytest.mark.parametrize(
    ("spread", "t", "value"),
    [
        (1.0, -2.3, 0.048905414708421836),
        (1.0, 1.7, 0.9135701314718091),
        (0.5, 0.5, 0.8807970779778824),
    ],
)
def test_tulap_reference_values(spread, t, value):
    """Stored values: convolution of the two parts in mpmath at 40 digits (tulap_cdf_e1_t-2.3,
    _e1_t1.7, _e2_t0.5).
    """
    assert float(tulap_cdf(np.array([t]), spread)[0]) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(("kind", "spread"), SPREADS)
def test_variance_that_the_mechanism_states(kind, spread):
    mechanism = MAKERS[kind](spread)
    values = sample(mechanism) * float(mechanism.step)
    error = (
        10
        * mechanism.variance
        / math.sqrt(DRAWS)
        * math.sqrt(6 if spread >= 1 else 1 / geometric_variance(spread))
    )
    assert abs(values.var() - mechanism.variance) < error
