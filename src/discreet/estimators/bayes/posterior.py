"""dp.posterior: the posterior of a family's parameters from noisy numbers.

*Method*    One release of what the family needs, by queries and noise that other estimators use:
            counts of levels, the joint moments of a column, the second moments of several. The
            likelihood is that of the released numbers, clamping and noise included
            (docs/theory/bayes.md).
*Validity*  For independent rows of the family and the declared prior. Several rows of one unit are
            not independent: refused.
"""

from __future__ import annotations

from dataclasses import replace

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Cells, Where, level_cells, rows_asked
from discreet.asking.formula import design_of
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.estimators.matrices import covariance_question
from discreet.estimators.questions import counts_question, mean_question
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    Family,
    GammaPoisson,
    LinearModel,
    NormalModel,
    require_family,
)
from discreet.inference.posteriors.results import PosteriorResult
from discreet.schema import Boolean, Category, Column, Date, Integer, Real, Schema
from discreet.specs.estimating.components import NumberComponent
from discreet.specs.queries.keys import Split, Subset
from discreet.trusted.release import Description, PublicFacts, Question

MOST_PREDICTORS = 6


@plain.door
def posterior(
    session: Session,
    family: Family,
    *,
    spend: Guarantee,
    naive: bool = False,
    where: Where | None = None,
    key: str | None = None,
) -> PosteriorResult:
    """The posterior of a family's parameters: ``dp.posterior(session, dp.BetaBinomial("member",
    prior=(1, 1)), spend=dp.GDP(0.1))``; also `DirichletMultinomial`, `GammaPoisson`, `NormalModel`
    and `LinearModel`.

    Noise and clamping are in the likelihood. With ``naive=True`` they are not: that posterior takes
    noisy numbers as exact, is too narrow, and says so wherever it is shown.

    Formula.
            p(θ | released) ∝ prior(θ) · P(released numbers | θ)

            released  noisy sums of clamped rows: noise and clamping are in P

    Validity. Rows follow the family. How well posteriors are calibrated is simulated
              (docs/theory/bayes.md).
    Price.    The spend, once a key; draws, intervals and predictions are free.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            family = dp.BetaBinomial("education", level="degree")
            share = dp.posterior(session, family, spend=dp.GDP(0.1))
            print(share.summary())
            print(share.probability(low=0.3))
    See also. `dp.posterior_sample`, `dp.proportion`; docs/how-to/bayes.md.
    """
    plain.truth(naive, "naive=")
    question = posterior_question(_open(session).public, family, spend=spend, where=where)
    return PosteriorResult(_open(session).release(question, key=key), family, naive)


def posterior_question(
    public: PublicFacts, family: Family, *, spend: Guarantee, where: Where | None = None
) -> Question:
    """What a family needs to know of the data."""
    family = require_family(family)
    require_independent(public)
    if isinstance(family, BetaBinomial):
        return _share_question(public, family, spend, where)
    if isinstance(family, DirichletMultinomial):
        return _shares_question(public, family, spend, where)
    if isinstance(family, LinearModel):
        names = line_columns(public.schema, family.formula)
        question = covariance_question(public, names, spend=spend, where=where)
        asked = Description("posterior", names[-1], where=question.description.where)
        return replace(question, description=asked)
    require_numbers(public.schema, family)
    question = mean_question(public, family.column, spend=spend, where=where)
    asked = Description("posterior", family.column, where=question.description.where)
    return replace(question, description=asked)


def _share_question(
    public: PublicFacts, family: BetaBinomial, spend: Guarantee, where: Where | None
) -> Question:
    """The level's count where the number of rows is public, else that of the other rows too."""
    code, label = level_of(public.schema, family)
    subset = rows_asked(public.schema, where, family.column)
    if public.rows is not None and not subset.keys:
        cells = Cells((Subset(family.column, (code,)),), optional=True)
        asked = Description("posterior", family.column, (family.column,), ((label,),))
    else:
        cells = Cells((Split(family.column, (code,)),)).joined(subset)
        labels = ((label, "other"),)
        asked = Description("posterior", family.column, (family.column,), labels, subset.where)
    return counts_question(public, asked, cells, spend)


def _shares_question(
    public: PublicFacts, family: DirichletMultinomial, spend: Guarantee, where: Where | None
) -> Question:
    groups = levels_of(public.schema, family)
    subset = rows_asked(public.schema, where)
    asked = Description("posterior", family.column, groups.by, groups.labels, subset.where)
    return counts_question(public, asked, groups.joined(subset), spend, shares=True)


# ── what families need of columns ─────────────────────────────────────────────────────────────────


def require_independent(public: PublicFacts) -> None:
    """Refuses units of several rows, whose likelihood no family has."""
    if public.neighbors.rows > 1:
        raise InvalidParameter(
            "a posterior",
            f"a unit may have {public.neighbors.rows} rows",
            "the likelihood is that of independent rows, and rows of one unit are alike: its "
            "intervals would be too narrow",
            "declare max_rows=1 (one row of each unit counts), or use dp.mean or dp.proportion, "
            "whose intervals are those of units",
        )


def level_of(schema: Schema, family: BetaBinomial) -> tuple[int, str]:
    """The code of the level whose share is asked, and its name."""
    column = schema[family.column]
    if isinstance(column, Boolean):
        if not (family.level is None or isinstance(family.level, bool)):
            raise InvalidParameter(
                "level=",
                "neither True nor False",
                f"{family.column!r} is Boolean",
                "leave it out for True",
            )
        return int(family.level is not False), f"{family.column} = {family.level is not False}"
    if not isinstance(column, Category):
        raise _wrong(family.column, column, "Boolean or Category", "a share")
    if family.level is None:
        raise InvalidParameter(
            "BetaBinomial",
            f"{family.column!r} has {len(column.levels)} levels",
            "a share is of one level",
            "pass level=, or use dp.DirichletMultinomial for all of them",
        )
    return column.index(family.level), f"{family.column} = {family.level}"


def levels_of(schema: Schema, family: DirichletMultinomial) -> Cells:
    """The cells of all levels."""
    column = schema[family.column]
    if not isinstance(column, (Boolean, Category)):
        raise _wrong(family.column, column, "Boolean or Category", "shares of levels")
    groups = level_cells(schema, family.column)
    family.concentrations(groups.count)
    return groups


def require_numbers(schema: Schema, family: GammaPoisson | NormalModel) -> Column:
    """The declared column of a family of numbers."""
    column = schema[family.column]
    if isinstance(family, NormalModel):
        if not isinstance(column, (Real, Integer)) or isinstance(column, Date):
            raise _wrong(family.column, column, "Real or Integer", "a normal model")
        return column
    if not isinstance(column, Integer) or isinstance(column, Date):
        raise _wrong(family.column, column, "Integer", "a Poisson rate")
    if column.low < 0:
        raise InvalidParameter(
            f"a Poisson rate of column {family.column!r}",
            f"it is declared from {column.low}",
            "Poisson counts are 0 or more",
            "declare it from 0, or use dp.NormalModel",
        )
    return column


def line_columns(schema: Schema, formula: str) -> tuple[str, ...]:
    """The predictors' columns and, last, the response's; refused unless all are numbers as they
    are, with an intercept.
    """
    design = design_of(formula, schema)
    names: list[str] = []
    for column in design.columns:
        if not column.components:
            continue
        component = column.components[0]
        if (
            len(column.components) != 1
            or not isinstance(component, NumberComponent)
            or component.transform != "linear"
        ):
            raise _not_a_line(formula, f"{column.name} is not a number column as it is")
        names.append(component.column)
    names.append(design.response.column)
    if len(names) > len(design.columns):
        raise _not_a_line(formula, "it has no intercept")
    for name in names:
        if not isinstance(schema[name], (Real, Integer)) or isinstance(schema[name], Date):
            raise _wrong(name, schema[name], "Real or Integer", "a line of normal columns")
    if design.response.transform != "linear" or not 2 <= len(names) <= MOST_PREDICTORS + 1:
        raise _not_a_line(formula, f"{len(names) - 1} predictors, or a transformed response")
    return tuple(names)


def _not_a_line(formula: str, found: str) -> InvalidParameter:
    return InvalidParameter(
        f"formula {formula!r}",
        found,
        "its likelihood is that of jointly normal columns",
        f'pass number columns as they are, 1 to {MOST_PREDICTORS}, for example "y ~ a + b"; '
        "dp.ols takes every formula",
    )


def _wrong(name: str, column: Column, needed: str, asked: str) -> WrongColumnKind:
    return WrongColumnKind(name, type(column).__name__, needed, asked)
