"""Must-hold 6 as one product: strange data × every front end × every solver × small,
usual and huge budgets × both relations.

Outcomes are documented (docs/how-to/regression.md, *Data that cannot answer*): a fit with finite
numbers, wide intervals where nothing can be known, and never an exception, a warning or another set
of releases because of what the data hold.
"""

from __future__ import annotations

import functools
import math
import warnings

import numpy as np
import pytest
from regression_data import require_answers

import discreet as dp
from discreet.inference.regression.fit import mean_response
from discreet.testing import seeded_session

SCHEMA = {
    "x": dp.Real(-2, 2),
    "z": dp.Real(0, 1),
    "g": dp.Category(["a", "b", "c"]),
    "y": dp.Real(-3, 3),
    "b": dp.Boolean(),
    "k": dp.Integer(0, 9),
}
RIGHT = "x + z + g"
PROBIT = functools.partial(lambda eta: math.erfc(-eta / math.sqrt(2)) / 2)
FRONTS = {
    "ols": (dp.ols, "y", {}),
    "moments": (dp.ols, "y", {"method": "moments"}),
    "robust": (dp.robust, "y", {}),
    "logistic": (dp.logistic, "b", {}),
    "level": (dp.logistic, "C(g, base='b')", {}),
    "poisson": (dp.poisson, "k", {}),
    "psi": (dp.m_estimate, "y", {"psi": math.tanh}),
    "mean": (dp.m_estimate, "b", {"mean": PROBIT}),
    "count mean": (dp.m_estimate, "k", {"mean": lambda eta: min(9.0, math.exp(eta))}),
}
# most rows are in a batch: priced without a loss distribution, which is quick
SOLVERS = {
    "A": None,
    "gradient": dp.GradientDescent(3),
    "newton": dp.Newton(2),
    "damped newton": dp.Newton(2, damping=0.5),
    "sgd": dp.SGD(4, batch=30, delta=1e-6),
}
BUDGETS = (0.05, 1.0, 1000.0)
RELATIONS = (dp.Replace(), dp.AddRemove())
UNITS = (dp.Replace(unit="id", max_rows=2), dp.AddRemove(unit="id", max_rows=2))
ROWS = 40


def usual(n=ROWS):
    rng = np.random.default_rng(1)
    return {
        "x": rng.uniform(-2, 2, n),
        "z": rng.uniform(0, 1, n),
        "g": rng.choice(["a", "b", "c"], n),
        "y": rng.uniform(-2, 2, n),
        "b": rng.random(n) < 0.5,
        "k": rng.integers(0, 5, n),
        "id": np.arange(n) // 2,
    }


def strange(kind):
    data = usual({"no rows": 0, "one row": 1, "fewer rows than columns": 3}.get(kind, ROWS))
    if kind == "constant column":
        data["x"][:] = 1.5
    if kind == "singular design":
        data["z"] = (data["x"] + 2) / 4
    if kind == "empty level":
        data["g"] = np.array(["a"] * ROWS)
    if kind == "separated":
        data["b"], data["g"], data["y"], data["k"] = (
            data["x"] > 0,
            np.where(data["x"] > 0, "b", "a"),
            np.where(data["x"] > 0, 3.0, -3.0),
            np.where(data["x"] > 0, 9, 0),
        )
    if kind == "one class":
        data["b"][:], data["g"], data["k"][:], data["y"][:] = True, np.array(["b"] * ROWS), 0, 3.0
    if kind == "all missing":
        data |= {
            name: np.array([None] * ROWS, dtype=object) for name in ("x", "z", "g", "y", "b", "k")
        }
    if kind == "not numbers":
        data |= {
            "x": np.where(np.arange(ROWS) % 2 == 0, math.inf, -math.inf),
            "y": np.full(ROWS, math.nan),
            "k": np.full(ROWS, -(10.0**300)),
            "g": np.array(["nobody"] * ROWS),
        }
    return data


KINDS = (
    "no rows",
    "one row",
    "fewer rows than columns",
    "constant column",
    "singular design",
    "empty level",
    "separated",
    "one class",
    "all missing",
    "not numbers",
)


def fit_of(data, front, solver, budget, neighbors):
    estimator, response, options = FRONTS[front]
    right = "x + z" if front == "level" else RIGHT
    session = seeded_session(
        dp.from_arrays(data, schema=SCHEMA, neighbors=neighbors),
        dp.GDP(1000) if budget > 100 else dp.ApproxDP(90, 1e-4),
        f"{front}{solver}{budget}",
    )
    return estimator(
        session,
        f"{response} ~ {right}",
        spend=dp.GDP(budget),
        **options,
        **({} if solver == "A" else {"solver": SOLVERS[solver]}),
    )


@functools.cache
def steps_of_usual_data(rows, front, solver, budget, neighbors):
    """The names of the releases and of the coefficients that unsuspicious data of as many rows
    have.
    """
    fit = fit_of(usual(rows), front, solver, budget, neighbors)
    return [release.description.step for release in fit.releases], fit.names


def cases(kind, front):
    """The whole product for one kind of data and front end: (solver, budget, relation), but for
    what is refused from public facts alone.
    """
    for solver in SOLVERS if front != "moments" else ("A",):
        for neighbors in (*RELATIONS, *(UNITS if solver != "sgd" else ())):
            for budget in BUDGETS:
                if solver != "sgd" or (
                    budget <= 100 and (kind != "no rows" or neighbors != dp.Replace())
                ):
                    yield solver, budget, neighbors


def covering(kind, front):
    """Part of the product: two of the solvers, each with a budget and a relation, which change
    from test to test; run this file for all of it.
    """
    turn, row = KINDS.index(kind), list(FRONTS).index(front)
    every = list(cases(kind, front))
    solvers = list(dict.fromkeys(case[0] for case in every))
    for place, solver in enumerate(solvers):
        if len(solvers) == 1 or (turn + row + place) % len(solvers) < 2:
            own = [case for case in every if case[0] == solver]
            yield own[(2 * turn + row) % len(own)]


def check(kind, front, solver, budget, neighbors):
    """One fit: finite numbers, intervals of positive width, no warning, and the same steps as data
    without anything strange would have.
    """
    data = strange(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dp.MayNotConverge)  # decided by public facts
        fit = fit_of(data, front, solver, budget, neighbors)
        require_answers(fit)
        estimate, *ends = fit.predict(np.ones(len(fit.names))).ravel()
        numbers = [*fit.trajectory.ravel(), fit.condition_number, fit.scale, estimate]
        assert np.isfinite(numbers).all(), (solver, neighbors, budget)
        whole = mean_response(fit.family, np.array([-np.inf, np.inf])).tolist()
        assert ends == whole if fit.fitted.unbounded else np.isfinite(ends).all()
        assert 0 <= fit.test(fit.names[1:]).p_value <= 1
        if (budget, neighbors) == (1.0, dp.Replace()):
            assert (
                [release.description.step for release in fit.releases],
                fit.names,
            ) == steps_of_usual_data(len(data["x"]), front, solver, budget, neighbors)
            assert str(fit.summary())


@pytest.mark.slow
@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_data_set_makes_a_fit_fail(kind, front):
    chosen = list(covering(kind, front))
    for solver, budget, neighbors in chosen:
        check(kind, front, solver, budget, neighbors)
    assert chosen


@pytest.mark.parametrize(
    "read",
    [
        lambda kind, front, case: case,
        lambda kind, front, case: (kind, front),
        lambda kind, front, case: (kind, case[0]),
        lambda kind, front, case: (front, case[0]),
    ],
    ids=["budgets and relations of solvers", "data of models", "data of solvers", "models"],
)
def test_the_part_that_is_run_has_all_pairs(read):
    pairs = [(kind, front) for kind in KINDS for front in FRONTS]
    seen = {read(*pair, case) for pair in pairs for case in covering(*pair)}
    assert seen == {read(*pair, case) for pair in pairs for case in cases(*pair)}


@pytest.mark.slow
@pytest.mark.parametrize("front", [front for front in FRONTS if front != "moments"])
def test_small_budgets_give_wide_intervals(front):
    """40 rows at μ = 0.05 say nothing: the interval of a slope holds 0 and both signs of a large
    effect.
    """
    for solver in ("A", "newton"):
        fit = fit_of(usual(), front, solver, 0.05, dp.Replace())
        low, high = fit.confidence_interval()[fit.names.index("x")]
        assert low < -0.5 < 0.5 < high


def test_sgd_of_a_public_zero_of_rows_is_refused_before_spending():
    with pytest.raises(dp.InvalidParameter, match="no rows"):
        fit_of(strange("no rows"), "robust", "sgd", 1.0, dp.Replace())


if __name__ == "__main__":
    for _kind in KINDS:
        for _front in FRONTS:
            for _case in cases(_kind, _front):
                check(_kind, _front, *_case)
        print(_kind, "is total")
