"""Noisy stochastic gradient descent: its price by its privacy loss distribution,
and the least noise for a target.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

from discreet.enclosure import enclose, upper_float
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import float_up, sqrt_up
from discreet.specs.mechanisms.sgd import NoisySGD

LEAST_MULTIPLIER, LARGEST_MULTIPLIER = 0.3, 2.0**14  # σ in units of the sensitivity
# beyond it sampling is hardly worth its arithmetic,
# and the lattice of fixed-size pairs bounds it badly
LARGEST_RATE = 0.5
_CLOSE = 0.003  # relative, of μ
_CLEAR = 1e-5  # what is priced again may round differently
_MULTIPLIER_GRAIN = 4096


def sgd_parts(mechanism: NoisySGD) -> dict[str, Any]:
    """What a descent costs: μ² and δ₀.

    Theorem.  All iterates together have a trade-off function above G_μ⊗f_(0,δ₀), μ the least that
              `least_price.least_mu` finds for the composition of `steps` sampled Gaussian pairs of
              μ₀ = Δ/σ at the rate of the batches.
    Proof.    Given the earlier noisy sums, a step is a Gaussian mechanism of ℓ₂ sensitivity Δ on a
              sample: Poisson under AddRemove (rate 1 − e^(−1/gap), rounded up: a higher rate
              dominates, its mixture being the lower one's mixed with Q), fixed size under Replace
              (rate size/rows). Its dominating pair is `pld.pairs.Sampled`'s (reference.md E1, E8),
              pairs compose adaptively, and iterates are a function of the noisy sums.
    Checked.  tests/claims/test_sgd.py::test_the_price_is_never_below_the_loss_distribution
    """
    sensitivity = mechanism.sensitivity
    scheme = "poisson" if mechanism.gap is not None else "fixed"
    rate = (
        poisson_rate(mechanism.gap)
        if mechanism.gap is not None
        else float_up(Fraction(mechanism.size or 0, sensitivity.rows or 1))
    )
    base = float_up(sqrt_up(mechanism.step_mu_squared))
    return {
        "mu_squared": Fraction(
            descent_mu(base, min(rate, 1.0), scheme, mechanism.steps, mechanism.delta)
        )
        ** 2,
        "delta": mechanism.delta,
    }


def poisson_rate(gap: Fraction) -> float:
    """1 − exp(−1/gap), rounded up."""
    return min(1.0, upper_float(enclose(lambda ball: -((-1 / ball(gap)).expm1()))))


@functools.lru_cache(maxsize=512)
def descent_mu(base: float, rate: float, scheme: str, steps: int, delta: Fraction) -> float:
    """The least μ (rounded up) that `steps` Gaussian steps of μ₀ = `base` on samples at `rate` may
    be charged beside δ₀ = `delta`.
    """
    from discreet.accounting.least_price import least_mu  # it needs the prices of other mechanisms

    # as if every row were in every batch: sampling never costs more
    plain = float_up(sqrt_up(Fraction(base) ** 2 * steps))
    if rate > LARGEST_RATE:
        return plain
    try:
        sampled = least_mu(
            descent_pld(base, rate, scheme, steps),
            float(delta) if float(delta) <= delta else math.nextafter(float(delta), 0.0),
        )
    except NoTheorem:
        return plain
    return min(plain, sampled)


def descent_pld(base: float, rate: float, scheme: str, steps: int) -> Any:
    """The privacy loss distribution of a descent."""
    from discreet.accounting.pld.build import (
        fixed_size_subsampled,
        gaussian_pld,
        poisson_subsampled,
    )

    sample = poisson_subsampled if scheme == "poisson" else fixed_size_subsampled
    return sample(gaussian_pld(base), rate).self_compose(steps)


@functools.lru_cache(maxsize=128)
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


def too_many_steps() -> InvalidParameter:
    return InvalidParameter(
        "solver='sgd'",
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
