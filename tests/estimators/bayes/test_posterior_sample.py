"""dp.posterior_sample as a user meets it: draws, their temper, refusals, stored results."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session

SCHEMA = {
    "member": dp.Boolean(),
    "region": dp.Category(["E", "N", "S"]),
    "visits": dp.Integer(0, 5),
    "x": dp.Real(0, 100),
    "y": dp.Real(0, 100),
}
GRID = [place / 20 for place in range(1, 20)]
ASKED = [
    (dp.BetaBinomial("member"), GRID),
    (dp.DirichletMultinomial("region"), [(0.5, 0.3, 0.2), (0.2, 0.3, 0.5)]),
    (dp.GammaPoisson("visits", prior=(2, 1)), np.array([1.0, 2.0, 4.0])),
    (dp.NormalModel("x"), [(50, 10), (50, 20), (30, 10)]),
    (dp.LinearModel("y ~ x"), [(20, 0.5, 8), (0, 0, 30), (50, -0.5, 8)]),
]


def session_of(relation=None, budget=None):
    rng = np.random.default_rng(1)
    x = rng.normal(50, 10, 3000)
    data = dp.from_arrays(
        {
            "member": rng.random(3000) < 0.3,
            "region": rng.choice(["E", "N", "S"], 3000, p=[0.5, 0.3, 0.2]),
            "visits": rng.poisson(2, 3000),
            "x": x,
            "y": 20 + 0.5 * x + rng.normal(0, 8, 3000),
            "id": np.arange(3000),
        },
        schema=SCHEMA,
        neighbors=dp.Replace() if relation is None else relation,
        name="rows",
    )
    return seeded_session(data, dp.GDP(1000) if budget is None else budget, seed=4)


@pytest.mark.few(2)
@pytest.mark.parametrize("relation", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize(("family", "grid"), ASKED, ids=lambda one: type(one).__name__)
def test_enough_spend_draws_the_right_point_and_is_stored(family, grid, relation):
    found = dp.posterior_sample(session_of(relation), family, grid=grid, spend=dp.GDP(50))
    point = np.atleast_1d(found.draws[0])
    right = [0.3] if found.names[0].startswith("member") else np.atleast_1d(next(iter(grid)))
    if isinstance(family, dp.GammaPoisson):
        right = [2.0]
    assert point == pytest.approx(np.asarray(right), abs=0.051)
    for other in (dp.from_json(found.to_json()), pickle.loads(pickle.dumps(found))):
        assert np.array_equal(other.draws, found.draws)
        assert str(other.summary()) == str(found.summary())
        assert other.prior == pytest.approx(found.prior)
    assert "likelihood^" in str(found)
    assert found.prior.sum() == pytest.approx(1)


def test_a_spend_beyond_the_posterior_is_not_used_up():
    session = session_of(budget=dp.PureDP(1000))
    found = dp.posterior_sample(session, *ASKED[0][:1], grid=GRID, spend=dp.PureDP(500))
    assert found.temper == 1
    assert found.guarantee.epsilon < 500
    assert "would not change it" in str(found)
    assert session.remaining().epsilon > 900


@pytest.mark.slow
def test_draws_share_the_spend():
    session = session_of(budget=dp.PureDP(10))
    family = ASKED[0][0]
    one = dp.posterior_sample(session, family, grid=GRID, spend=dp.PureDP(2))
    four = dp.posterior_sample(session, family, grid=GRID, samples=4, spend=dp.PureDP(2))
    assert four.temper == pytest.approx(one.temper / 4, rel=1e-6)
    assert len(four.draws) == len(four.to_frame()) == 4
    assert session.remaining().epsilon == pytest.approx(6, abs=1e-6)
    assert four.guarantee == dp.PureDP(2)
    told = dp.preview(
        session, dp.posterior_sample, family, grid=GRID, samples=4, spend=dp.PureDP(2)
    )
    assert told.temper == four.temper
    assert "power of the likelihood" in str(told)
    told.plot()
    found = four.plot().axes[0]
    assert found.get_xlabel() == "member = True"


REFUSED = [
    {"grid": []},
    {"grid": [0.5]},
    {"grid": [0.5, math.inf]},
    {"grid": [0.5, math.nan]},
    {"grid": [0.5, 1.0]},
    {"grid": [0.5, "a"]},
    {"grid": [0.5, (0.1, 0.2)]},
    {"grid": "0.5"},
    {"grid": None},
    {"grid": [0.1] * 5000},
    {"samples": 0},
    {"samples": -2},
    {"samples": 1.5},
    {"samples": True},
    {"spend": 0.5},
    {"family": "member"},
    {"family": dp.BetaBinomial("x")},
    {"family": dp.BetaBinomial("nobody")},
    {"family": dp.DirichletMultinomial("region"), "grid": [(0.5, 0.3, 0.3), (0.2, 0.3, 0.5)]},
    {"family": dp.GammaPoisson("visits", prior=(1, 1)), "grid": [0.0, 1.0]},
    {"family": dp.NormalModel("x"), "grid": [(0.0, 1.0), (1.0, -1.0)]},
    {"family": dp.NormalModel("x"), "grid": [(0.0, 1e-13), (1.0, 1.0)]},
    {"family": dp.LinearModel("y ~ x"), "grid": [(0.0, 1.0), (1.0, 1.0)]},
]


@pytest.mark.parametrize("change", REFUSED)
def test_bad_input_is_refused_before_the_debit(change):
    session = session_of()
    asked = {"family": ASKED[0][0], "grid": GRID, "samples": 1, "spend": dp.PureDP(1)} | change
    family = asked.pop("family")
    with pytest.raises(dp.DiscreetError) as refusal:
        dp.posterior_sample(session, family, **asked)
    assert "Why it matters" in str(refusal.value)
    assert len(session.ledger.entries()) == 1


def test_units_of_several_rows_and_foreign_texts_are_refused():
    session = session_of(dp.AddRemove(unit="id", max_rows=3))
    with pytest.raises(dp.InvalidParameter, match="independent rows"):
        dp.posterior_sample(session, ASKED[0][0], grid=GRID, spend=dp.PureDP(1))
    found = dp.posterior_sample(session_of(), ASKED[0][0], grid=GRID, spend=dp.PureDP(1))
    text = json.loads(found.to_json())
    text["facts"]["points"] = text["facts"]["points"][:1]
    with pytest.raises(dp.InvalidParameter):
        dp.from_json(json.dumps(text))
