"""dp.trimmed_mean, through the public functions: two releases under one spend, and an interval that
covers the mean of the middle whatever the law.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.survey import RELATIONS, SPENDS, data_set, survey

import discreet as dp
from discreet.testing import seeded_session

REPETITIONS = 40
LEAST_HITS = 32  # fewer of 40 intervals that cover 0.94 each: probability 0.0005


def wide(values: Any, neighbors: Any, name: str, column: Any = None) -> dp.Session:
    """A session on one column whose declared range is a thousand times its spread."""
    schema = {"x": dp.Real(-900, 1100) if column is None else column}
    data = dp.from_arrays({"x": values}, schema=schema, neighbors=neighbors)
    return seeded_session(data, dp.GDP(500), name)


@pytest.mark.few(2)
@pytest.mark.parametrize("trim", [0.1, Fraction(1, 4), 0.4])
def test_with_next_to_no_noise_it_is_the_textbook_trimmed_mean(trim: Any) -> None:
    values = np.random.default_rng(3).lognormal(size=1000)
    found = dp.trimmed_mean(wide(values, dp.Replace(), "exact"), "x", trim=trim, spend=dp.GDP(300))
    exact = float(stats.trim_mean(values, float(trim)))
    assert found.trim == Fraction(trim).limit_denominator(100)
    # an end that is off by one row of 1000 moves the mean by at most a gap between two rows / 1000
    assert abs(found.estimate - exact) < 1e-3
    low, high = found.confidence_interval(target="data")[0]
    assert low <= exact <= high
    assert found.noise_share[0] < 0.01


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_two_releases_stay_within_the_spend_and_come_back(neighbors: Any, spend: Any) -> None:
    session = seeded_session(data_set(neighbors), dp.GDP(50), "relations")
    found = dp.trimmed_mean(session, "income", spend=spend, key="t")
    assert len(found.releases) == 2
    assert dp.trimmed_mean(session, "income", spend=spend, key="t") == found
    assert dp.from_json(found.to_json()) == found
    ends = found.confidence_interval(0.9999)[0]
    assert 0 <= ends[0] < 50 < ends[1] <= 100


@pytest.mark.parametrize("spend", [dp.GDP(0.5), dp.PureDP(0.5), dp.ZCDP(0.125)], ids=str)
def test_a_budget_of_one_spend_is_enough_for_one(spend: Any) -> None:
    session = seeded_session(data_set(), spend, "all of it")
    dp.trimmed_mean(session, "income", spend=spend)
    with pytest.raises(dp.BudgetExceeded):
        dp.trimmed_mean(session, "income", spend=spend)


def test_a_filter_leaves_rows_out_and_a_result_tells_all() -> None:
    data = survey(rows=20_000)
    session = seeded_session(data_set(data=data), dp.GDP(50), "filter")
    where = {"region": "N", "member": False}
    found = dp.trimmed_mean(session, "age", trim=0.2, where=where, spend=dp.GDP(3))
    kept = data["age"][(data["region"] == "N") & ~data["member"]]
    low, high = found.confidence_interval(0.999, target="data")[0]
    assert low <= stats.trim_mean(kept, 0.2) <= high
    assert abs(found.estimate - stats.trim_mean(kept, 0.2)) < 0.5
    told = str(found.summary())
    assert "20% are trimmed at each end" in told
    assert "Only rows where" in told
    assert found.range[0] < found.estimate < found.range[1]
    assert found.to_frame()["quantity"].tolist() == ["trimmed mean"]


@pytest.mark.parametrize("spend", [dp.GDP(0.5), dp.PureDP(4.0)], ids=str)
def test_a_forecast_is_of_the_size_of_what_comes(spend: Any) -> None:
    values = np.random.default_rng(4).standard_normal(8000)
    session = wide(values, dp.Replace(), "forecast")
    assumed = dp.Assumptions(standard_deviation=1, mean=0)
    forecast = dp.preview(session, dp.trimmed_mean, "x", spend=spend, assume=assumed)
    found = np.diff(dp.trimmed_mean(session, "x", spend=spend).confidence_interval()[0])[0]
    assert 0.5 < forecast.width / found < 2
    assert "8000 rows" in str(forecast)


def test_its_noise_does_not_grow_with_the_declared_range() -> None:
    values = np.random.default_rng(5).standard_t(3, 4000)
    session = wide(values, dp.AddRemove(), "range")
    trimmed, mean = (
        np.diff(ask(session, "x", spend=dp.GDP(0.5)).confidence_interval()[0])[0]
        for ask in (dp.trimmed_mean, dp.mean)
    )
    assert trimmed < mean / 20


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "values",
    [
        np.full(300, 7.0),
        np.zeros(0),
        np.array([3.0]),
        np.array([-900.0, 1100.0]),
        np.full(5, np.nan),
    ],
    ids=["equal", "none", "one", "two", "missing"],
)
@pytest.mark.parametrize("column", [dp.Real(-900, 1100), dp.Integer(-900, 1100)], ids=str)
def test_no_data_make_it_fail(values: Any, column: Any) -> None:
    for neighbors in (dp.Replace(), dp.AddRemove()):
        for spend in (dp.GDP(0.01), dp.PureDP(20.0)):
            found = dp.trimmed_mean(
                wide(values, neighbors, "edges", column), "x", trim=0.49, spend=spend
            )
            for target in ("population", "data"):
                low, high = found.confidence_interval(target=target)[0]
                assert -900 <= low <= high <= 1100
            assert np.isfinite(found.std_errors).all()


@pytest.mark.parametrize("trim", [0, 0.5, -0.1, 1, float("nan"), "0.1", True, None, 1e-7, 10**9])
def test_a_share_that_is_none_is_refused_before_anything_is_spent(trim: Any) -> None:
    session = seeded_session(data_set(), dp.GDP(1), "refused")
    before = session.ledger.entries()
    with pytest.raises(dp.InvalidParameter, match="trim="):
        dp.trimmed_mean(session, "income", trim=trim, spend=dp.GDP(0.1))
    for column in ("region", "member"):
        with pytest.raises(dp.WrongColumnKind):
            dp.trimmed_mean(session, column, spend=dp.GDP(0.1))
    assert session.ledger.entries() == before


def test_a_misplaced_lower_end_raises_and_an_upper_one_lowers() -> None:
    """The sign that docs/theory/trimmed.md proves, on samples with ties."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        rows, share = int(rng.integers(5, 40)), rng.uniform(0.05, 0.45)
        values = np.sort(rng.integers(0, 12, rows).astype(float))
        low, high = (np.quantile(values, p, method="inverted_cdf") for p in (share, 1 - share))

        def middle(lower: float, upper: float, x: Any = values, a: float = share) -> float:
            return float(np.clip(x, lower, upper).mean() - a * (lower + upper))

        best = middle(low, high)
        assert middle(min(low + rng.normal(), high), high) >= best - 1e-12
        assert middle(low, max(high + rng.normal(), low)) <= best + 1e-12
        # the integral of the quantile function over the middle
        edges = np.clip(np.arange(rows + 1) / rows, share, 1 - share)
        assert best == pytest.approx(values @ np.diff(edges))


def _gap(p: Any) -> Any:
    """A tenth of the rows in (−11, −10), the others in (0, 10): many lower quantiles."""
    return np.where(p <= 0.1, -11 + 10 * p, (p - 0.1) / 0.09)


def _ages(p: Any) -> Any:
    return np.clip(np.round(45 + 17 * stats.norm.ppf(p)), 18, 90)


LAWS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "lognormal": (lambda p: np.exp(stats.norm.ppf(p)), dp.Real(0, 2000)),
    "ages": (_ages, dp.Integer(18, 90)),
    "gap": (_gap, dp.Real(-20, 20)),
}


def hits(law: str, neighbors: Any) -> int:
    """How many of REPETITIONS intervals contain the target, ∫ Q over the middle."""
    quantile, column = LAWS[law]
    places = 0.1 + 0.8 * (np.arange(200_000) + 0.5) / 200_000
    target, rng = float(np.mean(quantile(places))), np.random.default_rng(7)
    found = 0
    for turn in range(REPETITIONS):
        session = wide(quantile(rng.random(2000)), neighbors, f"{law} {turn}", column)
        fit = dp.trimmed_mean(session, "x", spend=dp.GDP(0.7))
        low, high = fit.confidence_interval()[0]
        found += low <= target <= high
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "law", ["lognormal", *(pytest.param(law, marks=pytest.mark.slow) for law in ("ages", "gap"))]
)
def test_intervals_cover(law: str) -> None:
    neighbors = dp.AddRemove() if law == "gap" else dp.Replace()
    assert hits(law, neighbors) >= LEAST_HITS
