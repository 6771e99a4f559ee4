"""What the cells of columns hold: nothing, something that cannot be read, or a number out of range.

missing      None, NaN, a null, blank text
unreadable   anything else that has no value by the rules of `schema.py`: text that is no number,
             a level that was not declared, a value of another type
outside      a number beyond the declared range, which counts as the nearest bound

In a column of a type that has no reading for its declaration every cell is unreadable, a null too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import L1, L2
from discreet.specs.queries.keys import Key

STATES = ("missing", "unreadable", "outside")
MOST_COLUMNS = 1000


@dataclass(frozen=True, slots=True)
class StatesPlan:
    """How many rows there are, and how many cells of each column are in each state: integers, the
    rows first.
    """

    columns: tuple[str, ...]


@plain.kept()
@dataclass(frozen=True, slots=True)
class CellStates:
    """The rows (where `count` asks for their number), then the cells of each column in each state.

    Theorem.  With m columns, a row moves the ℓ₁ norm, and the square of the ℓ₂ norm, by at most
                  m + count                AddRemove
                  2m                       row-level Replace
                  max(m + count, 2m)       Replace by units,
              and the k rows of a unit by k times, and k² times, as much.
    Proof.    A cell is in one state or in none, so that a row adds at most 1 for each column. It
              comes or goes as a whole, or m cells each leave one state for another: 2 a column, of
              squares 1 + 1; the number of rows then stays.
    Checked.  tests/claims/test_cell_states.py
    """

    names: tuple[str, ...]
    count: bool
    kind: ClassVar[str] = "cell states"
    gives: ClassVar[str] = "vector"
    keys: ClassVar[tuple[Key, ...]] = ()
    optional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= MOST_COLUMNS or len(set(self.names)) != len(self.names):
            raise InvalidParameter(
                "columns",
                "none, too many, or one twice",
                f"each column has three noisy counts, and at most {MOST_COLUMNS} are asked at once",
                "name each column once",
            )

    @property
    def size(self) -> int:
        return self.count + len(STATES) * len(self.names)

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        columns, k = len(self.names), neighbors.rows
        row = columns + self.count
        if isinstance(neighbors, Replace):
            row = 2 * columns if neighbors.unit is None else max(row, 2 * columns)
        return L1(Fraction(row * k)), L2(Fraction(row * k**2))

    def plan(self) -> StatesPlan:
        return StatesPlan(self.names)

    def assemble(self, counts: npt.NDArray[Any]) -> list[int]:
        """The integer statistic from the engine's counts."""
        return [int(value) for value in counts[0 if self.count else 1 :]]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names), "count": self.count}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CellStates:
        return cls(tuple(record["names"]), record["count"])
