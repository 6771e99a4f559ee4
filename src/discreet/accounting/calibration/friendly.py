"""The friendly mean that a spend buys (docs/theory/aggregation.md)."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.accounting.guarantees import Guarantee
from discreet.enclosure import enclose, normal_tail, upper_float
from discreet.errors import NoTheorem
from discreet.exact import float_down, sqrt_up
from discreet.sensitivity import Friendly
from discreet.specs.mechanisms.friendly import WEIGHT_MOVES, FriendlyMean
from discreet.trusted.losses.pricing import spend_box

WEIGHT_SHARE = Fraction(1, 20)  # of μ², for the noisy weight


def friendly_mean(sensitivity: Friendly, spend: Guarantee, delta: Fraction) -> FriendlyMean:
    """The mechanism that costs a spend with δ₀ = `delta`: a twentieth of μ² tells how many rows
    have friends, the rest is the mean's.
    """
    box = spend_box(spend, delta)
    if not (box.mu_squared or box.rho):
        raise NoTheorem(
            "a friendly mean",
            f"{spend} is pure",
            "its noise is Gaussian and it fails to protect with a probability delta",
            "spend an (ε, δ) guarantee, dp.ApproxDP(1, 1e-6), or dp.GDP with delta0= in the ledger",
        )
    whole = box.mu_squared or 2 * box.rho
    spread = sqrt_up(WEIGHT_MOVES**2 / (whole * WEIGHT_SHARE))
    left = whole - (WEIGHT_MOVES / spread) ** 2
    return FriendlyMean(sensitivity, spread, margin_for(spread, delta), Fraction(float_down(left)))


def margin_for(spread: Fraction, delta: Fraction) -> int:
    """The least t with P(N > t) ≤ δ, N normal of that spread rounded to whole steps."""

    def holds(margin: int) -> bool:
        beyond = (margin + Fraction(1, 2)) / spread
        return upper_float(enclose(lambda ball: normal_tail(ball, ball(beyond)))) <= delta

    high = max(1, math.ceil(spread))
    while not holds(high):
        high *= 2
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
