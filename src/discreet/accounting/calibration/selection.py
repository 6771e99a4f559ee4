"""The sharpest selection that a spend allows: every rate is rounded down and every spread up,
so the guarantee holds exactly.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.calibration.additive import bounded_range_within, pure_within
from discreet.accounting.guarantees import Guarantee, PureDP
from discreet.errors import InvalidParameter
from discreet.exact import float_up
from discreet.sensitivity import LInf
from discreet.specs.mechanisms.additive import LARGEST_STEPS
from discreet.specs.mechanisms.selection import (
    STEPS,
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)


def exponential_choice(sensitivity: LInf, spend: Guarantee) -> ExponentialChoice:
    """rate = ε/span for the greatest bounded range ε within the spend (reference.md B6)."""
    return ExponentialChoice(sensitivity, bounded_range_within(spend) / sensitivity.span)


def permute_and_flip(sensitivity: LInf, spend: Guarantee) -> PermuteAndFlip:
    """rate = ε/span for the greatest pure ε within the spend."""
    return PermuteAndFlip(sensitivity, pure_within(spend) / sensitivity.span)


def noisy_max(sensitivity: LInf, spend: Guarantee) -> NoisyMax:
    """spread = span/ε for the greatest pure ε within the spend, rounded up."""
    return NoisyMax(sensitivity, _spread(sensitivity.span / pure_within(spend)))


def top_choices(sensitivity: LInf, spend: Guarantee, count: int) -> TopChoices:
    """`count` steps of one price: permute-and-flip for a pure spend,
    exponential choices for all others.
    """
    if isinstance(spend, PureDP):
        return TopChoices(
            sensitivity, pure_within(spend, times=count) / sensitivity.span, count, STEPS[1]
        )
    return TopChoices(
        sensitivity, bounded_range_within(spend, times=count) / sensitivity.span, count, STEPS[0]
    )


def above_threshold(
    sensitivity: LInf, spend: Guarantee, *, threshold: int, positives: int
) -> AboveThreshold:
    """The design within the spend for which the difference of the two noises has the least
    variance.

    One draw of the threshold's noise for all positives costs ε = Δ/a + positives·span/b; a new one
    after each composes `positives` losses ε = Δ/a + span/b, which is better where they add up as
    squares. With d = Δ and s = positives·span (or span) a² + b² is least where ε is shared as d^⅔ :
    s^⅔.
    """
    designs = [
        _above_threshold(sensitivity, spend, threshold, positives, renewed)
        for renewed in ((False, True) if positives > 1 else (False,))
    ]
    return min(designs, key=lambda design: design.threshold_spread**2 + design.query_spread**2)


def _above_threshold(
    sensitivity: LInf, spend: Guarantee, threshold: int, positives: int, renewed: bool
) -> AboveThreshold:
    epsilon = pure_within(spend, times=positives if renewed else 1)
    score_span = sensitivity.span if renewed else positives * sensitivity.span
    share = Fraction(1 / (1 + float(score_span / sensitivity.value) ** (2 / 3))).limit_denominator(
        1 << 20
    )
    spreads = (
        _spread(sensitivity.value / (epsilon * share)),
        _spread(score_span / (epsilon * (1 - share))),
    )
    return AboveThreshold(sensitivity, threshold, positives, *spreads, renewed)


def _spread(value: Fraction) -> Fraction:
    if value > LARGEST_STEPS:
        raise InvalidParameter(
            "spend=",
            "it is so small that the noise would span more than 2**50 steps",
            "such an answer would be noise alone",
            "spend more, or compare counts instead of sums",
        )
    return Fraction(float_up(value))
