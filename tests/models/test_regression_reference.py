"""At a huge budget a private regression is the statistician's: estimates, intervals, joint tests,
regions and mean predictions against statsmodels.
"""

from __future__ import annotations

import functools

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy import stats

import discreet as dp
from discreet.testing import seeded_session

MU = 1000
SCHEMA = {
    "x": dp.Real(-4, 4),
    "z": dp.Real(0, 10),
    "g": dp.Category(["a", "b", "c"]),
    "y": dp.Real(-20, 30),
    "w": dp.Boolean(),
    "k": dp.Integer(0, 40),
}
RIGHT = "x + z + C(g)"
# in the order intercept, x, z, g[b], g[c]
CONTRAST = np.array([[0, 0, 0, 1, -1], [0, 1, 10, 0, 0]], dtype=float)
ORDER = ["Intercept", "x", "z", "C(g)[T.b]", "C(g)[T.c]"]
ROWS = np.array([[1, 0.3, 4, 1, 0], [1, -1.0, 7, 0, 0]])


@functools.cache
def frame():
    rng = np.random.default_rng(12)
    n = 20_000
    x, z, g = (
        np.clip(rng.normal(size=n), -3, 3),
        rng.uniform(0, 10, n),
        rng.choice(["a", "b", "c"], n),
    )
    eta = 0.4 + 0.5 * x - 0.08 * z + 0.3 * (g == "b")
    return pandas.DataFrame(
        {
            "x": x,
            "z": z,
            "g": g,
            "y": 2 + 3 * eta + rng.normal(size=n),
            "w": rng.random(n) < 1 / (1 + np.exp(-eta)),
            "k": rng.poisson(np.exp(0.5 + eta)),
        }
    )


@functools.cache
def pair(name):
    """(private fit, statsmodels fit) of the same model."""
    data = frame()
    session = seeded_session(
        dp.from_frame(data, schema=SCHEMA, neighbors=dp.Replace()), dp.GDP(MU), name
    )
    if name == "moments":
        return dp.ols(session, "y ~ x + z + g", spend=dp.GDP(MU), method="moments"), smf.ols(
            f"y ~ {RIGHT}", data
        ).fit()
    if name == "logistic":
        return dp.logistic(session, "w ~ x + z + g", spend=dp.GDP(MU)), smf.glm(
            f"w ~ {RIGHT}", data.assign(w=data["w"].astype(int)), family=sm.families.Binomial()
        ).fit(cov_type="HC1")
    return dp.ols(session, "y ~ x + z + g", spend=dp.GDP(MU)), smf.ols(f"y ~ {RIGHT}", data).fit(
        cov_type="HC1"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["moments", "ols", "logistic"])
def test_estimates_errors_and_intervals(name):
    fit, usual = pair(name)
    error = usual.bse[ORDER].to_numpy()
    assert np.abs(fit.params - usual.params[ORDER].to_numpy()).max() < 0.15 * error.max()
    np.testing.assert_allclose(fit.std_errors, error, rtol=0.05)
    ends = usual.conf_int(0.1).loc[ORDER].to_numpy()
    np.testing.assert_allclose(
        fit.confidence_interval(0.9) / error[:, None], ends / error[:, None], atol=0.3
    )
    np.testing.assert_allclose(
        fit.cov / np.outer(error, error),
        usual.cov_params().loc[ORDER, ORDER].to_numpy() / np.outer(error, error),
        atol=0.08,
    )
    assert fit.noise_share.max() < 0.02
    assert fit.noise_to_signal.max() < 0.05


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["moments", "ols", "logistic"])
def test_joint_tests_of_linear_hypotheses(name):
    """(Rb − r)ᵀ(RVRᵀ)⁻¹(Rb − r), the same number as statsmodels computes from its own fit;
    names mean "all of these are 0".
    """
    fit, usual = pair(name)
    matrix = pandas.DataFrame(CONTRAST, columns=ORDER)[list(usual.params.index)].to_numpy()
    for values in (np.zeros(2), np.array([0.1, -0.2])):
        theirs = usual.wald_test((matrix, values), use_f=False, scalar=True)
        ours = fit.test(CONTRAST, values)
        assert ours.degrees == 2
        assert ours.statistic == pytest.approx(float(theirs.statistic), rel=0.06, abs=0.5)
        assert ours.p_value == pytest.approx(float(theirs.pvalue), rel=0.3, abs=0.05)
    gap, wanted = CONTRAST @ fit.params, CONTRAST @ fit.cov @ CONTRAST.T
    assert fit.test(CONTRAST).statistic == pytest.approx(
        gap @ np.linalg.solve(wanted, gap), rel=1e-9
    )
    assert fit.test(["g[b]", "g[c]"]).statistic == fit.test(np.eye(5)[3:]).statistic
    assert "2 degrees of freedom" in str(ours)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["moments", "ols", "logistic"])
def test_ellipses(name):
    """The border is where the Wald statistic of two coefficients has its quantile."""
    fit, usual = pair(name)
    border = fit.ellipse("x", "z", 0.9, points=40)
    covariance, centre = (
        usual.cov_params().loc[["x", "z"], ["x", "z"]].to_numpy(),
        usual.params[["x", "z"]].to_numpy(),
    )
    gap = border - centre
    distance = np.einsum("ij,jk,ik->i", gap, np.linalg.inv(covariance), gap)
    assert distance == pytest.approx(np.full(40, stats.chi2.ppf(0.9, 2)), rel=0.2)
    np.testing.assert_allclose(border[0], border[-1])
    assert fit.plot_ellipse("x", "z", reference=centre).axes[0].get_xlabel() == "x"
    with pytest.raises(dp.InvalidParameter, match="two numbers"):
        fit.plot_ellipse("x", "z", reference=3)
    with pytest.raises(dp.InvalidParameter, match="no coefficient"):
        fit.ellipse("x", "income")


@pytest.mark.parametrize("name", ["moments", "ols", "logistic"])
def test_mean_predictions(name):
    """The mean response with its interval, on the response's own scale."""
    fit, usual = pair(name)
    rows = pandas.DataFrame({"x": ROWS[:, 1], "z": ROWS[:, 2], "g": ["b", "a"]})
    table = usual.get_prediction(rows).summary_frame(alpha=0.05)
    theirs = table[["mean", "mean_ci_lower", "mean_ci_upper"]].to_numpy()
    width = theirs[:, 2] - theirs[:, 1]
    np.testing.assert_allclose(
        fit.predict(ROWS) / width[:, None], theirs / width[:, None], atol=0.15
    )


def test_the_condition_number_is_that_of_the_scaled_columns():
    fit, _ = pair("moments")
    data = frame()
    columns = np.column_stack(
        [np.ones(len(data)), data["x"] / 4, (data["z"] - 5) / 5, data["g"] == "b", data["g"] == "c"]
    ).astype(float)
    columns /= np.sqrt((columns**2).mean(axis=0))
    values = np.linalg.eigvalsh(columns.T @ columns / len(data))
    assert fit.condition_number == pytest.approx(values[-1] / values[0], rel=0.05)
    assert pair("ols")[0].condition_number == pytest.approx(values[-1] / values[0], rel=0.3)


def test_residual_shares_are_those_of_the_rows():
    fit, usual = pair("moments")
    session = seeded_session(
        dp.from_frame(frame(), schema=SCHEMA, neighbors=dp.Replace()), dp.GDP(MU), "residuals"
    )
    found = dp.residuals(session, fit, spend=dp.GDP(MU), bins=[-2, -1, 0, 1, 2])
    expected = np.histogram(usual.resid / np.sqrt(usual.scale), [-np.inf, -2, -1, 0, 1, 2, np.inf])[
        0
    ] / len(frame())
    assert found.quantities(0.95)[-1].estimate == pytest.approx(expected, abs=0.003)
