"""Sums of bounded per-row terms by cells (counts, moments, histograms, tables), and Gram matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet.errors import WrongColumnKind
from discreet.exact import fraction_text
from discreet.neighbors import Neighbors
from discreet.queries.keys import Key, cell_count, key_from_dict
from discreet.queries.plans import Factor, GramPlan, SumsPlan, Term, term_bounds
from discreet.schema import Category, Column, Encoding
from discreet.sensitivity import L1, L2, gram_sensitivity, sum_sensitivity


@dataclass(frozen=True, slots=True)
class Sum:
    """Σ over the rows of each cell of the product of `term`'s codes; the empty term counts rows.

    `optional` says that a row may fall in no cell, so that a Replace neighbour can also make it vanish.
    """

    keys: tuple[Key, ...]
    term: Term
    optional: bool
    kind: ClassVar[str] = "sum"

    @property
    def size(self) -> int:
        return cell_count(self.keys)

    @property
    def unit(self) -> Fraction:
        """What one integer unit of the statistic is worth."""
        worth = Fraction(1)
        for factor in self.term:
            worth *= factor.encoding.step
        return worth

    @property
    def bounds(self) -> tuple[int, int]:
        """The range of one row's term, in integer units."""
        return term_bounds(self.term)

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        """ℓ₁ and ℓ₂ sensitivity, in integer units: `sum_sensitivity` for this term's range.

        A count of all rows under row-level Replace cannot change; its number is public and is not a query.
        """
        low, high = self.bounds
        return sum_sensitivity(neighbors, low, high, cells=self.size, optional=self.optional)

    def plan(self) -> SumsPlan:
        return SumsPlan(self.keys, (self.term,))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "keys": [key.to_dict() for key in self.keys], "term": [_factor_to_dict(factor) for factor in self.term], "optional": self.optional}


@dataclass(frozen=True, slots=True)
class GramMatrix:
    """Upper triangle (row by row, with the diagonal) of Σ v vᵀ, v the codes of the columns."""

    factors: Term
    kind: ClassVar[str] = "gram"

    @property
    def size(self) -> int:
        return len(self.factors) * (len(self.factors) + 1) // 2

    def sensitivity(self, neighbors: Neighbors) -> L2:
        return gram_sensitivity(neighbors, sum(factor.largest**2 for factor in self.factors))

    def plan(self) -> GramPlan:
        return GramPlan(self.factors)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "factors": [_factor_to_dict(factor) for factor in self.factors]}


Query = Sum | GramMatrix


def number_factor(schema: Mapping[str, Column], name: str, asked: str, bits: int | None = None) -> Factor:
    """The factor of a declared number column, or the error that says what `asked` needs."""
    column = schema[name]
    if isinstance(column, Category):
        raise WrongColumnKind(name, "Category", "Real, Integer or Boolean", asked)
    return Factor(name, column.encoding(bits))


def _factor_to_dict(factor: Factor) -> dict[str, Any]:
    grid = factor.encoding
    return {"column": factor.column, "center": grid.center, "per_unit": grid.per_unit, "low": grid.low, "high": grid.high}


def _factor_from_dict(record: dict[str, Any]) -> Factor:
    return Factor(record["column"], Encoding(record["center"], record["per_unit"], record["low"], record["high"]))


def query_from_dict(record: dict[str, Any]) -> Query:
    if record["kind"] == "gram":
        return GramMatrix(tuple(_factor_from_dict(factor) for factor in record["factors"]))
    return Sum(tuple(key_from_dict(key) for key in record["keys"]), tuple(_factor_from_dict(factor) for factor in record["term"]), record["optional"])


def unit_text(query: Sum) -> str:
    return fraction_text(query.unit)
