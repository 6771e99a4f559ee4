"""dp.preview of regressions: from public facts and assumptions alone,
and right for data as assumed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session

SCHEMA = {
    "x": dp.Real(-2, 2, missing=0),
    "g": dp.Category(["a", "b", "c"], missing="a"),
    "y": dp.Real(-3, 5, missing=1),
    "b": dp.Boolean(missing=False),
    "k": dp.Integer(0, 20, missing=10),
}
CASES = [
    (dp.ols, "y ~ x + g", {}),
    (dp.ols, "y ~ x + g", {"method": "moments"}),
    (dp.robust, "y ~ x + g", {}),
    (dp.robust, "y ~ x", {"c": 2.0}),
    (dp.logistic, "b ~ x + g", {}),
    (dp.poisson, "k ~ x", {}),
    (dp.m_estimate, "y ~ x", {"psi": math.tanh}),
    (dp.m_estimate, "b ~ x", {"mean": lambda eta: math.erfc(-eta / math.sqrt(2)) / 2}),
    (dp.m_estimate, "k ~ x", {"mean": lambda eta: math.log1p(math.exp(eta))}),
]
SOLVERS = {
    "gradient": dp.GradientDescent(60),
    "newton": "newton",
    "damped newton": "damped newton",
    "sgd": dp.SGD(150, batch=400, delta=1e-7),
}
BY_SOLVER = [
    (dp.ols, "y ~ x + g", {}),
    (dp.logistic, "b ~ x", {}),
    (dp.poisson, "k ~ x", {}),
    (dp.m_estimate, "y ~ x", {"psi": math.tanh}),
]


def dataset(n, neighbors=None):
    rng = np.random.default_rng(3)
    columns = {
        "x": np.clip(rng.normal(size=n), -2, 2),
        "g": rng.choice(["a", "b", "c"], n),
        "y": 1 + rng.normal(size=n),
        "b": rng.random(n) < 0.5,
        "k": rng.poisson(2, n),
    }
    return dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors or dp.Replace())


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "formula", "options"), CASES, ids=range(len(CASES)))
def test_widths_are_those_of_data_as_assumed(estimator, formula, options):
    session = seeded_session(dataset(4000), dp.GDP(9), f"{formula}{sorted(options)}")
    left = str(session.ledger)
    forecast = dp.preview(session, estimator, formula, spend=dp.GDP(1), **options)
    assert str(session.ledger) == left
    fit = estimator(session, formula, spend=dp.GDP(1), **options)
    low, high = fit.confidence_interval(0.95).T
    np.testing.assert_allclose(forecast.widths, high - low, rtol=0.25)
    assert [item.quantity for item in forecast.forecasts] == list(fit.names)
    assert forecast.noise_index == pytest.approx(fit.facts.noise_index)
    assert len(forecast.expected.releases) == len(fit.releases)
    assert "Nothing was spent" in str(forecast)
    assert forecast.how_many >= 60


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_lectures_solvers_are_forecast_too(solver, neighbors):
    """Widths, releases and price of every front end by every solver;
    the median of the ratios is near 1.
    """
    session, ratios = (
        seeded_session(dataset(4000, neighbors), dp.ApproxDP(40, 1e-4), f"{solver}/{neighbors}"),
        [],
    )
    for estimator, formula, options in BY_SOLVER:
        asked = {"spend": dp.GDP(1), "solver": SOLVERS[solver], **options}
        forecast = dp.preview(
            session, estimator, formula, assume=dp.Assumptions(rows=4000), **asked
        )
        fit = estimator(session, formula, **asked)
        low, high = fit.confidence_interval(0.95).T
        ratios += list((high - low) / forecast.widths)
        assert type(forecast.expected) is type(fit)
        assert [release.query.kind for release in forecast.expected.releases] == [
            release.query.kind for release in fit.releases
        ]
        assert ("δ₀" in forecast.price) == (solver == "sgd")
    assert 0.9 < np.median(ratios) < 1.15
    assert 0.6 < min(ratios) < max(ratios) < 1.7


@pytest.mark.slow
def test_long_descents_are_forecast_in_time():
    """A descent of 100 000 steps is imagined until it stands still."""
    session = seeded_session(dataset(4000), dp.ApproxDP(40, 1e-4), "long")
    forecast = dp.preview(
        session, dp.logistic, "b ~ x", spend=dp.GDP(1), solver=dp.SGD(20_000, batch=40, delta=1e-7)
    )
    assert np.isfinite(forecast.widths).all()
    assert forecast.expected.trajectory.shape[1] == 2


def test_assumptions_that_no_coefficients_meet_are_refused():
    session = seeded_session(dataset(100), dp.GDP(9), "mean")
    with pytest.raises(dp.InvalidParameter, match="mean function lies between"):
        dp.preview(
            session,
            dp.m_estimate,
            "k ~ x",
            spend=dp.GDP(1),
            mean=lambda eta: 2 + math.tanh(eta),
            assume=dp.Assumptions(mean=9),
        )
    assert (
        dp.preview(
            session, dp.m_estimate, "k ~ x", spend=dp.GDP(1), mean=lambda eta: 10 + math.tanh(eta)
        ).widths.min()
        > 0
    )


def test_a_public_number_of_rows_is_not_assumed():
    session = seeded_session(dataset(900), dp.GDP(9), "rows")
    plain, assumed = (
        dp.preview(session, dp.robust, "y ~ x", spend=dp.GDP(1), assume=belief)
        for belief in (None, dp.Assumptions(rows=90_000))
    )
    np.testing.assert_array_equal(plain.widths, assumed.widths)


class NoData:
    """An engine that must not be read."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        if name in ("schema", "neighbors", "public_count", "data_id", "describe", "unchanged"):
            return getattr(self._engine, name)
        raise AssertionError("data was read")


@pytest.mark.slow
def test_no_data_is_read():
    session = seeded_session(dataset(100), dp.GDP(9), "none")
    object.__setattr__(session, "_engine", NoData(session._engine))
    for estimator, formula, options in (
        *CASES,
        *(
            (*case[:2], case[2] | {"solver": solver})
            for case in BY_SOLVER
            for solver in SOLVERS.values()
        ),
    ):
        assert dp.preview(session, estimator, formula, spend=dp.GDP(1), **options).widths.min() > 0
    with pytest.raises(dp.ReleaseFailed):
        dp.ols(session, "y ~ x", spend=dp.GDP(1))


@pytest.mark.slow
def test_assumptions_matter():
    session = seeded_session(dataset(100, dp.AddRemove()), dp.GDP(9), "assume")
    with pytest.raises(dp.InvalidParameter, match="number of rows is private"):
        dp.preview(session, dp.ols, "y ~ x", spend=dp.GDP(1))

    def width(estimator, formula, **beliefs):
        options = {"where": {"b": True}} if estimator is dp.ols else {}
        return dp.preview(
            session,
            estimator,
            formula,
            spend=dp.GDP(1),
            assume=dp.Assumptions(**beliefs),
            **options,
        ).widths[-1]

    assert width(dp.ols, "y ~ x", rows=40_000) == pytest.approx(
        width(dp.ols, "y ~ x", rows=10_000) / 2, rel=0.1
    )
    assert width(dp.ols, "y ~ x", rows=40_000, standard_deviation=0.5) == pytest.approx(
        width(dp.ols, "y ~ x", rows=40_000, standard_deviation=1) / 2, rel=0.1
    )
    assert width(dp.logistic, "b ~ x", rows=40_000, share=0.02) > 2 * width(
        dp.logistic, "b ~ x", rows=40_000
    )
    assert width(dp.poisson, "k ~ x", rows=40_000, mean=8) < 0.7 * width(
        dp.poisson, "k ~ x", rows=40_000, mean=2
    )


def test_noise_dominated_fits_are_announced():
    session = seeded_session(dataset(60), dp.GDP(9), "few")
    forecast = dp.preview(session, dp.robust, "y ~ x + g", spend=dp.GDP(0.2))
    assert forecast.noise_class == "not resolvable at this budget"
    assert np.isfinite(forecast.widths).all()


def test_bad_requests_are_refused():
    session = seeded_session(dataset(60), dp.GDP(9), "bad")
    for options in (
        {"solver": "adam"},
        {"solver": "newton", "method": "moments"},
        {"solver": "sgd"},
        {"method": "magic"},
        {"nonsense": 1},
        {"c": 2.0},
    ):
        with pytest.raises(dp.InvalidParameter):
            dp.preview(session, dp.ols, "y ~ x", spend=dp.GDP(1), **options)
    with pytest.raises(dp.NoTheorem):
        dp.preview(session, dp.ols, "y ~ x", spend=dp.PureDP(1))
    with pytest.raises(dp.InvalidParameter, match="not an estimator"):
        dp.preview(session, print, "y ~ x", spend=dp.GDP(1))
