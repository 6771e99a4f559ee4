"""What an engine is asked to compute: exact integers, and nothing else.

The bit budget is checked here, from public facts, before data is touched: every per-row term fits
in `TERM_BITS` bits, so a block of `BLOCK_ROWS` rows fits in an int64 and blocks are added as Python
integers (or as 128-bit integers in a database). Nothing depends on the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from discreet import plain
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter
from discreet.specs.queries.keys import Key, cell_count

TERM_BITS = 47  # |term| < 2**47, so that 2**16 rows stay below 2**63
BLOCK_ROWS = 1 << 16
# partial sums below 2**52 are exact in float64, in any order, with or without fused multiply-add
FLOAT_BITS = 52


@plain.kept()
@dataclass(frozen=True, slots=True)
class Factor:
    """The code of one number column on a given encoding."""

    column: str
    encoding: Encoding

    @property
    def largest(self) -> int:
        return max(abs(self.encoding.low), abs(self.encoding.high))

    def to_dict(self) -> dict[str, Any]:
        grid = self.encoding
        return {
            "column": self.column,
            "center": grid.center,
            "per_unit": grid.per_unit,
            "low": grid.low,
            "high": grid.high,
        }


def factor_from_dict(record: dict[str, Any]) -> Factor:
    return Factor(
        record["column"],
        Encoding(record["center"], record["per_unit"], record["low"], record["high"]),
    )


Term = tuple[Factor, ...]  # a product of codes; the empty product counts rows


def term_bounds(term: Term) -> tuple[int, int]:
    """The least and greatest value of a product of codes (equal factors are the same number)."""
    if not term:
        return 1, 1
    if len(term) % 2 == 0 and all(factor == term[0] for factor in term):
        ends = (abs(term[0].encoding.low) ** len(term), abs(term[0].encoding.high) ** len(term))
        return (0 if term[0].encoding.low <= 0 <= term[0].encoding.high else min(ends)), max(ends)
    bounds = (term[0].encoding.low, term[0].encoding.high)
    for factor in term[1:]:
        corners = [
            bound * code for bound in bounds for code in (factor.encoding.low, factor.encoding.high)
        ]
        bounds = (min(corners), max(corners))
    return bounds


@dataclass(frozen=True, slots=True)
class SumsPlan:
    """Sums of each term over the rows of each cell:
    an array of integers of shape (cells, terms).

    `absent` adds a last cell: the rows that hold no value in some column of the keys.
    """

    keys: tuple[Key, ...]
    terms: tuple[Term, ...]
    absent: bool = False

    def __post_init__(self) -> None:
        cell_count(self.keys)
        for term in self.terms:
            low, high = term_bounds(term)
            if max(abs(low), abs(high)).bit_length() > TERM_BITS:
                raise _too_wide()

    @property
    def cells(self) -> int:
        return cell_count(self.keys) + self.absent

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read((factor for term in self.terms for factor in term), self.keys)


@dataclass(frozen=True, slots=True)
class GramPlan:
    """The matrix of all pairwise products Σ code_i·code_j:
    an array of integers of shape (columns, columns).
    """

    factors: Term

    def __post_init__(self) -> None:
        if not self.factors or self.product_bits > FLOAT_BITS - 8:
            raise _too_wide()

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read(self.factors, ())

    @property
    def product_bits(self) -> int:
        return 2 * max(factor.largest for factor in self.factors).bit_length()

    @property
    def block_rows(self) -> int:
        """Rows in a block whose float64 products are exact: rows · max|code|² < 2**52."""
        return min(BLOCK_ROWS, 1 << (FLOAT_BITS - self.product_bits))


def _too_wide() -> InvalidParameter:
    return InvalidParameter(
        "a sum of products",
        "the product of the columns' codes has too many bits",
        "sums must be exact integers for every data set",
        "use 16-bit columns in products",
    )


def columns_read(factors: Iterable[Factor], keys: Iterable[Key]) -> tuple[str, ...]:
    """The columns that factors and keys read, in a fixed order."""
    return tuple(sorted({factor.column for factor in factors} | {key.column for key in keys}))
