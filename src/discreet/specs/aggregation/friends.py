"""Rows as points of a whole-number grid: those that most others lie near, and sums of points that
are clipped to a ball (docs/theory/aggregation.md).

Both hold for one of a public number of rows replaced. A row without a value in some column of
the keys is nobody's friend and adds nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter, NoTheorem
from discreet.neighbors import Neighbors
from discreet.sensitivity import L2, Friendly
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import (
    FLOAT_BITS,
    Factor,
    Term,
    columns_read,
    factor_from_dict,
)

MOST_POINTS = 1 << 16  # distances of all pairs are looked at
MOST_CENTRES = 64
FINE_BITS = 10  # clipped sums are whole numbers of 2**-10 of a code


@dataclass(frozen=True, slots=True)
class FriendsPlan:
    """Who is whose friend among the rows, and the weighted sum of those with most friends."""

    keys: tuple[Key, ...]
    factors: Term
    radius: int
    centres: int

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read(self.factors, self.keys)


@dataclass(frozen=True, slots=True)
class ClippedPlan:
    """Sums of rows less a public centre, clipped to a ball about it, and of their squares."""

    keys: tuple[Key, ...]
    factors: Term
    centre: tuple[int, ...]
    radius: int

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read(self.factors, self.keys)


@dataclass(frozen=True, slots=True)
class FriendlyCore:
    """What `FriendlyMean` reads: Σv and Σv·x over the rows, v their whole weights, and
    W = Σv/(n−1), in 2**-WEIGHT_BITS, rounded down.
    """

    weight: int
    total: int
    sums: tuple[int, ...]


@plain.kept()
@dataclass(frozen=True, slots=True)
class Friends:
    """The rows that more than half of all rows are friends of, weighted (reference.md K3, K5).

    Two rows are friends if they lie at most `radius` codes apart. With `centres` k > 1 a row is k
    points, its factors in k groups: two rows are friends if in each of them all points lie more
    than 6·radius apart, and each point of one has a point of the other within `radius`.

    With c friends among n rows a row has the whole weight v = clip(2c − n − 1, 0, n − 1),
    w = v/(n−1), W = Σw.

    Theorem.  If one row is replaced, Σ|Δw| ≤ 3, and the weighted means of the points, k labelled
              alike, lie at most 8r√k/max(W, W′) apart where W, W′ > 0.
    Proof.    docs/theory/aggregation.md, Theorems 2 to 4. All is computed in whole numbers.
    Checked.  tests/claims/test_friendly.py
    """

    keys: tuple[Key, ...]
    factors: tuple[Factor, ...]
    radius: int
    centres: int = 1
    kind: ClassVar[str] = "friends"
    gives: ClassVar[str] = "friends"

    def __post_init__(self) -> None:
        groups = self.centres
        require_points(self.keys, self.factors, self.radius)
        if type(groups) is not int or not 1 <= groups <= MOST_CENTRES:
            raise _bad("it has no whole number of centres, or too many")
        if len(self.factors) % groups or any(
            factor.encoding != self.factors[place % (len(self.factors) // groups)].encoding
            for place, factor in enumerate(self.factors)
        ):
            raise _bad("its centres are not points of one grid")

    @property
    def optional(self) -> bool:
        return bool(self.keys)

    @property
    def size(self) -> int:
        return len(self.factors)

    def sensitivity(self, neighbors: Neighbors) -> Friendly:
        require_replaced_row(neighbors)
        return Friendly(Fraction(self.centres * self.radius**2), self.size, self.centres)

    def plan(self) -> FriendsPlan:
        return FriendsPlan(self.keys, self.factors, self.radius, self.centres)

    def assemble(self, core: FriendlyCore) -> FriendlyCore:
        return core

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factors": [factor.to_dict() for factor in self.factors],
            "radius": self.radius,
            "centres": self.centres,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Friends:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(factor_from_dict(factor) for factor in record["factors"]),
            record["radius"],
            record["centres"],
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class ClippedSum:
    """(Σy, Σy²/2ρ), and 3ρ/2 times the number of rows where they may be `optional`: y is a row's
    point less `centre`, shortened towards 0 to a length of at most ρ = `radius` codes; in units of
    2**-FINE_BITS, each row's part rounded down.

    Theorem.  If one row is replaced it moves by at most 2ρ·2**FINE_BITS + √d in ℓ₂, d the number of
              columns: no more than the sums of y alone could, but for the rounding.
    Proof.    Let u = y − y′, s = y + y′ and U = ‖u‖² ≤ 4ρ². As ‖u‖² + ‖s‖² ≤ 4ρ² and Σu²s² is
              at most ‖u‖²‖s‖², U + Σu²s²/4ρ² ≤ U + U(4ρ² − U)/4ρ², which grows in U up to 4ρ².
              Rounding down moves each square by less than 1. A row that comes or goes moves it by
              at most ρ·√(1 + 1/4 + 9/4) < 2ρ.
    Checked.  tests/claims/test_friendly.py::test_clipped_sums_move_no_further
    """

    keys: tuple[Key, ...]
    factors: tuple[Factor, ...]
    centre: tuple[int, ...]
    radius: int
    optional: bool
    kind: ClassVar[str] = "clipped sum"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        require_points(self.keys, self.factors, self.radius)
        if len(self.centre) != len(self.factors) or not all(
            type(place) is int and factor.encoding.low <= place <= factor.encoding.high
            for place, factor in zip(self.centre, self.factors, strict=False)
        ):
            raise _bad("its centre is no point of its grid")
        if bool(self.keys) != self.optional:
            raise _bad("it does not say whether a row may be left out")

    @property
    def size(self) -> int:
        return 2 * len(self.factors) + self.optional

    @property
    def count_weight(self) -> int:
        """What one row adds to the count, if it is released."""
        return (3 * self.radius << FINE_BITS) // 2

    def sensitivity(self, neighbors: Neighbors) -> L2:
        require_replaced_row(neighbors)
        rounding = math.isqrt(len(self.factors) - 1) + 1
        return L2(Fraction(((2 * self.radius << FINE_BITS) + rounding) ** 2))

    def plan(self) -> ClippedPlan:
        return ClippedPlan(self.keys, self.factors, self.centre, self.radius)

    def assemble(self, sums: list[int]) -> list[int]:
        """Of sums, squares and the number of rows: the number is left out where it is public."""
        count = [self.count_weight * sums[-1]] if self.optional else []
        return [*sums[:-1], *count]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factors": [factor.to_dict() for factor in self.factors],
            "centre": list(self.centre),
            "radius": self.radius,
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> ClippedSum:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(factor_from_dict(factor) for factor in record["factors"]),
            tuple(record["centre"]),
            record["radius"],
            record["optional"],
        )


def require_points(keys: tuple[Key, ...], factors: tuple[Factor, ...], radius: int) -> None:
    """Refuses what is no exact geometry: 4·Σ(largest code)² must stay below 2**52, so that every
    squared distance, and every partial sum on the way to it, is a whole number that float64 holds.
    """
    if cell_count(keys) != 1 or not factors:
        raise _bad("it is about no column, or about more than one cell")
    if len({factor.encoding.per_unit for factor in factors}) != 1:
        raise _bad("its columns have steps of different lengths")
    if 4 * sum(factor.largest**2 for factor in factors) >= 1 << FLOAT_BITS:
        raise _bad("its columns have so many codes that distances are not exact")
    if type(radius) is not int or not 1 <= radius < 1 << (FLOAT_BITS // 2):
        raise _bad("its radius is no whole number of codes that float64 can square")


def require_replaced_row(neighbors: Neighbors) -> None:
    """Refuses relations under which the number of rows is private."""
    if not neighbors.row_count_is_public:
        raise NoTheorem(
            "a friendly mean",
            f"the relation is {neighbors}",
            "who has friends among more than half of all rows is told from a public number of rows",
            "use dp.Replace() of rows, or parts of the data: dp.subsample, dp.friendly_clusters",
        )


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "points on a grid",
        found,
        "distances must be exact whole numbers for every data set",
        "build it with dp.friendly_mean or dp.subsample",
    )
