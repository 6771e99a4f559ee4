"""Rows dealt out by their unit: buckets that fit in memory, each with all rows of its units.

Theorem.  Bounding the rows of each bucket by itself keeps the same rows as bounding all of them
          together.
Proof.    Which rows of a unit are kept is a function of that unit's rows and id (`bounding`), and
          all rows of a unit are in one bucket: the bucket is a function of the id's seed text,
          which equal ids share.
Checked.  tests/trusted/engines/test_unit_buckets.py
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.trusted.engines.arrow_cells import cells_from_arrow, plain
from discreet.trusted.engines.bounding import unit_seed
from discreet.trusted.engines.cells import unit_labels

HELD_BYTES = 1 << 26  # rows beyond are dealt out on disk
FEWEST_BUCKETS, MOST_BUCKETS = 16, 512
# a bucket's rows in memory, over its share of the bytes of the files, at most about so many
SPREAD = 8


def dealt(
    batches: Iterable[tuple[dict[str, Any], int]],
    unit: str,
    names: Sequence[str],
    folder: str,
    size: int,
) -> Iterator[pa.Table]:
    """Tables of the named columns, each with all rows of its units; rows without an id are in none.

    `size` is the number of bytes of the files,
    and `folder` a private place on disk for what does not fit in memory.
    """
    held: list[pa.Table] = []
    buckets: Buckets | None = None
    for columns, _ in batches:
        held.append(pa.table({name: plain(columns[name]) for name in names}))
        if sum(table.nbytes for table in held) > HELD_BYTES:
            buckets = buckets or Buckets(
                folder, unit, min(max(FEWEST_BUCKETS, SPREAD * size // HELD_BYTES), MOST_BUCKETS)
            )
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
    """The files that rows are dealt to."""

    def __init__(self, folder: str, unit: str, count: int) -> None:
        self._unit, self._count = unit, count
        self._paths = [os.path.join(folder, f"bucket-{place}.arrow") for place in range(count)]
        self._writers: dict[int, Any] = {}

    def deal(self, table: pa.Table) -> None:
        """Writes each row to the file of its unit."""
        bucket = bucket_of_rows(table.column(self._unit), self._count)
        order = np.argsort(bucket, kind="stable")
        ends = np.searchsorted(bucket[order], np.arange(self._count + 1))
        ordered = table.take(pa.array(order[ends[0] :]))
        for place in range(self._count):
            low, high = ends[place] - ends[0], ends[place + 1] - ends[0]
            if low < high:
                if place not in self._writers:
                    self._writers[place] = pa.ipc.new_stream(self._paths[place], table.schema)
                self._writers[place].write_table(ordered.slice(low, high - low))

    def tables(self) -> Iterator[pa.Table]:
        """What was dealt, one file after another; a file is removed when it was read."""
        for writer in self._writers.values():
            writer.close()
        for place in self._writers:
            with pa.OSFile(self._paths[place]) as file:
                table = pa.ipc.open_stream(file).read_all()
            os.remove(self._paths[place])
            yield table


def bucket_of_rows(ids: Any, count: int) -> Any:
    """The bucket of each row, by its unit's id; −1 for a row without one."""
    labels, seeds = unit_labels(cells_from_arrow(ids))
    return np.array([*(unit_seed(text) % count for text in seeds), -1], dtype=np.int64)[labels]
