"""Noisy stochastic gradient descent: its price by its privacy loss distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.least_price import least_mu
from discreet.accounting.loss_distributions.build import (
    fixed_size_subsampled,
    gaussian_pld,
    poisson_subsampled,
)
from discreet.accounting.loss_distributions.curve import PLD
from discreet.enclosure import enclose, upper_float
from discreet.errors import NoTheorem
from discreet.exact import float_up, sqrt_up
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.losses.loss import Loss

# beyond it sampling is hardly worth its arithmetic,
# and the lattice of fixed-size pairs bounds it badly
LARGEST_RATE = 0.5


def descent_loss(mechanism: NoisySGD) -> Loss:
    """What a descent costs: μ² and δ₀, or the ε of every pure step.

    Theorem.  All iterates together have a trade-off function above G_μ⊗f_(0,δ₀), μ the least that
              `least_price.least_mu` finds for the composition of `steps` sampled Gaussian pairs of
              μ₀ = Δ/σ at the rate of the batches.
    Proof.    Given the earlier noisy sums, a step is a Gaussian mechanism of ℓ₂ sensitivity Δ on a
              sample: Poisson under AddRemove (rate 1 − e^(−1/gap), rounded up: a higher rate
              dominates, its mixture being the lower one's mixed with Q), fixed size under Replace
              (rate size/rows). Its dominating pair is `loss_distributions.pairs.Sampled`'s
              (reference.md E1, E8), pairs compose adaptively, and iterates are a function of the
              noisy sums.
    Checked.  tests/claims/test_sgd_price.py::test_the_price_is_never_below_the_loss_distribution
    """
    sensitivity = mechanism.sensitivity
    if mechanism.pure:
        return Loss(pure=(step_epsilon(mechanism),) * mechanism.steps)
    scheme = "poisson" if mechanism.gap is not None else "fixed"
    rate = (
        poisson_rate(mechanism.gap)
        if mechanism.gap is not None
        else float_up(Fraction(mechanism.size or 0, sensitivity.rows or 1))
    )
    base = float_up(sqrt_up(mechanism.step_mu_squared))
    mu = descent_mu(base, min(rate, 1.0), scheme, mechanism.steps, mechanism.delta)
    return Loss(mu_squared=Fraction(mu) ** 2, delta=mechanism.delta)


def step_epsilon(mechanism: NoisySGD) -> Fraction:
    """ε of one step with Laplace noise, rounded up.

    Theorem.  ε = ln(1 + q(e^(Δ/b) − 1)), q the rate of the batches, b the scale of the noise, Δ the
              ℓ₁ distance of two vectors (Replace, batches of a fixed size) or the norm of one
              (AddRemove, Poisson batches); all steps are ε-DP each, given those before.
    Proof.    docs/theory/classical-solvers.md, "Scenario 1". With P₁, P₀ the laws of the noisy sum
              given that the row is in the batch or not, P = qP₁ + (1−q)P₀, and P₁ ≤ e^(Δ/b)·P₀: a
              batch with the row becomes one without it by taking a random other row in its place.
    Checked.  tests/claims/test_sgd_price.py::test_a_pure_step_is_never_dearer_than_its_price
    """
    sensitivity, gap = mechanism.sensitivity, mechanism.gap
    ratio = sqrt_up(sensitivity.moved_squared) / mechanism.spread
    share = Fraction(mechanism.size or 0, sensitivity.rows or 1)

    def formula(ball: Callable[[Fraction | int], Any]) -> Any:
        rate = ball(share) if gap is None else -((-1 / ball(gap)).expm1())
        return (rate * ball(ratio).expm1()).log1p()

    return Fraction(upper_float(enclose(formula)))


def poisson_rate(gap: Fraction) -> float:
    """1 − exp(−1/gap), rounded up."""
    return min(1.0, upper_float(enclose(lambda ball: -((-1 / ball(gap)).expm1()))))


@plain.remembered(512)
def descent_mu(base: float, rate: float, scheme: str, steps: int, delta: Fraction) -> float:
    """The least μ (rounded up) that `steps` Gaussian steps of μ₀ = `base` on samples at `rate` may
    be charged beside δ₀ = `delta`.
    """
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


def descent_pld(base: float, rate: float, scheme: str, steps: int) -> PLD:
    """The privacy loss distribution of a descent."""
    sample = poisson_subsampled if scheme == "poisson" else fixed_size_subsampled
    return sample(gaussian_pld(base), rate).self_compose(steps)
