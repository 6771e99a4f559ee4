"""The lectures' solvers as releases of one spend: noisy gradient descent (reference.md G3), noisy
Newton (G5), and SGD's way in (models/sgd.py).

    count 1, mean 1       where the number of rows is private; where a model of counts needs a start
    gradient k            of every step; Huber's scale rides along (H1)
    curvature k           of every step (Newton)
    curvature, scores 1   at the estimate, for the sandwich (H3)

Theorem.  All releases together satisfy the spend. *Proof.*  As for Algorithm A: each is a release
of `Session.release` at its share of μ², the shares sum to at most 1, and every point is computed
from earlier releases and public numbers alone (reference.md C4, G3, G5).
Checked.
tests/models/test_classical.py::test_every_release_is_in_the_ledger_and_all_compose_to_the_spend
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.calibration.sgd import LARGEST_MULTIPLIER, too_many_steps
from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import BaseChoice, require_named
from discreet.errors import InvalidParameter
from discreet.inference.regression import decode as decode
from discreet.inference.regression.bases import base_levels
from discreet.inference.regression.classical import ClassicalFacts, ClassicalResult
from discreet.inference.regression.curvature import floored
from discreet.inference.regression.point_fit import PointFit
from discreet.inference.results.laws import Array
from discreet.models.learners.pure_sgd import fit_pure, require_law
from discreet.models.points import point_at
from discreet.models.preconditioned import Descent
from discreet.models.procedure import (
    LEDGER_GRAIN,
    Fitting,
    Regression,
    budget_of,
    constant,
    estimator_of,
    family_of,
    mean_response,
    require_response,
    rows_of,
)
from discreet.models.scales import second_moment, shifted_start
from discreet.models.sgd import needed_delta, run_sgd
from discreet.models.solvers import SGD, GradientDescent, Newton, Solver, plain_radius
from discreet.models.starts import flat_start
from discreet.models.tuning import COUNT_SHARE, MEAN_SHARE, noise_index
from discreet.neighbors import Replace
from discreet.specs.estimating.batches import plain_metric
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Family, psi_bound, slope_bound
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tables import PSI_BITS
from discreet.trusted.losses.pricing import spend_box
from discreet.trusted.release import Release, Step
from discreet.trusted.session import Session

CURVATURE_SHARE, SCORES_SHARE = Fraction(1, 10), Fraction(1, 10)
START_SCALE = 0.5  # σ at the start, in half-ranges of the response
SMALLEST_SCALE, LARGEST_SCALE = 2.0**-16, 4.0
RESIDUAL_TRUST, MEAN_TRUST = 2.0, 4.0  # times √p: the longest step in the scaled columns
SMALLEST_STEP = Fraction(1, 10**10)  # μ² of one release, for one row


def fit_classical(
    session: Session,
    model: Model,
    family: str | Family,
    solver: Solver,
    *,
    spend: Guarantee,
    key: str | None = None,
    where: str = "",
    choice: BaseChoice | None = None,
) -> ClassicalResult | PointFit:
    """A regression of the model's response on its columns by one of the classical solvers, with
    private inference; as `fit.fit_regression`. Pure SGD gives an estimate without it.
    """
    regression = Regression(session, model, estimator_of(family), spend, key, where, choice)
    if isinstance(solver, SGD) and solver.law == "laplace":
        require_named(choice)
        return fit_pure(regression, family, solver)
    mu_squared, delta = classical_budget(regression, family, solver)
    return ClassicalResult(
        *regression.asked(
            lambda fitting: ask_classical(fitting, family, solver, spend, delta), mu_squared, delta
        )
    )


def classical_budget(
    regression: Regression, family: str | Family, solver: Solver
) -> tuple[Fraction, Fraction]:
    """(μ², δ₀) that the steps may share; refused, from public facts,
    where there is no theorem or too little for so many steps.
    """
    session, spend = regression.session, regression.spend
    if isinstance(solver, SGD):
        require_law(solver, spend)
    budget_of(spend, session.public.neighbors.rows)
    require_response(session, regression.model, family)
    delta = needed_delta(session, solver, spend) if isinstance(solver, SGD) else Fraction(0)
    return _mu_squared(spend, delta, solver, session.public.neighbors.rows), delta


def _mu_squared(spend: Guarantee, delta: Fraction, solver: Solver, unit_rows: int) -> Fraction:
    """μ² that the steps may share, less what debits are rounded up by."""
    box = spend_box(spend, delta)
    releases = 8 + (
        solver.steps
        if isinstance(solver, GradientDescent)
        else 2 * solver.steps
        if isinstance(solver, Newton)
        else 5
    )
    left = (box.mu_squared or 2 * box.rho) - releases * LEDGER_GRAIN
    if left < SMALLEST_STEP * releases * unit_rows**2:
        raise InvalidParameter(
            "spend=",
            "it is too small to be divided among so many steps",
            "each step is a release of its own, and its noise must fit its grid",
            "spend more, or take fewer steps",
        )
    if isinstance(solver, SGD) and 4 * solver.steps > left * Fraction(LARGEST_MULTIPLIER) ** 2:
        raise too_many_steps()
    return left


def ask_classical(
    fitting: Fitting, asked: str | Family, solver: Solver, spend: Guarantee, delta: Fraction
) -> ClassicalFacts:
    """All releases of a fit; gives its public facts."""
    public, model = fitting.public, fitting.model
    rows, columns = rows_of(fitting), len(model.columns)
    index = noise_index(columns, rows, math.sqrt(fitting.mu_squared), public.neighbors)
    family = family_of(asked, index, model)
    radius = plain_radius(model) if solver.radius is None else float(solver.radius)
    counts = (
        model.response is not None and model.response.factor is not None and not family.residual
    )
    if counts:
        mean = mean_response(fitting, family, rows)  # type: ignore[arg-type]
        start = constant(model) * flat_start(family, mean).center
    else:
        start = shifted_start(family, model, np.zeros(columns), START_SCALE)
    spent = (COUNT_SHARE if fitting.optional or public.rows is None else Fraction(0)) + (
        MEAN_SHARE if counts else Fraction(0)
    )
    descent = ClassicalSteps(fitting, family, plain_metric(columns, radius), radius, rows)
    here, share = (
        Descent(start, START_SCALE if family.residual else 1.0),
        1 - spent - CURVATURE_SHARE - SCORES_SHARE,
    )
    step, batch, averaged = 1.0, 0, 0
    if isinstance(solver, Newton):
        step, here = float(solver.damping), descent.newton(here, solver, share)
    elif isinstance(solver, GradientDescent):
        step = solver.step_size / descent.largest
        here = descent.gradients(
            here, step, [Step("gradient", number + 1) for number in range(solver.steps)], share
        )
    else:
        step = solver.step_size / descent.largest
        here, batch, averaged = run_sgd(descent, here, solver, share, delta)
    descent.matrices(here, len(fitting.releases))
    response = model.response
    center, half = (
        (response.middle, response.half) if family.residual and response is not None else (0.0, 1.0)
    )
    name = (
        "newton"
        if isinstance(solver, Newton)
        else "gradient"
        if isinstance(solver, GradientDescent)
        else "sgd"
    )
    return ClassicalFacts(
        fitting.regression.estimator,
        spend,
        name,
        step,
        solver.steps,
        columns,
        radius,
        index,
        center,
        half,
        float(delta),
        batch,
        averaged,
        base_levels(model.columns, public.schema),
    )


@dataclass(frozen=True)
class ClassicalSteps:
    """The steps of the classical solvers, on columns as their public ranges scale them."""

    fitting: Fitting
    family: Family
    metric: Metric
    radius: float
    rows: float

    @property
    def largest(self) -> float:
        """λ: no mean curvature is larger, since w‖x‖² ≤ R² and ψ′ is bounded (reference.md G4,
        H2).
        """
        return self.radius**2 * slope_bound(self.family) / (1 << PSI_BITS)

    @property
    def ride(self) -> Fraction:
        """How much the scale's part of a gradient weighs:
        it is free up to 3/2 under Replace, and dear under AddRemove.
        """
        if not self.family.residual:
            return Fraction(0)
        return (
            Fraction(3, 2) if isinstance(self.fitting.public.neighbors, Replace) else Fraction(1, 2)
        )

    def gradients(self, here: Descent, step: float, names: list[Step], share: Fraction) -> Descent:
        """θ ← θ − ησ(mean gradient + noise), once for each name; reference.md G3."""
        for name in names:
            release = self.gradient(name, here, share / len(names))
            here = self.moved(release, lambda g: step * g)
        return here

    def newton(self, here: Descent, solver: Newton, share: Fraction) -> Descent:
        """θ ← θ − ησH̃⁻¹(mean gradient + noise),
        gradient and curvature at half of a step's share each; reference.md G5.
        """
        for place in range(1, solver.steps + 1):
            release = self.gradient(Step("gradient", place), here, share / (2 * solver.steps))
            inverse = self.curvature(Step("curvature", place), here, share / (2 * solver.steps))
            here = self.moved(
                release,
                lambda g, inverse=inverse: solver.damping * inverse @ g,  # type: ignore[misc]
            )
        return here

    def matrices(self, here: Descent, place: int) -> None:
        """Curvature and scores at the estimate (H3)."""
        self.curvature(Step("curvature", place + 1), here, CURVATURE_SHARE)
        query = WeightedGram(
            self.fitting.model,
            self.metric,
            "scores",
            self.fitting.optional,
            self.family,
            point_at(here.beta, here.sigma, self.family),
        )
        self.fitting.ask(Step("scores"), query, SCORES_SHARE)

    def gradient(self, name: Step, here: Descent, share: Fraction) -> Release:
        point = point_at(here.beta, here.sigma, self.family)
        return self.fitting.ask(
            name,
            WeightedGradient(
                self.fitting.model,
                self.metric,
                self.family,
                point,
                self.fitting.optional,
                self.ride,
            ),
            share,
        )

    def curvature(self, name: Step, here: Descent, share: Fraction) -> Array:
        """Asks for the curvature and gives its inverse, eigenvalues floored at the reach of its
        noise (free: reference.md G5).
        """
        query = WeightedGram(
            self.fitting.model,
            self.metric,
            "curvature",
            self.fitting.optional,
            self.family,
            point_at(here.beta, here.sigma, self.family),
        )
        reading = decode.read_gram(self.fitting.ask(name, query, share), self.radius, self.rows)
        floor = max(
            0.5 * reading.noise * math.sqrt(2 * len(reading.value)),
            1e-3 * float(query.largest_multiplier),
        )
        return np.asarray(np.linalg.inv(floored(reading.value, floor)))

    def moved(self, release: Release, direction: Callable[[Array], Array]) -> Descent:
        """One step from where a gradient was taken, no longer than a public limit;
        Huber's scale follows the mean of ψ².
        """
        reading, beta, sigma = (
            decode.read_gradient(release, self.radius, self.rows),
            decode.coefficients_at(release),
            decode.scale_at(release),
        )
        most = (RESIDUAL_TRUST if self.family.residual else MEAN_TRUST) * math.sqrt(len(beta))
        beta = beta - decode.trusted(sigma * direction(reading.value), most)
        if self.family.residual:
            target, most = second_moment(self.family), psi_bound(self.family) / (1 << PSI_BITS)
            seen = min(max(reading.ride, 2 * reading.ride_noise, target / 16), most**2)
            sigma = min(max(sigma * math.sqrt(seen / target), SMALLEST_SCALE), LARGEST_SCALE)
        return Descent(beta, sigma)
