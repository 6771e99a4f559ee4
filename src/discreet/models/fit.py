"""A private regression of a model: Algorithm A under one spend.

`Model` is where formulas meet it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import BaseChoice
from discreet.asking.sessions import Session
from discreet.inference.regression.bases import base_levels
from discreet.inference.regression.facts import FitFacts
from discreet.inference.regression.fit import RegressionResult
from discreet.models.preconditioned import MEAN_TRUST, TRUST, augmented, least_moments, run
from discreet.models.procedure import (
    Fitting,
    Regression,
    budget_of,
    constant,
    estimator_of,
    family_of,
    mean_response,
    require_response,
    rows_of,
    score_share,
)
from discreet.models.starts import flat_start
from discreet.models.tuning import (
    LEAST_SQUARES_NOISE,
    LEVERAGE_NOISE,
    Tuning,
    gradient_room,
    noise_index,
    room_for,
    tuning_for,
)
from discreet.specs.estimating.families import Family, Logistic, Poisson, slope_bound
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tables import PSI
from discreet.specs.estimating.tabulated import TabulatedMean


def fit_regression(
    session: Session,
    model: Model,
    family: str | Family,
    *,
    spend: Guarantee,
    key: str | None = None,
    where: str = "",
    choice: BaseChoice | None = None,
) -> RegressionResult:
    """A regression of the model's response on its columns, with private inference.

    `family` is "robust" (Huber's ψ, c by the noise index), "ols" (Huber's ψ with c from 4 to 6),
    "logistic", "poisson", or a family of discreet.specs.estimating.families. `spend` is GDP, zCDP
    or (ε, δ). With a `key`, asking again returns the stored answers, and a fit that was interrupted
    goes on where it stopped. `where` says the model's filter in words; `choice` are bases to be
    chosen first.
    """
    regression = Regression(session, model, estimator_of(family), spend, key, where, choice)
    mu_squared = budget_of(spend, session.public.neighbors.rows)
    require_response(session, model, family)
    return RegressionResult(
        *regression.asked(lambda fitting: ask_fit(fitting, family, spend), mu_squared)
    )


@dataclass(frozen=True)
class Setting:
    """What a fit knows before its first metric: rows, noise index, the family meant, the response's
    mean (mean families) and the public rules.
    """

    rows: float
    index: float
    family: Family
    mean: float
    tuning: Tuning


def ask_setting(fitting: Fitting, asked: str | Family) -> Setting:
    """Asks for the number of rows and the mean of the response where they are needed."""
    public, model = fitting.public, fitting.model
    columns, rows = len(model.columns), rows_of(fitting)
    mu, neighbors = math.sqrt(fitting.mu_squared), public.neighbors
    index, room = noise_index(columns, rows, mu, neighbors), gradient_room(rows, mu, neighbors)
    chosen = family_of(asked, index, model, room)
    relative, mean = 1.0, 0.5
    if isinstance(chosen, (Poisson, Logistic, TabulatedMean)):
        mean = mean_response(fitting, chosen, rows)
        if not isinstance(chosen, Logistic):
            # the noise of a curvature is relative to its largest value
            relative = max(1.0, slope_bound(chosen) / PSI / flat_start(chosen, mean).level)
    allowed = LEAST_SQUARES_NOISE if asked == "ols" else LEVERAGE_NOISE[chosen.residual]
    tuning = tuning_for(
        columns,
        index * relative,
        residual=chosen.residual,
        counts=not chosen.residual,
        private_rows=fitting.optional or public.rows is None,
        room=room_for(rows, mu, neighbors, score_share(chosen, mean), allowed),
    )
    return Setting(rows, index, chosen, mean, tuning)


def ask_fit(fitting: Fitting, asked: str | Family, spend: Guarantee) -> FitFacts:
    """All releases of a fit; gives its public facts."""
    setting = ask_setting(fitting, asked)
    run(
        fitting,
        setting.family,
        setting.tuning,
        setting.rows,
        (setting.mean, constant(fitting.model)),
    )
    return _facts(fitting, setting.family, setting.tuning, setting.index, spend)


def _facts(
    fitting: Fitting, chosen: Family, tuning: Tuning, index: float, spend: Guarantee
) -> FitFacts:
    model = fitting.model
    wide = augmented(model) if chosen.residual else model
    trust = TRUST * math.sqrt(len(model.columns)) if chosen.residual else MEAN_TRUST
    center, half = 0.0, 1.0
    if chosen.residual:
        assert model.response is not None
        center, half = model.response.middle, model.response.half
    least = least_moments(wide, tuning.radius)
    return FitFacts(
        fitting.regression.estimator,
        spend,
        len(model.columns),
        tuning.radius,
        tuning.metric_radius,
        trust,
        index,
        least,
        center,
        half,
        tuning.first_radius,
        base_levels(model.columns, fitting.public.schema),
    )
