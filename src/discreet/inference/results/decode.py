"""From released integers to the statistics that inference reads, with the law of each one's noise.

Works on any array of integers of shape (coordinates, …),
so that simulations can decode thousands at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.counts.shares import ShareStatistics
from discreet.inference.means.means import MeanStatistics
from discreet.inference.means.variances import VarianceStatistics
from discreet.inference.results.laws import Array, Noise


def noise_of(mechanism: Any, worth: float) -> Noise:
    """The law of one coordinate's noise when one integer unit of the statistic is worth `worth`."""
    variance = mechanism.variance * worth**2
    return Noise(variance, 0.0 if mechanism.kind == "gaussian" else (variance / 2) ** 2)


def to_float(mechanism: Any, integers: npt.NDArray[Any], worth: float) -> Array:
    """Released grid steps as numbers: steps · step · worth."""
    return np.asarray(integers, dtype=float) * (float(mechanism.step) * worth)


def _coordinates(
    query: Any, mechanism: Any, integers: npt.NDArray[Any], public_rows: int | None
) -> tuple[list[Array], list[Noise]]:
    """The sums of the features of c, count first, and their noise; a public count has none."""
    worths = query.unit_values()
    values = [to_float(mechanism, row, worth) for row, worth in zip(integers, worths, strict=True)]
    noises = [noise_of(mechanism, worth) for worth in worths]
    if public_rows is not None:
        values.insert(0, np.full(values[0].shape, float(public_rows)))
        noises.insert(0, Noise(0.0))
    return values, noises


def decode_means(
    query: Any, mechanism: Any, integers: npt.NDArray[Any], *, public_rows: int | None, cluster: int
) -> MeanStatistics:
    """Order-2 moments; `integers` has shape (coordinates, cells)."""
    values, noises = _coordinates(query, mechanism, integers, public_rows)
    return MeanStatistics(values[0], values[1], values[2], noises[0], noises[1], noises[2], cluster)


def decode_variance(
    query: Any, mechanism: Any, integers: npt.NDArray[Any], *, public_rows: int | None, cluster: int
) -> VarianceStatistics:
    """Order-4 moments: the coordinates are count, c, c², c(1−c²), c²(1−c²)."""
    values, noises = _coordinates(query, mechanism, integers, public_rows)
    return VarianceStatistics(tuple(values), tuple(noises), cluster)


def decode_shares(
    mechanism: Any, integers: npt.NDArray[Any], *, public_rows: int | None, cluster: int
) -> ShareStatistics:
    """Counts of disjoint cells; `integers` has shape (cells, …).

    Without a public total, N is the sum of the cells.
    """
    counts = to_float(mechanism, integers, 1.0)
    noise = noise_of(mechanism, 1.0)
    if public_rows is not None:
        return ShareStatistics(
            counts, np.full(counts.shape, float(public_rows)), noise, Noise(0.0), cluster, True
        )
    total = np.broadcast_to(counts.sum(axis=0), counts.shape)
    others = counts.shape[0] - 1
    return ShareStatistics(
        counts, total, noise, Noise(noise.variance * others, noise.fourth * others), cluster, False
    )
