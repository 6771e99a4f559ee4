"""Compiled passes over the rows of a model, two bytes a cell; None where numba cannot be loaded,
and numpy then gives the same numbers.

Every sum here is a sum of whole numbers below 2**52, exact in any order; what else is computed is
one correctly rounded operation a step, with nothing to reorder or to contract.

Compiled code checks no index, so a size that does not fit would read other rows, or the heap.
Every loop is handed out with a test of its own, run in Python before each call, on shapes and
public numbers alone.

Theorem.  A loop whose test passes reads and writes inside its arrays, whatever the rows hold.
Proof.    Rows and columns are counted by shapes that the test compares. A place in a table is
          ⌊argument·per_scale + ½⌋ cut to ±reach, plus reach: the argument is finite (int16 cells
          times finite coefficients, a finite unit times int32), and so is its product with
          per_scale (|argument| ≤ 2**15·Σ|β| + 2**31·unit, whose product is tested). A finite
          number cut to ±reach gives 0 … 2·reach, for which the tables are long enough. A code is
          cut to first … last in the same way, and its table has last − first + 1 entries.
Checked.  tests/claims/test_compiled_bounds.py
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.specs.estimating.tables import GAIN_BITS, PSI_BITS
from discreet.trusted.compiled import compiled

Loop = Callable[..., Any]


@functools.cache
def gradient_loop() -> Loop | None:
    """loop(matrix, response, weights, beta, numbers, tables, sums) adds Σ m·x to `sums` and returns
    Σ ψ², with numbers = (2**eta_bits, or 0 for mean families; per_scale; reach; clip; top) and
    tables = (psi, mean, shift, gain).
    """
    return checked(_compiled(_gradient_rows), _gradient_fits)


@functools.cache
def norm_loop() -> Loop | None:
    """loop(z, norms) sets norms[i] = ‖⌈|z_i|⌉‖²; the quotient that weights take is left to numpy,
    since "reassoc" may move a division past a product.
    """
    return checked(_compiled(_norm_rows), _norms_fit)


@functools.cache
def place_loop() -> Loop | None:
    """loop(matrix, response, beta, numbers, places) sets each row's place in its family's tables;
    numbers = (2**eta_bits or 0, per_scale, reach).
    """
    return checked(_compiled(_place_rows), _places_fit)


@functools.cache
def gram_loop() -> Loop | None:
    """loop(matrix, multiplier, block, moved, sums) adds Σ m·x xᵀ to `sums`, tiles on and above the
    diagonal; `block` and `moved` are room for columns of some rows at a time, 0 beyond the columns.

    Whole numbers below 2**52 whether a product is rounded before it is added or not ("contract").
    """
    loop = compiled(_gram_rows, nogil=True, fastmath={"reassoc", "contract"})
    return checked(loop, _grams_fit)


@functools.cache
def encode_loop() -> Loop | None:
    """loop(values, limits, table, matrix, start, place) sets matrix[start + i, place] = table[code
    of values[i]], with limits = (low, high, missing, center, per_unit, lowest code, highest code):
    `kernels.clamp_and_encode`, then the table.
    """
    return checked(_compiled(_encode_rows, reorder=False), _encoding_fits)


def _compiled(function: Loop, *, reorder: bool = True) -> Loop | None:
    # "reassoc" lets exact sums be reordered, no more
    loop: Loop | None = compiled(function, nogil=True, fastmath={"reassoc"} if reorder else False)
    return loop


def checked(loop: Loop | None, fits: Callable[..., bool]) -> Loop | None:
    """A loop that is called only with arguments that fit it."""
    if loop is None:
        return None

    def call(*arguments: Any) -> Any:
        if not fits(*arguments):
            raise IndexError("the sizes or the numbers of a compiled pass do not fit together")
        return loop(*arguments)

    return call


GRAM_TILE = 4  # rows and columns of a tile of `_gram_rows`
_INT16, _INT32 = np.dtype(np.int16), np.dtype(np.int32)
_INT64, _FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)


def _is(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Whether an array has a dtype and a shape, in 0.1 microseconds: blocks can be small."""
    right = array.dtype is dtype or array.dtype == dtype
    return right and array.shape == shape and type(array) is np.ndarray


def _arguments_fit(
    matrix: Any, response: Any, beta: Any, unit: float, per_scale: float, reach: float
) -> bool:
    """Rows, coefficients and scale that two loops read: equal sizes, and only finite products."""
    shape = matrix.shape
    if len(shape) != 2 or not (
        _is(matrix, _INT16, shape)
        and _is(beta, _FLOAT64, shape[1:])
        and _is(response, _INT32, shape[:1])
    ):
        return False
    furthest = 2.0**15 * sum(map(abs, beta.tolist())) + 2.0**31 * unit
    return (
        unit >= 0
        and math.isfinite(furthest * per_scale)
        and 0 <= reach <= 2.0**30
        and reach == int(reach)
    )


def _gradient_fits(
    matrix: Any, response: Any, weights: Any, beta: Any, numbers: Any, tables: Any, sums: Any
) -> bool:
    unit, per_scale, reach, _, _ = numbers
    if not (
        _arguments_fit(matrix, response, beta, unit, per_scale, reach)
        and _is(weights, _INT32, response.shape)
        and _is(sums, _FLOAT64, beta.shape)
    ):
        return False
    entries = (2 * int(reach) + 1,)
    psi, mean, shift, gain = tables
    if unit > 0:  # the others are not read
        return _is(psi, _INT32, entries)
    return _is(mean, _INT32, entries) and _is(shift, _INT32, entries) and _is(gain, _INT64, entries)


def _places_fit(matrix: Any, response: Any, beta: Any, numbers: Any, places: Any) -> bool:
    return _arguments_fit(matrix, response, beta, *numbers) and _is(places, _INT64, response.shape)


def _norms_fit(z: Any, norms: Any) -> bool:
    shape, rows = np.shape(z), np.shape(norms)
    return (
        len(shape) == 2
        and len(rows) == 1
        and rows[0] <= shape[0]
        and _is(z, _FLOAT64, shape)
        and _is(norms, _FLOAT64, rows)
    )


def _grams_fit(matrix: Any, multiplier: Any, block: Any, moved: Any, sums: Any) -> bool:
    shape, kept = matrix.shape, block.shape
    return (
        len(shape) == len(kept) == 2
        and kept[0] % GRAM_TILE == 0
        and shape[1] <= kept[0]
        and kept[1] > 0
        and _is(matrix, _INT16, shape)
        and _is(multiplier, _FLOAT64, shape[:1])
        and _is(block, _FLOAT64, kept)
        and _is(moved, _FLOAT64, kept)
        and _is(sums, _FLOAT64, (kept[0], kept[0]))
    )


def _encoding_fits(
    values: Any, limits: Any, table: Any, matrix: Any, start: int, place: int
) -> bool:
    low, high, missing, center, per_unit, first, last = limits
    rows, shape = np.shape(values), matrix.shape
    if (
        len(rows) != 1
        or len(shape) != 2
        or not (
            0 <= start <= shape[0] - rows[0]
            and 0 <= place < shape[1]
            and _is(values, _FLOAT64, rows)
            and _is(matrix, _INT16, shape)
        )
    ):
        return False
    furthest = (max(abs(low), abs(high), abs(missing)) + abs(center)) * per_unit
    ordered = low <= high and first <= last and first == int(first) and last == int(last)
    return (
        ordered
        and math.isfinite(furthest)
        and all(map(math.isfinite, limits))
        and _is(table, _INT16, (int(last) - int(first) + 1,))
    )


def _gradient_rows(
    matrix: Any, response: Any, weights: Any, beta: Any, numbers: Any, tables: Any, sums: Any
) -> int:
    response_unit, per_scale, reach, clip, top = numbers
    psi_table, mean, shift, gain = tables
    squares = 0
    for row in range(matrix.shape[0]):
        argument = 0.0
        for column in range(beta.size):
            argument += matrix[row, column] * beta[column]
        if response_unit > 0:
            argument = response[row] * response_unit - argument
        place = int(min(max(np.floor(argument * per_scale + 0.5), -reach), reach)) + int(reach)
        if response_unit > 0:
            psi = int(psi_table[place])
        else:
            rest = ((min(max(int(response[row]), 0), top) - mean[place]) * gain[place]) >> GAIN_BITS
            psi = int(shift[place]) - min(max(rest, -clip), clip)
        squares += psi * psi
        product = int(weights[row]) * psi
        moved = float(-((-product) >> PSI_BITS) if product < 0 else product >> PSI_BITS)
        for column in range(beta.size):
            sums[column] += moved * matrix[row, column]
    return squares


def _place_rows(matrix: Any, response: Any, beta: Any, numbers: Any, places: Any) -> None:
    response_unit, per_scale, reach = numbers
    for row in range(matrix.shape[0]):
        argument = 0.0
        for column in range(beta.size):
            argument += matrix[row, column] * beta[column]
        if response_unit > 0:
            argument = response[row] * response_unit - argument
        places[row] = int(min(max(np.floor(argument * per_scale + 0.5), -reach), reach)) + int(
            reach
        )


def _norm_rows(z: Any, norms: Any) -> None:
    for row in range(norms.size):
        norm = 0.0
        for column in range(z.shape[1]):
            one = np.ceil(abs(z[row, column]))
            norm += one * one
        norms[row] = norm


def _gram_rows(matrix: Any, multiplier: Any, block: Any, moved: Any, sums: Any) -> None:
    """Sixteen sums at a time stay in registers while a tile's rows are passed over."""
    width = matrix.shape[1]
    for first in range(0, matrix.shape[0], block.shape[1]):
        rows = min(block.shape[1], matrix.shape[0] - first)
        for column in range(width):
            for row in range(rows):
                block[column, row] = float(matrix[first + row, column])
        for column in range(width):
            for row in range(rows):
                moved[column, row] = multiplier[first + row] * block[column, row]
        for i in range(0, width, 4):
            p, q, r, s = moved[i], moved[i + 1], moved[i + 2], moved[i + 3]
            for j in range(i, width, 4):
                a, b, c, d = block[j], block[j + 1], block[j + 2], block[j + 3]
                pa = pb = pc = pd = qa = qb = qc = qd = 0.0
                ra = rb = rc = rd = sa = sb = sc = sd = 0.0
                for k in range(rows):
                    pa, pb = pa + p[k] * a[k], pb + p[k] * b[k]
                    pc, pd = pc + p[k] * c[k], pd + p[k] * d[k]
                    qa, qb = qa + q[k] * a[k], qb + q[k] * b[k]
                    qc, qd = qc + q[k] * c[k], qd + q[k] * d[k]
                    ra, rb = ra + r[k] * a[k], rb + r[k] * b[k]
                    rc, rd = rc + r[k] * c[k], rd + r[k] * d[k]
                    sa, sb = sa + s[k] * a[k], sb + s[k] * b[k]
                    sc, sd = sc + s[k] * c[k], sd + s[k] * d[k]
                tile = ((pa, pb, pc, pd), (qa, qb, qc, qd), (ra, rb, rc, rd), (sa, sb, sc, sd))
                for down in range(4):
                    for along in range(4):
                        sums[i + down, j + along] += tile[down][along]


def _encode_rows(values: Any, limits: Any, table: Any, matrix: Any, start: int, place: int) -> None:
    low, high, missing, center, per_unit, first, last = limits
    for row in range(values.size):
        value = values[row]
        value = missing if value != value else min(max(value, low), high)
        code = min(max(np.floor((value - center) * per_unit + 0.5), first), last)
        matrix[start + row, place] = table[int(code - first)]
