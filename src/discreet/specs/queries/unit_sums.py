"""Counts and means of rows of which several are one unit's: the spread of the units' own sums rides
along.

A unit has at most k rows that count. With N of them in a cell, whose codes c ∈ [−1, 1] add up to S,
and T in all cells together, put t = N/k, s = S/k, T/k for T. The unit adds to the cell

    (A·t,  B·s,  C·(t² − s²),  E·s(1−t),  E·t(1−t),  E·t(T−t))

and, where no column is summed, the coordinates without s. All but the first two vanish for a unit
of k equal rows at an end of the range, which moves those two furthest: the squares and products of
the units' sums, from which variances between units follow, cost nothing (docs/theory/clusters.md).
Everything is multiplied by (k·h)², so the statistic is an exact integer vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import LARGEST_MAX_ROWS, Neighbors, Replace
from discreet.sensitivity import L2
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, columns_read, factor_from_dict

LARGEST_CODE_BITS = 20  # of a factor, so that squares of a unit's sum stay exact in two halves


@dataclass(frozen=True, slots=True)
class UnitSumsPlan:
    """For every cell Σ N, Σ N·T, Σ N² over the units, and with a factor Σ S, Σ N·S, Σ S²: N and S a
    unit's rows in the cell and the sum of their codes, T its rows in all cells.
    """

    keys: tuple[Key, ...]
    factor: Factor | None

    def __post_init__(self) -> None:
        cell_count(self.keys)
        if self.factor is not None and self.factor.largest.bit_length() > LARGEST_CODE_BITS:
            raise _bad("its codes have too many bits")

    @property
    def cells(self) -> int:
        return cell_count(self.keys)

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read(() if self.factor is None else (self.factor,), self.keys)


@plain.kept()
@dataclass(frozen=True, slots=True)
class UnitDesign:
    """Weights of what one unit adds, and proven bounds of squared distances: `add` of what a unit
    adds, `one` and `several` of what two units add to one cell or to several.

    Theorem.  The squared ℓ₂ sensitivity of the sums is at most `add` under AddRemove, `one` under
              Replace in one cell, `several` under Replace in several cells.
    Proof.    docs/theory/clusters.md: add = A² + B² where 3E² ≤ 4·add (2E² ≤ 4·A² without a
              column), for then a unit's squared norm in a cell is at most add·t, and its t add up
              to at most 1. several = 2·add where A ≥ B, for then two units' vectors have no
              negative product, and 4·add otherwise. one = 4B² where A² ≤ 3B², C ≤ B, E² ≤ 8B², by
              Schur's inequality; without a column one = A².
    Checked.  tests/claims/test_unit_sums.py
    """

    name: str
    count: int
    weights: tuple[int, ...]
    gap: int
    add: Fraction
    one: Fraction
    several: Fraction

    def bound(self, neighbors: Neighbors, cells: int) -> Fraction:
        """The squared sensitivity for t, s in shares of a unit's rows."""
        if not isinstance(neighbors, Replace):
            return self.add
        return self.one if cells == 1 else self.several


def _design(
    name: str, count: int, weights: tuple[int, ...], gap: int, bounds: tuple[int, int, int]
) -> tuple[str, UnitDesign]:
    add, one, several = map(Fraction, bounds)
    return name, UnitDesign(name, count, weights, gap, add, one, several)


UNIT_DESIGNS: Mapping[str, UnitDesign] = dict(
    [
        # A, (B, C), E: those of the rows' own designs (specs/queries/moments.py), with gaps
        _design("units-add-l2", 3, (6, 6), 7, (45, 144, 180)),
        _design("units-cells-l2", 5, (5, 5), 8, (50, 100, 100)),
        _design("units-optional-l2", 19, (11, 11), 25, (482, 484, 964)),
        _design("units-counts-l2", 5, (), 7, (25, 25, 50)),
    ]
)


def unit_design(neighbors: Neighbors, *, cells: int, total: bool = False) -> UnitDesign:
    """The design for means under a relation, or for a total: the noise of the rows' own."""
    if isinstance(neighbors, Replace):
        return UNIT_DESIGNS["units-optional-l2" if cells == 1 else "units-cells-l2"]
    return UNIT_DESIGNS["units-cells-l2" if total else "units-add-l2"]


def _proven(design: UnitDesign) -> bool:
    return type(design) is UnitDesign and UNIT_DESIGNS.get(design.name) == design


@plain.kept()
@dataclass(frozen=True, slots=True)
class UnitSums:
    """What units with at most `rows` rows add by cells, as integers, one coordinate after the
    other: count; first, even, cross with a factor; gap; elsewhere where there are several cells.
    """

    keys: tuple[Key, ...]
    factor: Factor | None
    design: UnitDesign
    rows: int
    optional: bool
    kind: ClassVar[str] = "unit sums"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if not _proven(self.design) or bool(self.design.weights) != (self.factor is not None):
            raise _bad("its design is none whose reach is proven for it")
        if type(self.rows) is not int or not 2 <= self.rows <= LARGEST_MAX_ROWS:
            raise _bad(f"a unit's rows are none of 2 to {LARGEST_MAX_ROWS}")

    @property
    def cells(self) -> int:
        return cell_count(self.keys)

    @property
    def height(self) -> int:
        """h, the largest code."""
        return 1 if self.factor is None else self.factor.largest

    @property
    def size(self) -> int:
        return self.cells * (2 + 3 * (self.factor is not None) + (self.cells > 1))

    def sensitivity(self, neighbors: Neighbors) -> L2:
        """`UnitDesign.bound` times (k·h)⁴, for a relation with as many rows in a unit."""
        return _unit_sensitivity(self.design.bound(neighbors, self.cells), self, neighbors)

    def plan(self) -> UnitSumsPlan:
        return UnitSumsPlan(self.keys, self.factor)

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's sums over units."""
        h, k, design = self.height, self.rows, self.design
        n, nt, nn, *of_codes = ([int(value) for value in column] for column in sums.T)
        rows = [[design.count * k * h * h * one for one in n]]
        if of_codes:
            (b, c), (s, ns, ss) = design.weights, of_codes
            rows += [
                [b * k * h * one for one in s],
                [c * (h * h * one - square) for one, square in zip(nn, ss, strict=True)],
                [design.gap * h * (k * one - of) for one, of in zip(s, ns, strict=True)],
            ]
        rows.append([design.gap * h * h * (k * one - of) for one, of in zip(n, nn, strict=True)])
        if self.cells > 1:
            rows.append([design.gap * h * h * (of - one) for of, one in zip(nt, nn, strict=True)])
        return [value for row in rows for value in row]

    def unit_values(self) -> tuple[float, ...]:
        """What one integer unit of each coordinate is worth: rows and c-sums of rows for the first
        (two), squares of those for all others.
        """
        design, one = self.design, 1.0 / self.height**2
        of_codes = (
            (one / (design.weights[0] * self.rows), one / design.weights[1], one / design.gap)
            if design.weights
            else ()
        )
        gaps = (one / design.gap,) * (1 + (self.cells > 1))
        return (one / (design.count * self.rows), *of_codes, *gaps)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factor": None if self.factor is None else self.factor.to_dict(),
            "design": self.design.name,
            "rows": self.rows,
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> UnitSums:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            None if record["factor"] is None else factor_from_dict(record["factor"]),
            UNIT_DESIGNS[record["design"]],
            record["rows"],
            record["optional"],
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class UnitShares:
    """The coordinates of `UnitSums` in one cell for c = 1 in the first of two cells and c = −1 in
    the second; a row may be in neither.

    Theorem.  The sensitivity is that of `UnitSums` in one cell.
    Proof.    Those who are in either cell are one cell, and c is a number in [−1, 1] of each.
    Checked.  tests/claims/test_unit_sums.py
    """

    keys: tuple[Key, ...]
    design: UnitDesign
    rows: int
    kind: ClassVar[str] = "unit shares"
    gives: ClassVar[str] = "vector"
    optional: ClassVar[bool] = True
    size: ClassVar[int] = 5
    cells: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not _proven(self.design) or not self.design.weights or cell_count(self.keys) != 2:
            raise _bad("it needs two cells, and a design whose reach is proven")
        if type(self.rows) is not int or not 2 <= self.rows <= LARGEST_MAX_ROWS:
            raise _bad(f"a unit's rows are none of 2 to {LARGEST_MAX_ROWS}")

    def sensitivity(self, neighbors: Neighbors) -> L2:
        """In one cell, for all rows of one unit."""
        return _unit_sensitivity(self.design.bound(neighbors, 1), self, neighbors)

    def plan(self) -> UnitSumsPlan:
        return UnitSumsPlan(self.keys, None)

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's sums over units in both cells."""
        k, (b, c), gap = self.rows, self.design.weights, self.design.gap
        (n, nt, nn), (others, others_t, others_nn) = ([int(one) for one in row] for row in sums)
        total, squares = n + others, nt + others_t  # Σ T and Σ T²
        return [
            self.design.count * k * total,
            b * k * (n - others),
            2 * c * (squares - nn - others_nn),  # T² − (N − N′)² = 4NN′
            gap * (k * (n - others) - (nt - others_t)),
            gap * (k * total - squares),
        ]

    def unit_values(self) -> tuple[float, ...]:
        """As `UnitSums.unit_values`."""
        b, c = self.design.weights
        gap = 1.0 / self.design.gap
        return (1.0 / (self.design.count * self.rows), 1.0 / (b * self.rows), 1.0 / c, gap, gap)

    def to_dict(self) -> dict[str, Any]:
        keys = [key.to_dict() for key in self.keys]
        return {"kind": self.kind, "keys": keys, "design": self.design.name, "rows": self.rows}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> UnitShares:
        keys = tuple(key_from_dict(key) for key in record["keys"])
        return cls(keys, UNIT_DESIGNS[record["design"]], record["rows"])


def _unit_sensitivity(bound: Fraction, query: UnitSums | UnitShares, neighbors: Neighbors) -> L2:
    if neighbors.unit is None or neighbors.rows != query.rows:
        raise _bad("its units have another number of rows than the relation's")
    height = query.height if type(query) is UnitSums else 1
    return L2(bound * (query.rows * height) ** 4)


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "sums of units",
        found,
        "their sensitivity is proven for this layout",
        "ask through dp.mean, dp.proportion, dp.histogram or dp.table",
    )
