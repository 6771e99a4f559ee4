"""A regression's result: coefficients on the user's scale, tests, regions, predictions, JSON,
pictures.
"""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from regression_data import SCHEMA, columns_of, model_of, sample, session_of
from scipy import stats

import discreet as dp
from discreet.inference.regression.curvature import normal_draws, shrunk, symmetric_draws
from discreet.inference.regression.metric import after_round, first_state, inverse_root, safe_moment
from discreet.inference.regression.new_rows import new_rows
from discreet.inference.regression.scale import user_map
from discreet.models.fit import fit_regression


def fitted(family="robust", seed=1, n=800, **options):
    return fit_regression(
        session_of(sample(n, seed), seed), model_of(family, **options), family, spend=dp.GDP(1.0)
    )


TERMS = ("1", "x", "z", "x:z", "d[b]", "z:d[b]")


def test_the_users_scale_is_what_a_fit_of_rescaled_data_gives():
    """The same rows declared in other units give the same integers, so coefficients must map
    exactly, interactions and intercept included.
    """
    data = sample(500, 7)
    here = fit_regression(session_of(data, 7), model_of(terms=TERMS), "robust", spend=dp.GDP(1.0))
    scaled = SCHEMA | {"x": dp.Real(-1, 1), "z": dp.Real(-1, 1), "y": dp.Real(-1, 1)}
    moved = data | {"x": data["x"] / 4, "z": (data["z"] - 5) / 5, "y": data["y"] / 20}
    there = fit_regression(
        session_of(moved, 7, schema=scaled),
        model_of(terms=TERMS, schema=scaled),
        "robust",
        spend=dp.GDP(1.0),
    )
    rng = np.random.default_rng(1)
    x, z, b = rng.uniform(-4, 4, 40), rng.uniform(0, 10, 40), rng.integers(0, 2, 40)
    rows = np.stack([np.ones(40), x, z, x * z, b, z * b], axis=1)
    u, v = x / 4, (z - 5) / 5
    others = np.stack([np.ones(40), u, v, u * v, b, v * b], axis=1)
    # one grid step of rounding in the codes
    np.testing.assert_allclose(here.predict(rows), 20 * there.predict(others), rtol=2e-3, atol=2e-3)
    assert here.names == ("intercept", "x", "z", "x:z", "d[b]", "z:d[b]")


def test_user_maps_are_exact_and_centred_columns_say_so():
    columns = columns_of(SCHEMA, TERMS)
    names, matrix = user_map(columns)
    rng = np.random.default_rng(2)
    x, z, b, beta = 2.5, 7.0, 1.0, rng.normal(size=6)
    scaled = np.array([1, x / 4, (z - 5) / 5, x / 4 * (z - 5) / 5, b, (z - 5) / 5 * b])
    own = np.array([1, x, z, x * z, b, z * b])
    assert own @ (matrix @ beta) == pytest.approx(scaled @ beta, rel=1e-12)
    assert names == tuple(column.name for column in columns)
    # no intercept, no x: only divided by the half-ranges
    names, matrix = user_map(columns_of(SCHEMA, ("z", "x:z")))
    assert names == ("z (centred)", "x:z (centred)")
    np.testing.assert_allclose(matrix, np.diag([1 / 5, 1 / 20]))


@pytest.mark.few(2)
@pytest.mark.parametrize("family", ["robust", "ols", "logistic", "poisson"])
def test_json_summary_and_frames(family):
    fit = fitted(family, seed=3)
    again = dp.from_json(fit.to_json())
    assert again == fit
    np.testing.assert_array_equal(again.confidence_interval(), fit.confidence_interval())
    text = str(fit.summary())
    for word in (
        "coef",
        "std err",
        "sampling",
        "privacy",
        "noise %",
        "noise index",
        "condition number",
        "μ = 1",
        "800 rows (public)",
        "NOT PRIVATE",
        *fit.names,
    ):
        assert word in text
    assert "<table" in fit._repr_html_()
    frame = fit.to_frame()
    assert list(frame["coefficient"]) == list(fit.names)
    np.testing.assert_allclose(
        frame["std_error"] ** 2, frame["sampling_error"] ** 2 + frame["privacy_error"] ** 2
    )
    np.testing.assert_allclose(np.sqrt(np.diag(fit.cov)), fit.std_errors)
    assert set(fit.resolved) == set(fit.names)
    assert fit.noise_class == "normal"
    assert fit.converged


def test_intervals_tests_and_regions_agree():
    fit = fitted(seed=4)
    low, high = fit.confidence_interval(0.95).T
    for place, name in enumerate(fit.names):
        test = fit.test([name], fit.params[place] - 2.5 * fit.std_errors[place])
        assert test.degrees == 1
        assert test.statistic == pytest.approx(6.25, rel=1e-6)
        assert stats.chi2.sf(6.25, 1) <= test.p_value + 1e-15
        # the released standard error is itself uncertain
        assert test.p_value < 2 * stats.chi2.sf(6.25, 1)
    rejected = fit.p_values < 0.05
    np.testing.assert_array_equal(rejected, (low > 0) | (high < 0))
    joint = fit.test(np.eye(4)[1:], fit.params[1:])
    assert joint.statistic == pytest.approx(0, abs=1e-9)
    assert joint.p_value == pytest.approx(1.0)
    assert fit.test(["x", "z"]).p_value < 1e-6
    border = fit.ellipse("x", "z", 0.9)
    gap = border - fit.params[1:3]
    inside = np.einsum("ij,jk,ik->i", gap, np.linalg.inv(fit.cov[1:3, 1:3]), gap)
    np.testing.assert_allclose(inside, inside[0], rtol=1e-6)
    assert inside[0] >= stats.chi2.ppf(0.9, 2) - 1e-6
    assert np.all(fit.confidence_interval(0.99)[:, 1] > high)
    assert np.all(fit.confidence_interval(target="data")[:, 1] < high)
    for wrong in (
        lambda: fit.test(["income"]),
        lambda: fit.test(np.eye(3)),
        lambda: fit.predict([[1.0, 2.0]]),
        lambda: fit.confidence_interval(2.0),
        lambda: fit.confidence_interval(target="me"),
    ):
        with pytest.raises(dp.InvalidParameter):
            wrong()


def test_predictions_are_on_the_responses_scale():
    for family, low, high in (("logistic", 0.0, 1.0), ("poisson", 0.0, np.inf)):
        fit = fitted(family, seed=5)
        estimate, bottom, top = fit.predict([[1.0, 0.3, 4.0, 1.0]])[0]
        assert low < bottom < estimate < top < high
    fit = fitted(seed=5)
    estimate, bottom, top = fit.predict([[1.0, 0.3, 4.0, 1.0]])[0]
    assert estimate == pytest.approx(np.array([1.0, 0.3, 4.0, 1.0]) @ fit.params)
    assert abs(estimate - 2 * (0.5 + 0.3 + 0.1 + 0.5)) < 1.5
    assert top - estimate == pytest.approx(estimate - bottom)


@pytest.mark.slow
def test_pictures_and_trajectories(tmp_path):
    fit = fitted(seed=6)
    assert fit.trajectory.shape == (2 + 3 + 1, 4)
    np.testing.assert_array_equal(fit.trajectory[-1], fit.params)
    fit.plot(
        path=tmp_path / "a.png",
        reference=np.stack([fit.params, fit.params - 1, fit.params + 1], axis=1),
    )
    fit.plot_trajectory(path=tmp_path / "b.png")
    assert (tmp_path / "a.png").stat().st_size > 1000
    assert (tmp_path / "b.png").stat().st_size > 1000


def test_shrinkage_keeps_what_stands_out_and_removes_noise():
    noise = 0.2 * symmetric_draws(6, "test")[0]
    plain = shrunk(np.eye(6) * 0.8 + noise, 0.2, largest=1.0, curvature=True)
    assert np.abs(plain.matrix - 0.8 * np.eye(6)).max() < np.abs(noise).max()
    spiked = np.eye(6) * 0.8
    spiked[2, 2] = 5.0
    assert shrunk(spiked + noise, 0.2, largest=1.0, curvature=True).matrix[2, 2] > 4.0
    assert np.linalg.eigvalsh(shrunk(-np.eye(6), 0.2, largest=1.0, curvature=True).matrix).min() > 0
    draws = normal_draws("a name", 20_000)
    assert stats.kstest(draws, "norm").pvalue > 1e-9
    np.testing.assert_array_equal(draws[:5], normal_draws("a name", 5))
    assert stats.kstest(draws * 1.05, "norm").pvalue < 1e-3
    assert symmetric_draws(6, "test").shape == (200, 6, 6)


def test_the_metric_whitens_and_stays_within_its_limits():
    rng = np.random.default_rng(9)
    root = rng.normal(size=(3, 3)) * 0.2
    truth = root @ root.T + 0.01 * np.eye(3)
    state = first_state(3)
    for _ in range(4):
        state = after_round(state, state.root @ truth @ state.root.T, 1e-6, np.zeros(3))
    np.testing.assert_allclose(state.root @ truth @ state.root.T, np.eye(3), atol=0.05)
    assert state.resolved.all()
    assert np.linalg.eigvalsh(safe_moment(-np.eye(3), 0.1)).min() > 0
    for extreme in (1e30 * np.eye(3), -1e30 * np.eye(3), np.zeros((3, 3)), np.full((3, 3), 1e15)):
        state = first_state(3)
        for noise in (1e12, 1e-12, 1e6):
            state = after_round(state, extreme, noise, np.array([0.1, 0.0, 0.0]))
            assert np.isfinite(inverse_root(state.moment)).all()
            assert np.diag(state.moment).max() <= 1 + 1e-9


def test_predictions_read_columns_by_their_names_whatever_their_order():
    names = ("intercept", "age", "region[N]", "age:region[N]")
    rows = new_rows([[1, 30, 1, 30], [1, 40, 0, 0]], names)
    columns = {"region[N]": [1, 0], "age": [30, 40]}
    for given in (
        columns,
        pandas.DataFrame(columns),
        polars.DataFrame(columns),
        pyarrow.table(columns),
        pandas.DataFrame({"income": ["?", "?"], "age:region[N]": [30, 0], **columns}),
    ):
        np.testing.assert_array_equal(new_rows(given, names), rows)
    np.testing.assert_array_equal(new_rows({"age": 30, "region[N]": 1}, names), rows[:1])
    np.testing.assert_array_equal(new_rows({"age": [30, 30], "region[N]": 1}, names)[1:], rows[:1])
    by_level = new_rows({"age": [30, 40], "region": ["N", "S"]}, names, {"region": "S"})
    np.testing.assert_array_equal(by_level, rows)
    with pytest.raises(dp.InvalidParameter, match=r"'E' is none of its levels \(N, S\)"):
        new_rows({"age": 30, "region": "E"}, names, {"region": "S"})
    transformed = new_rows({"x": [2.0, 4.0]}, ("square(x)", "log(x)"))
    np.testing.assert_array_equal(transformed, [[4, np.log(2)], [16, np.log(4)]])
    for wrong in (
        {"age": 30, "region": "S"},
        {"age": "old", "region[N]": 1},
        {"age": [1, 2, 3], "region[N]": [1, 0]},
        pandas.DataFrame({"Intercept": [1.0], "b": [2.0], "c": [0.0], "d": [1.0]}),
        {},
    ):
        with pytest.raises(dp.InvalidParameter, match=r"predict\(\{'age': \[30\]"):
            new_rows(wrong, names)
