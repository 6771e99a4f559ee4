"""Compiled passes over the rows of a loss, two bytes a cell; None where numba cannot be loaded, and
numpy then gives sums with the same claim (rows.py).

`products` and `digit_sums` add whole numbers below 2**52, exact in any order, or remainders whose
rounding the claim has; `values` computes one correctly rounded operation a step, none of which may
be reordered: a remainder that is added to a whole place before that place is taken off is lost.

Theorem.  A loop whose test passes reads and writes inside its arrays, whatever the rows hold.
Proof.    Rows and columns are counted by shapes that the test compares. A place in a table is
          between −reach and reach − 1 by comparisons that are false for what is no number, plus
          reach; that entry and the next are read of tables of 2·reach + 1.
Checked.  tests/claims/test_compiled_bounds.py
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from discreet.specs.estimating.tables import GAIN_BITS
from discreet.trusted.compiled import compiled
from discreet.trusted.extensions.estimating.loops import Loop, checked

VALUE_BITS = 30  # below ψ's own unit
DIGIT = 21  # products with columns and sums over BLOCK rows stay below 2**52
_INT16, _INT32 = np.dtype(np.int16), np.dtype(np.int32)
_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)


@functools.cache
def product_loop() -> Loop | None:
    """loop(matrix, high, low, place, rest) sets place = matrix·high and rest = matrix·low."""
    return checked(compiled(_products, nogil=True, fastmath={"reassoc"}), _products_fit)


@functools.cache
def value_loop() -> Loop | None:
    """loop(place, rest, response, weights, numbers, tables, digits) sets the three digits of each
    row's wψ, with numbers = (what a step of the response is in table entries, or 0 for mean
    families; reach; clip; top) and tables = (psi, mean, shift, gain).
    """
    return checked(compiled(_values, nogil=True), _values_fit)


@functools.cache
def sum_loop() -> Loop | None:
    """loop(matrix, digits, sums) adds the sums over rows of each digit times the row."""
    return checked(compiled(_digit_sums, nogil=True, fastmath={"reassoc"}), _sums_fit)


def _is(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    return type(array) is np.ndarray and array.dtype == dtype and array.shape == shape


def _products_fit(matrix: Any, high: Any, low: Any, place: Any, rest: Any) -> bool:
    shape = matrix.shape
    return (
        len(shape) == 2
        and _is(matrix, _INT16, shape)
        and all(_is(one, _FLOAT64, shape[1:]) for one in (high, low))
        and all(_is(one, _FLOAT64, shape[:1]) for one in (place, rest))
    )


def _values_fit(
    place: Any, rest: Any, response: Any, weights: Any, numbers: Any, tables: Any, digits: Any
) -> bool:
    unit, reach, _, _ = numbers
    rows, entries = response.shape, (2 * int(reach) + 1,)
    if not (
        len(rows) == 1
        and 1 <= reach <= 2.0**30
        and reach == int(reach)
        and all(_is(one, _FLOAT64, rows) for one in (place, rest))
        and all(_is(one, _INT32, rows) for one in (response, weights))
        and _is(digits, _FLOAT64, (3, *rows))
    ):
        return False
    psi, mean, shift, gain = tables
    if unit > 0:  # the others are not read
        return _is(psi, _INT32, entries)
    return _is(mean, _INT32, entries) and _is(shift, _INT32, entries) and _is(gain, _INT64, entries)


def _sums_fit(matrix: Any, digits: Any, sums: Any) -> bool:
    shape = matrix.shape
    return (
        len(shape) == 2
        and _is(matrix, _INT16, shape)
        and _is(digits, _FLOAT64, (3, shape[0]))
        and _is(sums, _FLOAT64, (3, shape[1]))
    )


def _products(matrix: Any, high: Any, low: Any, place: Any, rest: Any) -> None:
    for row in range(matrix.shape[0]):
        one, other = 0.0, 0.0
        for column in range(matrix.shape[1]):
            value = float(matrix[row, column])
            one += value * high[column]
            other += value * low[column]
        place[row] = one
        rest[row] = other


def _values(
    place: Any, rest: Any, response: Any, weights: Any, numbers: Any, tables: Any, digits: Any
) -> None:
    unit, reach, clip, top = numbers
    psi_table, mean, shift, gain = tables
    mask = (1 << DIGIT) - 1
    for row in range(place.size):
        at, left = place[row], rest[row]
        if unit > 0:
            at, left = response[row] * unit - at, -left
        whole = np.floor(at)
        whole = whole if whole > -reach else -reach
        whole = whole if whole < reach - 1 else reach - 1
        whole = whole + np.floor((at - whole) + left)
        whole = whole if whole > -reach else -reach
        whole = whole if whole < reach - 1 else reach - 1
        share = (at - whole) + left
        share = share if share > 0.0 else 0.0
        share = share if share < 1.0 else 1.0
        entry = int(whole) + int(reach)
        if unit > 0:
            first, second = int(psi_table[entry]), int(psi_table[entry + 1])
        else:
            code = min(max(int(response[row]), 0), top)
            low = ((code - mean[entry]) * gain[entry]) >> GAIN_BITS
            high = ((code - mean[entry + 1]) * gain[entry + 1]) >> GAIN_BITS
            first = int(shift[entry]) - min(max(low, -clip), clip)
            second = int(shift[entry + 1]) - min(max(high, -clip), clip)
        value = (first << VALUE_BITS) + int(np.rint((second - first) * share * 2.0**VALUE_BITS))
        moved = value * int(weights[row])
        digits[0, row] = moved & mask
        digits[1, row] = (moved >> DIGIT) & mask
        digits[2, row] = moved >> (2 * DIGIT)


def _digit_sums(matrix: Any, digits: Any, sums: Any) -> None:
    for row in range(matrix.shape[0]):
        first, second, third = digits[0, row], digits[1, row], digits[2, row]
        for column in range(matrix.shape[1]):
            value = float(matrix[row, column])
            sums[0, column] += first * value
            sums[1, column] += second * value
            sums[2, column] += third * value
