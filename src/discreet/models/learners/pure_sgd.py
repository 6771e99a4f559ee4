"""Noisy stochastic gradient descent with a pure spend: Laplace noise on sums over secret batches,
charged as one pure part a step (reference.md E5).

    count 1   where the number of rows is private
    sgd 1     the whole descent

Theorem.  Both together satisfy the spend. *Proof.*  Each is a release of `Session.release` at its
share of ε, and shares add up to 1; rows are weighed so that ‖wψx‖₁ ≤ bR, which Laplace noise on
every coordinate hides (trusted/extensions/sgd/loss.py).
Checked.  tests/models/test_pure_sgd.py::test_a_pure_descent_costs_its_spend_and_nothing_else

No curvature is released: Laplace noise on a matrix grows with its number of entries. So there are
no standard errors, and the result says why.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.accounting.calibration.sgd import pure_sgd_spread, too_many_steps
from discreet.accounting.guarantees import Guarantee, PureDP
from discreet.asking.noise_choice import count_noise, require_spend
from discreet.asking.steps import Steps, step_spend
from discreet.errors import NoTheorem
from discreet.exact import rational, sqrt_up
from discreet.inference.regression import decode as decode
from discreet.inference.regression.classical import ClassicalFacts
from discreet.inference.regression.point_fit import PointFit
from discreet.models.preconditioned import Descent
from discreet.models.procedure import (
    Fitting,
    Regression,
    family_of,
    require_response,
)
from discreet.models.scales import shifted_start
from discreet.models.sgd import batches_of, grid_point, require_sampling
from discreet.models.solvers import SGD, absolute_radius
from discreet.models.tuning import COUNT_SHARE
from discreet.specs.estimating.batches import (
    BETA_BITS,
    LARGEST_BETA,
    SUM_BITS,
    SampledGradients,
    plain_metric,
)
from discreet.specs.estimating.families import Family, slope_bound
from discreet.specs.estimating.tables import PSI_BITS
from discreet.specs.mechanisms.additive import LARGEST_STEPS
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.queries.sums import Sum
from discreet.trusted.release import Question, Step

SMALLEST_STEP = Fraction(1, 10**9)  # ε of a step
SCALE = 0.5  # σ of residuals, in half-ranges of the response: public, since none is released


def require_law(solver: SGD, spend: Guarantee) -> None:
    """Refuses Laplace noise with a spend that is not pure, and the reverse."""
    pure = isinstance(require_spend(spend), PureDP)
    if pure and solver.law != "laplace":
        raise NoTheorem(
            "solver=dp.SGD(…) with a pure spend",
            "its noise is Gaussian",
            "no Gaussian noise is pure",
            "spend dp.ApproxDP(epsilon, delta), or fit a regression by dp.SGD(law='laplace')",
        )
    if not pure and solver.law == "laplace":
        raise NoTheorem(
            "solver=dp.SGD(law='laplace')",
            f"{spend} is not a pure spend",
            "Laplace noise pays for purity with more noise, which another spend has no use for",
            "spend dp.PureDP(epsilon), or leave law= out",
        )


def fit_pure(regression: Regression, asked: str | Family, solver: SGD) -> PointFit:
    """A regression by pure SGD; refused, from public facts, before anything is spent."""
    require_law(solver, regression.spend)
    require_response(regression.session, regression.model, asked)
    require_sampling(regression.session)
    if _epsilon(step_spend(regression.spend, 1 - COUNT_SHARE)) < SMALLEST_STEP * solver.steps:
        raise too_many_steps()
    with Steps(regression.session, regression.spend, regression.key, reserved="") as steps:
        fitting = Fitting(regression, steps, regression.model, Fraction(0))
        facts = _ask(fitting, family_of(asked, 0.0, regression.model), solver)
    return PointFit(tuple(steps.releases), facts)


def _ask(fitting: Fitting, family: Family, solver: SGD) -> ClassicalFacts:
    """The count where it is private, and the descent; gives the fit's public facts."""
    model, public, spend = fitting.model, fitting.public, fitting.regression.spend
    share, rows = Fraction(1), float(max(1, public.rows or 0))
    if public.rows is None or fitting.optional:
        share, rows = 1 - COUNT_SHARE, _count(fitting)
    batches = batches_of(public, solver, rows)
    radius = absolute_radius(model) if solver.radius is None else float(solver.radius)
    start = shifted_start(family, model, np.zeros(len(model.columns)), SCALE)
    here = Descent(start, SCALE if family.residual else 1.0)
    query = SampledGradients(
        model,
        plain_metric(len(model.columns), radius),
        family,
        grid_point(family, here),
        fitting.optional,
        public.rows if batches.gap is None else None,
        norm=1,
    )
    # w‖x‖₂² ≤ w‖x‖₁ ≤ R, as no column exceeds 1
    step = solver.step_size / (radius * slope_bound(family) / (1 << PSI_BITS))
    counted = batches.size * min(1.0, max(1.0, rows) / batches.rows)  # of a batch, on average
    part = step_spend(spend, share)
    sensitivity, averaged = query.sensitivity(public.neighbors), max(1, solver.steps // 2)
    spread = pure_sgd_spread(
        sqrt_up(sensitivity.moved_squared),
        Fraction(batches.rate),
        _epsilon(part),
        solver.steps,
    )
    if spread > LARGEST_STEPS:
        raise too_many_steps()
    mechanism = NoisySGD(
        sensitivity,
        spread,
        batches.gap,
        batches.fixed,
        solver.steps,
        step * here.sigma * 2.0 ** (BETA_BITS - SUM_BITS) / counted,
        query.point.beta,
        LARGEST_BETA,
        -(-solver.steps // solver.shown),
        averaged,
        Fraction(0),
        "laplace",
    )
    fitting.asked(Step("sgd"), Question(fitting.described(Step("sgd")), query, mechanism, part))
    return _facts(fitting, family, solver, (step, radius, batches.size, averaged))


def _epsilon(spend: Guarantee) -> Fraction:
    assert isinstance(spend, PureDP)
    return rational(spend.epsilon, "epsilon")


def _count(fitting: Fitting) -> float:
    """A noisy number of rows, at least 1."""
    query = Sum(fitting.model.keys, (), fitting.optional)
    spend = step_spend(fitting.regression.spend, COUNT_SHARE)
    mechanism = count_noise(query, fitting.public.neighbors, spend)
    question = Question(fitting.described(Step("count")), query, mechanism, spend)
    return max(1.0, decode.read_count(fitting.asked(Step("count"), question)))


def _facts(
    fitting: Fitting, family: Family, solver: SGD, made: tuple[float, float, int, int]
) -> ClassicalFacts:
    step, radius, batch, averaged = made
    response = fitting.model.response
    ends = (0.0, 1.0)
    if family.residual and response is not None:
        ends = (response.middle, response.half)
    return ClassicalFacts(
        fitting.regression.estimator,
        fitting.regression.spend,
        "sgd",
        step,
        solver.steps,
        len(fitting.model.columns),
        radius,
        0.0,
        *ends,
        batch=batch,
        averaged=averaged,
    )
