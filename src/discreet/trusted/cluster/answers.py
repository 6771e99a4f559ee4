"""An answer as whole numbers at places, which are added wherever they meet, and back.

Theorem.  Answers of parts of the rows, added place by place, are the answer of all rows.
Proof.    Each entry of an answer has one place, the same in the answer of every part and in that of
          no rows at all, which says the shape; entries are sums over rows (docs/theory/scale.md).
Checked.  tests/trusted/cluster/test_cluster_engine.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.statistics import Histogram, KeyCounts, key_counts

Placed = tuple[npt.NDArray[np.int64], list[int]]


def size_of(answer: Any) -> int:
    """How many places an answer has."""
    if hasattr(answer, "pieces"):
        return int(answer.cells)
    if isinstance(answer, (list, tuple)):
        return sum(map(size_of, answer))
    return int(np.asarray(answer, dtype=object).size)


def placed(answer: Any, start: int = 0) -> Iterator[Placed]:
    """The places of an answer from `start` on that hold something, and what they hold."""
    if isinstance(answer, (list, tuple)):
        for part in answer:
            yield from placed(part, start)
            start += size_of(part)
    elif hasattr(answer, "pieces"):  # a histogram
        for places, counts in answer.pieces():
            yield places + start, counts.tolist()
    else:
        entries = np.asarray(answer, dtype=object).reshape(-1)
        held = np.flatnonzero(entries)
        yield held + start, [int(entry) for entry in entries[held]]


def put_together(none: Any, totals: Mapping[int, int], start: int = 0) -> Any:
    """The answer with these totals; `none` is the answer of no rows."""
    if isinstance(none, (list, tuple)):
        parts = []
        for part in none:
            parts.append(put_together(part, totals, start))
            start += size_of(part)
        return type(none)(parts)
    if isinstance(none, Histogram):
        places = sorted(place for place in totals if start <= place < start + none.cells)
        return Histogram(
            none.cells,
            np.array(places, dtype=np.int64) - start,
            np.array([totals[place] for place in places], dtype=np.int64),
        )
    if not isinstance(none, np.ndarray):
        return totals.get(start, 0)
    found = np.array([totals.get(start + place, 0) for place in range(none.size)], dtype=object)
    return found.reshape(none.shape).astype(none.dtype)


def counted_names(totals: Mapping[bytes, int]) -> KeyCounts:
    """Counts by key, of totals by the bytes of the keys."""
    names = [name.decode("utf-8") for name in totals]
    return key_counts(names, np.array(list(totals.values()), dtype=np.int64))
