"""dp.m_estimate: a regression with an estimating function of the user's own.

    dp.m_estimate(session, "y ~ x", psi=math.tanh, spend=dp.GDP(0.5))
        Σ w ψ((y − η)/σ) x = 0, σ unknown
    dp.m_estimate(session, "b ~ x", mean=scipy.stats.norm.cdf, spend=dp.GDP(0.5))
        Σ w (y − mean(η)) x = 0 (here: probit)

The function is called before anything is spent, on public arguments k/64 alone, and never sees a
row (docs/known-limits.md, *User-defined losses*); what is used is the table of its values. Bounds
hold because the table is finite: arguments beyond ±reach count as ±reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.bases import Base, BaseChoice, based_design, with_rows
from discreet.asking.cells import Where, cells_where, rows_asked
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import _open
from discreet.exact import rational
from discreet.inference.regression.fit import RegressionResult
from discreet.models.classical import fit_classical
from discreet.models.fit import fit_regression
from discreet.models.scales import require_scale
from discreet.models.solvers import Solver, chosen_solver
from discreet.schema import Integer, Schema
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tabulated import (
    KNOTS,
    LARGEST_REACH,
    VALUE_BITS,
    TabulatedMean,
    TabulatedResidual,
)

RESIDUAL_REACH, MEAN_REACH = 4, 8  # units of the argument to both sides, unless told
Function = Callable[[float], float]


@plain.door
def m_estimate(
    session: object,
    formula: str,
    *,
    spend: Guarantee,
    psi: Function | None = None,
    mean: Function | None = None,
    reach: int | None = None,
    where: Where | None = None,
    solver: str | Solver | None = None,
    base: Base | None = None,
    key: str | None = None,
) -> RegressionResult:
    """A regression by an estimating function of your own: `psi` of the standardised residual,
    or `mean` of the linear predictor.

    `psi` must not fall (so that there is one solution) and takes both signs; residuals beyond
    ±`reach` scales (4 unless told) count as ±reach: an unbounded ψ is clipped there, which biases
    it as dp.robust is biased under skewed errors. `mean` lies between 0 and the response's largest
    value (1 for yes/no) and must not fall; predictors beyond ±`reach` (8 unless told) have the mean
    of the end. Both are used as tables of 64 values a unit, joined by straight lines: what is
    estimated is the solution for that table, and steps finer than 1/64 are lost.

    Formula.
            Σ ψ((yᵢ − xᵢ'β) / σ)·xᵢ = 0   or   Σ (yᵢ − mean(xᵢ'β))·xᵢ = 0

            σ  the scale of the residuals, estimated jointly where `psi` is given

    Method.    Algorithm A with weights, as dp.robust (`psi`, with a joint scale that is 1 for
               standard normal errors) and dp.logistic (`mean`); `solver` chooses one of the
               lectures' instead.
    Validity.  As `RegressionResult`; the mean function must be right,
               or coefficients are those of the nearest solution.

    Price.    The spend, once a key, for the whole fit.
    Example.
            import math

            session = dp.load_census().open(budget=dp.GDP(1))
            fit = dp.m_estimate(session, "income ~ age", psi=math.tanh, spend=dp.GDP(0.5))
            print(fit.summary())
    See also. `dp.robust`, `dp.logistic`, `dp.subsample`.
    """
    opened = _open(session)
    model, choice, family = user_model(opened.public.schema, formula, psi, mean, reach, where, base)
    chosen, words = chosen_solver(solver), cells_where(opened.public.schema, where).where
    if chosen is not None:
        return fit_classical(
            opened, model, family, chosen, spend=spend, key=key, where=words, choice=choice
        )
    return fit_regression(opened, model, family, spend=spend, key=key, where=words, choice=choice)


def user_model(
    schema: Schema,
    formula: str,
    psi: Function | None,
    mean: Function | None,
    reach: int | None,
    where: Where | None,
    base: Base | None = None,
) -> tuple[Model, BaseChoice | None, TabulatedResidual | TabulatedMean]:
    """The model, the bases that are to be chosen and the tabulated family; refused, before anything
    is spent, where one of them cannot be used.
    """
    if (psi is None) == (mean is None):
        raise InvalidParameter(
            "m_estimate",
            "not one of psi= and mean= was given",
            "an estimating function is of the residual or of the linear predictor",
            "pass psi=, for example math.tanh, or mean=",
        )
    design, choice = based_design(formula, schema, base, counts=psi is None)
    response, column = design.response, schema[design.response.column]
    family: TabulatedResidual | TabulatedMean
    if psi is not None:
        if response.level is not None:
            raise InvalidParameter(
                f"response {design.response_name!r}",
                "it is yes/no",
                "residuals need numbers",
                "pass mean= instead of psi=",
            )
        family = tabulated_psi(psi, reach)
    elif response.level is not None:
        assert mean is not None
        family = tabulated_mean(mean, reach)
    else:
        assert mean is not None
        if not isinstance(column, Integer) or column.low < 0 or response.transform != "linear":
            raise InvalidParameter(
                f"response {design.response_name!r}",
                "it is neither yes/no nor declared as a count",
                "a mean function needs a response between 0 and a largest value",
                "declare it as dp.Boolean() or dp.Integer(0, most), or pass psi=",
            )
        family = tabulated_mean(mean, reach, float(max(1, column.high)))
    return *with_rows(design, choice, rows_asked(schema, where, *design.reads).keys), family


def tabulated_psi(psi: Function, reach: int | None = None) -> TabulatedResidual:
    """The table of a ψ; the function is called on public arguments alone."""
    family = TabulatedResidual(_values(psi, "psi=", _reach(reach, RESIDUAL_REACH), 1.0))
    require_scale(family)
    return family


def tabulated_mean(mean: Function, reach: int | None = None, most: float = 1.0) -> TabulatedMean:
    """The table of a mean function of responses from 0 to `most`."""
    return TabulatedMean(_values(mean, "mean=", _reach(reach, MEAN_REACH), most), most)


def _values(function: Function, name: str, reach: int, most: float) -> tuple[int, ...]:
    if not callable(function):
        raise InvalidParameter(
            name,
            f"{shown(function)} is not a function",
            "it is called on public numbers to make a table",
            "pass a function of one number",
        )
    values = []
    for knot in range(-reach * KNOTS, reach * KNOTS + 1):
        try:
            value = float(function(knot / KNOTS))
        except Exception as error:
            raise InvalidParameter(
                name,
                f"the function failed at {knot / KNOTS:g} ({type(error).__name__})",
                "a table needs its value at every knot",
                f"make it work for every number from {-reach} to {reach}",
            ) from error
        if not math.isfinite(value) or abs(value) > 1e9:
            raise InvalidParameter(
                name,
                f"its value at {knot / KNOTS:g} is not an ordinary number",
                "tables are finite",
                "clip it, or choose a smaller reach=",
            )
        values.append(math.floor(value / most * (1 << VALUE_BITS) + 0.5))
    return tuple(values)


def _reach(reach: object, usual: int) -> int:
    if reach is None:
        return usual
    number = rational(reach, "reach=")
    if number.denominator != 1 or not 1 <= number <= LARGEST_REACH:
        raise InvalidParameter(
            "reach=",
            f"not a whole number from 1 to {LARGEST_REACH}",
            "tables have 64 values a unit and travel with every question",
            "pass for example reach=4",
        )
    return int(number)
