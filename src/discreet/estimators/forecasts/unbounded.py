"""What dp.unbounded_mean and dp.location would give for normal values as assumed; no data is read.

The range is found from the data, so a forecast needs an assumed standard deviation:
the declared range says nothing about it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import Cells, Where
from discreet.asking.expected import expected_release, expected_rows
from discreet.asking.preview import Assumptions, Forecast, Preview
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.estimators.unbounded import (
    LOCATION_SHARES,
    TUNING,
    Search,
    begun,
    mean_shares,
    refuse_early,
)
from discreet.inference.means.unbounded import TruncatedMeanResult
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import Description, PublicFacts, Question

# standard deviations from the middle to the ends of the range that is found for normal values,
# about
USUAL_REACH = 2.6
# of a standard normal clipped to ±1.345: its variance, and P(|z| ≤ 1.345)
CLIPPED_VARIANCE, INSIDE = 0.7102, 0.8214


def unbounded_mean_question(
    public: PublicFacts, column: str, *, spend: Guarantee, where: Where | None = None
) -> Question:
    """The first of the questions that an unbounded mean asks, with the whole spend."""
    search = begun(public, column, spend=spend, where=where, asked="an unbounded mean")
    refuse_early(search, mean_shares(search))
    return _whole(search, "unbounded mean", search.bulk_question(mean_shares(search)[0]))


def location_question(
    public: PublicFacts, column: str, *, spend: Guarantee, where: Where | None = None
) -> Question:
    """The first of the questions that a location asks, with the whole spend."""
    search = begun(public, column, spend=spend, where=where, asked="a location")
    refuse_early(search, LOCATION_SHARES)
    return _whole(search, "location", search.bulk_question(LOCATION_SHARES[0]))


def _whole(search: Search, estimator: str, question: Question) -> Question:
    return replace(
        question,
        description=Description(estimator, search.column, where=search.cells.where),
        spend=search.spend,
    )


def unbounded_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> Preview:
    """The forecast of the last release, on the range that normal values as assumed would lead to;
    the price is that of the whole procedure.
    """
    if assume.standard_deviation is None:
        raise InvalidParameter(
            "preview",
            "no standard deviation is assumed",
            "the range is found from the data, and the declared one says nothing about it",
            "pass assume=dp.Assumptions(standard_deviation=…)",
        )
    query: Any = question.query
    deviation = float(assume.standard_deviation)
    middle = float(assume.mean) if assume.mean is not None else query.factor.encoding.center
    public, column = session.public, str(question.description.column)
    search = Search(public, column, _cells(query, question), question.spend)
    mean = question.description.estimator == "unbounded mean"
    half, spread, scale = (
        (USUAL_REACH * deviation, deviation, 1.0)
        if mean
        else (TUNING * deviation, deviation * math.sqrt(CLIPPED_VARIANCE), 1 / INSIDE)
    )
    share = mean_shares(search)[-1] if mean else LOCATION_SHARES[-1]
    last = search.moments(question.description.estimator, middle - half, middle + half, share)
    release, _ = expected_release(
        public, last, replace(assume, standard_deviation=spread, mean=middle)
    )
    item = TruncatedMeanResult(release).quantities(level)[-1]
    forecast = Forecast(
        "mean" if mean else "location",
        scale * float(item.privacy_variance[0]) ** 0.5,
        scale * float(item.std_error[0]),
        scale * float((item.high - item.low)[0]),
        float(item.noise_share[0]),
    )
    price = price_of_spend(question.spend, box=session.ledger.box)
    words = (
        f"{int(expected_rows(public, assume))} rows, normal values of mean {middle:.6g} "
        f"and standard deviation {deviation:.6g}"
    )
    return Preview(last, (forecast,), str(price), session.ledger.how_many(price), words, level)


def _cells(query: Any, question: Question) -> Cells:
    return Cells(query.keys, optional=query.optional, where=question.description.where)
