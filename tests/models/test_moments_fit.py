"""dp.ols(method="moments"): least squares from one release."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import discreet as dp
from discreet.models.moments import largest_square, moments_query
from discreet.models.regression import asked_model
from discreet.schema import Schema
from discreet.specs.estimating.components import UNIT
from discreet.specs.estimating.metric import WEIGHT_BITS
from discreet.testing import seeded_session
from discreet.trusted.extensions.estimating.kernels import row_weights
from discreet.trusted.extensions.estimating.reading import read_rows
from discreet.trusted.extensions.estimating.rows import ModelRows

SCHEMA = {
    "x": dp.Real(-2, 2, missing=0),
    "w": dp.Real(0, 4, missing=2),
    "g": dp.Category(["a", "b", "c"], missing="a"),
    "y": dp.Real(-6, 8, missing=1),
    "b": dp.Boolean(),
}


def columns_of(n, seed=0):
    rng = np.random.default_rng(seed)
    x, w, g = (
        np.clip(rng.normal(size=n), -2, 2),
        np.clip(2 + rng.normal(size=n), 0, 4),
        rng.integers(0, 3, n),
    )
    return {
        "x": x,
        "w": w,
        "g": np.array(["a", "b", "c"])[g],
        "y": 1 + x - 0.5 * w + 0.3 * (g == 1) + rng.normal(size=n),
        "b": rng.random(n) < 0.5,
    }


def session_of(n, *, seed="moments", neighbors=None, mu=40.0, draw=0):
    return seeded_session(
        dp.from_arrays(columns_of(n, draw), schema=SCHEMA, neighbors=neighbors or dp.Replace()),
        dp.GDP(mu),
        seed,
    )


def test_every_weight_is_one():
    """At every corner of the box, with one level of a category at a time and all splines:
    the radius costs no row any weight.
    """
    schema = Schema(SCHEMA)
    for formula in (
        "y ~ x + w + g",
        "y ~ x * g",
        'y ~ C(g, "sum") + square(w)',
        "y ~ bs(x, knots=(0,)) + g - 1",
    ):
        model = asked_model(schema, formula, "ols")[0]
        query, _ = moments_query(model, optional=False)
        corners = [
            {"x": x, "w": w, "g": g, "y": y}
            for x in (-2.0, 0.1, 2.0)
            for w in (0.0, 4.0)
            for g in ("a", "b", "c", "?")
            for y in (-6.0, 8.0)
        ]
        engine = dp.from_arrays(
            {name: [row[name] for row in corners] for name in ("x", "w", "g", "y")},
            schema={name: SCHEMA[name] for name in ("x", "w", "g", "y")},
            neighbors=dp.Replace(),
        )._engine
        rows = ModelRows(partial(read_rows, engine))
        matrix = rows._data(query.model, None).matrix
        assert (row_weights(matrix, query.metric) == 1 << WEIGHT_BITS).all()
        largest = ((matrix.astype(float) / UNIT) ** 2).sum(axis=1).max()
        assert largest <= largest_square(query.model.columns) * 1.0005


def test_nearly_without_noise_it_is_least_squares():
    n = 4000
    columns, session = columns_of(n), session_of(n, mu=900)
    fit = dp.ols(session, "y ~ x + w + g", spend=dp.GDP(800), method="moments")
    design = np.column_stack(
        [np.ones(n), columns["x"], columns["w"], columns["g"] == "b", columns["g"] == "c"]
    )
    beta, rest = np.linalg.lstsq(design, columns["y"], rcond=None)[:2]
    np.testing.assert_allclose(fit.params, beta, atol=2e-3)
    errors = np.sqrt(rest[0] / (n - 5) * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(fit.std_errors, errors, rtol=0.02)
    assert fit.scale == pytest.approx(np.sqrt(rest[0] / (n - 5)), rel=0.01)
    assert len(fit.releases) == 1


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_intervals_cover(neighbors):
    """Sampling and privacy error together, where privacy is most of it;
    limits with a false-alarm probability below 1e-9.
    """
    # the level left out adds 0.1 to the intercept
    truth, inside, data_inside, runs = np.array([1.1, 1.0, -0.5]), 0, 0, 80
    for run in range(runs):
        session = session_of(2000, seed=f"cover/{run}", neighbors=neighbors, draw=run)
        columns = columns_of(2000, run)
        fit = dp.ols(session, "y ~ x + w", spend=dp.GDP(1), method="moments")
        low, high = fit.confidence_interval(0.95).T
        design = np.column_stack([np.ones(2000), columns["x"], columns["w"]])
        beta = np.linalg.lstsq(design, columns["y"], rcond=None)[0]
        inside += ((low <= truth) & (truth <= high)).sum()
        low, high = fit.confidence_interval(0.95, target="data").T
        data_inside += ((low <= beta) & (beta <= high)).sum()
    spread = 6.2 * np.sqrt(0.95 * 0.05 * 3 * runs * 2)  # coefficients of one fit are correlated
    assert 0.95 * 3 * runs - spread < inside
    assert 0.95 * 3 * runs - spread < data_inside
    assert inside < 3 * runs  # not absurdly wide


def test_verbs_and_round_trip():
    session = session_of(3000, neighbors=dp.AddRemove())
    fit = dp.ols(
        session, "y ~ x + w", spend=dp.GDP(5), method="moments", where={"b": True}, key="wages"
    )
    assert [str(release.description.step) for release in fit.releases] == ["count 1", "moments 1"]
    assert "homoskedastic" in str(fit.summary())
    assert "least squares (moments)" in str(fit)
    again = dp.from_json(fit.to_json())
    assert type(again) is type(fit)
    assert np.array_equal(again.confidence_interval(), fit.confidence_interval())
    assert fit.test(["x", "w"]).p_value < 1e-3
    assert fit.predict([[1, 0, 2]]).shape == (1, 3)
    assert fit.ellipse("x", "w").shape == (100, 2)
    assert fit.trajectory.shape == (1, 3)
    assert set(fit.resolved) == {"intercept", "x", "w"}
    assert fit.condition_number > 1
    assert fit.to_frame().shape[0] == 3
    assert len(fit.plot().axes) == 2  # the intercept has an axis of its own
    same = dp.ols(
        session, "y ~ x + w", spend=dp.GDP(5), method="moments", where={"b": True}, key="wages"
    )
    assert np.array_equal(same.params, fit.params)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_hopeless_data_get_wide_intervals(n):
    columns = {name: column[:n] for name, column in columns_of(5).items()} | {"x": np.zeros(n)}
    session = seeded_session(
        dp.from_arrays(columns, schema=SCHEMA, neighbors=dp.Replace()), dp.GDP(4), n
    )
    fit = dp.ols(session, "y ~ x + w + g", spend=dp.GDP(1), method="moments")
    assert np.isfinite(fit.confidence_interval()).all()
    assert "NOT RESOLVED" in str(fit.summary())


def test_bad_requests_are_refused_before_spending():
    session = session_of(10)
    left = str(session.ledger)
    for options in ({"method": "magic"}, {"method": "moments", "solver": "newton"}):
        with pytest.raises(dp.InvalidParameter, match="method="):
            dp.ols(session, "y ~ x", spend=dp.GDP(1), **options)
    with pytest.raises(dp.NoTheorem):
        dp.ols(session, "y ~ x", spend=dp.PureDP(1), method="moments")
    with pytest.raises(dp.InvalidParameter, match="yes/no"):
        dp.ols(session, "b ~ x", spend=dp.GDP(1), method="moments")
    assert str(session.ledger) == left
