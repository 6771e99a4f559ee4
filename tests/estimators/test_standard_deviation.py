"""dp.std, through the public functions: the root of the variance's release, by cells too."""

from __future__ import annotations

import numpy as np
import pytest
from tests.survey import RELATIONS, SPENDS, data_set, survey

import discreet as dp
from discreet.testing import seeded_session


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_it_is_the_root_of_the_variance(neighbors: object, spend: object) -> None:
    found, variance = (
        ask(seeded_session(data_set(neighbors), dp.GDP(50), "std"), "income", spend=spend)
        for ask in (dp.std, dp.variance)
    )
    assert found.release.integers == variance.release.integers
    np.testing.assert_allclose(
        found.confidence_interval(0.9), np.sqrt(variance.confidence_interval(0.9))
    )
    np.testing.assert_allclose(found.params, np.sqrt(np.maximum(variance.params, 0)))
    np.testing.assert_allclose(found.noise_share, variance.noise_share)


def test_cells_have_their_own_and_a_filter_leaves_rows_out() -> None:
    data = survey(rows=20_000)
    session = seeded_session(data_set(data=data), dp.GDP(50), "cells")
    found = dp.std(session, "income", by="region", where={"member": False}, spend=dp.GDP(5))
    assert [label for (label,) in found.labels] == ["E", "N", "S", "W"]
    ends = found.confidence_interval(0.9999)
    for cell, region in enumerate("ENSW"):
        exact = data["income"][(data["region"] == region) & ~data["member"]].std(ddof=1)
        assert ends[cell, 0] < exact < ends[cell, 1]
        assert abs(found.params[cell] - exact) < 1
    assert found.to_frame()["region"].tolist() == ["E", "N", "S", "W"]
    assert "Private standard deviation" in str(found.summary())


def test_it_reads_its_own_json_and_is_forecast() -> None:
    session = seeded_session(data_set(), dp.GDP(50), "json")
    found = dp.std(session, "income", spend=dp.GDP(1), key="spread")
    assert dp.from_json(found.to_json()) == found
    assert dp.std(session, "income", spend=dp.GDP(1), key="spread") == found
    assumed = dp.Assumptions(standard_deviation=10)
    forecast = dp.preview(session, dp.std, "income", spend=dp.GDP(1), assume=assumed)
    (low, high) = found.confidence_interval()[0]
    assert 0.5 < forecast.width / (high - low) < 2


def test_where_noise_is_large_the_interval_begins_at_nothing() -> None:
    session = seeded_session(data_set(data=survey(rows=30)), dp.GDP(50), "noise")
    found = dp.std(session, "income", spend=dp.GDP(0.2))
    assert found.confidence_interval()[0, 0] == 0
    assert np.isfinite(found.std_errors).all()
