"""Rows that a caller gives for a prediction, as the whole numbers that a model reads.

Cells are read by the rules that the data set's own cells are read by (`trusted/values.py`), so that
a prediction for a row is what the network would make of it there. A cell without a value counts as
its column's `missing`, or the middle of its range; a level that was not declared counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter
from discreet.schema import Boolean, Category, Column, Date, Integer, Real
from discreet.specs.estimating.components import Component, LevelComponent, model_matrix
from discreet.specs.estimating.model import Model
from discreet.trusted.values import boolean_of, levels_of, number_of

Codes = npt.NDArray[np.int64]


def frame_matrix(frame: Any, model: Model, columns: Mapping[str, Column]) -> npt.NDArray[np.int16]:
    """The model's columns of the rows of a frame, or of a mapping from names to values."""
    parts = {component for column in model.columns for component in column.components}
    cells = {name: _cells(frame, name) for name in sorted({part.column for part in parts})}
    lengths = {len(values) for values in cells.values()}
    if len(lengths) != 1:
        raise _no_rows("its columns have different lengths")
    codes = {part: _codes(part, cells[part.column], columns[part.column]) for part in parts}
    return model_matrix(model.columns, codes, lengths.pop())


def _cells(frame: Any, name: str) -> list[Any]:
    try:
        given = frame[name]
        listed: Callable[[], Any] | None = getattr(given, "to_pylist", None)
        values = listed() if listed is not None else np.asarray(given, dtype=object).tolist()
    except Exception:  # whatever a frame of another kind raises
        raise _no_rows(f"column {name!r} cannot be read from a {plain.kind_name(frame)}") from None
    if not isinstance(values, list):
        raise _no_rows(f"column {name!r} is one value, not one a row")
    return values


def _codes(part: Component, cells: list[Any], column: Column) -> Codes:
    """The codes of one component's cells."""
    if isinstance(part, LevelComponent):
        return np.array([_level(cell, column) for cell in cells], dtype=np.int64)
    numbers = np.array([_number(cell, column) for cell in cells], dtype=np.float64)
    return _encoded(numbers, column, part.factor.encoding)


def _level(cell: Any, column: Column) -> int:
    if isinstance(column, Category):
        return levels_of(column)(cell)
    return boolean_of(cell, int(getattr(column, "fill", False)))


def _number(cell: Any, column: Column) -> float:
    if isinstance(column, Boolean):
        return float(boolean_of(cell, int(column.fill)))
    if isinstance(column, Date):
        try:
            return float(column.number(cell))
        except InvalidParameter:
            return np.nan
    return number_of(cell)


def _encoded(numbers: npt.NDArray[np.float64], column: Column, grid: Encoding) -> Codes:
    if isinstance(column, (Real, Integer)):
        known = np.where(np.isnan(numbers), float(column.fill), numbers)
        numbers = np.clip(known, float(column.low), float(column.high))
    whole = np.floor((numbers - grid.center) * grid.per_unit + 0.5)
    return np.asarray(np.clip(whole, grid.low, grid.high).astype(np.int64))


def _no_rows(found: str) -> InvalidParameter:
    return InvalidParameter(
        "predict",
        found,
        "a prediction reads the columns of the formula's right side",
        'give a data frame, or a mapping: net.predict({"age": [30, 40], "hours": [20, 38]})',
    )
