"""What a friendly mean costs (docs/theory/aggregation.md)."""

from __future__ import annotations

from fractions import Fraction

from discreet.enclosure import enclose, normal_tail, upper_float
from discreet.specs.mechanisms.friendly import FriendlyMean
from discreet.trusted.losses.loss import Loss


def friendly_loss(mechanism: FriendlyMean) -> Loss:
    """Theorem.  A friendly mean costs μ² = (3/σ)² + `mu_squared` but for δ = P(N > t), N the noise
              of the weight, σ its spread and t the margin.

    Proof.    docs/theory/aggregation.md, Theorem 5. N, rounded to steps, exceeds t where the
              normal number exceeds t + ½.
    Checked.  tests/claims/test_friendly.py::test_the_price_is_that_of_the_theorem
    """
    beyond = (Fraction(mechanism.margin) + Fraction(1, 2)) / mechanism.spread
    return Loss(
        mu_squared=mechanism.total_mu_squared,
        delta=Fraction(upper_float(enclose(lambda ball: normal_tail(ball, ball(beyond))))),
    )
