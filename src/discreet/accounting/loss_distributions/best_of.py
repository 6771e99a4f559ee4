"""What the best of a random number of private runs tells (docs/theory/tuning.md).

A run is μ-GDP; K has the truncated negative binomial law of (η, γ) and mean m. With ε̂ the least
number such that δ_μ(ε̂) ≤ γ(e^ε̂ − 1)/(1 − γ) and c = (1+η)ε̂, the best run is (ε, B(ε))-DP with

    B(ε) = m·e^c·δ_μ(ε − c)        for every ε ≥ c.

A smaller ε̂ makes ε and δ smaller both, so that there is nothing else to choose.

*A Gaussian curve below it.*  Each (ε*, B(ε*)) bounds δ at smaller ε too: by that of randomised
response with ε* but for B(ε*), δ(ε) ≤ B* + (1 − B*)(e^ε* − e^ε)/(1 + e^ε*). `least_mu_above` finds
the least μ′ with δ_μ′ above the chords of these bounds up to a last ε = E; beyond it this lemma
holds. Let a = ε/μ′ − μ′/2, x = ε/μ′ + μ′/2, a₀ = (ε−c)/μ − μ/2, and

    T(ε) = ln(m·e^c·μ/μ′) + (a² − a₀²)/2 + ln((x²+3)/(a₀²+1)).

*Lemma.*  If a₀(E) > 0, μ′ > μ, T(E) ≤ 0 and E·(1/μ² − 1/μ′²) ≥ c/μ² + 2/(μ′x(E)), then
B(ε) ≤ δ_μ′(ε) for every ε ≥ E.
*Proof.*  With R(z) = Φ(−z)/φ(z), δ_μ′(ε) = φ(a)(R(a) − R(a+μ′)), as φ(a) = e^ε·φ(a+μ′). R is convex
on the whole line with −R′(z) = 1 − zR(z), between 1/(z²+3) and 1/(z²+1) for z > 0; so
δ_μ′(ε) ≥ φ(a)·μ′/(x²+3) and δ_μ(ε−c) ≤ φ(a₀)·μ/(a₀²+1): ln(B/δ_μ′) ≤ T. The derivative of T is at
most −ε(1/μ² − 1/μ′²) + c/μ² + 2/(μ′x), which falls in ε and is at most 0 at E. ∎

Checked.  tests/claims/test_best_of.py
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.accounting.gaussian import delta_bounds, gdp_epsilon
from discreet.accounting.least_price import least_mu_above
from discreet.enclosure import enclose, least_float
from discreet.exact import float_up, readings

Floats = npt.NDArray[np.float64]
_POINTS = 240  # chords
_FARTHEST = Fraction(1, 10**18)  # B at the last point, about


def mean_runs(eta: Fraction, gamma: Fraction) -> Fraction:
    """E[K], rounded up: (1/γ − 1)/ln(1/γ) for η = 0, else η(1−γ)/(γ(1−γ^η))."""
    if gamma == 1:
        return Fraction(1)

    def formula(ball: Any) -> Any:
        if not eta:
            return -ball(1 / gamma - 1) / ball(gamma).log()
        return ball(eta * (1 - gamma) / gamma) / (1 - ball(gamma) ** ball(eta))

    return enclose(formula)[1]


@plain.remembered(1024)
def rank_epsilon(mu: Fraction, gamma: Fraction) -> float:
    """The least ε̂ with δ_μ(ε̂) ≤ γ(e^ε̂ − 1)/(1 − γ), rounded up."""
    if gamma == 1:
        return 0.0

    def enough(epsilon: float) -> bool:
        exact = readings(epsilon)[0]
        room = enclose(lambda ball: ball(gamma / (1 - gamma)) * (ball(exact).exp() - 1))[0]
        return delta_bounds(mu, exact)[1] <= room

    high = max(1.0, float(mu))
    while not enough(high):
        high *= 2
    return least_float(enough, 0.0, high)


def _shift(mu: Fraction, eta: Fraction, gamma: Fraction) -> Fraction:
    """c = (1+η)ε̂."""
    return (1 + eta) * readings(rank_epsilon(mu, gamma))[1]


def _factor(shift: Fraction, eta: Fraction, gamma: Fraction) -> Fraction:
    """m·e^c, rounded up."""
    return enclose(lambda ball: ball(mean_runs(eta, gamma)) * ball(shift).exp())[1]


@plain.remembered(1024)
def best_epsilon(mu: Fraction, eta: Fraction, gamma: Fraction, delta: Fraction) -> float:
    """The ε at δ of the best run: c + the ε₁ with m·e^c·δ_μ(ε₁) = δ, rounded up."""
    shift = _shift(mu, eta, gamma)
    inner = gdp_epsilon(mu, delta / _factor(shift, eta, gamma))
    return float_up(shift + readings(inner)[1])


@plain.remembered(256)
def best_mu(mu: Fraction, eta: Fraction, gamma: Fraction) -> float:
    """The least μ′ (up to the numerics, which round up) such that the best run is μ′-GDP."""
    shift = _shift(mu, eta, gamma)
    factor, (knots, deltas) = _factor(shift, eta, gamma), bounds(mu, eta, gamma)
    last = Fraction(float(knots[-1]))

    def beyond(wide: Fraction) -> bool:
        """Whether the lemma says that δ_μ′ stays above from the last point on."""
        a, x = last / wide - wide / 2, last / wide + wide / 2
        a0 = (last - shift) / mu - mu / 2
        if a0 <= 0 or wide <= mu:
            return False
        falls = last * (1 / mu**2 - 1 / wide**2) >= shift / mu**2 + 2 / (wide * x)

        def gap(ball: Any) -> Any:
            ratio = factor * mu / wide * (x**2 + 3) / (a0**2 + 1)
            return ball(ratio).log() + ball((a**2 - a0**2) / 2)

        return falls and enclose(gap)[1] <= 0

    return least_mu_above(knots, deltas, beyond)


def bounds(mu: Fraction, eta: Fraction, gamma: Fraction) -> tuple[Floats, Floats]:
    """Points from 0 on, and upper bounds of the best run's δ there."""
    shift = _shift(mu, eta, gamma)
    factor = _factor(shift, eta, gamma)
    first, far = float_up(shift), float(gdp_epsilon(mu, _FARTHEST / factor))
    knots = np.concatenate([[0.0], first + far * np.linspace(0, 1, _POINTS)])
    inside = (factor * delta_bounds(mu, Fraction(float(point)) - shift)[1] for point in knots[1:])
    own = np.array([1.0, *(min(1.0, float_up(delta)) for delta in inside)])
    y = np.exp(knots)
    # what each point says of those before it; rounded up
    implied = own + (1 - own) * (y - y[:, None]) / (1 + y)
    told = np.where(knots >= knots[:, None], implied, 1.0).min(axis=1) * (1 + 1e-12)
    return knots, np.minimum(own, told)
