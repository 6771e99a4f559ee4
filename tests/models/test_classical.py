"""The lectures' solvers: every release is paid for, noise is propagated as reference.md H4 and H5
say, intervals cover, and nothing depends on the data but the answers.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.inference.regression.classical import ClassicalResult
from discreet.inference.regression.classical_covariance import Path, propagated
from discreet.models.regression import asked_model
from discreet.models.solvers import (
    SGD,
    SOLVERS,
    GradientDescent,
    Newton,
    chosen_solver,
    plain_radius,
)
from discreet.schema import Schema
from discreet.testing.seeded import seeded_session
from discreet.trusted.losses.losses import loss_of

SCHEMA = {
    "x": dp.Real(-1, 1),
    "g": dp.Category(["a", "b", "c"]),
    "y": dp.Real(-3, 3),
    "b": dp.Boolean(),
    "k": dp.Integer(0, 20),
}
FAST = {
    "gradient": GradientDescent(8),
    "newton": Newton(3),
    "damped newton": Newton(4, damping=0.5),
    "sgd": SGD(30, batch=40, delta=1e-7),
}
FORMULAS = {"robust": "y ~ x", "logistic": "b ~ x", "poisson": "k ~ x", "ols": "y ~ x + g"}


def columns(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return {
        "x": x,
        "g": rng.choice(["a", "b", "c"], n),
        "y": 0.5 + x + 0.3 * rng.normal(size=n),
        "b": rng.random(n) < 1 / (1 + np.exp(-1 - x)),
        "k": rng.poisson(np.exp(0.5 + 0.5 * x)),
    }


def session_on(data, neighbors=None, seed=0, schema=SCHEMA):
    return seeded_session(
        dp.from_arrays(data, schema=schema, neighbors=neighbors or dp.Replace()),
        dp.ApproxDP(40, 1e-4),
        seed,
    )


def fit(session, name, solver, **options):
    return getattr(dp, name)(
        session,
        FORMULAS[name],
        **({"spend": dp.GDP(1), "solver": FAST.get(solver, solver)} | options),
    )


# ── what is spent ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("solver", FAST)
def test_every_release_is_in_the_ledger_and_all_compose_to_the_spend(solver, neighbors):
    session = session_on(columns(300), neighbors)
    result = fit(session, "robust", solver)
    debited = {entry.key for entry in session.ledger.entries() if entry.kind == "debit"}
    assert {release.key for release in result.releases} == debited
    total = sum((loss_of(release.mechanism).mu_squared for release in result.releases), Fraction(0))
    assert Fraction(98, 100) <= total <= 1
    assert sum((loss_of(release.mechanism).delta for release in result.releases), Fraction(0)) == (
        Fraction(1, 10**7) if solver == "sgd" else 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("solver", FAST)
def test_a_key_gives_the_same_answer_again_for_nothing(solver):
    session = session_on(columns(200))
    first = fit(session, "logistic", solver, key="one")
    entries = len(list(session.ledger.entries()))
    again = fit(session, "logistic", solver, key="one")
    assert (first.params == again.params).all()
    assert sum(entry.kind == "debit" for entry in session.ledger.entries()) == len(first.releases)
    assert len(list(session.ledger.entries())) >= entries


def test_units_are_protected_by_full_gradients_and_refused_by_sampling():
    data = columns(120) | {"id": np.repeat(np.arange(60), 2)}
    for neighbors in (dp.Replace(unit="id", max_rows=2), dp.AddRemove(unit="id", max_rows=2)):
        session = session_on(data, neighbors)
        for solver in ("gradient", "newton"):
            assert np.isfinite(
                fit(session, "robust", solver, where={"x": (-1, 0.5)}).std_errors
            ).all()
        with pytest.raises(dp.NoTheorem, match="units"):
            fit(session, "robust", "sgd")


# ── parameters ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "make",
    [
        lambda: GradientDescent(0),
        lambda: GradientDescent(10**6),
        lambda: GradientDescent(True),
        lambda: GradientDescent(5, step_size=2.0),
        lambda: GradientDescent(5, step_size=0.0),
        lambda: GradientDescent(5, step_size=math.nan),
        lambda: Newton(0),
        lambda: Newton(5, damping=1.5),
        lambda: Newton(5, damping=0.0),
        lambda: SGD(0),
        lambda: SGD(5, batch=0),
        lambda: SGD(5, shown=0),
        lambda: SGD(5, radius=-1.0),
        lambda: Newton(5, radius="2"),
        lambda: chosen_solver("adam"),
        lambda: chosen_solver(3),
    ],
)
def test_bad_solvers_are_refused(make):
    with pytest.raises(dp.InvalidParameter):
        make()


def test_bad_spends_are_refused_before_anything_is_spent():
    session = session_on(columns(50))
    entries = len(list(session.ledger.entries()))
    for options in (
        {"spend": dp.PureDP(1)},
        {"spend": dp.GDP(1e-6)},
        {"solver": "nothing"},
        {"solver": SGD(delta=0.5)},
        {"solver": SGD(delta=0.0)},
        {"solver": SGD(100_000, delta=1e-7), "spend": dp.GDP(0.01)},
        {"key": ""},
    ):
        with pytest.raises((dp.InvalidParameter, dp.NoTheorem)):
            dp.robust(session, "y ~ x", **({"spend": dp.GDP(1), "solver": "gradient"} | options))
    assert len(list(session.ledger.entries())) == entries


def test_names_choose_solvers_and_the_radius_follows_the_columns():
    assert chosen_solver(None) is None
    assert {name: type(chosen_solver(name)) for name in SOLVERS} == {
        "gradient": GradientDescent,
        "newton": Newton,
        "damped newton": Newton,
        "sgd": SGD,
    }
    schema = Schema(SCHEMA)
    assert plain_radius(asked_model(schema, "y ~ x", "robust")[0]) == pytest.approx(
        math.sqrt(1 + 1 / 3)
    )
    assert plain_radius(asked_model(schema, "y ~ x + g", "robust")[0]) == pytest.approx(
        math.sqrt(2 + 1 / 3)
    )


# ── noise propagation ─────────────────────────────────────────────────────────────────────────────


def path(solver, eta, gradients, **more):
    ones = np.ones(gradients)
    return Path(solver, eta, ones, ones, np.zeros(2), np.zeros(2), np.zeros(gradients), **more)


@pytest.mark.parametrize(
    ("eta", "expected"), [(0.3, (0.1765, 0.5236)), (1.0, (1.0, 1.961)), (1.6, (4.0, 3.51))]
)
def test_gradient_noise_is_the_finite_sum_of_H4(eta, expected):
    """The numbers of reference.md H4, H = diag(1, 0.3), s = 1."""
    covariance = propagated(path("gradient", eta, 400), np.array([1.0, 0.3]), np.eye(2))
    assert np.diag(covariance) == pytest.approx(expected, rel=2e-3)
    assert np.diag(
        propagated(path("gradient", eta, 1), np.array([1.0, 0.3]), np.eye(2))
    ) == pytest.approx([eta**2, eta**2])


def test_newton_noise_is_the_finite_sum_of_H5():
    for eta, steps in ((1.0, 5), (0.5, 3), (0.5, 60)):
        factor = eta**2 * (1 - (1 - eta) ** (2 * steps)) / (1 - (1 - eta) ** 2)
        covariance = propagated(path("newton", eta, steps), np.array([2.0, 0.5]), np.eye(2))
        assert np.diag(covariance) == pytest.approx([factor / 4, factor / 0.25])


def test_the_mean_of_sgd_iterates_has_the_stated_covariance():
    eta, steps, averaged, curvature = 0.2, 60, 25, np.array([1.0, 0.3])
    found = propagated(
        path("sgd", eta, 1, steps=steps, averaged=averaged, batch=10.0, rate=0.4),
        curvature,
        np.array([[2.0, 0.5], [0.5, 1.0]]),
    )
    spread = np.eye(2) + 0.6 * np.array([[2.0, 0.5], [0.5, 1.0]]) / 10
    weights = np.array(
        [
            [
                sum(
                    eta * (1 - eta * value) ** (t - j)
                    for t in range(max(j, steps - averaged + 1), steps + 1)
                )
                / averaged
                for value in curvature
            ]
            for j in range(1, steps + 1)
        ]
    )
    assert found == pytest.approx(spread * (weights.T @ weights))


@functools.cache
def repeated(solver):
    """Fits of one data set with other noise each time:
    (estimate, privacy error, propagated noise alone).
    """
    options = {
        "gradient": GradientDescent(12),
        "newton": Newton(4),
        "damped newton": Newton(6, damping=0.5),
        "sgd": SGD(60, batch=200, delta=1e-7),
    }
    dataset, rows = dp.from_arrays(columns(3000, seed=3), schema=SCHEMA, neighbors=dp.Replace()), []
    for seed in range(80):
        result = fit(
            seeded_session(dataset, dp.ApproxDP(40, 1e-4), f"{solver}/{seed}"),
            "robust",
            options[solver],
        )
        rows.append(
            (
                result.params,
                result.privacy_errors,
                np.sqrt(np.diag(result._scale[1] @ result.fitted.noise @ result._scale[1].T)),
            )
        )
    return [np.array(part) for part in zip(*rows, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("solver", FAST)
def test_propagated_noise_is_that_of_the_procedure(solver):
    """The spread of estimates over 80 draws of noise against what each fit says of itself:
    the standard deviation of such a ratio is 8 %.
    """
    params, privacy, noise = repeated(solver)
    ratio = np.median(noise, axis=0) / params.std(axis=0, ddof=1)
    assert ratio == pytest.approx(np.ones(2), abs=0.25)
    assert (np.median(privacy, axis=0) >= 0.85 * params.std(axis=0, ddof=1)).all()


@functools.cache
def many(solver_name, *, n=400, reps=60):
    """Coverage of own and of the lectures' intervals where noise dominates."""
    truth, own, lecture = np.array([0.5, 1.0]), [], []
    for seed in range(reps):
        solver = (
            GradientDescent(45, step_size=0.4) if solver_name == "gradient" else FAST[solver_name]
        )
        result = fit(
            session_on(columns(n, seed=seed), seed=f"cover/{seed}"),
            "robust",
            solver,
            spend=dp.GDP(0.6),
        )
        for kept, interval in (
            (own, result.confidence_interval()),
            (lecture, result.lecture_interval()),
        ):
            kept.append((interval[:, 0] <= truth) & (truth <= interval[:, 1]))
    return np.mean(own, axis=0), np.mean(lecture, axis=0)


@pytest.mark.slow
def test_intervals_cover_and_the_lectures_correction_does_not():
    own, lecture = many("gradient")
    assert own.min() >= 0.88
    assert lecture[1] <= own[1] - 0.05
    assert lecture[1] <= 0.9


@pytest.mark.slow
def test_newton_intervals_cover():
    own, _ = many("newton")
    assert own.min() >= 0.87


# ── results ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("name", ["robust", "logistic", "poisson"])
@pytest.mark.parametrize("solver", FAST)
def test_results_have_the_usual_verbs_and_come_back_from_json(name, solver):
    result = fit(session_on(columns(400)), name, solver)
    assert isinstance(result, ClassicalResult)
    assert result.names == ("intercept", "x")
    assert result.std_errors**2 == pytest.approx(
        result.sampling_errors**2 + result.privacy_errors**2
    )
    assert np.diag(result.cov) == pytest.approx(result.std_errors**2)
    assert result.trajectory[-1] == pytest.approx(result.params, rel=1e-3, abs=1e-4)
    low, high = result.confidence_interval(0.9).T
    assert (low < result.params).all()
    assert (result.params < high).all()
    again = dp.from_json(result.to_json())
    assert again == result
    assert str(again.summary()) == str(result.summary())
    assert "NOT PRIVATE" in str(result)
    assert ("gradient descent" in str(result)) == (solver in ("gradient", "sgd"))
    assert result.test(["x"]).degrees == 1
    assert result.predict([[1.0, 0.5]]).shape == (1, 3)


def test_results_draw_themselves():
    result = fit(session_on(columns(300)), "robust", "gradient")
    assert result.plot().axes
    assert result.plot_trajectory().axes
    assert len(result.records()) == 2
    assert (
        "converge"
        in str(
            fit(session_on(columns(3000)), "robust", GradientDescent(2), spend=dp.GDP(5))
        ).lower()
    )
    with pytest.raises(dp.NoTheorem):
        fit(session_on(columns(300)), "robust", "sgd").lecture_interval()


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("kind", ["none", "one", "constant", "missing", "extreme"])
def test_no_data_set_makes_a_fit_fail(kind, neighbors):
    n = {"none": 0, "one": 1}.get(kind, 60)
    data = columns(n)
    if kind == "constant":
        data = {name: np.full(60, values[0]) for name, values in data.items()}
    if kind == "missing":
        data |= {
            "x": np.full(60, math.nan),
            "y": np.full(60, math.nan),
            "b": [None] * 60,
            "g": [None] * 60,
        }
    if kind == "extreme":
        data |= {
            "x": np.where(np.arange(60) % 2 == 0, -1.0, 1.0),
            "y": np.where(np.arange(60) % 2 == 0, math.inf, -math.inf),
            "b": np.arange(60) % 2 == 0,
        }
    for name in FORMULAS:
        for solver in FAST:
            if solver == "sgd" and n == 0 and neighbors == dp.Replace():
                with pytest.raises(dp.InvalidParameter, match="no rows"):  # their number is public
                    fit(session_on(data, neighbors), name, solver)
                continue
            result = fit(session_on(data, neighbors), name, solver)
            assert np.isfinite(result.params).all()
            assert (np.isfinite(result.std_errors) & (result.std_errors > 0)).all()
            assert str(result)
