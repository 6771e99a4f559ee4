"""Questions by the classical quantile methods: from public facts to answers, whatever the data."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.errors import DiscreetError, InvalidParameter, NoTheorem
from discreet.estimators.classical_quantiles import METHODS, compared, default_model, quantile_parts
from discreet.inference.quantiles.classical_quantiles import (
    NormalValues,
    bottom_probability,
    expected_error,
    point,
    rank_error_bound,
)
from discreet.inference.results.stored import release_from_json
from discreet.testing import seeded_session
from discreet.trusted.losses.pricing import within_spend
from discreet.trusted.release import Question

F = Fraction
SCHEMA = {
    "x": dp.Real(0, 100, missing=50),
    "age": dp.Integer(0, 90, missing=45),
    "yes": dp.Boolean(missing=False),
    "who": dp.Category(["a", "b"]),
}
SPENDS = [dp.PureDP(1), dp.GDP(0.5), dp.ZCDP(0.1), dp.ApproxDP(2, 1e-5)]
OPTIONS: list[tuple[str, dict[str, object]]] = [
    ("exponential", {}),
    ("inverse", {}),
    ("smooth", {}),
    *(("smooth", {"law": law}) for law in ("student", "cauchy", "laplace", "gaussian", "lln")),
    ("smooth", {"law": "cauchy", "shape": 4}),
    ("ptr", {}),
    ("ptr", {"eta": 2}),
    ("ptr", {"eta": 0}),
]


def data(values: list[object], neighbors: dp.Replace | dp.AddRemove | None = None) -> dp.Dataset:
    columns = {"x": values, "age": values, "yes": [False] * len(values), "who": ["a"] * len(values)}
    return dp.from_arrays(
        {**columns, "id": list(range(len(values)))},
        schema=SCHEMA,
        neighbors=neighbors or dp.Replace(),
    )


def budget(spend: object) -> object:
    return (
        dp.Ledger.open(dp.ZCDP(1000), delta0=0.9)
        if isinstance(spend, (dp.ZCDP, dp.PureDP))
        else dp.Ledger.open(dp.ApproxDP(900, 0.9), delta0=0.8)
    )


def ask(
    session: dp.session.Session,
    method: str,
    q: object = F(1, 2),
    column: str = "x",
    **options: object,
) -> Question:  # type: ignore[name-defined]
    return METHODS[method](session.public, column, q, **options)


@pytest.mark.slow
def test_every_method_fits_its_spend_and_answers() -> None:
    values = np.random.default_rng(1).normal(50, 8, 500)
    for spend in SPENDS:
        session = seeded_session(data(list(values)), budget(spend), "fits")
        for method, options in OPTIONS:
            if options.get("law") == "lln" and isinstance(spend, dp.PureDP):
                continue
            for q in (F(1, 2), F(1, 4), F(9, 10)):
                question = ask(session, method, q, spend=spend, delta=1e-6, **options)
                assert within_spend(question.mechanism, spend, question.delta)
                release = session.release(question)
                value = point(release)
                assert value is None or 0 <= value <= 100
                assert value is not None or method == "ptr"
                assert release_from_json(release.to_json()) == release
                assert point(release_from_json(release.to_json())) == value


@pytest.mark.slow
def test_more_spend_buys_more() -> None:
    """Half the spend left over would be half the noise too much:
    the constants use what they are given.
    """
    public = data([1.0] * 500).open(budget=dp.PureDP(1)).public
    for method, options in OPTIONS:
        for spend in (dp.PureDP(1), dp.GDP(0.5)):
            if options.get("law") == "lln" and isinstance(spend, dp.PureDP):
                continue
            question = METHODS[method](public, "x", F(1, 2), spend=spend, delta=1e-6, **options)
            less = dp.PureDP(0.93) if isinstance(spend, dp.PureDP) else dp.GDP(0.465)
            slack = F(1, 10**6) if question.delta else F(0)
            assert not within_spend(question.mechanism, less, slack), (method, options, spend)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        [],
        [5.0],
        [5.0, 7.0],
        [50.0] * 40,
        [0.0] * 9,
        [100.0] * 9,
        [math.nan] * 5,
        [None, "no", 3.0, math.inf, -math.inf],
        [1.0, 1.0, 1.0, 99.0],
    ],
    ids=str,
)
def test_any_data_get_an_answer(values: list[object]) -> None:
    for column in ("x", "age"):
        session = seeded_session(
            data(values), dp.Ledger.open(dp.ApproxDP(900, 0.9), delta0=0.8), "total"
        )
        for method, options in OPTIONS:
            release = session.release(
                ask(session, method, column=column, spend=dp.GDP(1), delta=1e-3, **options)
            )
            assert point(release) is None or 0 <= point(release) <= 100


def test_only_the_exponential_method_needs_no_fixed_number_of_rows() -> None:
    relations = [
        dp.AddRemove(),
        dp.AddRemove(unit="id", max_rows=3),
        dp.Replace(unit="id", max_rows=3),
        dp.Replace(),
    ]
    for neighbors in relations:
        session = seeded_session(
            data([float(v) for v in range(60)], neighbors),
            dp.Ledger.open(dp.ApproxDP(900, 0.9), delta0=0.8),
            "relations",
        )
        for where in ({"who": "a"}, {"age": (10, 40)}, None):
            if where is None and neighbors == dp.Replace():
                continue
            spent = session.ledger.entries()
            for method in ("inverse", "smooth", "ptr"):
                with pytest.raises(NoTheorem, match="exponential"):
                    ask(session, method, spend=dp.GDP(1), delta=1e-3, where=where)
            assert session.ledger.entries() == spent
            release = session.release(ask(session, "exponential", spend=dp.GDP(5), where=where))
            assert 0 <= point(release) <= 100


def test_bad_parameters_are_refused_before_anything_is_spent() -> None:
    session = data([1.0, 2.0]).open(budget=dp.GDP(1))
    bad: list[dict[str, object]] = [
        {"q": -0.1},
        {"q": 1.5},
        {"q": math.nan},
        {"q": "half"},
        {"q": True},
        {"q": 1 / 3 + 1e-9},
        {"column": "who"},
        {"column": "z"},
        {"spend": 1.0},
        {"spend": None},
        {"where": {"z": 1}},
    ]
    for method in METHODS:
        for change in bad:
            with pytest.raises(DiscreetError):
                METHODS[method](
                    session.public,
                    change.get("column", "x"),
                    change.get("q", F(1, 2)),
                    spend=change.get("spend", dp.GDP(1)),
                    delta=1e-6,
                    where=change.get("where"),
                )
    for method, options in (
        ("smooth", {"law": "uniform"}),
        ("smooth", {"law": 3}),
        ("smooth", {"law": "cauchy", "shape": 3}),
        ("smooth", {"law": "student", "shape": 0}),
        ("smooth", {"law": "lln", "shape": -1}),
        ("smooth", {"law": "laplace", "delta": None}),
        ("smooth", {"law": "gaussian", "delta": 2}),
        ("ptr", {"delta": None}),
        ("ptr", {"delta": 0}),
        ("ptr", {"delta": math.nan}),
        ("ptr", {"eta": -1}),
        ("ptr", {"eta": "wide"}),
    ):
        with pytest.raises(InvalidParameter):
            ask(session, method, **{"spend": dp.GDP(0.5), "delta": 1e-6, **options})
    with pytest.raises(NoTheorem):
        ask(session, "smooth", spend=dp.PureDP(1), law="lln")
    assert len(session.ledger.entries()) == 1
    assert quantile_parts(0.1) == (1, 10)


def test_delta_is_a_tenth_of_an_approximate_spend() -> None:
    session = data([1.0] * 10).open(budget=dp.GDP(1))
    assert ask(session, "ptr", spend=dp.ApproxDP(1, 1e-6)).delta == F(1, 10**7)
    assert ask(session, "exponential", spend=dp.ApproxDP(1, 1e-6)).delta == 0


def normal_questions(
    rows: int, spread: float, **changes: object
) -> tuple[dp.session.Session, dict[str, Question], NormalValues]:  # type: ignore[name-defined]
    values = np.random.default_rng(rows).normal(40, spread, rows)
    session = seeded_session(
        data(list(values)), dp.Ledger.open(dp.ZCDP(10**6), delta0=0.999), f"normal {rows}"
    )
    questions = {
        name: ask(
            session, name, spend=dp.PureDP(1), delta=1e-6, **(changes if name == "ptr" else {})
        )
        for name in METHODS
    }
    query = questions["ptr"].query
    return (
        session,
        questions,
        NormalValues(rows, spread / query.step, query.size, 0.4 * (query.size - 1)),
    )


@pytest.mark.slow
def test_expected_errors_are_about_right() -> None:
    for rows, spread in ((300, 5.0), (3000, 10.0)):
        _session, questions, model = normal_questions(rows, spread)
        rng = np.random.default_rng(7)
        for name, question in questions.items():
            errors = []
            for _ in range(120):  # fresh data each time: what is forecast is an average over them
                values = rng.normal(40, spread, rows)
                fresh = seeded_session(
                    data(list(values)),
                    dp.Ledger.open(dp.ZCDP(10**6), delta0=0.999),
                    f"{name} {len(errors)}",
                )
                value = point(fresh.release(question))
                errors.append(
                    abs((50.0 if value is None else value) - np.sort(values)[(rows + 1) // 2 - 1])
                )
            forecast = compared({name: question}, model)[name]
            assert 0.5 < np.mean(errors) / forecast < 2.0, (name, rows, np.mean(errors), forecast)


@pytest.mark.slow
def test_the_probability_of_no_answer_is_about_right() -> None:
    seen = []
    for eta in (0.5, 0.7, 0.9, 3.0):
        rows, spread = 1000, 8.0
        _, questions, model = normal_questions(rows, spread, eta=eta)
        rng, nothing = np.random.default_rng(11), 0
        for trial in range(150):
            fresh = seeded_session(
                data(list(rng.normal(40, spread, rows))),
                dp.Ledger.open(dp.ZCDP(10**6), delta0=0.999),
                f"bottom {trial}",
            )
            nothing += point(fresh.release(questions["ptr"])) is None
        seen.append((bottom_probability(questions["ptr"].mechanism, model), nothing / 150))
    assert all(abs(forecast - found) < 0.2 for forecast, found in seen), seen
    assert seen[0][0] > 0.8
    assert seen[-1][0] < 1e-3


@pytest.mark.slow
def test_the_default_proposal_passes_for_evenly_spread_values() -> None:
    rng, nothing = np.random.default_rng(13), 0
    for trial in range(200):
        session = seeded_session(
            data(list(rng.uniform(0, 100, 2000))),
            dp.Ledger.open(dp.ZCDP(10**6), delta0=0.999),
            f"even {trial}",
        )
        nothing += (
            point(session.release(ask(session, "ptr", spend=dp.PureDP(1), delta=1e-6))) is None
        )
    assert nothing <= 12  # P(⊥) is meant to be 0.01: more than 12 of 200 have probability 2e-7


def test_a_stable_whole_number_is_released_without_noise() -> None:
    session = seeded_session(
        data([30.0] * 100), dp.Ledger.open(dp.ZCDP(1000), delta0=0.9), "stable"
    )
    release = session.release(
        ask(session, "ptr", column="age", spend=dp.PureDP(1), delta=1e-6, eta=0)
    )
    assert point(release) == 30.0
    assert release.guarantee.epsilon <= 1


@pytest.mark.slow
def test_rank_errors_stay_within_their_bound() -> None:
    values = np.arange(100) % 90
    session = seeded_session(data(list(values)), dp.Ledger.open(dp.PureDP(1000)), "ranks")
    for method in ("exponential", "inverse"):
        question = ask(session, method, column="age", spend=dp.PureDP(1))
        bound = rank_error_bound(question.mechanism, question.query.size, 0.9)
        beyond = 0
        for _ in range(200):
            cell = point(session.release(question))
            below, upto = (values < cell).sum(), (values <= cell).sum()
            beyond += max(below - 50, 50 - upto, 0) > bound
        assert 0 < bound < 30
        assert beyond <= 60


def test_forecasts_use_public_facts_alone() -> None:
    public = data([1.0] * 1000).open(budget=dp.GDP(1)).public
    questions = {
        name: build(public, "x", F(1, 2), spend=dp.PureDP(1), delta=1e-6)
        for name, build in METHODS.items()
    }
    errors = compared(questions, default_model(public, questions["ptr"].query))
    assert set(errors) == set(METHODS)
    assert errors["exponential"] <= min(errors.values()) * 1.01
    assert all(
        expected_error(question.mechanism, NormalValues(1000, 100.0, 65535)) > 0
        for question in questions.values()
    )
