"""dp.posterior as a user meets it: answers, texts, refusals before the debit, stored results."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from tests.printed import unwrapped

import discreet as dp
from discreet.asking.expected import imagined_release
from discreet.estimators.bayes.posterior import posterior_question
from discreet.inference.posteriors.results import NAIVE, PosteriorResult
from discreet.sensitivity import L1
from discreet.specs.mechanisms.additive import LaplaceNoise
from discreet.testing import seeded_session
from discreet.trusted.release import PublicFacts

SCHEMA = {
    "member": dp.Boolean(),
    "sure": dp.Boolean(missing=False),
    "region": dp.Category(["E", "N", "S"]),
    "visits": dp.Integer(0, 5),
    "below": dp.Integer(-3, 5),
    "day": dp.Date("2020-01-01", "2020-12-31"),
    "x": dp.Real(0, 100),
    "y": dp.Real(0, 100),
    "name": dp.Open(),
}
FAMILIES = [
    dp.BetaBinomial("member"),
    dp.BetaBinomial("region", level="N", prior=(2, 5)),
    dp.DirichletMultinomial("region", prior=(1, 2, 3)),
    dp.GammaPoisson("visits", prior=(2, 1)),
    dp.NormalModel("x"),
    dp.LinearModel("y ~ x"),
]
RELATIONS = [dp.Replace(), dp.AddRemove(), dp.Replace(unit="id", max_rows=1)]


def table(rows=400):
    rng = np.random.default_rng(1)
    x = rng.normal(50, 10, rows)
    return {
        "member": rng.random(rows) < 0.3,
        "sure": rng.random(rows) < 0.6,
        "region": rng.choice(["E", "N", "S"], rows, p=[0.5, 0.3, 0.2]),
        "visits": rng.poisson(2, rows),
        "below": rng.poisson(2, rows),
        "day": np.array(["2020-05-05"] * rows),
        "x": x,
        "y": 20 + 0.5 * x + rng.normal(0, 8, rows),
        "name": np.array(["n"] * rows),
        "id": np.arange(rows),
    }


def session_of(relation=RELATIONS[0], data=None, seed=1):
    data = table() if data is None else data
    opened = dp.from_arrays(data, schema=SCHEMA, neighbors=relation, name="rows")
    return seeded_session(opened, dp.GDP(100), seed=seed)


def exact_release(statistic, family=FAMILIES[0], rows=20, spread=2, column="sure"):
    """The release of a number that was not drawn, with Laplace noise on a very fine grid."""
    public = PublicFacts(dp.Schema(SCHEMA), dp.Replace(), rows)
    question = posterior_question(public, dp.BetaBinomial(column), spend=dp.PureDP(0.5))
    noise = LaplaceNoise(L1(Fraction(1)), Fraction(spread), 44)
    question = type(question)(question.description, question.query, noise, question.spend)
    return imagined_release(public, question, (round(statistic * 2**44),))


def test_the_exact_posterior_of_twenty_rows():
    """θ uniform, x ~ Bin(20, θ), s = x + Laplace(2) = 13.7: the sum over x, and stored values."""
    result = PosteriorResult(exact_release(13.7), dp.BetaBinomial("sure"))
    weights = [math.exp(-abs(13.7 - x) / 2) / 21 for x in range(21)]
    total = math.fsum(weights)
    first = math.fsum(w * (x + 1) / 22 for x, w in enumerate(weights)) / total
    second = math.fsum(w * (x + 1) * (x + 2) / (22 * 23) for x, w in enumerate(weights)) / total
    sd = math.sqrt(second - first**2)
    for mean, deviation in ((first, sd), (0.6618624156930761, 0.1513389226526515)):
        assert result.means[0] == pytest.approx(mean, abs=1e-10)
        assert result.deviations[0] == pytest.approx(deviation, abs=1e-10)
    naive = result.as_if_exact  # Beta(14.7, 7.3)
    assert naive.means[0] == pytest.approx(0.6681818181818182, abs=1e-10)
    assert naive.deviations[0] == pytest.approx(0.09818236714822373, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_every_family_answers_and_is_stored(family, relation):
    result = dp.posterior(session_of(relation), family, spend=dp.GDP(0.5))
    again = dp.from_json(result.to_json())
    for other in (again, pickle.loads(pickle.dumps(result))):
        assert np.array_equal(other.draws(50), result.draws(50))
        assert np.array_equal(other.credible_interval(), result.credible_interval())
        assert str(other.summary()) == str(result.summary())
    ends = result.credible_interval(0.9)
    assert np.all(ends[:, 0] < result.means) and np.all(result.means < ends[:, 1])  # noqa: PT018
    draws = result.draws(4000)
    assert draws.mean(axis=0) == pytest.approx(result.means, abs=0.2 * result.deviations.max())
    inside = (draws > ends[:, 0]) & (draws < ends[:, 1])
    assert inside.mean(axis=0) == pytest.approx(0.9, abs=0.03)
    name = result.names[-1]
    low, high = ends[-1]
    assert result.probability(name, low=low, high=high) == pytest.approx(0.9, abs=5e-3)
    assert np.all((result.noise_share >= 0) & (result.noise_share <= 1))
    assert len(result.to_frame()) == len(result.names)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_the_naive_posterior_says_that_it_is_not_valid(family):
    result = dp.posterior(session_of(), family, spend=dp.GDP(0.5), naive=True)
    for text in (str(result), repr(result), result.to_html(), result.to_markdown()):
        assert "NOT VALID" in text or "not valid" in text
    assert NAIVE in unwrapped(result.summary())
    assert not result.to_frame()["valid"].any()
    assert json.loads(result.to_json())["naive"] is True
    aware = PosteriorResult(result.release, family)
    assert "not valid" not in str(aware).lower()
    assert repr(aware.as_if_exact) == repr(result)
    wider = np.asarray(aware.deviations) > np.asarray(result.deviations)
    assert wider.mean() > 0.6


@pytest.mark.slow
def test_one_more_row():
    session = session_of()
    share, shares, rate, normal, line = (
        dp.posterior(session, FAMILIES[place], spend=dp.GDP(1)) for place in (0, 2, 3, 4, 5)
    )
    assert share.predictive(3000).mean() == pytest.approx(share.means[0], abs=0.04)
    assert set(shares.predictive(100)) <= {"E", "N", "S"}
    counts = rate.predictive(4000)
    assert counts.mean() == pytest.approx(rate.means[0], abs=0.12)
    assert counts.max() > 5  # of the family, not of what was clamped
    assert normal.predictive(4000).std() == pytest.approx(normal.means["sd"], rel=0.1)
    expected = line.means["Intercept"] + 60 * line.means["x"]
    assert line.predictive(4000, at={"x": 60}).mean() == pytest.approx(expected, abs=1.5)
    for result, at in ((normal, {"x": 1}), (line, None), (line, {"z": 1})):
        with pytest.raises(dp.InvalidParameter, match="at="):
            result.predictive(10, at=at)


@pytest.mark.slow
def test_clamping_is_in_the_likelihood_of_normal_rows():
    rng = np.random.default_rng(3)
    data = table(2000) | {"x": rng.normal(90, 25, 2000)}
    data = {name: np.resize(values, 2000) for name, values in data.items()}
    result = dp.posterior(session_of(data=data), dp.NormalModel("x"), spend=dp.GDP(1))
    low, high = result.credible_interval(0.99)[0]
    assert low < 90 < high
    assert result.as_if_exact.credible_interval(0.99)[0, 1] < 90


def test_a_line_says_where_ranges_are_too_short():
    data = table() | {"y": np.random.default_rng(2).normal(80, 25, 400)}
    told = dp.posterior(session_of(data=data), FAMILIES[5], spend=dp.GDP(2))
    assert "fewer than 4 standard deviations" in str(told.summary())
    assert "Importance draws" in str(told.summary())


EDGES = [
    ({"member": np.ones(3, bool)}, 3),
    ({"visits": np.full(50, 5), "x": np.full(50, 100.0), "y": np.full(50, 0.0)}, 50),
    ({}, 0),
    ({}, 1),
]


@pytest.mark.slow
@pytest.mark.parametrize(("change", "rows"), EDGES, ids=["3 alike", "at the bounds", "none", "one"])
@pytest.mark.parametrize("spend", [dp.GDP(1e-3), dp.PureDP(3)], ids=str)
def test_odd_tables_give_finite_answers(change, rows, spend):
    data = {name: values[:rows] for name, values in (table() | change).items()}
    for relation in RELATIONS[:2]:
        session = session_of(relation, data)
        for family in FAMILIES[: 6 if isinstance(spend, dp.GDP) else 4]:
            result = dp.posterior(session, family, spend=spend)
            for one in (result, result.as_if_exact):
                numbers = [one.means, one.deviations, one.credible_interval(), one.draws(20)]
                assert all(np.isfinite(each).all() for each in numbers), family


REFUSED = [
    (lambda: dp.BetaBinomial("member", prior=(0, 1)), "prior="),
    (lambda: dp.BetaBinomial("member", prior=(1, math.inf)), "prior="),
    (lambda: dp.BetaBinomial("member", prior=(1,)), "prior="),
    (lambda: dp.BetaBinomial("member", prior=None), "prior="),
    (lambda: dp.BetaBinomial("nobody"), "not in the schema"),
    (lambda: dp.BetaBinomial("x"), "Boolean or Category"),
    (lambda: dp.BetaBinomial("region"), "level="),
    (lambda: dp.BetaBinomial("region", level="W"), "W"),
    (lambda: dp.BetaBinomial("member", level="N"), "level="),
    (lambda: dp.DirichletMultinomial("region", prior=(1, 1)), "prior="),
    (lambda: dp.DirichletMultinomial("region", prior=-1), "prior="),
    (lambda: dp.DirichletMultinomial("name"), "Boolean or Category"),
    (lambda: dp.GammaPoisson("visits"), "prior="),
    (lambda: dp.GammaPoisson("x", prior=(1, 1)), "Integer"),
    (lambda: dp.GammaPoisson("below", prior=(1, 1)), "-3"),
    (lambda: dp.GammaPoisson("day", prior=(1, 1)), "Integer"),
    (lambda: dp.NormalModel("member"), "Real or Integer"),
    (lambda: dp.NormalModel("x", prior=(0, 1, 1, 0)), "prior="),
    (lambda: dp.NormalModel("x", prior=(math.nan, 1, 1, 1)), "prior="),
    (lambda: dp.NormalModel(3), "column"),
    (lambda: dp.LinearModel("y ~ square(x)"), "formula"),
    (lambda: dp.LinearModel("y ~ region"), "formula"),
    (lambda: dp.LinearModel("y ~ x - 1"), "intercept"),
    (lambda: dp.LinearModel("y ~ nobody"), "not in the schema"),
    (lambda: dp.LinearModel("y ~ x", prior=(1, 1, 1, 1)), "prior="),
    (lambda: "member", "family"),
    (lambda: dp.BetaBinomial, "family"),
]


@pytest.mark.parametrize(("made", "told"), REFUSED)
def test_bad_families_are_refused_before_the_debit(made, told):
    session = session_of()
    with pytest.raises((dp.InvalidParameter, dp.UndeclaredColumn, dp.WrongColumnKind)) as refusal:
        dp.posterior(session, made(), spend=dp.GDP(0.1))
    text = str(refusal.value)
    assert told in text
    assert "Why it matters" in text
    assert "What to do" in text
    assert len(session.ledger.entries()) == 1  # its opening


def test_other_refusals_come_before_the_debit():
    session = session_of()
    for change in ({"spend": 1}, {"naive": 1}, {"where": {"nobody": 1}}, {"spend": dp.PureDP(1)}):
        with pytest.raises(dp.DiscreetError):
            dp.posterior(session, FAMILIES[5], **({"spend": dp.GDP(0.1)} | change))
    assert len(session.ledger.entries()) == 1
    units = session_of(dp.Replace(unit="id", max_rows=2))
    with pytest.raises(dp.InvalidParameter, match="independent rows"):
        dp.posterior(units, FAMILIES[0], spend=dp.GDP(0.1))
    assert len(units.ledger.entries()) == 1


def test_questions_of_a_result_are_refused_in_words():
    result = dp.posterior(session_of(), FAMILIES[2], spend=dp.GDP(0.1))
    for ask in (
        lambda: result.draws(0),
        lambda: result.draws(2.5),
        lambda: result.credible_interval(1.2),
        lambda: result.probability(),
        lambda: result.probability("W", low=0),
    ):
        with pytest.raises(dp.InvalidParameter):
            ask()
    text = json.loads(result.to_json())
    for change in ({"family": {}}, {"releases": []}, {"version": 7}):
        with pytest.raises(dp.InvalidParameter):
            dp.from_json(json.dumps(text | change))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_a_preview_says_about_how_wide_it_will_be(family):
    session = session_of()
    told = dp.preview(session, dp.posterior, family, spend=dp.GDP(0.5))
    assert len(session.ledger.entries()) == 1
    found = dp.posterior(session, family, spend=dp.GDP(0.5))
    widths = np.diff(found.credible_interval())[:, 0]
    assert len(told.forecasts) == len(widths)
    assert 0.1 < told.width / widths[-1] < 10
    told.plot()


@pytest.mark.slow
@pytest.mark.parametrize("naive", [False, True])
def test_pictures_hold_every_parameter(naive):
    session = session_of()
    for family in FAMILIES[2:]:
        result = dp.posterior(session, family, spend=dp.GDP(0.5), naive=naive)
        axes = result.plot().axes
        words = " ".join(
            text.get_text() for each in axes for text in (*each.texts, each.title, each.xaxis.label)
        )
        assert all(name in words for name in result.names) or len(result.names) > 3


@pytest.mark.slow
def test_many_parameters_are_shown_as_intervals():
    schema = {"level": dp.Category([f"l{place}" for place in range(6)])}
    data = dp.from_arrays({"level": ["l1", "l2"] * 50}, schema=schema, neighbors=dp.Replace())
    session = seeded_session(data, dp.GDP(9), seed=2)
    result = dp.posterior(session, dp.DirichletMultinomial("level"), spend=dp.GDP(1))
    labels = [text.get_text() for text in result.plot().axes[0].get_yticklabels()]
    assert labels == list(result.names)
