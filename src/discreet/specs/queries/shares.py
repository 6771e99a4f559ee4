"""How many rows hold a value, and how many of them have a level, in one joint statistic.

With c = 1 for a row that has the level, −1 for a row with another value, and nothing for a row that
holds none, the numbers are those of `moments` without a spread: A·(k + r) and B·(k − r), k rows
with the level and r others. Where a row may leave, the number of rows that hold a value is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import L1, L2
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.moments import DESIGNS, MomentDesign
from discreet.specs.queries.plans import SumsPlan


@plain.kept()
@dataclass(frozen=True, slots=True)
class ShareCounts:
    """(A·(k + r), B·(k − r)) of the rows in the first and the second of two cells; a row may be in
    neither.

    Theorem.  The p-th power of the ℓ_p sensitivity is at most that of `MomentDesign` for one cell
              that a row may leave.
    Proof.    A row adds (A, ±B), which is ψ(±1) of the design without its last coordinate, 0 there.
    Checked.  tests/claims/test_missing_cells.py::test_shares_move_no_further_than_claimed
    """

    keys: tuple[Key, ...]
    design: MomentDesign
    kind: ClassVar[str] = "share counts"
    gives: ClassVar[str] = "vector"
    optional: ClassVar[bool] = True
    size: ClassVar[int] = 2

    def __post_init__(self) -> None:
        proven = DESIGNS.get(self.design.name) == self.design
        if not proven or not self.design.count or self.design.degree != 2:
            raise _bad("its weights are none of those whose sensitivity is proven")
        if cell_count(self.keys) != 2:
            raise _bad("it needs two cells")

    def sensitivity(self, neighbors: Neighbors) -> L1 | L2:
        """In the design's own norm, for all rows of one unit."""
        bound = self.design.bound(neighbors, cells=1, optional=True)
        if self.design.norm == 1:
            return L1(bound * neighbors.rows)
        return L2(bound * neighbors.rows**2)

    def plan(self) -> SumsPlan:
        return SumsPlan(self.keys, ((),))

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's counts of both cells."""
        level, other = (int(count) for count in sums[:, 0])
        return [self.design.count * (level + other), self.design.weights[0] * (level - other)]

    def unit_values(self) -> tuple[float, float]:
        """What one integer unit of each coordinate is worth, in rows."""
        return 1.0 / self.design.count, 1.0 / self.design.weights[0]

    def to_dict(self) -> dict[str, Any]:
        keys = [key.to_dict() for key in self.keys]
        return {"kind": self.kind, "keys": keys, "design": self.design.name}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> ShareCounts:
        keys = tuple(key_from_dict(key) for key in record["keys"])
        return cls(keys, DESIGNS[record["design"]])


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "ShareCounts",
        found,
        "its sensitivity is proven for this layout",
        "ask through dp.proportion",
    )
