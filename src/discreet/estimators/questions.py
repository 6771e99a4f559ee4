"""How each basic estimator turns what is asked into a statistic and its noise,
from public facts alone.
"""

from __future__ import annotations

from discreet.accounting.guarantees import Guarantee
from discreet.asking.canonical import with_noise
from discreet.asking.cells import (
    By,
    Cells,
    Where,
    bin_cells,
    cells_by,
    cells_where,
    level_cells,
    origin_of,
    rows_asked,
)
from discreet.asking.noise_choice import count_noise, moments_noise, norm_of, require_spend
from discreet.errors import InvalidParameter, UndeclaredColumn, WrongColumnKind
from discreet.estimators.open_keys import open_columns, open_table_question
from discreet.neighbors import Replace
from discreet.schema import Boolean, Category, Real
from discreet.specs.queries.keys import Split, Subset
from discreet.specs.queries.moments import (
    MomentDesign,
    Moments,
    mean_design,
    total_design,
    variance_design,
)
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.sums import Sum, number_factor
from discreet.specs.queries.unit_sums import (
    UNIT_DESIGNS,
    UnitDesign,
    UnitShares,
    UnitSums,
    unit_design,
)
from discreet.trusted.release import Description, PublicFacts, Question

MEAN_BITS = 16  # a Real column of 16 bits
# whole numbers and Real columns of 32 bits: squares stay exact and the noise grid small
FINE_MEAN_BITS = 20
VARIANCE_BITS = 10  # fourth powers stay exact and the noise grid small


def count_question(
    public: PublicFacts, *, spend: Guarantee, where: Where | None = None
) -> Question:
    cells = cells_where(public.schema, where)
    if public.rows is not None and where is None:
        raise InvalidParameter(
            "count",
            "under row-level Replace the number of rows is public",
            "it would cost budget and add noise to a known number",
            "read session.public.rows, or count a subset with where=",
        )
    asked = Description("count", where=cells.where)
    return _unit_counts(public, asked, cells, spend) or counts_question(public, asked, cells, spend)


def proportion_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    level: object = None,
    where: Where | None = None,
    noise: str | None = None,
) -> Question:
    """A proportion of rows: its own cell where the number of rows is public,
    else that cell and all other rows.
    """
    declared = public.schema[column]
    if not isinstance(declared, (Boolean, Category)):
        raise WrongColumnKind(
            column, type(declared).__name__, "Boolean or Category", "a proportion"
        )
    if isinstance(declared, Category) and level is None:
        raise InvalidParameter(
            "proportion",
            f"{column!r} has {len(declared.levels)} levels",
            "a proportion is of one level",
            "pass level=, or use histogram for all of them",
        )
    if isinstance(declared, Boolean) and not (level is None or isinstance(level, bool)):
        raise InvalidParameter(
            "level=", "neither True nor False", f"{column!r} is Boolean", "leave it out for True"
        )
    code = declared.index(level) if isinstance(declared, Category) else int(level is not False)
    label = f"{column} = {True if level is None else level}"
    subset = rows_asked(public.schema, where, column)
    if public.rows is not None and not subset.keys:
        question = counts_question(
            public,
            Description("proportion", column, (column,), ((label,),)),
            Cells((Subset(column, (code,)),), optional=True),
            spend,
        )
    else:
        cells = Cells((Split(column, (code,)),)).joined(subset)
        asked = Description("proportion", column, (column,), ((label, "other"),), subset.where)
        if noise is None and isinstance(public.neighbors, Replace):
            return _shares(public, asked, cells, spend)
        if noise is None and (by_units := _unit_counts(public, asked, cells, spend)) is not None:
            return by_units
        question = counts_question(public, asked, cells, spend)
    return with_noise(
        question,
        noise,
        question.query.sensitivity(public.neighbors)[0],  # type: ignore[arg-type, index]
    )


def histogram_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    bins: object = None,
    where: Where | None = None,
) -> Question:
    declared = public.schema[column]
    levels = isinstance(declared, (Category, Boolean))
    if levels and bins is not None:
        bin_cells(public.schema, column, bins)  # refuses, with the reason
    cells = (
        level_cells(public.schema, column)
        if levels
        else bin_cells(public.schema, column, 20 if bins is None else bins)
    )
    edges = () if levels else cells.keys[0].edges  # type: ignore[union-attr]
    subset = cells_where(public.schema, where)
    asked = Description("histogram", column, (column,), cells.labels, subset.where, edges)
    cells = cells.joined(subset)
    return _unit_counts(public, asked, cells, spend, shares=True) or counts_question(
        public, asked, cells, spend, shares=True
    )


def mean_question(
    public: PublicFacts, column: str, *, spend: Guarantee, where: Where | None = None
) -> Question:
    public.schema[column]  # refuses what is not declared
    cells = rows_asked(public.schema, where, column)
    design = mean_design(
        public.neighbors, cells=1, optional=cells.optional, norm=norm_of(require_spend(spend))
    )
    asked = Description("mean", column, where=cells.where, origin=origin_of(public.schema, column))
    return _moments(public, asked, cells, _of_units(public, cells, spend) or design, spend)


def sum_question(
    public: PublicFacts, column: str, *, spend: Guarantee, where: Where | None = None
) -> Question:
    public.schema[column]  # refuses what is not declared
    cells = rows_asked(public.schema, where, column)
    design = total_design(
        public.neighbors, optional=cells.optional, norm=norm_of(require_spend(spend))
    )
    units = _of_units(public, cells, spend, total=True)
    asked = Description("sum", column, where=cells.where)
    return _moments(public, asked, cells, units or design, spend)


def variance_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    where: Where | None = None,
) -> Question:
    return spread_question(public, "variance", column, spend=spend, by=by, where=where)


def spread_question(
    public: PublicFacts,
    estimator: str,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    where: Where | None = None,
) -> Question:
    """The joint moments up to the fourth, in every cell: of a variance or a standard deviation."""
    public.schema[column]  # refuses what is not declared
    groups = Cells() if by is None else cells_by(public.schema, by)
    subset = rows_asked(public.schema, where, column)
    cells = groups.joined(subset)
    design = variance_design(
        public.neighbors,
        cells=cells.count,
        optional=cells.optional,
        norm=norm_of(require_spend(spend)),
    )
    asked = Description(estimator, column, groups.by, groups.labels, subset.where)
    return _moments(public, asked, cells, design, spend, bits=VARIANCE_BITS)


def table_question(
    public: PublicFacts,
    column: str | None = None,
    *,
    by: By,
    spend: Guarantee,
    where: Where | None = None,
    delta: float | None = None,
) -> Question:
    if open_columns(public.schema, by):
        return open_table_question(public, column, by=by, spend=spend, where=where, delta=delta)
    if delta is not None:
        raise InvalidParameter(
            "delta=",
            "every key of by= is declared",
            "declared keys are shown whether or not anyone holds them, so they cost no delta",
            "leave it out",
        )
    groups = cells_by(public.schema, by)
    subset = (
        cells_where(public.schema, where)
        if column is None
        else rows_asked(public.schema, where, *groups.by, column)
    )
    cells = groups.joined(subset)
    asked = Description(
        "table",
        column,
        groups.by,
        groups.labels,
        subset.where,
        origin=origin_of(public.schema, column),
    )
    if column is None:
        return _unit_counts(public, asked, cells, spend, shares=True) or counts_question(
            public, asked, cells, spend, shares=True
        )
    design = mean_design(
        public.neighbors, cells=cells.count, optional=True, norm=norm_of(require_spend(spend))
    )
    return _moments(public, asked, cells, _of_units(public, cells, spend) or design, spend)


def _shares(public: PublicFacts, asked: Description, cells: Cells, spend: Guarantee) -> Question:
    """A level's share of rows whose number is private, and that number."""
    design = mean_design(
        public.neighbors, cells=1, optional=True, norm=norm_of(require_spend(spend))
    )
    query: ShareCounts | UnitShares = ShareCounts(cells.keys, design)
    units = _of_units(public, Cells(), spend)
    if units is not None:
        query = UnitShares(cells.keys, units, public.neighbors.rows)
    return Question(asked, query, moments_noise(query, public.neighbors, spend), spend)


def _of_units(
    public: PublicFacts, cells: Cells, spend: Guarantee, *, total: bool = False
) -> UnitDesign | None:
    """The design that releases the spread of units' sums beside means or a total: where a unit may
    have several rows and noise is Gaussian; elsewhere it would not be free (clusters.md).
    """
    if public.neighbors.max_rows in (None, 1) or norm_of(require_spend(spend)) == 1:
        return None
    return unit_design(public.neighbors, cells=cells.count, total=total)


def _unit_counts(
    public: PublicFacts, asked: Description, cells: Cells, spend: Guarantee, *, shares: bool = False
) -> Question | None:
    """Counts of cells with the spread of units' counts; None where that is not free."""
    if _of_units(public, cells, spend) is None:
        return None
    held = rows_asked(public.schema, None, *(asked.by if shares else ()))
    cells, rows = cells.joined(held), public.neighbors.rows
    design = UNIT_DESIGNS["units-counts-l2"]
    query = UnitSums(cells.keys, None, design, rows, cells.optional)
    return Question(asked, query, moments_noise(query, public.neighbors, spend), spend)


def counts_question(
    public: PublicFacts, asked: Description, cells: Cells, spend: Guarantee, *, shares: bool = False
) -> Question:
    """Counts of cells; for their `shares` of the rows that hold a value, rows that hold none are
    counted too where that is free: where the number of all rows is public.
    """
    held = rows_asked(public.schema, None, *(asked.by if shares else ()))
    absent = bool(held.keys) and public.rows is not None and not asked.where
    cells = cells if absent else cells.joined(held)
    query = Sum(cells.keys, (), cells.optional, absent)
    return Question(asked, query, count_noise(query, public.neighbors, require_spend(spend)), spend)


def _moments(
    public: PublicFacts,
    asked: Description,
    cells: Cells,
    design: MomentDesign | UnitDesign,
    spend: Guarantee,
    *,
    bits: int | None = None,
) -> Question:
    if asked.column is None:
        raise UndeclaredColumn(None, public.schema)
    column = public.schema[asked.column]
    if bits is None:
        bits = (
            MEAN_BITS if isinstance(column, Real) and column.bits == MEAN_BITS else FINE_MEAN_BITS
        )
    factor = number_factor(public.schema, asked.column, f"the {asked.estimator}", bits)
    query = (
        UnitSums(cells.keys, factor, design, public.neighbors.rows, cells.optional)
        if isinstance(design, UnitDesign)
        else Moments(cells.keys, factor, design, cells.optional)
    )
    return Question(
        asked, query, moments_noise(query, public.neighbors, require_spend(spend)), spend
    )
