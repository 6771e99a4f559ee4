"""Shares and counts of rows of which several are one unit's, from releases of units' own sums
(docs/theory/clusters.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.counts.shares import NONE, ShareStatistics, UnitCounts, unit_effect
from discreet.inference.means.means import decode_means
from discreet.inference.results.decode import noise_of, to_float, wrong_kind
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.queries.unit_sums import UnitShares, UnitSums
from discreet.trusted.release import Release


def unit_counts(release: Release) -> UnitCounts:
    """Counts by cell and what variances between units need, as released."""
    query = release.query
    if not isinstance(query, UnitSums):
        raise wrong_kind(query, "UnitSums")
    mechanism, units = release.mechanism, query.unit_values()
    rows = np.array(release.integers, dtype=object).reshape(-1, query.cells)
    last = 2 if query.cells > 1 else 1  # coordinates after those of the codes
    places = [0, len(units) - last, *([len(units) - 1] if last == 2 else [])]
    values = [to_float(mechanism, rows[place], units[place]) for place in places]
    noises = [noise_of(mechanism, units[place]) for place in places]
    if last == 1:
        values, noises = [*values, 0.0 * values[0]], [*noises, NONE]
    (count, gap, elsewhere), (noise, gap_noise, elsewhere_noise) = values, noises
    return UnitCounts(query.rows, count, gap, elsewhere, noise, gap_noise, elsewhere_noise)


def decode_unit_share(
    query: UnitShares, mechanism: Mechanism, integers: npt.NDArray[Any]
) -> ShareStatistics:
    """One level's share of the rows that have it or another value."""
    means = decode_means(query, mechanism, integers[:, None], public_rows=None, cluster=1)
    m = means.bounded_mean
    squares, error, _ = means.squares_about(m, means.count)
    known = np.asarray(means.noise().variance + 0.0 * m)
    binomial = means.rows * (1 - m**2)  # four times that of rows, as all others here
    effect = unit_effect(squares, np.sqrt(error), known, binomial, query.rows)
    return ShareStatistics(
        (means.count + means.first) / 2,
        means.count,
        means.first_noise.scaled(0.5),
        NONE,
        effect,
        True,
        means.count_noise,
        0.5,
    )
