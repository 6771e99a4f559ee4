"""Releases of a regression as real numbers: means of gradients and second moments in the metric
z = A·x, with the standard deviation of their noise.

A metric's whole numbers are read so that its radius is the public R it was made for; everything
else follows from the query and the mechanism.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.inference.results.laws import Array
from discreet.trusted.release import Release, Step

UNIT = 1 << 14  # whole numbers that stand for 1 in a model column
RESPONSE_REACH = 2.0**23
GRID = 1 << 10  # table entries a standard deviation of a residual


@dataclass(frozen=True)
class Reading:
    """What one release says: the mean of its statistic over the rows, and the standard deviation
    `noise` of the noise of a (diagonal) entry.

    `ride` and `ride_noise` are those of the mean of ψ², where it rode along.
    """

    value: Array
    noise: float
    ride: float = 0.0
    ride_noise: float = 0.0


def step_of(release: Release) -> Step:
    """A release's step in the procedure, such as the second gradient."""
    step = release.description.step
    assert step is not None
    return step


def metric_matrix(release: Release, radius: float) -> Array:
    """A of the release's metric, for x in units of 1 (rows of z by columns of x)."""
    metric: Any = release.query.metric  # type: ignore[attr-defined]
    return np.array([[float(entry) for entry in row] for row in metric.rows]) * (
        UNIT * _size(release, radius)
    )


def read_gram(release: Release, radius: float, rows: float) -> Reading:
    """The symmetric matrix (1/n)Σ m·zzᵀ of a release."""
    mechanism: Any = release.mechanism
    size = (_size(release, radius) * UNIT) ** 2 * float(release.query.unit) / rows  # type: ignore[attr-defined]
    order = len(release.query.metric.rows)  # type: ignore[attr-defined]
    step = float(mechanism.step)
    matrix = np.zeros((order, order))
    upper = np.triu_indices(order)
    matrix[upper] = np.array([float(value) for value in release.integers]) * (step * size)
    matrix = matrix + np.triu(matrix, 1).T
    return Reading(matrix, math.sqrt(mechanism.variance) * size)


def read_gradient(release: Release, radius: float, rows: float) -> Reading:
    """The vector (1/n)Σ wψz, and the mean of ψ² where it was asked for."""
    mechanism, query = release.mechanism, release.query
    order = len(query.metric.rows)  # type: ignore[attr-defined]
    step, spread = float(mechanism.step), math.sqrt(mechanism.variance)  # type: ignore[attr-defined]
    numbers = np.array([float(value) for value in release.integers]) * step
    size = _size(release, radius) * UNIT * float(query.unit) / rows  # type: ignore[attr-defined]
    ride = float(query.ride_unit) / rows if query.ride else 0.0  # type: ignore[attr-defined]
    return Reading(
        numbers[:order] * size,
        spread * size,
        float(numbers[order] * ride) if ride else 0.0,
        spread * ride,
    )


def read_count(release: Release) -> float:
    """The noisy number of rows, or the noisy sum of a column's codes."""
    return float(release.integers[0]) * float(release.mechanism.step)  # type: ignore[attr-defined]


def coefficients_at(release: Release) -> Array:
    """β of the release's point: for x in units of 1,
    and in half-ranges of the response (residual families).
    """
    point: Any = release.query.point  # type: ignore[attr-defined]
    return np.asarray(
        np.array([float(value) for value in point.beta])
        * UNIT
        / (response_reach(release) * 2.0**point.eta_bits)
    )


def scale_at(release: Release) -> float:
    """σ of the release's point, in half-ranges of the response; 1 for mean families."""
    query: Any = release.query
    return (
        GRID / (query.point.per_scale * response_reach(release) * 2.0**query.point.eta_bits)
        if query.family.residual
        else 1.0
    )


def response_reach(release: Release) -> float:
    """How many whole numbers of the response's grid its half-range is;
    1 for mean families, whose predictor has no grid.
    """
    return RESPONSE_REACH if release.query.family.residual else 1.0  # type: ignore[attr-defined]


def _size(release: Release, radius: float) -> float:
    """What one whole number of z is worth."""
    return radius / float(release.query.metric.bound)  # type: ignore[attr-defined]


def trusted(step: Array, most: float) -> Array:
    """A step no longer than `most`."""
    length = float(np.linalg.norm(step))
    return step * (most / length) if length > most else step
