"""Symmetric matrix noise: its exact μ², and the least noise for a target."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.errors import InvalidParameter
from discreet.exact import sqrt_up
from discreet.sensitivity import Frobenius
from discreet.specs.mechanisms.additive import LARGEST_STEPS, SMALLEST_STEPS
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise


def symmetric_mu_squared(mechanism: SymmetricGaussianNoise) -> Fraction:
    """μ² of symmetric matrix noise, exactly, from the two spreads that are drawn.

    Theorem.  The mechanism is μ-GDP with μ² = Δ²·max(1/s², 1/(2t²)), Δ the Frobenius sensitivity,
              s and t the standard deviations on and off the diagonal (reference.md G5); for
              t = s/√2 this is (Δ/s)².
    Proof.    Between two neighbours the real-valued outputs are normal with the same covariance and
              means that differ by D. Their trade-off curve is G_m with m² = Σ D_diag²/s² + Σ
              D_off²/t² + Σ D_rest²/s², which is at most max(1/s², 1/(2t²))·(Σ D_diag² + 2Σ
              D_off² + Σ D_rest²). Rounding to a grid that holds the statistic is post-processing.
    Checked.  tests/claims/test_symmetric_noise.py
    """
    worst = max(1 / mechanism.spread**2, 1 / (2 * mechanism.off_spread**2))
    return mechanism.sensitivity.squared * worst


def symmetric_noise(sensitivity: Frobenius, mu_squared: Fraction) -> SymmetricGaussianNoise:
    """Symmetric noise that is μ-GDP: s = Δ/μ and s/√2 off the diagonal, each rounded up."""
    spread = sqrt_up(sensitivity.squared / mu_squared)
    if spread > LARGEST_STEPS:
        raise InvalidParameter(
            "spend=",
            "it is so small that the noise would span more than 2**50 grid steps",
            "such an answer would be noise alone",
            "spend more, or ask about fewer columns",
        )
    off_spread = sqrt_up(sensitivity.squared / (2 * mu_squared))
    fine = (
        max(0, math.ceil(math.log2(SMALLEST_STEPS / off_spread)))
        if off_spread < SMALLEST_STEPS
        else 0
    )
    return SymmetricGaussianNoise(sensitivity, spread, off_spread, fine)
