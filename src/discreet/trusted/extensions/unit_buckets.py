"""Rows dealt out by their unit: buckets that fit in memory, each with all rows of its units.

Theorem.  Bounding the rows of each bucket by itself keeps the same rows as bounding all of them
          together.
Proof.    Which rows of a unit are kept is a function of that unit's rows and id (`bounding`), and
          all rows of a unit are in one bucket: the bucket is a function of the id's seed text,
          which equal ids share.
Checked.  tests/trusted/engines/test_unit_buckets.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.trusted.engines.arrow_cells import cells_from_arrow, plain
from discreet.trusted.engines.bounding import unit_seed
from discreet.trusted.engines.cells import unit_labels
from discreet.trusted.scale.spill import Place, Spill, read_table, written

HELD_BYTES = 1 << 26  # rows beyond are dealt out on disk
NAMED_ROWS = 1 << 16  # of which the texts of ids are in memory at a time
FEWEST_BUCKETS, MOST_BUCKETS = 16, 512
# a bucket's rows in memory, over its share of the bytes of the source, at most about so many
SPREAD = 8


def dealt(
    batches: Iterable[tuple[dict[str, Any], int]],
    unit: str,
    names: Sequence[str],
    size: int,
    limits: Any = None,
) -> Iterator[pa.Table]:
    """Tables of the named columns, each with all rows of its units; rows without an id are in none.

    `size` is about the number of bytes of the source (0: not known); `limits` say how much fits in
    memory, and where the rest goes.
    """
    most = HELD_BYTES if limits is None else min(HELD_BYTES, limits.held)
    held: list[pa.Table] = []
    buckets: Buckets | None = None
    for columns, _ in batches:
        held.append(pa.table({name: plain(columns[name]) for name in names}))
        if sum(table.nbytes for table in held) > most:
            if buckets is None:
                count = min(max(FEWEST_BUCKETS, SPREAD * size // most), MOST_BUCKETS)
                folder = None if limits is None else limits.folder
                buckets = Buckets(folder, unit, count if size else MOST_BUCKETS)
            buckets.deal(pa.concat_tables(held))
            held.clear()
    if buckets is None:
        if held:
            yield pa.concat_tables(held)
        return
    if held:
        buckets.deal(pa.concat_tables(held))
    yield from buckets.tables()


class Buckets:
    """The parts that rows are dealt to, in one file without a name."""

    def __init__(self, folder: str | None, unit: str, count: int) -> None:
        self._unit, self._spill = unit, Spill(folder)
        self._pieces: list[list[Place]] = [[] for _ in range(count)]

    def deal(self, table: pa.Table) -> None:
        """Writes each row to the part of its unit."""
        count = len(self._pieces)
        ids = table.column(self._unit)
        bucket = np.concatenate(
            [
                bucket_of_rows(ids.slice(start, NAMED_ROWS), count)
                for start in range(0, len(ids), NAMED_ROWS)
            ]
        )
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(count + 1))
        ordered = table.take(pa.array(order[ends[0] :]))
        for place in range(count):
            low, high = ends[place] - ends[0], ends[place + 1] - ends[0]
            if low < high:
                self._pieces[place].append(written(self._spill, ordered.slice(low, high - low)))

    def tables(self) -> Iterator[pa.Table]:
        """What was dealt, one part after another."""
        for pieces in self._pieces:
            if pieces:
                yield pa.concat_tables([read_table(self._spill, piece) for piece in pieces])


def bucket_of_rows(ids: Any, count: int) -> Any:
    """The bucket of each row, by its unit's id; −1 for a row without one."""
    labels, seeds = unit_labels(cells_from_arrow(ids))
    return np.array([*(unit_seed(text) % count for text in seeds), -1], dtype=np.int64)[labels]
