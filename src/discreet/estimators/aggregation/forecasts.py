"""What functions on parts and friendly means would give, before anything is spent and without data:
the function is not run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.expected import expected_preview, expected_release, imagined_release
from discreet.asking.noise_choice import require_spend
from discreet.asking.preview import Assumptions, Preview, forecasts_of
from discreet.asking.sessions import Session
from discreet.estimators.aggregation.friendly import points_of_rows
from discreet.estimators.aggregation.points import (
    CENTRE,
    CENTRE_SHARE,
    MEAN,
    Points,
    clip_radius,
    part_of,
    refuse_early,
)
from discreet.estimators.aggregation.subsample import (
    FRIENDLY,
    LEAVE_OUT,
    OnParts,
    chosen_aggregate,
    friendly_points,
    on_parts,
    subsample_questions,
)
from discreet.estimators.forecasts.quantile import quantile_preview
from discreet.estimators.forecasts.selection import selection_preview
from discreet.inference.aggregation.friendly import (
    FriendlyClustersResult,
    FriendlyMeanResult,
    core_of,
)
from discreet.inference.aggregation.subsample import SubsampleResult
from discreet.specs.aggregation.friends import FINE_BITS, ClippedSum, Friends
from discreet.specs.mechanisms.friendly import WEIGHT_BITS
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import PublicFacts, Question, Release


@dataclass(frozen=True, slots=True)
class Forecasting:
    """Where a forecast is asked: what is public, and what it may assume."""

    session: Session
    assume: Assumptions
    level: float


def subsample_preview(
    session: Session,
    function: Any,
    *,
    columns: Any,
    output: Any = None,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    parts: int | None = None,
    aggregate: str | None = None,
    bias: str | None = None,
    radius: float | None = None,
    delta: float = 1e-8,
    where: Any = None,
    missing: str = LEAVE_OUT,
) -> Any:
    """The forecast of the ordinary question about the table of outputs, whose standard deviation
    over the parts may be assumed; it says how many parts there are, and why.
    """
    on = on_parts(
        session.public,
        function,
        columns=columns,
        output=output,
        parts=parts,
        where=where,
        missing=missing,
        spend=spend,
    )
    at, words = Forecasting(session, assume, level), parts_words(on, chosen=parts is not None)
    chosen = chosen_aggregate(on.outputs, aggregate)
    if chosen == FRIENDLY:
        points, failure = friendly_points(on, radius, bias, spend, delta, usual=parts is None)
        query: Any = points.asked(Friends((), points.factors, points.radius))
        words = parts_words(replace(on, parts=query.parts), chosen=query.parts != on.parts)
        words = words.replace("as asked", "as many as a core needs")
        return _refined(at, points, (require_spend(spend), failure), words)
    questions = subsample_questions(on, chosen, bias, require_spend(spend))
    if len(questions) > 1:
        return _two_sizes(at, on, questions, words)
    made = _of_table(at, on, questions[0])
    if chosen == "vote":
        return replace(made, question=questions[0], unit="parts")
    assumed = made.assumed.replace(" rows", " parts", 1)
    return replace(made, question=questions[0], assumed=f"{assumed}; {words}")


def parts_words(on: OnParts, *, chosen: bool) -> str:
    """How many parts there are, and why."""
    units = "rows" if on.public.neighbors.unit is None else "units"
    count = on.public.count
    if count is None or on.cells.where:
        why = "as asked" if chosen else f"the usual number where that of {units} is private"
        return f"{on.parts} parts, {why}"
    usual = on.parts == round(math.sqrt(count / 2))
    public = (
        f"√(n/2) of n = {count} {units}" if usual else "as many as the noise of this spend needs"
    )
    why = "as asked" if chosen else public
    return f"{on.parts} parts of about {count / on.parts:.4g} {units}, {why}"


def _of_table(at: Forecasting, on: OnParts, question: Question) -> Any:
    """The forecast of the question about the table of outputs, as of any table."""
    about: Any = question.query
    kind = question.description.estimator.removeprefix("subsample ")
    kind = "mean" if kind == "two sizes" else kind
    kind = {"share": "proportion", "shares": "histogram", "vote": "mode"}.get(kind, kind)
    name = next(iter(on.outputs))
    facts = PublicFacts(on.outputs, on.table.neighbors, about.parts)
    asked = replace(question.description, estimator=kind, column=name, where="")
    inner = replace(question, query=about.about, description=asked)
    table: Any = SimpleNamespace(
        public=facts, price=lambda _: at.session.price(question), ledger=at.session.ledger
    )
    if kind == "median":
        return quantile_preview(table, inner, at.assume, at.level)
    if kind == "mode":
        return selection_preview(table, inner, at.assume, at.level)
    return expected_preview(table, inner, at.assume, at.level)


def _two_sizes(
    at: Forecasting, on: OnParts, questions: tuple[Question, ...], words: str
) -> Preview:
    """Twice the coarse mean less the fine one; parts half as large spread √2 times as far."""
    column: Any = next(iter(on.outputs.values()))
    usual = float(column.high - column.low) / 4
    spread = float(at.assume.standard_deviation or usual)
    releases = []
    for question, wider in zip(questions, (1.0, math.sqrt(2)), strict=True):
        query: Any = question.query
        facts = PublicFacts(on.outputs, on.table.neighbors, query.parts)
        assumed = replace(at.assume, standard_deviation=spread * wider)
        inner = replace(question, query=query.about)
        release, _ = expected_release(facts, inner, assumed)
        releases.append(replace(release, query=query, neighbors=at.session.public.neighbors))
    quantities = SubsampleResult(releases[1], (releases[0],)).quantities(at.level)
    assumed_words = f"standard deviation {spread:.6g} over the coarser parts; {words}, and twice"
    made = _whole(at, questions[0], quantities, f"{assumed_words} as many")
    price = at.session.price(questions[0]) + at.session.price(questions[1])
    return replace(made, price=str(price), how_many=at.session.ledger.how_many(price))


def friendly_preview(
    session: Session,
    columns: Any,
    *,
    radius: float,
    spend: Guarantee,
    assume: Assumptions,
    level: float,
    delta: float = 1e-8,
    refine: bool = True,
) -> Preview:
    """The forecast where all rows are friends of each other."""
    points, failure = points_of_rows(session.public, columns, radius, spend, delta)
    at, words = Forecasting(session, assume, level), f"{session.public.rows} rows"
    if refine:
        return _refined(at, points, (require_spend(spend), failure), words)
    question = points.centre_question(MEAN, spend, failure)
    quantities = FriendlyMeanResult(all_friends(session.public, question)).quantities(level)
    return _whole(at, question, quantities, f"{words}, all within the radius")


def clusters_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> Preview:
    """The forecast where all parts agree."""
    query: Any = question.query
    release = all_friends(session.public, question)
    quantities = FriendlyClustersResult(release).quantities(level)
    words = f"{query.parts} parts that all agree"
    return _whole(Forecasting(session, assume, level), question, quantities, words)


def all_friends(public: PublicFacts, question: Question) -> Release:
    """The friendly mean of points that are all friends, at the middle of the ranges."""
    mechanism: Any = question.mechanism
    query: Any = question.query
    count = getattr(query, "parts", public.count) or 1
    noisy = count << WEIGHT_BITS
    zeros = (0,) * query.size if mechanism.mean_noise(noisy) is not None else ()
    return imagined_release(public, question, (noisy, *zeros))


def _refined(
    at: Forecasting, points: Points, paid: tuple[Guarantee, Fraction], words: str
) -> Preview:
    """Both steps, for points whose coordinates have the assumed standard deviation: that with which
    two of them lie about the radius apart where none is assumed.
    """
    spend, failure = paid
    refuse_early(points, spend, failure)
    first = points.centre_question(CENTRE, part_of(spend, failure, CENTRE_SHARE), failure)
    centre = all_friends(at.session.public, first)
    core, size = core_of(centre), len(points.factors)
    per_unit = points.factors[0].encoding.per_unit
    usual = points.radius / per_unit / math.sqrt(2 * size)
    spread = float(at.assume.standard_deviation or usual)
    if core.place is None:
        result = FriendlyMeanResult(centre)
        return _whole(at, first, result.quantities(at.level), f"{words}: too few for a core")
    rest = part_of(spend, failure, 1 - CENTRE_SHARE)
    second = points.mean_question((0,) * size, clip_radius(points, core.spread), rest)
    query: Any = second.query
    about: ClippedSum = getattr(query, "about", query)
    rows = getattr(query, "parts", at.session.public.count) or 1
    square = round(rows * (spread * per_unit) ** 2 / (2 * about.radius) * (1 << FINE_BITS))
    noise: Any = second.mechanism
    count = [about.count_weight * rows] if about.optional else []
    statistic = [0] * size + [square] * size + count
    release = imagined_release(
        at.session.public, second, (value << noise.refinement for value in statistic)
    )
    quantities = FriendlyMeanResult(release, (centre,)).quantities(at.level)
    assumed = f"{words}, all friends, standard deviation {spread:.6g} in a coordinate"
    made = _whole(at, second, quantities, assumed)
    price = price_of_spend(spend, box=at.session.ledger.box, delta=failure)
    return replace(made, price=str(price), how_many=at.session.ledger.how_many(price))


def _whole(at: Forecasting, question: Question, quantities: Any, words: str) -> Preview:
    """A preview of these quantities at the price of the question."""
    price = at.session.price(question)
    return Preview(
        question,
        forecasts_of(quantities),
        str(price),
        at.session.ledger.how_many(price),
        words,
        at.level,
    )
