"""Estimating equations of a regression: weighted gradients and second moments in a released metric,
as exact integers.

A row has model columns x (whole numbers, |x_j| ≤ UNIT stands for 1), a response y, and is seen in
the metric z = A·x, A a released matrix of whole numbers. Its weight w = min(1, R²/‖z‖²) bounds what
it adds, whatever it holds: w‖z‖ ≤ R, w‖z‖² ≤ R² (reference.md H2; regression.md §2).

    WeightedGradient   Σ w ψ(η, y) z, and beside it Σ γψ²,
                       which rides free under Replace (regression.md, "Privacy")
    WeightedGram       Σ w z zᵀ, Σ w ψ′ z zᵀ or Σ w²ψ² z zᵀ (upper triangle)

Sums are taken over x, exactly, and mapped by A as whole numbers afterwards;
docs/theory/regression.md has the algorithm.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import sqrt_up
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import L2, Frobenius
from discreet.specs.estimating.components import (
    UNIT_BITS,
    ModelColumn,
    Response,
    column_from_record,
    constant,
    response_from_dict,
)
from discreet.specs.estimating.families import (
    PSI_BITS,
    Family,
    family_from_dict,
    psi_bound,
    slope_bound,
)
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import FLOAT_BITS, columns_read

WEIGHT_BITS = 15  # weights are whole numbers from 0 to 2**15
# multipliers of second moments, so that products of three factors stay exact in small blocks
LEAN_BITS = 12
# statistics are cut to about this many bits of sensitivity:
# finer than any noise, and quick to draw noise for
TARGET_BITS = 30
LARGEST_COLUMNS = 200
# of `whole_product`: 200 · 16 products of 40 bits stay below 2**52
DIGIT_BITS, MOST_DIGITS = 20, 16
PARTS = ("metric", "curvature", "scores")
RESPONSE_LIMIT = 31  # responses are int32
LARGEST_PRODUCT, SMALLEST_PER_SCALE = 2.0**1000, 2.0**-1000  # inside float64's ordinary numbers


@plain.kept()
@dataclass(frozen=True, slots=True)
class Metric:
    """z = A·x with A of whole numbers; norms are taken of zq = ⌈|z| / 2**shift⌉,
    so that ‖zq‖² is exact and never too small.

    `radius_squared` is R² in units of zq; ‖zq‖² stays below 2**52 for every row (checked from A
    alone).
    """

    rows: tuple[tuple[int, ...], ...]
    shift: int
    radius_squared: int

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows}
        if (
            not self.rows
            or len(self.rows) > LARGEST_COLUMNS
            or len(widths) != 1
            or self.radius_squared < 1
            or self.shift < 0
        ):
            raise _bad_metric("it is no matrix with a radius")
        row_sums = [sum(map(abs, row)) << UNIT_BITS for row in self.rows]
        if (
            max(row_sums).bit_length() > FLOAT_BITS
            or sum(((one >> self.shift) + 1) ** 2 for one in row_sums).bit_length() > FLOAT_BITS
        ):
            raise _bad_metric("its entries have too many bits")

    @property
    def matrix(self) -> npt.NDArray[np.object_]:
        return np.array(self.rows, dtype=object)

    @property
    def bound(self) -> Fraction:
        """R in units of z, rounded up: R·2**shift."""
        return _bound(self.radius_squared, self.shift)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": [[str(entry) for entry in row] for row in self.rows],
            "shift": self.shift,
            "radius_squared": str(self.radius_squared),
        }


def metric_from_dict(record: dict[str, Any]) -> Metric:
    return Metric(
        tuple(tuple(int(entry) for entry in row) for row in record["rows"]),
        record["shift"],
        int(record["radius_squared"]),
    )


def metric_of(matrix: npt.NDArray[np.float64], radius: float) -> Metric:
    """The metric nearest to a real matrix (rows of z by columns of x in units of 1) with radius R,
    on the finest grid that stays exact.
    """
    longest = float(np.abs(matrix).sum(axis=1).max())
    if not (math.isfinite(longest) and longest > 0 and math.isfinite(radius) and radius > 0):
        raise _bad_metric("its numbers are not finite")
    bits = FLOAT_BITS - 2 - UNIT_BITS - max(0, math.ceil(math.log2(longest)))
    rows = tuple(tuple(map(int, row)) for row in np.floor(np.ldexp(matrix, bits) + 0.5).tolist())
    largest = max(sum(map(abs, row)) for row in rows) << UNIT_BITS
    shift = max(0, largest.bit_length() - (FLOAT_BITS - 2 - math.ceil(math.log2(len(rows)))) // 2)
    scaled = Fraction(radius) * (1 << (bits + UNIT_BITS)) / (1 << shift)
    return Metric(rows, shift, max(1, math.floor(scaled**2)))


@plain.kept()
@dataclass(frozen=True, slots=True)
class Point:
    """Where an estimating function is taken:
    β and, for residual families, the scale, as whole numbers.

    Σ_j x_j·beta[j] is η·2**eta_bits for x in units of 2**-UNIT_BITS; residual families read y − η
    in units of y's grid (eta_bits says how far it is refined) and multiply by `per_scale` = GRID/(σ
    in those units); mean families multiply η by `per_scale` = GRID/2**eta_bits.

    Theorem.  Every product (y − η)·per_scale or η·per_scale that a row can lead to is 0 or an
              ordinary float64: none overflows or underflows, so no floating-point flag says
              anything of a row, and every row's place in a table is a whole number.
    Proof.    |y| ≤ 2**31 steps and |Σ x·beta| ≤ 2**52, so the whole number y·2**eta_bits − Σ x·beta
              is 0 or between 1 and 2**(31 + eta_bits) + 2**52 in size; per_scale is at least
              2**-1000, and at most 2**1000 times that bound's inverse.
    Checked.  tests/claims/test_nothing_is_seen.py::test_points_keep_every_product_finite
    """

    beta: tuple[int, ...]
    eta_bits: int
    per_scale: float

    def __post_init__(self) -> None:
        longest = (sum(abs(entry) for entry in self.beta) << UNIT_BITS).bit_length()
        if longest > FLOAT_BITS or not (type(self.eta_bits) is int and 0 <= self.eta_bits <= 64):
            raise InvalidParameter(
                "a point of a fit",
                "its numbers have too many bits",
                "linear predictors must be exact",
                "bound the coefficients first",
            )
        scale, largest = self.per_scale, LARGEST_PRODUCT / self.furthest
        if not isinstance(scale, float) or not SMALLEST_PER_SCALE <= scale <= largest:
            raise InvalidParameter(
                "a point of a fit",
                "its scale is no number of ordinary size",
                "a product that overflows for some rows only would tell which",
                "take the scale from a fit, or from the declared range",
            )

    @property
    def furthest(self) -> float:
        """A public bound on |y·2**eta_bits − Σ x·beta| and on |Σ x·beta|."""
        return 2.0 ** (RESPONSE_LIMIT + self.eta_bits) + 2.0**FLOAT_BITS

    def to_dict(self) -> dict[str, Any]:
        return {
            "beta": [str(entry) for entry in self.beta],
            "eta_bits": self.eta_bits,
            "per_scale": self.per_scale,
        }


def point_from_dict(record: dict[str, Any] | None) -> Point | None:
    return (
        None
        if record is None
        else Point(
            tuple(int(entry) for entry in record["beta"]), record["eta_bits"], record["per_scale"]
        )
    )


@plain.kept()
@dataclass(frozen=True, slots=True)
class Model:
    """The columns of a regression, its response (None where no equation needs one) and the filters
    of its rows.
    """

    columns: tuple[ModelColumn, ...]
    response: Response | None
    keys: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= LARGEST_COLUMNS or cell_count(self.keys) != 1:
            raise InvalidParameter(
                "a model",
                f"it must have 1 to {LARGEST_COLUMNS} columns and one set of rows",
                "its second moments are released as one matrix",
                "use fewer terms",
            )

    @property
    def constant(self) -> tuple[int, ...]:
        """Coefficients that make the predictor 1 in every row; all 0 where none do."""
        return constant(self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        """The data columns that it reads."""
        components = [component for column in self.columns for component in column.components]
        return tuple(
            sorted(
                {
                    *(component.column for component in components),
                    *([self.response.column] if self.response else []),
                    *columns_read((), self.keys),
                }
            )
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": [column.to_dict() for column in self.columns],
            "response": None if self.response is None else self.response.to_dict(),
            "keys": [key.to_dict() for key in self.keys],
        }


def model_from_dict(record: dict[str, Any]) -> Model:
    """The model of a record; one that was read before is the same object,
    as a fit asks about one model many times.
    """
    return _read_model(json.dumps(record))


@functools.lru_cache(maxsize=8)
def _read_model(text: str) -> Model:
    record = json.loads(text)
    response = None if record["response"] is None else response_from_dict(record["response"])
    return Model(
        tuple(column_from_record(column) for column in record["columns"]),
        response,
        tuple(key_from_dict(key) for key in record["keys"]),
    )


@dataclass(frozen=True, slots=True)
class EstimatingPlan:
    """What an engine sums: part "gradient" Σ m·x and Σ ψ²; the others Σ m·x xᵀ, with the
    whole-number multiplier m of that part.
    """

    model: Model
    metric: Metric
    part: str
    family: Family | None
    point: Point | None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.reads


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
        return [_cut_off(int(value), cut) for value in moved] + (
            [_cut_off(self._ride_factor * squares, cut)] if self.ride else []
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_dict(),
            "metric": self.metric.to_dict(),
            "family": self.family.to_dict(),
            "point": self.point.to_dict(),
            "optional": self.optional,
            "ride": str(self.ride),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> WeightedGradient:
        point = point_from_dict(record["point"])
        assert point is not None
        return cls(
            model_from_dict(record["model"]),
            metric_from_dict(record["metric"]),
            family_from_dict(record["family"]),
            point,
            record["optional"],
            Fraction(record["ride"]),
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class WeightedGram:
    """The upper triangle (row by row) of a weighted second moment in the metric,
    cut to 2**cut units.

    part "metric"     Σ w z zᵀ            (bound R²)
    part "curvature"  Σ w ψ′ z zᵀ         (bound s·R², s the largest ψ′)
    part "scores"     Σ w²ψ² z zᵀ         (bound b²R²)
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
        """The largest multiplier, a whole number of at most LEAN_BITS bits."""
        return 1 << LEAN_BITS

    @property
    def largest_multiplier(self) -> Fraction:
        """What a multiplier of 2**LEAN_BITS stands for:
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
        return self.largest_multiplier * Fraction(1 << self.cut, 1 << (LEAN_BITS + 2 * UNIT_BITS))

    @property
    def _row_bound(self) -> Fraction:
        return self.largest * self.metric.bound**2

    def sensitivity(self, neighbors: Neighbors) -> Frobenius:
        """Frobenius sensitivity (reference.md G5).

        Theorem.  With B = 2**LEAN_BITS·R² in units of the statistic: √2·B for one row exchanged,
                  B for one row added or taken away, k times that for k rows; rounding the q(q+1)/2
                  released entries adds at most q.
        Proof.    A row adds m·z zᵀ with m‖z‖² ≤ B (m is rounded down from w, w·ψ′/s or w²ψ²/b²,
                  each at most w, and w‖z‖² ≤ R²); then as `gram_sensitivity`. Rounding moves an
                  entry by at most ½ in each of two sums; the Frobenius norm of q² ones is q.
        Checked.  tests/claims/test_estimating_equations.py::test_gram_sensitivity_is_never_exceeded
        """
        root = sqrt_up(Fraction(2)) if isinstance(neighbors, Replace) else Fraction(1)
        return Frobenius(
            len(self.metric.rows),
            (neighbors.rows * root * self._row_bound / (1 << self.cut) + len(self.metric.rows))
            ** 2,
        )

    def plan(self) -> EstimatingPlan:
        return EstimatingPlan(self.model, self.metric, self.part, self.family, self.point)

    def assemble(self, sums: npt.NDArray[np.object_]) -> list[int]:
        """The upper triangle of A·(Σ m x xᵀ)·Aᵀ, rounded to 2**cut units."""
        matrix, cut = self.metric.matrix, self.cut
        moved = whole_product(matrix, whole_product(matrix, sums).T).T
        q = len(self.metric.rows)
        return [_cut_off(int(moved[i, j]), cut) for i in range(q) for j in range(i, q)]

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


@functools.lru_cache(maxsize=256)
def _bound(radius_squared: int, shift: int) -> Fraction:
    return sqrt_up(Fraction(radius_squared)) * (1 << shift)


@functools.cache
def curvature_factor(family: Family) -> float:
    """2**LEAN_BITS/s: ψ′ in units of its largest value."""
    return (1 << LEAN_BITS) / slope_bound(family)


def whole_product(
    left: npt.NDArray[np.object_], right: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """left @ right of whole numbers of any size, exactly.

    Method.  Both are split into digits of DIGIT_BITS bits; products of digits are float64 sums of
             at most LARGEST_COLUMNS·MOST_DIGITS terms below 2**(2·DIGIT_BITS), so below 2**52 and
             exact, and are put together as Python integers.
    """
    lefts, rights = _digits_of(left), _digits_of(right)
    if min(len(lefts), len(rights)) > MOST_DIGITS:
        return np.asarray(left @ right)
    total = np.zeros((left.shape[0], right.shape[1]), dtype=object)
    for place in range(len(lefts) + len(rights) - 1):
        parts = [
            lefts[i] @ rights[place - i] for i in range(len(lefts)) if 0 <= place - i < len(rights)
        ]
        total = total + (
            sum(parts[1:], parts[0]).astype(np.int64).astype(object) << (DIGIT_BITS * place)
        )
    return total


def _digits_of(matrix: npt.NDArray[np.object_]) -> list[npt.NDArray[np.float64]]:
    """Whole numbers as digits, least first: matrix = Σ digits·2**(DIGIT_BITS·place); all but the
    last lie in 0 … 2**DIGIT_BITS − 1.
    """
    largest = int(np.abs(matrix).max(initial=0))
    count = max(1, -(-(largest.bit_length() + 1) // DIGIT_BITS))
    if largest.bit_length() < 63:
        matrix = matrix.astype(np.int64)  # the same numbers, whose digits are taken at once
    lower = [
        (matrix >> (DIGIT_BITS * place)) & ((1 << DIGIT_BITS) - 1) for place in range(count - 1)
    ]
    return [digit.astype(np.float64) for digit in [*lower, matrix >> (DIGIT_BITS * (count - 1))]]


def _cut_off(value: int, bits: int) -> int:
    """value / 2**bits rounded to the nearest whole number (halves up)."""
    return value if bits == 0 else (value + (1 << (bits - 1))) >> bits


def _bad_metric(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a metric",
        found,
        "the norm of every row must be an exact whole number below 2**52",
        "take it from metric_of, with numbers of ordinary size",
    )


def _mismatch() -> InvalidParameter:
    return InvalidParameter(
        "an estimating equation",
        "its metric, its point and its model differ in their number of columns",
        "each row is mapped by all three",
        "build them from one model",
    )
