"""How much of a data set is in memory at a time, and where the rest may be.

The limit is about what passes take beside Python and the libraries themselves. All sizes follow
from it and from public facts: the number of columns, of threads, and of bytes of a source.
"""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from typing import Any

from discreet import plain
from discreet.errors import data
from discreet.trusted.engines.batches import BATCH_ROWS
from discreet.trusted.engines.kernels import MOST_THREADS

DEFAULT = 1 << 30
BASE = 1 << 26  # what a pass takes beside its batches
CELL_BYTES = (
    384  # of a batch: a cell as given, read, as numbers and as codes, and what is kept of it
)
LEAST_ROWS = 1 << 12  # of a batch
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory` bytes of rows, and the folder of what is kept on disk (None: nothing is)."""

    memory: int = DEFAULT
    folder: str | None = None

    @property
    def held(self) -> int:
        """Bytes of rows that are kept in memory before they go to disk."""
        return self.memory // 16

    def threads(self, columns: int) -> int:
        """How many threads may each hold a batch."""
        most = (self.memory - BASE) // (CELL_BYTES * LEAST_ROWS * max(1, columns))
        return max(1, min(os.cpu_count() or 1, MOST_THREADS, most))

    def batch_rows(self, columns: int, most: int = BATCH_ROWS) -> int:
        """Rows of a batch of so many columns, at most `most`."""
        rows = (self.memory - BASE) // (CELL_BYTES * max(1, columns) * self.threads(columns))
        return min(most, max(LEAST_ROWS, rows))


def limits(memory: Any, folder: Any, columns: int) -> Limits:
    """What a caller asked for; too little is refused with the least that works."""
    size = DEFAULT if memory is None else _bytes_of(memory)
    least = BASE + CELL_BYTES * LEAST_ROWS * max(1, columns)
    if size < least:
        raise data.limit_too_small(memory, -(-least // 10**6))
    if folder is None:
        return Limits(size, None)
    place = (
        tempfile.gettempdir()
        if folder == "temporary"
        else os.path.abspath(plain.path(folder, "cache="))
    )
    if not (os.path.isdir(place) and os.access(place, os.W_OK | os.X_OK)):
        raise data.no_cache_folder()
    return Limits(size, place)


def _bytes_of(given: Any) -> int:
    """A number of bytes, or its text with a unit."""
    if type(given) is int:
        return given
    found = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", given) if type(given) is str else None
    )
    if found is None or found[2].upper() not in UNITS or len(found[1]) > 20:
        raise data.not_a_limit()
    return int(float(found[1]) * UNITS[found[2].upper()])
