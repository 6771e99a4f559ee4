"""How many rows hold each value of a grid: the one statistic that medians, quantiles and all order statistics read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tally:
    """Counts on a grid of `cells` cells: `places` are the cells that hold rows, in order, `counts` how many each holds.

    Private: it never leaves the session. Only cells with rows are kept, so a grid of 2**32 cells costs no more than its rows.
    """

    cells: int
    places: Integers
    counts: Integers

    def __post_init__(self) -> None:
        assert self.places.dtype == self.counts.dtype == np.int64
        assert len(self.places) == len(self.counts)

    @cached_property
    def upto(self) -> Integers:
        """upto[j]: the rows in the first j occupied cells; one entry more than `places`."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.counts)])

    @property
    def rows(self) -> int:
        return int(self.upto[-1])

    def below(self, place: int) -> int:
        """The number of rows in cells before `place`."""
        return int(self.upto[np.searchsorted(self.places, place, side="left")])


def tally_of_cells(cells: int, values: npt.NDArray[np.signedinteger]) -> Tally:
    """The tally of one cell number a row."""
    if cells <= 1 << 22:
        counts = np.bincount(values, minlength=cells) if len(values) else np.zeros(cells, dtype=np.int64)
        places = np.flatnonzero(counts)
        return Tally(cells, places.astype(np.int64), counts[places].astype(np.int64))
    places, counts = np.unique(values, return_counts=True)
    return Tally(cells, places.astype(np.int64), counts.astype(np.int64))
