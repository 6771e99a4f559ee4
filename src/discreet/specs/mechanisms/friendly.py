"""The mean of those rows that most others lie near, or nothing (reference.md K5).

A noisy total weight W̃ = W + N(0, σ²) − t is released first, t so large that W̃ > W has probability
δ. Where W̃ > 3 the weighted mean follows, with Gaussian noise in proportion to 8r/W̃; the answer's
integers are the noisy weight, and the mean's coordinates where there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, is_float, sqrt_up, stored_fraction
from discreet.sensitivity import L2, Friendly, sensitivity_from_dict
from discreet.specs.mechanisms.additive import GaussianNoise

WEIGHT_BITS = 20  # weights are whole numbers of 2**-20
LEAST_WEIGHT = 3  # below it one row could be what makes a core
# between neighbours, in steps of the weight: 3, and what rounding down adds
WEIGHT_MOVES = Fraction((LEAST_WEIGHT << WEIGHT_BITS) + 1)
FINE = 1 << 14  # steps of the mean in one σ of its noise, at least


@plain.kept()
@dataclass(frozen=True, slots=True)
class FriendlyMean:
    """The mechanism above: `spread` is σ and `margin` t, in steps of the weight; `mu_squared` is
    what the mean may cost.
    """

    sensitivity: Friendly
    spread: Fraction
    margin: int
    mu_squared: Fraction
    kind: ClassVar[str] = "friendly mean"
    reads: ClassVar[str] = "friends"

    def __post_init__(self) -> None:
        if type(self.sensitivity) is not Friendly:
            raise _bad("it needs to know how far friends can lie apart")
        if type(self.margin) is not int or not 1 <= self.margin < 1 << 60:
            raise _bad("its margin is no whole number of steps")
        if (
            not isinstance(self.mu_squared, Fraction)
            or self.mu_squared <= 0
            or not is_float(self.mu_squared)
        ):
            raise _bad("what its mean may cost is no positive float64")
        self.weight_noise()
        self.mean_noise((LEAST_WEIGHT << WEIGHT_BITS) + 1 + self.margin)  # refuses too much noise

    def fits(self, size: int) -> bool:
        """Whether it has as many coordinates as the statistic."""
        return size == self.sensitivity.size

    @property
    def total_mu_squared(self) -> Fraction:
        """μ² of the noisy weight and of the mean together."""
        return (WEIGHT_MOVES / self.spread) ** 2 + self.mu_squared

    def weight_noise(self) -> GaussianNoise:
        """The noise of the total weight."""
        return GaussianNoise(L2(WEIGHT_MOVES**2), self.spread, 0)

    def certain_weight(self, noisy: int) -> Fraction:
        """W̃ of the released noisy weight."""
        return Fraction(noisy - self.margin, 1 << WEIGHT_BITS)

    def step_bits(self, noisy: int) -> int:
        """The mean is rounded to steps of 2**-bits of a code, far finer than its noise."""
        steps = FINE * sqrt_up(self.mu_squared) / self._moves(noisy)
        return max(0, math.ceil(steps) - 1).bit_length()

    def mean_noise(self, noisy: int) -> GaussianNoise | None:
        """The noise of the mean, in its steps, at this noisy weight; None where there is no core.

        Theorem.  Means of weights of at least W̃ differ by at most its sensitivity.
        Proof.    8√squared/W̃ codes before both are rounded to steps; rounding moves each
                  coordinate of each by at most half a step: √d together.
        Checked.  tests/claims/test_friendly.py::test_means_move_no_further_than_their_noise_says
        """
        if self.certain_weight(noisy) <= LEAST_WEIGHT:
            return None
        moves = self._moves(noisy) * (1 << self.step_bits(noisy))
        moves += sqrt_up(Fraction(self.sensitivity.size))
        return GaussianNoise(L2(moves**2), sqrt_up(moves**2 / self.mu_squared), 0)

    def _moves(self, noisy: int) -> Fraction:
        """8√squared/W̃, in codes, rounded up."""
        return 8 * sqrt_up(self.sensitivity.squared) / self.certain_weight(noisy)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "spread": fraction_text(self.spread),
            "margin": self.margin,
            "mu_squared": fraction_text(self.mu_squared),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        sensitivity = sensitivity_from_dict(record["sensitivity"])
        if not isinstance(sensitivity, Friendly):
            raise _bad("it needs to know how far friends can lie apart")
        return cls(
            sensitivity,
            stored_fraction(record["spread"]),
            record["margin"],
            stored_fraction(record["mu_squared"]),
        )


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "FriendlyMean",
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.accounting.calibration.friendly",
    )
