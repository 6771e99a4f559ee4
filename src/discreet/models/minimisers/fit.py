"""A regression or classification by one perturbed minimiser, under one spend
(docs/theory/perturbed-minimisers.md).

    count 1        where the number of rows is private
    metric 1–4     as Algorithm A learns it; for a pure spend columns are as their ranges scale them
    minimiser 1    one noisy gradient, at the optimum itself, for most of the budget
    curvature 1    at the minimiser: the penalty is taken away by one Newton step
    curvature 2, scores 1   at the estimate, for its variance; where noise is small the penalty is
                   too, and one curvature serves both

Theorem.  All releases together satisfy the spend. *Proof.*  Each is a release of `Session.release`
at its share, and shares sum to at most 1; every metric, point and scale is computed from earlier
releases and public facts alone.
Checked.  tests/models/test_erm.py::test_every_release_is_in_the_ledger_within_the_spend
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from discreet.accounting.calibration.additive import pure_within
from discreet.accounting.calibration.minimiser import (
    Room,
    default_penalty,
    least_penalty,
    perturbed_minimiser,
    require_grid,
    require_price,
)
from discreet.accounting.guarantees import GDP, Guarantee, PureDP
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps, step_spend
from discreet.errors import InvalidParameter, shown
from discreet.exact import float_up, rational, sqrt_up
from discreet.inference.minimisers.results import (
    MinimiserFacts,
    PerturbedResult,
    minimiser_of,
    unpenalised,
)
from discreet.inference.regression.bases import base_levels
from discreet.inference.regression.decode import step_of
from discreet.inference.regression.metric import inverse_root, start_from
from discreet.inference.results.laws import Array
from discreet.models.points import metric_on_grid, point_at
from discreet.models.preconditioned import augmented, learn_metric, least_moments
from discreet.models.procedure import (
    Fitting,
    Regression,
    budget_of,
    require_response,
    rows_of,
)
from discreet.models.solvers import plain_radius
from discreet.models.tuning import (
    AMPLE_RADIUS,
    CALM_METRIC,
    CALM_ROUNDS,
    COUNT_SHARE,
    ROUNDS,
    WHOLE,
    Tuning,
    noise_index,
    room_for,
)
from discreet.schema import Boolean, Category
from discreet.sensitivity import RowLoss
from discreet.specs.estimating.batches import plain_metric
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.estimating.families import Family, HuberHinge
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.minimand import Minimand
from discreet.specs.estimating.model import Model
from discreet.trusted.release import Question, Step

METRIC_SHARE = (0.06, 0.35)  # the least and the largest, 2.5 noise indices between
# of what the metric leaves: the minimiser, both curvatures, the scores
SHARES = (Fraction(84, 100), Fraction(4, 100), Fraction(7, 100), Fraction(5, 100))
PURE_SCALE = 0.25  # σ of residuals, in half-ranges of the response, where none is released
UNKNOWN_ROWS = 1000.0  # for the solver's tolerance alone, where their number is private
SMALLEST_SCALE = 2.0**-12
FADE = 0.02  # of the sampling variance: what the noise of lighter weights may cost
TYPICAL_SCORE = 0.15  # E[ψ²]/L² of logistic rows


@dataclass(frozen=True)
class Asked:
    """What is minimised and how: the family, "objective" or "output", the penalty or None."""

    family: Family
    way: str
    penalty: float | None


def fit_minimiser(regression: Regression, asked: Asked) -> PerturbedResult:
    """A fit; what cannot be fitted is refused, from public facts, before anything is spent."""
    mu_squared = require_fit(regression, asked)
    if not isinstance(regression.spend, PureDP):
        return PerturbedResult(
            *regression.asked(lambda fitting: ask_minimiser(fitting, asked), mu_squared)
        )
    with Steps(regression.session, regression.spend, regression.key, reserved="") as steps:
        fitting = Fitting(regression, steps, regression.model, mu_squared)
        facts = _ask_pure(fitting, asked)
    return PerturbedResult(tuple(steps.releases), facts)


def require_fit(regression: Regression, asked: Asked) -> Fraction:
    """What can be fitted: gives μ² of the spend, 0 where it is pure."""
    session, spend = regression.session, regression.spend
    require_response(session, regression.model, asked.family)
    pure = isinstance(spend, PureDP)
    if pure and regression.choice is not None:
        raise InvalidParameter(
            "base=",
            "a base is to be chosen, and the spend is pure",
            "all of a pure spend goes into the minimiser",
            "name the base: base={'region': 'N'}",
        )
    mu_squared = Fraction(0) if pure else budget_of(spend, session.public.neighbors.rows)
    # half of it at least is left for the minimiser
    room = Room(mu_squared=mu_squared / 2)
    if isinstance(spend, PureDP):
        room = Room(epsilon=rational(spend.epsilon, "epsilon"))
    _require_penalty(session, regression.model, asked, room)
    return mu_squared


def _require_penalty(session: Session, model: Model, asked: Asked, room: Room) -> None:
    """Refuses a loss that is not convex, and a penalty that is no positive number, or for the
    objective one with κ > 1.
    """
    pure = room.law == "laplace"
    radius = plain_radius(model) if pure else metric_radius(model)
    sigma = PURE_SCALE if pure and asked.family.residual else 1.0
    row = _minimand(
        model, plain_metric(len(model.columns), radius), asked.family, sigma, optional=False
    ).sensitivity(session.public.neighbors)
    if asked.way == "objective" and not pure and row.one_signed:
        require_price(row, room)
    if asked.penalty is None:
        return
    least = float(row.curvature) * radius**2
    if not 0 < asked.penalty < math.inf or asked.penalty > 1e12:
        raise InvalidParameter(
            "penalty=",
            f"{shown(asked.penalty)} is not a positive number",
            "it bounds how far one row can move the minimiser",
            "leave it out, or use a number of about the size of the model's columns",
        )
    known = pure or not asked.family.residual  # else the scale of residuals is learnt first
    if asked.way == "objective" and known and asked.penalty < least:
        raise InvalidParameter(
            "penalty=",
            f"{shown(asked.penalty)} is below {least:.4g}, the largest curvature of one row",
            "the price of objective perturbation is proven for penalties from there on",
            f"use at least {least:.4g}, or leave it out",
        )
    if known or asked.way == "output":  # whose price no curvature enters
        _require_room(session, asked, row, radius, room)


def _require_room(session: Session, asked: Asked, row: RowLoss, radius: float, room: Room) -> None:
    """Refuses a penalty for whose noise there is no grid, before anything is spent; the refusal
    names one that will do.
    """
    public, squared = session.public, radius**2
    rows = float(public.rows) if public.rows is not None else UNKNOWN_ROWS
    penalty = _acting_penalty(asked, row, radius, room)
    assert penalty is not None
    try:
        require_grid(row, room, way=asked.way, penalty=penalty, rows=rows)
    except InvalidParameter as refusal:
        usual = default_penalty(row, room, asked.way, rows)
        raise InvalidParameter(
            "penalty=",
            f"{shown(asked.penalty)} has no grid for its noise at this spend",
            "steps of the answer are to be small beside its noise, and no smaller than float64s",
            f"use about {float(usual) * squared:.2g}, or leave it out",
        ) from refusal


def metric_radius(model: Model) -> float:
    """R of the weights in the learnt metric: R² = p + √p, public before anything is asked."""
    columns = len(model.columns)
    return math.sqrt(columns + math.sqrt(columns))


def has_intervals(asked: Asked) -> bool:
    """Whether curvature is released: the hinge has too little of it to tell anything, and the
    penalty that output perturbation needs is too large for one Newton step.
    """
    return asked.way == "objective" and not isinstance(asked.family, HuberHinge)


def _minimand(
    model: Model, metric: Metric, family: Family, sigma: float, *, optional: bool
) -> Minimand:
    return Minimand(
        model, metric, family, point_at(np.zeros(len(model.columns)), sigma, family), optional
    )


def _ask_pure(fitting: Fitting, asked: Asked) -> MinimiserFacts:
    """One release, with all of ε."""
    model, public, spend = fitting.model, fitting.public, fitting.regression.spend
    radius = plain_radius(model)
    sigma = PURE_SCALE if asked.family.residual else 1.0
    metric = plain_metric(len(model.columns), radius)
    query = _minimand(model, metric, asked.family, sigma, optional=fitting.optional)
    part = step_spend(spend, Fraction(1))
    assert isinstance(part, PureDP)
    room = Room(epsilon=rational(part.epsilon, "epsilon"))
    rows = float(public.rows) if public.rows is not None else UNKNOWN_ROWS
    _ask_minimiser(fitting, query, asked, (room, part), radius=radius, rows=rows)
    return _facts(fitting, asked, radius, None, 0.0)


def ask_minimiser(fitting: Fitting, asked: Asked) -> MinimiserFacts:
    """All releases of a fit with a Gaussian spend."""
    model, public, family = fitting.model, fitting.public, asked.family
    rows, columns = rows_of(fitting), len(model.columns)
    index = noise_index(columns, rows, math.sqrt(fitting.mu_squared), public.neighbors)
    counted = any(step_of(release).name == "count" for release in fitting.releases)
    tuning = _tuning(fitting, asked, index, rows)
    wide = augmented(model) if family.residual else model
    state = learn_metric(fitting, wide, tuning, rows)
    before = [*(share for _, share in tuning.shares), COUNT_SHARE if counted else Fraction(0)]
    left = 1 - sum(before, Fraction(0))
    matrix, sigma = inverse_root(state.moment[:columns, :columns]), 1.0
    if family.residual:
        matrix = np.hstack([matrix, np.zeros((columns, 1))])
        sigma = max(start_from(state.moment, columns)[1], SMALLEST_SCALE)
    metric = metric_on_grid(matrix, tuning.radius)
    seen = replace(fitting, model=wide)
    query = _minimand(wide, metric, family, sigma, optional=fitting.optional)
    shares = [left * share for share in _parts(asked, tuning)]
    spend = GDP(float_up(sqrt_up(fitting.mu_squared * shares[0])))
    room = Room(mu_squared=fitting.mu_squared * shares[0])
    if asked.way == "objective" and not query.sensitivity(public.neighbors).one_signed:
        room = Room(epsilon=pure_within(spend))
    _ask_minimiser(seen, query, asked, (room, spend), radius=tuning.radius, rows=rows)
    facts = _facts(fitting, asked, tuning.radius, tuning, index)
    if has_intervals(asked):
        _ask_variance(seen, query, facts, shares[1:])
    return facts


def _ask_minimiser(
    fitting: Fitting,
    query: Minimand,
    asked: Asked,
    room: tuple[Room, Guarantee],
    *,
    radius: float,
    rows: float,
) -> None:
    sensitivity = query.sensitivity(fitting.public.neighbors)
    mechanism = perturbed_minimiser(
        sensitivity,
        query.size,
        room[0],
        way=asked.way,
        penalty=_acting_penalty(asked, sensitivity, radius, room[0]),
        rows=rows,
        most=float(fitting.public.rows or 0),
    )
    step = Step("minimiser")
    fitting.asked(step, Question(fitting.described(step), query, mechanism, room[1]))


def _acting_penalty(asked: Asked, row: RowLoss, radius: float, room: Room) -> Fraction | None:
    """The penalty in units of the radius; of the objective no less than what this spend pays for,
    which is public: with a smaller one a row could bend the objective too far.
    """
    if asked.penalty is None:
        return None
    scaled = Fraction(asked.penalty) / Fraction(radius) ** 2
    return scaled if asked.way == "output" else max(scaled, least_penalty(row, room))


def _ask_variance(
    fitting: Fitting, query: Minimand, facts: MinimiserFacts, shares: list[Fraction]
) -> None:
    """Both curvatures and the scores, at the minimiser and at the estimate without a penalty."""

    def ask(step: Step, part: str, beta: Array, share: Fraction) -> None:
        whole = np.append(beta, 0.0) if query.family.residual else beta
        point = point_at(whole, sigma, query.family)
        gram = WeightedGram(query.model, query.metric, part, fitting.optional, query.family, point)
        fitting.ask(step, gram, share)

    found = minimiser_of(fitting.releases, facts)
    sigma = found.sigma
    ask(Step("curvature"), "curvature", found.beta, shares[0])
    beta = unpenalised(tuple(fitting.releases), facts)
    if shares[1]:
        ask(Step("curvature", 2), "curvature", beta, shares[1])
    ask(Step("scores"), "scores", beta, shares[2])


def _parts(asked: Asked, tuning: Tuning) -> tuple[Fraction, ...]:
    """What the minimiser, both curvatures and the scores get of what the metric leaves.

    Where noise is small the penalty is small beside the curvature of all rows, so that the
    curvature at the minimiser is that at the estimate.
    """
    if not has_intervals(asked):
        return (Fraction(1), Fraction(0), Fraction(0), Fraction(0))
    minimiser, first, second, scores = SHARES
    if asked.penalty is None and tuning.noise_index < CALM_METRIC:
        first, second = first + second, Fraction(0)
    return minimiser, first, second, scores


def _tuning(fitting: Fitting, asked: Asked, index: float, rows: float) -> Tuning:
    """The metric's rounds, as Algorithm A has them, with the radii of this fit.

    Where noise is small weights fade, as Algorithm A's do: as far as FADE of the sampling variance
    pays for it, and rounds whose weights are all 1 share one pass.
    """
    model, residual = fitting.model, asked.family.residual
    width = len(model.columns) + 1 if residual else len(model.columns)
    calm = index < CALM_METRIC
    tight, radius = width + math.sqrt(width), metric_radius(model) ** 2
    mu, neighbors = math.sqrt(fitting.mu_squared), fitting.public.neighbors
    room = room_for(rows, mu, neighbors, TYPICAL_SCORE, FADE)
    seen = max(tight, min(AMPLE_RADIUS * tight, room.metric)) if calm else tight
    if calm and not residual and asked.penalty is None and asked.way == "objective":
        radius = max(radius, min(AMPLE_RADIUS * radius, room.leverage))
    rounds, (least, most) = CALM_ROUNDS if calm else ROUNDS, METRIC_SHARE
    # whole hundredths: the price of a spend is computed once for many noisy numbers of rows
    share = Fraction(round(min(max(2.5 * index, least), most) * 100), 100) / rounds
    return Tuning(
        index,
        1,
        math.sqrt(radius),
        math.sqrt(seen),
        math.sqrt(WHOLE * width) if calm else 1.0,
        tuple((Step("metric", number + 1), share) for number in range(rounds)),
    )


def _facts(
    fitting: Fitting, asked: Asked, radius: float, tuning: Tuning | None, index: float
) -> MinimiserFacts:
    model, schema = fitting.model, fitting.public.schema
    wide = augmented(model) if asked.family.residual and tuning is not None else model
    response = model.response
    assert response is not None
    declared = {name: schema[name] for name in model.reads}
    levels = {
        name: tuple(column.levels) if isinstance(column, Category) else (False, True)
        for name, column in declared.items()
        if isinstance(column, (Category, Boolean))
    }
    return MinimiserFacts(
        fitting.regression.estimator,
        fitting.regression.spend,
        len(model.columns),
        radius,
        index,
        response.middle if asked.family.residual else 0.0,
        response.half if asked.family.residual else 1.0,
        () if tuning is None else least_moments(wide, tuning.radius),
        0.0 if tuning is None else tuning.metric_radius,
        1.0 if tuning is None else tuning.first_radius,
        levels,
        base_levels(model.columns, schema),
        asked.penalty,
    )
