"""Values as a device reads them: one value, or an array of them, by the total rules of `schema.py`.

    place_of, places_of    the place of a value among those of a Category, Boolean or Integer
                           column; −1 for no level
    code_of, codes_of      the code of a number on its column's fixed-point grid

A number that stands for a level of an Integer column is rounded to the nearest whole number
(halves up) and cut to the range.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema import Boolean, Category, Integer, Real
from discreet.trusted.values import Codes, boolean_of, booleans_of, levels_of, number_of


def place_of(column: Category | Boolean | Integer, value: Any) -> int:
    """The place of a value among the column's, by the total rule."""
    if isinstance(column, Integer):
        return int(_whole_places(column, np.array([number_of(value)]))[0])
    return (
        boolean_of(value, int(column.fill))
        if isinstance(column, Boolean)
        else levels_of(column)(value)
    )


def places_of(column: Category | Boolean | Integer, values: Iterable[Any]) -> Codes:
    """`place_of` of every value; arrays of numbers and booleans at array speed."""
    values = plain_array(values)
    array = values if isinstance(values, np.ndarray) else None
    if array is not None and array.ndim == 1 and not isinstance(array, np.ma.MaskedArray):
        if isinstance(column, Integer) and array.dtype.kind in "iu":
            whole = np.minimum(array, np.uint64(2**62)) if array.dtype == np.uint64 else array
            places = np.clip(whole.astype(np.int64, copy=False), column.low, column.high)
            places -= column.low
            return places
        if array.dtype.kind in "iuf":
            numbers = _floats(array)
            return (
                _whole_places(column, numbers)
                if isinstance(column, Integer)
                else booleans_of(numbers, int(column.fill))
                if isinstance(column, Boolean)
                else levels_of(column).of_numbers(numbers)
            )
        if array.dtype.kind == "b" and not isinstance(column, Integer):
            return (
                array.astype(np.int64)
                if isinstance(column, Boolean)
                else levels_of(column).of_booleans(array)
            )
    if isinstance(column, Category):
        return np.fromiter(map(levels_of(column), values), dtype=np.int64)
    return np.fromiter((place_of(column, value) for value in values), dtype=np.int64)


def code_of(column: Real | Integer | Boolean, value: Any) -> int:
    """The code of a value on the column's grid, by the total rule."""
    if isinstance(column, Boolean):
        return 2 * place_of(column, value) - 1
    return int(_grid_codes(column, np.array([number_of(value)]))[0])


def codes_of(column: Real | Integer | Boolean, values: Iterable[Any]) -> Codes:
    """`code_of` of every value; arrays of numbers at array speed."""
    values = plain_array(values)
    if isinstance(column, Boolean):
        return 2 * places_of(column, values) - 1
    if (
        isinstance(values, np.ndarray)
        and values.ndim == 1
        and values.dtype.kind in "iuf"
        and not isinstance(values, np.ma.MaskedArray)
    ):
        return _grid_codes(column, _floats(values))
    return _grid_codes(column, np.fromiter(map(number_of, values), dtype=np.float64))


def plain_array(values: Any) -> Any:
    """An array of a class of its own as one of numpy's: what it overrides is not asked.

    Masked arrays stay, and are read one by one.
    """
    kind = type(values)
    if not issubclass(kind, np.ndarray) or kind is np.ndarray or kind is np.ma.MaskedArray:
        return values
    return (
        np.ma.array(values, subok=False)
        if issubclass(kind, np.ma.MaskedArray)
        else np.array(values, subok=False)
    )


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def _grid_codes(column: Real | Integer, numbers: NDArray[np.float64]) -> Codes:
    grid = column.encoding()
    with np.errstate(all="ignore"):
        known = np.where(np.isnan(numbers), column.fill, numbers)
        steps = np.floor((known - grid.center) * grid.per_unit + 0.5)
    return np.clip(steps, grid.low, grid.high).astype(np.int64)


def _whole_places(column: Integer, numbers: NDArray[np.float64]) -> Codes:
    with np.errstate(all="ignore"):
        known = np.floor(np.where(np.isnan(numbers), column.fill, numbers) + 0.5)
    return np.clip(known, column.low, column.high).astype(np.int64) - column.low
