"""The values of one column on its grid, counted: what order statistics read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import Rows, histogram_sensitivity
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, columns_read, factor_from_dict
from discreet.specs.statistics import Histogram


@dataclass(frozen=True, slots=True)
class HistogramPlan:
    """Counts of a factor's codes over the rows of one cell (`keys` are filters):
    a Histogram of (code − low) / stride.
    """

    keys: tuple[Key, ...]
    factor: Factor

    def __post_init__(self) -> None:
        if cell_count(self.keys) != 1:
            raise InvalidParameter(
                "where=",
                "it makes more than one cell",
                "the values of one set of rows are counted",
                "filter with levels and ranges",
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read((self.factor,), self.keys)

    @property
    def stride(self) -> int:
        """Codes of whole-number columns are two apart, all others one."""
        return 2 if self.factor.encoding.is_exact else 1

    @property
    def cells(self) -> int:
        return (self.factor.encoding.high - self.factor.encoding.low) // self.stride + 1


@plain.kept()
@dataclass(frozen=True, slots=True)
class GridCounts:
    """How many rows hold each value of a column's grid.

    `optional` says that a row may fall in no cell,
    so that a Replace neighbour can also make it vanish.
    """

    keys: tuple[Key, ...]
    factor: Factor
    optional: bool
    kind: ClassVar[str] = "grid counts"
    gives: ClassVar[str] = "histogram"

    @property
    def size(self) -> int:
        return self.plan().cells

    def value(self, place: int | float) -> float:
        """The value of a cell of the grid; between cells for a number between two."""
        grid, plan = self.factor.encoding, self.plan()
        return grid.center + (grid.low + plan.stride * place) / grid.per_unit

    @property
    def step(self) -> float:
        """The distance of neighbouring grid values."""
        return self.plan().stride / self.factor.encoding.per_unit

    def sensitivity(self, neighbors: Neighbors) -> Rows:
        return histogram_sensitivity(neighbors, optional=self.optional)

    def plan(self) -> HistogramPlan:
        return HistogramPlan(self.keys, self.factor)

    def assemble(self, histogram: Histogram) -> Histogram:
        return histogram

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "factor": self.factor.to_dict(),
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> GridCounts:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            factor_from_dict(record["factor"]),
            record["optional"],
        )
