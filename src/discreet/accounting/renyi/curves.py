"""Rényi divergences of mechanisms, one function a law;
each value is rounded up (reference.md A8, D1, D5).

Together with `subsampling` these are the curves from which an `RDP` guarantee is made.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from discreet.accounting.parameters import Number, order_above_one, positive, probability
from discreet.enclosure import enclose, upper_float
from discreet.errors import InvalidParameter
from discreet.exact import float_up

# orders at which curves are tabulated unless told otherwise:
# dense where many small steps are composed, sparse beyond
USUAL_ORDERS: tuple[Fraction, ...] = (
    *(Fraction(10 + tenth, 10) for tenth in range(1, 100)),
    *(Fraction(n) for n in range(11, 64)),
    *(Fraction(2**n) for n in (7, 8, 9, 10)),
)
WHOLE_ORDERS: tuple[Fraction, ...] = (
    *(Fraction(n) for n in range(2, 65)),
    *(Fraction(n) for n in (80, 96, 128, 192, 256, 512, 1024)),
)


def gaussian_renyi(order: Number, mu_squared: Number) -> float:
    """D_α of Gaussian noise with Δ²/σ² = μ²:
    αμ²/2, exactly the divergence, rounded up (reference.md D1).
    """
    return float_up(order_above_one(order) * positive(mu_squared, "mu squared") / 2)


def laplace_renyi(order: Number, epsilon: Number) -> float:
    """D_α of Laplace noise with Δ₁/b = ε: ln[α/(2α−1)·e^{(α−1)ε} + (α−1)/(2α−1)·e^{−αε}]/(α−1),
    rounded up.

    Theorem.  This bounds D_α for a statistic of any dimension whose ℓ₁ sensitivity is Δ₁;
              one coordinate attains it.
    Proof.    In one coordinate, integrate over the three pieces. K(ε) = (α−1)D_α is a logarithm of
              a sum of exponentials of ε, hence convex, with K(0) = K′(0) = 0: increasing and
              superadditive on ε ≥ 0. So a shift spread over coordinates, whose divergences add,
              is at most the same shift in one coordinate.
    Checked.  tests/accounting/test_renyi.py::test_laplace_curve_is_the_integral
    """
    a, e = order_above_one(order), positive(epsilon, "epsilon")

    def formula(ball: Any) -> Any:
        # the first exponential taken out: no overflow, and no cancellation for large ε
        inner = (
            ball(a) / ball(2 * a - 1)
            + ball(a - 1) / ball(2 * a - 1) * (-ball((2 * a - 1) * e)).exp()
        )
        return ball(e) + inner.log() / ball(a - 1)

    return upper_float(enclose(formula))


def pure_renyi(order: Number, epsilon: Number) -> float:
    """The greatest D_α of an ε-DP mechanism:
    ε + [ln(1+e^{−(2α−1)ε}) − ln(1+e^{−ε})]/(α−1), rounded up.

    Theorem.  D_α(P‖Q) ≤ this for every ε-DP pair, with equality for randomised response.
    Proof.    Every ε-DP pair is a post-processing of randomised response with odds e^ε
              (Kairouz–Oh–Viswanath 2015), and post-processing lowers D_α. There ln(P/Q) = ±ε with
              P(+ε) = e^ε/(1+e^ε): sum the two terms.
    Checked.  tests/accounting/test_renyi.py::test_pure_curve_bounds_random_pure_pairs
    """
    a, e = order_above_one(order), positive(epsilon, "epsilon")
    return upper_float(
        enclose(
            lambda ball: (
                ball(e)
                + ((1 + (-ball((2 * a - 1) * e)).exp()).log() - (1 + (-ball(e)).exp()).log())
                / ball(a - 1)
            )
        )
    )


def randomized_response_renyi(order: Number, keep: Number) -> float:
    """D_α of binary randomised response that keeps the answer with probability p:
    ln[p^α(1−p)^{1−α} + (1−p)^α p^{1−α}]/(α−1), rounded up.
    """
    a, p = order_above_one(order), probability(keep, "keep")
    if p in (0, 1):
        raise InvalidParameter(
            "keep",
            "it is 0 or 1",
            "an answer that is always kept, or always turned, is no secret",
            "pass a probability strictly between 0 and 1",
        )
    if p == Fraction(1, 2):
        return 0.0

    def formula(ball: Any) -> Any:
        log_odds = (ball(p) / ball(1 - p)).log()
        return (
            ball(p) * (ball(a - 1) * log_odds).exp() + ball(1 - p) * (-ball(a - 1) * log_odds).exp()
        ).log() / ball(a - 1)

    return max(0.0, upper_float(enclose(formula)))
