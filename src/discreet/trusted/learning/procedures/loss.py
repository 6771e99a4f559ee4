"""What the best of several runs costs, and what a stated guarantee does."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.loss_distributions.best_of import best_epsilon, best_mu
from discreet.exact import rational
from discreet.specs.mechanisms.procedures import BestOf, StatedGuarantee
from discreet.trusted.losses.loss import Loss


def best_of_loss(mechanism: BestOf) -> Loss:
    """A pure ε, (ε, δ), or μ², as the mechanism says.

    Theorem.  Let one run be (ε, δ(ε))-DP for every ε ≥ 0, its score included, and
              δ(ε̂) ≤ γ(e^ε̂ − 1)/(1 − γ). Then the best of K runs is
              (ε₁ + (1+η)ε̂, m·e^((1+η)ε̂)·δ(ε₁))-DP for every ε₁ ≥ 0, m the mean of K;
              for pure runs it is (2+η)ε-DP.
    Proof.    docs/theory/tuning.md. In short: the best run is y with density Q(y)·f′(u), u the
              chance of a worse run, f the generating function of K; f′(u) is in proportion to
              (γ + (1−γ)(1−u))^(−1−η), at most m, and the condition bounds its ratio between
              neighbours by e^((1+η)ε̂). All these (ε, δ) together bound the trade-off curve from
              below, and the least μ is that of a Gaussian curve below the bound
              (accounting/loss_distributions/best_of.py).
    Checked.  tests/claims/test_best_of.py
    """
    base, eta, gamma = mechanism.sensitivity, mechanism.eta, mechanism.gamma
    if base.epsilon:
        pure = rational(base.epsilon, "epsilon") * (1 if gamma == 1 else 2 + eta)
        return Loss(pure=(pure,))
    mu = rational(base.mu, "mu")
    if mechanism.delta:
        epsilon = Fraction(best_epsilon(mu, eta, gamma, mechanism.delta))
        return Loss(pure=(epsilon,), delta=mechanism.delta)
    return Loss(mu_squared=mu**2 if gamma == 1 else Fraction(best_mu(mu, eta, gamma)) ** 2)


def stated_loss(stated: StatedGuarantee) -> Loss:
    """What was stated; an (ε, δ) is a pure ε but for an event of probability δ.

    Theorem.  Every (ε, δ)-DP pair is a post-processing of: with probability δ all is told, else
              randomised response with ε (Kairouz, Oh and Viswanath 2015).
    Checked.  tests/trusted/test_booking.py
    """
    pure = (stated.epsilon,) if stated.epsilon else ()
    return Loss(stated.mu_squared, pure, rho=stated.rho, delta=stated.delta)
