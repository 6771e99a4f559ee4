"""What a regression would give, before anything is spent: the whole procedure on imagined rows
(models/forecasts/expected.py), without noise.

Every release is the expected one of that many rows; standard errors and intervals then come from
the same inference as a real fit's, which knows the noise of every step: for Algorithm A, for each
of the classical solvers, for second moments, and for estimating functions of the user's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
from scipy.special import ndtr

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee, PureDP
from discreet.asking.bases import Base, BaseChoice
from discreet.asking.cells import Where
from discreet.asking.expected import imagined_release, release_preview
from discreet.asking.preview import Assumptions, Forecast, Preview, forecast_summary
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.inference.minimisers.results import PerturbedResult
from discreet.inference.regression.classical import ClassicalResult
from discreet.inference.regression.fit import RegressionResult
from discreet.inference.regression.moments_fit import MomentsResult
from discreet.inference.results.laws import Array
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.models.classical import ask_classical, classical_budget, doubt_of
from discreet.models.fit import ask_fit
from discreet.models.forecasts.expected import ExpectedReleases
from discreet.models.m_estimate import user_model
from discreet.models.minimisers.erm import METHODS, asked_of, erm_model
from discreet.models.minimisers.fit import Asked, ask_minimiser, has_intervals, require_fit
from discreet.models.moments import ask_moments
from discreet.models.procedure import (
    Regression,
    budget_of,
    estimator_of,
    family_of,
    require_response,
)
from discreet.models.regression import asked_model, huber_of
from discreet.models.residuals import residuals_question
from discreet.models.solvers import SGD, Solver, chosen_solver
from discreet.specs.estimating.families import Family, Logistic
from discreet.specs.estimating.model import Model
from discreet.specs.queries.keys import filtered
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import PublicFacts


@dataclass(frozen=True, slots=True, repr=False)
class FitPreview(Told):
    """The forecast of a regression: free, and made without data.

    `expected` is the fit that imagined rows would give without noise; `doubt` says why the solver
    may not converge, where public facts do.
    """

    expected: RegressionResult
    forecasts: tuple[Forecast, ...]
    price: str
    how_many: int
    assumed: str
    level: float
    doubt: str = ""

    @property
    def noise_index(self) -> float:
        """The public noise index ν: below 0.1 normal, up to 0.5 noise dominated,
        beyond not resolvable.
        """
        return self.expected.facts.noise_index

    @property
    def noise_class(self) -> str:
        return self.expected.noise_class

    @property
    def widths(self) -> Array:
        """Expected widths of the coefficients' intervals."""
        return np.array([item.width for item in self.forecasts])

    def summary(self) -> Summary:
        facts = self.expected.facts
        return forecast_summary(
            f"Preview of {facts.estimator}",
            "coefficient",
            self,
            f"Noise index {self.noise_index:.2g} ({self.noise_class}). "
            f"{statement.asked(facts.spend)} in {len(self.expected.releases)} releases. "
            f"Price: {self.price}. About {self.how_many} like this fit in what is left."
            f"{f' MAY NOT CONVERGE: {self.doubt}.' if self.doubt else ''}",
        )

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Expected widths beside those without privacy, and at other spends; saved if a path is
        given.
        """
        from discreet.plots.previews import plot_forecasts

        words, spend = self.summary().title, str(self.expected.facts.spend)
        return plot_forecasts(self, words, spend, ax=ax, title=title, path=path)


def _preview(
    session: Session,
    model: Model,
    family: str | Family,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    *,
    solver: Solver | None = None,
    by_moments: bool = False,
    choice: BaseChoice | None = None,
) -> FitPreview:
    if isinstance(solver, SGD) and solver.law == "laplace":
        raise _no_forecast("descents with law='laplace'")
    asked = Regression(session, model, estimator_of(family), spend, "preview", choice=choice)
    require_response(session, model, family)
    kind = family_of(family, 0.0, model)  # of the same kind, for imagining its response
    imagined = ExpectedReleases(
        session.public, _rows(session.public, assume, optional=filtered(model.keys)), kind, assume
    )
    mu_squared, delta = (
        (budget_of(spend, session.public.neighbors.rows), Fraction(0))
        if solver is None
        else classical_budget(asked, family, solver)
    )
    doubt = None if solver is None else doubt_of(asked, solver, mu_squared)
    imagining = replace(asked, session=cast(Session, imagined))
    expected: RegressionResult
    if by_moments:
        expected = MomentsResult(
            *imagining.asked(lambda fitting: ask_moments(fitting, spend), mu_squared)
        )
    elif solver is not None:
        expected = ClassicalResult(
            *imagining.asked(
                lambda fitting: ask_classical(fitting, family, solver, spend, delta),
                mu_squared,
                delta,
            )
        )
    else:
        expected = RegressionResult(
            *imagining.asked(lambda fitting: ask_fit(fitting, family, spend), mu_squared)
        )
    doubted = "" if doubt is None else f"{doubt.found}; {doubt.remedy}"
    return _forecast(session, expected, spend, delta, (imagined.words(model), level), doubted)


def _forecast(
    session: Session,
    expected: RegressionResult,
    spend: Guarantee,
    delta: Fraction,
    told: tuple[str, float],
    doubt: str = "",
) -> FitPreview:
    """The forecast of a fit from the fit that imagined rows give."""
    words, level = told
    ends = expected.confidence_interval(level)
    columns = (
        expected.names,
        expected.privacy_errors,
        expected.std_errors,
        ends[:, 1] - ends[:, 0],
        expected.noise_share,
    )
    forecasts = tuple(
        Forecast(name, *(float(value) for value in rest))
        for name, *rest in zip(*columns, strict=True)
    )
    price = price_of_spend(spend, box=session.ledger.box, delta=delta)
    return FitPreview(
        expected, forecasts, str(price), session.ledger.how_many(price), words, level, doubt
    )


def _no_forecast(what: str) -> InvalidParameter:
    return InvalidParameter(
        "preview",
        f"{what} give coefficients without intervals",
        "a preview is of the widths of intervals",
        "preview a fit with Gaussian noise; one without intervals costs what it is asked to spend",
    )


def _rows(public: PublicFacts, assume: Assumptions, *, optional: bool) -> float:
    """The number of rows where it is public (what is assumed of it does not matter then);
    of a filter, what is assumed or half of them.
    """
    if public.rows is not None and not optional:
        return float(max(1, public.rows))
    if assume.rows is not None:
        return max(1.0, float(assume.rows))
    if public.rows is None:
        raise InvalidParameter(
            "preview",
            "the number of rows is private here",
            "the forecast needs one",
            "pass assume=dp.Assumptions(rows=…) with your own guess",
        )
    return max(1.0, public.rows / 2)


def _regression(name: str) -> Any:
    def forecast(
        session: Session,
        formula: str,
        *,
        spend: Guarantee,
        assume: Assumptions,
        level: float,
        where: Where | None = None,
        base: Base | None = None,
        **options: Any,
    ) -> FitPreview:
        method, c, solver, penalty = (
            options.pop("method", "clipped"),
            options.pop("c", None),
            options.pop("solver", None),
            options.pop("penalty", None),
        )
        known = {"ols": ("moments",), "logistic": METHODS}.get(name, ())
        if (
            options
            or method not in ("clipped", *known)
            or (method in METHODS and solver is not None)
            or (method not in METHODS and penalty is not None)
            or (name != "robust" and c is not None)
            or (method == "moments" and solver is not None)
        ):
            raise InvalidParameter(
                "preview",
                f"dp.{name} does not know {', '.join(options) or 'these options'}",
                "a forecast is of what would be asked",
                "pass the same options as to the estimator",
            )
        family = name if c is None else huber_of(c)
        model, choice = asked_model(session.public.schema, formula, family, where, base)
        if method in METHODS:
            chosen = asked_of(Logistic(), method, penalty)
            asked = Regression(session, model, "logistic", spend, "preview", choice=choice)
            return _minimiser_preview(asked, chosen, assume, level)
        return _preview(
            session,
            model,
            family,
            spend,
            assume,
            level,
            solver=chosen_solver(solver),
            by_moments=method == "moments",
            choice=choice,
        )

    return forecast


def erm_preview(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    loss: str = "logistic",
    penalty: float | None = None,
    method: str = "objective",
    psi: Any = None,
    mean: Any = None,
    reach: int | None = None,
    where: Where | None = None,
) -> FitPreview:
    model, family = erm_model(session.public.schema, formula, loss, psi, mean, reach, where)
    chosen = asked_of(family, method, penalty)
    return _minimiser_preview(
        Regression(session, model, "erm", spend, "preview"), chosen, assume, level
    )


def _minimiser_preview(
    regression: Regression, chosen: Asked, assume: Assumptions, level: float
) -> FitPreview:
    session, model, spend = regression.session, regression.model, regression.spend
    mu_squared = require_fit(regression, chosen)
    if isinstance(spend, PureDP) or not has_intervals(chosen):
        raise _no_forecast("a pure spend, the hinge, and method='output'")
    rows = _rows(session.public, assume, optional=filtered(model.keys))
    imagined = ExpectedReleases(session.public, rows, chosen.family, assume)
    imagining = replace(regression, session=cast(Session, imagined))
    expected = PerturbedResult(
        *imagining.asked(lambda fitting: ask_minimiser(fitting, chosen), mu_squared)
    )
    return _forecast(session, expected, spend, Fraction(0), (imagined.words(model), level))


def m_estimate_preview(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    psi: Any = None,
    mean: Any = None,
    reach: int | None = None,
    where: Where | None = None,
    solver: Any = None,
    base: Base | None = None,
) -> FitPreview:
    model, choice, family = user_model(
        session.public.schema, formula, psi, mean, reach, where, base
    )
    return _preview(
        session, model, family, spend, assume, level, solver=chosen_solver(solver), choice=choice
    )


def residuals_preview(
    session: Session,
    fit: RegressionResult,
    *,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    bins: Any = 16,
) -> Preview:
    question = residuals_question(session.public, fit, spend=spend, bins=bins)
    rows = fit.rows if assume.rows is None else float(assume.rows)
    shares = np.diff(ndtr([-np.inf, *question.description.edges, np.inf]))
    mechanism: Any = question.mechanism
    integers = tuple(round(rows * share) << mechanism.refinement for share in shares)
    release = imagined_release(session.public, question, integers)
    words = f"{rows:.0f} rows with normal residuals"
    return release_preview(session, question, (release, words), level)


ols_preview, robust_preview = _regression("ols"), _regression("robust")
logistic_preview, poisson_preview = _regression("logistic"), _regression("poisson")
