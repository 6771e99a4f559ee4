"""dp.m_estimate: estimating functions of the user's own, as public tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

import discreet as dp
from discreet.models.m_estimate import tabulated_mean, tabulated_psi
from discreet.models.scales import tabulated_second_moment
from discreet.specs.estimating.families import (
    Huber,
    Logistic,
    family_from_dict,
    psi_bound,
    slope_bound,
)
from discreet.specs.estimating.tables import GRID, PSI
from discreet.specs.estimating.tabulated import KNOTS, TabulatedMean, TabulatedResidual
from discreet.testing import seeded_session


def huber(r):
    return max(-1.345, min(1.345, r))


def probit(eta):
    return math.erfc(-eta / math.sqrt(2)) / 2


def session_of(n=3000, *, seed="m", draw=1, mu=40.0):
    rng = np.random.default_rng(draw)
    x = np.clip(rng.normal(size=n), -3, 3)
    columns = {
        "x": x,
        "y": 1 + x + rng.normal(size=n),
        "b": rng.random(n) < ndtr(0.3 + 0.8 * x),
        "k": np.minimum(rng.poisson(np.log1p(np.exp(1 + x))), 20),
    }
    schema = {"x": dp.Real(-3, 3), "y": dp.Real(-6, 8), "b": dp.Boolean(), "k": dp.Integer(0, 20)}
    return seeded_session(
        dp.from_arrays(columns, schema=schema, neighbors=dp.Replace()), dp.GDP(mu), seed
    )


def test_a_tabulated_huber_function_is_hubers():
    """Values agree with the built-in table to its last digit, bounds to the rounding at c,
    the fits to their noise.
    """
    family, built_in = tabulated_psi(huber, 2), Huber(1.345)
    ours, theirs = family.tables(), built_in.tables()
    inside = np.arange(-GRID, GRID + 1)
    assert np.abs(ours.psi[inside + ours.reach] - theirs.psi[inside + theirs.reach]).max() <= 1
    assert abs(psi_bound(family) - psi_bound(built_in)) <= 1
    assert slope_bound(family) == slope_bound(built_in) == PSI
    assert tabulated_second_moment(family) == pytest.approx(0.7102, abs=2e-3)
    session = session_of(mu=200.0)
    mine, usual = (
        dp.m_estimate(session, "y ~ x", psi=huber, reach=2, spend=dp.GDP(80)),
        dp.robust(session, "y ~ x", c=1.345, spend=dp.GDP(80)),
    )
    assert np.abs(mine.params - usual.params).max() < 0.002
    np.testing.assert_allclose(mine.std_errors, usual.std_errors, rtol=0.05)


def test_tables_hold_their_bounds_and_round_trip():
    for family in (
        tabulated_psi(math.tanh),
        tabulated_psi(lambda r: r, 10),
        tabulated_mean(probit),
        tabulated_mean(lambda eta: 20 * probit(eta), 4, 20.0),
    ):
        tables = family.tables()
        assert family_from_dict(family.to_dict()) == family
        assert hash(family_from_dict(family.to_dict())) == hash(family)
        assert tables.slope.min() >= 0
        assert tables.slope[0] == tables.slope[-1] == 0
        assert tables.slope.max() == slope_bound(family)
        assert len(tables.slope) == 2 * tables.reach + 1
    logistic = tabulated_mean(lambda eta: 1 / (1 + math.exp(-eta)))
    places = np.arange(-4 * GRID, 4 * GRID + 1)
    exact = Logistic().tables()
    assert (
        np.abs(logistic.tables().mean[places + 8 * GRID] - exact.mean[places + exact.reach]).max()
        <= 1
    )
    # of 2**13: straight lines of 1/64
    assert (
        np.abs(logistic.tables().slope[places + 8 * GRID] - exact.slope[places + exact.reach]).max()
        <= 8
    )


def test_user_code_sees_public_arguments_alone():
    """The function is called on multiples of 1/64, before anything is spent, and never after."""
    seen, session = [], session_of(50)
    left = str(session.ledger)

    def spying(r):
        seen.append(r)
        assert str(session.ledger) == left
        return math.tanh(r)

    dp.m_estimate(session, "y ~ x", psi=spying, spend=dp.GDP(1))
    assert seen == [knot / KNOTS for knot in range(-4 * KNOTS, 4 * KNOTS + 1)]
    assert str(session.ledger) != left


@pytest.mark.slow
def test_probit_and_a_count_model_cover():
    """The mean of z-scores over runs is near 0 and few are far out:
    limits with a false-alarm probability below 1e-9.
    """
    z = []
    for run in range(30):
        fit = dp.m_estimate(
            session_of(2000, seed=run, draw=run), "b ~ x", mean=probit, spend=dp.GDP(2)
        )
        z.append((fit.params - [0.3, 0.8]) / fit.std_errors)
    assert np.abs(np.mean(z, axis=0)).max() < 6.2 / math.sqrt(30)
    assert (np.abs(z) < 6.2).all()
    assert fit.predict([[1, 0]])[0, 0] == pytest.approx(probit(fit.params[0]), abs=1e-3)
    counts = dp.m_estimate(
        session_of(4000), "k ~ x", mean=lambda eta: math.log1p(math.exp(eta)), spend=dp.GDP(8)
    )
    assert (np.abs(counts.params - [1, 1]) < 6.2 * counts.std_errors).all()
    assert dp.from_json(counts.to_json()).predict([[1, 0]])[0, 0] == pytest.approx(
        math.log1p(math.exp(counts.params[0])), abs=0.02
    )


def test_a_quantile_like_function_finds_the_upper_part():
    """ψ with unequal sides: its solution for normal errors lies where theory says; the start is
    moved there, so the fit converges.
    """

    def upper(r):
        return 0.3 + 0.5 * max(-1.0, min(1.0, r))

    fit = dp.m_estimate(session_of(6000), "y ~ x", psi=upper, spend=dp.GDP(4))
    assert fit.converged
    nodes = np.linspace(-8, 8, 4001)
    mass = np.exp(-(nodes**2) / 2) / np.exp(-(nodes**2) / 2).sum()
    shifts = np.linspace(0, 3, 3001)
    means = [mass @ (0.3 + 0.5 * np.clip((nodes - shift) / fit.scale, -1, 1)) for shift in shifts]
    target = 1 + shifts[int(np.argmin(np.abs(means)))]
    assert abs(fit.params[0] - target) < 6.2 * fit.std_errors[0]
    assert abs(fit.params[1] - 1) < 6.2 * fit.std_errors[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver",
    [dp.GradientDescent(60), "newton", dp.SGD(200, batch=400, delta=1e-7)],
    ids=["gradient", "newton", "sgd"],
)
def test_the_lectures_solvers_take_them_too(solver):
    """Each finds what the functions were made for; the spread of a z-score stays within 6.2
    (false-alarm probability below 1e-8 a number).
    """
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, 3000)
    columns = {
        "x": x,
        "y": 0.5 + x + 0.3 * rng.normal(size=3000),
        "b": rng.random(3000) < ndtr(0.3 + 0.8 * x),
        "k": np.minimum(rng.poisson(np.log1p(np.exp(1 + x))), 20),
    }
    schema = {"x": dp.Real(-1, 1), "y": dp.Real(-2, 3), "b": dp.Boolean(), "k": dp.Integer(0, 20)}
    session = seeded_session(
        dp.from_arrays(columns, schema=schema, neighbors=dp.Replace()),
        dp.ApproxDP(90, 1e-4),
        "solver",
    )
    for formula, truth, options in (
        ("y ~ x", [0.5, 1], {"psi": math.tanh}),
        ("b ~ x", [0.3, 0.8], {"mean": probit}),
        ("k ~ x", [1, 1], {"mean": lambda eta: math.log1p(math.exp(eta))}),
    ):
        fit = dp.m_estimate(session, formula, spend=dp.GDP(4), solver=solver, **options)
        assert (np.abs(fit.params - truth) < 6.2 * fit.std_errors).all()
        assert fit.facts.solver in ("gradient", "newton", "sgd")
    assert fit.std_errors.max() < 1


BAD = [
    {"psi": None},
    {"psi": math.tanh, "mean": probit},
    {"psi": 3},
    {"psi": lambda r: -r},
    {"psi": lambda r: 0.0},
    {"psi": lambda r: r**3},
    {"psi": lambda r: 1 / r},
    {"psi": lambda r: math.nan},
    {"psi": lambda r: "x"},
    {"psi": math.exp},
    {"psi": lambda r: 1.0 * (r > 0) - 0.5},
    {"psi": lambda r: r * math.exp(-r * r)},
    {"psi": math.tanh, "reach": 0},
    {"psi": math.tanh, "reach": 99},
    {"psi": math.tanh, "reach": 1.5},
    {"psi": lambda r: max(-0.01, min(0.01, r))},
    {"mean": probit},
]


@pytest.mark.parametrize("options", BAD, ids=range(len(BAD)))
def test_what_cannot_be_used_is_refused_before_spending(options):
    session = session_of(20)
    left = str(session.ledger)
    with pytest.raises(dp.InvalidParameter):
        dp.m_estimate(session, "y ~ x", spend=dp.GDP(1), **options)
    assert str(session.ledger) == left


def test_more_refusals():
    session = session_of(20)
    left = str(session.ledger)
    for formula, options in (
        ("b ~ x", {"psi": math.tanh}),
        ("b ~ x", {"mean": lambda eta: eta}),
        ("b ~ x", {"mean": lambda eta: 0.5}),
        ("k ~ x", {"mean": lambda eta: 50.0 if eta > 0 else 0.0}),
    ):
        with pytest.raises(dp.InvalidParameter):
            dp.m_estimate(session, formula, spend=dp.GDP(1), **options)
    with pytest.raises(dp.InvalidParameter, match="not a session"):
        dp.m_estimate("session", "y ~ x", psi=math.tanh, spend=dp.GDP(1))
    for values in ((0, 1), tuple(range(0, -129, -1)), (0.5,) * 129, [0] * 129):
        with pytest.raises(dp.InvalidParameter):
            TabulatedResidual(values)
    with pytest.raises(dp.InvalidParameter):
        TabulatedMean(tuple(range(-64, 65)))
    assert str(session.ledger) == left


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 2])
def test_hopeless_data_give_finite_answers(n):
    for formula, options in (
        ("y ~ x", {"psi": math.tanh}),
        ("b ~ x", {"mean": probit}),
        ("k ~ x", {"mean": lambda eta: math.log1p(math.exp(eta))}),
    ):
        fit = dp.m_estimate(session_of(n, seed=n), formula, spend=dp.GDP(1), **options)
        assert np.isfinite(fit.confidence_interval()).all()
