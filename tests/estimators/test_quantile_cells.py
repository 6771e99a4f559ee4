"""dp.median, dp.quantile and dp.variance by cells, through the public functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.survey import RELATIONS, SCHEMA, SPENDS, data_set, survey

import discreet as dp
from discreet.estimators.quantile_cells import cell_conditions
from discreet.testing import seeded_session
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import price_of_spend

BINS = {"region": None, "age": [18, 40, 65.5, 90], "member": None}


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_all_cells_together_cost_the_spend(neighbors: Any, spend: Any) -> None:
    boxes = [dp.GDP(2)] + ([dp.ZCDP(2)] if isinstance(spend, dp.ZCDP) else [])
    boxes += [dp.PureDP(2)] if isinstance(spend, dp.PureDP) else []
    for budget in boxes:
        ledger = Ledger.open(budget)
        whole = price_of_spend(spend, box=ledger.box)
        before = ledger.remaining().exact()
        session = seeded_session(data_set(neighbors), ledger, "cells")
        found = dp.median(session, "income", by="region", spend=spend, key="by region")
        left = ledger.remaining().exact()
        for one in ("epsilon", "mu_squared", "rho", "delta"):
            spent = getattr(before, one) - getattr(left, one)
            assert 0 <= spent <= getattr(whole, one) + 10**-12
        assert dp.median(session, "income", by="region", spend=spend, key="by region") == found
        assert ledger.remaining().exact() == left
        assert len(found.releases) == 4
        assert dp.from_json(found.to_json()) == found


def test_cells_are_those_of_a_table() -> None:
    """The filters of all cells keep the rows that a table counts in them, one by one."""
    data = survey(rows=600)
    session = seeded_session(data_set(data=data), dp.GDP(1000), "table")
    table = dp.table(session, by=BINS, spend=dp.GDP(100))
    parts, _ = cell_conditions(session.public, BINS, None)
    assert [one.label for one in parts] == table.labels
    counts = table.quantities()[0].estimate
    for one, wanted in zip(parts, counts, strict=True):
        found = dp.count(session, where=one.where, spend=dp.GDP(100))
        assert round(found.estimate) == round(float(wanted))


def test_every_cell_has_its_own_quantile() -> None:
    data = survey(rows=8000)
    data["income"] = np.clip(data["income"] + 20 * (data["region"] == "N"), 0, 100)
    session = seeded_session(data_set(data=data), dp.GDP(500), "own")
    for ask, q in ((dp.median, 0.5), (dp.quantile, 0.9)):
        asked = () if q == 0.5 else (q,)
        found = ask(
            session, "income", *asked, by="region", where={"member": False}, spend=dp.GDP(5)
        )
        assert [label for (label,) in found.labels] == ["E", "N", "S", "W"]
        ends = found.confidence_interval(target="data")
        for cell, region in enumerate("ENSW"):
            kept = data["income"][(data["region"] == region) & ~data["member"]]
            assert ends[cell, 0] - 0.01 <= np.quantile(kept, q) <= ends[cell, 1] + 0.01
        assert found["N"].estimate > found["E"].estimate + 15
        assert "Only rows where member is False." in str(found)
        assert found.to_frame()["region"].tolist() == ["E", "N", "S", "W"]
        assert found.plot() is not None
    same = dp.quantile(session, "income", 0.5, by="region", spend=dp.GDP(5))
    assert same.quantities()[0].name == "median"
    with pytest.raises(dp.NoTheorem):
        dp.median(session, "income", by="member", method="inverse", spend=dp.GDP(5))


def test_cells_of_dates_are_periods() -> None:
    days = np.arange("2024-01-01", "2024-03-31", dtype="datetime64[D]").repeat(40)
    values = np.where(days < np.datetime64("2024-02-01"), 20.0, 60.0)
    schema = {"day": dp.Date("2024-01-01", "2024-03-31"), "x": dp.Real(0, 100)}
    data = dp.from_arrays({"day": days, "x": values}, schema=schema, neighbors=dp.Replace())
    session = seeded_session(data, dp.GDP(100), "dates")
    found = dp.median(session, "x", by={"day": "month"}, spend=dp.GDP(5))
    assert found.params == pytest.approx([20, 60, 60], abs=0.1)
    with pytest.raises(dp.InvalidParameter, match="again and again"):
        dp.median(session, "x", by={"day": "weekday"}, spend=dp.GDP(5))


def test_a_forecast_is_of_one_cell_at_the_price_of_all() -> None:
    session = seeded_session(data_set(), dp.GDP(5), "forecast")
    whole = dp.preview(session, dp.median, "income", by="region", spend=dp.GDP(1))
    single = dp.preview(session, dp.median, "income", spend=dp.GDP(1))
    assert whole.width > single.width
    assert whole.how_many == single.how_many == 25
    assert "one of 4 cells" in str(whole)


@pytest.mark.parametrize(
    "options",
    [
        {"by": "region", "where": {"region": "N"}},
        {"by": "region", "delta": 1e-9},
        {"by": {"age": 72, "region": None}},
        {"by": "income"},
        {"by": "nothing"},
        {"by": []},
        {"by": "region", "spend": dp.GDP(1e-4)},
    ],
)
def test_what_cannot_be_asked_by_cells_is_refused_for_nothing(options: dict[str, Any]) -> None:
    session = seeded_session(data_set(), dp.GDP(5), "refused")
    before = session.ledger.remaining()
    with pytest.raises(dp.DiscreetError):
        dp.median(session, "income", **{"spend": dp.GDP(1), **options})
    assert session.ledger.remaining() == before


def test_variances_have_cells() -> None:
    data = survey(rows=20_000)
    session = seeded_session(data_set(data=data), dp.GDP(50), "cells")
    found = dp.variance(session, "income", by="region", spend=dp.GDP(5), key="by region")
    ends = found.confidence_interval(0.9999)
    for cell, region in enumerate("ENSW"):
        exact = data["income"][data["region"] == region].var(ddof=1)
        assert ends[cell, 0] < exact < ends[cell, 1]
    root = dp.std(
        seeded_session(data_set(data=data), dp.GDP(50), "cells"),
        "income",
        by="region",
        spend=dp.GDP(5),
    )
    assert root.release.integers == found.release.integers
    assert dp.from_json(found.to_json()) == found
    with pytest.raises(dp.InvalidParameter, match=r"dp\.std"):
        found.standard_deviation()
    assert dp.preview(session, dp.variance, "income", by="region", spend=dp.GDP(1)).width > 0


def test_a_standard_deviation_lost_in_noise_with_missing_cells_is_told() -> None:
    """The noise of a count beyond the public number of rows is 0 in that cell alone."""
    data = survey(rows=40)
    schema = {"income": SCHEMA["income"]}
    for seed in range(6):
        source = dp.from_arrays({"income": data["income"]}, schema=schema, neighbors=dp.Replace())
        session = seeded_session(source, dp.GDP(5), f"lost {seed}")
        low, high = dp.std(session, "income", spend=dp.GDP(0.05)).confidence_interval()[0]
        assert 0 <= low <= high
