"""One value, or an array of them, read by the total rules of `schema.py`: whatever it holds, it gives a code and never an error.

    place_of, places_of   the place of a value among those of a Category, Boolean or Integer column; −1 for no level
    code_of, codes_of     the code of a number on its column's fixed-point grid

A number that stands for a level of an Integer column is rounded to the nearest whole number (halves up) and cut to the range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema import FALSE_TEXT, TRUE_TEXT, Boolean, Category, Integer, Real, level_number, level_text, text_number

Codes = NDArray[np.int64]


def number_of(value: Any) -> float:
    """A value as a float: numbers as they are (too large: ±inf), text by the decimal grammar, anything else NaN."""
    kind = type(value)
    if kind is float:
        return float(value)
    if issubclass(kind, str):
        parsed = text_number(str.__str__(value))
        return math.nan if parsed is None else parsed
    if issubclass(kind, (bool, np.bool_)):
        return 1.0 if value else 0.0
    if issubclass(kind, (int, np.integer)):
        whole = int.__index__(value) if issubclass(kind, int) else int(value)
        try:
            return float(whole)
        except OverflowError:
            return math.inf if whole > 0 else -math.inf
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, np.floating):
        with np.errstate(all="ignore"):
            return float(value)
    if issubclass(kind, Decimal):
        return math.nan if Decimal.is_nan(value) else Decimal.__float__(value)
    return math.nan


def place_of(column: Category | Boolean | Integer, value: Any) -> int:
    """The place of a value among the column's, by the total rule."""
    if isinstance(column, Integer):
        return int(_whole_places(column, np.array([number_of(value)]))[0])
    if isinstance(column, Boolean):
        if issubclass(type(value), str):
            text = str.strip(str.__str__(value), " ").lower()
            return 1 if text in TRUE_TEXT else 0 if text in FALSE_TEXT else int(column.missing)
        number = number_of(value)
        return int(number) if number in (0.0, 1.0) else int(column.missing)
    texts, numbers, otherwise = _levels(column)
    if issubclass(type(value), str):
        return texts.get(str.__str__(value), otherwise)
    if issubclass(type(value), (bool, np.bool_)):
        return texts.get("true" if value else "false", otherwise)
    return numbers.get(number_of(value), otherwise)


def places_of(column: Category | Boolean | Integer, values: Iterable[Any]) -> Codes:
    """`place_of` of every value; arrays of numbers at array speed."""
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim == 1 and not isinstance(array, np.ma.MaskedArray):
        if isinstance(column, Integer) and array.dtype.kind in "iu":
            whole = np.minimum(array, np.uint64(2**62)) if array.dtype == np.uint64 else array
            places = np.clip(whole.astype(np.int64, copy=False), column.low, column.high)
            places -= column.low
            return places
        if isinstance(column, Integer) and array.dtype.kind == "f":
            return _whole_places(column, array.astype(np.float64))
        if isinstance(column, Boolean) and array.dtype.kind == "b":
            return array.astype(np.int64)
    return np.fromiter((place_of(column, value) for value in values), dtype=np.int64)


def code_of(column: Real | Integer | Boolean, value: Any) -> int:
    """The code of a value on the column's grid, by the total rule."""
    if isinstance(column, Boolean):
        return 2 * place_of(column, value) - 1
    return int(_grid_codes(column, np.array([number_of(value)]))[0])


def codes_of(column: Real | Integer | Boolean, values: Iterable[Any]) -> Codes:
    """`code_of` of every value; arrays of numbers at array speed."""
    if isinstance(column, Boolean):
        return 2 * places_of(column, values) - 1
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iuf" and not isinstance(values, np.ma.MaskedArray):
        return _grid_codes(column, values.astype(np.float64))
    return _grid_codes(column, np.fromiter(map(number_of, values), dtype=np.float64))


def _grid_codes(column: Real | Integer, numbers: NDArray[np.float64]) -> Codes:
    grid = column.encoding()
    assert column.missing is not None
    with np.errstate(all="ignore"):
        known = np.where(np.isnan(numbers), column.missing, numbers)
        steps = np.floor((known - grid.center) * grid.per_unit + 0.5)
    return np.clip(steps, grid.low, grid.high).astype(np.int64)


def _whole_places(column: Integer, numbers: NDArray[np.float64]) -> Codes:
    assert column.missing is not None
    with np.errstate(all="ignore"):
        known = np.floor(np.where(np.isnan(numbers), column.missing, numbers) + 0.5)
    return np.clip(known, column.low, column.high).astype(np.int64) - column.low


@lru_cache(maxsize=16)
def _levels(column: Category) -> tuple[dict[str, int], dict[float, int], int]:
    texts = {level_text(level): place for place, level in enumerate(column.levels)}
    numbers: dict[float, int] = {}
    for place, level in enumerate(column.levels):
        number = level_number(level)
        if number is not None:
            numbers.setdefault(number + 0.0, place)
    return texts, numbers, column.missing_code
