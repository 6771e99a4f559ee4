"""Statistics that release about how many rows hold a value, beside searches and choices: what it
costs, that it is right, and that nothing is filled in where a cell holds nothing.
"""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.estimators.quantiles import quantile_question
from discreet.inference.results.held import held_rows
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.testing import seeded_session
from discreet.trusted.losses.pricing import within_spend

ROWS, HELD = 900, 600
SPENDS = (dp.GDP(1), dp.ZCDP(0.5), dp.PureDP(1), dp.ApproxDP(1, 1e-6))
SCHEMA = {
    "x": dp.Real(0, 100),
    "full": dp.Real(0, 100, missing=0.0),
    "g": dp.Category(["p", "q"]),
    "whole": dp.Category(["p", "q"], missing="p"),
}
SEARCHES = {
    "median": lambda session, spend: dp.median(session, "x", spend=spend),
    "quantile": lambda session, spend: dp.quantile(session, "x", 0.9, spend=spend),
    "greatest": lambda session, spend: dp.quantile(session, "x", 1, spend=spend),
    "quantiles": lambda session, spend: dp.quantiles(session, "x", [0.25, 0.5], spend=spend),
    "iqr": lambda session, spend: dp.iqr(session, "x", spend=spend),
    "mad": lambda session, spend: dp.mad(session, "x", spend=spend),
}
CHOICES = {
    "mode": lambda session, spend: dp.mode(session, "g", spend=spend),
    "top": lambda session, spend: dp.top(session, "g", 2, spend=spend),
    "select": lambda session, spend: dp.select(session, "g", score="full", spend=spend),
}


def columns():
    rng, place = np.random.default_rng(5), np.arange(ROWS)
    x = np.clip(50 + 15 * rng.standard_normal(ROWS), 0, 100)
    return {
        "x": np.where(place % 3 == 0, np.nan, x),
        "full": x,
        "g": np.where(place % 3 == 0, None, np.where(place % 2, "p", "q")),
        "whole": np.where(place % 2, "p", "q"),
    }


def session_of(seed="held", neighbors=None, budget=None):
    data = dp.from_arrays(columns(), schema=SCHEMA, neighbors=neighbors or dp.Replace())
    return seeded_session(data, budget or dp.ApproxDP(1e4, 0.1), seed)


@pytest.mark.few(3)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("name", SEARCHES)
def test_searches_say_how_many_rows_hold_a_value(name, spend):
    result = SEARCHES[name](session_of(), spend)
    estimate, low, high = held_rows(result.release)
    assert 0 <= low <= estimate <= high <= ROWS
    assert f"About {estimate:.0f} of {ROWS} rows hold a value of x" in str(result)
    assert within_spend(result.release.mechanism, spend)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spend"),
    [
        ("quantile", dp.GDP(2)),
        ("quantile", dp.PureDP(40)),
        ("greatest", dp.GDP(2)),
        ("iqr", dp.PureDP(40)),
        ("mad", dp.GDP(2)),
    ],
    ids=str,
)
def test_the_interval_of_that_count_covers(name, spend):
    """200 draws of nominal 95 %: fewer than 172 would have a probability below 1e-6; and widths
    tell: an interval of twice the noise would cover all, and miss the spread of the estimates.
    """
    found = [held_rows(SEARCHES[name](session_of(str(draw)), spend).release) for draw in range(200)]
    covered = sum(low <= HELD <= high for _, low, high in found)
    assert covered >= int(stats.binom(200, 0.95).ppf(1e-6))
    # the level at which the normal quantile is 0.8: intervals that are too wide cover more
    narrow = sum(abs(one - HELD) <= (high - low) / 2 * 0.4 for one, low, high in found)
    assert narrow <= int(stats.binom(200, 0.62).isf(1e-6))


def test_an_end_and_its_count_cost_the_spend():
    public = session_of().public
    for spend in SPENDS:
        question = quantile_question(public, "x", 1, spend=spend)
        assert isinstance(question.mechanism, InTurn)
        assert within_spend(question.mechanism, spend)
        alone = quantile_question(public, "full", 1, spend=spend)
        assert not isinstance(alone.mechanism, InTurn)  # every row has a value: nothing to count
        choice = question.mechanism.stages[0]
        assert Fraction(95, 100) * alone.mechanism.rate < choice.rate < alone.mechanism.rate


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
@pytest.mark.parametrize("name", CHOICES)
def test_a_choice_and_its_count_cost_the_spend(name, spend, neighbors):
    (part,) = spend.split(1)  # an (ε, δ) budget sets some of its δ aside
    session = session_of(neighbors=neighbors, budget=spend)  # no more than that is there
    result = CHOICES[name](session, part)
    assert len(result.before) == 1
    estimate, low, high = held_rows(result.before[0])
    assert abs(estimate - HELD) <= 12 * (high - low)
    assert f"About {estimate:.0f}" in str(result)
    assert dp.from_json(result.to_json()) == pickle.loads(pickle.dumps(result)) == result


def test_a_choice_is_asked_once_under_its_key(tmp_path):
    data = dp.from_arrays(columns(), schema=SCHEMA, neighbors=dp.Replace(), name="rows")
    session = data.open(budget=dp.GDP(1), ledger=tmp_path / "choices.ledger")
    first = dp.mode(session, "g", spend=dp.GDP(0.5), key="mode")
    spent = session.ledger.spent()
    assert dp.mode(session, "g", spend=dp.GDP(0.5), key="mode") == first
    assert session.ledger.spent() == spent
    forecast = dp.preview(session, dp.mode, "g", spend=dp.GDP(0.5))
    assert "μ² = 0.25" in forecast.price


def test_nothing_is_counted_where_every_cell_has_a_value():
    session = session_of()
    result = dp.mode(session, "whole", spend=dp.GDP(1))
    assert result.before == ()
    assert "hold a value" not in str(result)
    assert dp.select(session, ["full"], spend=dp.GDP(1)).before == ()
    assert held_rows(dp.median(session, "full", spend=dp.GDP(1)).release) is None


def test_cells_of_a_median_add_up():
    result = dp.median(session_of(), "x", by="whole", spend=dp.GDP(40))
    counts = [held_rows(release)[0] for release in result.releases]
    assert abs(sum(counts) - HELD) < 40
    assert f"About {sum(counts):.0f} of {ROWS} rows hold a value of x, whole in some cell" in str(
        result
    )


def test_a_cell_without_a_value_adds_nothing_to_a_score():
    """Filled in with the middle of its range, the sparse column would win by far."""
    place = np.arange(1000)
    table = {
        "sparse": np.where(place % 10 == 0, 60.0, np.nan),
        "dense": np.full(1000, 20.0),
        "g": np.where(place % 10 < 5, "p", "q"),
    }
    schema = {
        "sparse": dp.Real(0, 100),
        "dense": dp.Real(0, 100),
        "g": dp.Category(["p", "q"]),
    }
    data = dp.from_arrays(table, schema=schema, neighbors=dp.Replace())
    session = seeded_session(data, dp.GDP(1000), "scores")
    spend = dp.GDP(20)
    assert dp.top(session, ["sparse", "dense"], 1, spend=spend).chosen == ["dense"]
    assert dp.select(session, "g", score="sparse", spend=spend).chosen == "p"
    halves = {"first": {"g": "p"}, "second": {"g": "q"}}
    told = dp.select(session, halves, score="sparse", spend=spend)
    assert told.chosen == "first"
    assert "rows hold a value of sparse" in str(told)


def test_decisions_and_residuals_say_how_many_rows_they_are_about():
    session = session_of(budget=dp.GDP(1000))
    fit = dp.ols(session, "full ~ x", spend=dp.GDP(5))
    told = dp.residuals(session, fit, spend=dp.GDP(5))
    estimate, low, high = held_rows(told.release)
    assert low <= HELD <= high
    assert f"About {estimate:.0f}" in str(told)
