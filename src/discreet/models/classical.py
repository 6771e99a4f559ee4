"""The lectures' solvers as releases of one spend: noisy gradient descent (reference.md G3), noisy
Newton (G5), and SGD's way in (models/sgd.py).

    count 1, mean 1       where the number of rows is private; where a mean family needs a start
    metric 1–4            the second moments that make columns white: start, scale and weights come
                          from them (not SGD: its columns are scaled by their ranges)
    burn-in 1             the gradient that a mean family's start comes from
    gradient k            of every step; Huber's scale rides along (H1)
    curvature k           of every step (Newton)
    curvature, scores 1   at the estimate, for the sandwich (H3)

Theorem.  All releases together satisfy the spend. *Proof.*  As for Algorithm A: each is a release
of `Session.release` at its share of μ², the shares sum to at most 1, and every metric and point is
computed from earlier releases and public numbers alone (reference.md C4, G3, G5).
Checked.
tests/models/test_classical.py::test_every_release_is_in_the_ledger_and_all_compose_to_the_spend
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.accounting.calibration.sgd import LARGEST_MULTIPLIER, too_many_steps
from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import BaseChoice, require_named
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.inference.regression import decode as decode
from discreet.inference.regression.bases import base_levels
from discreet.inference.regression.classical import ClassicalFacts, ClassicalResult
from discreet.inference.regression.classical_covariance import pooled, steady_inverse
from discreet.inference.regression.curvature import floored
from discreet.inference.regression.point_fit import PointFit
from discreet.inference.results.laws import Array
from discreet.models.fit import ask_setting
from discreet.models.learners.pure_sgd import fit_pure, require_law
from discreet.models.points import point_at
from discreet.models.preconditioned import (
    Descent,
    MetricSteps,
    augmented,
    clipped_scale,
    learn_metric,
    least_moments,
    residual_start,
    whitening,
)
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
from discreet.models.scales import mean_slope, second_moment, shifted_start
from discreet.models.sgd import needed_delta, run_sgd
from discreet.models.solvers import (
    SGD,
    GradientDescent,
    MayNotConverge,
    Newton,
    Solver,
    convergence_doubt,
    plain_radius,
)
from discreet.models.starts import flat_start
from discreet.models.tuning import COUNT_SHARE, MEAN_SHARE, Tuning, noise_index
from discreet.neighbors import Replace
from discreet.specs.estimating.batches import plain_metric
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import Family, psi_bound, slope_bound
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tables import PSI_BITS
from discreet.trusted.losses.pricing import spend_box
from discreet.trusted.release import Release, Step

CURVATURE_SHARE, SCORES_SHARE = Fraction(1, 10), Fraction(1, 10)
START_SCALE = 0.5  # σ at the start, in half-ranges of the response
RESIDUAL_TRUST, MEAN_TRUST = 2.0, 4.0  # times √p: the longest step in the scaled columns
CURVATURES = Fraction(1, 4)  # of the share of Newton's steps
SHARE_GRAIN = 10**6  # shares of steps are whole numbers of this part
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
    doubt = doubt_of(regression, solver, mu_squared)
    if doubt is not None:
        warnings.warn(doubt, stacklevel=5)
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


def doubt_of(regression: Regression, solver: Solver, mu_squared: Fraction) -> MayNotConverge | None:
    """Why a solver may not converge, from public facts, before anything is spent; where a filter
    leaves rows out there are fewer, and doubt comes late rather than early.
    """
    public, model = regression.session.public, regression.model
    radius = plain_radius(model) if solver.radius is None else float(solver.radius)
    if public.rows is None:
        return convergence_doubt(solver, None, None, radius)
    rows, columns = float(public.rows), len(model.columns)
    index = noise_index(columns, rows, math.sqrt(mu_squared), public.neighbors)
    return convergence_doubt(solver, rows, index, radius)


def _mu_squared(spend: Guarantee, delta: Fraction, solver: Solver, unit_rows: int) -> Fraction:
    """μ² that the steps may share, less what debits are rounded up by."""
    box = spend_box(spend, delta)
    releases = 12 + (
        solver.steps_for(math.inf)
        if isinstance(solver, GradientDescent)
        else 2 * solver.steps
        if isinstance(solver, Newton)
        else 1
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
    if not isinstance(solver, SGD):
        return _ask_in_white(fitting, asked, solver, spend)
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
    here = Descent(start, START_SCALE if family.residual else 1.0)
    share = 1 - spent - CURVATURE_SHARE - SCORES_SHARE
    here, batch, averaged = run_sgd(descent, here, solver, share, delta)
    descent.matrices(here, len(fitting.releases))
    return ClassicalFacts(
        fitting.regression.estimator,
        spend,
        "sgd",
        solver.step_size / descent.largest,
        solver.steps,
        columns,
        radius,
        index,
        *_response(model, family),
        float(delta),
        batch,
        averaged,
        bases=base_levels(model.columns, public.schema),
    )


def _response(model: Model, family: Family) -> tuple[float, float]:
    """(center, half) of the response's range for residual families."""
    response = model.response
    return (response.middle, response.half) if family.residual and response else (0.0, 1.0)


def _ask_in_white(
    fitting: Fitting, asked: str | Family, solver: GradientDescent | Newton, spend: Guarantee
) -> ClassicalFacts:
    """Gradient descent or Newton in columns that Algorithm A's metric makes white."""
    setting, model, columns = ask_setting(fitting, asked), fitting.model, len(fitting.model.columns)
    family, steps = setting.family, solver.steps_for(setting.rows)
    pace, radius = solver.pace(steps), solver.radius
    tuning = replace(setting.tuning, shares=_shares(setting.tuning, solver, steps))
    if radius is not None:
        tuning = replace(tuning, radius=float(radius))
    wide = augmented(model) if family.residual else model
    state = learn_metric(fitting, wide, tuning, setting.rows)
    descent = MetricSteps(
        replace(fitting, model=wide),
        family,
        tuning,
        setting.rows,
        whitening(state, columns, tuning.radius),
    )
    if family.residual:
        here, level = residual_start(state, family, model), mean_slope(family)
    else:
        here, level = descent.mean_burn_in(setting.mean, constant(model))
    # weights take from the mean square of a white column what is beyond the radius
    step, curvatures = pace / (level * min(1.0, tuning.radius**2 / columns)), []
    for place in range(1, steps + 1):
        release = descent.gradient(Step("gradient", place), here, ride_of(fitting, family))
        inverse = np.eye(columns) * step
        if isinstance(solver, Newton):
            curvatures.append(descent.read_curvature(Step("curvature", place), here))
            known = descent.regularised(pooled(curvatures, residual=family.residual))
            inverse = pace * steady_inverse(known)
        here = rescaled(descent, release, descent.moved(here, inverse, release))
    descent.curvature(tuning.steps("curvature")[-1], here)
    descent.scores(here)
    newton = isinstance(solver, Newton)
    return ClassicalFacts(
        fitting.regression.estimator,
        spend,
        "newton" if newton else "gradient",
        pace if newton else step,
        steps,
        columns,
        tuning.radius,
        setting.index,
        *_response(model, family),
        metric_radius=tuning.metric_radius,
        first_radius=tuning.first_radius,
        least_moments=least_moments(wide, tuning.radius),
        bases=base_levels(model.columns, fitting.public.schema),
    )


def _shares(
    tuning: Tuning, solver: GradientDescent | Newton, steps: int
) -> tuple[tuple[Step, Fraction], ...]:
    """Algorithm A's shares for count, mean, metric and the matrices at the estimate;
    the steps get what they leave.
    """
    newton, pace = isinstance(solver, Newton), solver.pace(steps)
    before = [item for item in tuning.shares if item[0].name in ("count", "mean", "metric")]
    if tuning.steps("newton"):  # mean families
        before += [item for item in tuning.shares if item[0] == Step("burn-in")]
    curvature = sum((tuning.share(step) for step in tuning.steps("curvature")), Fraction(0))
    after = [
        (Step("curvature", steps + 1 if newton else 1), curvature),
        (Step("scores"), tuning.share(Step("scores"))),
    ]
    rest = 1 - sum(share for _, share in (*before, *after))
    of_matrices = rest * CURVATURES if newton else Fraction(0)
    first = Fraction(1, 2) if steps > 1 else Fraction(1)
    inner = [
        item
        for place, part in enumerate(growing(steps, pace), 1)
        for item in (
            (Step("gradient", place), (rest - of_matrices) * part),
            *(
                [
                    (
                        Step("curvature", place),
                        of_matrices * (first if place == 1 else (1 - first) / (steps - 1)),
                    )
                ]
                if newton
                else []
            ),
        )
    ]
    return (*before, *inner, *after)


def growing(steps: int, pace: float) -> list[Fraction]:
    """What each of K steps gets of their share: one half in equal parts, the other in proportion to
    what is left of a step's noise at the end, (1 − pace)^(K−k); together at most 1.

    Equal parts alone leave K·pace/(2 − pace) times the noise of one gradient that had it all; these
    leave less than twice it, and no step is lost in noise.
    """
    ages = np.arange(steps)[::-1]
    left = np.abs(1 - pace) ** ages
    parts = 0.5 / steps + 0.5 * left / left.sum()
    return [Fraction(int(part * SHARE_GRAIN), SHARE_GRAIN) for part in parts]


def ride_of(fitting: Fitting, family: Family) -> Fraction:
    """How much the scale's part of a gradient weighs:
    it is free up to 3/2 under Replace, and dear under AddRemove.
    """
    if not family.residual:
        return Fraction(0)
    return Fraction(3, 2) if isinstance(fitting.public.neighbors, Replace) else Fraction(1, 2)


def rescaled(descent: MetricSteps | ClassicalSteps, release: Release, here: Descent) -> Descent:
    """Huber's scale follows the mean of ψ² that rode along with a gradient."""
    family = descent.family
    if not family.residual:
        return here
    reading = decode.read_gradient(release, descent.radius, descent.rows)
    target, most = second_moment(family), psi_bound(family) / (1 << PSI_BITS)
    seen = min(max(reading.ride, 2 * reading.ride_noise, target / 16), most**2)
    return Descent(here.beta, clipped_scale(here.sigma * math.sqrt(seen / target)))


@dataclass(frozen=True)
class ClassicalSteps:
    """The steps around a stochastic descent, on columns as their public ranges scale them."""

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

    def gradients(self, here: Descent, step: float, names: list[Step], share: Fraction) -> Descent:
        """θ ← θ − ησ(mean gradient + noise), once for each name; reference.md G3."""
        for name in names:
            release = self.gradient(name, here, share / len(names))
            here = self.moved(release, lambda g: step * g)
        return here

    def matrices(self, here: Descent, place: int) -> None:
        """Curvature and scores at the estimate (H3)."""
        self.curvature(Step("curvature", place + 1), here, CURVATURE_SHARE)
        query = WeightedGram(
            self.fitting.model,
            self.metric,
            self.fitting.scores_part,
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
                ride_of(self.fitting, self.family),
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
        return rescaled(self, release, Descent(beta, sigma))
