"""Many tables of counts in one pass over the rows, exact.

Theorem.  The answer of a `TablesPlan` is, for every table and cell, the number of kept rows whose
          cell on each of the table's axes is that cell's, equal on every engine.
Proof.    A row's place on an axis is the cell that its key gives it (`MemoryEngine.cell_index`, of
          that row alone) or, where it gives none, the axis's last cell if it has one; a row without
          a place on some axis is left out of that table. A table's cells are numbered with its last
          axis fastest, so that a row adds 1 to the number of its cell, in whole numbers below
          2**63; batches and threads add.
Checked.  tests/claims/test_marginals.py
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from discreet.specs.queries.keys import may_leave_out
from discreet.specs.queries.marginals import Axis, Counts, TablesPlan
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.memory import MemoryEngine

BLOCK = 1 << 14  # rows whose places stay in the cache while all tables are counted
Places = npt.NDArray[np.intp]


def table_counts(engine: Engine, plan: TablesPlan) -> Counts:
    """How many rows fall in each cell of each table."""
    states = engine.fold(
        plan.columns,
        lambda: [np.zeros(math.prod(plan.shape(table)), np.int64) for table in plan.tables],
        lambda totals, _, batch: _add(totals, batch, plan),
    )
    return [np.sum(parts, axis=0, dtype=np.int64) for parts in zip(*states, strict=True)]


def _add(totals: Counts, batch: MemoryEngine, plan: TablesPlan) -> None:
    """Adds the rows of one batch."""
    with batch.lock:
        places = [axis_places(batch, axis) for axis in plan.axes]
        rows = batch.counted_rows()
    gaps = {
        place
        for place, axis in enumerate(plan.axes)
        if not axis.absent and may_leave_out(axis.key, batch.schema)
    }
    largest = max(map(len, totals))
    step = BLOCK if largest <= BLOCK else max(BLOCK, rows)  # many cells are counted at one go
    for start in range(0, rows, step):
        block = [column[start : start + step] for column in places]
        for total, table in zip(totals, plan.tables, strict=True):
            cells = cells_of(block, table, plan.shape(table))
            for axis in gaps.intersection(table):
                cells = np.where(block[axis] < 0, len(total), cells)
            total += np.bincount(cells, minlength=len(total) + 1)[: len(total)]


def axis_places(batch: MemoryEngine, axis: Axis) -> Places:
    """The place of each kept row on an axis: its key's cell, else the last one, else −1."""
    cells = batch.cell_index((axis.key,)).astype(np.intp)
    return np.where(cells < 0, axis.key.size, cells) if axis.absent else cells


def cells_of(places: list[Places], table: tuple[int, ...], shape: tuple[int, ...]) -> Places:
    """The number of each row's cell in a table."""
    cells = places[table[0]]
    for place, size in zip(table[1:], shape[1:], strict=True):
        cells = cells * size + places[place]
    return cells
