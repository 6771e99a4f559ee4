"""What cut Tulap noise costs: ε for the ratio of probabilities, δ for the ends that only one
neighbour can reach; and its calibration (reference.md M3).

Theorem.  `CutTulapNoise` of spread s and reach L on whole statistics of ℓ₁ sensitivity k is
          (k/s, δ)-DP with δ = P(N ≥ L − k), N the cut noise. For one count and k = 1 no smaller
          δ is true. It is charged as ε but for an event of probability δ that does not depend on
          the data.
Proof.    A step's probability is c·b^|m|, b = e^(−1/s), m the whole number nearest to its cell
          (r ≥ 1, so no cell holds a half). Where both neighbours can give an answer, the ratio is
          at most Π b^(−k_i) ≤ e^(k/s), k_i the moves of the coordinates. Answers that only one can
          give have some coordinate in the last k_i counts: probability ≤ Σ P(N ≥ L − k_i).
          As a function of k_i ≤ L this is convex, 0 at 0 (the law falls from 0 outwards, and the
          part of it in a count's width grows inwards), so the sum is at most P(N ≥ L − k).
          The hockey stick at k/s is no more than that, in both orders; for one count and k = 1 it
          is that, because next to the other neighbour's end the ratio is e^(1/s) at most. Every
          (ε, δ)-DP pair is a post-processing of: with probability δ all is told, else randomised
          response with ε (Kairouz, Oh and Viswanath 2015).
Checked.  tests/claims/test_cut_tulap.py
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.enclosure import enclose
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text, float_up
from discreet.sensitivity import L1
from discreet.specs.mechanisms.additive import TULAP_BITS, TulapNoise
from discreet.specs.mechanisms.cut_tulap import LARGEST_CUT_SPREAD, CutTulapNoise


def tulap_tail(ball: Any, noise: TulapNoise, steps: int) -> Any:
    """P(N ≥ steps) of uncut Tulap noise, in grid steps, as a ball: b^m/(1+b)·(b + (m − t + ½)(1 −
    b)) for t = steps·step ≥ 0, m the nearest whole number.
    """
    if steps < 0:
        return 1 - tulap_tail(ball, noise, -steps)
    whole = (steps + (1 << (noise.refinement - 1))) >> noise.refinement
    b = (-1 / ball(noise.spread)).exp()
    inside = ball(whole - steps * noise.step + Fraction(1, 2))
    return (-ball(whole) / ball(noise.spread)).exp() / (1 + b) * (b + inside * (1 - b))


def cut_bounds(noise: TulapNoise, reach: int) -> tuple[Fraction, Fraction]:
    """Bounds of δ for a reach in grid steps."""
    assert isinstance(noise.sensitivity, L1)
    moved = int(noise.sensitivity.value) << noise.refinement

    def delta(ball: Any) -> Any:
        beyond = tulap_tail(ball, noise, reach)
        return (tulap_tail(ball, noise, reach - moved) - beyond) / (1 - 2 * beyond)

    return enclose(delta)


@lru_cache(maxsize=1024)
def cut_delta(mechanism: CutTulapNoise) -> Fraction:
    """The δ of a mechanism, rounded up to a float."""
    return Fraction(float_up(cut_bounds(mechanism.noise, mechanism.reach)[1]))


def cut_parts(mechanism: CutTulapNoise) -> dict[str, Any]:
    """The fields of its Loss."""
    return {
        "pure": (mechanism.sensitivity.value / mechanism.spread,),
        "delta": cut_delta(mechanism),
    }


@lru_cache(maxsize=256)
def cut_tulap_noise(sensitivity: L1, epsilon: Fraction, delta: Fraction) -> CutTulapNoise:
    """Tulap noise that is (ε, δ)-DP: the spread k/ε rounded up, the reach the least whole number of
    grid steps at which δ is certainly no more than asked.

    δ falls as the reach grows, so bisection finds it. A δ so large that less than the sensitivity
    would be reached is not used up.
    """
    spread = Fraction(float_up(sensitivity.value / epsilon))
    if spread > LARGEST_CUT_SPREAD:
        raise InvalidParameter(
            "spend=",
            f"epsilon = {decimal_text(epsilon)} would spread the noise over more than 2**18 counts",
            "its uniform part would not fit 64-bit answers",
            "spend more, or leave noise= out: Gaussian noise has no such limit",
        )
    noise = TulapNoise(sensitivity, spread, TULAP_BITS)
    low = int(sensitivity.value) << noise.refinement

    def fits(reach: int) -> bool:
        return float_up(cut_bounds(noise, reach)[1]) <= delta

    if fits(low):
        return CutTulapNoise(noise, low)
    high = 2 * low
    while not fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return CutTulapNoise(noise, high)
