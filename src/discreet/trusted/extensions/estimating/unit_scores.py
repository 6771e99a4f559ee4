"""Σ g gᵀ over units, g the sum of m·x over one unit's rows: what a clustered variance is made of.

Theorem.  The answer is exact, the same in any order of rows and units, and a unit's g follows from
          its own rows alone.
Proof.    |m| ≤ 2**LEAN_BITS and |x| ≤ 2**UNIT_BITS are whole numbers, and at most max_rows rows are
          one unit's, so that sums in float64 stay below 2**53 and are exact. g is cut in two halves
          whose products `gram` adds up exactly, and Σ g gᵀ is put together from them as Python
          integers.
Checked.  tests/claims/test_unit_scores.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from discreet.specs.estimating.model import EstimatingPlan
from discreet.specs.queries.plans import BLOCK_ROWS, FLOAT_BITS
from discreet.trusted.engines.kernels import gram
from discreet.trusted.extensions.estimating.kernels import GRADIENT_ROWS, ModelData, multipliers


def unit_score_sums(
    data: ModelData,
    weights: npt.NDArray[np.int32],
    plan: EstimatingPlan,
    units: Iterable[tuple[slice, npt.NDArray[np.int64]]],
) -> npt.NDArray[np.object_]:
    """Σ g gᵀ: Python integers of shape (columns, columns); `units` are slices of rows that hold
    whole units, with the label of each row's unit.
    """
    width = data.matrix.shape[1]
    total = np.zeros((width, width), dtype=object)
    for rows, labels in units:
        total += _gram_of_units(_unit_sums(data, weights, plan, rows, labels))
    return total


def _unit_sums(
    data: ModelData,
    weights: npt.NDArray[np.int32],
    plan: EstimatingPlan,
    whole: slice,
    units: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """The vector g of each unit of some rows: shape (units, columns)."""
    matrix, multiplier = data.matrix[whole], np.empty(len(units))
    for start in range(0, len(units), GRADIENT_ROWS):
        block = matrix[start : start + GRADIENT_ROWS].astype(np.float64)
        rows = slice(whole.start + start, whole.start + start + len(block))
        multiplier[start : start + len(block)] = multipliers(
            plan, weights[rows], block, data.response[rows], None
        )
    sums = np.empty((int(units.max(initial=-1)) + 1, matrix.shape[1]), dtype=np.int64)
    for place in range(matrix.shape[1]):
        sums[:, place] = np.bincount(units, multiplier * matrix[:, place], len(sums))
    return sums


def _gram_of_units(sums: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    """Σ g gᵀ of vectors of whole numbers."""
    width = sums.shape[1]
    half = (int(np.abs(sums).max(initial=0)).bit_length() + 1) // 2
    halves = np.hstack([sums >> half, sums & ((1 << half) - 1)])
    bits = 2 * (half + 1)
    block_rows = min(BLOCK_ROWS, 1 << (FLOAT_BITS - bits))

    def blocks() -> Iterator[tuple[npt.NDArray[np.int64], ...]]:
        for start in range(0, len(halves), BLOCK_ROWS):
            yield tuple(halves[start : start + BLOCK_ROWS].T)

    found = gram(blocks(), 2 * width, block_rows, bits)
    high, mixed, low = found[:width, :width], found[:width, width:], found[width:, width:]
    return np.asarray(high * (1 << 2 * half) + (mixed + mixed.T) * (1 << half) + low)
