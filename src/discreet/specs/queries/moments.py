"""Counts, sums and higher moments of one column in one joint statistic,
so that most of them come free.

With c = code/h ∈ [−1, 1] (h = the largest code), a row contributes the vector ψ(c) to its cell:

    order 2   ψ = (A,  B·c,  C·(1−c²))                        count, mean, spread
    order 4   ψ = (A,  B·c,  C·c²,  G·c(1−c²),  F·c²(1−c²))   variance and its standard error

The features that vanish at |c| = 1, where c itself is extreme, do not raise the sensitivity: under
Replace a count and a second moment ride along with a mean at no cost. Weights are integers and
everything is multiplied by h² or h⁴, so the statistic is an exact integer vector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import L1, L2, Sensitivity
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, SumsPlan, Term, factor_from_dict


@plain.kept()
@dataclass(frozen=True, slots=True)
class MomentDesign:
    """Weights of ψ and its proven bound: `add` ≥ sup ‖ψ(c)‖ᵖ and `same` ≥ sup ‖ψ(c) − ψ(c′)‖ᵖ,
    p = 1 or 2.

    Theorem.  With p = `norm`: the p-th power of the ℓ_p sensitivity of the sums of ψ by disjoint
              cells is at most kᵖ times  add   AddRemove
                        same                row-level Replace, one cell, every row counted
                        max(add, same)      Replace, one cell, a row may be absent
                        max(2·add, same)    Replace, several cells,
              where k is the number of rows of one unit.
    Proof.    A row changes by ψ(c), by ψ(c) − ψ(c′) in one cell, or by ψ(c) in one cell and −ψ(c′)
              in another (the p-th powers add). A unit's k row changes add up by the triangle
              inequality. Bound of the order-2 designs, u = c²: ‖ψ‖² = A² + B²u + C²(1−u)² is convex
              in u, so its maximum is A² + max(B², C²). ‖ψ(c)−ψ(c′)‖² = d²(B² + C²s²), d = c−c′,
              s = c+c′, |s| ≤ 2−|d|; it is ≤ 4B² iff C²/B² ≤ (2+d)/(d²(2−d)) for 0<d<2, whose
              minimum, at d = √5−1, is 2.77 > (8/5)². ℓ₁: |c| + C(1−c²) and d(1 + C·s) are greatest
              at |c| = 1 and d = 2 when 2C ≤ B. Order 4: docs/theory/moments.md (checked with
              interval arithmetic on the whole square).
    Checked.  tests/claims/test_moments.py
    """

    name: str
    norm: int
    count: int
    weights: tuple[int, ...]
    add: Fraction
    same: Fraction

    @property
    def degree(self) -> int:
        return 2 if len(self.weights) == 2 else 4

    @property
    def numbers(self) -> tuple[int | tuple[int, ...], ...]:
        """All its numbers, as values that nobody can change."""
        bounds = (*self.add.as_integer_ratio(), *self.same.as_integer_ratio())
        return (self.norm, self.count, self.weights, *bounds)

    def bound(self, neighbors: Neighbors, *, cells: int, optional: bool) -> Fraction:
        """The p-th power of the sensitivity of one row, for c ∈ [−1, 1]."""
        if not isinstance(neighbors, Replace):
            return self.add
        if cells > 1:
            return max(2 * self.add, self.same)
        return max(self.add, self.same) if optional or neighbors.unit is not None else self.same


def _design(
    name: str,
    norm: int,
    count: int,
    weights: tuple[int, ...],
    add: Fraction | int,
    same: Fraction | int,
) -> tuple[str, MomentDesign]:
    return name, MomentDesign(name, norm, count, weights, Fraction(add), Fraction(same))


class Designs(Mapping[str, MomentDesign]):
    """The proven designs by name; what is read is a copy, so that nobody can change them."""

    __slots__ = ("_designs", "_proven")

    def __init__(self, designs: Iterable[tuple[str, MomentDesign]]) -> None:
        self._designs = dict(designs)
        self._proven = {name: one.numbers for name, one in self._designs.items()}

    def __getitem__(self, name: str) -> MomentDesign:
        return plain.twin(self._designs[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._designs)

    def __len__(self) -> int:
        return len(self._designs)

    def hold(self, design: MomentDesign) -> bool:
        """Whether a design is one of the proven ones, number for number."""
        return self._proven.get(design.name) == design.numbers


DESIGNS = Designs(
    [
        # mean, the number of rows public: (B, C) = (5, 8) and (2, 1)
        _design("mean-public-l2", 2, 0, (5, 8), 64, 100),
        _design("mean-public-l1", 1, 0, (2, 1), 2, 4),
        # mean, count private. Replace: the count is free. AddRemove:
        # it costs a quarter of the mean's share.
        _design("mean-replace-l2", 2, 1, (1, 1), 2, 4),
        _design("mean-replace-l1", 1, 2, (2, 1), 4, 4),
        # one cell that a row may leave: the count weighs as much as is free, A² + B² ≤ 4B²
        _design("mean-optional-l2", 2, 19, (11, 11), 482, 484),
        _design("mean-cells-l1", 1, 4, (10, 5), 14, 20),
        _design("mean-add-l2", 2, 1, (2, 2), 5, 16),
        # totals, whose count coordinate weighs as much as the mean's
        _design("total-l2", 2, 1, (1, 1), 2, 4),
        _design("total-l1", 1, 2, (2, 1), 4, 4),
        # variance
        _design("variance-public-l2", 2, 0, (1, 2, 2, 4), 5, Fraction(142, 25)),
        _design("variance-public-l1", 1, 0, (1, 4, 1, 4), Fraction(251, 50), Fraction(113, 20)),
        _design("variance-l2", 2, 1, (1, 2, 2, 4), 6, Fraction(142, 25)),
        _design("variance-l1", 1, 1, (1, 4, 1, 4), Fraction(301, 50), Fraction(113, 20)),
        # one cell that a row may leave: a count that costs nothing beside two values' exchange
        _design("variance-optional-l2", 2, 4, (5, 10, 10, 20), 141, 142),
        _design("variance-optional-l1", 1, 3, (5, 20, 5, 20), Fraction(281, 10), Fraction(113, 4)),
    ]
)


def mean_design(neighbors: Neighbors, *, cells: int, optional: bool, norm: int) -> MomentDesign:
    """The design for means under a relation:
    the least noise on c that still gives count and spread.
    """
    if neighbors.row_count_is_public and cells == 1 and not optional:
        return DESIGNS[f"mean-public-l{norm}"]
    if norm == 1:
        return DESIGNS[
            "mean-replace-l1" if isinstance(neighbors, Replace) and cells == 1 else "mean-cells-l1"
        ]
    if not isinstance(neighbors, Replace):
        return DESIGNS["mean-add-l2"]
    return DESIGNS["mean-optional-l2" if cells == 1 else "mean-replace-l2"]


def total_design(neighbors: Neighbors, *, optional: bool, norm: int) -> MomentDesign:
    """The design for totals (Σ x = center·count + Σ c): count and mean coordinates weigh alike."""
    if neighbors.row_count_is_public and not optional:
        return DESIGNS[f"mean-public-l{norm}"]
    if isinstance(neighbors, Replace) and norm == 2:
        return DESIGNS["mean-optional-l2"]
    return DESIGNS[f"total-l{norm}"]


def variance_design(
    neighbors: Neighbors, *, cells: int = 1, optional: bool, norm: int
) -> MomentDesign:
    """The design for variances and their standard errors."""
    if neighbors.row_count_is_public and cells == 1 and not optional:
        return DESIGNS[f"variance-public-l{norm}"]
    one = "-optional" if isinstance(neighbors, Replace) and cells == 1 else ""
    return DESIGNS[f"variance{one}-l{norm}"]


@plain.kept()
@dataclass(frozen=True, slots=True)
class Moments:
    """Sums of ψ(c) by cells, as integers: for every cell its coordinates,
    one coordinate after the other.
    """

    keys: tuple[Key, ...]
    factor: Factor
    design: MomentDesign
    optional: bool
    kind: ClassVar[str] = "moments"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if type(self.design) is not MomentDesign or not DESIGNS.hold(self.design):
            raise InvalidParameter(
                "Moments(design=)",
                "it is none of the designs whose reach is proven",
                "noise is proportional to the reach",
                "take one from discreet.specs.queries.moments.DESIGNS",
            )

    @property
    def cells(self) -> int:
        return cell_count(self.keys)

    @property
    def height(self) -> int:
        """h, the largest code."""
        return max(-self.factor.encoding.low, self.factor.encoding.high)

    @property
    def size(self) -> int:
        return self.cells * (len(self.design.weights) + (1 if self.design.count else 0))

    def sensitivity(self, neighbors: Neighbors) -> Sensitivity:
        """In the design's own norm: `MomentDesign.bound` times h^degree, for a unit's rows."""
        bound = self.design.bound(neighbors, cells=self.cells, optional=self.optional)
        scale = neighbors.rows * self.height**self.design.degree
        return L1(bound * scale) if self.design.norm == 1 else L2(bound * scale**2)

    def plan(self) -> SumsPlan:
        powers: list[Term] = [(self.factor,) * power for power in range(self.design.degree + 1)]
        return SumsPlan(self.keys, tuple(powers))

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's power sums (shape cells × powers)."""
        h = self.height
        columns = [
            [int(value) for value in sums[:, power]] for power in range(self.design.degree + 1)
        ]
        rows: list[list[int]] = (
            [[self.design.count * h**self.design.degree * n for n in columns[0]]]
            if self.design.count
            else []
        )
        if self.design.degree == 2:
            b, c = self.design.weights
            rows.append([b * h * s for s in columns[1]])
            rows.append([c * (h * h * n - q) for n, q in zip(columns[0], columns[2], strict=True)])
        else:
            b, c, g, f = self.design.weights
            rows.append([b * h**3 * s for s in columns[1]])
            rows.append([c * h**2 * q for q in columns[2]])
            rows.append(
                [g * (h**3 * s - h * t) for s, t in zip(columns[1], columns[3], strict=True)]
            )
            rows.append([f * (h**2 * q - u) for q, u in zip(columns[2], columns[4], strict=True)])
        return [value for row in rows for value in row]

    def unit_values(self) -> tuple[float, ...]:
        """What one integer unit of each coordinate is worth, as a sum of c-features:
        1/(weight·h^degree).
        """
        weights = ((self.design.count,) if self.design.count else ()) + self.design.weights
        return tuple(1.0 / (weight * self.height**self.design.degree) for weight in weights)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factor": self.factor.to_dict(),
            "design": self.design.name,
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Moments:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            factor_from_dict(record["factor"]),
            DESIGNS[record["design"]],
            record["optional"],
        )
