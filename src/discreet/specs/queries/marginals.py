"""Several tables of counts at once, and how far such tables are from public guesses.

A table is read along axes. An axis is a key and, where `absent` says so, one more cell: the rows
that the key puts nowhere (a missing value is a level of its own). Where every axis has that cell,
or a key that leaves no row out, every row falls in exactly one cell of every table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import L1, L2, LInf
from discreet.specs.queries.keys import LARGEST_CELLS, Key, key_from_dict
from discreet.specs.queries.plans import columns_read

MOST_AXES = 1 << 10
MOST_TABLES = 1 << 14
LARGEST_WEIGHT = 1 << 20
LARGEST_GUESS = 1 << 40  # so that the distance of a table from its guess stays below 2**63
DISTANCES = ("tables", "cells", "ranges")

Counts = list[npt.NDArray[np.int64]]


@plain.kept()
@dataclass(frozen=True, slots=True)
class Axis:
    """The cells of a key and, with `absent`, a last one for the rows that have no cell there."""

    key: Key
    absent: bool

    def __post_init__(self) -> None:
        if not plain.among(type(self.key), get_args(Key)) or type(self.absent) is not bool:
            raise _bad("an axis", "it is no key and a truth value", "take it from a column")

    @property
    def size(self) -> int:
        return self.key.size + self.absent

    def to_dict(self) -> dict[str, Any]:
        return {"key": self.key.to_dict(), "absent": self.absent}


def axis_from_dict(record: dict[str, Any]) -> Axis:
    return Axis(key_from_dict(record["key"]), record["absent"])


@dataclass(frozen=True, slots=True)
class TablesPlan:
    """Counts of the rows by the cells of each table, an array of integers a table; the cells of a
    table are numbered with its last axis fastest.
    """

    axes: tuple[Axis, ...]
    tables: tuple[tuple[int, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return columns_read((), (axis.key for axis in self.axes))

    def shape(self, table: tuple[int, ...]) -> tuple[int, ...]:
        """The number of cells along each axis of a table."""
        return tuple(self.axes[place].size for place in table)


@plain.kept()
@dataclass(frozen=True, slots=True)
class Marginals:
    """The counts of all tables, those of table r times the whole number a_r = `weights[r]`, one
    table after another: one noise for all then gives table r noise of 1/a_r of its spread.

    Theorem.  With c_r = 1 under AddRemove and for a table of one cell, c_r = 2 otherwise, k rows of
              one unit move the vector by at most k·Σ a_r·c_r in ℓ₁, and by k·√(Σ a_r²·c_r) in ℓ₂.
    Proof.    A row counts in at most one cell of a table. Coming or going it moves that cell by 1;
              exchanged, it leaves one cell for another at most: two cells by 1 each, or the only
              cell of the table by 1. Tables stand side by side; k rows by the triangle inequality.
    Checked.  tests/claims/test_marginals.py
    """

    axes: tuple[Axis, ...]
    tables: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    kind: ClassVar[str] = "marginals"
    gives: ClassVar[str] = "vector"
    optional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked_tables(self.axes, self.tables)
        fits = type(self.weights) is tuple and len(self.weights) == len(self.tables)
        if not fits or not all(
            type(weight) is int and 1 <= weight <= LARGEST_WEIGHT for weight in self.weights
        ):
            raise _bad(
                "weights",
                f"they are not a whole number from 1 to {LARGEST_WEIGHT} for each table",
                "give each table a share of the budget",
            )

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(axis.key for axis in self.axes)

    @property
    def size(self) -> int:
        return sum(sizes_of(self.plan()))

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        k, moved = neighbors.rows, cells_moved(self.plan(), neighbors)
        first = sum(a * c for a, c in zip(self.weights, moved, strict=True))
        second = sum(a * a * c for a, c in zip(self.weights, moved, strict=True))
        return L1(Fraction(k * first)), L2(Fraction(k * k * second))

    def plan(self) -> TablesPlan:
        return TablesPlan(self.axes, self.tables)

    def assemble(self, counts: Counts) -> list[int]:
        """The integer statistic from the engine's tables."""
        return [
            weight * count
            for weight, table in zip(self.weights, counts, strict=True)
            for count in table.tolist()
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "axes": [axis.to_dict() for axis in self.axes],
            "tables": [list(table) for table in self.tables],
            "weights": list(self.weights),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Marginals:
        return cls(
            tuple(map(axis_from_dict, record["axes"])),
            tuple(map(tuple, record["tables"])),
            tuple(record["weights"]),
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class Discrepancies:
    """How far tables of counts x_r are from public whole numbers g_r = `guesses[r]`; `of` says what
    one distance is of:

    "tables"   one for each table: Σ over its cells of |x_r(c) − g_r(c)|
    "cells"    one for each cell of each table: |x_r(c) − g_r(c)|
    "ranges"   one for each interval a ≤ b of cells of tables with one axis, a before b, b faster:
               |Σ over a ≤ c ≤ b of (x_r(c) − g_r(c))|

    Theorem.  With c_r as for `Marginals`, k rows of one unit move
                  "tables"   distance r by at most k·c_r
                  "cells"    each distance by at most k, all together by at most k·Σ c_r in ℓ₁ and
                             k·√(Σ c_r) in ℓ₂
                  "ranges"   each distance by at most k.
    Proof.    ||a| − |b|| ≤ |a − b|, number by number, so that distances move no further than the
              sums inside. One row moves c_r cells of table r by 1 each. Of a range it moves the sum
              by 1 at most: if it leaves one of its cells for another, not at all.
    Checked.  tests/claims/test_marginals.py
    """

    axes: tuple[Axis, ...]
    tables: tuple[tuple[int, ...], ...]
    guesses: tuple[tuple[int, ...], ...]
    of: str = DISTANCES[0]
    kind: ClassVar[str] = "discrepancies"
    gives: ClassVar[str] = "vector"
    optional: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked_tables(self.axes, self.tables)
        if self.of not in DISTANCES:
            raise _bad("of", f"it is none of {', '.join(DISTANCES)}", "say what distances are of")
        if self.of == "ranges" and any(len(table) != 1 for table in self.tables):
            raise _bad("ranges", "a table has several axes", "ask for ranges of one column each")
        if self.size > LARGEST_CELLS:
            raise _bad(
                "distances", f"there are more than {LARGEST_CELLS}", "compare fewer tables or cells"
            )
        _checked_guesses(self.guesses, sizes_of(self.plan()))

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(axis.key for axis in self.axes)

    @property
    def size(self) -> int:
        sizes = sizes_of(self.plan())
        if self.of == "tables":
            return len(sizes)
        return sum(sizes if self.of == "cells" else (cells * (cells + 1) // 2 for cells in sizes))

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2, LInf]:
        k, moved = neighbors.rows, cells_moved(self.plan(), neighbors)
        if self.of == "tables":
            each, first, second = max(moved), sum(moved), sum(c * c for c in moved)
        elif self.of == "cells":
            each, first, second = 1, sum(moved), sum(moved)
        else:
            each, first, second = 1, self.size, self.size
        return (
            L1(Fraction(k * first)),
            L2(Fraction(k * k * second)),
            LInf(Fraction(k * each), False),
        )

    def plan(self) -> TablesPlan:
        return TablesPlan(self.axes, self.tables)

    def assemble(self, counts: Counts) -> list[int]:
        """The distances, exact, from the engine's tables."""
        found: list[int] = []
        for table, guess in zip(counts, self.guesses, strict=True):
            apart = table - np.array(guess, dtype=np.int64)
            if self.of == "tables":
                found.append(int(np.abs(apart).sum()))
            elif self.of == "cells":
                found += np.abs(apart).tolist()
            else:
                for first in range(len(apart)):
                    found += np.abs(np.cumsum(apart[first:])).tolist()
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "axes": [axis.to_dict() for axis in self.axes],
            "tables": [list(table) for table in self.tables],
            "guesses": [list(guess) for guess in self.guesses],
            "of": self.of,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Discrepancies:
        return cls(
            tuple(map(axis_from_dict, record["axes"])),
            tuple(map(tuple, record["tables"])),
            tuple(map(tuple, record["guesses"])),
            record["of"],
        )


def sizes_of(plan: TablesPlan) -> list[int]:
    """The number of cells of each table."""
    return [math.prod(plan.shape(table)) for table in plan.tables]


def cells_moved(plan: TablesPlan, neighbors: Neighbors) -> list[int]:
    """How many cells of each table one row can move, by 1 each."""
    several = 2 if isinstance(neighbors, Replace) else 1
    return [several if cells > 1 else 1 for cells in sizes_of(plan)]


def _checked_tables(axes: tuple[Axis, ...], tables: tuple[tuple[int, ...], ...]) -> None:
    """Refuses what is no list of tables, or has too many cells."""
    if not 1 <= len(axes) <= MOST_AXES or not all(type(axis) is Axis for axis in axes):
        raise _bad("axes", f"they are not 1 to {MOST_AXES} axes", "name columns to count by")
    if not 1 <= len(tables) <= MOST_TABLES or len(set(tables)) != len(tables):
        raise _bad("tables", f"they are not 1 to {MOST_TABLES} different ones", "name each once")
    for table in tables:
        places = type(table) is tuple and all(type(place) is int for place in table)
        if not places or not table or list(table) != sorted({*table}):
            raise _bad("a table", "it does not name axes by increasing numbers", "sort its axes")
        if not 0 <= table[0] <= table[-1] < len(axes):
            raise _bad("a table", "it names an axis that is not there", "name axes that are")
    if sum(math.prod(axes[place].size for place in table) for table in tables) > LARGEST_CELLS:
        raise _bad(
            "tables", f"they have more than {LARGEST_CELLS} cells", "leave out columns or levels"
        )


def _checked_guesses(guesses: tuple[tuple[int, ...], ...], sizes: list[int]) -> None:
    fits = type(guesses) is tuple and all(type(guess) is tuple for guess in guesses)
    if not fits or [len(guess) for guess in guesses] != sizes:
        raise _bad("guesses", "they are not one for each cell", "guess a number for every cell")
    if not all(
        type(number) is int and abs(number) <= LARGEST_GUESS
        for guess in guesses
        for number in guess
    ):
        raise _bad("guesses", "one is no ordinary whole number", "round guesses to whole numbers")


def _bad(what: str, found: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(what, found, "tables are what sensitivity is proven for", remedy)
