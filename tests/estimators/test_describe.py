"""dp.describe, through the public function: one table of many columns from one spend."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.survey import RELATIONS, SCHEMA, SPENDS, data_set, survey

import discreet as dp
from discreet.estimators.describe import describe_questions
from discreet.testing import seeded_session
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import price_of_spend

NAMES = ["n", "missing", "standard deviation", "lower quartile", "median", "upper quartile", "mean"]


def with_holes(rows: int = 3000, seed: int = 1) -> dict[str, np.ndarray]:
    data = survey(seed, rows)
    return {**data, "income": np.where(np.arange(rows) % 10 == 0, np.nan, data["income"])}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "neighbors",
    [RELATIONS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in RELATIONS[1:])],
    ids=str,
)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_it_costs_the_spend_and_no_more(neighbors: Any, spend: Any) -> None:
    # a ledger of (ε, δ) sets a tenth of its δ aside, and cannot grant all of it at once
    for budget in (dp.GDP(2), dp.GDP(1) if isinstance(spend, dp.ApproxDP) else spend):
        ledger = Ledger.open(budget)
        whole = price_of_spend(spend, box=ledger.box)
        before = ledger.remaining().exact()
        session = seeded_session(data_set(neighbors), ledger, "describe")
        found = dp.describe(session, spend=spend, key="all")
        left = ledger.remaining().exact()
        for one in ("epsilon", "mu_squared", "rho", "delta"):
            spent = getattr(before, one) - getattr(left, one)
            assert 0 <= spent <= getattr(whole, one) + 10**-12
        assert dp.describe(session, spend=spend, key="all") == found
        assert ledger.remaining().exact() == left


def test_a_procedure_that_stopped_goes_on_under_its_key() -> None:
    session = seeded_session(data_set(), dp.GDP(2), "stopped")
    question = describe_questions(session.public, spend=dp.GDP(1))[0]
    held = session.reserve(dp.GDP(1), key="all/all")
    first = session.release(question, key="all/part 1", reservation=held)
    found = dp.describe(session, spend=dp.GDP(1), key="all")
    assert found.before[0] == first


@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_it_tells_every_number(neighbors: Any) -> None:
    data = with_holes(8000)
    session = seeded_session(data_set(neighbors, data), dp.GDP(50), "told")
    found = dp.describe(session, spend=dp.GDP(5))
    assert found.columns == ("income", "age")
    frame = found.to_frame(0.9999, target="data")
    assert list(dict.fromkeys(frame["quantity"])) == NAMES
    for name in found.columns:
        held = data[name][~np.isnan(data[name].astype(float))]
        wanted = dict(
            zip(
                NAMES,
                [
                    len(held),
                    8000 - len(held),
                    held.std(ddof=1),
                    *np.quantile(held, [0.25, 0.5, 0.75]),
                    held.mean(),
                ],
                strict=True,
            )
        )
        for row in frame[frame["column"] == name].itertuples():
            slack = 0.02 * row.estimate if "dev" in row.quantity else 0.01
            assert row.low - slack <= wanted[row.quantity] <= row.high + slack, row
    told = found.summary()
    assert [row[0] for row in told.rows] == ["income", "", "", "age", "", ""]
    assert max(len(line) for line in str(told).splitlines()[:9]) <= 100
    assert found.entry("age", quantity="median").estimate == pytest.approx(54, abs=1)
    assert len(repr(found).splitlines()) == 3
    assert dp.from_json(found.to_json()) == found == pickle.loads(pickle.dumps(found))
    assert found.plot() is not None


@pytest.mark.slow
def test_its_intervals_cover() -> None:
    """Of 150 data sets each number at least 0.94 less four Monte-Carlo standard errors (0.019)."""
    truth = {"standard deviation": 10.0, "median": 50.0, "mean": 50.0}
    hits: dict[str, list[bool]] = {name: [] for name in truth}
    for seed in range(150):
        rng = np.random.default_rng(seed)
        columns = {name: rng.normal(50, 10, 500) for name in ("x", "y")}
        schema = {name: dp.Real(0, 100) for name in columns}
        data = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
        found = dp.describe(seeded_session(data, dp.GDP(5), seed), spend=dp.GDP(1))
        for one in found.quantities():
            if one.name in truth:
                inside = (one.low <= truth[one.name]) & (truth[one.name] <= one.high)
                hits[one.name] += [bool(value) for value in inside]
    for name, found_inside in hits.items():
        error = np.sqrt(0.94 * 0.06 / 150)
        assert np.mean(found_inside) >= 0.94 - 4 * error, name


def test_dates_are_told_as_dates_and_what_is_filled_in_is_said() -> None:
    days = np.arange("2024-01-01", "2024-03-31", dtype="datetime64[D]").repeat(40)
    schema = {"day": dp.Date("2024-01-01", "2024-12-31"), "x": dp.Real(0, 1, missing=0.5)}
    data = dp.from_arrays(
        {"day": days, "x": np.full(days.size, np.nan)}, schema=schema, neighbors=dp.Replace()
    )
    found = dp.describe(seeded_session(data, dp.GDP(100), "dates"), spend=dp.GDP(20))
    rows = found.summary().rows
    assert rows[0][4].startswith("2024-02-1")
    assert rows[0][7].startswith("2024-02-1")
    assert "A cell of x without a value counts as 0.5." in found.summary().notes
    assert found.entry("x", quantity="missing").estimate == pytest.approx(3600, abs=5)


@pytest.mark.slow
def test_it_is_forecast() -> None:
    session = seeded_session(data_set(data=survey(rows=3000)), dp.GDP(5), "forecast")
    forecast = dp.preview(session, dp.describe, ["age", "income"], spend=dp.GDP(1))
    found = dp.describe(session, ["age", "income"], spend=dp.GDP(1))
    widths = {item.quantity: item.width for item in forecast.forecasts}
    assert widths["age: n"] == pytest.approx(forecast.forecasts[0].width)
    entry = found.entry("age", quantity="mean")
    assert 0.5 < widths["age: mean"] / (entry.high - entry.low) < 2
    assert forecast.how_many == 25
    assert forecast.width == widths["income: mean"]
    assert "7 releases" in str(forecast)
    assert forecast.plot() is not None


@pytest.mark.parametrize(
    "columns", ["region", [], ["age", "age"], ["nothing"], ["member", "age"], 3]
)
def test_other_columns_are_refused_for_nothing(columns: Any) -> None:
    session = seeded_session(data_set(), dp.GDP(5), "refused")
    before = session.ledger.remaining()
    with pytest.raises(dp.DiscreetError):
        dp.describe(session, columns, spend=dp.GDP(1))
    assert session.ledger.remaining() == before
    assert SCHEMA
