"""The rounds of MWEM below the privacy line: a table that learns one measured count after another.

lecture   each count is used once, in its round; the answer is the mean of all rounds' tables
replay    all counts are used again in every round; the answer is the last table
"""

from __future__ import annotations

import numpy as np

from discreet.inference.mwem.weights import Weights
from discreet.inference.mwem.workload import Box
from discreet.inference.results.laws import Array

REPLAY, LECTURE = "replay", "lecture"
VARIANTS = (REPLAY, LECTURE)


class Learner:
    """A dense table over columns of `sizes`, for so many rows."""

    def __init__(self, sizes: tuple[int, ...], rows: float, variant: str) -> None:
        self._sizes, self._variant = sizes, variant
        self._weights = Weights(int(np.prod(sizes)), rows)
        self._numbers: dict[Box, int] = {}
        self._heard: list[list[float]] = []  # of each box, all its counts
        self._sum, self._rounds = 0.0 * self._weights.table(), 0

    def learn(self, box: Box, count: float) -> None:
        """One round: a measured count of a box."""
        if box not in self._numbers:
            self._numbers[box] = self._weights.add(box.mask(self._sizes))
            self._heard.append([])
        number = self._numbers[box]
        self._heard[number].append(count)
        if self._variant == LECTURE:
            self._weights.update(number, count)
            self._sum, self._rounds = self._sum + self._weights.table(), self._rounds + 1
        else:
            self._weights.replay([float(np.mean(counts)) for counts in self._heard])

    @property
    def table(self) -> Array:
        """The table that the next round compares with the data."""
        return self._weights.table().reshape(self._sizes)

    @property
    def answer(self) -> Array:
        """The table that is the answer."""
        if self._variant == LECTURE and self._rounds:
            return np.asarray(self._sum / self._rounds).reshape(self._sizes)
        return self.table

    @property
    def measured(self) -> dict[Box, tuple[float, int]]:
        """The mean of the counts of every box, and how many there were."""
        return {
            box: (float(np.mean(self._heard[number])), len(self._heard[number]))
            for box, number in self._numbers.items()
        }
