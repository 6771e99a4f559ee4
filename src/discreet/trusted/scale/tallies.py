"""How many rows hold each value of a fine grid, where the values do not fit in memory: sorted runs
on disk, merged once.

Theorem.  A tally on disk has the places and counts of one in memory, in the same order, whatever
          the limit, the batches and the threads.
Proof.    A run is sorted, with each of its places once. A merge takes from every run all that is
          not above a bound, the least of the last places read of runs that go on: whatever was not
          read lies above it. So what is taken together holds all rows of its places; counts are
          added as whole numbers, and bounds rise.
Checked.  tests/trusted/scale/test_tallies.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.specs.statistics import Histogram, Integers, merged_histogram
from discreet.trusted.scale.spill import Spill, StoredRows

ENTRY_BYTES = 128  # of a place and its count, while they are merged in memory
PAGE_ROWS = 1 << 14  # entries of a tally that are read together


class Tally:
    """What one thread found: places and counts in memory, then in sorted runs on disk; without
    limits (tasks of a cluster, whose disks are not ours) all are in memory.
    """

    def __init__(self, cells: int, limits: Any) -> None:
        self._cells, self._folder = cells, None if limits is None else limits.folder
        self._most = None if limits is None else max(1, limits.held // ENTRY_BYTES)
        self._held: list[Histogram] = []
        self._entries = 0
        self._spill: Spill | None = None
        self._runs: list[StoredRows] = []

    def add(self, found: Histogram) -> None:
        """Adds the counts of a batch."""
        self._held.append(found)
        self._entries += len(found.places)
        if self._most is not None and self._entries > self._most:
            merged = merged_histogram(self._cells, self._held)
            self._held, self._entries = [merged], len(merged.places)
            if 2 * self._entries > self._most:
                self._put()

    def _put(self) -> None:
        merged = merged_histogram(self._cells, self._held)
        self._spill = self._spill or Spill(self._folder)
        run = StoredRows(self._spill, np.int64, 2)
        run.put(0, np.column_stack([merged.places, merged.counts]))
        self._runs.append(run.sealed())
        self._held, self._entries = [], 0

    @staticmethod
    def joined(states: Sequence[Tally]) -> Histogram | StoredHistogram:
        """The counts of all threads: in memory where nothing went to disk."""
        first = states[0]
        if first._most is None or not any(state._runs for state in states):
            held = [one for state in states for one in state._held]
            return merged_histogram(first._cells, held)
        for state in states:
            if state._held:
                state._put()
        runs = [run for state in states for run in state._runs]
        rows = max(1, first._most // (2 * len(runs)))
        return StoredHistogram.of(first._cells, first._folder, merged(runs, rows))


def merged(runs: Sequence[StoredRows], rows: int) -> Iterator[tuple[Integers, Integers]]:
    """The places of all runs in order, each once, and their counts, a few at a time: `rows` entries
    of each run are in memory.
    """
    starts = [0] * len(runs)
    while True:
        heads = [run[start : start + rows] for run, start in zip(runs, starts, strict=True)]
        going = [
            int(head[-1, 0])
            for run, start, head in zip(runs, starts, heads, strict=True)
            if start + len(head) < len(run)
        ]
        if going:
            bound = min(going)
            heads = [head[: np.searchsorted(head[:, 0], bound, side="right")] for head in heads]
        starts = [start + len(head) for start, head in zip(starts, heads, strict=True)]
        together = np.concatenate(heads)
        if not len(together):
            return
        together = together[np.argsort(together[:, 0], kind="stable")]
        begins = np.flatnonzero(np.diff(together[:, 0], prepend=-1))
        yield together[begins, 0], np.add.reduceat(together[:, 1], begins)


@dataclass(frozen=True, eq=False)
class StoredHistogram:
    """A `Histogram` on disk: what searches ask of one, and its places and counts in pieces.

    An entry is a place and the rows up to it; of each page the first of both is in memory.
    """

    cells: int
    entries: StoredRows
    firsts: Integers
    reached: Integers
    rows: int

    @classmethod
    def of(
        cls, cells: int, folder: str | None, pieces: Iterator[tuple[Integers, Integers]]
    ) -> StoredHistogram:
        """The histogram of places in order."""
        entries, upto = StoredRows(folder, np.int64, 2), 0
        for number, (places, counts) in enumerate(pieces):
            sums = np.cumsum(counts) + upto
            entries.put(number, np.column_stack([places, sums]))
            upto = int(sums[-1])
        entries = entries.sealed()
        starts = np.arange(0, len(entries), PAGE_ROWS)
        firsts = np.concatenate([entries[start : start + 1] for start in starts])
        return cls(cells, entries, firsts[:, 0], firsts[:, 1], upto)

    def below(self, place: int) -> int:
        """The number of rows in cells before `place`."""
        page = int(np.searchsorted(self.firsts, place, side="left")) - 1
        if page < 0:
            return 0
        held = self.entries[page * PAGE_ROWS : (page + 1) * PAGE_ROWS]
        return int(held[np.searchsorted(held[:, 0], place, side="left") - 1, 1])

    def folded(self, centre: int) -> StoredHistogram:
        """How many rows lie at each distance from a public centre (noise/search.py)."""
        folder = self.entries.folder
        below, above = (StoredRows(folder, np.int64, 2) for _ in range(2))
        for number, (places, counts) in enumerate(self.pieces()):
            distances = np.column_stack([np.abs(places - centre), counts])
            first = int(np.searchsorted(places, centre, side="left"))
            below.put(-number, distances[:first][::-1])
            above.put(number, distances[first:])
        sides = merged([below.sealed(), above.sealed()], PAGE_ROWS)
        return StoredHistogram.of(self.cells, folder, sides)

    def window(self, index: int, entries: int) -> tuple[Integers, Integers, int, int]:
        """About so many entries before and after the one that holds row number `index`: places,
        rows up to each after those before the first, how many places lie before the row's,
        and how many rows lie at least between that row and what is left out.
        """
        page = max(0, int(np.searchsorted(self.reached, index, side="left")) - 1)
        held = self.entries[page * PAGE_ROWS : (page + 1) * PAGE_ROWS + 1]
        here = page * PAGE_ROWS + int(np.searchsorted(held[:, 1], index, side="left"))
        first, last = max(0, here - entries), min(len(self.entries), here + entries + 1)
        some = self.entries[first:last]
        before = int(self.entries[first - 1 : first][0, 1]) if first else 0
        left_out = [index - before] * bool(first)
        left_out += [int(some[-1, 1]) + 1 - index] * (last < len(self.entries))
        upto = np.concatenate([[before], some[:, 1]])
        return some[:, 0], upto, here - first, min(left_out, default=1 << 62)

    def pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """Places and counts, a page at a time."""
        upto = 0
        for held in self.entries.blocks(PAGE_ROWS):
            yield held[:, 0], np.diff(held[:, 1], prepend=upto)
            upto = int(held[-1, 1])

    def __reduce__(self) -> Any:
        raise TypeError("a tally on disk is not copied")
