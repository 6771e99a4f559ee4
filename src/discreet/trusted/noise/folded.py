"""A histogram seen from a public centre."""

from __future__ import annotations

import numpy as np

from discreet.specs.statistics import Histogram


def folded(histogram: Histogram, centre: int) -> Histogram:
    """How many rows lie at each distance, in cells, from a public centre.

    Theorem.  Folding a histogram at a cell that is public changes how neighbours differ (`Rows`) in
              no way. So #{rows with |v − centre| < t}, a difference of two counts of the histogram,
              moves no further than one count.
    Proof.    Each row's distance is a function of its own cell and the centre. A replaced value is
              then one replaced distance, a value that comes or goes one distance that comes or
              goes.
    Checked.  tests/estimators/test_scale.py::test_folding_keeps_the_way_in_which_neighbours_differ
    """
    distances, positions = np.unique(np.abs(histogram.places - centre), return_inverse=True)
    counts = np.zeros(len(distances), dtype=np.int64)
    np.add.at(counts, positions, histogram.counts)
    return Histogram(histogram.cells, distances.astype(np.int64), counts)
