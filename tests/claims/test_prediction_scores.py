"""Claim: a score of predictions is an exact sum of a function of each row, which moves no further
than stated, and is alike on every engine.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.models.regression import asked_model
from discreet.models.trials.scores import CAP, HALF_RANGES, LEVELS, score_query
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Integer, Real, Schema
from discreet.specs.estimating.networks import Agreement
from discreet.specs.estimating.scores import PredictionScore
from discreet.specs.registry import query_from_dict
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.release import PublicFacts

SCHEMA = Schema({"y": Boolean(), "t": Real(0, 10), "a": Real(-1, 1), "b": Integer(0, 4)})
FAMILY = {"accuracy": "logistic", "log-loss": "logistic", "squared error": "ols"}
TABLES = ("log-loss", "squared error")  # right decisions are counted as dp.accuracy does
RELATIONS = (
    Replace(),
    AddRemove(),
    Replace(unit="id", max_rows=2),
    AddRemove(unit="id", max_rows=2),
)


def rows_of(count: int, seed: int) -> dict[str, list]:
    rng = np.random.default_rng(seed)
    return {
        "id": list(range(count)),
        "y": [bool(value) for value in rng.random(count) < 0.5],
        "t": list(rng.uniform(0, 10, count)),
        "a": list(rng.uniform(-1, 1, count)),
        "b": [int(value) for value in rng.integers(0, 5, count)],
    }


def query_of(score: str, beta: np.ndarray, neighbors=RELATIONS[0], count=8, where=None):
    response = "t" if score == "squared error" else "y"
    model, _ = asked_model(SCHEMA, f"{response} ~ a + b", FAMILY[score], where)
    return score_query(PublicFacts(SCHEMA, neighbors, count), model, beta, score)


def statistic(query: PredictionScore | Agreement, rows: dict[str, list], neighbors) -> int:
    engine = memory_engine_from_arrays(rows, SCHEMA, neighbors)
    return query.assemble(execute(engine, query.plan()))[0]


def expected(score: str, beta: np.ndarray, rows: dict[str, list]) -> float:
    """The score in real numbers, from its definition."""
    x = np.stack([np.ones(len(rows["a"])), rows["a"], np.array(rows["b"]) / 2 - 1], axis=1)
    eta, yes = x @ beta, np.array(rows["y"])
    if score == "accuracy":
        return float(((eta > 0) == yes).sum())
    if score == "log-loss":
        loss = np.log1p(np.exp(-np.where(yes, eta, -eta))) / CAP
    else:
        loss = ((np.array(rows["t"]) / 5 - 1 - eta) / HALF_RANGES) ** 2
    return float(np.clip(1 - loss, 0, 1).sum())


@pytest.mark.parametrize("score", FAMILY)
@pytest.mark.parametrize("size", [0.0, 0.01, 1.0, 40.0])
def test_a_score_is_what_its_name_says(score: str, size: float) -> None:
    rows, rng = rows_of(300, 1), np.random.default_rng(2)
    beta = size * rng.normal(size=3)
    found = statistic(query_of(score, beta, count=300), rows, RELATIONS[0])
    truth = expected(score, beta, rows)
    if score == "accuracy":
        assert found == truth
    else:  # a step is gained in each row, at most
        assert truth - 300 * 0.2 / LEVELS <= found / LEVELS <= truth + 300 * 1.2 / LEVELS


@pytest.mark.few(3)
@pytest.mark.parametrize("score", FAMILY)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_sensitivity_is_never_exceeded(score: str, neighbors) -> None:
    rng = np.random.default_rng(3)
    for place in range(12):
        beta = rng.normal(size=3) * 10 ** rng.uniform(-2, 1)
        where = None if place % 2 else {"b": (1, 3)}
        query = query_of(score, beta, neighbors, where=where)
        l1, l2 = query.sensitivity(neighbors)
        assert l2.squared == l1.value**2
        rows = rows_of(6, place)
        extreme = rows_of(2, 100 + place)
        rows["id"], extreme["id"] = [0, 0, 1, 1, 2, 3], [0, 0]
        extreme["a"], extreme["t"] = [-1.0, 1.0], [0.0, 10.0]
        before = statistic(query, rows, neighbors)
        kept = [2, 3, 4, 5] if neighbors.unit else [1, 2, 3, 4, 5]
        gone = {name: [values[k] for k in kept] for name, values in rows.items()}
        many = 2 if neighbors.unit else 1
        changed = {name: extreme[name][:many] + gone[name] for name in rows}
        other = changed if isinstance(neighbors, Replace) else gone
        after = statistic(query, other, neighbors)
        assert abs(after - before) <= l1.value
    # a row of each kind attains it where every row counts
    query = query_of("accuracy", np.array([5.0, 0, 0]), RELATIONS[0], 1)
    ends = [statistic(query, rows_of(1, 0) | {"y": [yes]}, RELATIONS[0]) for yes in (True, False)]
    assert abs(ends[0] - ends[1]) == query.sensitivity(RELATIONS[0])[0].value == 1


@pytest.mark.parametrize("score", FAMILY)
def test_files_and_any_order_give_the_same(score: str, tmp_path) -> None:
    rows, beta = rows_of(500, 5), np.array([0.2, -1.5, 0.7])
    query = query_of(score, beta, count=500)
    exact = statistic(query, rows, RELATIONS[0])
    order = np.random.default_rng(6).permutation(500)
    mixed = {name: [values[k] for k in order] for name, values in rows.items()}
    assert statistic(query, mixed, RELATIONS[0]) == exact
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(rows), path, row_group_size=64)
    engine = dp.read_parquet(path, schema=dict(SCHEMA), neighbors=RELATIONS[0])._engine
    assert query.assemble(execute(engine, query.plan()))[0] == exact


def test_no_decision_is_made_twice() -> None:
    """η = 0 says no: the same rows are right for one response and wrong for the other."""
    query = query_of("accuracy", np.zeros(3), count=1)
    right = [statistic(query, rows_of(1, 0) | {"y": [yes]}, RELATIONS[0]) for yes in (True, False)]
    assert right == [0, 1]


def test_tables_rise_to_the_best_and_fall_from_it() -> None:
    for score, size in itertools.product(TABLES, (0.0, 0.3, 30.0)):
        query = query_of(score, np.full(3, size))
        peak = query.weights.index(max(query.weights))
        steps = np.diff(query.weights)
        assert (steps[:peak] > 0).all()
        assert (steps[peak:] < 0).all()
        assert query_from_dict(query.to_dict()) == query
        assert max(query.weights) <= LEVELS
        assert math.prod(query.weights) == 0 or score == "log-loss"


def test_a_score_that_does_not_fit_together_is_refused() -> None:
    good = query_of("log-loss", np.ones(3))
    for edges, weights in (
        ((), (1,)),
        ((2, 1), (0, 1, 0)),
        ((0, 1), (0, 1)),
        ((0, 1), (1, 1, 1)),
        ((0, 1), (-1, 1, 0)),
        ((0, 1 << 60), (0, 1, 0)),
    ):
        with pytest.raises(InvalidParameter):
            PredictionScore(good.model, good.point, edges, weights, False)
