"""A private regression of a model: Algorithm A under one spend. `Model` is where formulas meet it."""

from __future__ import annotations

import math
import uuid
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.accounting import Guarantee, PureDP, spend_mu_squared
from discreet.errors import InvalidParameter, NoTheorem, shown
from discreet.inference import regression_decode as decode
from discreet.inference.laws import Array
from discreet.inference.regression import RegressionResult
from discreet.inference.regression_facts import FitFacts
from discreet.models.algorithm_a import MEAN_TRUST, TRUST, Steps, augmented, least_moment, run
from discreet.models.rules import COUNT_SHARE, MEAN_SHARE, Rules, noise_index, rules_for, tuning
from discreet.queries import Sum, may_leave_out
from discreet.queries.families import PSI, Family, Huber, Logistic, Poisson, slope_bound
from discreet.queries.model import Model
from discreet.queries.pieces import LevelPiece
from discreet.queries.tabulated import TabulatedMean, TabulatedResidual
from discreet.session import Session

ESTIMATORS = ("robust", "ols", "logistic", "poisson")
OLS_TUNING = 4.0  # "clipped least squares" (regression.md §5)
LEDGER_GRAIN = Fraction(1, 10**12) * 2  # a debit is rounded up by less than this
LARGEST_STEPS = 20
SMALLEST_MU_SQUARED = Fraction(4, 10**8)
LONGEST_KEY = 180


def fit_regression(session: Session, model: Model, family: str | Family, *, spend: Guarantee, key: str | None = None, where: str = "") -> RegressionResult:
    """A regression of the model's response on its columns, with private inference.

    `family` is "robust" (Huber's ψ, c by the noise index), "ols" (Huber's ψ with c = 4), "logistic", "poisson", or a family of
    discreet.queries.families. `spend` is GDP, zCDP or (ε, δ). With a `key`, asking again returns the stored answers, and a fit that was
    interrupted goes on where it stopped. `where` says the model's filter in words.
    """
    estimator = _estimator(family)
    mu_squared = _budget(spend, session.public.neighbors.rows)
    _checked_response(session, model, family)
    name = uuid.uuid4().hex if key is None else _key(key)
    reservation = session.reserve(spend, key=name)
    steps = Steps(session, estimator, where, model, any(may_leave_out(one, session.public.schema) for one in model.keys), mu_squared, reservation, name)
    try:
        facts = _fit(steps, family, spend)
    except BaseException:
        if key is None:  # nobody could ask again under this name
            reservation.close()
        raise
    reservation.close()
    return RegressionResult(tuple(steps.releases), facts)


def _fit(steps: Steps, asked: str | Family, spend: Guarantee) -> FitFacts:
    """All releases of a fit; gives its public facts."""
    public, model = steps.session.public, steps.model
    columns, rows = len(model.columns), _rows(steps)
    index = noise_index(columns, rows, math.sqrt(steps.mu_squared), public.neighbors)
    chosen = _family(asked, index, model)
    start, relative = None, 1.0
    if isinstance(chosen, Poisson):
        start = _poisson_start(steps, chosen, rows)
        relative = max(1.0, slope_bound(chosen) / PSI / float(start[-1]))  # the noise of a curvature is relative to its largest value
    elif not chosen.residual:
        start = np.append(np.zeros(columns), slope_bound(chosen) / PSI)
    rules = rules_for(columns, index * relative, residual=chosen.residual, counts=isinstance(chosen, Poisson), private_rows=steps.optional or public.rows is None)
    run(steps, chosen, rules, rows, start)
    return _facts(steps, chosen, rules, index, spend)


def _facts(steps: Steps, chosen: Family, rules: Rules, index: float, spend: Guarantee) -> FitFacts:
    model = steps.model
    wide = augmented(model) if chosen.residual else model
    trust = TRUST * math.sqrt(len(model.columns)) if chosen.residual else MEAN_TRUST
    center, half = 0.0, 1.0
    if chosen.residual:
        assert model.response is not None
        center, half = model.response.middle, model.response.half
    least = tuple(least_moment(column, rules.radius) for column in wide.columns)
    return FitFacts(steps.estimator, spend, len(model.columns), rules.radius, rules.metric_radius, trust, index, least, center, half)


def _rows(steps: Steps) -> float:
    """The number of rows where it is public, else a noisy one."""
    public = steps.session.public
    if public.rows is not None and not steps.optional:
        return float(max(1, public.rows))
    return max(1.0, decode.read_count(steps.ask("count 1", Sum(steps.model.keys, (), steps.optional), COUNT_SHARE)))


def _poisson_start(steps: Steps, family: Poisson, rows: float) -> Array:
    """log of a noisy mean for the constant, 0 for the rest; and the curvature level there."""
    response = steps.model.response
    assert response is not None
    assert response.factor is not None
    release = steps.ask("mean 1", Sum(steps.model.keys, (response.factor,), steps.optional), MEAN_SHARE)
    grid = response.factor.encoding
    noise = math.sqrt(release.mechanism.variance) * float(grid.step) / rows  # type: ignore[attr-defined]
    mean = grid.center + decode.read_count(release) * float(grid.step) / rows
    mean = min(max(mean, noise, 1 / rows, 0.005), family.most)
    return np.append(constant(steps.model) * math.log(mean), math.sqrt(mean))


def constant(model: Model) -> Array:
    """Coefficients that make the predictor 1 for every row: the intercept, or all levels of one category; 0 where there is neither."""
    for place, column in enumerate(model.columns):
        if not column.pieces:
            return np.asarray(np.eye(len(model.columns))[place])
    levels: dict[str, list[int]] = {}
    for place, column in enumerate(model.columns):
        if len(column.pieces) == 1 and isinstance(column.pieces[0], LevelPiece) and sorted(column.pieces[0].contrast)[-2:] in ([1], [0, 1]):
            levels.setdefault(column.pieces[0].column, []).append(place)
            if len(levels[column.pieces[0].column]) == len(column.pieces[0].contrast):
                beta = np.zeros(len(model.columns))
                beta[levels[column.pieces[0].column]] = 1.0
                return beta
    return np.zeros(len(model.columns))


def _family(asked: str | Family, index: float, model: Model) -> Family:
    if not isinstance(asked, str):
        return asked
    if asked == "robust":
        return Huber(tuning(index))
    if asked == "ols":
        return Huber(OLS_TUNING)
    if asked == "logistic":
        return Logistic()
    grid = model.response.factor.encoding  # type: ignore[union-attr]
    return Poisson(float(max(1.0, min(10_000.0, float(grid.value(grid.high))))))


def _estimator(family: object) -> str:
    if isinstance(family, str) and family in ESTIMATORS:
        return family
    if type(family) in (TabulatedResidual, TabulatedMean):
        return "m_estimate"
    if type(family) in (Logistic, Poisson):
        return family.kind  # type: ignore[attr-defined, no-any-return]
    if getattr(family, "residual", False) is True:
        return "robust"
    raise InvalidParameter("family", f"{shown(family)} is not known", "each has its own bounds", f"use one of {', '.join(ESTIMATORS)}")


def _budget(spend: Guarantee, unit_rows: int) -> Fraction:
    """μ² that the steps may share: what the spend allows, less what debits are rounded up by."""
    if isinstance(spend, PureDP):
        raise NoTheorem("a regression with a pure spend", "its noise is Gaussian", "no Gaussian noise is pure, and Laplace noise on matrices would grow with the number of columns", "spend dp.GDP(mu), dp.ZCDP(rho) or dp.ApproxDP(epsilon, delta)")
    left = spend_mu_squared(spend) - LARGEST_STEPS * LEDGER_GRAIN
    if left < SMALLEST_MU_SQUARED * unit_rows**2:
        raise InvalidParameter("spend=", "it is too small to be divided among the steps of a regression", "each step is a release of its own, and its noise must fit its grid", f"spend at least mu = {0.0002 * unit_rows:g}")
    return left


def _checked_response(session: Session, model: Model, family: Any) -> None:
    response = model.response
    counts = family in ("logistic",) or isinstance(family, (Logistic, TabulatedMean))
    if response is None or (response.factor is None and not counts):
        raise InvalidParameter("a regression", "its model has no response that this family can read", "residuals and counts need numbers", "give a number column as the response, or use family='logistic' for a level")
    for name in model.reads:
        session.public.schema[name]  # refuses what is not declared


def _key(key: object) -> str:
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:
        raise InvalidParameter("key=", f"not a text of 1 to {LONGEST_KEY} characters", "a key names one fit and its answers", "pass for example key='wages-2026'")
    return key
