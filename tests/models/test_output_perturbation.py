"""Output perturbation by influence functions has no finite-sample guarantee: it is kept away from
sessions, and its counterexample is kept here (reference.md G2).
"""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
import discreet.models.uncertified as module
from discreet.models.uncertified import UncertifiedEstimate, huber_regression, output_perturbation

CENTRE = np.ones((101, 1))
FIRST = np.r_[np.full(50, -1000.0), 0.0, np.full(50, 1000.0)]


def test_the_counterexample_of_the_lectures_recipe():
    """One row replaced moves the estimate by 998.7, while the noise shrinks from 75.9 to 1.49:
    a single draw tells the two data sets apart.
    """
    second = FIRST.copy()
    second[50] = -1000.0
    one, two = (
        output_perturbation(CENTRE, values, np.zeros(1), epsilon=1, delta=1e-6)
        for values in (FIRST, second)
    )
    assert one.params[0] == pytest.approx(0.0, abs=1e-6)
    assert two.params[0] == pytest.approx(-998.68, abs=0.01)
    assert (one.noise_sd, two.noise_sd) == (
        pytest.approx(75.94, abs=0.01),
        pytest.approx(1.489, abs=0.001),
    )
    # no (1, 1e-6) guarantee survives this
    assert abs(one.params[0] - two.params[0]) > 13 * one.noise_sd


def test_results_say_that_they_are_not_certified():
    result = output_perturbation(CENTRE, FIRST, np.zeros(1), epsilon=1, delta=1e-6)
    assert isinstance(result, UncertifiedEstimate)
    assert result.certified is False
    assert "NOT CERTIFIED" in str(result)
    assert not hasattr(result, "guarantee")


def test_it_never_touches_a_session_or_a_ledger():
    data = dp.from_arrays({"x": FIRST}, schema={"x": dp.Real(-1000, 1000)}, neighbors=dp.Replace())
    session = data.open(budget=dp.GDP(1))
    for thing in (data, session, session.ledger):
        with pytest.raises(dp.NoTheorem, match="ledger"):
            output_perturbation(thing, FIRST, np.zeros(1), epsilon=1, delta=1e-6)
    imported = {
        node.module
        for node in ast.walk(ast.parse(Path(module.__file__).read_text()))
        if isinstance(node, ast.ImportFrom)
    }
    assert {name for name in imported if name and name.startswith("discreet")} == {
        "discreet.errors",
        "discreet.inference.results.laws",
    }


@pytest.mark.parametrize(
    "change",
    [{"epsilon": 0}, {"delta": 1.0}, {"delta": 0.0}, {"c": 0.0}, {"epsilon": float("nan")}],
)
def test_bad_parameters_are_refused(change):
    with pytest.raises(dp.InvalidParameter):
        output_perturbation(CENTRE, FIRST, np.zeros(1), **({"epsilon": 1, "delta": 1e-6} | change))


def test_bad_arrays_are_refused():
    for rows, response, noise in (
        (CENTRE[:5], FIRST, np.zeros(1)),
        (CENTRE, FIRST, np.zeros(2)),
        (CENTRE, np.r_[FIRST[1:], np.nan], np.zeros(1)),
        (CENTRE, ["a"] * 101, np.zeros(1)),
    ):
        with pytest.raises(dp.InvalidParameter):
            output_perturbation(rows, response, noise, epsilon=1, delta=1e-6)


def test_the_estimate_solves_hubers_equation():
    rng = np.random.default_rng(2)
    x = np.column_stack([np.ones(300), rng.normal(size=300)])
    y = x @ [1.0, 2.0] + rng.standard_t(3, 300)
    beta = huber_regression(x, y, 1.345)
    assert np.abs(x.T @ np.clip(y - x @ beta, -1.345, 1.345)).max() < 1e-6 * 300
    assert beta == pytest.approx([1.0, 2.0], abs=0.3)
