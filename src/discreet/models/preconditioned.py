"""Algorithm A: a privately learnt metric, a short burn-in and three gradients of growing budget
(regression.md §2), as releases of one spend.

    metric 1–4      second moments of (x, y), each in the metric of the one before:
                    start, scale and weights come from them
    burn-in 1–2     gradient steps, with the scale riding along (Huber)
    curvature 1     the second derivative that the following steps are taken with
    newton 1–3      moves that are not averaged (mean families)
    gradient 1–3    each at the running precision-weighted mean of the corrected iterates
    curvature 2, scores 1   at the estimate, for its variance

Theorem.  All releases together satisfy the spend. *Proof.*  Each is a release of `Session.release`
at its share of μ², and the shares sum to at most 1; every metric, point and scale is computed from
earlier releases and public facts alone, and each query's sensitivity holds for every metric and
point (specs/estimating/equations.py), so the Gaussian composition is adaptive
(docs/theory/ledger.md).
Checked.
tests/models/test_preconditioned.py::test_every_release_is_in_the_ledger_within_the_spend
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.inference.regression import decode as decode
from discreet.inference.regression.curvature import Shrunk, shrunk
from discreet.inference.regression.metric import (
    MetricState,
    after_round,
    first_state,
    inverse_root,
    start_from,
)
from discreet.inference.results.laws import Array
from discreet.models.points import metric_on_grid, point_at, response_column
from discreet.models.procedure import Fitting
from discreet.models.scales import scale_elasticity, second_moment, shifted_start
from discreet.models.starts import LARGEST_SPREAD, NOISY_SPREAD, flat_start, slopes_from
from discreet.models.tuning import Tuning
from discreet.specs.estimating.components import UNIT, LevelComponent
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Family, psi_bound, slope_bound
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import PSI
from discreet.trusted.release import Release, Step

START_SCALE = 1.3  # times the scale that the metric implies
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-16, 4.0  # of σ, in half-ranges of the response
RIDE = Fraction(3, 2)
SURE = 0.01  # noise index below which the scale takes full steps, and a start may be far out
TRUST = 3.0  # steps of residual families: at most 3σ√p in the metric
MEAN_TRUST = 2.0  # steps of mean families


@dataclass(frozen=True)
class Descent:
    """Where the procedure stands: coefficients β (x in units of 1, half-ranges of y) and the scale
    σ.
    """

    beta: Array
    sigma: float


def run(
    fitting: Fitting, family: Family, tuning: Tuning, rows: float, average: tuple[float, Array]
) -> None:
    """Asks all releases from the metric on; `average` is the response's noisy mean and the
    coefficients of a constant, where mean families start.
    """
    residual, p = family.residual, len(fitting.model.columns)
    wide = augmented(fitting.model) if residual else fitting.model
    state = learn_metric(fitting, wide, tuning, rows)
    metric = whitening(state, p, tuning.radius)
    fit = MetricSteps(replace(fitting, model=wide), family, tuning, rows, metric)
    if residual:
        here = fit.residual_burn_in(residual_start(state, family, fitting.model))
    else:
        here, _ = fit.mean_burn_in(*average)
    inverse = fit.curvature(Step("curvature"), here)
    for step in tuning.steps("newton"):
        here = fit.moved(here, inverse, fit.gradient(step, here))
    here = fit.averaged(here, inverse)
    fit.curvature(Step("curvature", 2), here)
    fit.scores(here)


def augmented(model: Model) -> Model:
    """The model with its response as one more column,
    so that its moments with the others are released too.
    """
    return Model((*model.columns, response_column(model)), model.response, model.keys)


def learn_metric(fitting: Fitting, model: Model, tuning: Tuning, rows: float) -> MetricState:
    """Asks for the metric's rounds; gives the second moment of the model's columns."""
    state = first_state(len(model.columns))
    least = np.array(least_moments(model, tuning.radius))
    for place, step in enumerate(tuning.steps("metric")):
        radius = tuning.first_radius if place == 0 else tuning.metric_radius
        metric = metric_on_grid(state.root, radius)
        release = fitting.ask(
            step, WeightedGram(model, metric, "metric", fitting.optional), tuning.share(step)
        )
        reading = decode.read_gram(release, radius, rows)
        state = after_round(state, reading.value, reading.noise, least)
    return state


def whitening(state: MetricState, columns: int, radius: float) -> Metric:
    """The metric that makes a model's columns white; a response among them counts for nothing."""
    matrix = inverse_root(state.moment[:columns, :columns])
    further = len(state.moment) - columns
    return metric_on_grid(
        np.hstack([matrix, np.zeros((columns, further))]) if further else matrix, radius
    )


def residual_start(state: MetricState, family: Family, model: Model) -> Descent:
    """The linear regression that the second moment of (x, y) implies, with a scale on the wide
    side.
    """
    beta, sigma = start_from(state.moment, len(model.columns))
    return Descent(shifted_start(family, model, beta, sigma), clipped_scale(START_SCALE * sigma))


def least_moments(model: Model, radius: float) -> tuple[float, ...]:
    """Public lower limits of the columns' second moments: 1/R² for a level; without it repeated
    whitening of a rare level diverges.
    """
    levels = [
        sum(isinstance(component, LevelComponent) for component in column.components)
        for column in model.columns
    ]
    return tuple(
        0.0 if not count else 1 / radius**2 / (1 if count == len(column.components) else 16)
        for count, column in zip(levels, model.columns, strict=True)
    )


@dataclass(frozen=True)
class MetricSteps:
    """The steps in the final metric."""

    fitting: Fitting
    family: Family
    tuning: Tuning
    rows: float
    metric: Metric

    @property
    def columns(self) -> int:
        return len(self.metric.rows)

    @property
    def back(self) -> Array:
        """A, columns of the model only: β = Aᵀθ."""
        matrix = np.array(
            [[float(entry) for entry in row[: self.columns]] for row in self.metric.rows]
        )
        return np.asarray(matrix * (UNIT * self.tuning.radius / float(self.metric.bound)))

    def point(self, here: Descent) -> Point:
        beta = np.append(here.beta, 0.0) if self.family.residual else here.beta
        return point_at(beta, here.sigma, self.family)

    def gradient(self, step: Step, here: Descent, ride: Fraction = Fraction(0)) -> Release:
        query = WeightedGradient(
            self.fitting.model,
            self.metric,
            self.family,
            self.point(here),
            self.fitting.optional,
            ride,
        )
        return self.fitting.ask(step, query, self.tuning.share(step))

    def curvature(self, step: Step, here: Descent) -> Array:
        """Asks for the curvature at a point and gives its regularised inverse."""
        return self.regularised(self.read_curvature(step, here)).inverse

    def read_curvature(self, step: Step, here: Descent) -> decode.Reading:
        query = WeightedGram(
            self.fitting.model,
            self.metric,
            "curvature",
            self.fitting.optional,
            self.family,
            self.point(here),
        )
        return decode.read_gram(
            self.fitting.ask(step, query, self.tuning.share(step)), self.tuning.radius, self.rows
        )

    def regularised(self, reading: decode.Reading) -> Shrunk:
        largest = slope_bound(self.family) / PSI
        return shrunk(reading.value, reading.noise, largest=largest, curvature=True)

    def scores(self, here: Descent) -> None:
        """Asks for the outer products of the scores at a point."""
        query = WeightedGram(
            self.fitting.model,
            self.metric,
            self.fitting.scores_part,
            self.fitting.optional,
            self.family,
            self.point(here),
        )
        self.fitting.ask(Step("scores"), query, self.tuning.share(Step("scores")))

    @property
    def radius(self) -> float:
        return self.tuning.radius

    def at(self, release: Release) -> Descent:
        """The point of a release as it was rounded."""
        return Descent(decode.coefficients_at(release)[: self.columns], decode.scale_at(release))

    def trust(self, sigma: float) -> float:
        return TRUST * sigma * math.sqrt(self.columns) if self.family.residual else MEAN_TRUST

    def moved(self, here: Descent, inverse: Array, release: Release) -> Descent:
        """One step from where a gradient was taken: β − Aᵀ·(σH⁻¹g, no longer than trust allows)."""
        reading, here = (
            decode.read_gradient(release, self.tuning.radius, self.rows),
            self.at(release),
        )
        return Descent(
            here.beta
            - self.back.T
            @ decode.trusted(here.sigma * inverse @ reading.value, self.trust(here.sigma)),
            here.sigma,
        )

    def residual_burn_in(self, here: Descent) -> Descent:
        """Gradient steps with curvature 1, as the whitened columns have;
        the scale follows the mean of ψ².
        """
        c, target, before = psi_bound(self.family) / PSI, second_moment(self.family), None
        for step in self.tuning.steps("burn-in"):
            release = self.gradient(step, here, RIDE)
            here = self.moved(here, np.eye(self.columns), release)
            reading = decode.read_gradient(release, self.tuning.radius, self.rows)
            seen = (here.sigma, min(max(reading.ride, 2 * reading.ride_noise, target / 16), c**2))
            elasticity = (
                2.0
                if self.tuning.noise_index >= SURE
                else scale_elasticity(self.family, before, seen)
            )
            here, before = (
                Descent(
                    here.beta, clipped_scale(here.sigma * (seen[1] / target) ** (1 / elasticity))
                ),
                seen,
            )
        return here

    def mean_burn_in(self, mean: float, constant: Array) -> tuple[Descent, float]:
        """A gradient at the constant predictor with the response's mean, a normal predictor from it
        (starts.py), and gradient steps from there; with the mean slope of ψ.
        """
        flat = flat_start(self.family, mean)
        here, level = Descent(constant * flat.center, 1.0), flat.level
        for place, step in enumerate(self.tuning.steps("burn-in")):
            release = self.gradient(step, here)
            if place == 0 and constant.any():
                reading, whitened = (
                    decode.read_gradient(release, self.tuning.radius, self.rows),
                    np.asarray(np.linalg.solve(self.back.T, constant), dtype=np.float64),
                )
                slopes, start = slopes_from(
                    self.family,
                    mean,
                    reading,
                    whitened,
                    NOISY_SPREAD if self.tuning.noise_index >= SURE else LARGEST_SPREAD,
                )
                here, level = (
                    Descent(self.back.T @ slopes + constant * start.center, 1.0),
                    start.level,
                )
            else:
                here = self.moved(here, np.eye(self.columns) / level, release)
        return here, level

    def averaged(self, here: Descent, inverse: Array) -> Descent:
        """The funded gradients, each at the running mean of the corrected iterates,
        weighted by their shares.
        """
        total, weight = np.zeros(self.columns), 0.0
        for step in self.tuning.steps("gradient"):
            share = float(self.tuning.share(step))
            moved = self.moved(here, inverse, self.gradient(step, here))
            total, weight = total + share * moved.beta, weight + share
            here = Descent(total / weight, here.sigma)
        return here


def clipped_scale(sigma: float) -> float:
    return min(max(sigma, SMALLEST_SCALE), LARGEST_SCALE)
