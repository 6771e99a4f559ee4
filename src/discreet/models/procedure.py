"""What all procedures of a regression share: how a spend is set aside and divided, which rows there
are, which family is meant, where it starts.

Algorithm A (fit.py), the classical solvers (classical.py), second moments (moments.py) and
forecasts of all of them (forecast.py) are written with these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from discreet.accounting.calibration.additive import gaussian_noise, symmetric_noise
from discreet.accounting.guarantees import GDP, Guarantee, PureDP, spend_mu_squared
from discreet.asking.bases import BASE_SHARE, BaseChoice
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps
from discreet.errors import InvalidParameter, NoTheorem, shown
from discreet.exact import float_up, sqrt_up
from discreet.inference.regression import decode as decode
from discreet.inference.results.laws import Array
from discreet.models.points import metric_on_grid, point_at, response_text
from discreet.models.scales import second_moment
from discreet.models.tuning import COUNT_SHARE, MEAN_SHARE, least_squares_cut, tuning
from discreet.sensitivity import L2
from discreet.specs.estimating.components import ModelColumn
from discreet.specs.estimating.equations import WeightedGradient, WeightedGram
from discreet.specs.estimating.families import (
    Family,
    Huber,
    HuberHinge,
    Logistic,
    Poisson,
    psi_bound,
)
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tables import PSI
from discreet.specs.estimating.tabulated import TabulatedMean, TabulatedResidual
from discreet.specs.queries.keys import may_leave_out
from discreet.specs.queries.sums import Sum
from discreet.trusted.release import Description, PublicFacts, Question, Release, Step

ESTIMATORS = ("robust", "ols", "logistic", "poisson")
LEAST_MEAN = 0.005  # of a count or yes/no response, where a fit starts
LEDGER_GRAIN = Fraction(1, 10**12) * 2  # a debit is rounded up by less than this
LARGEST_STEPS = 20
SMALLEST_MU_SQUARED = Fraction(4, 10**8)
Facts = TypeVar("Facts")


@dataclass(frozen=True)
class Regression:
    """A regression to be asked of a session under one spend; with a `key`, asking again returns the
    stored answers. `where` says the model's filter in words; `choice` are bases to be chosen first.
    """

    session: Session
    model: Model
    estimator: str
    spend: Guarantee
    key: str | None = None
    where: str = ""
    choice: BaseChoice | None = None

    def asked(
        self, ask: Callable[[Fitting], Facts], mu_squared: Fraction, delta: Fraction = Fraction(0)
    ) -> tuple[tuple[Release, ...], Facts]:
        """The releases that `ask` asks for within μ² and δ₀ of the spend, and what it gives."""
        choices = self._choices(mu_squared)
        with Steps(self.session, self.spend, self.key, delta=delta, reserved="") as steps:
            fitting = Fitting(self, steps, self.model, mu_squared)
            if self.choice is not None:
                codes = tuple(fitting.asked(*choice).integers[0] for choice in choices)
                left = mu_squared * (1 - BASE_SHARE)
                fitting = replace(fitting, model=self.choice.model(codes), mu_squared=left)
            facts = ask(fitting)
        return tuple(steps.releases), facts

    def _choices(self, mu_squared: Fraction) -> tuple[tuple[Step, Question], ...]:
        """The questions that choose bases: made, and refused where they cannot be paid, before
        anything is set aside.
        """
        if self.choice is None:
            return ()
        words = Description(self.estimator, where=self.where)
        return self.choice.questions(self.session.public, words, mu_squared)

    @property
    def optional(self) -> bool:
        """Whether a filter may leave rows out, so that their number is private."""
        return any(may_leave_out(key, self.session.public.schema) for key in self.model.keys)


@dataclass(frozen=True)
class Fitting:
    """A regression while it is asked: each release at its share of μ².

    `model` may have more columns than the regression's own (a response among them).
    """

    regression: Regression
    steps: Steps
    model: Model
    mu_squared: Fraction

    @property
    def public(self) -> PublicFacts:
        return self.regression.session.public

    @property
    def optional(self) -> bool:
        return self.regression.optional

    @property
    def scores_part(self) -> str:
        """Which scores a variance is made of: those of units where one may have several rows."""
        return "unit scores" if self.public.neighbors.rows > 1 else "scores"

    @property
    def releases(self) -> list[Release]:
        return self.steps.releases

    def ask(
        self, step: Step, query: Sum | WeightedGradient | WeightedGram, share: Fraction
    ) -> Release:
        """The answer to one step, with Gaussian noise at a share of μ²."""
        sensitivity = query.sensitivity(self.public.neighbors)
        if isinstance(sensitivity, tuple):
            sensitivity = next(one for one in sensitivity if isinstance(one, L2))
        mu_squared = self.mu_squared * share
        mechanism = (
            gaussian_noise(sensitivity, mu_squared)
            if isinstance(sensitivity, L2)
            else symmetric_noise(sensitivity, mu_squared)
        )
        spend = GDP(float_up(sqrt_up(mu_squared)))
        return self.asked(step, Question(self.described(step), query, mechanism, spend))

    def asked(self, step: Step, question: Question) -> Release:
        return self.steps.ask(question, str(step))

    def described(self, step: Step) -> Description:
        return Description(
            self.regression.estimator,
            response_text(self.model, self.public.schema),
            where=self.regression.where,
            step=step,
        )


def rows_of(fitting: Fitting) -> float:
    """The number of rows where it is public, else a noisy one."""
    public = fitting.public
    if public.rows is not None and not fitting.optional:
        return float(max(1, public.rows))
    return max(
        1.0,
        decode.read_count(
            fitting.ask(Step("count"), Sum(fitting.model.keys, (), fitting.optional), COUNT_SHARE)
        ),
    )


def mean_response(
    fitting: Fitting, family: Poisson | Logistic | TabulatedMean, rows: float
) -> float:
    """A noisy mean of a count or yes/no response, kept away from where it has no link."""
    response = fitting.model.response
    assert response is not None
    if not isinstance(family, Logistic) and response.factor is not None:
        release = fitting.ask(
            Step("mean"), Sum(fitting.model.keys, (response.factor,), fitting.optional), MEAN_SHARE
        )
        grid = response.factor.encoding
        deviation = math.sqrt(release.mechanism.variance)  # type: ignore[attr-defined]
        noise = deviation * float(grid.step) / rows
        mean = grid.center + decode.read_count(release) * float(grid.step) / rows
        return min(max(mean, noise, 1 / rows, LEAST_MEAN), family.most)
    # Σ(½ − y): the logistic gradient of a constant at 0
    alone = Model((ModelColumn("mean", ()),), response, fitting.model.keys)
    release = fitting.ask(
        Step("mean"),
        WeightedGradient(
            alone,
            metric_on_grid(np.eye(1), 1.0),
            Logistic(),
            point_at(np.zeros(1), 1.0, Logistic()),
            fitting.optional,
            Fraction(0),
        ),
        MEAN_SHARE,
    )
    reading = decode.read_gradient(release, 1.0, rows)
    least = min(max(reading.noise, 1 / rows, LEAST_MEAN), 0.5)
    return min(max(0.5 - float(reading.value[0]), least), 1 - least)


def score_share(family: Family, mean: float) -> float:
    """E[ψ²]/B², about: a typical row's squared score over the largest;
    0 where it is not known, so that weights do not fade.
    """
    bound = (psi_bound(family) / PSI) ** 2
    if family.residual:
        return second_moment(family) / bound
    if isinstance(family, Poisson):
        return 0.8 / bound
    return 0.6 * mean * (1 - mean) / bound if isinstance(family, Logistic) else 0.0


def constant(model: Model) -> Array:
    """Coefficients that make the predictor 1 for every row: the intercept, or all levels of one
    category; 0 where there is neither.
    """
    return np.array(model.constant, dtype=float)


def family_of(asked: str | Family, index: float, model: Model, room: float = 0.0) -> Family:
    """The family that is meant, its constants chosen by the noise index and the room for noise
    (tuning.py).
    """
    if not isinstance(asked, str):
        return asked
    if asked == "robust":
        return Huber(tuning(index))
    if asked == "ols":
        return Huber(least_squares_cut(len(model.columns), room))
    if asked == "logistic":
        return Logistic()
    grid = model.response.factor.encoding  # type: ignore[union-attr]
    return Poisson(float(max(1.0, min(10_000.0, float(grid.value(grid.high))))))


def estimator_of(family: object) -> str:
    if isinstance(family, str) and family in ESTIMATORS:
        return family
    if type(family) in (TabulatedResidual, TabulatedMean):
        return "m_estimate"
    if type(family) in (Logistic, Poisson):
        return family.kind  # type: ignore[attr-defined, no-any-return]
    if getattr(family, "residual", False) is True:
        return "robust"
    raise InvalidParameter(
        "family",
        f"{shown(family)} is not known",
        "each has its own bounds",
        f"use one of {', '.join(ESTIMATORS)}",
    )


def budget_of(spend: Guarantee, unit_rows: int) -> Fraction:
    """μ² that the steps may share: what the spend allows, less what debits are rounded up by."""
    if isinstance(require_spend(spend), PureDP):
        raise NoTheorem(
            "a regression with a pure spend",
            "its noise is Gaussian",
            "no Gaussian noise is pure, and Laplace noise on matrices would grow with the number "
            "of columns",
            "spend dp.GDP(mu), dp.ZCDP(rho) or dp.ApproxDP(epsilon, delta)",
        )
    left = spend_mu_squared(spend) - LARGEST_STEPS * LEDGER_GRAIN
    if left < SMALLEST_MU_SQUARED * unit_rows**2:
        raise InvalidParameter(
            "spend=",
            "it is too small to be divided among the steps of a regression",
            "each step is a release of its own, and its noise must fit its grid",
            f"spend at least mu = {0.0002 * unit_rows:g}",
        )
    return left


def require_response(session: Session, model: Model, family: Any) -> None:
    response = model.response
    counts = family in ("logistic",) or isinstance(family, (Logistic, HuberHinge, TabulatedMean))
    if response is None or (response.factor is None and not counts):
        raise InvalidParameter(
            "a regression",
            "its model has no response that this family can read",
            "residuals and counts need numbers",
            "give a number column as the response, or use family='logistic' for a level",
        )
    for name in model.reads:
        session.public.schema[name]  # refuses what is not declared
