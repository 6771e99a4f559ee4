"""Sums of each unit's own rows, and of their squares and products over the units, exact.

Theorem.  The answer of a `UnitSumsPlan` is a sum over units of what follows from that unit's kept
          rows alone, equal on every engine.
Proof.    A batch holds all rows of each of its units (`Engine.fold`), of which `bounding` keeps at
          most max_rows; a row's label, cell and code follow from its unit and itself. A unit's
          sums are below 2**53, so adding them in float64 is exact; their halves' products fit the
          bits that are declared to `CellSums`.
Checked.  tests/claims/test_unit_sums.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.neighbors import LARGEST_MAX_ROWS
from discreet.specs.queries.unit_sums import LARGEST_CODE_BITS, UnitSumsPlan
from discreet.trusted.engines.engine import Engine, ObjectIntegers
from discreet.trusted.engines.kernels import CellSums
from discreet.trusted.engines.memory import MemoryEngine

HALF = LARGEST_CODE_BITS  # bits of the lower half of a unit's sum of codes
# of N, T and both halves: |S| ≤ 2**LARGEST_CODE_BITS · LARGEST_MAX_ROWS; products of two
PRODUCT_BITS = 2 * LARGEST_MAX_ROWS.bit_length()


def unit_sums(engine: Engine, plan: UnitSumsPlan) -> ObjectIntegers:
    """Σ over units of N, N·T, N² and, with a factor, S, N·S, S²: shape (cells, 3 or 6)."""
    terms = 3 if plan.factor is None else 10
    states = engine.fold(
        plan.columns,
        lambda: CellSums(plan.cells, [PRODUCT_BITS] * terms),
        lambda sums, _, batch: _add(sums, batch, plan),
    )
    total = np.asarray(sum((state.total() for state in states[1:]), states[0].total()))
    if plan.factor is None:
        return total
    low, high, n_low, n_high, low_low, low_high, high_high = total.T[3:]
    one = 1 << HALF
    squares = low_low + low_high * (2 * one) + high_high * one**2
    return np.column_stack([total[:, :3], low + high * one, n_low + n_high * one, squares])


def kept_units(batch: MemoryEngine) -> npt.NDArray[np.int64]:
    """A label of the unit of each row that counts."""
    return np.asarray(batch.select(batch.units()[0]))


def _add(sums: CellSums, batch: MemoryEngine, plan: UnitSumsPlan) -> None:
    """Adds the units of one batch."""
    codes: Any = None
    with batch.lock:
        cells, units = batch.cell_index(plan.keys), kept_units(batch)
        if plan.factor is not None:
            codes = batch.factor_codes(plan.factor)
    inside = cells >= 0
    units, cells = units[inside], cells[inside]
    pairs, place = np.unique(units * plan.cells + cells, return_inverse=True)
    count = np.bincount(place)
    here = pairs % plan.cells
    of_unit = np.bincount(units)[pairs // plan.cells]
    terms: list[tuple[npt.NDArray[Any], ...]] = [(count,), (count, of_unit), (count, count)]
    if codes is not None:
        total = np.bincount(place, codes[inside].astype(np.float64)).astype(np.int64)
        low, high = total & ((1 << HALF) - 1), total >> HALF
        terms += [(low,), (high,), (count, low), (count, high)]
        terms += [(low, low), (low, high), (high, high)]
    sums.add(here, terms)
