"""Runs a search: asks the policy, checks what it pays, draws exact noise for that share,
and writes the transcript. And a histogram seen from a public centre, for searches of distances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.search.policies import Count, History
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.statistics import Histogram
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source


def search(
    mechanism: CountSearch, histogram: Histogram, source: Source, *, known: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """The transcript (place, share, steps)* of a search on a histogram;
    `known` are integers that were released before.

    Theorem.  Whatever the policy, the transcript is √budget-GDP (Gaussian noise) or budget-DP
              (Laplace noise).
    Proof.    Place and share of a question are functions of `known` and of the answers before it;
              given those, the answer is an additive mechanism with μ_i² ≤ budget·share_i/units,
              or ε_i (`CountSearch.noise`). The loop lets Σ share_i ≤ units on every path,
              so Σμ_i² ≤ budget on every path: the filter theorem of docs/theory/ledger.md, with the
              loop as the filter.
    Checked.  tests/claims/test_search.py
    """
    both, all_above = mechanism.below + mechanism.above, mechanism.above * histogram.rows
    return converse(
        mechanism,
        histogram.cells,
        lambda place: both * histogram.below(place) - all_above,
        source,
        known=known,
    )


def converse(
    mechanism: CountSearch,
    cells: int,
    statistic: Callable[[int], int],
    source: Source,
    *,
    known: tuple[int, ...] = (),
) -> tuple[int, ...]:
    """The loop of `search`, with the statistic as a function of the place."""
    left, deviation = mechanism.units, mechanism.deviation(1)
    integers: list[int] = []
    counts: list[Count] = []
    while left > 0:
        question = _asked(
            mechanism, History(cells, left, deviation, mechanism.law, tuple(counts), known)
        )
        if question is None:
            break
        place, share = min(max(int(question[0]), 0), cells), int(question[1])
        if not 1 <= share <= left:
            break
        left -= share
        noise = mechanism.noise(share)
        steps = statistic(place) * (1 << noise.refinement) + int(draw(noise, 1, source)[0])
        integers += (place, share, steps)
        counts.append(
            Count(place, share, steps / (1 << noise.refinement), mechanism.deviation(share))
        )
    return tuple(integers)


def _asked(mechanism: CountSearch, history: History) -> tuple[int, int] | None:
    """The policy's next question; a policy that fails has nothing left to ask,
    so that no failure depends on an answer.
    """
    try:
        return mechanism.policy.next(history)
    except Exception:
        return None


def folded(histogram: Any, centre: int) -> Any:
    """How many rows lie at each distance, in cells, from a public centre.

    Theorem.  Folding a histogram at a cell that is public changes how neighbours differ (`Rows`) in
              no way. So #{rows with |v − centre| < t}, a difference of two counts of the histogram,
              moves no further than one count.
    Proof.    Each row's distance is a function of its own cell and the centre. A replaced value is
              then one replaced distance, a value that comes or goes one distance that comes or
              goes.
    Checked.  tests/estimators/test_scale.py::test_folding_keeps_the_way_in_which_neighbours_differ
    """
    if not isinstance(histogram, Histogram):  # one on disk
        return histogram.folded(centre)
    distances, positions = np.unique(np.abs(histogram.places - centre), return_inverse=True)
    counts = np.zeros(len(distances), dtype=np.int64)
    np.add.at(counts, positions, histogram.counts)
    return Histogram(histogram.cells, distances.astype(np.int64), counts)
