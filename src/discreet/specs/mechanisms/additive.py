"""Additive noise on an integer statistic.

Every spec says: the statistic is a vector of integers with the given sensitivity; one unit of it is
cut into 2**refinement steps; noise is an integer number of steps, drawn from the exact law below;
the output is statistic·2**refinement + noise, an integer number of steps.

    GaussianNoise   sign · ⌊s·|Z| + ½⌋, Z standard normal, s = sigma·2**refinement steps
    LaplaceNoise    the same with |Z| exponential of mean 1, s = scale·2**refinement
    GeometricNoise  P(k) ∝ exp(−|k|/scale) on the integers (refinement 0)
    TulapNoise      GeometricNoise + a uniform on (−½, ½),
                    cut into 2**refinement steps (reference.md M3)

Because the statistic lies on the grid, the output is a post-processing of the real-valued mechanism
(rounding commutes with adding a grid point), so its guarantee is exactly that mechanism's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, is_float, stored_fraction
from discreet.sensitivity import L1, L2, Sensitivity, sensitivity_from_dict

# a continuous law is cut at least this finely, so that continuous theory holds in inference
SMALLEST_STEPS = Fraction(1 << 10)
LARGEST_STEPS = Fraction(1 << 50)
LARGEST_REFINEMENT = 60
TULAP_BITS = 32


@plain.kept()
@dataclass(frozen=True, slots=True)
class AdditiveNoise:
    """What the four laws share; `spread` is σ or the Laplace scale,
    in integer units of the statistic.
    """

    sensitivity: Sensitivity
    spread: Fraction
    refinement: int
    kind: ClassVar[str] = ""
    norm: ClassVar[type] = L1
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if type(self) is AdditiveNoise or not isinstance(self.sensitivity, self.norm):
            raise _bad(type(self).__name__, f"it needs an {self.norm.__name__} sensitivity")
        if not isinstance(self.spread, Fraction) or self.spread <= 0 or not is_float(self.spread):
            raise _bad(
                type(self).__name__,
                "its spread must be a positive Fraction that is a float64 exactly",
            )
        if (
            isinstance(self.refinement, bool)
            or not isinstance(self.refinement, int)
            or not 0 <= self.refinement <= LARGEST_REFINEMENT
        ):
            raise _bad(
                type(self).__name__,
                f"its refinement must be a whole number from 0 to {LARGEST_REFINEMENT}",
            )
        if self.steps > LARGEST_STEPS:
            raise _bad(type(self).__name__, "the noise spans more than 2**50 grid steps")

    @property
    def steps(self) -> Fraction:
        """The spread in grid steps; a float64 exactly."""
        return self.spread * (1 << self.refinement)

    @property
    def step(self) -> Fraction:
        """One grid step, in integer units of the statistic."""
        return Fraction(1, 1 << self.refinement)

    @property
    def variance(self) -> float:
        """Variance of the noise, in squared integer units of the statistic,
        with the part due to the grid.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "spread": fraction_text(self.spread),
            "refinement": self.refinement,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(
            sensitivity_from_dict(record["sensitivity"]),
            stored_fraction(record["spread"]),
            record["refinement"],
        )


def _bad(what: str, found: str) -> InvalidParameter:
    return InvalidParameter(
        what,
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.accounting.calibration.additive",
    )


def _fine_enough(noise: AdditiveNoise) -> None:
    if noise.steps < SMALLEST_STEPS:
        raise _bad(type(noise).__name__, "its grid is coarser than a 1024th of its spread")


@plain.kept()
@dataclass(frozen=True, slots=True)
class GaussianNoise(AdditiveNoise):
    """Normal noise with standard deviation `spread`."""

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[type] = L2

    def __post_init__(self) -> None:
        AdditiveNoise.__post_init__(self)
        _fine_enough(self)

    @property
    def variance(self) -> float:
        return float(self.spread**2 + self.step**2 / 12)


@plain.kept()
@dataclass(frozen=True, slots=True)
class LaplaceNoise(AdditiveNoise):
    """Laplace noise with scale `spread` (variance 2·spread²)."""

    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        AdditiveNoise.__post_init__(self)
        _fine_enough(self)

    @property
    def variance(self) -> float:
        return float(2 * self.spread**2 + self.step**2 / 12)


@plain.kept()
@dataclass(frozen=True, slots=True)
class GeometricNoise(AdditiveNoise):
    """Two-sided geometric noise, P(k) ∝ exp(−|k|/spread)."""

    kind: ClassVar[str] = "geometric"

    def __post_init__(self) -> None:
        AdditiveNoise.__post_init__(self)
        if self.refinement != 0:
            raise _bad("GeometricNoise", "it lives on the integers (refinement 0)")

    @property
    def variance(self) -> float:
        return geometric_variance(float(self.spread))


@plain.kept()
@dataclass(frozen=True, slots=True)
class TulapNoise(AdditiveNoise):
    """Geometric noise plus a uniform on (−½, ½):
    the noise of uniformly most powerful private tests (reference.md M3).
    """

    kind: ClassVar[str] = "tulap"

    def __post_init__(self) -> None:
        AdditiveNoise.__post_init__(self)
        if self.refinement < TULAP_BITS:
            raise _bad(
                "TulapNoise", f"its uniform part needs at least {TULAP_BITS} bits (refinement)"
            )

    @property
    def steps(self) -> Fraction:
        """The spread of the geometric part, which is drawn on the integers."""
        return self.spread

    @property
    def variance(self) -> float:
        return geometric_variance(float(self.spread)) + 1 / 12


def geometric_variance(spread: float) -> float:
    """Variance 2b/(1−b)² of the two-sided geometric law with b = exp(−1/spread),
    stable for large spreads.
    """
    return 2 * (0.5 / math.sinh(0.5 / spread)) ** 2 if spread > 1 / 1400 else 0.0


# each has a sampler and a theorem
ADDITIVE: tuple[type[AdditiveNoise], ...] = (
    GaussianNoise,
    LaplaceNoise,
    GeometricNoise,
    TulapNoise,
)
