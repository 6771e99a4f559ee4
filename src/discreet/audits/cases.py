"""Neighbouring data sets that move statistics as far as they can move.

Most rows stand in the middle; the one that differs stands at one end in D and at the other in D′
(Replace), or at one end in D and is not there in D′ (AddRemove). With units, all rows of one unit
differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from discreet.inference.simulation.streams import Stream
from discreet.neighbors import AddRemove, Neighbors, Replace
from discreet.schema import Boolean, Category, Integer, Open, Real, Schema
from discreet.trusted.datasets import Dataset, from_frame
from discreet.trusted.scale.sources import from_batches

ROWS, STREAMED_ROWS = 24, 7
NAME = "audited rows"
LEVELS = ("a", "b", "c", "d")
UNIT = "person"
Row = dict[str, Any]
RELATIONS: Mapping[str, Neighbors] = {
    "replace": Replace(),
    "add or remove": AddRemove(),
    "replace units": Replace(unit=UNIT, max_rows=2),
    "add or remove units": AddRemove(unit=UNIT, max_rows=2),
}
SCHEMA = Schema(
    {
        "x": Real(0, 1),
        "y": Real(0, 1),
        "flag": Boolean(),
        "level": Category(LEVELS),
        "arm": Category(("left", "right"), missing="left"),
        "side": Category(("front", "back"), missing="front"),
        "whole": Integer(0, 10),
        "town": Open(),
        "full": Real(0, 1, missing=0.5),
    }
)
ENDS: dict[str, tuple[Any, Any]] = {
    "x": (0.0, 1.0),
    "y": (0.0, 1.0),
    "flag": (False, True),
    "level": ("a", "d"),
    "arm": ("left", "right"),
    "side": ("front", "back"),
    "whole": (0, 10),
    "town": ("m", "n"),
    "full": (0.0, 1.0),
}
LOW, HIGH = ({name: ends[side] for name, ends in ENDS.items()} for side in (0, 1))


@dataclass(frozen=True, slots=True)
class Pair:
    """Rows that two neighbours share, and the row that differs: `low` in D, `high` in D′; where
    rows come and go, `high` is in D and nothing in D′.
    """

    others: tuple[Row, ...]
    low: Row
    high: Row

    def under(self, neighbors: Neighbors, engine: str = "memory") -> tuple[Dataset, Dataset]:
        """The two data sets under a relation; with units, of two rows each, all rows of one unit
        differ.
        """
        copies = neighbors.max_rows or 1
        first, second = [self.low] * copies, [self.high] * copies
        if not isinstance(neighbors, Replace):
            first, second = second, []
        return (
            _declared([*self.others, *first], copies, neighbors, engine),
            _declared([*self.others, *second], copies, neighbors, engine),
        )

    def changed(self, stream: Stream) -> Pair:
        """Another pair, of which one row or one value of the row that differs is drawn anew."""
        kind, place, *fresh = stream.uniforms((2 + len(SCHEMA),), "changed").tolist()
        row = _drawn(fresh)
        name = list(SCHEMA)[int(place * len(SCHEMA))]
        if kind < 1 / 4:
            return replace(self, low=self.low | {name: row[name]})
        if kind < 1 / 2:
            return replace(self, high=self.high | {name: row[name]})
        others = list(self.others)
        others[int(place * len(others))] = row
        return replace(self, others=tuple(others))


def worst_pair(ends: Row | None = None) -> Pair:
    """Rows in the middle, and one that goes from one end to the other; `ends` are other values of
    the second end.
    """
    return Pair(tuple(_middle(number) for number in range(ROWS)), LOW, HIGH | (ends or {}))


def drawn_pair(stream: Stream) -> Pair:
    """Rows drawn at random: what is worst for weighted statistics is at no end."""
    *others, low, high = (_drawn(one) for one in stream.uniforms((ROWS + 2, len(SCHEMA)), "rows"))
    return Pair(tuple(others), low, high)


def _middle(number: int) -> Row:
    """Rows that fill every level, so that no cell is empty on either side."""
    return {
        "x": 0.5,
        "y": 0.5,
        "flag": number % 2 == 0,
        "level": LEVELS[number % len(LEVELS)],
        "arm": ("left", "right")[number // 2 % 2],
        "side": ("front", "back")[number // 4 % 2],
        "whole": 5,
        "town": "m",
        "full": 0.5,
    }


def _drawn(numbers: Sequence[float]) -> Row:
    ends = [min(1.0, max(0.0, 2 * float(number) - 0.5)) for number in numbers]  # half at an end
    return {
        "x": ends[0],
        "y": ends[1],
        "flag": ends[2] > 0.5,
        "level": LEVELS[min(3, int(4 * float(numbers[3])))],
        "arm": ("left", "right")[ends[4] > 0.5],
        "side": ("front", "back")[ends[5] > 0.5],
        "whole": round(10 * ends[6]),
        "town": "mn"[ends[7] > 0.5],
        "full": ends[8],
    }


def _declared(rows: list[Row], copies: int, neighbors: Neighbors, engine: str) -> Dataset:
    columns: dict[str, list[Any]] = {name: [row[name] for row in rows] for name in SCHEMA}
    if neighbors.unit is not None:
        columns[UNIT] = [number // copies for number in range(len(rows))]
    return ENGINES[engine](columns, neighbors)


def _in_memory(columns: dict[str, list[Any]], neighbors: Neighbors) -> Dataset:
    return from_frame(columns, schema=SCHEMA, neighbors=neighbors, name=NAME)


def _streamed(columns: dict[str, list[Any]], neighbors: Neighbors) -> Dataset:
    """The same rows as Arrow batches, as files and streams are read, cut where no unit cares."""
    import pyarrow

    table = pyarrow.table(columns)
    return from_batches(
        lambda names: table.select(names).to_reader(max_chunksize=STREAMED_ROWS),
        schema=dict(SCHEMA),
        neighbors=neighbors,
        name=NAME,
    )


ENGINES: Mapping[str, Callable[[dict[str, list[Any]], Neighbors], Dataset]] = {
    "memory": _in_memory,
    "stream": _streamed,
}
