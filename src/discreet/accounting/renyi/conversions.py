"""From Rényi divergences to (ε, δ) and back,
each formula a function of numbers (reference.md D2–D5).

    D_α(P‖Q) = ln E_Q[(P/Q)^α] / (α−1)
    ρ-zCDP:  D_α ≤ αρ for every α > 1, both orders of the neighbours

Whatever order α a search in floats proposes gives a true statement; the statement itself is
evaluated in balls and rounded against us. So a poor search can only cost tightness.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.accounting.parameters import (
    ORDER_CEILING,
    RHO_CEILING,
    RHO_FLOOR,
    Number,
    failure_probability,
    not_negative,
    order_above_one,
    positive,
    within,
)
from discreet.enclosure import enclose, lower_float, upper_float

_GOLDEN = (math.sqrt(5) - 1) / 2
_LOWEST, _HIGHEST = -30.0, 80.0  # ln(α−1) that is searched


def rdp_epsilon(order: Number, divergence: Number, delta: Number) -> float:
    """The ε of an (ε, δ) statement from D_α ≤ r: max(0, r + ln((α−1)/α) − (ln δ + ln α)/(α−1)),
    rounded up (reference.md D4).

    Theorem.  D_α(P‖Q) ≤ r implies P(E) ≤ e^ε Q(E) + δ with δ = e^{(α−1)(r−ε)} (1−1/α)^α / (α−1),
              for every real ε.
    Proof.    With Z = ln(P/Q) under P, sup_E P(E) − e^ε Q(E) = E(1−e^{ε−Z})₊ ≤ E e^{(α−1)Z} · max_z
              (1−e^{ε−z})₊ e^{−(α−1)z}. The maximum is at e^{ε−z} = (α−1)/α and equals e^{−(α−1)ε}
              (1−1/α)^{α−1}/α; E e^{(α−1)Z} ≤ e^{(α−1)r}.
    Checked.  tests/accounting/test_renyi.py::test_tight_conversion_holds_on_random_pairs
    """
    a, r, d = (
        order_above_one(order),
        not_negative(divergence, "divergence"),
        failure_probability(delta),
    )
    return max(
        0.0,
        upper_float(
            enclose(
                lambda ball: (
                    ball(r)
                    + (1 - 1 / ball(a)).log()
                    - (ball(d).log() + ball(a).log()) / ball(a - 1)
                )
            )
        ),
    )


def rdp_epsilon_mironov(order: Number, divergence: Number, delta: Number) -> float:
    """The basic conversion ε = r + ln(1/δ)/(α−1), rounded up;
    never better than `rdp_epsilon` (Mironov 2017).
    """
    a, r, d = (
        order_above_one(order),
        not_negative(divergence, "divergence"),
        failure_probability(delta),
    )
    return upper_float(enclose(lambda ball: ball(r) - ball(d).log() / ball(a - 1)))


def rdp_delta(order: Number, divergence: Number, epsilon: Number) -> float:
    """The δ of `rdp_epsilon`'s theorem at a given ε ≥ 0, at most 1, rounded up."""
    a, r, e = (
        order_above_one(order),
        not_negative(divergence, "divergence"),
        not_negative(epsilon, "epsilon"),
    )
    if log_delta(float(a), float(r), float(e)) > 1:
        return 1.0  # true whatever the float says, and e^(huge) is never formed
    return min(
        1.0,
        upper_float(
            enclose(
                lambda ball: (
                    (ball((a - 1) * (r - e)) + ball(a) * (1 - 1 / ball(a)).log()).exp()
                    / ball(a - 1)
                )
            )
        ),
    )


def rdp_delta_mironov(order: Number, divergence: Number, epsilon: Number) -> float:
    """The basic δ = e^{−(α−1)(ε−r)}, at most 1, rounded up."""
    a, r, e = (
        order_above_one(order),
        not_negative(divergence, "divergence"),
        not_negative(epsilon, "epsilon"),
    )
    return (
        1.0
        if e <= r
        else min(1.0, upper_float(enclose(lambda ball: ball((a - 1) * (r - e)).exp())))
    )


def log_delta(order: float, divergence: float, epsilon: float) -> float:
    """ln δ of `rdp_delta` in plain floats: for searches, never for promises."""
    return (
        (order - 1) * (divergence - epsilon) + order * math.log1p(-1 / order) - math.log(order - 1)
    )


def zcdp_epsilon(rho: Number, delta: Number) -> float:
    """The least ε that ρ-zCDP gives at δ by `rdp_epsilon` with r = αρ, over α, rounded up
    (reference.md D2; Canonne–Kamath–Steinke 2020).
    """
    p, d = _rho(rho), failure_probability(delta)
    size, log_one_over_delta = float(p), -_log(d)

    def epsilon(order: float) -> float:
        return (
            order * size
            + math.log1p(-1 / order)
            + (log_one_over_delta - math.log(order)) / (order - 1)
        )

    best = best_order(epsilon)
    return rdp_epsilon(best, best * p, d)


def zcdp_epsilon_bun_steinke(rho: Number, delta: Number) -> float:
    """ε = ρ + 2√(ρ ln(1/δ)), rounded up; never better than `zcdp_epsilon` (reference.md D2;
    Bun–Steinke 2016).
    """
    p, d = _rho(rho), failure_probability(delta)
    return upper_float(enclose(lambda ball: ball(p) + 2 * (-ball(p) * ball(d).log()).sqrt()))


def zcdp_delta(rho: Number, epsilon: Number) -> float:
    """The least δ that ρ-zCDP gives at ε ≥ 0 by `rdp_delta` with r = αρ, over α, rounded up."""
    p, e = _rho(rho), not_negative(epsilon, "epsilon")
    size, asked = float(p), float(e)
    best = best_order(lambda order: log_delta(order, order * size, asked))
    return rdp_delta(best, best * p, e)


def zcdp_rho(epsilon: Number, delta: Number) -> float:
    """A ρ such that every ρ-zCDP mechanism is (ε, δ)-DP:
    the greatest by `zcdp_epsilon`, rounded down (reference.md D3).

    Theorem.  ρ = max_{α>1} (ε − ln((α−1)/α) + (ln δ + ln α)/(α−1)) / α.
    Proof.    For each α, `rdp_epsilon` with r = αρ is at most ε iff ρ is at most that.
    """
    e, d = positive(epsilon, "epsilon"), failure_probability(delta)
    asked, log_one_over_delta = float(e), -_log(d)

    def minus_rho(order: float) -> float:
        return (
            -(asked - math.log1p(-1 / order) - (log_one_over_delta - math.log(order)) / (order - 1))
            / order
        )

    a = best_order(minus_rho)
    found = lower_float(
        enclose(
            lambda ball: (
                (ball(e) - (1 - 1 / ball(a)).log() + (ball(d).log() + ball(a).log()) / ball(a - 1))
                / ball(a)
            )
        )
    )
    return max(found, zcdp_rho_bun_steinke(e, d))


def zcdp_rho_bun_steinke(epsilon: Number, delta: Number) -> float:
    """ρ = (√(ln(1/δ) + ε) − √ln(1/δ))², rounded down (reference.md D3)."""
    e, d = positive(epsilon, "epsilon"), failure_probability(delta)
    return lower_float(
        enclose(lambda ball: ((ball(e) - ball(d).log()).sqrt() - (-ball(d).log()).sqrt()) ** 2)
    )


def pure_rho(epsilon: Number) -> float:
    """The least ρ such that every ε-DP mechanism is ρ-zCDP:
    ε·tanh(ε/2) ≤ min(ε²/2, ε), rounded up (reference.md D5).

    Theorem.  D_α ≤ α ε tanh(ε/2) for every α > 1, and no smaller ρ will do.
    Proof.    Randomised response is the worst pair (`pure_renyi`): (α−1)D_α = g(α−1), g(t) = ln
              cosh(ε(t+½)) − ln cosh(ε/2). g(0) = 0 and g′(t) = ε tanh((2t+1)ε/2) ≤ (2t+1)
              ε tanh(ε/2), tanh being concave on x ≥ 0 with tanh 0 = 0; integrate: g(t) ≤ t(t+1)
              ε tanh(ε/2). As α → 1 the divergence tends to ε tanh(ε/2): equality.
    Checked.  tests/accounting/test_renyi.py::test_pure_rho_is_the_least
    """
    e = positive(epsilon, "epsilon")
    return upper_float(enclose(lambda ball: ball(e) * (ball(e) / 2).tanh()))


def bounded_range_rho(epsilon: Number) -> Fraction:
    """The ρ of a mechanism whose privacy loss has range ε (max − min over outputs),
    the exponential mechanism among them: ε²/8.

    Theorem.  D_α ≤ α ε²/8 for every α > 1 (reference.md B6). The exponential
              mechanism ∝ π·exp(εu/(2Δ)) has range ε.
    Proof.    K(s) = ln E_Q[(P/Q)^s] has K(0) = K(1) = 0, and K″ is the variance of a variable with
              range ε, at most ε²/4. Interpolation at 0 and 1: K(α) ≤ α(α−1)/2 · ε²/4. The loss of
              the exponential mechanism is a constant plus ε(u(x,·) − u(x′,·))/(2Δ), which varies by
              at most ε.
    Checked.  tests/accounting/test_renyi.py::test_bounded_range_on_exponential_mechanisms
    """
    return positive(epsilon, "epsilon") ** 2 / 8


def gaussian_rho(mu: Number) -> Fraction:
    """The ρ of a μ-GDP mechanism: μ²/2, exactly;
    every pair is a post-processing of N(0,1), N(μ,1) (reference.md D1, D5).
    """
    return positive(mu, "mu") ** 2 / 2


def best_order(cost: Callable[[float], float]) -> Fraction:
    """An order above 1 at which `cost` is about least: a grid in ln(α−1), then golden section.

    Nothing depends on how good it is.
    """

    def at(log_excess: float) -> float:
        value = cost(1 + math.exp(log_excess)) if 1 + math.exp(log_excess) > 1 else math.inf
        return value if value == value else math.inf

    step = 0.5
    middle = min((_LOWEST + step * i for i in range(int((_HIGHEST - _LOWEST) / step) + 1)), key=at)
    low, high = middle - step, middle + step
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(48):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = at(right)
    found = min((middle, left, right), key=at)
    return min(max(Fraction(1 + math.exp(found)), Fraction(1) + Fraction(1, 2**50)), ORDER_CEILING)


def _rho(value: Any) -> Fraction:
    return within(value, "rho", RHO_FLOOR, RHO_CEILING)


def _log(number: Fraction) -> float:
    """ln of a positive rational in floats, also where it is below the floats."""
    return math.log(number.numerator) - math.log(number.denominator)
