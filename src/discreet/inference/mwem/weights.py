"""A dense table that is bent towards measured counts by multiplicative weights.

Cells that every measured query treats alike keep equal weights, because the start is uniform and an
update multiplies all cells of a query by one number. So an update is one of patterns of cells, of
which there are few, and the dense table is written out only to be read.

Method.     A ← A·exp(q·(m − q(A))/2n), scaled to n: the update of the lectures (reference.md J1).
Reference.  Hardt, Ligett and McSherry (2012); docs/theory/mwem.md.

Everything here is post-processing of released counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from discreet.inference.results.laws import Array

LARGEST_EXPONENT = 50.0
MOST_PASSES = 100
MOST_WORK = 2 * 10**8  # numbers that the passes of one round go through
SETTLED = 1e-9  # of the rows: passes end where no query moves by more
Mask = npt.NDArray[np.bool_]


class Weights:
    """A table of `total` rows over so many cells, uniform at the start; `add` a query as a mask of
    cells, `update` towards a count of it.
    """

    def __init__(self, cells: int, total: float) -> None:
        self.total = max(float(total), 1.0)
        self._pattern = np.zeros(cells, dtype=np.int32)  # of each cell
        self._count = np.array([cells], dtype=np.int64)  # of cells of each pattern
        self._mass = np.array([self.total])  # of each pattern
        self._inside = np.zeros((0, 1), dtype=bool)  # (queries, patterns)

    @property
    def queries(self) -> int:
        return len(self._inside)

    def add(self, mask: Mask) -> int:
        """The number of a new query, which splits the patterns that it cuts."""
        split = 2 * self._pattern + mask.ravel()
        count = np.bincount(split, minlength=2 * len(self._count))
        kept = np.flatnonzero(count)
        name = np.zeros(len(count), dtype=np.int32)
        name[kept] = np.arange(len(kept), dtype=np.int32)
        parent = kept // 2
        self._mass = self._mass[parent] * (count[kept] / self._count[parent])
        self._inside = np.vstack([self._inside[:, parent], kept % 2 == 1])
        self._pattern, self._count = name[split], count[kept]
        return self.queries - 1

    def value(self, query: int) -> float:
        """What the table counts for a query."""
        return float(self._mass[self._inside[query]].sum())

    def update(self, query: int, measured: float) -> float:
        """One step towards a measured count; by how much the query was off."""
        inside = self._inside[query]
        off = measured - float(self._mass[inside].sum())
        exponent = off / (2 * self.total)
        self._mass[inside] *= math.exp(min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT))
        self._mass *= self.total / self._mass.sum()
        return off

    def replay(self, measured: Sequence[float]) -> int:
        """All queries again and again, in order, until nothing moves; how many passes."""
        most = max(1, min(MOST_PASSES, MOST_WORK // max(1, len(measured) * len(self._mass))))
        for done in range(1, most + 1):
            before = self._mass.copy()
            for query, count in enumerate(measured):
                self.update(query, count)
            if float(np.abs(self._mass - before).max()) <= SETTLED * self.total:
                return done
        return most

    def table(self) -> Array:
        """The weight of every cell, flat."""
        return np.asarray((self._mass / self._count)[self._pattern])
