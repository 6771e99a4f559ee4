"""Releases of a regression as real numbers: means of gradients and second moments in the metric
z = A·x, with the standard deviation of their noise.

A metric's whole numbers are read so that its radius is the public R it was made for; everything
else follows from the query and the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.inference.results.decode import additive, as_kind, wrong_kind
from discreet.inference.results.laws import Array
from discreet.specs.estimating.batches import SampledGradients
from discreet.specs.estimating.components import RESPONSE_BITS, UNIT
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Family
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.minimand import Minimand
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.trusted.release import Release, Step

ModelQuery = WeightedGradient | WeightedGram | SampledGradients | Minimand


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


def model_query(release: Release) -> ModelQuery:
    """The statistic of one step of a regression."""
    query = release.query
    if isinstance(query, (WeightedGradient, WeightedGram, SampledGradients, Minimand)):
        return query
    raise wrong_kind(query, "WeightedGradient")


def family_of(release: Release) -> Family:
    """The estimating function of a release's statistic."""
    family = model_query(release).family
    if family is None:
        raise wrong_kind(release.query, "WeightedGradient")
    return family


def point_of(release: Release) -> Point:
    """Where a release's statistic was taken."""
    point = model_query(release).point
    if point is None:
        raise wrong_kind(release.query, "WeightedGradient")
    return point


def curvature_bound(release: Release) -> float:
    """The public bound of what one row adds a unit of ‖z‖² to a matrix."""
    return float(as_kind(release.query, WeightedGram).largest_multiplier)


def cluster_of(scores: Release) -> int:
    """How many times the variance that released scores give is to be counted: once where they are
    those of units, else as if the rows of a unit were fully alike.
    """
    of_units = as_kind(scores.query, WeightedGram).part == "unit scores"
    return 1 if of_units else scores.neighbors.rows


def metric_matrix(release: Release, radius: float) -> Array:
    """A of the release's metric, for x in units of 1 (rows of z by columns of x)."""
    metric = model_query(release).metric
    return np.array([[float(entry) for entry in row] for row in metric.rows]) * (
        UNIT * _size(metric, radius)
    )


def read_gram(release: Release, radius: float, rows: float) -> Reading:
    """The symmetric matrix (1/n)Σ m·zzᵀ of a release."""
    query = as_kind(release.query, WeightedGram)
    mechanism = as_kind(release.mechanism, SymmetricGaussianNoise)
    size = (_size(query.metric, radius) * UNIT) ** 2 * float(query.unit) / rows
    order = len(query.metric.rows)
    step = float(mechanism.step)
    matrix = np.zeros((order, order))
    upper = np.triu_indices(order)
    matrix[upper] = np.array([float(value) for value in release.integers]) * (step * size)
    matrix = matrix + np.triu(matrix, 1).T
    return Reading(matrix, math.sqrt(mechanism.variance) * size)


def read_gradient(release: Release, radius: float, rows: float) -> Reading:
    """The vector (1/n)Σ wψz, and the mean of ψ² where it was asked for."""
    mechanism, query = additive(release.mechanism), as_kind(release.query, WeightedGradient)
    order = len(query.metric.rows)
    step, spread = float(mechanism.step), math.sqrt(mechanism.variance)
    numbers = np.array([float(value) for value in release.integers]) * step
    size = _size(query.metric, radius) * UNIT * float(query.unit) / rows
    ride = float(query.ride_unit) / rows if query.ride else 0.0
    return Reading(
        numbers[:order] * size,
        spread * size,
        float(numbers[order] * ride) if ride else 0.0,
        spread * ride,
    )


def read_count(release: Release) -> float:
    """The noisy number of rows, or the noisy sum of a column's codes."""
    return float(release.integers[0]) * float(additive(release.mechanism).step)


def rows_of(releases: Sequence[Release]) -> float:
    """The number of rows of a fit: public, or as released (at least 1)."""
    for release in releases:
        if step_of(release).name == "count":
            return max(1.0, read_count(release))
    return float(max(1, releases[0].public_rows or 0))


def coefficients_at(release: Release) -> Array:
    """β of the release's point: for x in units of 1,
    and in half-ranges of the response (residual families).
    """
    point = point_of(release)
    return np.asarray(
        np.array([float(value) for value in point.beta])
        * UNIT
        / (response_steps(release) * 2.0**point.eta_bits)
    )


def scale_at(release: Release) -> float:
    """σ of the release's point, in half-ranges of the response; 1 for mean families."""
    if not family_of(release).residual:
        return 1.0
    point = point_of(release)
    return GRID / (point.per_scale * response_steps(release) * 2.0**point.eta_bits)


def response_steps(release: Release) -> float:
    """How many whole numbers of the response's grid its half-range is;
    1 for mean families, whose predictor has no grid.
    """
    return 2.0**RESPONSE_BITS if family_of(release).residual else 1.0


def _size(metric: Metric, radius: float) -> float:
    """What one whole number of z stands for."""
    return radius / float(metric.bound)


def trusted(step: Array, most: float) -> Array:
    """A step no longer than `most`."""
    length = float(np.linalg.norm(step))
    return step * (most / length) if length > most else step
