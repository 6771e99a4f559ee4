"""The least noise for a target: every spread is rounded up, so the guarantee holds exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text, float_down, float_up, sqrt_up
from discreet.sensitivity import L1, L2, Frobenius
from discreet.specs.mechanisms.additive import (
    LARGEST_STEPS,
    SMALLEST_STEPS,
    TULAP_BITS,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import LARGEST_CUT_SPREAD, CutTulapNoise
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.pricing import loss_fits, spend_box
from discreet.trusted.losses.theorems import cut_bounds


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


def symmetric_noise(sensitivity: Frobenius, mu_squared: Fraction) -> SymmetricGaussianNoise:
    """Symmetric noise that is μ-GDP: s = Δ/μ and s/√2 off the diagonal, each rounded up."""
    spread = sqrt_up(sensitivity.squared / mu_squared)
    if spread > LARGEST_STEPS:
        raise _too_much("spend more, or ask about fewer columns")
    off_spread = sqrt_up(sensitivity.squared / (2 * mu_squared))
    return SymmetricGaussianNoise(sensitivity, spread, off_spread, _refinement(off_spread))


@plain.remembered(256)
def cut_tulap_noise(sensitivity: L1, epsilon: Fraction, delta: Fraction) -> CutTulapNoise:
    """Tulap noise that is (ε, δ)-DP: the spread k/ε rounded up, the reach the least whole number of
    grid steps at which δ is certainly no more than asked.

    δ falls as the reach grows, so bisection finds it. A δ so large that less than the sensitivity
    would be reached is not used up.
    """
    spread = Fraction(float_up(sensitivity.value / epsilon))
    if spread > LARGEST_CUT_SPREAD:
        raise InvalidParameter(
            "spend=",
            f"epsilon = {decimal_text(epsilon)} would spread the noise over more than 2**18 counts",
            "its uniform part would not fit 64-bit answers",
            "spend more, or leave noise= out: Gaussian noise has no such limit",
        )
    noise = TulapNoise(sensitivity, spread, TULAP_BITS)
    low = int(sensitivity.value) << noise.refinement

    def fits(reach: int) -> bool:
        return float_up(cut_bounds(noise, reach)[1]) <= delta

    if fits(low):
        return CutTulapNoise(noise, low)
    high = 2 * low
    while not fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return CutTulapNoise(noise, high)


def pure_within(spend: Guarantee, delta: Fraction = Fraction(0), *, times: int = 1) -> Fraction:
    """The greatest ε (a float) such that `times` pure mechanisms of ε each, one after another, cost
    no more than a spend with δ₀ = `delta`.
    """
    return _greatest(spend, delta, lambda epsilon: Loss(pure=(epsilon,) * times), times)


def bounded_range_within(
    spend: Guarantee, delta: Fraction = Fraction(0), *, times: int = 1
) -> Fraction:
    """The same for mechanisms of bounded range ε,
    such as the exponential mechanism (reference.md B6).
    """
    return _greatest(spend, delta, lambda epsilon: Loss(bounded_range=(epsilon,) * times), times)


def _greatest(
    spend: Guarantee, delta: Fraction, loss: Callable[[Fraction], Loss], times: int
) -> Fraction:
    box = spend_box(spend, delta)
    if box.epsilon:
        return Fraction(float_down(box.epsilon / times))
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


def _too_much(remedy: str = "spend more, or declare a column with 16 bits") -> InvalidParameter:
    return InvalidParameter(
        "spend=",
        "it is so small that the noise would span more than 2**50 grid steps",
        "such an answer would be noise alone",
        remedy,
    )
