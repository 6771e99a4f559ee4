"""Cumulative counts from a noisy tree, with score intervals for the distribution function at every
boundary of its leaves.

*Method*: for a candidate p, T(p) = X(t) − p·N has mean 0 and variance N·p(1−p) + Var(noise), X(t)
the least squares count before boundary t, and the noise law exact (inference/quantiles/trees.py);
the interval is {p : |T(p)| ≤ half-width at p}, as for shares (reference.md M1, M2).
*Validity*: rows are independent draws; one boundary at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.quantiles.trees import (
    TreeShape,
    least_squares,
    prefix_counts,
    prefix_weights,
)
from discreet.inference.results.decode import all_rows, as_kind, noise_of, to_float
from discreet.inference.results.ends import last_kept
from discreet.inference.results.laws import Array, Noise, half_width
from discreet.specs.queries.trees import TreeCounts
from discreet.trusted.release import Release


@dataclass(frozen=True)
class Cumulative:
    """Estimated counts before each boundary 0 … leaves of a tree;
    `noise` is the law of one node's noise.

    For simulations `prefix` may have shape (repetitions, boundaries) and `total` (repetitions, 1);
    `share_bounds` then does them all at once. `public_total` says that `total` is the number of
    rows itself, without noise; `inside` leaves lie on the column's grid.
    """

    shape: TreeShape
    prefix: Array
    total: Any
    noise: Noise
    public_total: bool
    inside: int
    cluster: int = 1

    @property
    def rows(self) -> Any:
        return np.maximum(self.total, 1.0)

    @property
    def inner(self) -> npt.NDArray[np.int64]:
        """The boundaries between leaves of the grid;
        at its two ends the distribution function is 0 and 1.
        """
        return np.arange(1, self.inside, dtype=np.int64)

    def noise_at(self, boundaries: Any, share: Any, *, depth: int | None = None) -> Noise:
        """The noise of X(t) − p·N; `depth` as for `prefix_weights`."""
        second, fourth = prefix_weights(
            self.shape, boundaries, None if self.public_total else share, depth=depth
        )
        return Noise(self.noise.variance * second, self.noise.fourth * fourth)

    def sampling_variance(self, share: Any) -> Array:
        """Of X(t) − p·N where F(t) = p."""
        return np.asarray(self.cluster * self.rows * share * (1 - share))

    @cached_property
    def consistent(self) -> Array:
        """Cumulative counts that never fall, start at 0 and end at the number of rows: the nearest
        such ones (isotonic least squares).

        Biased: where noise is larger than the counts it moves counts up from below 0 and down
        elsewhere. Intervals never use it.
        """
        from scipy.optimize import isotonic_regression

        rows = max(self.total, 0.0)
        middle = np.clip(isotonic_regression(self.prefix[1 : self.inside]).x, 0.0, rows)
        return np.concatenate([[0.0], middle, np.full(self.shape.leaves + 1 - self.inside, rows)])


def tree_counts(release: Release) -> TreeCounts:
    """The tree that a release counted on."""
    return as_kind(release.query, TreeCounts)


def cumulative_of(release: Release) -> Cumulative:
    """The cumulative counts of a tree's release."""
    query, mechanism = tree_counts(release), release.mechanism
    public = all_rows(release)
    shape = TreeShape(query.branching, query.levels)
    noisy = to_float(mechanism, np.array(release.integers, dtype=float), 1.0)
    prefix = prefix_counts(least_squares(shape, noisy, total=public))
    if public is None and release.public_rows is not None and prefix[-1] >= release.public_rows:
        public = release.public_rows  # no more than all rows are counted
        prefix = prefix_counts(least_squares(shape, noisy, total=public))
    total = float(prefix[-1]) if public is None else float(public)
    inside = -(-query.cells // query.width)
    return Cumulative(
        shape,
        prefix,
        total,
        noise_of(mechanism, 1.0),
        public is not None,
        inside,
        release.neighbors.rows,
    )


def share_bounds(
    cumulative: Cumulative,
    boundaries: npt.NDArray[np.int64],
    level: float,
    *,
    target: str = "population",
) -> tuple[Array, Array]:
    """The pointwise score interval for the distribution function at each boundary,
    within [0, 1].
    """
    count, rows = cumulative.prefix[..., boundaries], cumulative.rows
    # then the same at every share
    known = cumulative.noise_at(boundaries, None) if cumulative.public_total else None

    def end(start: Array, side: int) -> Array:
        def allowed(p: Array) -> npt.NDArray[np.bool_]:
            sampling = cumulative.sampling_variance(p) if target == "population" else 0.0 * p
            noise = known or cumulative.noise_at(boundaries, p)
            return np.asarray(side * (p * rows - start) <= half_width(level, sampling, noise))

        inner = np.clip(start / rows, 0.0, 1.0)
        # not the middle: a share of 0 that is not refused belongs to the interval
        return last_kept(allowed, inner, np.full_like(inner, 1.0 if side > 0 else 0.0), 36)[1]

    # a count below 0 (above N) still allows every share that a count of 0 (of N) allows
    return end(np.minimum(count, rows), -1), end(np.maximum(count, 0.0), +1)
