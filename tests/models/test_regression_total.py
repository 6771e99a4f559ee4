"""Whatever the data hold, a fit gives finite numbers and wide intervals;
no exception depends on data.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from regression_data import model_of, require_answers, sample, session_of

import discreet as dp
from discreet.models.classical import fit_classical
from discreet.models.fit import fit_regression
from discreet.models.solvers import GradientDescent, Newton

TERMS = ("1", "x", "z", "d[b]", "d[c]", "x:d[b]")
FAMILIES = ("robust", "ols", "logistic", "poisson")


def strange(kind):
    data = sample({"empty": 0, "one row": 1, "fewer rows than columns": 4}.get(kind, 300), 11)
    if kind == "constant column":
        data["x"][:] = 1.0
    if kind == "zero column":
        data["x"][:] = 0.0
    if kind == "duplicate column":
        data["z"] = 5 + 5 * data["x"] / 4
    if kind == "levels without rows":
        data["d"] = np.array(["a"] * 300)
    if kind == "constant response":
        data["y"][:], data["b"][:], data["k"][:] = 3.0, True, 0
    if kind == "response at its bound":
        data["y"][:], data["b"][:], data["k"][:] = 1e9, False, 999
    if kind == "separated":
        data["b"] = data["x"] > 0
        data["y"], data["k"] = np.where(data["b"], 20.0, -20.0), np.where(data["b"], 20, 0)
    if kind == "all missing":
        data |= {
            "x": np.full(300, np.nan),
            "y": np.full(300, np.nan),
            "d": np.array([None] * 300, dtype=object),
        }
    return data


KINDS = (
    "empty",
    "one row",
    "fewer rows than columns",
    "constant column",
    "zero column",
    "duplicate column",
    "levels without rows",
    "constant response",
    "response at its bound",
    "separated",
    "all missing",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_strange_data_give_finite_answers(kind):
    data = strange(kind)
    for family in FAMILIES:
        for mu, neighbors in (
            (0.001, dp.Replace()),
            (1.0, dp.Replace()),
            (1.0, dp.AddRemove(unit="id", max_rows=2)),
            (300.0, dp.Replace()),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fit = fit_regression(
                    session_of(data, 12, mu=mu, neighbors=neighbors),
                    model_of(family, TERMS),
                    family,
                    spend=dp.GDP(mu),
                )
                interval = fit.confidence_interval()
                assert np.isfinite(interval).all()
                assert np.isfinite(
                    [*fit.p_values, *fit.std_errors, fit.condition_number, fit.scale]
                ).all()
                assert str(fit.summary())
    assert np.all(interval[:, 1] >= interval[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize("terms", [("1",), ("x",), ("1", "x", "z", "d[b]")], ids=len)
@pytest.mark.parametrize("family", FAMILIES)
def test_budgets_that_say_nothing_give_finite_answers_by_every_solver(family, terms):
    """Few rows, a private number of them and hardly any budget: curvatures read far beyond what is
    possible, and nothing overflows or warns.
    """
    for solver in (None, GradientDescent(60), Newton(3)):
        for mu, neighbors in ((0.005, dp.AddRemove(unit="id", max_rows=2)), (0.03, dp.AddRemove())):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                session = session_of(sample(5, 31), 32, neighbors=neighbors, budget=dp.GDP(mu))
                model = model_of(family, terms)
                fit = (
                    fit_regression(session, model, family, spend=dp.GDP(mu))
                    if solver is None
                    else fit_classical(session, model, family, solver, spend=dp.GDP(mu))
                )
                require_answers(fit)
                assert solver is not None or not fit.fitted.unbounded


@pytest.mark.slow
def test_what_cannot_be_known_has_wide_intervals():
    """A column that never moves, two columns that are the same,
    and levels without rows are not pinned down.
    """
    for kind, place in (("zero column", 1), ("duplicate column", 1), ("levels without rows", 3)):
        fit = fit_regression(
            session_of(strange(kind), 13), model_of("robust", TERMS), "robust", spend=dp.GDP(1.0)
        )
        usual = fit_regression(
            session_of(sample(300, 11), 13), model_of("robust", TERMS), "robust", spend=dp.GDP(1.0)
        )
        assert fit.std_errors[place] > 5 * usual.std_errors[place]


def test_a_fit_without_budget_says_so_and_is_wide():
    fit = fit_regression(
        session_of(sample(100, 14), 14, mu=0.02), model_of(), "robust", spend=dp.GDP(0.02)
    )
    assert fit.noise_class == "not resolvable at this budget"
    assert "Noise dominates" in str(fit.summary())
    low, high = fit.confidence_interval().T
    assert np.all((low < 0) & (high > 0))


def test_separated_outcomes_are_not_sold_as_certain():
    data = sample(4000, 15)
    data["b"] = data["x"] > 0
    fit = fit_regression(session_of(data, 15), model_of("logistic"), "logistic", spend=dp.GDP(1.0))
    low, high = fit.confidence_interval()[1]
    assert high - low > 3 or not fit.converged
    assert high > 4
