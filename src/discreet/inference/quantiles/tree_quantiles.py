"""Many quantiles with intervals from one noisy tree of counts.

*Method*: a search from the root. At each level the counts before the inner boundaries of the
present cell are compared with q·N: for the estimate directly; for an end of the interval with the
two-sided score test of F(boundary) = q at the level asked for (sampling variance N·q(1−q) and the
exact noise variance), keeping the outermost child that is not refused. So an interval inverts the
tests of at most (b − 1)·levels boundaries a side. The estimate stops at a cell whose count is
within the noise and is interpolated there.
*Validity*: rows are independent draws; no shape is assumed, ties are allowed.
Each quantile on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.inference.quantiles.cumulative import Cumulative, cumulative_of, tree_counts
from discreet.inference.results.laws import Array, half_width
from discreet.specs.queries.trees import TreeCounts
from discreet.trusted.release import Release

STOP = 3.0  # noise standard deviations of a node; a cell with less is not searched any further


@dataclass(frozen=True)
class TreeQuantiles:
    """Quantiles `q` in the units of the data with their intervals;
    the variances are those of the count before the quantile.
    """

    q: Array
    estimate: Array
    low: Array
    high: Array
    sampling_variance: Array
    privacy_variance: Array

    @property
    def noise_share(self) -> Array:
        """The share of the count's variance that privacy cost."""
        return np.asarray(
            self.privacy_variance
            / np.maximum(self.sampling_variance + self.privacy_variance, 1e-300)
        )


def checked_quantiles(qs: Any) -> Array:
    """Quantiles strictly between 0 and 1, as an array."""
    values = (
        [qs]
        if isinstance(qs, (int, float, str)) or not isinstance(qs, (Sequence, np.ndarray))
        else list(qs)
    )
    numbers = [float(rational(value, "a quantile")) for value in values]
    if not numbers or not all(0 < number < 1 for number in numbers):
        raise InvalidParameter(
            "quantiles",
            "they are not numbers between 0 and 1",
            "a quantile is the point that a given share of rows lies below",
            "pass for example 0.5, or [0.25, 0.5, 0.75]",
        )
    return np.array(numbers)


def quantiles_from_tree(
    release: Release, qs: Any, level: float = 0.95, *, target: str = "population"
) -> TreeQuantiles:
    """Quantiles of a tree's release with intervals at `level`, each on its own."""
    return invert(
        cumulative_of(release), tree_counts(release), checked_quantiles(qs), level, target=target
    )


def invert(
    cumulative: Cumulative, query: TreeCounts, q: Array, level: float, *, target: str = "population"
) -> TreeQuantiles:
    """As `quantiles_from_tree`, for cumulative counts that are known already;
    `query` says what the grid's cells are worth.
    """
    low, high = _ends(cumulative, q, level, target)
    exact = query.factor.encoding.is_exact
    place = np.clip(_estimate(cumulative, q, query.width, exact), 0, query.cells - 1)
    half_step = 0.0 if exact else query.step / 2
    bottom, top = query.value(0), query.value(query.cells - 1)
    estimate = _values(query, place)
    noise = cumulative.noise_at((place // query.width).astype(np.int64), q)
    sampling = cumulative.sampling_variance(q) if target == "population" else 0.0 * q
    lowest = np.clip(_values(query, low * query.width) - half_step, bottom, top)
    highest = np.clip(_values(query, (high + 1) * query.width - 1) + half_step, bottom, top)
    return TreeQuantiles(
        q,
        estimate,
        np.minimum(lowest, estimate),
        np.maximum(highest, estimate),
        np.asarray(sampling),
        np.asarray(noise.variance),
    )


def _values(query: TreeCounts, places: npt.NDArray[Any]) -> Array:
    """Places of the grid in the units of the data."""
    return np.array([query.value(place) for place in places.tolist()])


def _ends(cumulative: Cumulative, q: Array, level: float, target: str) -> tuple[Any, Any]:
    """The lowest and the highest leaf that may hold each quantile."""
    b, span = cumulative.shape.branching, cumulative.shape.leaves
    # the search for the lower ends, then that for the upper ones
    both = np.concatenate([q, q])[:, None]
    wanted = both * cumulative.rows
    sampling = cumulative.sampling_variance(both) if target == "population" else 0.0 * both
    left = np.zeros(2 * q.size, dtype=np.int64)
    for depth in range(1, cumulative.shape.levels + 1):
        span //= b
        boundaries = left[:, None] + span * np.arange(1, b)
        within = boundaries < cumulative.inside
        half = half_width(
            level, sampling + 0.0 * boundaries, cumulative.noise_at(boundaries, both, depth=depth)
        )
        excess = cumulative.prefix[boundaries] - wanted
        # lower ends leave a child behind while the count before its end is clearly too small,
        low = np.cumprod(within[: q.size] & (excess < -half)[: q.size], axis=1).sum(axis=1)
        # upper ends, from the other side, while the count before its beginning is clearly too large
        high = b - 1 - np.cumprod((~within | (excess > half))[q.size :, ::-1], axis=1).sum(axis=1)
        left = left + span * np.concatenate([low, high])
    return left[: q.size], left[q.size :]


def _estimate(cumulative: Cumulative, q: Array, width: int, whole: bool) -> Array:
    """The estimated place of each quantile on the grid; a whole one where only those are values."""
    b, prefix, wanted = cumulative.shape.branching, cumulative.prefix, q * cumulative.rows
    least = STOP * float(np.sqrt(cumulative.noise.variance))
    left, span = np.zeros(q.size, dtype=np.int64), np.full(q.size, cumulative.shape.leaves)
    for depth in range(cumulative.shape.levels):
        searched = (prefix[left + span] - prefix[left] >= least) | (depth == 0)
        child = np.maximum(span // b, 1)
        boundaries = np.minimum(
            left[:, None] + child[:, None] * np.arange(1, b), cumulative.shape.leaves
        )
        small = (boundaries < cumulative.inside) & (prefix[boundaries] < wanted[:, None])
        left = np.where(searched, left + child * np.cumprod(small, axis=1).sum(axis=1), left)
        span = np.where(searched, child, span)
    count = prefix[left + span] - prefix[left]
    part = np.where(
        count > 0, np.clip((wanted - prefix[left]) / np.where(count > 0, count, 1.0), 0.0, 1.0), 0.5
    )
    cells = span * width
    place = left * width + part * cells
    return np.asarray(
        np.where(
            cells == 1,
            left,
            np.minimum(np.floor(place), left * width + cells - 1) if whole else place - 0.5,
        ),
        dtype=float,
    )
