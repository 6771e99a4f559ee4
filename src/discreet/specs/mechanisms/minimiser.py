"""The minimiser of a convex loss with noise in its objective, or on itself
(docs/theory/perturbed-minimisers.md).

    objective   θ* = argmin Σ wℓ(θᵀz, y) + (Λ/2)‖θ‖² + bᵀθ, b drawn from `law`
    output      θ* = argmin Σ wℓ(θᵀz, y) + (Λ/2)‖θ‖²

What is computed is a θ̂ whose gradient is certainly no longer than `tolerance`; it is rounded to
steps and noise of the same law, of spread `cover` steps, is added: a little of it where b is there
(it covers the tolerance and the grid of b), all of it for output. Rows are in units of the radius.

    gaussian    independent N(0, spread²), rounded
    laplace     density ∝ exp(−‖·‖₂/spread) on vectors, rounded: Euclidean Laplace noise
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, is_float, sqrt_up, stored_fraction
from discreet.sensitivity import RowLoss, sensitivity_from_dict
from discreet.specs.estimating.metric import LARGEST_COLUMNS
from discreet.specs.mechanisms.additive import LARGEST_STEPS, SMALLEST_STEPS

WAYS, LAWS = ("objective", "output"), ("gaussian", "laplace")
NOISE_BITS = 30  # b is a whole number of 2**-30
LEAST_TOLERANCE = Fraction(1, 1 << 30)  # iterates are on a grid that is much finer
LEAST_STEP_BITS, MOST_STEP_BITS = -20, 60
CLEAR = 64  # times its error: a gradient that is shorter is taken exactly
# for each row, CLEAR times the error of a pass: at most this much, and this times a row's curvature
A_ROW, A_ROW_BENT = Fraction(1, 1 << 38), Fraction(1, 1 << 42)
EXACT_CELLS = 1 << 22  # that Python's whole numbers pass over in seconds


@plain.kept()
@dataclass(frozen=True, slots=True)
class PerturbedMinimiser:
    """The mechanism above on `size` coefficients; a step is 2**-step_bits of θ.

    `spread` is that of b in units of 2**-NOISE_BITS (0 for output), `cover` that of the noise on
    θ̂ in steps; `penalty` is Λ, `tolerance` bounds the gradient at θ̂.
    """

    sensitivity: RowLoss
    way: str
    law: str
    size: int
    penalty: Fraction
    spread: Fraction
    tolerance: Fraction
    step_bits: int
    cover: Fraction
    kind: ClassVar[str] = "perturbed minimiser"
    reads: ClassVar[str] = "minimand"

    def __post_init__(self) -> None:
        if type(self.sensitivity) is not RowLoss:
            raise _bad("it needs to know how one row bends the objective")
        if self.way not in WAYS or self.law not in LAWS:
            raise _bad("its way or its law is not known")
        if type(self.size) is not int or not 1 <= self.size <= LARGEST_COLUMNS:
            raise _bad("its size is not that of a model")
        spreads = (self.cover, self.spread) if self.way == "objective" else (self.cover,)
        if not all(
            isinstance(one, Fraction) and is_float(one) and SMALLEST_STEPS <= one <= LARGEST_STEPS
            for one in spreads
        ) or (self.way == "output" and self.spread != 0):
            raise _bad("its spreads are not float64 between 2**10 and 2**50 whole numbers")
        if not all(isinstance(one, Fraction) and one > 0 for one in (self.penalty, self.tolerance)):
            raise _bad("its penalty or its tolerance is not positive")
        if self.tolerance < LEAST_TOLERANCE:
            raise _bad("its tolerance is below 2**-30, the grid of its noise")
        if self.way == "objective":
            if self.kappa > 1:
                raise _bad("its penalty is below the largest curvature of one row")
            if self.law == "gaussian" and not self.sensitivity.one_signed:
                raise _bad("Gaussian noise in the objective needs a loss whose pull has one sign")
        if (
            type(self.step_bits) is not int
            or not LEAST_STEP_BITS <= self.step_bits <= MOST_STEP_BITS
        ):
            raise _bad("its step is no power of two of ordinary size")

    @property
    def kappa(self) -> Fraction:
        """κ: the largest curvature of one row over the penalty."""
        return self.sensitivity.curvature / self.penalty

    @property
    def step(self) -> Fraction:
        return Fraction(2) ** -self.step_bits

    @property
    def distance(self) -> Fraction:
        """How far the rounded θ̂ can lie from θ*, in steps: (τ + rounding of b)/Λ, and its own
        rounding.
        """
        root = sqrt_up(Fraction(self.size))
        grid = root / (1 << (NOISE_BITS + 1)) if self.way == "objective" else Fraction(0)
        return (self.tolerance + grid) / self.penalty / self.step + root / 2

    def ends(self, rows: int) -> bool:
        """Whether it ends over so many rows: its tolerance is no finer than what a pass can tell,
        or there are few cells.
        """
        told = rows * told_of_a_row(self.sensitivity.curvature) / CLEAR
        return self.tolerance >= told or rows * self.size <= EXACT_CELLS

    def fits(self, size: int) -> bool:
        """Whether it has as many coefficients as the statistic."""
        return size == self.size

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "way": self.way,
            "law": self.law,
            "size": self.size,
            "penalty": fraction_text(self.penalty),
            "spread": fraction_text(self.spread),
            "tolerance": fraction_text(self.tolerance),
            "step_bits": self.step_bits,
            "cover": fraction_text(self.cover),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        sensitivity = sensitivity_from_dict(record["sensitivity"])
        if not isinstance(sensitivity, RowLoss):
            raise _bad("it needs to know how one row bends the objective")
        return cls(
            sensitivity,
            record["way"],
            record["law"],
            record["size"],
            stored_fraction(record["penalty"]),
            stored_fraction(record["spread"]),
            stored_fraction(record["tolerance"]),
            record["step_bits"],
            stored_fraction(record["cover"]),
        )


def told_of_a_row(curvature: Fraction) -> Fraction:
    """For each row, a gradient that long is told by one pass, whatever the rows hold
    (trusted/learning/minimiser/rows.py).
    """
    return A_ROW + A_ROW_BENT * curvature


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "PerturbedMinimiser",
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.accounting.calibration.minimiser",
    )
