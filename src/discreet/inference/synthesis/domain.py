"""What a synthesis knows of its columns: declared levels or bins, in the order of a table's cells.

A column that names nothing for a cell without a value has one cell more: "no value".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter, WrongColumnKind, shown
from discreet.inference.results.laws import Array
from discreet.schema import (
    Boolean,
    Category,
    Column,
    Date,
    Integer,
    Real,
    Schema,
    column_from_dict,
    level_text,
)

NO_VALUE = "no value"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Cut:
    """A column as a table reads it: its declaration, its cells' labels without "no value", and the
    edges of its bins (none for levels).
    """

    name: str
    column: Column
    labels: tuple[str, ...]
    edges: tuple[float, ...] = ()

    @property
    def absent(self) -> bool:
        """Whether "no value" is a cell."""
        return getattr(self.column, "missing", None) is None

    @property
    def size(self) -> int:
        return len(self.labels) + self.absent

    @property
    def cells(self) -> tuple[str, ...]:
        """The labels of all cells."""
        return (*self.labels, NO_VALUE) if self.absent else self.labels

    @property
    def is_number(self) -> bool:
        """Whether a cell stands for a number: a bin, or no and yes as 0 and 1."""
        return bool(self.edges) or isinstance(self.column, Boolean)

    @cached_property
    def held(self) -> Array:
        """1 for cells that hold a value, 0 for "no value"."""
        return np.array([1.0] * len(self.labels) + [0.0] * self.absent)

    @cached_property
    def numbers(self) -> Array:
        """What a cell counts as in a mean: the middle of the numbers that its bin can hold (whole
        ones of an Integer column), 0 and 1 of a Boolean one; 0 for "no value".
        """
        if isinstance(self.column, Boolean):
            found = [0.0, 1.0]
        elif self.edges:
            found = [sum(self.ends(place)) / 2 for place in range(len(self.labels))]
        else:
            raise WrongColumnKind(
                self.name, type(self.column).__name__, "Real, Integer or Boolean", "a mean"
            )
        return np.array(found + [0.0] * self.absent)

    def ends(self, place: int) -> tuple[float, float]:
        """The least and the greatest number in a bin: whole ones of an Integer column."""
        assert isinstance(self.column, (Real, Integer)), "bins are of numbers"
        low = max(self.edges[place], float(self.column.low))
        high = min(self.edges[place + 1], float(self.column.high))
        if isinstance(self.column, Real):
            return low, high
        last = place + 2 == len(self.edges)
        first = math.ceil(low)
        end = math.floor(high) if last or high < self.edges[place + 1] else math.ceil(high) - 1
        return (float(first), float(end)) if first <= end else (low, high)

    def mask(self, asked: object) -> Mask:
        """Which cells a condition keeps: a level, a list of levels, a pair of numbers that are
        edges, or None for the cells without a value.
        """
        wanted = list(asked) if isinstance(asked, (list, set, frozenset)) else [asked]
        kept = np.zeros(self.size, dtype=bool)
        for one in wanted:
            for place in self._places(one):
                kept[place] = True
        return kept

    def _places(self, asked: object) -> range:
        if asked is None or (isinstance(asked, str) and asked == NO_VALUE):
            if not self.absent:
                raise _refused(self, asked, "every cell of it has a value")
            return range(len(self.labels), self.size)
        if self.edges and isinstance(asked, tuple) and len(asked) == 2:
            return self._between(*asked)
        if isinstance(self.column, Category) and isinstance(asked, (str, int, bool)):
            texts = [level_text(level) for level in self.column.levels]
            if level_text(asked) in texts:
                place = texts.index(level_text(asked))
                return range(place, place + 1)
        if isinstance(self.column, Boolean) and isinstance(asked, bool):
            return range(int(asked), int(asked) + 1)
        if isinstance(asked, str) and asked in self.labels:
            place = self.labels.index(asked)
            return range(place, place + 1)
        raise _refused(self, asked, f"it is none of {', '.join(self.labels[:12])}")

    def _between(self, low: object, high: object) -> range:
        """The bins from one edge to another; an open end is None."""
        ends = [
            self._edge(end, default)
            for end, default in ((low, self.edges[0]), (high, self.edges[-1]))
        ]
        if any(end not in self.edges for end in ends) or ends[0] >= ends[1]:
            edges = ", ".join(f"{edge:g}" for edge in self.edges)
            raise _refused(self, (low, high), f"its ends are no edges of the bins ({edges})")
        return range(self.edges.index(ends[0]), self.edges.index(ends[1]))

    def _edge(self, end: object, default: float) -> float:
        if end is None:
            return default
        if isinstance(self.column, Date):
            return float(self.column.number(end))
        if isinstance(end, bool) or not isinstance(end, (int, float)):
            raise _refused(self, end, "an end of a range is a number")
        return float(end)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "column": self.column.to_dict(),
            "labels": list(self.labels),
            "edges": list(self.edges),
        }


def cut_from_dict(record: dict[str, Any]) -> Cut:
    return Cut(
        record["name"],
        column_from_dict(record["column"]),
        tuple(record["labels"]),
        tuple(record["edges"]),
    )


@dataclass(frozen=True)
class Domain:
    """All columns of a synthesis, by number in the order in which they were named."""

    cuts: tuple[Cut, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(cut.name for cut in self.cuts)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(cut.size for cut in self.cuts)

    @property
    def schema(self) -> Schema:
        """The declarations, as the data had them."""
        return Schema({cut.name: cut.column for cut in self.cuts})

    def place(self, name: object) -> int:
        """The number of a column; refused where it is none of them."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        raise InvalidParameter(
            f"column {shown(name)}",
            "it is none of the columns that are counted here",
            "tables are over the columns that were named, and know no others",
            f"use {', '.join(map(repr, self.names[:20]))}, or name it among the columns",
        )

    def places(self, names: object) -> tuple[int, ...]:
        """The numbers of one column or several, in the order asked."""
        listed = [names] if isinstance(names, str) else names
        if not isinstance(listed, (list, tuple)) or not listed:
            raise InvalidParameter(
                "by=",
                f"a {type(names).__name__} names no columns",
                "a table is over declared columns",
                "pass a column name, or a list of them",
            )
        found = tuple(self.place(name) for name in listed)
        if len(set(found)) != len(found):
            raise InvalidParameter(
                "by=", "one column twice", "a table has an axis a column", "name each column once"
            )
        return found

    def masks(self, conditions: object) -> dict[int, Mask]:
        """Which cells of which columns a mapping of conditions keeps."""
        if not isinstance(conditions, Mapping) or not conditions:
            raise InvalidParameter(
                "a share",
                "not a mapping from columns to levels",
                "it is the share of the rows that satisfy conditions",
                "pass for example {'sex': 'F', 'age': (18, 35)}",
            )
        return {
            self.place(name): self.cuts[self.place(name)].mask(asked)
            for name, asked in conditions.items()
        }

    def words(self, places: tuple[int, ...]) -> str:
        """The names of some columns, in words."""
        return ", ".join(self.cuts[place].name for place in places)

    def to_dict(self) -> list[dict[str, Any]]:
        return [cut.to_dict() for cut in self.cuts]


def domain_from_dict(record: list[dict[str, Any]]) -> Domain:
    return Domain(tuple(map(cut_from_dict, record)))


def _refused(cut: Cut, asked: object, found: str) -> InvalidParameter:
    return InvalidParameter(
        f"{cut.name!r}: {shown(asked)}",
        found,
        "a table knows the declared cells alone",
        "name a level, a list of levels, two edges of its bins as (low, high), or None for cells "
        "without a value",
    )
