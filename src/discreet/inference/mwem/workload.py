"""What is compared with the data in every round: cells of tables, ranges of columns, or conditions.

A query counts the rows of a box: on some columns their cell is among some codes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.inference.mwem.weights import Mask
from discreet.inference.results.laws import Array
from discreet.inference.synthesis.domain import Cut, Domain
from discreet.inference.synthesis.trees import Clique
from discreet.specs.queries.keys import Bins, Key, Subset
from discreet.specs.queries.marginals import LARGEST_GUESS, Axis, Discrepancies

CELLS, RANGES = "cells", "ranges"


@dataclass(frozen=True, slots=True)
class Box:
    """A counting query: for each of some columns, by number, the codes that it keeps."""

    sides: tuple[tuple[int, tuple[int, ...]], ...]

    def mask(self, sizes: tuple[int, ...]) -> Mask:
        """The cells of the dense table that it counts, flat."""
        kept = np.ones(sizes, dtype=bool)
        for place, codes in self.sides:
            one = np.zeros(sizes[place], dtype=bool)
            one[list(codes)] = True
            along = [sizes[place] if axis == place else 1 for axis in range(len(sizes))]
            kept &= one.reshape(along)
        return kept.ravel()

    def count(self, table: Array) -> float:
        """How many rows of a dense table it counts."""
        found = table
        for place, codes in self.sides:
            found = np.take(found, codes, axis=place)
        return float(found.sum())

    def keys(self, domain: Domain) -> tuple[Key, ...]:
        """The filter that keeps its rows."""
        return tuple(side_key(domain.cuts[place], codes) for place, codes in self.sides)

    def words(self, domain: Domain) -> str:
        """The box in words."""
        return " and ".join(
            f"{domain.cuts[place].name} is {_codes_text(domain.cuts[place], codes)}"
            for place, codes in self.sides
        )

    def to_list(self) -> list[Any]:
        return [[place, list(codes)] for place, codes in self.sides]


def box_from_list(record: list[Any]) -> Box:
    return Box(tuple((place, tuple(codes)) for place, codes in record))


def box_of(domain: Domain, conditions: object) -> Box:
    """The box of a mapping of conditions; refuses a column's bins that do not lie side by side."""
    sides = []
    for place, mask in sorted(domain.masks(conditions).items()):
        codes = tuple(int(code) for code in np.flatnonzero(mask))
        if len(codes) < len(mask):
            side_key(domain.cuts[place], codes)
            sides.append((place, codes))
    if not sides:
        raise InvalidParameter(
            "queries=",
            "one of them keeps every row",
            "a query that counts all rows tells nothing of the columns",
            "leave it out",
        )
    return Box(tuple(sides))


def side_key(cut: Cut, codes: tuple[int, ...]) -> Key:
    """The rows whose cell of a column is among some codes."""
    if not cut.edges:
        return Subset(cut.name, codes)
    first, last = codes[0], codes[-1]
    if codes != tuple(range(first, last + 1)):
        raise InvalidParameter(
            f"a condition on {cut.name!r}",
            "its bins do not lie side by side",
            "the rows of a query are counted between two edges",
            "ask for one range, as (low, high)",
        )
    end = cut.edges[last + 1]
    if last + 1 < len(cut.labels):
        end = math.nextafter(end, cut.edges[0])  # the last bin alone is closed
    return Bins(cut.name, (cut.edges[first], end))


@dataclass(frozen=True)
class Workload:
    """The queries of a round: all cells of the tables of some columns and some boxes of their own
    (`of` is "cells"), or all ranges of some columns.
    """

    domain: Domain
    columns: tuple[Axis, ...]
    tables: tuple[Clique, ...]
    boxes: tuple[Box, ...] = ()
    of: str = CELLS

    @property
    def size(self) -> int:
        """How many queries it has."""
        return sum(self._sizes()) + len(self.boxes)

    def without(self, box: Box) -> Workload:
        """The same without a box of its own that was measured, unless nothing would be left."""
        left = tuple(one for one in self.boxes if one != box)
        if not left and not self.tables:
            return self
        return Workload(self.domain, self.columns, self.tables, left, self.of)

    def box(self, place: int) -> Box:
        """The query of a number, as `Discrepancies` counts its distances."""
        for table, size in zip(self.tables, self._sizes(), strict=True):
            if place < size:
                return self._cell(table, place)
            place -= size
        return self.boxes[place]

    def query(self, table: Array) -> Discrepancies:
        """How far the data are from a dense table, query by query; guesses are whole numbers."""
        axes, own = list(self.columns), []
        for box in self.boxes:
            places = []
            for key in box.keys(self.domain):
                axis = Axis(key, False)
                if axis not in axes:
                    axes.append(axis)
                places.append(axes.index(axis))
            own.append(tuple(sorted(places)))
        guesses = [self._guess(table, one) for one in self.tables]
        guesses += [(_whole(box.count(table)),) for box in self.boxes]
        return Discrepancies(tuple(axes), (*self.tables, *own), tuple(guesses), self.of)

    def _guess(self, table: Array, columns: Clique) -> tuple[int, ...]:
        gone = tuple(axis for axis in range(table.ndim) if axis not in columns)
        counts = table.sum(axis=gone).ravel()
        if self.of == RANGES:  # sums of neighbours are off by less than 1 too
            counts = np.diff(np.rint(np.cumsum(counts)), prepend=0.0)
        return tuple(_whole(count) for count in counts.tolist())

    def _sizes(self) -> Iterator[int]:
        for table in self.tables:
            cells = math.prod(self.domain.sizes[place] for place in table)
            yield cells if self.of == CELLS else cells * (cells + 1) // 2

    def _cell(self, table: Clique, place: int) -> Box:
        if self.of == CELLS:
            codes = np.unravel_index(place, [self.domain.sizes[one] for one in table])
            return Box(tuple((one, (int(code),)) for one, code in zip(table, codes, strict=True)))
        cells, first = self.domain.sizes[table[0]], 0
        while place >= cells - first:
            place -= cells - first
            first += 1
        return Box(((table[0], tuple(range(first, first + place + 1))),))


def _whole(count: float) -> int:
    return int(min(max(round(count), 0), LARGEST_GUESS))


def _codes_text(cut: Cut, codes: tuple[int, ...]) -> str:
    if len(codes) > 2 and codes == tuple(range(codes[0], codes[-1] + 1)):
        return f"{cut.labels[codes[0]]} to {cut.labels[codes[-1]]}"
    return " or ".join(cut.labels[code] for code in codes)
