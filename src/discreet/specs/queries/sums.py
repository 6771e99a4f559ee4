"""Sums of bounded per-row terms by cells (counts, moments, histograms, tables),
and Gram matrices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import WrongColumnKind
from discreet.neighbors import Neighbors
from discreet.schema import Category, Column, Open
from discreet.sensitivity import L1, L2, LInf, gram_sensitivity, score_sensitivity, sum_sensitivity
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import (
    Factor,
    GramPlan,
    SumsPlan,
    Term,
    factor_from_dict,
    term_bounds,
)


@plain.kept()
@dataclass(frozen=True, slots=True)
class Sum:
    """Σ over the rows of each cell of the product of `term`'s codes; the empty term counts rows.

    `optional` says that a row may fall in no cell,
    so that a Replace neighbour can also make it vanish. `absent` adds a last cell:
    the rows that hold no value in some column of the keys.
    """

    keys: tuple[Key, ...]
    term: Term
    optional: bool
    absent: bool = False
    kind: ClassVar[str] = "sum"
    gives: ClassVar[str] = "vector"

    @property
    def size(self) -> int:
        return cell_count(self.keys) + self.absent

    @property
    def unit(self) -> Fraction:
        """What one integer unit of the statistic is worth."""
        value = Fraction(1)
        for factor in self.term:
            value *= factor.encoding.step
        return value

    @property
    def bounds(self) -> tuple[int, int]:
        """The range of one row's term, in integer units."""
        return term_bounds(self.term)

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2, LInf]:
        """ℓ₁, ℓ₂ and ℓ∞ sensitivity, in integer units:
        `sum_sensitivity` and `score_sensitivity` for this term's range.

        A count of all rows under row-level Replace cannot change;
        its number is public and is not a query.
        """
        low, high = self.bounds
        several = self.size > 1  # then a row can leave one cell for another
        return *sum_sensitivity(
            neighbors, low, high, cells=self.size, optional=self.optional
        ), score_sensitivity(neighbors, low, high, optional=self.optional or several)

    def plan(self) -> SumsPlan:
        return SumsPlan(self.keys, (self.term,), self.absent)

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's answer (shape cells × 1)."""
        return [int(value) for value in sums[:, 0]]

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Sum:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(factor_from_dict(factor) for factor in record["term"]),
            record["optional"],
            record.get("absent", False),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "term": [factor.to_dict() for factor in self.term],
            "optional": self.optional,
            **({"absent": True} if self.absent else {}),
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class GramMatrix:
    """Upper triangle (row by row, with the diagonal) of Σ v vᵀ, v the codes of the columns."""

    factors: Term
    kind: ClassVar[str] = "gram"
    gives: ClassVar[str] = "vector"
    keys: ClassVar[tuple[Key, ...]] = ()
    optional: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return len(self.factors) * (len(self.factors) + 1) // 2

    def sensitivity(self, neighbors: Neighbors) -> L2:
        return gram_sensitivity(neighbors, sum(factor.largest**2 for factor in self.factors))

    def plan(self) -> GramPlan:
        return GramPlan(self.factors)

    def assemble(self, gram: npt.NDArray[Any]) -> list[int]:
        """The upper triangle, row by row."""
        return [
            int(gram[i, j]) for i in range(len(self.factors)) for j in range(i, len(self.factors))
        ]

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> GramMatrix:
        return cls(tuple(factor_from_dict(factor) for factor in record["factors"]))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "factors": [factor.to_dict() for factor in self.factors]}


def number_factor(
    schema: Mapping[str, Column], name: str, asked: str, bits: int | None = None
) -> Factor:
    """The factor of a declared number column, or the error that says what `asked` needs."""
    column = schema[name]
    if isinstance(column, (Category, Open)):
        raise WrongColumnKind(name, type(column).__name__, "Real, Integer or Boolean", asked)
    return Factor(name, column.encoding(bits))
