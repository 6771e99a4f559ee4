"""What a perturbed minimiser costs (docs/theory/perturbed-minimisers.md)."""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.tradeoff.shifted_pair import shifted_mu
from discreet.enclosure import enclose, upper_float
from discreet.specs.mechanisms.minimiser import NOISE_BITS, PerturbedMinimiser
from discreet.trusted.losses.loss import Loss


def minimiser_loss(mechanism: PerturbedMinimiser) -> Loss:
    """Theorem.  Let L and s bound one row's gradient and curvature, κ = s/Λ ≤ 1, k the rows of a
              unit, c = 1 where they come or go and 2 where they are replaced, r the distance of the
              rounded minimiser from the exact one. The objective's noise costs ckL/a + k·ln(1+κ)
              (Euclidean Laplace of spread a) or ck·μ′ (Gaussian, one sign; μ′ of `shifted_mu`),
              the noise on the minimiser beside it 2r/cover; output costs (ckL/Λ + 2r)/cover.

    Proof.    docs/theory/perturbed-minimisers.md, Theorems A to D.
    Checked.  tests/claims/test_perturbed_minimisers.py
    """
    row, laplace = mechanism.sensitivity, mechanism.law == "laplace"
    twice = 2 * mechanism.distance
    if mechanism.way == "output":
        moved = row.moves * row.steepness / mechanism.penalty / mechanism.step + twice
        cost = moved / mechanism.cover
        return Loss(pure=(cost,)) if laplace else Loss(mu_squared=cost**2)
    covered, shift = twice / mechanism.cover, row.steepness * (1 << NOISE_BITS) / mechanism.spread
    if laplace:
        bent = upper_float(enclose(lambda ball: ball(1 + mechanism.kappa).log()))
        return Loss(pure=(row.moves * shift + row.rows * Fraction(bent) + covered,))
    shifted = Fraction(shifted_mu(shift, mechanism.kappa))
    return Loss(mu_squared=(row.moves * shifted) ** 2 + covered**2)
