"""Compiled passes over the rows of a model, two bytes a cell; None where numba cannot be loaded, and numpy then gives the same numbers.

Every sum here is a sum of whole numbers below 2**52, exact in any order; what else is computed is one correctly rounded operation a step, with
nothing to reorder or to contract.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.queries.families import GAIN_BITS, PSI_BITS

Loop = Callable[..., Any]


@functools.cache
def gradient_loop() -> Loop | None:
    """loop(matrix, response, weights, beta, numbers, tables, sums) adds Σ m·x to `sums` and returns Σ ψ², with
    numbers = (2**eta_bits, or 0 for mean families; per_scale; reach; clip; top) and tables = (psi, mean, shift, gain).
    """
    return _compiled(_gradient_rows)


@functools.cache
def norm_loop() -> Loop | None:
    """loop(z, norms) sets norms[i] = ‖⌈|z_i|⌉‖²; the quotient that weights take is left to numpy, since "reassoc" may move a division past a product."""
    return _compiled(_norm_rows)


@functools.cache
def place_loop() -> Loop | None:
    """loop(matrix, response, beta, numbers, places) sets each row's place in its family's tables; numbers = (2**eta_bits or 0, per_scale, reach)."""
    return _compiled(_place_rows)


@functools.cache
def scale_loop() -> Loop | None:
    """loop(matrix, multiplier, block, moved) sets block = matrix and moved = multiplier·matrix, row by row, as float64."""
    return _compiled(_scale_rows)


@functools.cache
def encode_loop() -> Loop | None:
    """loop(values, limits, table, matrix, start, place) sets matrix[start + i, place] = table[code of values[i]], with
    limits = (low, high, missing, center, per_unit, lowest code, highest code): `kernels.clamp_and_encode`, then the table.
    """
    return _compiled(_encode_rows, reorder=False)


def _compiled(function: Loop, *, reorder: bool = True) -> Loop | None:
    try:
        numba: Any = importlib.import_module("numba")
    except Exception:  # not installed, or broken: numpy gives the same numbers, and a release must not fail for it after its debit
        return None
    options: dict[str, Any] = {"nogil": True, "fastmath": {"reassoc"} if reorder else False}  # "reassoc" lets exact sums be reordered, no more
    try:
        compiled: Loop = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable place for the compiled code
        compiled = numba.njit(**options)(function)
    return compiled


def _gradient_rows(matrix: Any, response: Any, weights: Any, beta: Any, numbers: Any, tables: Any, sums: Any) -> int:
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
        places[row] = int(min(max(np.floor(argument * per_scale + 0.5), -reach), reach)) + int(reach)


def _norm_rows(z: Any, norms: Any) -> None:
    for row in range(norms.size):
        norm = 0.0
        for column in range(z.shape[1]):
            one = np.ceil(abs(z[row, column]))
            norm += one * one
        norms[row] = norm


def _scale_rows(matrix: Any, multiplier: Any, block: Any, moved: Any) -> None:
    for row in range(matrix.shape[0]):
        factor = multiplier[row]
        for column in range(matrix.shape[1]):
            value = float(matrix[row, column])
            block[row, column] = value
            moved[row, column] = factor * value


def _encode_rows(values: Any, limits: Any, table: Any, matrix: Any, start: int, place: int) -> None:
    low, high, missing, center, per_unit, first, last = limits
    for row in range(values.size):
        value = values[row]
        value = missing if value != value else min(max(value, low), high)
        code = min(max(np.floor((value - center) * per_unit + 0.5), first), last)
        matrix[start + row, place] = table[int(code - first)]
