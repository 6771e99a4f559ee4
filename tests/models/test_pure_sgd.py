"""Pure SGD: one pure debit, both relations, every engine alike; and the wrong pairings of law and
spend are refused before anything is spent.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet as dp
from discreet.testing.seeded import seeded_session
from discreet.trusted.losses.losses import loss_of

SCHEMA = {
    "x": dp.Real(-1, 1, missing=0),
    "z": dp.Real(0, 10, missing=5),
    "b": dp.Boolean(missing=False),
    "y": dp.Real(-4, 8, missing=0),
    "k": dp.Integer(0, 20, missing=0),
}
RELATIONS = [dp.Replace(), dp.AddRemove()]
SOLVER = dp.SGD(law="laplace", steps=40, batch=60)


def columns(n, seed=0):
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-1, 1, n), rng.uniform(0, 10, n)
    return {
        "x": x,
        "z": z,
        "b": rng.random(n) < 1 / (1 + np.exp(-1.5 * x)),
        "y": 1 + 2 * x + rng.normal(size=n) / 4,
        "k": rng.poisson(np.exp(0.5 + x)),
    }


def opened(data, neighbors, budget=None, seed=1):
    given = dp.from_arrays(data, schema=SCHEMA, neighbors=neighbors)
    return seeded_session(given, budget or dp.PureDP(50), seed)


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_a_pure_descent_costs_its_spend_and_nothing_else(neighbors):
    session = opened(columns(300), neighbors)
    fit = dp.logistic(session, "b ~ x + z", solver=SOLVER, spend=dp.PureDP(1))
    losses = [loss_of(release.mechanism) for release in fit.releases]
    spent = sum((loss.epsilon for loss in losses), Fraction(0))
    assert Fraction(999, 1000) <= spent <= 1
    assert not any(loss.delta or loss.mu_squared or loss.rho for loss in losses)
    assert len(losses[-1].pure) == 40
    debits = [entry.key for entry in session.ledger.entries() if entry.kind == "debit"]
    assert debits == [release.key for release in fit.releases]
    assert isinstance(fit.releases[-1].guarantee, dp.PureDP)


def test_files_and_memory_give_the_same_descent(tmp_path):
    data = columns(200)
    pd.DataFrame(data).to_parquet(tmp_path / "rows.parquet")
    file = dp.read_parquet(tmp_path / "rows.parquet", schema=SCHEMA, neighbors=dp.Replace())
    fits = [
        dp.logistic(session, "b ~ x + z", solver=SOLVER, spend=dp.PureDP(2), where={"x": (0, 1)})
        for session in (opened(data, dp.Replace()), seeded_session(file, dp.PureDP(50), 1))
    ]
    assert (fits[0].params == fits[1].params).all()


def test_a_large_spend_finds_the_coefficients():
    session = opened(columns(4000), dp.Replace(), dp.PureDP(10_000))
    solver = dp.SGD(law="laplace", steps=400, batch=800)
    fit = dp.ols(session, "y ~ x + z", solver=solver, spend=dp.PureDP(2000))
    assert np.abs(fit.params - [1, 2, 0]).max() < 0.1
    assert fit.predict([[1, 0.5, 5]])[0] == pytest.approx(2, abs=0.1)
    assert fit.trajectory.shape[1] == 3
    count = dp.poisson(session, "k ~ x", solver=solver, spend=dp.PureDP(2000))
    assert np.abs(count.params - [0.5, 1]).max() < 0.2


def test_the_summary_says_that_there_are_no_intervals_and_why():
    fit = dp.robust(opened(columns(100), dp.Replace()), "y ~ x", solver=SOLVER, spend=dp.PureDP(1))
    assert "none, because no curvature was released" in str(fit.summary())
    assert "none, because no curvature was released" in repr(fit)
    for verb in (
        lambda: fit.std_errors,
        lambda: fit.confidence_interval(),
        lambda: fit.test(["x"]),
        lambda: fit["x"],
        lambda: fit.cov,
    ):
        with pytest.raises(dp.NoTheorem, match="no curvature was released"):
            verb()
    again = dp.from_json(fit.to_json())
    assert type(again) is type(fit)
    assert (again.params == fit.params).all()
    assert again.to_json() == fit.to_json()
    assert list(fit.to_frame()["coefficient"]) == ["intercept", "x"]


@pytest.mark.parametrize(
    "options",
    [
        {"spend": dp.GDP(1)},
        {"spend": dp.ZCDP(1)},
        {"spend": dp.ApproxDP(1, 1e-6)},
        {"spend": dp.PureDP(1), "solver": dp.SGD(steps=40)},
        {"spend": dp.PureDP(1), "solver": "newton"},
        {"spend": dp.PureDP(1e-9)},
    ],
)
def test_laws_and_spends_that_do_not_match_are_refused_before_the_debit(options):
    session = opened(columns(100), dp.Replace(), dp.ApproxDP(9, 1e-5))
    entries = len(list(session.ledger.entries()))
    with pytest.raises((dp.NoTheorem, dp.InvalidParameter)):
        dp.logistic(session, "b ~ x", **({"solver": SOLVER} | options))
    assert len(list(session.ledger.entries())) == entries
    if options["spend"] == dp.PureDP(1) and options["solver"] != "newton":
        with pytest.raises(dp.NoTheorem, match="law='laplace'"):
            dp.logistic(session, "b ~ x", **options)


def test_units_previews_and_bad_solvers_are_refused():
    data = columns(60) | {"id": np.arange(60) // 2}
    relation = dp.Replace(unit="id", max_rows=2)
    session = seeded_session(
        dp.from_arrays(data, schema=SCHEMA, neighbors=relation), dp.PureDP(9), 1
    )
    with pytest.raises(dp.NoTheorem, match="units"):
        dp.logistic(session, "b ~ x", solver=SOLVER, spend=dp.PureDP(1))
    with pytest.raises(dp.InvalidParameter, match="without intervals"):
        dp.preview(session, dp.logistic, "b ~ x", solver=SOLVER, spend=dp.PureDP(1))
    for options in ({"law": "cauchy"}, {"law": 1}, {"steps": 30_000}, {"delta": 1e-8}):
        with pytest.raises(dp.InvalidParameter):
            dp.SGD(**({"law": "laplace"} | options))


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_degenerate_data_have_finite_answers_of_the_same_shape(neighbors):
    none = {name: values[:0] for name, values in columns(9).items()}
    for data in (
        *([none] if isinstance(neighbors, dp.AddRemove) else []),
        {name: values[:1] for name, values in columns(9).items()},
        {name: np.repeat(values[:1], 30) for name, values in columns(9).items()},
        columns(40) | {"b": columns(40)["x"] > 0},
    ):
        fit = dp.logistic(opened(data, neighbors), "b ~ x + z", solver=SOLVER, spend=dp.PureDP(1))
        assert np.isfinite(fit.params).all()
        assert len(fit.params) == 3
