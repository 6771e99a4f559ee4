"""Cells on disk, in files that have no name: bytes are written once and read by their place.

Theorem.  Nobody but this process (and its children) reads what was written, and it is gone when the
          last of them ends, however it ends.
Proof.    The file is made without a name, or its name is removed before a byte is written, with
          mode 0600; the system frees a file without a name when nobody holds it open.
Checked.  tests/trusted/scale/test_spill.py
"""

from __future__ import annotations

import itertools
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Place = tuple[int, int]  # where bytes begin, and how many they are
BLOCK_ROWS = 1 << 18
PAGE_ROWS = 256  # rows that are read together where single rows are asked for


def _bytes_of(rows: Any) -> memoryview:
    """An array as bytes, in place."""
    return memoryview(rows.reshape(-1).view(np.uint8))


class Spill:
    """One file without a name; reads are plain reads, because mapped pages count as memory."""

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock, self._end, self._process = threading.Lock(), 0, os.getpid()

    def append(self, given: Any) -> Place:
        """Writes bytes behind all others, from any thread; where they are."""
        view = memoryview(given).cast("B")
        with self._lock:
            start, self._end = self._end, self._end + len(view)
        self.write(start, view)
        return start, len(view)

    def write(self, start: int, view: memoryview) -> None:
        """Bytes at a place; a full disk raises, and so does a process that forked: what it wrote
        would stand over what its parent writes.
        """
        if os.getpid() != self._process:
            raise OSError("a file without a name is another process's")
        done = 0
        while done < len(view):
            done += os.pwrite(self._file.fileno(), view[done:], start + done)

    def read_into(self, start: int, view: memoryview) -> None:
        """The bytes of a place; fewer than were written raise."""
        done = 0
        while done < len(view):
            found = os.preadv(self._file.fileno(), [view[done:]], start + done)
            if not found:
                raise OSError("a file without a name lost bytes")
            done += found

    def read(self, place: Place) -> npt.NDArray[np.uint8]:
        """The bytes of a place."""
        found = np.empty(place[1], dtype=np.uint8)
        self.read_into(place[0], _bytes_of(found))
        return found

    def __reduce__(self) -> Any:
        raise TypeError("cells on disk are not copied")


class StoredRows:
    """Rows of an array on disk, which kernels read by slices and by places like an array.

    They come in numbered batches, in any order and from several threads, and are in the order of
    these numbers after `sealed`. Their place is a folder, or a file that others are in too.
    """

    def __init__(self, place: Spill | str | None, dtype: Any, width: int | None) -> None:
        self.dtype, self._width = np.dtype(dtype), width
        self._spill = place if isinstance(place, Spill) else Spill(place)
        self._bytes = self.dtype.itemsize * (1 if width is None else width)
        self._pieces: dict[int, tuple[int, int]] = {}  # by number: where, and how many rows
        self._begins: list[int] = []
        self._starts = np.zeros(1, dtype=np.int64)

    def put(self, number: int, rows: npt.NDArray[Any]) -> None:
        """The rows of one batch."""
        held = np.ascontiguousarray(rows, dtype=self.dtype)
        start, _ = self._spill.append(held) if held.size else (0, 0)
        self._pieces[number] = (start, len(held))

    def sealed(self) -> StoredRows:
        """These rows, all of which were put."""
        pieces = [self._pieces[number] for number in sorted(self._pieces)]
        self._begins = [start for start, _ in pieces]
        self._starts = np.cumsum([0, *(rows for _, rows in pieces)])
        return self

    @property
    def folder(self) -> str | None:
        """Where the file is."""
        return self._spill.folder

    def beside(self, dtype: Any) -> StoredRows:
        """Room for one number beside each row."""
        room = StoredRows(self.folder, dtype, None)
        room._pieces[0] = (0, len(self))
        return room.sealed()

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return (len(self),) if self._width is None else (len(self), self._width)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, asked: slice) -> npt.NDArray[Any]:
        start, stop, _ = asked.indices(len(self))
        found = np.empty((max(0, stop - start), *self.shape[1:]), dtype=self.dtype)
        self._move(start, stop, found, self._spill.read_into)
        return found

    def __setitem__(self, asked: slice, values: Any) -> None:
        start, stop, _ = asked.indices(len(self))
        held = np.empty((max(0, stop - start), *self.shape[1:]), dtype=self.dtype)
        held[...] = values
        self._move(start, stop, held, self._spill.write)

    def _move(self, start: int, stop: int, rows: npt.NDArray[Any], move: Any) -> None:
        view = _bytes_of(rows)
        piece = int(np.searchsorted(self._starts, start, side="right")) - 1
        while start < stop:
            last = min(stop, int(self._starts[piece + 1]))
            size = (last - start) * self._bytes
            within = (start - int(self._starts[piece])) * self._bytes
            move(self._begins[piece] + within, view[:size])
            start, piece, view = last, piece + 1, view[size:]

    def take(self, asked: npt.NDArray[np.int64], axis: int = 0) -> npt.NDArray[Any]:
        """Rows by their numbers, a page of which is read once; one beyond the last is refused."""
        if len(asked) and not 0 <= asked.min() <= asked.max() < len(self):
            raise IndexError("rows that are not there")
        found = np.empty((len(asked), *self.shape[1:]), dtype=self.dtype)
        order = np.argsort(asked, kind="stable")
        pages = asked[order] // PAGE_ROWS
        cuts = [*np.flatnonzero(np.diff(pages, prepend=-1)), len(order)]
        for low, high in itertools.pairwise(cuts):
            first = int(pages[low]) * PAGE_ROWS
            some = order[low:high]
            found[some] = self[first : first + PAGE_ROWS][asked[some] - first]
        return found

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[npt.NDArray[Any]]:
        """All rows, a block at a time."""
        for start in range(0, len(self), rows):
            yield self[start : start + rows]

    def min(self) -> Any:
        """The least entry."""
        return min(block.min() for block in self.blocks())


def written(spill: Spill, column: Any) -> Place:
    """Where an Arrow column, or a table, is on disk now."""
    table = column if isinstance(column, pa.Table) else pa.table({"": column})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return spill.append(sink.getvalue())


def read_table(spill: Spill, place: Place) -> Any:
    """The table that was written."""
    return pa.ipc.open_stream(pa.py_buffer(spill.read(place))).read_all()
