"""Shares of cells that are missing, unreadable or out of range, by column."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from discreet.inference.counts.results import share_quantities
from discreet.inference.counts.shares import ShareStatistics
from discreet.inference.results.decode import as_kind, noise_of, to_float
from discreet.inference.results.laws import Noise
from discreet.inference.results.results import Quantity, Result
from discreet.specs.queries.cell_states import CellStates


class MissingResult(Result):
    """Counts and shares of the cells of each column that hold no value, cannot be read, or lie out
    of the declared range.

    *Validity*: intervals are for one column and state at a time; the population's are those of
    independent rows.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private shares of missing and unusable cells"
    about: ClassVar[str] = (
        "missing: nothing is there. unreadable: no value by the declaration. outside: counts as "
        "the nearest bound. count: of this data set. share: of the population."
    )

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        return share_quantities(self.statistics(), level, target)

    def statistics(self) -> ShareStatistics:
        """Noisy counts by column and state, and the rows they are of."""
        release = self.release
        query, mechanism = as_kind(release.query, CellStates), release.mechanism
        counts = to_float(mechanism, np.array(release.integers, dtype=object), 1.0)
        noise = noise_of(mechanism, 1.0)
        cells = counts[query.count :]
        total = float(counts[0]) if query.count else float(release.public_rows or 0)
        return ShareStatistics(
            cells,
            np.full(cells.shape, max(total, 1.0)),
            noise,
            Noise(0.0),
            release.neighbors.rows,
            True,
            noise if query.count else Noise(0.0),
        )
