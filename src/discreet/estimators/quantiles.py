"""dp.median, dp.quantile and dp.quantiles: estimates with intervals that assume no shape.

*Method*: the estimate is chosen by the exponential mechanism on the column's grid
(reference.md B6). A search by noisy counts, which starts from it, then finds the ends of the
interval; both are one release with one debit. Other methods (``method="inverse"``, ``"smooth"``,
``"ptr"``) estimate with their own noise instead, and have the same search. More than three
quantiles at once come from one noisy tree of counts, at about logarithmic cost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.calibration.additive import bounded_range_within
from discreet.accounting.guarantees import GDP, Guarantee, PureDP
from discreet.accounting.renyi.rdp import ZCDP
from discreet.asking.cells import By, Where, origin_of, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import step_spend
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import _open
from discreet.estimators.classical_quantiles import METHODS, quantile_parts
from discreet.estimators.distributions import quantile_leaves, tree_question
from discreet.estimators.quantile_cells import asked_in_cells, cell_conditions, described_in_cell
from discreet.exact import float_down, rational, sqrt_down
from discreet.inference.quantiles.cell_quantiles import (
    MEDIAN_BY_CELLS,
    CellMediansResult,
    CellQuantilesResult,
)
from discreet.inference.quantiles.quantiles import MedianResult, QuantileResult, QuantilesResult
from discreet.inference.results.decode import as_kind
from discreet.search.checked_ends import CheckedEnds
from discreet.search.policies import AllRows
from discreet.search.quantile_ends import QuantileEnds
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Held, filtered
from discreet.specs.queries.sums import number_factor
from discreet.trusted.losses.pricing import spend_box
from discreet.trusted.release import Description, PublicFacts, Question

# What goes to the interval: the estimate's error grows by 1/√(1 − share), or 1/(1 − share) for a
# pure spend, so by 1.104 and 1.111 (docs/theory/quantile-intervals.md).
INTERVAL_SHARE, PURE_INTERVAL_SHARE = Fraction(18, 100), Fraction(1, 10)
# exponents of the choice at the ends of the grid:
# between them the share rises from a tenth of itself to all of it
SCARCE, AMPLE = 15, 40
# the level that ends are searched for; intervals of other levels use the same answers
LEVEL = Fraction(95, 100)
UNITS = 1 << 16
COUNT_SHARE = Fraction(1, 32)  # of a least or greatest value's spend: how many rows hold one
MOST_SEARCHED = 3  # with more quantiles a tree of counts is better


@plain.door
def median(
    session: Session,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    method: str | None = None,
    delta: float | None = None,
    where: Where | None = None,
    key: str | None = None,
    **options: object,
) -> MedianResult | CellMediansResult:
    """The median of a number column, with an interval (reference.md B6–B9).

    With `by` (declared levels, bins or periods, as for `dp.table`) it is the median of every cell
    by itself: one search a cell, each with an equal part of the spend. Cells have no rows in
    common, so that adding or removing a row would touch one search alone; but a row that is
    replaced may leave one cell for another, and what is charged here is the sum, which is proven
    for both (reference.md C1). The noise of a median grows with the number of cells for a pure
    spend, and with its square root for others. The default method alone has a theorem there.

    `method` is "exponential" (default), "inverse", "smooth" (options `law`, `shape`) or "ptr"
    (option `eta`; needs `delta`, and may answer ⊥: then `released` is False and the estimate is
    read from the search). `interval_share` is the part of the spend that the interval gets; with
    0 the last three release one number, and its interval is the declared range.

    Formula.
            P(v) falls exponentially in the number of rows between v and the median

            v  a value of the declared range: what is released is a draw of it

    Validity. Independent rows; the interval assumes no shape (docs/theory/quantile-intervals.md).
    Price.    The spend, once a key. Noise is in ranks, about 1/μ rows: a wide declared range costs
              little.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            income = dp.median(session, "income", spend=dp.GDP(0.2))
            print(income.summary())
    See also. `dp.quantile`, `dp.quantiles`, `dp.iqr`, `dp.trimmed_mean`.
    """
    question = median_question(
        _open(session).public,
        column,
        spend=spend,
        by=by,
        method=method,
        delta=delta,
        where=where,
        **options,
    )
    if isinstance(question, tuple):
        return CellMediansResult(*asked_in_cells(session, question, spend=spend, key=key))
    return MedianResult(_open(session).release(question, key=key))


@plain.door
def quantile(
    session: Session,
    column: str,
    q: object,
    *,
    spend: Guarantee,
    by: By | None = None,
    method: str | None = None,
    delta: float | None = None,
    where: Where | None = None,
    key: str | None = None,
    **options: object,
) -> QuantileResult | CellQuantilesResult:
    """The q-quantile of a number column: the least value with at least a share q of the rows at or
    below it; `by` and `method` as for `median`.

    Formula.
            Q(q) = least v with #{x ≤ v} ≥ q·N

            x  the column, clamped to its declared range; counts in the search are noisy

    Validity. Independent rows; the interval assumes no shape.
    Price.    The spend, once a key. Quantiles near 0 and 1 are told by few rows and need more.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.quantile(session, "income", 0.9, spend=dp.GDP(0.2)))
    See also. `dp.median`, `dp.quantiles`, `dp.ecdf`.
    """
    question = quantile_question(
        _open(session).public,
        column,
        q,
        spend=spend,
        by=by,
        method=method,
        delta=delta,
        where=where,
        **options,
    )
    if isinstance(question, tuple):
        releases = asked_in_cells(session, question, spend=spend, key=key)
        is_median = question[0].description.estimator == MEDIAN_BY_CELLS
        return CellMediansResult(*releases) if is_median else CellQuantilesResult(*releases)
    release = _open(session).release(question, key=key)
    return (
        MedianResult(release)
        if release.description.estimator == "median"
        else QuantileResult(release)
    )


@plain.door
def quantiles(
    session: Session,
    column: str,
    qs: Iterable[object],
    *,
    spend: Guarantee,
    where: Where | None = None,
    key: str | None = None,
) -> QuantilesResult:
    """Several quantiles in one release: up to three by searches of their own, more from one noisy
    tree of counts at about logarithmic cost.

    Formula.
            Q(q) = least v with #{x ≤ v} ≥ q·N

            x  the column, clamped to its declared range; counts are noisy

    Validity. Independent rows; intervals are for one quantile at a time.
    Price.    The spend, once a key, for all of them.
    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            print(dp.quantiles(session, "income", [0.1, 0.25, 0.5, 0.75, 0.9], spend=dp.GDP(0.3)))
    See also. `dp.quantile`, `dp.ecdf`, `dp.iqr`.
    """
    return QuantilesResult(
        _open(session).release(
            quantiles_question(_open(session).public, column, qs, spend=spend, where=where), key=key
        )
    )


def median_question(
    public: PublicFacts,
    column: str,
    *,
    spend: Guarantee,
    by: By | None = None,
    method: str | None = None,
    delta: float | None = None,
    where: Where | None = None,
    **options: object,
) -> Question | tuple[Question, ...]:
    return quantile_question(
        public,
        column,
        Fraction(1, 2),
        spend=spend,
        by=by,
        method=method,
        delta=delta,
        where=where,
        **options,
    )


def quantile_question(
    public: PublicFacts,
    column: str,
    q: object,
    *,
    spend: Guarantee,
    by: By | None = None,
    method: str | None = None,
    delta: float | None = None,
    where: Where | None = None,
    **options: object,
) -> Question | tuple[Question, ...]:
    """The question, or with `by` one for each cell, which together cost no more than the spend."""
    if by is None:
        return _one_question(
            public, column, q, spend=spend, method=method, delta=delta, where=where, **options
        )
    if delta is not None:
        raise InvalidParameter(
            "delta=",
            "it is asked for together with by=",
            "a δ belongs to one release, and every cell has its own",
            "leave it out, or ask cell by cell with where=",
        )
    parts, condition = cell_conditions(public, by, where)
    each = step_spend(require_spend(spend), Fraction(1, len(parts)))
    questions = (
        _one_question(
            public, column, q, spend=each, method=method, delta=None, where=one.where, **options
        )
        for one in parts
    )
    return tuple(
        replace(question, description=described_in_cell(question.description, one, condition))
        for question, one in zip(questions, parts, strict=True)
    )


def _one_question(
    public: PublicFacts,
    column: str,
    q: object,
    *,
    spend: Guarantee,
    method: str | None,
    delta: float | None,
    where: Where | None,
    **options: object,
) -> Question:
    """The question about one set of rows."""
    a, b = quantile_parts(q)
    require_spend(spend)
    if method is not None and (not isinstance(method, str) or method not in METHODS):
        raise InvalidParameter(
            "method=",
            f"{shown(method)} is not known",
            "each method has its own proof",
            f"pass one of {', '.join(METHODS)}, or leave it out for the exponential mechanism",
        )
    _known_options(method or "exponential", options)
    # no rows lie on one side of it, or no interval is wanted
    if a in (0, b) or (method not in (None, "exponential") and options.get("interval_share") == 0):
        options.pop("interval_share", None)
        asked = {"delta": delta, "where": where, **options}
        build = METHODS[method or "exponential"]
        alone = build(public, column, Fraction(a, b), spend=spend, **asked)
        return alone if method not in (None, "exponential") else _counted(public, alone, asked)
    if method not in (None, "exponential"):
        return _classical_question(
            public, column, Fraction(a, b), method, spend=spend, delta=delta, where=where, **options
        )
    if delta is not None:
        raise InvalidParameter(
            "delta=",
            "the exponential mechanism needs none",
            "it protects without a probability of failure",
            "leave it out",
        )
    query, condition = _query(public, column, where)
    parts = searched(
        public,
        query,
        a,
        b,
        spend=spend,
        share=_interval_share(
            public, query, (a, b), spend=spend, given=options.get("interval_share")
        ),
    )
    return Question(
        Description(
            "median" if (a, b) == (1, 2) else "quantile",
            column,
            where=condition,
            origin=origin_of(public.schema, column),
        ),
        query,
        InTurn(parts),
        spend,
    )


def _counted(public: PublicFacts, alone: Question, asked: dict[str, Any]) -> Question:
    """A least or greatest value, and beside it about how many rows hold one, where that is not
    public: the choice gets 1 − `COUNT_SHARE` of the spend.

    Theorem.  Both together cost no more than the spend.
    Proof.    The count is a search of one question, about the end of the grid, with the weights
              1 and 0: #{values}, which one row moves by `Rows.weighted(1, 0)`. The loss of both is
              the composition of theirs (`InTurn`).
    Checked.  tests/estimators/test_held_counts.py::test_an_end_and_its_count_cost_the_spend
    """
    query, choice = as_kind(alone.query, GridCounts), as_kind(alone.mechanism, QuantileChoice)
    if not any(isinstance(key, Held) for key in query.keys):
        return alone
    law, budget = _budget(part_of(alone.spend, COUNT_SHARE))
    count = CountSearch(choice.sensitivity, 1, 0, law, budget, 1, AllRows())
    rest = part_of(alone.spend, 1 - COUNT_SHARE)
    build, q = METHODS["exponential"], Fraction(choice.a, choice.b)
    first = build(public, alone.description.column, q, spend=rest, **asked).mechanism
    return replace(alone, mechanism=InTurn((first, count)))


def _classical_question(
    public: PublicFacts,
    column: str,
    q: Fraction,
    method: str,
    *,
    spend: Guarantee,
    delta: float | None,
    where: Where | None,
    interval_share: object = None,
    **options: object,
) -> Question:
    """A quantile by a classical mechanism with most of the spend, and a search for its interval
    with the rest.
    """
    build, asked = METHODS[method], {"where": where, **options}
    whole = build(public, column, q, spend=spend, delta=delta, **asked)
    query = as_kind(whole.query, GridCounts)
    failure, parts = whole.delta, (q.numerator, q.denominator)
    share = _interval_share(public, query, parts, spend=spend, given=interval_share)
    first = build(
        public,
        column,
        q,
        spend=part_of(spend, 1 - share, failure),
        delta=failure or None,
        **asked,
    ).mechanism
    search = _ends_search(public, query, *parts, part_of(spend, share, failure))
    if isinstance(first, (SmoothNoise, ProposeTestRelease)):
        tested = isinstance(first, ProposeTestRelease)
        ends = as_kind(search.policy, QuantileEnds)
        search = replace(search, policy=CheckedEnds(ends, first.refinement, tested))
    return Question(whole.description, query, InTurn((first, search)), spend, failure)


def quantiles_question(
    public: PublicFacts,
    column: str,
    qs: Iterable[object],
    *,
    spend: Guarantee,
    where: Where | None = None,
) -> Question:
    if isinstance(qs, (str, bytes)) or not isinstance(qs, Iterable):
        raise InvalidParameter(
            "qs",
            f"a {type(qs).__name__} is no list of quantiles",
            "each is a share of rows",
            "pass for example [0.25, 0.5, 0.75]",
        )
    parts = [quantile_parts(q) for q in qs]
    if not parts or len(set(parts)) != len(parts) or any(a in (0, b) for a, b in parts):
        raise InvalidParameter(
            "qs",
            "none, one twice, or one that is 0 or 1",
            "each quantile has an interval, and rows must lie on both sides of it",
            "pass different numbers strictly between 0 and 1",
        )
    labels = (tuple(_label(Fraction(a, b)) for a, b in parts),)
    origin = origin_of(public.schema, column)
    require_spend(spend)
    if len(parts) > MOST_SEARCHED:
        return tree_question(
            public,
            Description("quantiles", column, ("q",), labels, origin=origin),
            spend=spend,
            leaves=quantile_leaves(public),
            where=where,
        )
    query, condition = _query(public, column, where)
    each = part_of(spend, Fraction(1, len(parts)))
    mechanisms = [
        part
        for a, b in parts
        for part in searched(
            public,
            query,
            a,
            b,
            spend=each,
            share=_interval_share(public, query, (a, b), spend=each),
        )
    ]
    return Question(
        Description("quantiles", column, ("q",), labels, condition, origin=origin),
        query,
        InTurn(tuple(mechanisms)),
        spend,
    )


def searched(
    public: PublicFacts, query: GridCounts, a: int, b: int, *, spend: Guarantee, share: Fraction
) -> tuple[Mechanism, Mechanism]:
    """The choice of a quantile a/b, and the search for the ends of its interval with `share` of the
    spend.
    """
    rows = query.sensitivity(public.neighbors)
    moved = QuantileChoice(rows, a, b, Fraction(1), "exponential").largest_change
    choice = QuantileChoice(
        rows, a, b, bounded_range_within(part_of(spend, 1 - share)) / (2 * moved), "exponential"
    )
    return choice, _ends_search(public, query, a, b, part_of(spend, share))


def _ends_search(
    public: PublicFacts, query: GridCounts, a: int, b: int, spend: Guarantee
) -> CountSearch:
    """The search for the ends of the interval of a quantile a/b."""
    rows, (law, budget) = query.sensitivity(public.neighbors), _budget(spend)
    policy = QuantileEnds(
        b - a, a, LEVEL, None if query.optional else public.rows, public.neighbors.rows, law
    )
    return CountSearch(rows, b - a, a, law, budget, UNITS, policy)


def _budget(spend: Guarantee) -> tuple[str, Fraction]:
    """The law of a search's noise, and what its answers may cost together: ε, or μ²."""
    box = spend_box(spend)
    return ("laplace", box.epsilon) if box.epsilon else ("gaussian", box.mu_squared or 2 * box.rho)


def part_of(spend: Guarantee, share: Fraction, delta: Fraction = Fraction(0)) -> Guarantee:
    """A share of a spend, rounded down: of ε, of ρ,
    or of μ² (an (ε, δ) spend is worth the μ² that it buys, with δ₀ = `delta` set aside).
    """
    box = spend_box(spend, delta)
    if box.epsilon:
        return PureDP(float_down(box.epsilon * share))
    return (
        ZCDP(float_down(box.rho * share))
        if box.rho
        else GDP(float_down(sqrt_down(box.mu_squared * share)))
    )


def _query(public: PublicFacts, column: str, where: Where | None) -> tuple[GridCounts, str]:
    cells = rows_asked(public.schema, where, column)
    return GridCounts(
        cells.keys, number_factor(public.schema, column, "a quantile"), cells.optional
    ), cells.where


def _interval_share(
    public: PublicFacts,
    query: GridCounts,
    parts: tuple[int, int],
    *,
    spend: Guarantee,
    given: object = None,
) -> Fraction:
    """The share of a spend that goes to the interval: the caller's, or the default, less where the
    estimate alone needs all of it.

    exp(−exponent) is how much less likely the choice is to pick a cell beyond all data than one at
    the quantile, for a public number of rows. Where that is not far below one over the number of
    cells, the estimate's error falls steeply with its budget, and no interval would be narrow.
    """
    if given is None:
        share = PURE_INTERVAL_SHARE if isinstance(spend, PureDP) else INTERVAL_SHARE
        if public.rows is None or filtered(query.keys):
            return share
        a, b = parts
        rows = query.sensitivity(public.neighbors)
        exponent = (
            bounded_range_within(spend)
            * min(a, b - a)
            * public.rows
            / (2 * QuantileChoice(rows, a, b, Fraction(1), "exponential").largest_change)
        )
        return share * min(
            max(Fraction(int(exponent) - SCARCE, AMPLE - SCARCE), Fraction(1, 10)), Fraction(1)
        )
    share = rational(given, "interval_share=")
    if not Fraction(1, 100) <= share <= Fraction(99, 100):
        raise InvalidParameter(
            "interval_share=",
            "it is not between 0.01 and 0.99",
            "the spend is split between the estimate and its interval",
            "leave it out, or pass for example 0.5 for a narrower interval and a less exact "
            "estimate",
        )
    return share


_OPTIONS = {
    "exponential": ("interval_share",),
    "inverse": ("interval_share",),
    "smooth": ("law", "shape", "interval_share"),
    "ptr": ("eta", "interval_share"),
}


def _known_options(method: str, options: dict[str, object]) -> None:
    for name in options:
        if name not in _OPTIONS[method]:
            raise InvalidParameter(
                f"{name}=",
                f'method="{method}" has no such option',
                "a misspelt option would be ignored",
                f"options of this method: {', '.join(_OPTIONS[method]) or 'none'}",
            )


def _label(q: Fraction) -> str:
    decimal = f"{float(q):.12g}"
    return decimal if Fraction(decimal) == q else str(q)
