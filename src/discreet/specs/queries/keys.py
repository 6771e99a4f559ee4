"""Which cell a row falls in: declared levels, declared bins, or the single cell of a filter.

A key maps a row to a cell 0 … size−1 or to no cell (−1), from that row's own values alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.schema import Boolean, Category, Integer, Open, Schema

LARGEST_CELLS = 1 << 22
LARGEST_BINS = 1 << 12


@plain.kept()
@dataclass(frozen=True, slots=True)
class Levels:
    """One cell for each of the first `size` codes of a Category (or Boolean: False, True)
    column.
    """

    column: str
    size: int
    kind: ClassVar[str] = "levels"

    def __post_init__(self) -> None:
        if type(self.size) is not int or not 1 <= self.size <= LARGEST_CELLS:
            raise InvalidParameter(
                "levels",
                f"their number is none from 1 to {LARGEST_CELLS}",
                "each level is one noisy count",
                "take it from a declared column",
            )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "size": self.size}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Bins:
    """Cells [edge_j, edge_{j+1}) of a number column's clamped value, the last one closed; outside:
    no cell.
    """

    column: str
    edges: tuple[float, ...]
    kind: ClassVar[str] = "bins"

    def __post_init__(self) -> None:
        edges = self.edges
        if not 2 <= len(edges) <= LARGEST_BINS + 1 or not all(
            math.isfinite(edge) for edge in edges
        ):
            raise InvalidParameter(
                "bins",
                f"there must be 2 to {LARGEST_BINS + 1} finite edges",
                "each bin is one noisy count",
                "pass increasing edges, or a number of bins",
            )
        if any(left >= right for left, right in itertools.pairwise(edges)):
            raise InvalidParameter(
                "bins",
                "the edges do not increase",
                "a value must fall in one bin",
                "sort the edges and leave out repeats",
            )

    @property
    def size(self) -> int:
        return len(self.edges) - 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "edges": list(self.edges)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Subset:
    """One cell: the rows whose Category (or Boolean) code is among `codes`."""

    column: str
    codes: tuple[int, ...]
    kind: ClassVar[str] = "subset"
    size: ClassVar[int] = 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "codes": list(self.codes)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Split:
    """Two cells: the rows whose Category (or Boolean) code is among `codes`, then all other rows;
    none is left out.
    """

    column: str
    codes: tuple[int, ...]
    kind: ClassVar[str] = "split"
    size: ClassVar[int] = 2

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "codes": list(self.codes)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Between:
    """One cell: the rows whose clamped number lies in [low, high]."""

    column: str
    low: float
    high: float
    kind: ClassVar[str] = "between"
    size: ClassVar[int] = 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "low": self.low, "high": self.high}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Held:
    """One cell: the rows whose cell of a column holds a value (`schema.py` says which do)."""

    column: str
    kind: ClassVar[str] = "held"
    size: ClassVar[int] = 1

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Cycle:
    """Cell ⌊(v + shift)/step⌋ mod `size` of a whole-number column's clamped value v: the weekday of
    a day, the hour of a moment. Every row that holds a value has one.
    """

    column: str
    size: int
    step: int = 1
    shift: int = 0
    kind: ClassVar[str] = "cycle"

    def __post_init__(self) -> None:
        if not (1 <= self.size <= LARGEST_BINS and 1 <= self.step < 1 << 31) or not (
            0 <= self.shift < 1 << 31
        ):
            raise InvalidParameter(
                "a cycle",
                "its size, step and shift are no ordinary whole numbers",
                "each value must fall in one cell, exactly",
                "take it from a Date or Datetime column: by={'visit': 'weekday'}",
            )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "column": self.column,
            "size": self.size,
            "step": self.step,
            "shift": self.shift,
        }


Key = Levels | Bins | Subset | Split | Between | Cycle | Held


def may_leave_out(key: Key, schema: Schema) -> bool:
    """Whether some row of a data set with this schema can fall in no cell of `key`."""
    column = schema[key.column]
    if isinstance(key, Split):
        return False
    if isinstance(column, Open) or column.missing is None:
        return True
    if isinstance(key, Held):
        return False
    if isinstance(key, Cycle):
        return not isinstance(column, Integer)
    if isinstance(key, Levels) and isinstance(column, (Boolean, Category)):
        return key.size < (2 if isinstance(column, Boolean) else len(column.levels))
    if isinstance(key, Bins) and not isinstance(column, (Boolean, Category)):
        return key.edges[0] > column.low or key.edges[-1] < column.high
    return True


def filtered(keys: Sequence[Key]) -> bool:
    """Whether a caller's filter, and not only a cell without a value, can leave rows out."""
    return any(not isinstance(key, Held) for key in keys)


def key_from_dict(record: dict[str, Any]) -> Key:
    kinds: dict[str, Any] = {
        "levels": Levels,
        "bins": Bins,
        "subset": Subset,
        "split": Split,
        "between": Between,
        "held": Held,
        "cycle": Cycle,
    }
    fields = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if name != "kind"
    }
    key: Key = kinds[record["kind"]](**fields)
    return key


def cell_count(keys: Sequence[Key]) -> int:
    """Number of cells of the cross product; refused when too many to release."""
    cells = math.prod(key.size for key in keys)
    if cells > LARGEST_CELLS:
        raise InvalidParameter(
            "by=",
            f"{cells} cells",
            f"at most {LARGEST_CELLS} noisy cells fit in one release",
            "cross fewer columns or use fewer bins",
        )
    return cells
