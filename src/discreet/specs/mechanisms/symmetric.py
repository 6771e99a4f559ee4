"""Normal noise on a symmetric matrix: what an entry off the diagonal shows twice,
it needs to hide only once.

The statistic is the upper triangle, row by row, of a symmetric integer matrix, and any further
integers after it. One unit is cut into 2**refinement steps. Diagonal entries and the further ones
get noise of standard deviation `spread`, entries off the diagonal noise of standard deviation
`off_spread`, about spread/√2; both are rounded to the grid as in `additive`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, is_float, stored_fraction
from discreet.sensitivity import Frobenius, sensitivity_from_dict
from discreet.specs.mechanisms.additive import LARGEST_REFINEMENT, LARGEST_STEPS, SMALLEST_STEPS


@plain.kept()
@dataclass(frozen=True, slots=True)
class SymmetricGaussianNoise:
    """Symmetric normal noise (the Gaussian orthogonal ensemble): N(0, s²) on the diagonal,
    N(0, s²/2) off it (reference.md G5).
    """

    sensitivity: Frobenius
    spread: Fraction
    off_spread: Fraction
    refinement: int
    kind: ClassVar[str] = "symmetric gaussian"
    reads: ClassVar[str] = "matrix"

    def __post_init__(self) -> None:
        if not isinstance(self.sensitivity, Frobenius):
            raise _bad("it needs a Frobenius sensitivity")
        for spread in (self.spread, self.off_spread):
            if not isinstance(spread, Fraction) or spread <= 0 or not is_float(spread):
                raise _bad("its spreads must be positive Fractions that are float64 exactly")
        if (
            isinstance(self.refinement, bool)
            or not isinstance(self.refinement, int)
            or not 0 <= self.refinement <= LARGEST_REFINEMENT
        ):
            raise _bad(f"its refinement must be a whole number from 0 to {LARGEST_REFINEMENT}")
        smallest, largest = sorted(
            spread * (1 << self.refinement) for spread in (self.spread, self.off_spread)
        )
        if smallest < SMALLEST_STEPS or largest > LARGEST_STEPS:
            raise _bad("its spreads are not between 2**10 and 2**50 grid steps")

    @property
    def order(self) -> int:
        """Rows of the matrix."""
        return self.sensitivity.order

    @property
    def step(self) -> Fraction:
        """One grid step, in integer units of the statistic."""
        return Fraction(1, 1 << self.refinement)

    @property
    def variance(self) -> float:
        """Variance of the noise of a diagonal entry or a further number,
        with the part due to the grid.
        """
        return float(self.spread**2 + self.step**2 / 12)

    @property
    def off_variance(self) -> float:
        """Variance of the noise of an entry off the diagonal."""
        return float(self.off_spread**2 + self.step**2 / 12)

    def fits(self, size: int) -> bool:
        """Whether so many numbers hold the upper triangle; what follows it are further numbers."""
        return size >= self.order * (self.order + 1) // 2

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "spread": fraction_text(self.spread),
            "off_spread": fraction_text(self.off_spread),
            "refinement": self.refinement,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        sensitivity = sensitivity_from_dict(record["sensitivity"])
        if not isinstance(sensitivity, Frobenius):
            raise _bad("it needs a Frobenius sensitivity")
        return cls(
            sensitivity,
            stored_fraction(record["spread"]),
            stored_fraction(record["off_spread"]),
            record["refinement"],
        )


def off_diagonal(order: int) -> tuple[bool, ...]:
    """For each entry of an upper triangle, row by row, whether it lies off the diagonal."""
    return tuple(row != column for row in range(order) for column in range(row, order))


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "SymmetricGaussianNoise",
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.accounting.symmetric_noise",
    )
