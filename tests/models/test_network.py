"""dp.network and dp.accuracy: one debit at the spend, decisions for new rows, refusals from public
facts, finite answers whatever the rows hold.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binom

import discreet as dp
from discreet.models.learners.accuracy import classifier_of
from discreet.models.learners.network import first_weights, network_model
from discreet.schema import Schema
from discreet.testing.seeded import seeded_session
from discreet.trusted.losses.losses import loss_of

SCHEMA = {
    "x": dp.Real(-1, 1, missing=0),
    "z": dp.Real(0, 10),
    "g": dp.Category(["a", "b", "c"], missing="a"),
    "b": dp.Boolean(missing=False),
    "two": dp.Category(["no", "yes"], missing="no"),
    "k": dp.Category(["lo", "mid", "hi"], missing="lo"),
    "y": dp.Real(-5, 5, missing=0),
    "one": dp.Category(["only"], missing="only"),
}
BOTH = pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
SPEND = dp.ApproxDP(2, 1e-6)
QUICK = dp.SGD(steps=30, batch=60)


def columns(n, seed=0):
    rng = np.random.default_rng(seed)
    x, z, g = rng.uniform(-1, 1, n), rng.uniform(0, 10, n), rng.choice(["a", "b", "c"], n)
    eta = 4 * np.sin(3 * x) + 0.5 * (z - 5) * (g == "a")
    b = rng.random(n) < 1 / (1 + np.exp(-eta))
    return {
        "x": x,
        "z": z,
        "g": g,
        "b": b,
        "two": np.where(b, "yes", "no"),
        "k": np.where(eta > 1, "hi", np.where(eta < -1, "lo", "mid")),
        "y": 3 * np.sin(3 * x) + rng.normal(size=n) / 2,
        "one": np.full(n, "only"),
    }


def opened(data, neighbors=None, budget=None, seed=1):
    given = dp.from_arrays(data, schema=SCHEMA, neighbors=neighbors or dp.Replace())
    return seeded_session(given, budget or dp.ApproxDP(200, 1e-4), seed)


@pytest.fixture(scope="module")
def fits():
    """One network a kind of response, with a large spend."""
    session = opened(columns(3000), budget=dp.ApproxDP(10_000, 1e-2))
    solver = dp.SGD(steps=250, batch=300)
    spend = dp.ApproxDP(400, 1e-4)
    return {
        response: dp.network(
            session, f"{response} ~ x + z + g", hidden=(12,), spend=spend, solver=solver
        )
        for response in ("b", "two", "k", "y")
    }


# ── what is spent ─────────────────────────────────────────────────────────────────────────────────


@BOTH
def test_a_network_costs_its_spend_and_nothing_else(neighbors):
    session = opened(columns(300), neighbors)
    net = dp.network(
        session, "b ~ x + z", hidden=(4,), spend=dp.GDP(1), solver=dp.SGD(30, 60, delta=1e-7)
    )
    losses = [loss_of(release.mechanism) for release in net.releases]
    assert Fraction(97, 100) <= sum(loss.mu_squared for loss in losses) <= 1
    assert sum(loss.delta for loss in losses) == Fraction(1, 10**7)
    debits = [entry.key for entry in session.ledger.entries() if entry.kind == "debit"]
    assert debits == [release.key for release in net.releases]
    assert len(net.releases) == 2, "z may be missing, so that rows are counted"


def test_a_key_gives_the_same_network_again_for_nothing():
    session = opened(columns(200))
    ask = {"hidden": (4,), "spend": SPEND, "solver": QUICK, "key": "net"}
    first, again = (dp.network(session, "b ~ x", **ask) for _ in range(2))
    assert first.weights == again.weights
    assert sum(entry.kind == "debit" for entry in session.ledger.entries()) == 1
    right = [dp.accuracy(session, first, spend=dp.GDP(0.1), key="right") for _ in range(2)]
    assert right[0].release.integers == right[1].release.integers


# ── what it learns ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_networks_learn_what_a_line_cannot(fits):
    new = columns(2000, seed=7)
    assert np.mean(fits["b"].predict(new) == new["b"]) > 0.8
    assert np.mean(fits["two"].predict(new) == new["two"]) > 0.8
    assert np.mean(fits["k"].predict(new) == new["k"]) > 0.75
    assert np.sqrt(np.mean((fits["y"].predict(new) - new["y"]) ** 2)) < 1.2
    assert fits["b"].predict(new).dtype == bool
    assert fits["k"].classes == ("lo", "mid", "hi")
    assert fits["two"].classes == ("no", "yes")
    assert fits["y"].classes == ()


@pytest.mark.slow
def test_probabilities_add_up_and_go_with_decisions(fits):
    new = columns(100, seed=8)
    for response in ("b", "two", "k"):
        found = fits[response].predict_proba(new)
        assert found.shape == (100, len(fits[response].classes))
        assert np.abs(found.sum(axis=1) - 1).max() < 1e-9
        labels = np.array(fits[response].classes, dtype=object)[found.argmax(axis=1)]
        clear = np.sort(found, axis=1)[:, -1] > 0.51
        assert (labels == fits[response].predict(new))[clear].all()
    with pytest.raises(dp.InvalidParameter, match="number"):
        fits["y"].predict_proba(new)


def test_every_kind_of_frame_is_read_alike(fits):
    new = columns(40, seed=9)
    frame = pd.DataFrame(new)
    frames = [
        new,
        frame,
        pl.DataFrame(new),
        pa.table(frame),
        {n: v.tolist() for n, v in new.items()},
    ]
    for net in fits.values():
        found = [net.predict(one) for one in frames]
        assert all((one == found[0]).all() for one in found)
    odd = {"x": ["0.5", math.nan, 99], "z": [None, "text", -5], "g": ["a", "unknown", None]}
    plain = {"x": [0.5, 0, 1], "z": [5, 5, 0], "g": ["a", "a", "a"]}
    assert (fits["y"].predict(odd) == fits["y"].predict(plain)).all()
    assert len(fits["b"].predict({"x": [], "z": [], "g": []})) == 0
    for wrong in ({"x": [1.0]}, [[1, 2, 3]], {"x": [1], "z": [1, 2], "g": ["a"]}, None):
        with pytest.raises(dp.InvalidParameter, match="predict"):
            fits["b"].predict(wrong)


def test_predictions_are_those_of_the_session_itself(fits):
    """A holdout's exact agreement is what `predict` says of its rows, odd cells included."""
    new = columns(400, seed=10)
    new["x"][:3] = [np.nan, 5.0, -np.inf]
    session = opened(new, budget=dp.GDP(1000))
    for response in ("b", "k"):
        share = dp.accuracy(session, fits[response], spend=dp.GDP(300)).estimate
        assert share == pytest.approx(
            np.mean(fits[response].predict(new) == new[response]), abs=2e-3
        )


# ── accuracy ──────────────────────────────────────────────────────────────────────────────────────


def test_accuracies_of_logistic_fits_are_those_of_their_signs():
    session = opened(columns(2000), budget=dp.GDP(1000))
    new = columns(500, seed=3)
    holdout = opened(new, budget=dp.GDP(1000))
    for options in ({"spend": dp.GDP(5)}, {"spend": dp.GDP(5), "solver": "newton"}):
        fit = dp.logistic(session, "b ~ x + g", **options)
        rows = np.column_stack([np.ones(500), new["x"], new["g"] == "b", new["g"] == "c"])
        wanted = np.mean((rows @ fit.params > 0) == new["b"])
        assert dp.accuracy(holdout, fit, spend=dp.GDP(300)).estimate == pytest.approx(
            wanted, abs=5e-3
        )
    pure = dp.logistic(
        opened(new, budget=dp.PureDP(9)),
        "b ~ x",
        spend=dp.PureDP(1),
        solver=dp.SGD(30, law="laplace"),
    )
    assert 0 <= dp.accuracy(holdout, pure, spend=dp.PureDP(1)).estimate <= 1


@pytest.mark.slow
@BOTH
def test_intervals_of_an_accuracy_cover(neighbors, fits):
    """Coverage of a 90 % interval for the accuracy on the population, 200 holdouts: binomial."""
    net, truth = fits["b"], None
    big = columns(60_000, seed=99)
    truth = np.mean(net.predict(big) == big["b"])
    covered = 0
    for seed in range(200):
        holdout = opened(columns(150, seed=1000 + seed), neighbors, dp.GDP(1), seed)
        low, high = dp.accuracy(holdout, net, spend=dp.GDP(0.2)).confidence_interval(0.9)[0]
        covered += low <= truth <= high
    assert binom.cdf(covered, 200, 0.9) > 1e-4
    assert covered < 200, "intervals that are never wrong are too wide"


@pytest.mark.parametrize("relation", [dp.Replace, dp.AddRemove])
def test_an_accuracy_of_units_is_priced_for_all_their_rows(relation, fits):
    data = columns(80) | {"id": np.arange(80) // 2}
    neighbors = relation(unit="id", max_rows=2)
    given = dp.from_arrays(data, schema=SCHEMA, neighbors=neighbors)
    session = seeded_session(given, dp.GDP(900), 1)
    result = dp.accuracy(session, fits["b"], spend=dp.GDP(300))
    moved = {dp.Replace: 8, dp.AddRemove: 4}[relation]
    assert result.release.mechanism.sensitivity.squared == moved
    wanted = np.mean(fits["b"].predict(data) == data["b"])
    assert result.estimate == pytest.approx(wanted, abs=0.02)


@pytest.mark.slow
def test_files_and_memory_give_the_same_network(tmp_path):
    data = columns(150)
    pd.DataFrame(data).to_parquet(tmp_path / "rows.parquet")
    for neighbors in (dp.Replace(), dp.AddRemove()):
        file = dp.read_parquet(tmp_path / "rows.parquet", schema=SCHEMA, neighbors=neighbors)
        nets = [
            dp.network(
                session,
                "k ~ x + z + g",
                hidden=(4, 3),
                activation="tanh",
                spend=SPEND,
                solver=QUICK,
                where={"x": (-0.5, 1)},
            )
            for session in (
                opened(data, neighbors),
                seeded_session(file, dp.ApproxDP(200, 1e-4), 1),
            )
        ]
        assert nets[0].weights == nets[1].weights
        assert "Only rows where" in str(nets[0])


def test_what_is_not_a_classifier_or_declared_otherwise_is_refused(fits):
    session = opened(columns(60))
    entries = len(list(session.ledger.entries()))
    line = dp.ols(opened(columns(60)), "y ~ x", spend=dp.GDP(1))
    for wrong in (fits["y"], line, None, "net"):
        with pytest.raises(dp.InvalidParameter, match="classes"):
            dp.accuracy(session, wrong, spend=dp.GDP(0.1))
    other = dict(SCHEMA, g=dp.Category(["a", "b"], missing="a"))
    data = columns(60) | {"g": np.full(60, "a")}
    holdout = seeded_session(
        dp.from_arrays(data, schema=other, neighbors=dp.Replace()), dp.GDP(1), 1
    )
    with pytest.raises(dp.InvalidParameter, match="other levels"):
        dp.accuracy(holdout, fits["b"], spend=dp.GDP(0.1))
    assert len(list(session.ledger.entries())) == entries
    assert classifier_of(fits["b"])[1].outcome == "yes/no"


# ── what it says ──────────────────────────────────────────────────────────────────────────────────


def test_the_summary_says_that_there_are_no_intervals_and_why(fits):
    net = fits["k"]
    for text in (str(net.summary()), net.to_markdown(), net.to_html()):
        assert "none, because the model is not identified" in text
    assert "clipped to norm 1" in str(net)
    assert "A cell of x without a value counts as 0" in str(net)
    assert "4–12–3" in repr(net)
    again = dp.from_json(net.to_json())
    assert again.to_json() == net.to_json()
    assert (again.predict(columns(9)) == net.predict(columns(9))).all()
    assert sum(layer.size for layer in net.layers) == len(net.weights)


def test_previews_read_no_data_and_cost_nothing(fits):
    session = opened(columns(500))
    entries = len(list(session.ledger.entries()))
    told = dp.preview(session, dp.network, "b ~ x", hidden=(8,), spend=SPEND, solver=QUICK)
    assert "1–8–1" in str(told)
    assert told.multiplier > 0.3
    width = dp.preview(session, dp.accuracy, fits["b"], spend=dp.GDP(0.1)).forecasts[0].width
    assert 0 < width < 1
    with pytest.raises(dp.InvalidParameter, match="rows"):
        dp.preview(opened(columns(9), dp.AddRemove()), dp.network, "b ~ x", spend=SPEND)
    assert len(list(session.ledger.entries())) == entries


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": ()},
        {"hidden": (8,) * 5},
        {"hidden": (257,)},
        {"hidden": (0,)},
        {"hidden": (8.0,)},
        {"hidden": 8},
        {"activation": "sigmoid"},
        {"activation": None},
        {"clip": 0},
        {"clip": math.inf},
        {"clip": True},
        {"solver": dp.Newton()},
        {"solver": "sgd"},
        {"solver": dp.SGD(law="laplace"), "spend": dp.PureDP(1)},
        {"solver": dp.SGD(law="laplace")},
        {"spend": dp.PureDP(1)},
        {"spend": dp.GDP(1)},
        {"spend": dp.ApproxDP(1e-9, 1e-9)},
        {"formula": "one ~ x"},
        {"formula": "b ~ 1"},
        {"formula": "b ~ missing_column"},
    ],
    ids=str,
)
def test_bad_input_is_refused_before_the_debit(options):
    session = opened(columns(60))
    entries = len(list(session.ledger.entries()))
    asked = {"formula": "b ~ x", "hidden": (4,), "spend": SPEND, "solver": QUICK} | options
    with pytest.raises(dp.DiscreetError):
        dp.network(session, asked.pop("formula"), **asked)
    assert len(list(session.ledger.entries())) == entries


def test_units_of_several_rows_are_refused():
    data = columns(60) | {"id": np.arange(60) // 2}
    for relation in (dp.Replace(unit="id", max_rows=2), dp.AddRemove(unit="id", max_rows=2)):
        given = dp.from_arrays(data, schema=SCHEMA, neighbors=relation)
        session = seeded_session(given, dp.ApproxDP(9, 1e-5), 1)
        with pytest.raises(dp.NoTheorem, match="units"):
            dp.network(session, "b ~ x", spend=SPEND, solver=QUICK)


# ── odd data ──────────────────────────────────────────────────────────────────────────────────────

ODD = {
    "one row": {name: values[:1] for name, values in columns(5).items()},
    "no rows": {name: values[:0] for name, values in columns(5).items()},
    "all alike": {name: np.repeat(values[:1], 40) for name, values in columns(5).items()},
    "one class": columns(40) | {"b": np.ones(40, dtype=bool), "k": np.full(40, "hi")},
    "no values": columns(40) | {"z": np.full(40, np.nan), "x": np.full(40, np.nan)},
    "separated": columns(40) | {"b": columns(40)["x"] > 0},
}


@pytest.mark.few(2)
@BOTH
@pytest.mark.parametrize("name", ODD)
def test_odd_data_have_finite_answers_of_the_same_shape(name, neighbors):
    if name == "no rows" and isinstance(neighbors, dp.Replace):
        with pytest.raises(dp.InvalidParameter, match="no rows"):  # their number is public
            dp.network(opened(ODD[name], neighbors), "b ~ x", spend=SPEND, solver=QUICK)
        return
    for response in ("b", "k", "y"):
        session = opened(ODD[name], neighbors)
        net = dp.network(session, f"{response} ~ x + z", hidden=(3,), spend=SPEND, solver=QUICK)
        shape = network_model(Schema(SCHEMA), f"{response} ~ x + z", (3,), "relu", None)[1]
        assert len(net.weights) == shape.size == len(first_weights(shape))
        found = net.predict(columns(5))
        assert len(found) == 5
        if response == "y":
            assert np.isfinite(found).all()
        else:
            assert 0 <= dp.accuracy(session, net, spend=dp.GDP(1)).estimate <= 1
