"""From a spend on the best of several runs to what one run may spend."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet import plain
from discreet.accounting.least_price import least_mu_near
from discreet.accounting.loss_distributions.best_of import best_epsilon, best_mu, bounds
from discreet.errors import InvalidParameter
from discreet.exact import float_up

_GRAIN = 1 << 40  # of γ
_DIGITS = 6  # of a run's guarantee
_ROUNDS = 12
SMALLEST_RUN = 1e-4  # of its μ


@plain.remembered(256)
def gamma_for(mean: float, eta: Fraction) -> Fraction:
    """The γ with which K has this mean, up to 1e-9 of it; 1 for a mean of 1."""
    if mean == 1:
        return Fraction(1)
    low, high = 1e-9, 1.0 - 2.0**-40
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(middle, float(eta)) > mean else (low, middle)
    return Fraction(round(high * _GRAIN), _GRAIN)


def _mean(gamma: float, eta: float) -> float:
    odds = (1 - gamma) / gamma
    if eta == 0:
        return odds / -math.log(gamma)
    return eta * odds / -math.expm1(eta * math.log(gamma))


@plain.remembered(256)
def approximate_run(epsilon: Fraction, delta: Fraction, eta: Fraction, gamma: Fraction) -> float:
    """The greatest μ of one run, to about six digits, with which the best is (ε, δ)-DP."""

    def told(mu: Fraction) -> float:
        return best_epsilon(mu, eta, gamma, delta)

    return _greatest(told, told, epsilon)


@plain.remembered(256)
def gaussian_run(mu: Fraction, eta: Fraction, gamma: Fraction) -> float:
    """The greatest μ of one run, to about six digits, with which the best is μ-GDP."""
    if gamma == 1:
        return _greatest(float_up, float_up, mu)
    return _greatest(
        lambda one: least_mu_near(*bounds(one, eta, gamma)),
        lambda one: best_mu(one, eta, gamma),
        mu,
    )


def _greatest(
    near: Callable[[Fraction], float], told: Callable[[Fraction], float], most: Fraction
) -> float:
    """The greatest μ of a run, a decimal of six digits, whose best tells at most `most`.

    Method.  What the best tells is nearly in proportion to what a run does, so that a few
             corrections by their ratio, with `near`, come close; `told` decides.
    """
    one = float(most) / 2
    for _ in range(_ROUNDS):
        if one < SMALLEST_RUN:
            raise InvalidParameter(
                "spend=",
                "it is too small for the best of several runs",
                "each run, with its score, is paid from a fraction of it",
                "spend more, or ask for fewer trials",
            )
        before, one = one, one * float(most) / near(_digits(one))
        if abs(one / before - 1) < 10.0**-_DIGITS:
            break
    found = _digits(one)
    while Fraction(told(found)) > most:
        found -= Fraction(10) ** (math.floor(math.log10(found)) - _DIGITS + 1)
    return float(found)


def _digits(value: float) -> Fraction:
    """`value` cut to six digits, as the float that is written so."""
    if value <= 0:
        return Fraction(1, 10**9)
    power = Fraction(10) ** (math.floor(math.log10(value)) - _DIGITS + 1)
    return math.floor(Fraction(value) / power) * power
