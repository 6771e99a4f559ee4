"""Numbers as fixed-point whole numbers: the grid of a column, or of a question about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet import plain
from discreet.errors import InvalidParameter

LARGEST_BOUND = 1e60  # fourth powers of values, times the noise, are ordinary floats


def largest_code(bits: int) -> int:
    return (1 << (bits - 1)) - 1


@plain.kept()
@dataclass(frozen=True, slots=True)
class Encoding:
    """The fixed-point grid of a number column:
    value = center + code / per_unit, low ≤ code ≤ high (low = −high).
    """

    center: float
    per_unit: float
    low: int
    high: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", plain.number(self.center, "an encoding"))
        object.__setattr__(self, "per_unit", plain.number(self.per_unit, "an encoding"))
        if type(self.low) is not int or type(self.high) is not int:
            raise InvalidParameter(
                "an encoding",
                "its bounds are no whole numbers",
                "codes are counted, and sensitivities are exact",
                "take it from a declared column",
            )
        if not (
            math.isfinite(self.center)
            and 0 < self.per_unit < math.inf
            and self.low < self.high
            and max(-self.low, self.high) <= largest_code(32)
            # of every declared value: no step of encoding it overflows, in whichever pass
            and math.isfinite((LARGEST_BOUND + abs(self.center)) * self.per_unit)
            and math.isfinite(abs(self.center) + largest_code(32) / self.per_unit)
        ):
            raise InvalidParameter(
                "an encoding",
                "it is no finite grid of 32-bit codes",
                "a code outside its bounds would break the sensitivity",
                "take it from a declared column",
            )

    @property
    def step(self) -> Fraction:
        """What one code is worth, exactly."""
        return 1 / Fraction(self.per_unit)

    @property
    def is_exact(self) -> bool:
        """Whether every admissible value is a grid point (whole-number columns)."""
        return self.per_unit == 2.0

    def value(self, code: int) -> Fraction:
        return Fraction(self.center) + code * self.step
