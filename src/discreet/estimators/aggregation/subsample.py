"""dp.subsample: any function on secret parts of the data, and one private answer from what it gave
(docs/theory/aggregation.md).

*Method*: rows are put into parts at random, data unseen, a unit's rows together; the function runs
on each in a process of its own. What it gave is a table with a row for each part, one of which a
person can change, whatever the function does and whatever relation protects the data; an ordinary
private question is asked of that table.
*Validity* is stated by the results, `discreet.inference.aggregation`. With a `key`, asking again
returns the stored answers at no cost.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.calibration.friendly import margin_for
from discreet.accounting.guarantees import Guarantee, spend_mu_squared
from discreet.asking.cells import Cells, Where, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps, step_spend
from discreet.errors import InvalidParameter, WrongColumnKind, shown
from discreet.estimators.aggregation.points import (
    CENTRE_SHARE,
    Points,
    checked_columns,
    checked_radius,
    grid_of,
    part_of,
    refined_by_steps,
    refuse_early,
)
from discreet.estimators.basic import _open
from discreet.estimators.classical_quantiles import needed_delta
from discreet.estimators.hypotheses.part_tests import function_name
from discreet.estimators.quantiles import median_question
from discreet.estimators.questions import histogram_question, mean_question, proportion_question
from discreet.estimators.selection_questions import mode_question
from discreet.exact import sqrt_up
from discreet.inference.aggregation.friendly import FriendlyMeanResult
from discreet.inference.aggregation.subsample import TWO_SIZES, SubsampleResult, VoteResult
from discreet.neighbors import Replace
from discreet.schema import Boolean, Category, Column, Integer, Open, Real, Schema
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.mechanisms.friendly import WEIGHT_BITS, WEIGHT_MOVES
from discreet.specs.queries.parts import MOST_PARTS
from discreet.specs.queries.query import Query
from discreet.trusted.release import PublicFacts, Question

FEWEST_ROWS, USUAL_PARTS = 5, 100
NOISE_PARTS, NOISE_ROWS = 100, 20  # so many parts over μ, as long as parts have so many rows
_BUILD: dict[str, Callable[..., Any]] = {
    "median": median_question,
    "mean": mean_question,
    "share": proportion_question,
    "shares": histogram_question,
    "vote": mode_question,
}
_AGGREGATES: dict[type, tuple[str, ...]] = {
    Real: ("median", "mean"),
    Integer: ("median", "mean"),
    Boolean: ("share",),
    Category: ("vote", "shares"),
}
FRIENDLY = "friendly mean"
LEAVE_OUT, KEEP = "leave out", "keep"  # rows without a value in a column that the function reads


@dataclass(frozen=True, slots=True)
class OnParts:
    """A function on parts: what it reads, how many parts there are, and what it gives."""

    public: PublicFacts
    function: Callable[..., Any]
    name: str
    columns: tuple[str, ...]
    cells: Cells
    parts: int
    outputs: Schema

    @property
    def table(self) -> PublicFacts:
        """What is public of the table of outputs."""
        return PublicFacts(self.outputs, Replace(), self.parts)

    def asked(self, about: Query) -> Query:
        """A query about the table of outputs, put to the data."""
        names, declared = tuple(self.outputs), tuple(self.outputs.values())
        return PartOutputs(
            self.cells.keys,
            self.columns,
            self.parts,
            names,
            declared,
            about,
            self.name,
            self.function,
        )

    def question(self, aggregate: str, spend: Guarantee) -> Question:
        """An ordinary question about the one output."""
        inner: Question = _BUILD[aggregate](self.table, next(iter(self.outputs)), spend=spend)
        asked = replace(
            inner.description,
            estimator=f"subsample {aggregate}",
            column=self.called,
            where=self.cells.where,
        )
        return replace(inner, description=asked, query=self.asked(inner.query))

    @property
    def called(self) -> str:
        """The function's own name."""
        return self.name.partition("#")[0].rpartition(".")[2]

    def points(self, radius: object) -> Points:
        """The outputs as points, for a friendly mean."""
        names = tuple(self.outputs)
        what = "a friendly mean of parts"
        factors, codes = grid_of(self.outputs, names, checked_radius(radius), what)
        return Points(self.public, factors, (), codes, names, self.asked, self.called)


@plain.door
def subsample(
    session: Session,
    function: Callable[..., Any],
    *,
    columns: str | Sequence[str],
    output: object = None,
    spend: Guarantee,
    parts: int | None = None,
    aggregate: str | None = None,
    bias: str | None = None,
    radius: float | None = None,
    delta: float = 1e-8,
    where: Where | None = None,
    missing: str = LEAVE_OUT,
    key: str | None = None,
) -> SubsampleResult | VoteResult | FriendlyMeanResult:
    """Any function made private: ``dp.subsample(session, slope, columns=["x", "y"],
    output=dp.Real(0, 5), spend=dp.GDP(1))``.

    `function` gets the columns of a part's rows as arrays, in the order named: clamped numbers,
    True/False, or levels; rows without a value in one of them are left out
    (``missing="keep"``: they are NaN, False and None). `output` declares what it gives: a number
    (the median over the parts, or ``aggregate="mean"``), yes or no (the share of yes), a level of a
    `dp.Category` (the most frequent one, or ``aggregate="shares"``), or several numbers,
    ``{"slope": dp.Real(-9, 9), …}`` (their friendly mean: parts within `radius` of each other; it
    fails to protect with probability `delta`). A function that fails, exits, dies or gives anything
    else counts as the output's `missing` value on its part: the middle of the range if none is
    named, no vote for a level.

    The interval is for the function at this part size; ``bias="two sizes"`` takes away a bias in
    proportion to one over the rows of a part, for a mean. `parts` is, left out, what public facts
    make of it: `dp.preview` explains it.

    **The function runs beside the private data with your rights**, on each part in a fork of this
    process: it must be one you trust, depend on its arguments alone, and not write them anywhere.
    It has no time limit, since a clock would let one part decide over another.

    Formula.
            released = aggregate(function(part 1), …, function(part m)) + Z

            part  secret and random, a unit's rows together
            Z     noise for one part exchanged, whatever the function is

    Validity. Independent rows; the interval is about the function at this part size.
    Price.    The spend, once a key, whatever the function computes.
    Example.
            def skew(hours):
                middle = hours - hours.mean()
                return (middle**3).mean() / (middle**2).mean() ** 1.5

            session = dp.load_census().open(budget=dp.GDP(2))
            found = dp.subsample(
                session, skew, columns="hours", output=dp.Real(-3, 3), spend=dp.GDP(1)
            )
            print(found.summary())
    See also. `dp.subsample_test`, `dp.friendly_mean`; docs/how-to/subsample.md.
    """
    public = _open(session).public
    on = on_parts(
        public,
        function,
        columns=columns,
        output=output,
        parts=parts,
        where=where,
        missing=missing,
        spend=spend,
    )
    chosen = chosen_aggregate(on.outputs, aggregate)
    if chosen == FRIENDLY:
        points, failure = friendly_points(on, radius, bias, spend, delta, usual=parts is None)
        with Steps(_open(session), spend, key, delta=failure) as steps:
            return refined_by_steps(points, spend, failure, steps.ask)
    questions = subsample_questions(on, chosen, bias, require_spend(spend))
    if len(questions) > 1:
        with Steps(_open(session), spend, key) as steps:
            coarse, fine = map(steps.ask, questions, ("coarse", "fine"))
        return SubsampleResult(fine, (coarse,))
    release = _open(session).release(questions[0], key=key)
    return VoteResult(release) if chosen == "vote" else SubsampleResult(release)


def on_parts(
    public: PublicFacts,
    function: object,
    *,
    columns: object,
    output: object,
    parts: object,
    where: Where | None,
    spend: Guarantee,
    missing: object = LEAVE_OUT,
) -> OnParts:
    """The function on parts, or the refusal of what cannot be run."""
    if not callable(function):
        raise InvalidParameter(
            "function",
            f"a {type(function).__name__} is not a function",
            "it is run on every part",
            "pass a function from arrays to what output= declares",
        )
    if not hasattr(os, "fork"):
        raise InvalidParameter(
            "dp.subsample",
            "this system cannot fork a process",
            "each part runs in a fork of this process, so that no part sees another",
            "ask on Linux or macOS",
        )
    names = checked_columns(columns, "a function on parts")
    for name in names:
        if isinstance(public.schema[name], Open):
            raise WrongColumnKind(
                name, "Open", "Real, Integer, Boolean or Category", "a function on parts"
            )
    if not isinstance(missing, str) or missing not in (LEAVE_OUT, KEEP):
        raise InvalidParameter(
            "missing=",
            f"{shown(missing)} is not known",
            "rows without a value in a column that is read are left out, or handed on",
            f"pass {LEAVE_OUT!r} or {KEEP!r}",
        )
    held = names if missing == LEAVE_OUT else ()
    cells = rows_asked(public.schema, where, *held)
    count = default_parts(public, cells, spend) if parts is None else checked_parts(parts)
    return OnParts(
        public, function, function_name(function), names, cells, count, declared_outputs(output)
    )


def declared_outputs(output: object) -> Schema:
    """The columns of the table of outputs; numbers without `missing` count as the middle of their
    range where the function gives none.
    """
    named: dict[str, Any] = {}
    if isinstance(output, Mapping):
        named = dict(output)
    elif isinstance(output, list | tuple):
        named = {f"output {place + 1}": one for place, one in enumerate(output)}
    elif output is not None:
        named = {"output": output}
    if not named or not all(isinstance(one, tuple(_AGGREGATES)) for one in named.values()):
        raise InvalidParameter(
            "output=",
            "it is not declared" if output is None else f"{shown(output)} declares no output",
            "what the function gives is clamped to a public range, and a part on which it fails "
            "counts as a public value",
            "pass for example output=dp.Real(0, 5), dp.Category(['a', 'b']) or "
            "{'slope': dp.Real(-9, 9), 'intercept': dp.Real(-9, 9)}",
        )
    return Schema({name: _always_a_value(one) for name, one in named.items()})


def _always_a_value(column: Real | Integer | Boolean | Category) -> Column:
    if isinstance(column, Category) or column.missing is not None:
        return column
    fill: Any = column.fill
    return replace(column, missing=fill)


def checked_parts(parts: object) -> int:
    if type(parts) is int and parts >= 1:
        return parts
    raise InvalidParameter(
        "parts=",
        f"{shown(parts)} is no positive whole number",
        "each part is one run of the function",
        "pass for example parts=100, or leave it out",
    )


def default_parts(public: PublicFacts, cells: Cells, spend: Guarantee) -> int:
    """√(n/2) parts of √(2n) of the n rows, or units, where their number is public, 100 where it is
    not; 100/μ where that is more and leaves 20 rows a part; and at most as leave 5.

    More parts drown the noise, larger parts make the function's bias smaller: a bias of B/rows of
    a part stays below the sampling error of order 1/√n while parts are fewer than about √n. With
    fewer than 100/μ parts an interval of the median is hardly found.
    """
    noisy = math.ceil(NOISE_PARTS / float(sqrt_up(spend_mu_squared(require_spend(spend)))))
    if public.count is None or cells.where:
        return min(max(USUAL_PARTS, noisy), MOST_PARTS)
    wanted = max(round(math.sqrt(public.count / 2)), min(noisy, public.count // NOISE_ROWS))
    return max(1, min(wanted, public.count // FEWEST_ROWS, MOST_PARTS))


def chosen_aggregate(outputs: Schema, aggregate: object) -> str:
    """The aggregate that was asked for, or the usual one for what the function gives."""
    columns = list(outputs.values())
    if len(columns) > 1:
        if not all(isinstance(one, Real | Integer) for one in columns):
            raise InvalidParameter(
                "output=",
                "several outputs are not all numbers",
                "several numbers are aggregated as one point",
                "ask about one level or yes/no at a time",
            )
        known: tuple[str, ...] = (FRIENDLY,)
    else:
        known = _AGGREGATES[type(columns[0])]
    if aggregate is None:
        return known[0]
    if aggregate not in known:
        raise InvalidParameter(
            "aggregate=",
            f"{shown(aggregate)} is none for this output",
            "it decides which private question is asked of what the function gave",
            f"pass one of {', '.join(known)}, or leave it out",
        )
    return str(aggregate)


def subsample_questions(
    on: OnParts, aggregate: str, bias: object, spend: Guarantee
) -> tuple[Question, ...]:
    """One question; with two sizes, means of k and of 2k parts at half of the spend each."""
    if bias is None:
        return (on.question(aggregate, spend),)
    if bias != "two sizes" or aggregate != "mean":
        raise InvalidParameter(
            "bias=",
            f"{shown(bias)} is not known for this aggregate",
            "a bias in proportion to 1/rows is taken away by means at two part sizes",
            "pass bias='two sizes' with aggregate='mean', or leave it out",
        )
    each = step_spend(spend, Fraction(1, 2))
    fine = replace(on, parts=2 * on.parts).question(aggregate, each)
    asked = replace(fine.description, estimator=TWO_SIZES)
    return on.question(aggregate, each), replace(fine, description=asked)


def enough_parts(on: OnParts, spend: Guarantee, failure: Fraction) -> int:
    """So many parts that a core is found, and half of its weight is certain: twice the margin at a
    quarter of the first step's μ²; no more than leave 5 rows a part.
    """
    first = spend_mu_squared(part_of(spend, failure, CENTRE_SHARE))
    margin = margin_for(sqrt_up(WEIGHT_MOVES**2 / (first / 4)), failure) >> WEIGHT_BITS
    most = MOST_PARTS if on.public.count is None else max(1, on.public.count // FEWEST_ROWS)
    return min(max(on.parts, 2 * margin), most, MOST_PARTS)


def friendly_points(
    on: OnParts, radius: object, bias: object, spend: Guarantee, delta: object, *, usual: bool
) -> tuple[Points, Fraction]:
    """The outputs as points, and the δ₀ of their friendly mean."""
    if radius is None or bias is not None:
        raise InvalidParameter(
            "radius=" if radius is None else "bias=",
            "it is missing" if radius is None else "two sizes are for one number",
            "several numbers are aggregated by a friendly mean, whose noise is in proportion to "
            "the distance that outputs of most parts keep",
            "pass for example radius=0.5, in units of the outputs, and no bias=",
        )
    failure = needed_delta(require_spend(spend), delta, "a friendly mean")
    if usual:
        on = replace(on, parts=enough_parts(on, spend, failure))
    points = on.points(radius)
    refuse_early(points, spend, failure)
    return points, failure
