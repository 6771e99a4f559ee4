"""Means without bounds, Huber's location and truncated means, through the public functions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session

WIDE = {"x": dp.Real(-1e8, 2e8), "g": dp.Category(["a", "b"])}


def opened(
    values: Any,
    *,
    neighbors: Any = None,
    schema: Any = None,
    budget: Any = None,
    seed: int = 1,
    **columns: Any,
) -> dp.Session:
    table = {
        "x": values,
        "g": ["a", "b"] * (len(values) // 2) + ["a"] * (len(values) % 2),
    } | columns
    data = dp.from_arrays(table, schema=schema or WIDE, neighbors=neighbors or dp.Replace())
    return seeded_session(data, budget or dp.GDP(50), seed)


def normal(rows: int = 1000, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(50, 3, rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "neighbors",
    [
        dp.Replace(),
        dp.AddRemove(),
        dp.Replace(unit="u", max_rows=2),
        dp.AddRemove(unit="u", max_rows=2),
    ],
    ids=str,
)
def test_a_mean_is_found_in_a_range_a_hundred_million_deviations_wide(neighbors: Any) -> None:
    values = normal(4000)
    session = opened(values, neighbors=neighbors, u=np.arange(4000) // 2)
    fit = dp.unbounded_mean(session, "x", spend=dp.GDP(1))
    low, high = fit.confidence_interval()[0]
    assert abs(fit.estimate - values.mean()) < 0.5
    assert low <= fit.estimate <= high
    assert high - low < 2
    assert 30 < fit.range[0] < 46
    assert 54 < fit.range[1] < 80
    below, above, mean = fit.quantities(0.9999)
    assert below.name == "clipped below"
    assert above.low[0] <= (values > fit.range[1]).mean() <= above.high[0]
    assert mean.name == "mean"
    place = dp.location(session, "x", spend=dp.GDP(1))
    assert abs(place.estimate - 50) < 0.5
    assert 1 < place.half_width < 12


def test_the_steps_of_a_procedure_stay_within_it() -> None:
    for spend in (dp.GDP(0.7), dp.PureDP(1.5), dp.ZCDP(0.3), dp.ApproxDP(1, 1e-6)):
        session = opened(
            normal(),
            budget=spend if not isinstance(spend, dp.ApproxDP) else dp.ApproxDP(1, 1e-6),
            schema=WIDE,
        )
        if isinstance(spend, dp.ApproxDP):
            continue  # its ledger sets a tenth of δ aside, so a spend of all of it does not fit
        fit = dp.unbounded_mean(session, "x", spend=spend, key="all")
        assert len(fit.releases) == 3
        assert not session.ledger.open_reservations()
        with pytest.raises(dp.BudgetExceeded):
            dp.unbounded_mean(session, "x", spend=spend)
        again = dp.unbounded_mean(session, "x", spend=spend, key="all")
        assert again == fit
        assert session.ledger.verify()


def test_a_refusal_debits_nothing() -> None:
    session = opened(normal(100), budget=dp.GDP(1))
    before = session.ledger.head
    for wrong in (
        lambda: dp.unbounded_mean(session, "g", spend=dp.GDP(0.1)),
        lambda: dp.unbounded_mean(session, "y", spend=dp.GDP(0.1)),
        lambda: dp.unbounded_mean(session, "x", spend=0.1),  # type: ignore[arg-type]
        lambda: dp.unbounded_mean(session, "x", spend=dp.GDP(2)),
        lambda: dp.unbounded_mean(session, "x", spend=dp.GDP(0.1), key="k" * 181),
        lambda: dp.location(session, "g", spend=dp.GDP(0.1)),
        lambda: dp.truncated_mean(session, "x", bound=0, spend=dp.GDP(0.1)),
        lambda: dp.truncated_mean(session, "x", bound=float("nan"), spend=dp.GDP(0.1)),
        lambda: dp.unbounded_mean(session, "x", spend=dp.GDP(1e-9)),
        lambda: dp.unbounded_mean(session, "x", spend=dp.GDP(0.1), where={}),
        lambda: dp.preview(session, dp.unbounded_mean, "x", spend=dp.GDP(0.1)),
    ):
        with pytest.raises(dp.DiscreetError):
            wrong()
    assert session.ledger.head == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        [],
        [3.0],
        [3.0, 4.0],
        [5.0] * 300,
        [float("nan")] * 50,
        [None] * 3,
        [2e8] * 300,
        [-1e8] * 100 + [2e8] * 100,
        [float("inf"), float("-inf"), 1e300, "7", "?"],
        list(range(30)),
    ],
    ids=[
        "none",
        "one",
        "two",
        "constant",
        "nan",
        "missing",
        "at a bound",
        "at both bounds",
        "odd cells",
        "few",
    ],
)
def test_every_data_set_gets_an_answer(values: list[Any]) -> None:
    for neighbors in (dp.Replace(), dp.AddRemove()):
        session = opened(values, neighbors=neighbors)
        for spend in (dp.GDP(1), dp.PureDP(0.5)):
            for fit in (
                dp.unbounded_mean(session, "x", spend=spend),
                dp.location(session, "x", spend=spend),
                dp.unbounded_mean(session, "x", spend=spend, where={"g": "b"}),
            ):
                interval = fit.confidence_interval()
                assert np.isfinite(interval).all()
                assert interval[0, 0] <= interval[0, 1]
                assert np.isfinite(fit.estimate)
                assert "Privacy of these" in str(fit.summary())


def test_too_few_rows_give_an_interval_that_says_so() -> None:
    for rows in (0, 1, 2, 5):
        fit = dp.unbounded_mean(opened([50.0] * rows), "x", spend=dp.GDP(0.5))
        low, high = fit.confidence_interval()[0]
        assert high - low > 1e6  # nothing is known, and nothing is claimed


def test_a_constant_column_is_found_to_within_a_cell() -> None:
    fit = dp.unbounded_mean(opened([77.25] * 1000), "x", spend=dp.GDP(1))
    assert fit.estimate == pytest.approx(77.25, abs=0.2)  # a cell of the 32-bit grid is 0.07 wide
    whole = dp.unbounded_mean(
        opened([7] * 1000, schema={"x": dp.Integer(0, 1_000_000_000), "g": WIDE["g"]}),
        "x",
        spend=dp.GDP(1),
    )
    assert whole.estimate == pytest.approx(7, abs=1)


@pytest.mark.slow
def test_results_come_back_from_json_and_have_the_usual_verbs() -> None:
    session = opened(normal())
    for fit in (
        dp.unbounded_mean(session, "x", spend=dp.GDP(1)),
        dp.location(session, "x", spend=dp.GDP(1)),
        dp.truncated_mean(session, "x", bound=80, spend=dp.GDP(1)),
    ):
        back = dp.from_json(fit.to_json())
        assert back == fit
        assert back.estimate == fit.estimate
        assert (back.confidence_interval() == fit.confidence_interval()).all()
        assert len(fit.to_frame()) == len(fit.quantities())
        assert 0 <= fit.noise_share[0] <= 1
        assert fit.plot() is not None
        data = fit.confidence_interval(target="data")[0]
        assert data[0] < fit.estimate < data[1]
    assert dp.unbounded_mean(session, "x", spend=dp.GDP(0.5)).guarantee.mu <= 0.5
    assert json.loads(back.to_json())["format"] == "discreet-release"


def test_a_far_cluster_is_in_the_range_or_in_the_diagnostic() -> None:
    values = np.concatenate([normal(1500), np.full(500, 1e6)])
    fit = dp.unbounded_mean(opened(values), "x", spend=dp.GDP(1))
    above = fit.quantities()[1]
    assert fit.range[1] >= 1e6 or above.high[0] >= 0.25


def test_a_truncated_mean_truncates_to_both_sides() -> None:
    values = np.array([-1000.0] * 500 + [10.0] * 500)
    fit = dp.truncated_mean(opened(values), "x", bound=20, spend=dp.GDP(5))
    assert fit.estimate == pytest.approx(-5.0, abs=0.3)
    assert "truncated to −B … B" in str(fit.summary())


def test_previews_agree_with_what_comes() -> None:
    session = opened(normal())
    believed = dp.Assumptions(mean=50, standard_deviation=3)
    for estimator in (dp.unbounded_mean, dp.location):
        forecast = dp.preview(session, estimator, "x", spend=dp.GDP(1), assume=believed)
        low, high = estimator(session, "x", spend=dp.GDP(1)).confidence_interval()[0]
        assert 0.7 < (high - low) / forecast.width < 1.5
        assert "Nothing was spent" in str(forecast)
    assert (
        dp.preview(
            session, dp.truncated_mean, "x", bound=100, spend=dp.GDP(1), assume=believed
        ).width
        > 0
    )


@pytest.mark.slow
def test_intervals_cover_on_skewed_data() -> None:
    """A smoke test of coverage with fixed noise (benchmarks/coverage_location.py has the
    figures).
    """
    rng, hits = np.random.default_rng(8), 0
    for seed in range(40):
        values = np.exp(rng.standard_normal(1000))
        low, high = dp.unbounded_mean(
            opened(values, seed=seed), "x", spend=dp.GDP(1)
        ).confidence_interval()[0]
        hits += low <= np.exp(0.5) <= high
    assert hits >= 34


def test_few_rows_far_from_one_value_are_in_the_interval():
    """All rows but 2 % hold one value: no spread shows, and no tail can be fitted. Without the
    worst case of the counted rows the interval ended at that value and covered never.
    """
    rng, covered = np.random.default_rng(8), 0
    for draw in range(12):
        x = np.where(rng.random(2000) < 0.02, 90.0, 10.0)
        schema = {"x": dp.Real(0, 100)}
        data = dp.from_arrays({"x": x}, schema=schema, neighbors=dp.Replace())
        session = seeded_session(data, dp.GDP(5), f"two values {draw}")
        result = dp.unbounded_mean(session, "x", spend=dp.GDP(2))
        quantity = result.quantities()[-1]
        covered += quantity.low[0] <= 11.6 <= quantity.high[0]
        assert quantity.high[0] > 10.001 or result.clipped()[1].rows[2] > 0
    assert covered >= 6


def test_a_data_sets_own_interval_says_what_it_does_not_hold():
    x = np.random.default_rng(9).normal(40, 3, 500)
    data = dp.from_arrays({"x": x}, schema={"x": dp.Real(0, 100)}, neighbors=dp.Replace())
    result = dp.unbounded_mean(seeded_session(data, dp.GDP(5), "own"), "x", spend=dp.GDP(2))
    assert "0.91 of 0.95" in str(result.summary(target="data"))
    assert "0.91 of 0.95" not in str(result.summary())
    assert result.summary().header[0] == "mean"
