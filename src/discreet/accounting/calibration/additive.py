"""The least noise for a target: every spread is rounded up, so the guarantee holds exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.exact import float_down, float_up, sqrt_up
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    LARGEST_STEPS,
    SMALLEST_STEPS,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
)
from discreet.trusted.losses.losses import Loss
from discreet.trusted.losses.pricing import loss_fits, spend_box


def gaussian_noise(sensitivity: L2, mu_squared: Fraction) -> GaussianNoise:
    """Gaussian noise that is μ-GDP: σ = Δ/μ, rounded up (reference.md B5)."""
    sigma = sqrt_up(sensitivity.squared / mu_squared)
    return GaussianNoise(sensitivity, sigma, _refinement(sigma))


def laplace_noise(sensitivity: L1, epsilon: Fraction) -> LaplaceNoise:
    """Laplace noise that is ε-DP: b = Δ/ε, rounded up (reference.md B2)."""
    scale = Fraction(float_up(sensitivity.value / epsilon))
    return LaplaceNoise(sensitivity, scale, _refinement(scale))


def geometric_noise(sensitivity: L1, epsilon: Fraction) -> GeometricNoise:
    """Two-sided geometric noise on the integers that is ε-DP:
    P(k) ∝ e^(−|k|ε/Δ), the scale rounded up.
    """
    scale = Fraction(float_up(sensitivity.value / epsilon))
    if scale > LARGEST_STEPS:
        raise _too_much()
    return GeometricNoise(sensitivity, scale, 0)


def pure_within(spend: Guarantee, delta: Fraction = Fraction(0), *, parts: int = 1) -> Fraction:
    """The greatest ε (a float) such that `parts` pure mechanisms of ε each, one after another, cost
    no more than a spend with δ₀ = `delta`.
    """
    return _greatest(spend, delta, lambda epsilon: Loss(pure=(epsilon,) * parts), parts)


def bounded_range_within(
    spend: Guarantee, delta: Fraction = Fraction(0), *, parts: int = 1
) -> Fraction:
    """The same for mechanisms of bounded range ε,
    such as the exponential mechanism (reference.md B6).
    """
    return _greatest(spend, delta, lambda epsilon: Loss(bounded_range=(epsilon,) * parts), parts)


def _greatest(
    spend: Guarantee, delta: Fraction, loss: Callable[[Fraction], Loss], parts: int
) -> Fraction:
    box = spend_box(spend, delta)
    if box.epsilon:
        return Fraction(float_down(box.epsilon / parts))
    low, high = 0.0, 1.0
    while loss_fits(loss(Fraction(high)), box):
        low, high = high, 2 * high
    while high - low > 1e-12 * high and math.nextafter(low, high) < high:
        middle = low + (high - low) / 2
        low, high = (middle, high) if loss_fits(loss(Fraction(middle)), box) else (low, middle)
    return Fraction(low)


def _refinement(spread: Fraction) -> int:
    """The least refinement whose grid is at most a 1024th of the spread."""
    if spread > LARGEST_STEPS:
        raise _too_much()
    return max(0, math.ceil(math.log2(SMALLEST_STEPS / spread))) if spread < SMALLEST_STEPS else 0


def _too_much() -> InvalidParameter:
    return InvalidParameter(
        "spend=",
        "it is so small that the noise would span more than 2**50 grid steps",
        "such an answer would be noise alone",
        "spend more, or declare a column with 16 bits",
    )
