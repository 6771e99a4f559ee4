"""The least noise of a stochastic gradient descent for a target."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet import plain
from discreet.enclosure import enclose
from discreet.errors import InvalidParameter
from discreet.exact import float_up, sqrt_up
from discreet.trusted.extensions.sgd.loss import descent_mu

LEAST_MULTIPLIER, LARGEST_MULTIPLIER = 0.3, 2.0**14  # σ in units of the sensitivity
_CLOSE = 0.003  # relative, of μ
_CLEAR = 1e-5  # what is priced again may round differently
_PRICED = Fraction(1, 1 << 48)  # prices of pure steps are rounded up to floats
_MULTIPLIER_GRAIN = 4096


@plain.remembered(128)
def sgd_multiplier(
    mu_squared: Fraction, delta: Fraction, rate: float, scheme: str, steps: int
) -> float:
    """The least noise multiplier σ/Δ, up to half a percent,
    with which a descent costs at most (μ², δ₀).

    Method.  Secant steps on (ln multiplier, ln μ) from the central-limit value (reference.md E8),
             which is never trusted: the multiplier returned was priced.
    """
    goal = math.log(mu_squared) / 2
    # as if every row were in every batch
    enough = _grain(math.sqrt(steps / mu_squared) * (1 + 10 * _CLEAR))
    if enough > LARGEST_MULTIPLIER:
        raise too_many_steps()

    def excess(multiplier: float) -> float:
        return (
            math.log(
                descent_mu(
                    float_up(sqrt_up(1 / Fraction(multiplier) ** 2)), rate, scheme, steps, delta
                )
            )
            - goal
        )

    multiplier, slope = _grain(_central_limit(goal, rate, steps)), -1.0
    last: tuple[float, float] | None = None
    for _ in range(24):
        value = excess(multiplier)
        if -_CLOSE <= value <= -_CLEAR or (multiplier <= LEAST_MULTIPLIER and value <= -_CLEAR):
            return multiplier
        if last is not None and multiplier != last[0]:
            slope = min((value - last[1]) / math.log(multiplier / last[0]), -0.2)
        last = (multiplier, value)
        multiplier = min(_grain(multiplier * math.exp(-(value + _CLOSE / 2) / slope)), enough)
        if multiplier == last[0]:
            break
    return last[0] if last is not None and last[1] <= -_CLEAR else enough


def pure_sgd_spread(moved: Fraction, rate: Fraction, epsilon: Fraction, steps: int) -> Fraction:
    """The least scale b of Laplace noise, rounded up, with which each of `steps` sampled steps
    costs at most ε/steps (reference.md E5): b = Δ/ln(1 + (e^(ε/steps) − 1)/rate), Δ = `moved`.
    """
    ratio = enclose(lambda ball: (ball(epsilon / steps).expm1() / ball(rate)).log1p())[0]
    return Fraction(float_up(moved / ratio * (1 + _PRICED)))


def too_many_steps() -> InvalidParameter:
    return InvalidParameter(
        "solver=dp.SGD(…)",
        "the spend is too small for so many steps",
        "each step shows a noisy gradient, and its noise must fit its grid",
        "ask for fewer steps, or spend more",
    )


def _central_limit(goal: float, rate: float, steps: int) -> float:
    """The multiplier with rate·√(steps·(e^(1/z²) − 1)) = μ."""
    inner = math.log1p(math.exp(2 * goal) / (rate**2 * steps))
    return min(max(1 / math.sqrt(inner), LEAST_MULTIPLIER), LARGEST_MULTIPLIER)


def _grain(multiplier: float) -> float:
    return max(LEAST_MULTIPLIER, math.ceil(multiplier * _MULTIPLIER_GRAIN) / _MULTIPLIER_GRAIN)
