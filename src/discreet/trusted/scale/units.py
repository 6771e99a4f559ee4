"""The rows of units that count, dealt out and bounded once, then read again column by column.

Theorem.  A later pass over what is kept reads the same rows as the first, with the same units.
Proof.    Which rows of a unit count is a function of that unit's rows, all of which are in one
          bucket (unit_buckets.py); these rows are kept as they came, cell by cell, and no others,
          unit after unit. Their units' labels are put in the same order and kept beside them.
Checked.  tests/trusted/scale/test_units.py
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.trusted.engines.arrow_cells import cells_from_arrow
from discreet.trusted.engines.cells import Cells
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.scale.spill import Spill, read_table, written

if TYPE_CHECKING:
    from discreet.trusted.scale.limits import Limits

Readers = dict[str, Callable[[], Cells]]


class KeptUnits:
    """Rows that count, in buckets of whole units: in memory where they are few, else on disk."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._lock, self._bytes = limits, threading.Lock(), 0
        self._spill: Spill | None = None
        # the rows of each bucket, and where its columns are; that of None is the rows' units
        self._buckets: dict[int, tuple[int, Mapping[str | None, Any]]] = {}
        self.whole = False  # whether the pass that fills it came to its end

    def first(
        self, batch: MemoryEngine, columns: Mapping[str, Any], number: int
    ) -> Iterator[MemoryEngine]:
        """The batch that holds a bucket's rows, after those that count were kept."""
        with batch.lock:
            kept, units = batch.kept_rows(), batch.counted_units()
        order = np.argsort(units, kind="stable")
        chosen = pa.array(order if kept is None else kept[order])
        arrays: dict[str | None, Any] = {
            name: array.take(chosen) for name, array in columns.items()
        }
        arrays[None] = pa.array(units[order])
        with self._lock:
            self._bytes += sum(array.nbytes for array in arrays.values())
            if self._spill is None and self._bytes > self._limits.held:
                self._spill = Spill(self._limits.folder)
        held = {
            name: array if self._spill is None else written(self._spill, array)
            for name, array in arrays.items()
        }
        with self._lock:
            self._buckets[number] = (len(units), held)
        yield batch

    def count(self) -> int:
        """How many buckets there are."""
        return len(self._buckets)

    def buckets(self) -> Iterator[tuple[Readers, Callable[[], Any], int]]:
        """The readers of each bucket's columns, that of its rows' units, and how many they are."""
        for number in sorted(self._buckets):
            rows, held = self._buckets[number]
            readers: Readers = {
                name: functools.partial(self._cells, kept)
                for name, kept in held.items()
                if name is not None
            }
            yield readers, functools.partial(self._units, held[None]), rows

    def _units(self, kept: Any) -> Any:
        return self._cells(kept).values

    def _cells(self, kept: Any) -> Cells:
        if not isinstance(kept, tuple):
            return cells_from_arrow(kept)
        assert self._spill is not None
        return cells_from_arrow(read_table(self._spill, kept).column(0))
