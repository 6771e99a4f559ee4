"""How far one protected unit can move a statistic, exactly.

A `Sensitivity` is an ℓ₁ value or the square of an ℓ₂ value, so that √2 never has to be rounded.
The rules at the bottom are the only place where a neighbour relation becomes a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, sqrt_up
from discreet.neighbors import Neighbors, Replace


@dataclass(frozen=True, slots=True)
class L1:
    """ℓ₁ sensitivity, in integer units of the statistic."""

    value: Fraction

    def __post_init__(self) -> None:
        _positive(self.value)

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "l1", "value": fraction_text(self.value)}


@dataclass(frozen=True, slots=True)
class L2:
    """ℓ₂ sensitivity, kept as its exact square, in squared integer units of the statistic."""

    squared: Fraction

    def __post_init__(self) -> None:
        _positive(self.squared)

    @property
    def value(self) -> Fraction:
        """The sensitivity itself, rounded up."""
        return sqrt_up(self.squared)

    def to_dict(self) -> dict[str, Any]:
        return {"norm": "l2", "squared": fraction_text(self.squared)}


Sensitivity = L1 | L2


def sensitivity_from_dict(record: dict[str, Any]) -> Sensitivity:
    return L1(Fraction(record["value"])) if record["norm"] == "l1" else L2(Fraction(record["squared"]))


def _positive(value: Fraction) -> None:
    if not isinstance(value, Fraction) or value <= 0:
        raise InvalidParameter("a sensitivity", "it is not a positive Fraction", "noise is proportional to it", "derive it from the schema")


def sum_sensitivity(neighbors: Neighbors, low: int, high: int, *, cells: int, optional: bool) -> tuple[L1, L2]:
    """Sensitivity of sums, by disjoint cells, of per-row terms that lie in [low, high].

    `cells` is the number of cells; `optional` says that a row may fall in no cell (a filter, an unseen level).

    Theorem.  Let M = max(|low|, |high|), W = max(high, 0) − min(low, 0), k = the rows of one unit. One row
              exchanged moves the vector of cell sums by at most c₁ in ℓ₁ and c₂ in ℓ₂, with
              (c₁, c₂) = (high−low, high−low)      row-level Replace, one cell, every row counted
                         (W, W)                    Replace, one cell, a row may count or not
                         (max(2M, W), max(√2 M, W)) Replace, several cells
                         (M, M)                    AddRemove;
              one unit moves it by at most k·c₁ and k·c₂.
    Proof.    One row adds a term in one cell. AddRemove: one such vector, norm ≤ M. Replace, same cell: the
              difference of two terms, each in [low, high], or in {0} ∪ [low, high] ⊂ an interval of length W
              where a row may be absent; different cells: ‖(a, −b)‖ with |a|, |b| ≤ M. Units: pair the rows
              before and after arbitrarily, pad with absent rows (so W), and sum k row changes.
    Checked.  tests/claims/test_sensitivity.py::test_sum_sensitivity_is_never_exceeded_and_is_attained
    """
    largest = max(abs(low), abs(high))
    width = max(high, 0) - min(low, 0)
    if isinstance(neighbors, Replace):
        if cells == 1:
            every_row_counts = not optional and neighbors.unit is None
            one = high - low if every_row_counts else width
            l1, l2_squared = one, one**2
        else:
            l1, l2_squared = max(2 * largest, width), max(2 * largest**2, width**2)
    else:
        l1, l2_squared = largest, largest**2
    k = neighbors.rows
    return L1(Fraction(k * l1)), L2(Fraction(k * k * l2_squared))


def gram_sensitivity(neighbors: Neighbors, norm_squared: int) -> L2:
    """ℓ₂ sensitivity of the upper triangle of Σ v vᵀ where ‖v‖² ≤ norm_squared for every row (math.md G5).

    Theorem.  k·B under AddRemove, k·√2·B under Replace, B = norm_squared, k = the rows of one unit.
    Proof.    ‖upper(v vᵀ)‖₂ ≤ ‖v vᵀ‖_F = ‖v‖² ≤ B; ‖v vᵀ − w wᵀ‖_F² = ‖v‖⁴ + ‖w‖⁴ − 2(v·w)² ≤ 2B². Sum over k rows.
    Checked.  tests/claims/test_sensitivity.py::test_gram_sensitivity_is_never_exceeded
    """
    factor = 2 if isinstance(neighbors, Replace) else 1
    return L2(Fraction(factor * (neighbors.rows * norm_squared) ** 2))
