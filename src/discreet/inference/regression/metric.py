"""A metric learnt from noisy second moments: what Algorithm A whitens rows with (regression.md §2,
step 1). Numbers that were released, and nothing else.

The second moment S of u = (x, y) is refined in rounds: each releases M ≈ E[w zzᵀ] for z = L·u in
the metric so far, with symmetric noise of a known standard deviation s, and S becomes
L⁻¹·(M made safe)·L⁻ᵀ.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.inference.regression.curvature import floored
from discreet.inference.results.laws import Array

LARGEST_MOMENT = 1.0  # |u_j| ≤ 1, so no second moment is larger
# a column whose spread is below 2**-12 of its half-range has few grid points left
SMALLEST_MOMENT = 2.0**-24
SMALLEST_CORRELATION_ROOT = 1e-6  # eigenvalues of a scaled second moment
EIGENVALUE_FLOOR = 0.02
NOISE_FLOOR = 0.8  # times the largest row norm of the noise that was kept
SLOWEST_SHRINK = 1.3  # a resolved column's second moment falls by at most this factor in a round
RESOLVED = 3.0  # standard deviations of noise above which a column counts as resolved


@dataclass(frozen=True)
class MetricState:
    """The second moment found so far, and which of its columns stand clear of the noise."""

    moment: Array
    resolved: npt.NDArray[np.bool_]

    @functools.cached_property
    def root(self) -> Array:
        """L with L·S·Lᵀ = I: the symmetric inverse root after scaling each column to 1, so that
        coordinates keep their meaning.
        """
        return inverse_root(self.moment)


def first_state(order: int) -> MetricState:
    return MetricState(np.eye(order), np.zeros(order, dtype=bool))


def inverse_root(moment: Array) -> Array:
    """(D^-½ S D^-½)^-½ D^-½ with D the diagonal of S;
    eigenvalues are floored, so that it is finite for every S.
    """
    scale = np.sqrt(np.clip(np.diag(moment), SMALLEST_MOMENT, None))
    values, vectors = np.linalg.eigh(_even(moment / np.outer(scale, scale)))
    return np.asarray(
        ((vectors / np.sqrt(np.maximum(values, SMALLEST_CORRELATION_ROOT))) @ vectors.T) / scale
    )


def safe_moment(released: Array, noise: float) -> Array:
    """A positive definite second moment from a noisy one.

    Method.  The diagonal is floored at s; correlations shrink to 0 by max(0, 1 − (their
             noise / themselves)²), so that undetectable ones vanish; eigenvalues of the correlation
             matrix are floored at the noise that was kept.
    """
    size = len(released)
    root = np.sqrt(np.maximum(np.diag(released), noise))
    scale = np.outer(root, root)
    correlation, error = released / scale, noise / math.sqrt(2) / scale
    safe = np.where(correlation == 0, 1.0, correlation)
    kept = np.where(correlation == 0, 0.0, np.maximum(0.0, 1 - (error / safe) ** 2))
    np.fill_diagonal(kept, 1.0)
    shrunk = correlation * kept
    np.fill_diagonal(shrunk, np.maximum(np.diag(correlation), 1e-3))
    floor = (
        max(
            EIGENVALUE_FLOOR,
            NOISE_FLOOR * math.sqrt(float(((error * (kept > 0)) ** 2).sum(axis=1).max())),
        )
        if size
        else EIGENVALUE_FLOOR
    )
    return np.asarray(scale * floored(shrunk, floor))


def after_round(state: MetricState, released: Array, noise: float, least: Array) -> MetricState:
    """The state after one more release M (a mean) with noise s; `least` are public lower limits of
    the second moments (rare levels).
    """
    back = np.linalg.inv(state.root)
    old = np.diag(state.moment)
    moment = _even(back @ safe_moment(released, noise) @ back.T)
    seen = np.diag(back @ released @ back.T)
    low = np.clip(
        np.maximum(np.where(state.resolved, old / SLOWEST_SHRINK, 0.0), least),
        SMALLEST_MOMENT,
        LARGEST_MOMENT,
    )
    now = np.maximum(np.diag(moment), 1e-300)
    stretch = np.sqrt(np.clip(now, low, LARGEST_MOMENT) / now)
    return MetricState(
        moment * np.outer(stretch, stretch),
        np.asarray(state.resolved | (seen > RESOLVED * noise * old)),
    )


def start_from(moment: Array, columns: int) -> tuple[Array, float]:
    """(β, σ) of the linear regression that a second moment of (x, y) implies."""
    inner, cross = moment[:columns, :columns], moment[:columns, columns]
    scale = np.sqrt(np.clip(np.diag(inner), SMALLEST_MOMENT, None))
    values, vectors = np.linalg.eigh(_even(inner / np.outer(scale, scale)))
    beta = (
        (vectors / np.maximum(values, SMALLEST_CORRELATION_ROOT)) @ vectors.T @ (cross / scale)
    ) / scale
    rest = float(moment[columns, columns] - cross @ beta)
    return np.asarray(beta), math.sqrt(max(rest, SMALLEST_MOMENT))


def _even(matrix: Array) -> Array:
    return np.asarray((matrix + matrix.T) / 2)
