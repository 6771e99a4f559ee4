"""Estimating equations of a regression: weighted gradients and second moments in a released metric,
as exact integers.

    WeightedGradient   Σ w ψ(η, y) z, and beside it Σ γψ²,
                       which rides free under Replace (regression.md, "Privacy")
    WeightedGram       Σ w z zᵀ, Σ w ψ′ z zᵀ or Σ w²ψ² z zᵀ (upper triangle), or Σ g gᵀ over units
                       with g = Σ wψz over a unit's rows

Sums are taken over x, exactly, and mapped by A as whole numbers afterwards;
docs/theory/regression.md has the algorithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import sqrt_up, stored_fraction
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import L2, Frobenius
from discreet.specs.estimating.components import UNIT_BITS
from discreet.specs.estimating.families import Family, family_from_dict, psi_bound, slope_bound
from discreet.specs.estimating.metric import (
    WEIGHT_BITS,
    Metric,
    congruent,
    cut_off,
    metric_from_dict,
)
from discreet.specs.estimating.model import (
    EstimatingPlan,
    Model,
    Point,
    at_point_from_dict,
    at_point_to_dict,
    model_from_dict,
    point_from_dict,
)
from discreet.specs.estimating.tables import PSI_BITS
from discreet.specs.queries.keys import Key

# multipliers of second moments, so that products of three factors stay exact in small blocks
LEAN_BITS = 12
# statistics are cut to about this many bits of sensitivity:
# finer than any noise, and quick to draw noise for
TARGET_BITS = 30
PARTS = ("metric", "curvature", "scores", "unit scores")


@plain.kept()
@dataclass(frozen=True, slots=True)
class WeightedGradient:
    """Σ w ψ z (cut to 2**cut units), then Σ ψ² weighted by `ride` (0: left out),
    over the rows that the filters keep.

    `optional` says that a row may be left out by the filters.
    """

    model: Model
    metric: Metric
    family: Family
    point: Point
    optional: bool
    ride: Fraction = Fraction(0)
    kind: ClassVar[str] = "gradient"
    gives: ClassVar[str] = "vector"

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return len(self.metric.rows) + (1 if self.ride else 0)

    @property
    def cut(self) -> int:
        """How many low bits are rounded away before noise is added."""
        return max(0, math.ceil(self._row_bound).bit_length() - TARGET_BITS)

    @property
    def unit(self) -> Fraction:
        """What one unit of the statistic is worth,
        in units of w·ψ·z with z = A·x as whole numbers over 2**UNIT_BITS.
        """
        return Fraction(1 << self.cut, 1 << (WEIGHT_BITS + UNIT_BITS))

    @property
    def ride_unit(self) -> Fraction:
        """What one unit of the last coordinate is worth, in Σψ²."""
        return Fraction(1 << self.cut, 1) / (self._ride_factor << (2 * PSI_BITS))

    @property
    def _ride_factor(self) -> int:
        """Whole-number γ: the last coordinate is γ·Σψ² with γ·b² ≤ ride·(the largest norm of one
        row's part), b the bound of ψ.
        """
        return (
            math.floor(self.ride * self._row_bound / psi_bound(self.family) ** 2)
            if self.ride
            else 0
        )

    @property
    def _row_bound(self) -> Fraction:
        """b·R: the largest norm of one row's w ψ z, in units of the statistic before the cut."""
        return Fraction(psi_bound(self.family) << (WEIGHT_BITS - PSI_BITS)) * self.metric.bound

    def sensitivity(self, neighbors: Neighbors) -> L2:
        """ℓ₂ sensitivity.

        Theorem.  Let b bound |ψ|, γ = ride·R/b with ride ≤ 3/2. One row exchanged moves
                  (Σwψz, γΣψ²) by at most 2bR, one row added or taken away by at most bR·√(1+ride²);
                  k rows by k times that; rounding q coordinates to whole units adds √q.
        Proof.    ‖wψz‖ ≤ |ψ|R. Exchange with |ψ| = a, a′: ((a+a′)R)² + γ²(a²−a′²)² =
                  (a+a′)²(R² + γ²(a−a′)²), which for γ ≤ 3R/(2b) is largest at a = a′ = b: 4b²R².
                  A row that may also be absent is a row with ψ = 0, so the same bound holds.
                  Rounding moves a coordinate by at most ½ in each of the two sums.
        Checked.
            tests/claims/test_estimating_equations.py::test_gradient_sensitivity_is_never_exceeded
        """
        one = (
            2 * self._row_bound
            if isinstance(neighbors, Replace)
            else self._row_bound * sqrt_up(1 + self.ride**2)
        )
        return L2((neighbors.rows * one / (1 << self.cut) + sqrt_up(Fraction(self.size))) ** 2)

    def __post_init__(self) -> None:
        if not isinstance(self.ride, Fraction) or not 0 <= self.ride <= Fraction(3, 2):
            raise InvalidParameter(
                "a gradient",
                "its scale part weighs more than 3/2",
                "beyond it the scale would not ride free",
                "use ride=Fraction(3, 2) or less",
            )
        if len(self.point.beta) != len(self.model.columns) or {
            len(row) for row in self.metric.rows
        } != {len(self.model.columns)}:
            raise _mismatch()

    def plan(self) -> EstimatingPlan:
        return EstimatingPlan(self.model, self.metric, "gradient", self.family, self.point)

    def assemble(self, sums: tuple[npt.NDArray[np.object_], int]) -> list[int]:
        """A·Σ m x rounded to 2**cut units, and γ·Σψ²."""
        (total, squares), cut = sums, self.cut
        moved = self.metric.matrix @ total
        return [cut_off(int(value), cut) for value in moved] + (
            [cut_off(self._ride_factor * squares, cut)] if self.ride else []
        )

    def to_dict(self) -> dict[str, Any]:
        return at_point_to_dict(self) | {"ride": str(self.ride)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> WeightedGradient:
        return cls(*at_point_from_dict(record), stored_fraction(record["ride"]))


@plain.kept()
@dataclass(frozen=True, slots=True)
class WeightedGram:
    """The upper triangle (row by row) of a weighted second moment in the metric,
    cut to 2**cut units.

    part "metric"     Σ w z zᵀ            (bound R²)
    part "curvature"  Σ w ψ′ z zᵀ         (bound s·R², s the largest ψ′)
    part "scores"     Σ w²ψ² z zᵀ         (bound b²R²)
    part "unit scores" Σ g gᵀ over units, g = Σ wψz over the unit's k rows (bound k²b²R²)
    """

    model: Model
    metric: Metric
    part: str
    optional: bool
    family: Family | None = None
    point: Point | None = None
    kind: ClassVar[str] = "weighted gram"
    gives: ClassVar[str] = "matrix"

    def __post_init__(self) -> None:
        if (
            self.part not in PARTS
            or (self.part == "metric") != (self.family is None)
            or (self.family is None) != (self.point is None)
        ):
            raise InvalidParameter(
                "a weighted second moment",
                f"its part is none of {', '.join(PARTS)} with what it needs",
                "each has its own bound",
                "use one of them",
            )
        if {len(row) for row in self.metric.rows} != {len(self.model.columns)} or (
            self.point is not None and len(self.point.beta) != len(self.model.columns)
        ):
            raise _mismatch()

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return len(self.metric.rows) * (len(self.metric.rows) + 1) // 2

    @property
    def largest(self) -> int:
        """The largest multiplier, a whole number of at most LEAN_BITS bits; of units' scores, whose
        multipliers are those of two vectors, its square.
        """
        return 1 << (2 * LEAN_BITS if self.part == "unit scores" else LEAN_BITS)

    @property
    def largest_multiplier(self) -> Fraction:
        """What the largest multiplier stands for:
        1, the largest ψ′, or the square of the largest |ψ|.
        """
        if self.part == "metric" or self.family is None:
            return Fraction(1)
        return (
            Fraction(slope_bound(self.family), 1 << PSI_BITS)
            if self.part == "curvature"
            else Fraction(psi_bound(self.family), 1 << PSI_BITS) ** 2
        )

    @property
    def cut(self) -> int:
        return max(0, math.ceil(self._row_bound).bit_length() - TARGET_BITS)

    @property
    def unit(self) -> Fraction:
        """What one unit of the statistic is worth, in units of the largest multiplier times z zᵀ,
        z as whole numbers over 2**UNIT_BITS.
        """
        return self.largest_multiplier * Fraction(1 << self.cut, self.largest << 2 * UNIT_BITS)

    @property
    def _row_bound(self) -> Fraction:
        return self.largest * self.metric.bound**2

    def sensitivity(self, neighbors: Neighbors) -> Frobenius:
        """Frobenius sensitivity (reference.md G5).

        Theorem.  With B = 2**LEAN_BITS·R² in units of the statistic: √2·B for one row exchanged,
                  B for one row added or taken away, k times that for k rows; rounding the q(q+1)/2
                  released entries adds at most q. Of units' scores with B = 4**LEAN_BITS·R²: √2·k²B
                  for one unit exchanged, k²B for one that comes or goes.
        Proof.    A row adds m·z zᵀ with m‖z‖² ≤ B (m is rounded down from w, w·ψ′/s or w²ψ²/b²,
                  each at most w, and w‖z‖² ≤ R²); then as `gram_sensitivity`. Rounding moves an
                  entry by at most ½ in each of two sums; the Frobenius norm of q² ones is q.
                  Of units' scores: a row adds m·z to its unit's g with |m| ≤ w·2**LEAN_BITS and
                  w‖z‖ ≤ R, so ‖g‖ ≤ k·2**LEAN_BITS·R, and the unit adds g gᵀ, of norm ‖g‖².
        Checked.  tests/claims/test_estimating_equations.py::test_gram_sensitivity_is_never_exceeded
                  and tests/claims/test_unit_scores.py
        """
        root = sqrt_up(Fraction(2)) if isinstance(neighbors, Replace) else Fraction(1)
        times = neighbors.rows ** (2 if self.part == "unit scores" else 1)
        return Frobenius(
            len(self.metric.rows),
            (times * root * self._row_bound / (1 << self.cut) + len(self.metric.rows)) ** 2,
        )

    def plan(self) -> EstimatingPlan:
        return EstimatingPlan(self.model, self.metric, self.part, self.family, self.point)

    def assemble(self, sums: npt.NDArray[np.object_]) -> list[int]:
        """The upper triangle of A·(Σ m x xᵀ)·Aᵀ, rounded to 2**cut units."""
        matrix, cut = self.metric.matrix, self.cut
        upper = congruent(matrix, sums)[np.triu_indices(len(self.metric.rows))]
        return [cut_off(value, cut) for value in upper.tolist()]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_dict(),
            "metric": self.metric.to_dict(),
            "part": self.part,
            "optional": self.optional,
            "family": None if self.family is None else self.family.to_dict(),
            "point": None if self.point is None else self.point.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> WeightedGram:
        family = None if record["family"] is None else family_from_dict(record["family"])
        return cls(
            model_from_dict(record["model"]),
            metric_from_dict(record["metric"]),
            record["part"],
            record["optional"],
            family,
            point_from_dict(record["point"]),
        )


@plain.remembered(1024)
def curvature_factor(family: Family) -> float:
    """2**LEAN_BITS/s: ψ′ in units of its largest value."""
    return (1 << LEAN_BITS) / slope_bound(family)


def _mismatch() -> InvalidParameter:
    return InvalidParameter(
        "an estimating equation",
        "its metric, its point and its model differ in their number of columns",
        "each row is mapped by all three",
        "build them from one model",
    )
