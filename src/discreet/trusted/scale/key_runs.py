"""Counts by undeclared keys that do not fit in memory: sorted runs of keys on disk, merged as they
are read.

Theorem.  Keys on disk have the names and counts of memory, in the same order, whatever the limit,
          the batches and the threads.
Proof.    As of tallies (tallies.py): a run is sorted with each name once, a merge takes all that is
          not above the least of the last names read, and adds whole numbers. Bytes of UTF-8 are in
          the order of the code points, which is that of Python's texts.
Checked.  tests/trusted/scale/test_key_runs.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from discreet.specs.statistics import DRAWN_KEYS, KeyCounts
from discreet.trusted.scale.spill import Place, Spill, read_table, written

PAGE_ROWS = 1 << 11  # keys of a run that are read together
SCHEMA = pa.schema([("name", pa.large_string()), ("count", pa.int64())])
Run = tuple[Spill, list[Place]]


def run_of(counts: Mapping[str, int], folder: str | None) -> Run:
    """Counts by key, on disk in the order of the keys."""
    names = pa.array(counts.keys(), pa.large_string())
    table = pa.table([names, pa.array(counts.values(), pa.int64())], schema=SCHEMA).sort_by("name")
    spill = Spill(folder)
    starts = range(0, len(table), PAGE_ROWS)
    return spill, [written(spill, table.slice(start, PAGE_ROWS)) for start in starts]


class StoredKeys:
    """`KeyCounts` on disk, which come in pieces."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    def pieces(self) -> Iterator[KeyCounts]:
        """The keys in order, so many at a time as noise is drawn for."""
        held, rows = [SCHEMA.empty_table()], 0
        for table in _merged([_pages(run) for run in self._runs]):
            held, rows = [*held, table], rows + len(table)
            while rows >= DRAWN_KEYS:
                whole = pa.concat_tables(held)
                yield _counts(whole.slice(0, DRAWN_KEYS))
                held, rows = [whole.slice(DRAWN_KEYS)], rows - DRAWN_KEYS
        if rows:
            yield _counts(pa.concat_tables(held))

    def __reduce__(self) -> Any:
        raise TypeError("keys on disk are not copied")


def _pages(run: Run) -> Iterator[Any]:
    spill, places = run
    return (read_table(spill, place) for place in places)


def _merged(runs: list[Iterator[Any]]) -> Iterator[Any]:
    """Tables of names in order, each once in all of them, and their counts."""
    heads = [(next(run), run) for run in runs]
    while heads:
        bound = min(head.column("name")[-1].as_py() for head, _ in heads)
        taken, rest = [], []
        for head, run in heads:
            few = pc.sum(pc.less_equal(head.column("name"), bound)).as_py()
            taken.append(head.slice(0, few))
            left = head.slice(few) if few < len(head) else next(run, None)
            rest += [] if left is None else [(left, run)]
        heads = rest
        found = pa.concat_tables(taken).group_by("name").aggregate([("count", "sum")])
        yield found.rename_columns(["name", "count"]).cast(SCHEMA).sort_by("name")


def _counts(table: Any) -> KeyCounts:
    return KeyCounts(table.column("name").to_pylist(), table.column("count").to_numpy())
