"""Planning: the missing number is found, meets the target, and barely."""

import math

import pytest

import discreet as dp
from discreet.accounting.plan import plan, rows_needed, steps_pld


def test_sigma_for_unsampled_steps_is_the_analytic_gaussian():
    found = plan(epsilon=1, delta=1e-5, steps=100)
    # ten times the single-step analytic σ
    assert found.sigma == pytest.approx(37.306316348159414, rel=1e-4)
    assert found.pld.delta_at(1.0) <= 1e-5


@pytest.mark.slow
def test_steps_and_rate_meet_the_target_barely():
    found = plan(epsilon=2, delta=1e-5, sigma=1.0, sampling_rate=0.01)
    assert found.pld.delta_at(2.0) <= 1e-5
    assert steps_pld(1.0, found.steps + 1, 0.01).delta_at(2.0) > 1e-5
    rate = plan(epsilon=2, delta=1e-5, sigma=1.0, steps=1000, sampling_rate=None)
    assert rate.pld.delta_at(2.0) <= 1e-5
    assert steps_pld(1.0, 1000, rate.sampling_rate * 1.001).delta_at(2.0) > 1e-5
    assert "1000 gaussian steps" in str(rate)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"sigma": 1, "steps": 10},
        {"sigma": None},
        {"sigma": 0, "steps": None},
        {"sigma": -1, "sampling_rate": 0.1},
        {"steps": 0},
        {"steps": 10, "sampling_rate": 2},
    ],
)
def test_bad_plans_are_refused(bad):
    with pytest.raises(dp.DiscreetError):
        plan(**({"epsilon": 1, "delta": 1e-5} | bad))
    with pytest.raises(dp.DiscreetError):
        plan(epsilon=math.nan, delta=1e-5, steps=10)


def test_impossible_targets_are_said_so():
    with pytest.raises(dp.InvalidParameter, match="not even one step"):
        plan(epsilon=0.01, delta=1e-9, sigma=0.5)


def test_rows_needed_matches_a_preview():
    """The width that preview expects at the planned n is the width asked for."""
    for spend in (dp.GDP(0.2), dp.GDP(1), dp.PureDP(0.5)):
        n = rows_needed(spend, width=2.0, standard_deviation=10, low=0, high=100)
        data = dp.from_arrays(
            {"x": [50.0] * n}, schema={"x": dp.Real(0, 100)}, neighbors=dp.Replace()
        )
        forecast = dp.preview(
            data.open(budget=dp.GDP(5)),
            dp.mean,
            "x",
            spend=spend,
            assume=dp.Assumptions(standard_deviation=10),
        )
        assert forecast.width == pytest.approx(2.0, rel=0.06)


@pytest.mark.slow
def test_other_noises_and_accountants():
    laplace = plan(epsilon=1, delta=1e-6, steps=10, noise="laplace")
    assert laplace.pld.delta_at(1.0) <= 1e-6
    assert steps_pld(laplace.sigma * 0.999, 10, noise="laplace").delta_at(1.0) > 1e-6
    assert laplace.sigma <= 10  # basic composition needs b = 10
    tight, renyi = (
        plan(epsilon=2, delta=1e-5, steps=1000, sampling_rate=0.01, accountant=name)
        for name in ("pld", "rdp")
    )
    assert renyi.pld.delta_at(2.0) <= 1e-5
    assert 1.01 < renyi.sigma / tight.sigma < 1.15
    with pytest.raises(dp.InvalidParameter, match="accountant"):
        plan(epsilon=1, delta=1e-6, steps=10, noise="laplace", accountant="rdp")
    with pytest.raises(dp.InvalidParameter, match="noise"):
        plan(epsilon=1, delta=1e-6, steps=10, noise="cauchy")
