"""Regressions by formula: ``dp.ols(session, "income ~ age + region", spend=dp.GDP(0.5))``.

Columns, levels and knots come from the schema and the formula alone (discreet.asking.formula). One
spend pays for coefficients, standard errors and intervals; all of a fit's releases are in the
ledger. *Validity* is stated by `RegressionResult`.

``solver=None`` is Algorithm A; "gradient", "newton", "damped newton" and "sgd" (or
`dp.GradientDescent`, `dp.Newton`, `dp.SGD`) are the classical solvers.
"""

from __future__ import annotations

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import Base, BaseChoice, based_design, with_rows
from discreet.asking.cells import Where, cells_where, rows_asked
from discreet.asking.formula import Design
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session, opened
from discreet.errors import InvalidParameter, shown
from discreet.inference.regression.fit import RegressionResult
from discreet.models.classical import fit_classical
from discreet.models.fit import fit_regression
from discreet.models.minimisers.erm import METHODS, asked_of
from discreet.models.minimisers.fit import fit_minimiser
from discreet.models.moments import fit_moments
from discreet.models.procedure import Regression
from discreet.models.solvers import Solver, chosen_solver
from discreet.schema import Integer, Schema
from discreet.specs.estimating.families import Huber, Logistic
from discreet.specs.estimating.model import Model


@plain.door
def ols(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    method: str = "clipped",
    where: Where | None = None,
    solver: str | Solver | None = None,
    base: Base | None = None,
    key: str | None = None,
) -> RegressionResult:
    """Least squares with residuals clipped at four scales (up to six in large samples), so that
    every record is bounded (regression.md §5).

    ``method="moments"`` is exact least squares from one release of second moments, for errors of
    equal variance: it needs many more rows (`discreet.models.moments`).

    Formula.
            Σ wᵢ·clip((yᵢ − xᵢ'β)/σ, ±c)·xᵢ + noise = 0

            c   four scales of the residuals, up to six in large samples: one row moves the sum by a
                bounded amount
            wᵢ  weights that bound rows with large xᵢ
            σ   the scale, estimated in the same fit

    Validity. Slopes are those of the linear model where errors are symmetric or independent of the
              columns; intervals are sandwich intervals with the noise in them.
    Price.    The spend, once a key, for the whole fit: coefficients, errors, tests and predictions.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            fit = dp.ols(session, "income ~ age + education", spend=dp.GDP(0.5), key="wages")
            print(fit.summary())
    See also. `dp.robust`, `dp.residuals`, `dp.tune`; docs/how-to/regression.md.
    """
    method = plain.text(method, "method=")
    if method == "clipped":
        return _fitted(session, formula, "ols", spend, where, solver, base, key)
    if method != "moments" or solver is not None:
        raise InvalidParameter(
            "method=",
            f"{shown(method)} with solver={shown(solver)} is not known",
            "each is another estimator",
            "use 'clipped' (any solver) or 'moments' (no solver)",
        )
    schema = opened(session).public.schema
    model, choice = asked_model(schema, formula, "ols", where, base)
    return fit_moments(
        session,
        model,
        spend=spend,
        key=key,
        where=cells_where(schema, where).where,
        choice=choice,
    )


@plain.door
def robust(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    c: float | None = None,
    where: Where | None = None,
    solver: str | Solver | None = None,
    base: Base | None = None,
    key: str | None = None,
) -> RegressionResult:
    """Huber's robust regression with Mallows weights and unknown scale (reference.md H1, H2);
    `c` is 1.345 unless noise dominates.

    Formula.
            Σ wᵢ·clip((yᵢ − xᵢ'β)/σ, ±c)·xᵢ + noise = 0,   c = 1.345

    Validity. As of `dp.ols`, and rows with wild responses or columns move it little.
    Price.    The spend, once a key, for the whole fit.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            fit = dp.robust(session, "income ~ age + region", spend=dp.GDP(0.5), key="wages")
            print(fit.summary())
            fit.plot()
    See also. `dp.ols`, `dp.m_estimate`, `dp.location`.
    """
    family = "robust" if c is None else huber_of(c)
    return _fitted(session, formula, family, spend, where, solver, base, key)


@plain.door
def logistic(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    method: str = "clipped",
    penalty: float | None = None,
    where: Where | None = None,
    solver: str | Solver | None = None,
    base: Base | None = None,
    key: str | None = None,
) -> RegressionResult:
    """Logistic regression of a yes/no column, or of a level:
    ``C(region, base="N") ~ age`` (reference.md H2, E4).

    ``method="objective"`` and ``"output"`` are those of dp.erm, with its `penalty`.

    Formula.
            log(p / (1 − p)) = x'β

            p  the probability that the column is True, or has the level

    Validity. Independent rows (or units); intervals are sandwich intervals with the noise in them.
    Price.    The spend, once a key, for the whole fit.
    Example.
            session = dp.load_visits().open(budget=dp.GDP(1))
            fit = dp.logistic(session, "urgent ~ hours", spend=dp.GDP(0.5))
            print(fit.summary())
    See also. `dp.erm`, `dp.accuracy`, `dp.compare`.
    """
    method = plain.text(method, "method=")
    if method in METHODS and solver is None:
        schema = opened(session).public.schema
        model, choice = asked_model(schema, formula, "logistic", where, base)
        words, spend = cells_where(schema, where).where, require_spend(spend)
        regression = Regression(session, model, "logistic", spend, key, words, choice)
        return fit_minimiser(regression, asked_of(Logistic(), method, penalty))
    if method != "clipped" or penalty is not None:
        raise InvalidParameter(
            "method=",
            f"{shown(method)} with solver={shown(solver)}, penalty={shown(penalty)} is not known",
            "each is another estimator, and only minimisers have a penalty",
            "use 'clipped' (any solver), or 'objective' or 'output' (no solver)",
        )
    return _fitted(session, formula, "logistic", spend, where, solver, base, key)


@plain.door
def poisson(
    session: Session,
    formula: str,
    *,
    spend: Guarantee,
    where: Where | None = None,
    solver: str | Solver | None = None,
    base: Base | None = None,
    key: str | None = None,
) -> RegressionResult:
    """Poisson regression of a count declared as ``dp.Integer(0, most)``:
    log of the mean is linear in the columns.

    Formula.
            log(mean of y) = x'β

            x  the columns of the formula, β the coefficients

    Method.    Σ w·(clip((y − m)/√m, ±2.5) − a(m))·x = 0 with m = e^η (at most `most`) and a(m) the
               mean of the clipped part under Poisson(m): residuals are standardised, so that one
               record adds about 2.5 at most whatever `most` is
               (`discreet.specs.estimating.families.Poisson`).
    Validity.  Coefficients are those of the model where counts are Poisson given the columns;
               counts above `most` count as `most`. Standard errors are a sandwich and allow for
               more spread, the centring a(m) does not: under overdispersion more is clipped above
               than it expects. With a variance of 1.5 times the mean (mean 2.7, slope 0.5) the
               intercept comes out 0.02 low, with twice the mean 0.05 low and the slope 4 % off,
               with three times 0.11 and 9 %; the intervals do not allow for that. There use
               ``dp.m_estimate(session, formula, mean=lambda eta: min(math.exp(eta), most),
               spend=…)``: it clips nothing, and only the mean must be right; a smaller `most` makes
               it more precise.

    Price.    The spend, once a key, for the whole fit.
    Example.
            import numpy as np

            rng = np.random.default_rng(1)
            age = rng.integers(18, 91, 6000)
            calls = rng.poisson(np.exp(-1 + age / 40))
            data = dp.from_arrays(
                {"age": age, "calls": calls},
                schema={"age": dp.Integer(18, 90), "calls": dp.Integer(0, 20)},
                neighbors=dp.Replace(),
            )
            fit = dp.poisson(data.open(budget=dp.GDP(1)), "calls ~ age", spend=dp.GDP(0.5))
            print(fit.summary())
    See also. `dp.logistic`, `dp.m_estimate`.
    """
    return _fitted(session, formula, "poisson", spend, where, solver, base, key)


def _fitted(
    session: Session,
    formula: str,
    family: str | Huber,
    spend: Guarantee,
    where: Where | None,
    solver: str | Solver | None,
    base: Base | None,
    key: str | None,
) -> RegressionResult:
    schema = opened(session).public.schema
    model, choice = asked_model(schema, formula, family, where, base)
    chosen, words = chosen_solver(solver), cells_where(schema, where).where
    if chosen is not None:
        return fit_classical(
            session, model, family, chosen, spend=spend, key=key, where=words, choice=choice
        )
    return fit_regression(session, model, family, spend=spend, key=key, where=words, choice=choice)


def huber_of(c: object) -> Huber:
    """Huber's function with the user's own constant;
    refused where it is no number from 0.1 to 10.
    """
    if isinstance(c, bool) or not isinstance(c, (int, float)):
        raise InvalidParameter(
            "c=",
            f"{shown(c)} is not a number",
            "residuals are clipped at c times their scale",
            "use c=1.345, or 4 for nearly least squares",
        )
    return Huber(plain.number(c, "c="))


def asked_model(
    schema: Schema,
    formula: str,
    family: str | Huber,
    where: Where | None = None,
    base: Base | None = None,
) -> tuple[Model, BaseChoice | None]:
    """The model of a formula for a family, and the bases that are to be chosen; refused where the
    response does not suit it.
    """
    design, choice = based_design(formula, schema, base, counts=family in ("logistic", "poisson"))
    _check_response(design, schema, family)
    return with_rows(design, choice, rows_asked(schema, where, *design.reads).keys)


def _check_response(design: Design, schema: Schema, family: str | Huber) -> None:
    response, name = design.response, design.response_name
    column = schema[response.column]
    if family == "logistic" and response.level is None:
        raise InvalidParameter(
            f"response {name!r}",
            "it is a number",
            "logistic regression is for yes/no",
            "declare it as dp.Boolean(), or use dp.ols or dp.robust",
        )
    if family == "poisson" and (
        response.level is not None or not isinstance(column, Integer) or column.low < 0
    ):
        raise InvalidParameter(
            f"response {name!r}",
            "it is not declared as a count",
            "Poisson regression is for whole numbers from 0 on",
            "declare it as dp.Integer(0, most)",
        )
    if family not in ("logistic", "poisson") and response.level is not None:
        raise InvalidParameter(
            f"response {name!r}", "it is yes/no", "residuals need numbers", "use dp.logistic"
        )
