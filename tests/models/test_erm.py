"""dp.erm and dp.logistic(method=): one perturbed minimiser under one spend."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.errors import DiscreetError
from discreet.testing.seeded import seeded_session

SCHEMA = {
    "a": dp.Real(-4, 4),
    "c": dp.Category(["N", "S", "W"]),
    "y": dp.Boolean(),
    "v": dp.Real(-10, 10),
}
TRUTH = np.array([0.5, 1.0, -0.8, 0.4])


def frame_of(n=3000, seed=1):
    rng = np.random.default_rng(seed)
    a, c = np.clip(rng.normal(size=n), -4, 4), rng.integers(0, 3, n)
    eta = TRUTH[0] + TRUTH[1] * a + TRUTH[2] * (c == 1) + TRUTH[3] * (c == 2)
    return pandas.DataFrame(
        {
            "a": a,
            "c": np.array(["N", "S", "W"])[c],
            "y": rng.random(n) < 1 / (1 + np.exp(-eta)),
            "v": eta + rng.normal(size=n),
        }
    )


def session_of(frame, neighbors=None, budget=None, seed="erm"):
    data = dp.from_arrays(
        {name: frame[name].to_numpy() for name in frame},
        schema=SCHEMA,
        neighbors=neighbors or dp.Replace(),
    )
    return seeded_session(data, budget or dp.GDP(50), seed)


@pytest.mark.slow
def test_coefficients_are_near_the_truth_and_intervals_hold_them():
    session = session_of(frame_of())
    for fit in (
        dp.logistic(session, "y ~ a + c", method="objective", spend=dp.GDP(1)),
        dp.erm(session, "v ~ a + c", loss="huber", spend=dp.GDP(1)),
    ):
        low, high = fit.confidence_interval(0.999).T
        assert np.all((low < TRUTH) & (high > TRUTH))
        assert np.all(fit.std_errors < 0.2)
        assert fit.converged
        assert dp.from_json(fit.to_json()).params == pytest.approx(np.asarray(fit.params))


@pytest.mark.slow
def test_every_release_is_in_the_ledger_within_the_spend():
    session = session_of(frame_of(400), budget=dp.GDP(1))
    fit = dp.erm(session, "y ~ a", spend=dp.GDP(1))
    steps = [str(release.description.step) for release in fit.releases]
    assert steps[-4:] == ["minimiser 1", "curvature 1", "curvature 2", "scores 1"]
    with pytest.raises(DiscreetError):
        dp.count(session, spend=dp.GDP(0.1))


@pytest.mark.few(2)
@pytest.mark.parametrize("loss", ["logistic", "huber-hinge"])
@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.parametrize("relation", [dp.Replace(), dp.AddRemove()], ids=["replace", "add"])
def test_a_pure_fit_has_coefficients_and_says_why_no_intervals(loss, method, relation):
    frame = frame_of()
    session = session_of(frame, relation, dp.PureDP(5), seed=f"{loss} {method}")
    fit = dp.erm(session, "y ~ a + c", loss=loss, method=method, spend=dp.PureDP(1))
    assert len(fit.releases) == 1
    assert not fit.has_intervals
    assert "none, because no curvature was released" in str(fit.summary())
    assert float(fit.params[1]) > 0.1
    with pytest.raises(dp.NoTheorem):
        fit.confidence_interval()
    assert fit.predict(frame.head(7)).shape == (7,)
    again = dp.from_json(fit.to_json())
    assert np.array_equal(again.params, fit.params)


@pytest.mark.slow
def test_a_frame_is_read_as_the_formula_reads_it():
    frame = frame_of()
    fit = dp.erm(session_of(frame), "y ~ a + c", spend=dp.GDP(1))
    by_hand = fit.predict([[1, 0.5, 1, 0]])
    by_frame = fit.predict(pandas.DataFrame({"a": [0.5], "c": ["S"]}))
    assert by_frame == pytest.approx(by_hand, rel=1e-3)
    assert fit.predict({"a": [0.5, 1], "c": ["S", "N"]}).shape == (2, 3)
    with pytest.raises(dp.InvalidParameter):
        fit.predict(pandas.DataFrame({"a": [0.5]}))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 3, 40])
@pytest.mark.parametrize("kind", ["alike", "one class", "separated"])
def test_degenerate_data_have_a_finite_answer_of_the_same_shape(rows, kind):
    frame = frame_of(rows)
    if kind == "alike":
        frame["a"], frame["c"], frame["y"] = 1.0, "N", True
    elif kind == "one class":
        frame["y"] = True
    else:
        frame["y"] = frame["a"] > 0
    for spend, loss in ((dp.PureDP(1), "huber-hinge"), (dp.PureDP(1), "logistic")):
        session = session_of(frame, dp.AddRemove(), dp.PureDP(9))
        fit = dp.erm(session, "y ~ a + c", loss=loss, spend=spend)
        assert np.isfinite(fit.params).all()
    fit = dp.erm(session_of(frame, dp.AddRemove()), "y ~ a + c", spend=dp.GDP(1))
    assert np.isfinite(fit.confidence_interval()).all()


@pytest.mark.parametrize(
    "options",
    [
        {"penalty": 0},
        {"penalty": -1.0},
        {"penalty": math.inf},
        {"penalty": math.nan},
        {"penalty": True},
        {"penalty": "much"},
        {"penalty": 0.1},
        {"loss": "hinge"},
        {"loss": "huber"},
        {"method": "both"},
        {"loss": "mean", "mean": lambda eta: -eta},
        {"loss": "logistic", "mean": math.tanh},
    ],
)
def test_bad_questions_are_refused_before_the_debit(options):
    session = session_of(frame_of(50))
    before = session.ledger.entries()
    with pytest.raises(DiscreetError):
        dp.erm(session, "y ~ a", spend=dp.GDP(1), **options)
    assert session.ledger.entries() == before


def test_a_penalty_is_total_and_pulls_in():
    session = session_of(frame_of(), budget=dp.PureDP(90))
    sizes = [
        float(np.abs(dp.erm(session, "y ~ a", penalty=one, spend=dp.PureDP(8)).params[1]))
        for one in (20, 2000, 200_000)
    ]
    assert sizes[0] > 1.3 * sizes[1] > 10 * sizes[2]


@pytest.mark.slow
def test_functions_of_ones_own_get_the_theorem():
    session = session_of(frame_of())
    fit = dp.erm(session, "v ~ a", loss="psi", psi=math.tanh, spend=dp.GDP(1))
    assert abs(float(fit.params[1]) - 1) < 0.2
    probit = dp.erm(
        session, "y ~ a", loss="mean", mean=lambda eta: (1 + math.erf(eta)) / 2, spend=dp.GDP(1)
    )
    assert probit.has_intervals


@pytest.mark.slow
def test_previews_forecast_the_widths():
    frame = frame_of()
    session = session_of(frame)
    told = dp.preview(session, dp.erm, "y ~ a", loss="logistic", spend=dp.GDP(0.5))
    fit = dp.erm(session, "y ~ a", spend=dp.GDP(0.5))
    widths = np.diff(fit.confidence_interval(), axis=1)[:, 0]
    assert np.all(np.abs(np.log(told.widths / widths)) < 1.2)  # its columns are wider than these
    same = dp.preview(session, dp.logistic, "y ~ a", method="objective", spend=dp.GDP(0.5))
    assert same.widths == pytest.approx(told.widths)
    for options in ({"spend": dp.PureDP(1)}, {"spend": dp.GDP(1), "loss": "huber-hinge"}):
        with pytest.raises(dp.InvalidParameter):
            dp.preview(session, dp.erm, "y ~ a", **options)


def test_classifiers_of_scikit_learn_take_pure_spends():
    sklearn = pytest.importorskip("discreet.sklearn")
    frame = frame_of()
    rows, labels = frame[["a"]].to_numpy(), frame["y"].to_numpy().astype(int)
    options = {"neighbors": dp.AddRemove(), "bounds": [(-4, 4)]}
    for made in (
        sklearn.PrivateLogisticRegression(dp.PureDP(2), method="objective", **options),
        sklearn.PrivateLinearSVC(dp.PureDP(2), **options),
    ):
        fitted = made.fit(rows, labels)
        assert (fitted.predict(rows) == labels).mean() > 0.65
        assert fitted.get_params()["method"] == "objective"
    assert not hasattr(fitted, "predict_proba")


@pytest.mark.few(3)
@pytest.mark.parametrize("method", ["objective", "output"])
@pytest.mark.parametrize("spend", [dp.PureDP(0.1), dp.GDP(0.1)], ids=str)
@pytest.mark.parametrize("penalty", [1e-300, 1e-6, 2.0])
def test_a_penalty_is_refused_before_the_debit_or_not_at_all(method, spend, penalty):
    """Huber's scale is learnt with a Gaussian spend: what it makes of a penalty is known only after
    the metric was paid.
    """
    rng = np.random.default_rng(3)
    data = {"a": rng.uniform(-1, 1, 100), "v": rng.uniform(-1, 1, 100), "y": rng.random(100) < 0.5}
    schema = {"a": dp.Real(-1, 1, missing=0), "v": dp.Real(-1, 1, missing=0)}
    schema["y"] = dp.Boolean(missing=False)
    opened = dp.from_arrays(data, schema=schema, neighbors=dp.Replace())
    for loss, response in (("huber", "v"), ("logistic", "y")):
        session = seeded_session(opened, dp.Ledger.open(dp.ApproxDP(5, 1e-4), pure=2), 1)
        told = ""
        try:
            dp.erm(
                session, f"{response} ~ a", loss=loss, method=method, penalty=penalty, spend=spend
            )
        except dp.InvalidParameter as refusal:
            told = str(refusal)
        assert not told or "penalty=" in told
        assert bool(told) == (len(list(session.ledger.entries())) == 1)  # the opening alone


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("spend", [dp.GDP(0.05), dp.GDP(20), dp.PureDP(0.1)], ids=str)
@pytest.mark.parametrize("columns", [2, 4])
def test_penalties_run_wherever_a_row_bends_less_than_they_do(columns, spend, neighbors):
    """Refused where κ > 1 alone; else run, and a penalty that acts as a larger one is told."""
    names = [f"x{place}" for place in range(columns - 1)]
    rng = np.random.default_rng(4)
    data = {name: rng.uniform(-1, 1, 60) for name in names} | {"y": rng.random(60) < 0.5}
    schema = {name: dp.Real(-1, 1, missing=0) for name in names} | {"y": dp.Boolean(missing=False)}
    opened = dp.from_arrays(data, schema=schema, neighbors=neighbors)
    pure = isinstance(spend, dp.PureDP)
    least = (1 + (columns - 1) / 3 if pure else columns + math.sqrt(columns)) / 4
    formula = f"y ~ {' + '.join(names)}"
    session = seeded_session(opened, dp.Ledger.open(dp.ApproxDP(900, 1e-3), pure=2), 1)
    with pytest.raises(dp.InvalidParameter, match="use at least"):
        dp.erm(session, formula, penalty=0.99 * least, spend=spend)
    assert len(list(session.ledger.entries())) == 1  # the opening alone
    for penalty in (1.01 * least, 1e6):
        fit = dp.erm(session, formula, penalty=penalty, spend=spend)
        acts = fit.penalty > penalty * (1 + 1e-9)
        assert acts == (penalty < 100 and spend != dp.GDP(20))
        assert ("was asked for and acts as" in " ".join(str(fit.summary()).split())) == acts
        assert dp.from_json(fit.to_json()) == fit


def test_a_spend_too_small_for_the_programme_is_refused_before_the_debit():
    """A row's part of it is below what the price is computed for; the metric was paid for first."""
    data = {"u": np.arange(40) // 2, "a": np.linspace(-1, 1, 40), "y": np.arange(40) % 3 > 0}
    schema = {"a": dp.Real(-1, 1, missing=0), "y": dp.Boolean(missing=False)}
    neighbors = dp.Replace(unit="u", max_rows=5)
    session = dp.from_arrays(data, schema=schema, neighbors=neighbors).open(budget=dp.GDP(1))
    with pytest.raises(dp.InvalidParameter, match="spend="):
        dp.erm(session, "y ~ a", spend=dp.GDP(0.0012))
    assert len(list(session.ledger.entries())) == 1  # the opening alone
    assert np.isfinite(dp.erm(session, "y ~ a", method="output", spend=dp.GDP(0.1)).params).all()
