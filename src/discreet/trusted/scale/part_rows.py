"""Random parts of rows that are on disk, a part at a time.

Theorem.  Parts have the rows, in the same order, that `assignment` gives them in memory for the
          same words.
Proof.    Words are dealt out by their first bits, in the order of rows: all words of a bucket are
          above those of the buckets before it, and sorting a bucket, equal words in the order of
          rows, gives each its place among all. Rows are dealt out by their part, in their order,
          and a part is in one bucket.
Checked.  tests/trusted/scale/test_part_rows.py
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.trusted.noise.assignment import Parts, independent_parts
from discreet.trusted.noise.source import Source
from discreet.trusted.scale.spill import Spill, StoredRows

BLOCK_ROWS = 1 << 16
WORDS = np.dtype([("word", np.uint64), ("row", np.int64)])
PLACES = np.dtype([("row", np.int64), ("part", np.int32)])


class Buckets:
    """Rows dealt out to numbered buckets in one file, in the order in which they come."""

    def __init__(self, folder: str | None, dtype: Any, count: int) -> None:
        spill = Spill(folder)
        self._rows = [StoredRows(spill, dtype, None) for _ in range(count)]

    def deal(self, number: int, rows: npt.NDArray[Any], bucket: npt.NDArray[np.int64]) -> None:
        """Puts each row of one block into its bucket."""
        order = np.argsort(bucket, kind="stable")
        cuts = np.searchsorted(bucket[order], np.arange(len(self._rows) + 1))
        for held, (low, high) in zip(self._rows, itertools.pairwise(cuts), strict=True):
            if low < high:
                held.put(number, rows[order[low:high]])

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (held.sealed()[:] for held in self._rows)


def rows_of_parts(
    cells: StoredRows, parts: int, source: Source, balanced: bool, held: int
) -> Iterator[npt.NDArray[Any]]:
    """The rows of each part, in their order, without those that are not kept; about `held` bytes
    are in memory at a time, or a part's rows.
    """
    dtype = np.dtype([("part", np.int32), ("cells", cells.dtype)])
    count = min(parts, _buckets(len(cells), dtype, held))
    buckets, start = Buckets(cells.folder, dtype, count), 0
    for number, part in enumerate(
        assigned_parts(source, len(cells), parts, balanced, cells.folder, held)
    ):
        rows = np.empty(len(part), dtype=dtype)
        rows["part"], rows["cells"] = part, cells[start : start + len(part)]
        start += len(part)
        rows = rows[rows["cells"]["kept"]]
        buckets.deal(number, rows, rows["part"].astype(np.int64) * count // parts)
    return _parted(buckets, parts, count)


def _parted(buckets: Buckets, parts: int, count: int) -> Iterator[npt.NDArray[Any]]:
    for number, bucket in enumerate(buckets):
        first, last = (-(-here * parts // count) for here in (number, number + 1))
        order = np.argsort(bucket["part"], kind="stable")
        cuts = np.searchsorted(bucket["part"][order], np.arange(first, last + 1))
        for low, high in itertools.pairwise(cuts):
            yield bucket["cells"][order[low:high]]


def assigned_parts(
    source: Source, rows: int, parts: int, balanced: bool, folder: str | None, held: int
) -> Iterator[Parts]:
    """`balanced_parts` or `independent_parts`, a block of rows at a time."""
    sizes = [min(BLOCK_ROWS, rows - start) for start in range(0, rows, BLOCK_ROWS)]
    if not balanced:
        return (independent_parts(source, size, parts) for size in sizes)
    count = _buckets(rows, WORDS, held)
    by_word = Buckets(folder, WORDS, count)
    for number, size in enumerate(sizes):
        drawn = np.empty(size, dtype=WORDS)
        drawn["word"] = source.uint64(size)
        drawn["row"] = np.arange(size) + number * BLOCK_ROWS
        first_bits = (drawn["word"] >> np.uint64(32)).astype(np.int64)
        by_word.deal(number, drawn, first_bits * count >> 32)
    return _in_order_of_rows(by_word, sizes, parts, _buckets(rows, PLACES, held), folder)


def _in_order_of_rows(
    by_word: Buckets, sizes: list[int], parts: int, count: int, folder: str | None
) -> Iterator[Parts]:
    by_row, done = Buckets(folder, PLACES, count), 0
    blocks = -(-len(sizes) // count)  # of rows, in a bucket
    for number, bucket in enumerate(by_word):
        found = np.empty(len(bucket), dtype=PLACES)
        found["row"] = bucket["row"][np.argsort(bucket["word"], kind="stable")]
        found["part"] = (np.arange(len(bucket)) + done) % parts
        done += len(bucket)
        by_row.deal(number, found, found["row"] // (BLOCK_ROWS * blocks))
    for bucket in by_row:
        part = bucket["part"][np.argsort(bucket["row"])]
        for start in range(0, len(part), BLOCK_ROWS):
            yield part[start : start + BLOCK_ROWS].astype(np.int64)


def _buckets(rows: int, dtype: Any, held: int) -> int:
    """How many buckets hold so many rows, a fourth of the bytes each."""
    return 1 + 4 * rows * int(dtype.itemsize) // held
