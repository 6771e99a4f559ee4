"""The exact dictionary between μ-GDP and (ε, δ)-DP,
and the μ of a pure guarantee (reference.md A5–A7, B5).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.enclosure import enclose, least_float, lower_float, normal_tail, upper_float
from discreet.exact import readings


def delta_bounds(mu: Fraction, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)."""

    def formula(ball: Any) -> Any:
        center, half = ball(epsilon) / ball(mu), ball(mu) / 2
        return normal_tail(ball, center - half) - ball(epsilon).exp() * normal_tail(
            ball, center + half
        )

    return enclose(formula)


@plain.remembered(4096)
def gdp_delta(mu: Fraction, epsilon: Fraction) -> float:
    """δ_μ(ε), rounded up.

    Theorem.  A mechanism is μ-GDP iff it is (ε, δ_μ(ε))-DP for every ε ≥ 0 (reference.md A7).
    Checked.  tests/accounting/test_gaussian.py::test_delta_matches_direct_integration
    """
    return min(1.0, upper_float(delta_bounds(mu, epsilon)))


@plain.remembered(1024)
def gdp_epsilon(mu: Fraction, delta: Fraction) -> float:
    """The least ε with δ_μ(ε) ≤ δ, rounded up."""

    def enough(epsilon: float) -> bool:
        return delta_bounds(mu, readings(epsilon)[0])[1] <= delta

    if enough(0.0):
        return 0.0
    high = max(1.0, float(mu) ** 2)
    while not enough(high):
        high *= 2
    return least_float(enough, 0.0, high)


@plain.remembered(1024)
def mu_for_approx(epsilon: Fraction, delta: Fraction) -> float:
    """The greatest μ with δ_μ(ε) ≤ δ, rounded down: the analytic Gaussian's μ (reference.md B5)."""

    def too_much(mu: float) -> bool:
        return delta_bounds(readings(mu)[1], epsilon)[1] > delta

    low = high = 1.0
    while not too_much(high):
        high *= 2
    while too_much(low):
        low /= 2
    mu = least_float(too_much, low, high)
    while too_much(mu):
        mu = math.nextafter(mu, 0.0)
    return mu


@plain.remembered(1024)
def mu_for_pure(epsilon: Fraction) -> float:
    """The least μ such that every ε-DP mechanism is μ-GDP, rounded up: −2Φ⁻¹(1/(1+e^ε)).

    Theorem.  f_(ε,0) ≥ G_μ everywhere iff Φ(−μ/2) ≤ 1/(1+e^ε).
    Proof.    Both curves are symmetric about the diagonal; f_(ε,0) meets it at its kink
              α = 1/(1+e^ε), G_μ at Φ(−μ/2). f_(ε,0) is linear from (0, 1) to the kink, and G_μ is
              convex with G_μ(0) = 1 and lies below or on the kink, hence below the chord; the other
              half follows by symmetry. Necessity: at the kink.
    Checked.  tests/accounting/test_gaussian.py::test_pure_curve_lies_above_its_gaussian
    """
    return upper_float(
        enclose(lambda ball: 2 * ball(2).sqrt() * (2 / (1 + ball(epsilon).exp())).erfcinv())
    )


def tradeoff_gdp(mu: float, alpha: float) -> float:
    """G_μ(α) = Φ(Φ⁻¹(1−α) − μ), rounded down (reference.md A6)."""
    if alpha <= 0.0 or alpha >= 1.0:
        return 1.0 if alpha <= 0.0 else 0.0

    def formula(ball: Any) -> Any:
        quantile = ball(2).sqrt() * (2 * ball(Fraction(alpha))).erfcinv()
        return normal_tail(ball, ball(Fraction(mu)) - quantile)

    return max(0.0, lower_float(enclose(formula)))
