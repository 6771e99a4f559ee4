"""How many rows hold each value of a grid, the one statistic that medians and quantiles read,
or each key that nobody declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
COUNTED_CELLS = 1 << 22  # up to this many cells all of them are counted; beyond, values are sorted
DRAWN_KEYS = 1 << 16  # undeclared keys whose noise is drawn at a time


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts on a grid of `cells` cells: `places` are the cells that hold rows, in order,
    `counts` how many each holds.

    Private: it never leaves the session. Only cells with rows are kept,
    so a grid of 2**32 cells costs no more than its rows.
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

    def pieces(self) -> Iterator[tuple[Integers, Integers]]:
        """Places and counts, all at once; those of a histogram on disk come in several pieces."""
        yield self.places, self.counts


def histogram_of_counts(counts: Integers) -> Histogram:
    """The histogram of a count for every cell."""
    places = np.flatnonzero(counts)
    return Histogram(
        len(counts),
        places.astype(np.int64, copy=False),
        counts[places].astype(np.int64, copy=False),
    )


def histogram_of_cells(cells: int, values: npt.NDArray[np.signedinteger]) -> Histogram:
    """The histogram of one cell number a row."""
    if cells <= COUNTED_CELLS:
        return histogram_of_counts(
            np.bincount(values, minlength=cells) if len(values) else np.zeros(cells, dtype=np.int64)
        )
    places, counts = np.unique(values, return_counts=True)
    return Histogram(cells, places.astype(np.int64), counts.astype(np.int64))


def merged_histogram(cells: int, histograms: Sequence[Histogram]) -> Histogram:
    """The histogram of all rows, from those of parts of them."""
    if not histograms:
        return Histogram(cells, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    places, inverse = np.unique(
        np.concatenate([histogram.places for histogram in histograms]), return_inverse=True
    )
    counts = np.zeros(len(places), dtype=np.int64)
    np.add.at(counts, inverse, np.concatenate([histogram.counts for histogram in histograms]))
    return Histogram(cells, places, counts)


@dataclass(frozen=True, eq=False)
class KeyCounts:
    """Counts of rows by keys that nobody declared:
    `names` in the order of their text, `counts` at least 1 each.

    Private: it never leaves the session, the names no more than the counts.
    """

    names: Sequence[str]
    counts: Integers

    def __post_init__(self) -> None:
        assert self.counts.dtype == np.int64
        assert len(self.names) == len(self.counts)

    def pieces(self) -> Iterator[KeyCounts]:
        """The keys in order, so many at a time as noise is drawn for."""
        for start in range(0, len(self.names), DRAWN_KEYS):
            some = slice(start, start + DRAWN_KEYS)
            yield KeyCounts(self.names[some], self.counts[some])


def key_counts(names: Sequence[str], counts: Integers) -> KeyCounts:
    """Names, each once, and their counts, put in order; a name without rows is left out."""
    order = sorted((place for place in range(len(names)) if counts[place]), key=names.__getitem__)
    return KeyCounts([names[place] for place in order], np.asarray(counts, dtype=np.int64)[order])
