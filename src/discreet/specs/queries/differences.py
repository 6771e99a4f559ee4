"""Moments of the difference of two columns of the same row: what a paired test reads.

Both columns are encoded on one grid with codes x, y ∈ [−h, h]. Their difference is a whole number
D = x − y ∈ [−2h, 2h], so c = D/2h ∈ [−1, 1] is on a grid like any column's, and everything that is
proven for the moments of a column holds for it (specs/queries/moments.py). ΣD and ΣD² come from
exact sums of x, y, x², xy and y².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import Sensitivity
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.moments import DESIGNS, MomentDesign, Moments
from discreet.specs.queries.plans import Factor, SumsPlan, factor_from_dict


@plain.kept()
@dataclass(frozen=True, slots=True)
class DifferenceMoments:
    """Sums of ψ(c), c the difference of two columns in units of its range,
    over the rows of one cell (`keys` are filters).

    Theorem.  The sensitivity is that of `Moments` with the same design for a column of codes
              D ∈ [−2h, 2h].
    Proof.    A row's contribution is ψ(D/2h), a function of the row alone with |D/2h| ≤ 1;
              `MomentDesign`'s theorem is about every such c.
    Checked.  tests/claims/test_differences.py
    """

    keys: tuple[Key, ...]
    first: Factor
    second: Factor
    design: MomentDesign
    optional: bool
    kind: ClassVar[str] = "difference moments"
    gives: ClassVar[str] = "vector"
    cells: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (
            type(self.design) is not MomentDesign
            or not DESIGNS.hold(self.design)
            or self.design.degree != 2
        ):
            raise _bad("its design is none of the proven ones of degree 2")
        if (
            self.first.encoding != self.second.encoding
            or self.first.encoding.low != -self.first.encoding.high
            or self.first.column == self.second.column
        ):
            raise _bad("it needs two columns on one symmetric grid")
        if cell_count(self.keys) != 1:
            raise _bad("it reads the rows of one cell")

    @property
    def factor(self) -> Factor:
        """The difference as if it were a column: codes −2h … 2h about 0."""
        grid = self.first.encoding
        return Factor(
            f"{self.first.column} − {self.second.column}",
            Encoding(0.0, grid.per_unit, 2 * grid.low, 2 * grid.high),
        )

    @property
    def moments(self) -> Moments:
        """The same statistic of a column that holds the difference."""
        return Moments(self.keys, self.factor, self.design, self.optional)

    @property
    def size(self) -> int:
        return self.moments.size

    def sensitivity(self, neighbors: Neighbors) -> Sensitivity:
        return self.moments.sensitivity(neighbors)

    def plan(self) -> SumsPlan:
        x, y = self.first, self.second
        return SumsPlan(self.keys, ((), (x,), (y,), (x, x), (x, y), (y, y)))

    def assemble(self, sums: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's sums of 1, x, y, x², xy, y²."""
        n, x, y, xx, xy, yy = (int(value) for value in sums[0])
        powers = np.empty((1, 3), dtype=object)
        powers[0, :] = [n, x - y, xx - 2 * xy + yy]
        return self.moments.assemble(powers)

    def unit_values(self) -> tuple[float, ...]:
        """What one integer unit of each coordinate is worth, as a sum of c-features."""
        return self.moments.unit_values()

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "design": self.design.name,
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> DifferenceMoments:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            factor_from_dict(record["first"]),
            factor_from_dict(record["second"]),
            DESIGNS[record["design"]],
            record["optional"],
        )


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "DifferenceMoments",
        found,
        "its sensitivity is proven for this layout",
        "ask through dp.paired_test",
    )
