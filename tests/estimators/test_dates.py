"""Dates through the public functions: tables by the calendar, dates in print, days in formulas."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session

FIRST = datetime.datetime(2023, 1, 1)
ROWS = 2000
RNG = np.random.default_rng(8)
SECONDS = RNG.integers(0, 500 * 86_400, ROWS)
MOMENTS = [FIRST + datetime.timedelta(seconds=int(one)) for one in SECONDS]
DATA = {
    "visit": [moment.date() for moment in MOMENTS],
    "at": np.array(MOMENTS, dtype="datetime64[s]"),
    "cost": SECONDS / 86_400 * 0.1 + RNG.normal(0, 1, ROWS),
}
SCHEMA = {
    "visit": dp.Date("2023-01-01", "2024-05-14"),
    "at": dp.Datetime("2023-01-01", "2024-05-14 23:59:59"),
    "cost": dp.Real(-5, 60),
}


def session(neighbors=None):
    data = dp.from_arrays(DATA, schema=SCHEMA, neighbors=neighbors or dp.AddRemove())
    return seeded_session(data, dp.GDP(1000), seed=4)


@pytest.mark.parametrize(
    ("by", "spelled"),
    [
        ({"visit": "year"}, "%Y"),
        ({"visit": "month"}, "%Y-%m"),
        ({"visit": "weekday"}, "%a"),
        ({"at": "hour"}, "%H"),
        ({"at": "day"}, "%Y-%m-%d"),
    ],
)
def test_tables_count_the_rows_of_each_period(by, spelled):
    table = dp.table(session(), by=by, spend=dp.GDP(50))
    counts = {label: 0 for (label,) in table.labels}
    for moment in MOMENTS:
        counts[moment.strftime(spelled)] += 1
    found = {
        row[next(iter(by))]: row["estimate"]
        for row in table.records()
        if row["quantity"] == "count"
    }
    assert list(found) == list(counts)
    # σ = 1/50 under AddRemove: six of them
    assert all(abs(found[label] - counts[label]) < 0.12 for label in counts)
    assert dp.from_json(table.to_json()).labels == table.labels


def test_tables_cross_periods_with_other_cells_and_filters():
    table = dp.table(
        session(),
        "cost",
        by={"visit": "quarter", "at": "weekday"},
        where={"visit": ("2023-02-01", datetime.date(2023, 12, 31))},
        spend=dp.GDP(50),
    )
    assert len(table.labels) == 6 * 7
    assert "2023-02-01 ≤ visit ≤ 2023-12-31" in str(table)


@pytest.mark.parametrize("ask", [dp.mean, dp.median])
@pytest.mark.parametrize("column", ["visit", "at"])
def test_means_and_medians_print_dates_and_count_days(ask, column):
    result = ask(session(), column, spend=dp.GDP(20))
    begin = FIRST + datetime.timedelta(
        **{"days" if column == "visit" else "seconds": result.estimate}
    )
    printed = str(result)
    assert begin.strftime("%Y-%m-") in printed
    assert f"{'days' if column == 'visit' else 'seconds'} since 2023-01-01" in printed
    truth = np.mean if ask is dp.mean else np.median
    days = truth(SECONDS // 86_400) if column == "visit" else truth(SECONDS)
    low, high = result.confidence_interval(target="data")[0]
    assert low - 2 <= days <= high + 2
    again = dp.from_json(result.to_json())
    assert str(again) == printed


def test_quantiles_of_every_method_print_dates():
    opened = session(dp.Replace())
    for asked in (
        lambda: dp.quantiles(opened, "visit", [0.25, 0.75], spend=dp.GDP(20)),
        lambda: dp.quantiles(opened, "visit", [0.1, 0.2, 0.5, 0.7, 0.9], spend=dp.GDP(20)),
        lambda: dp.table(opened, "visit", by={"at": "year"}, spend=dp.GDP(20)),
    ):
        result = asked()
        assert "2023-" in str(result)
        assert str(dp.from_json(result.to_json())) == str(result)


def test_a_formula_says_that_it_counts_days():
    fit = dp.ols(session(), "cost ~ visit", spend=dp.GDP(20))
    assert "visit[days since 2023-01-01]" in fit.names
    # 0.1 a day; the rows' own error is below 0.0002
    assert abs(float(np.asarray(fit.params)[-1]) - 0.1) < 0.002
    response = dp.ols(session(), "visit ~ cost", spend=dp.GDP(20))
    assert "visit[days since 2023-01-01]" in str(response)


def test_a_stored_description_without_dates_keeps_its_bytes():
    result = dp.mean(session(), "cost", spend=dp.GDP(5))
    assert "origin" not in result.release.description.to_dict()
