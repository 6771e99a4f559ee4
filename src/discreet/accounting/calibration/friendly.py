"""The friendly mean that a spend buys (docs/theory/aggregation.md)."""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.accounting.guarantees import Guarantee
from discreet.enclosure import enclose, normal_tail, upper_float
from discreet.errors import NoTheorem
from discreet.exact import float_down, sqrt_up
from discreet.sensitivity import Friendly
from discreet.specs.mechanisms.friendly import LEAST_WEIGHT, WEIGHT_MOVES, FriendlyMean
from discreet.trusted.losses.pricing import spend_box

SHARES = tuple(Fraction(share, 100) for share in (2, 3, 5, 8, 12, 18, 25, 35, 50))


def friendly_mean(
    sensitivity: Friendly, spend: Guarantee, delta: Fraction, rows: int | None = None
) -> FriendlyMean:
    """The mechanism that costs a spend with δ₀ = `delta`.

    A share of μ² tells how many rows have friends, the rest is the mean's: the share with the least
    noise where all of so many `rows` are friends.
    """
    box = spend_box(spend, delta)
    whole = box.mu_squared or 2 * box.rho
    if not whole:
        raise NoTheorem(
            "a friendly mean",
            f"{spend} is pure",
            "its noise is Gaussian and it fails to protect with a probability delta",
            "spend an (ε, δ) guarantee, dp.ApproxDP(1, 1e-6), or dp.GDP with delta0= in the ledger",
        )
    most = max(rows or 0, LEAST_WEIGHT + 1)
    margin = float(margin_for(WEIGHT_MOVES, delta)) / float(WEIGHT_MOVES)

    def left_over(share: Fraction) -> float:
        """In how small a proportion the noise would be: (W − t)·μ₂, or how much W lacks."""
        certain = most - LEAST_WEIGHT * margin / math.sqrt(float(whole * share))
        return certain * math.sqrt(1 - share) if certain > LEAST_WEIGHT else certain - 1e9

    share = max(SHARES, key=left_over)
    spread = sqrt_up(WEIGHT_MOVES**2 / (whole * share))
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
