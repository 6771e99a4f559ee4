"""Rows that are made up of the schema alone, so that a script can be tried before it is paid for.

Nothing of the data goes into them: the same schema and seed give the same rows, whatever is asked
of the real ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.inference.simulation.streams import Stream
from discreet.neighbors import Neighbors
from discreet.schema import Boolean, Category, Column, Date, Datetime, Integer, Open, Real, Schema
from discreet.server.refusals import invalid

MOST_ROWS = 20_000
_TOWNS = ("Ashford", "Brook", "Castle", "Dale", "Elm")


def dummy_columns(schema: Schema, neighbors: Neighbors, rows: int, seed: int) -> dict[str, Any]:
    """Made-up columns by name, as lists of plain values."""
    if not 1 <= rows <= MOST_ROWS or not 0 <= seed < 1 << 31:
        raise invalid(
            "rows or seed",
            f"not 1 to {MOST_ROWS} rows, or a seed below 0 or above {(1 << 31) - 1}",
            "made-up rows are there to try a script on",
            "use rows=1000 and seed=1",
        )
    stream = Stream(f"made up/{seed}")
    found = {}
    for number, (name, column) in enumerate(schema.items()):
        uniforms = stream.uniforms((rows,), f"column {number}")
        found[name] = _values(column, uniforms)
    unit = neighbors.unit
    if unit is not None and unit not in found:
        most = max(1, neighbors.max_rows or 1)
        found[unit] = [f"unit {row // most}" for row in range(rows)]
    return found


def _values(column: Column, uniforms: Any) -> list[Any]:
    if isinstance(column, Boolean):
        return [bool(one < 0.5) for one in uniforms]
    if isinstance(column, Category):
        levels = column.levels
        return [levels[int(one * len(levels))] for one in uniforms]
    if isinstance(column, Open):
        return [_TOWNS[int(one * len(_TOWNS))] for one in uniforms]
    if isinstance(column, (Date, Datetime)):
        return _times(column, uniforms)
    assert isinstance(column, (Real, Integer))
    low, high = float(column.low), float(column.high)
    values = low + (high - low) * np.asarray(uniforms)
    if isinstance(column, Integer):
        return [min(max(round(one), math.ceil(low)), math.floor(high)) for one in values]
    return [float(one) for one in values]


def _times(column: Any, uniforms: Any) -> list[str]:
    unit: Any = "D" if isinstance(column, Date) else "s"
    low, high = (_moment(one, unit) for one in _ends(column))
    span = int((high - low).astype(np.int64))
    return [str(low + np.timedelta64(int(one * (span + 1)), unit)) for one in uniforms]


def _moment(text: str, unit: Any) -> Any:
    return np.datetime64(str(text).rstrip("Z"), unit)


def _ends(column: Any) -> tuple[str, str]:
    told = column.to_dict()
    return told["low"], told["high"]
