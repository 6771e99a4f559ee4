"""Sums of each unit's own rows, and of their squares and products over the units, exact.

Theorem.  The answer of a `UnitSumsPlan` is a sum over units of what follows from that unit's kept
          rows alone, equal on every engine.
Proof.    A batch holds all rows of each of its units (`Engine.fold`), of which `bounding` keeps at
          most max_rows; a row's label, cell and code follow from its unit and itself. A unit's
          sums are below 2**53, so adding them in float64 is exact; their halves' products fit the
          bits that are declared to `CellSums`. Compiled, rows are in the order of their units and
          sums are 64-bit: Σ|S| ≤ rows·h and |S| ≤ max_rows·h, so no entry of a batch is beyond
          rows·max_rows·h², which `Totals` is told and which must be below 2**62.
Checked.  tests/claims/test_unit_sums.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.neighbors import LARGEST_MAX_ROWS
from discreet.specs.queries.unit_sums import LARGEST_CODE_BITS, UnitSumsPlan
from discreet.trusted.compiled import compiled
from discreet.trusted.engines.engine import Engine, ObjectIntegers
from discreet.trusted.engines.kernels import (
    ACCUMULATOR_LIMIT,
    CACHED_ROWS,
    NUMBA_ROWS,
    CellSums,
    Totals,
    numba_encode,
)
from discreet.trusted.engines.memory import MemoryEngine

HALF = LARGEST_CODE_BITS  # bits of the lower half of a unit's sum of codes
# of N, T and both halves: |S| ≤ 2**LARGEST_CODE_BITS · LARGEST_MAX_ROWS; products of two
PRODUCT_BITS = 2 * LARGEST_MAX_ROWS.bit_length()
Integers = npt.NDArray[np.signedinteger[Any]]


def unit_sums(engine: Engine, plan: UnitSumsPlan) -> ObjectIntegers:
    """Σ over units of N, N·T, N² and, with a factor, S, N·S, S²: shape (cells, 3 or 6)."""
    states = engine.fold(
        plan.columns,
        lambda: _Sums(plan, engine.neighbors.rows),
        lambda sums, _, batch: sums.add(batch),
    )
    total = np.asarray(sum((state.total() for state in states[1:]), states[0].total()))
    return total if plan.factor is not None else total[:, :3]


class _Sums:
    """What one thread added up; a unit has at most `most` rows."""

    def __init__(self, plan: UnitSumsPlan, most: int) -> None:
        self._plan, self._most = plan, most
        self._runs = Totals((plan.cells, 6))
        self._halves = CellSums(plan.cells, [PRODUCT_BITS] * (3 if plan.factor is None else 10))

    def add(self, batch: MemoryEngine) -> None:
        """Adds the units of one batch."""
        plan, codes = self._plan, np.zeros(0, dtype=np.int16)
        with batch.lock:
            cells, units = batch.cell_index(plan.keys), batch.counted_units()
            if plan.factor is not None:
                codes = batch.factor_codes(plan.factor)
        largest = 1 if plan.factor is None else plan.factor.largest
        bound = len(units) * self._most * largest**2
        loop = numba_units() if bound < ACCUMULATOR_LIMIT and _pays(len(units)) else None
        if loop is None:
            self._add_arrays(cells, units.astype(np.int64), codes)
            return
        if not (units[:-1] <= units[1:]).all():
            order = np.argsort(units)
            cells, units, codes = cells[order], units[order], codes[order[: len(codes)]]
        loop(units, cells.astype(np.int32, copy=False), codes, self._runs.reserve(bound))

    def _add_arrays(self, cells: Integers, units: Integers, codes: Integers) -> None:
        plan, inside = self._plan, cells >= 0
        units, cells = units[inside], cells[inside]
        pairs, place = np.unique(units * plan.cells + cells, return_inverse=True)
        count = np.bincount(place)
        here = pairs % plan.cells
        of_unit = np.bincount(units)[pairs // plan.cells]
        terms: list[tuple[npt.NDArray[Any], ...]] = [(count,), (count, of_unit), (count, count)]
        if plan.factor is not None:
            total = np.bincount(place, codes[inside].astype(np.float64)).astype(np.int64)
            low, high = total & ((1 << HALF) - 1), total >> HALF
            terms += [(low,), (high,), (count, low), (count, high)]
            terms += [(low, low), (low, high), (high, high)]
        self._halves.add(here, terms)

    def total(self) -> ObjectIntegers:
        """Σ N, N·T, N², S, N·S, S²: Python integers of shape (cells, 6)."""
        total, found = self._halves.total(), self._runs.total()
        found[:, :3] += total[:, :3]
        if self._plan.factor is not None:
            low, high, n_low, n_high, low_low, low_high, high_high = total.T[3:]
            one = 1 << HALF
            squares = low_low + low_high * (2 * one) + high_high * one**2
            found[:, 3:] += np.column_stack([low + high * one, n_low + n_high * one, squares])
        return found


def _pays(rows: int) -> bool:
    """Whether the compiled loop pays, as for encoding."""
    return rows >= (CACHED_ROWS if numba_encode.cache_info().currsize else NUMBA_ROWS)


@functools.cache
def numba_units() -> Callable[..., None] | None:
    """loop(units, cells, codes, running) adds the sums of rows that are in the order of their
    units, or None where numba is not installed; without codes those of S stay as they are.

    It reads and writes inside its arrays: units, cells and codes are as long as the loop runs
    (checked before), and a cell outside `running` is none.
    Checked.  tests/claims/test_unit_sums.py::test_sums_are_the_same_compiled_and_not
    """
    loop = compiled(_unit_runs, nogil=True)
    if loop is None:
        return None

    def call(
        units: Integers, cells: Integers, codes: Integers, running: npt.NDArray[np.int64]
    ) -> None:
        arrays = [one.view() for one in (units, cells, codes)]
        for one in arrays:
            one.setflags(write=False)  # compiled once for arrays of both kinds
        fits = all(one.dtype.kind == "i" and one.ndim == 1 for one in arrays)
        fits = fits and len(units) == len(cells) and len(codes) in (0, len(units))
        if not fits or running.dtype != np.int64 or running.ndim != 2 or running.shape[1] != 6:
            raise IndexError("the sizes of a compiled sum of units do not fit together")
        loop(*arrays, np.zeros((len(running), 2), dtype=np.int64), running)

    return call


def _unit_runs(units: Any, cells: Any, codes: Any, held: Any, running: Any) -> None:
    first = 0
    while first < units.size:
        last, rows = first, 0
        while last < units.size and units[last] == units[first]:
            if 0 <= cells[last] < len(running):
                rows += 1
                held[cells[last], 0] += 1
                if codes.size:
                    held[cells[last], 1] += codes[last]
            last += 1
        for row in range(first, last):
            cell = cells[row]
            if 0 <= cell < len(running) and held[cell, 0] > 0:
                count, total = held[cell, 0], held[cell, 1]
                running[cell, 0] += count
                running[cell, 1] += count * rows
                running[cell, 2] += count * count
                running[cell, 3] += total
                running[cell, 4] += count * total
                running[cell, 5] += total * total
                held[cell, 0], held[cell, 1] = 0, 0
        first = last
