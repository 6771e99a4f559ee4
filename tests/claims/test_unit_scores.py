"""Scores added up by unit: Σ g gᵀ is exact on every engine, and no unit moves it further than
claimed, whatever its rows hold.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.encoding import Encoding
from discreet.schema import Schema
from discreet.specs.estimating.components import UNIT_BITS, ModelColumn, NumberComponent, Response
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.estimating.families import Huber, Logistic
from discreet.specs.estimating.metric import metric_of
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.queries.keys import Held
from discreet.specs.queries.plans import Factor
from discreet.specs.registry import query_from_dict
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays

SCHEMA = Schema({"x": dp.Real(-4, 4), "y": dp.Real(-10, 10), "b": dp.Boolean()})
X = NumberComponent(Factor("x", SCHEMA["x"].encoding(16)), low=-4.0, high=4.0)
COLUMNS = (ModelColumn("intercept", ()), ModelColumn("x", (X,)))
FAMILIES = {"huber": Huber(1.345), "logistic": Logistic()}
# one that no row reaches, one that binds some, one that binds all
RADII = (4.0, 1.62, 1.1, 0.3)
ROWS = [(x, y, b) for x in (-4.0, 1.0, 4.0, None) for y, b in ((-10.0, False), (10.0, True))]
ROWS += [(2.0, None, None)]
MOST = 2
RELATIONS = (dp.Replace(unit="id", max_rows=MOST), dp.AddRemove(unit="id", max_rows=MOST))


def query_of(family, radius=1.62, part="unit scores"):
    residual = family.residual
    response = (
        Response(Factor("y", Encoding(0.0, 2**23 / 10, -(2**23), 2**23)))
        if residual
        else Response(level=("b", 1))
    )
    beta = (0.02, -0.01) if residual else (5.0, 0.5)
    point = (
        Point(
            tuple(round(value * 2 ** (29 - UNIT_BITS)) for value in beta), 6, GRID / (0.1 * 2**29)
        )
        if residual
        else Point(
            tuple(round(value * 2**16) for value in beta),
            16 + UNIT_BITS,
            GRID / 2 ** (16 + UNIT_BITS),
        )
    )
    keys = (Held("x"), Held("y" if residual else "b"))
    metric = metric_of(np.array([[1.0, 0.4], [-0.3, 1.2]]), radius)
    return WeightedGram(Model(COLUMNS, response, keys), metric, part, True, family, point)


def columns_of(units):
    rows = [(*row, place) for place, unit in enumerate(units) for row in unit]
    return {name: [row[place] for row in rows] for place, name in enumerate(("x", "y", "b", "id"))}


def statistic(query, units, neighbors):
    engine = memory_engine_from_arrays(columns_of(units), SCHEMA, neighbors)
    return query.assemble(execute(engine, query.plan()))


def whole(triangle):
    """The Frobenius norm's coordinates of an upper triangle of order 2."""
    return np.array([float(one) for one in triangle]) * np.array([1.0, math.sqrt(2), 1.0])


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_one_unit_moves_the_scores_no_further_than_claimed(name, neighbors):
    worst = 0.0
    for radius in RADII:
        query = query_of(FAMILIES[name], radius)
        units = [
            list(rows)
            for size in (1, 2)
            for rows in itertools.combinations_with_replacement(ROWS, size)
        ]
        alone = np.array([whole(statistic(query, [unit], neighbors)) for unit in units])
        bound = math.sqrt(float(query.sensitivity(neighbors).squared))
        moved = (
            max(np.linalg.norm(alone - one, axis=1).max() for one in alone)
            if isinstance(neighbors, dp.Replace)
            else np.linalg.norm(alone, axis=1).max()
        )
        assert moved <= bound
        worst = max(worst, moved / bound)
    assert worst > (0.5 if isinstance(neighbors, dp.Replace) else 0.8)


def test_a_claim_of_rows_is_exceeded_by_units():
    """The positive control: k times what one row adds is too little for a unit of k rows."""
    query, neighbors = query_of(FAMILIES["huber"]), RELATIONS[1]
    unit = [(4.0, -10.0, False)] * MOST
    claimed = math.sqrt(float(query.sensitivity(neighbors).squared)) / MOST
    assert np.linalg.norm(whole(statistic(query, [unit], neighbors))) > claimed


@pytest.mark.parametrize("name", FAMILIES)
def test_engines_agree_and_units_add_up(name, tmp_path):
    rng, n = np.random.default_rng(9), 300
    data = {
        "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 3, n)),
        "y": rng.normal(0, 9, n),
        "b": rng.random(n) < 0.4,
        "id": rng.integers(0, 90, n),
    }
    pandas.DataFrame(data).to_parquet(tmp_path / "rows.parquet")
    neighbors, query = dp.AddRemove(unit="id", max_rows=4), query_of(FAMILIES[name])
    sums = execute(memory_engine_from_arrays(data, SCHEMA, neighbors), query.plan())
    file = FileEngine(tmp_path / "rows.parquet", "parquet", SCHEMA, neighbors)
    assert (execute(file, query.plan()) == sums).all()
    each = [
        {column: values[data["id"] == unit] for column, values in data.items()}
        for unit in np.unique(data["id"])
    ]
    parts = [
        execute(memory_engine_from_arrays(one, SCHEMA, neighbors), query.plan()) for one in each
    ]
    assert (sum(parts[1:], parts[0]) == sums).all()
    assert (sums == sums.T).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_units_of_one_row_have_the_scores_of_rows(name):
    """Up to what cutting multipliers to whole numbers takes."""
    rng = np.random.default_rng(2)
    units = [[(float(x), float(y), bool(y > 0))] for x, y in rng.normal(0, (3, 6), (200, 2))]
    neighbors = dp.AddRemove(unit="id", max_rows=2)
    by_unit, by_row = (query_of(FAMILIES[name], part=part) for part in ("unit scores", "scores"))
    found, expected = (
        whole(statistic(query, units, neighbors)) * float(query.unit) for query in (by_unit, by_row)
    )
    assert np.abs(found - expected).max() <= 0.002 * np.abs(expected).max()
    assert query_from_dict(by_unit.to_dict()) == by_unit
