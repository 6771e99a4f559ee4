"""Comparing groups and testing tables: proportions, independence, goodness of fit, ranks.

Each is one noisy table of counts; all else is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import (
    By,
    Cells,
    Where,
    bin_cells,
    cells_by,
    cells_where,
    level_cells,
    rows_asked,
)
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter, WrongColumnKind
from discreet.estimators.basic import _open
from discreet.estimators.questions import counts_question
from discreet.exact import rational
from discreet.inference.tables.comparisons import ComparisonResult
from discreet.inference.tables.table_tests import FitResult, IndependenceResult, RankResult
from discreet.schema import Boolean, Category
from discreet.specs.queries.keys import Split
from discreet.trusted.release import Description, PublicFacts, Question

RANK_BINS = 8


@plain.door
def compare(
    session: Session,
    column: str,
    *,
    by: str,
    spend: Guarantee,
    level: object = None,
    strata: By | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> ComparisonResult:
    """Compare proportions between groups: ``dp.compare(session, "bought", by="variant",
    spend=dp.PureDP(1))``.

    `column` is Boolean, or a Category with `level`; `by` is Boolean or a Category, whose first
    level is the baseline. The result has the difference, ratio and odds ratio of every group
    against the baseline, with intervals and tests; any other pair can be compared later
    (`contrast`, `test`). Of three groups or more `summary()` shows every group, the overall test
    and all pairs, with intervals that hold at once (`pairs`). With `strata` (as `by=` of
    `dp.table`) it is the common difference over strata. One table is released; group sizes are
    private and its noisy counts say them.

    Validity. Independent rows. Simulated sizes at 0.05, 10 000 data sets each, ε from 0.1 to 2:
              two-sided 0.041 to 0.056 at 50 rows and 0.044 to 0.055 from 200 on; one-sided 0.042 to
              0.058, but 0.026 to 0.063 where a group expects 2.5 rows and a share of 0.05
              (docs/theory/tests.md).

    Formula.
            difference = share of group − share of the baseline,   from one table of noisy counts

    Price.    The spend, once a key, for all groups, pairs and tests.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            found = dp.compare(session, "education", level="degree", by="sex", spend=dp.GDP(0.2))
            print(found.summary())
    See also. `dp.compare_means`, `dp.proportion_test`, `dp.sample_size`; docs/how-to/ab-tests.md.
    """
    return ComparisonResult(
        _open(session).release(
            compare_question(
                _open(session).public,
                column,
                by=by,
                spend=spend,
                level=level,
                strata=strata,
                where=where,
            ),
            key=key,
        )
    )


def compare_question(
    public: PublicFacts,
    column: str,
    *,
    by: str,
    spend: Guarantee,
    level: object = None,
    strata: By | None = None,
    where: Where | None = None,
) -> Question:
    declared = public.schema[column]
    if not isinstance(declared, (Boolean, Category)):
        raise WrongColumnKind(
            column,
            type(declared).__name__,
            "Boolean or Category",
            "a comparison of proportions",
            f"compare means of a number: dp.compare_means(session, {column!r}, by=…, spend=…)",
        )
    if isinstance(declared, Category) and level is None:
        raise InvalidParameter(
            "compare",
            f"{column!r} has {len(declared.levels)} levels",
            "a proportion is of one level",
            "pass level=, or use dp.independence_test for all of them",
        )
    if isinstance(declared, Boolean) and not (level is None or isinstance(level, bool)):
        raise InvalidParameter(
            "level=", "neither True nor False", f"{column!r} is Boolean", "leave it out for True"
        )
    code = declared.index(level) if isinstance(declared, Category) else int(level is not False)
    groups = _groups(public, by)
    label = f"{column} = {True if level is None else level}"
    cells = groups.joined(Cells((Split(column, (code,)),), (), ((label, "other"),)))
    layers = cells_by(public.schema, strata, "strata") if strata is not None else Cells()
    _different((by, column, *layers.by))
    subset = rows_asked(public.schema, where, column)
    asked = Description("comparison", label, (by,), (*cells.labels, *layers.labels), subset.where)
    return counts_question(public, asked, cells.joined(layers).joined(subset), spend)


@plain.door
def independence_test(
    session: Session,
    first: str,
    second: str,
    *,
    spend: Guarantee,
    bins: Mapping[str, object] | None = None,
    where: Where | None = None,
    key: str | None = None,
) -> IndependenceResult:
    """Test whether two columns are independent: ``dp.independence_test(session, "region", "member",
    spend=dp.GDP(0.3)).test()``.

    Columns are Boolean, Category, or numbers with `bins` (a mapping from a column to its edges or
    number of bins). A χ²-type test whose null law has the released noise in it.

    Validity. Independent rows. Simulated sizes at 0.05, ε from 0.1 to 2: 0.042 to 0.057 at 50 rows,
              also where most cells expect less than one, and 0.044 to 0.056 from 200 on
              (docs/theory/tests.md).

    Formula.
            X² = Σ (count − expected)² / variance,   the noise in its null law

    Price.    The spend, once a key: one table.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.independence_test(session, "region", "education", spend=dp.GDP(0.2)).test())
    See also. `dp.goodness_of_fit`, `dp.compare`, `dp.correlation`.
    """
    return IndependenceResult(
        _open(session).release(
            independence_question(
                _open(session).public, first, second, spend=spend, bins=bins, where=where
            ),
            key=key,
        )
    )


def independence_question(
    public: PublicFacts,
    first: str,
    second: str,
    *,
    spend: Guarantee,
    bins: Mapping[str, object] | None = None,
    where: Where | None = None,
) -> Question:
    if bins is not None and (not isinstance(bins, Mapping) or not set(bins) <= {first, second}):
        raise InvalidParameter(
            "bins=",
            "not a mapping from the two columns to their bins",
            "cells are declared, never learnt from the data",
            "pass for example bins={'age': [18, 40, 65, 90]}",
        )
    _different((first, second))
    cells, subset = (
        cells_by(public.schema, {name: (bins or {}).get(name) for name in (first, second)}),
        cells_where(public.schema, where),
    )
    return counts_question(
        public,
        Description("independence", None, cells.by, cells.labels, subset.where),
        cells.joined(subset),
        spend,
    )


@plain.door
def goodness_of_fit(
    session: Session,
    column: str,
    expected: Sequence[float] | Mapping[object, float],
    *,
    spend: Guarantee,
    bins: object = None,
    where: Where | None = None,
    key: str | None = None,
) -> FitResult:
    """Test whether a column has expected shares: ``dp.goodness_of_fit(session, "region", {"E": 0.4,
    "N": 0.3, "S": 0.2, "W": 0.1}, spend=dp.PureDP(1))``.

    `expected` are weights of all levels (a mapping, or a list in their order) or of `bins`;
    they are scaled to add up to 1.

    Formula.
            distance of Cₖ from N·pₖ, in the metric of its variance under the null

            Cₖ  noisy count of level k
            pₖ  its expected share

    Validity. Independent rows; the null law is simulated with the released noise
              (docs/theory/tests.md).
    Price.    The spend, once a key: one histogram.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            shares = {"E": 0.25, "N": 0.25, "S": 0.25, "W": 0.25}
            print(dp.goodness_of_fit(session, "region", shares, spend=dp.GDP(0.2)).test())
    See also. `dp.histogram`, `dp.independence_test`.
    """
    return FitResult(
        _open(session).release(
            fit_question(
                _open(session).public, column, expected, spend=spend, bins=bins, where=where
            ),
            key=key,
        )
    )


def fit_question(
    public: PublicFacts,
    column: str,
    expected: Sequence[float] | Mapping[object, float],
    *,
    spend: Guarantee,
    bins: object = None,
    where: Where | None = None,
) -> Question:
    cells = (
        level_cells(public.schema, column)
        if bins is None
        else bin_cells(public.schema, column, bins)
    )
    shares = _expected_shares(
        expected.tolist() if isinstance(expected, np.ndarray) else expected, cells.labels[0]
    )
    subset = cells_where(public.schema, where)
    return counts_question(
        public,
        Description("goodness of fit", column, (column,), cells.labels, subset.where, shares),
        cells.joined(subset),
        spend,
    )


def _expected_shares(expected: object, labels: tuple[str, ...]) -> tuple[float, ...]:
    if isinstance(expected, Mapping):
        named = {str(name): weight for name, weight in expected.items()}
        if set(named) != set(labels):
            raise InvalidParameter(
                "expected",
                "its names are not the declared levels",
                "every level has an expected share",
                f"name each of {', '.join(labels[:20])}",
            )
        weights = [named[label] for label in labels]
    elif (
        isinstance(expected, Sequence)
        and not isinstance(expected, str)
        and len(expected) == len(labels)
    ):
        weights = list(expected)
    else:
        raise InvalidParameter(
            "expected",
            f"it is no list of {len(labels)} shares",
            "every cell has an expected share",
            "pass one share for each level or bin, or a mapping by level",
        )
    numbers = [rational(weight, "expected") for weight in weights]
    whole = sum(numbers, Fraction(0))
    if min(numbers) < 0 or whole <= 0:
        raise InvalidParameter(
            "expected",
            "a share is negative, or all are 0",
            "shares are scaled to add up to 1",
            "pass positive weights",
        )
    return tuple(float(number / whole) for number in numbers)


@plain.door
def rank_test(
    session: Session,
    column: str,
    *,
    by: str,
    spend: Guarantee,
    bins: object = RANK_BINS,
    where: Where | None = None,
    key: str | None = None,
) -> RankResult:
    """Whether a number column lies higher in some groups: ``dp.rank_test(session, "income",
    by="region", spend=dp.GDP(0.3)).test()``.

    Mann–Whitney (two groups) and Kruskal–Wallis (several) from one noisy table of groups by `bins`
    (a number of equal ones over the declared range, or edges): values in one bin are tied, so edges
    near the quantiles that are expected serve best. Every bin costs noise: where the range is close
    to the data, or edges near the expected quartiles are passed, 4 bins have most power at strong
    privacy (docs/theory/tests.md).

    Formula.
            Cₖⱼ + Z   rows of group k in bin j; values in a bin have its middle rank

            Z  noise, the same for every cell in law

    Validity. Independent rows; the null law is simulated with the released noise.
    Price.    The spend, once a key: one table of groups by bins.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            edges = [0, 25_000, 45_000, 70_000, 200_000]
            found = dp.rank_test(session, "income", by="sex", bins=edges, spend=dp.GDP(0.2))
            print(found.test())
    See also. `dp.compare_means`, `dp.median`.
    """
    return RankResult(
        _open(session).release(
            rank_question(
                _open(session).public, column, by=by, spend=spend, bins=bins, where=where
            ),
            key=key,
        )
    )


def rank_question(
    public: PublicFacts,
    column: str,
    *,
    by: str,
    spend: Guarantee,
    bins: object = RANK_BINS,
    where: Where | None = None,
) -> Question:
    _different((by, column))
    if isinstance(public.schema[column], (Boolean, Category)):
        raise WrongColumnKind(
            column, type(public.schema[column]).__name__, "Real or Integer", "a rank test"
        )
    groups, places = _groups(public, by), bin_cells(public.schema, column, bins)
    subset = cells_where(public.schema, where)
    asked = Description("ranks", column, (by,), (*groups.labels, *places.labels), subset.where)
    return counts_question(public, asked, groups.joined(places).joined(subset), spend)


def _groups(public: PublicFacts, by: object) -> Cells:
    """The cells of a grouping column of at least one declared level."""
    if not isinstance(by, str):
        raise InvalidParameter(
            "by=",
            "not the name of one column",
            "groups are the levels of one column",
            "pass a Boolean or Category column; strata= takes further ones",
        )
    groups = level_cells(public.schema, by)
    if len(groups.labels[0]) < 2:
        raise InvalidParameter(
            "by=",
            f"{by!r} has one level",
            "a comparison needs two groups",
            "declare another level, or test against a null value with dp.proportion_test or "
            "dp.mean_test",
        )
    return groups


def _different(names: tuple[str, ...]) -> None:
    if len(set(names)) != len(names):
        raise InvalidParameter(
            "columns",
            "one column is named twice",
            "a column says nothing about itself",
            "name different columns",
        )
