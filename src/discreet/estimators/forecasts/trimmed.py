"""What dp.trimmed_mean would give for normal values as assumed: both steps are run on expected
counts and sums, without noise and without data.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from discreet.asking.cells import Cells
from discreet.asking.expected import expected_release, expected_rows
from discreet.asking.preview import Assumptions, Preview, forecasts_of
from discreet.asking.sessions import Session
from discreet.estimators.forecasts.scale import expected_scale_release
from discreet.estimators.trimmed import ends_question, middle_question
from discreet.estimators.unbounded import Search
from discreet.inference.means.trimmed import TrimmedMeanResult, trim_share
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import Question


def trimmed_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> Preview:
    """The forecast of both releases together; the price is that of the whole procedure."""
    public, query = session.public, question.query
    cells = Cells(query.keys, optional=query.optional, where=question.description.where)
    search = Search(public, str(question.description.column), cells, question.spend)
    rows = expected_rows(public, assume)
    ends, words = expected_scale_release(public, question, rows, assume)
    trim = trim_share(ends)
    ends = replace(ends, description=ends_question(search, trim).description)
    middle = middle_question(search, ends)
    release, _ = expected_release(public, middle, clipped(query, assume, float(trim)))
    quantities = TrimmedMeanResult(release, (ends,)).quantities(level)
    price = price_of_spend(question.spend, box=session.ledger.box)
    return Preview(
        middle,
        forecasts_of(quantities),
        str(price),
        session.ledger.how_many(price),
        words,
        level,
    )


def clipped(query: Any, assume: Assumptions, trim: float) -> Assumptions:
    """What is assumed of the values after they were clipped to their quantiles `trim` and
    1 − `trim`: a quarter of the range as their standard deviation before, if none is assumed.
    """
    grid, law = query.factor.encoding, NormalDist()
    place = law.inv_cdf(1 - trim)
    variance = 1 - 2 * trim - 2 * place * law.pdf(place) + 2 * trim * place**2
    before = (
        float(assume.standard_deviation)
        if assume.standard_deviation is not None
        else grid.high / grid.per_unit / 2
    )
    mean = float(assume.mean if assume.mean is not None else grid.center)
    return replace(assume, mean=mean, standard_deviation=before * math.sqrt(variance))
