"""Claim: counts of residuals are exact, the same in any order and on every engine, and a
histogram's sensitivity bounds them.
"""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest

import discreet as dp
from discreet.models.points import point_at
from discreet.models.regression import asked_model
from discreet.schema import Schema
from discreet.specs.estimating.components import UNIT
from discreet.specs.estimating.families import Huber
from discreet.specs.estimating.residuals import ResidualCounts
from discreet.specs.estimating.tables import GRID
from discreet.specs.registry import query_from_dict
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions.estimating.kernels import ModelData, residual_counts

SCHEMA = Schema(
    {
        "x": dp.Real(-4, 4, missing=0),
        "y": dp.Real(-10, 10, missing=0),
        "g": dp.Category(["a", "b"], missing="a"),
    }
)
EDGES = (-2 * GRID, -GRID, 0, GRID, 2 * GRID)


def query_of(where=None, sigma=0.1):
    model = asked_model(SCHEMA, "y ~ x + g", "ols", where)[0]
    return ResidualCounts(
        model, point_at(np.array([0.1, 0.4, -0.2]), sigma, Huber(4.0)), EDGES, where is not None
    )


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 2
    return {"x": x, "y": 1 + x + rng.normal(size=n), "g": rng.choice(["a", "b", "?"], n)}


def test_counts_are_exact_in_any_order_and_on_every_engine(tmp_path):
    arrays = data(3000)
    pandas.DataFrame(arrays).to_parquet(tmp_path / "rows.parquet")
    for where in (None, {"g": "a"}):
        query = query_of(where)
        engine = memory_engine_from_arrays(arrays, SCHEMA, dp.Replace())
        counts = query.assemble(execute(engine, query.plan()))
        order = np.random.default_rng(1).permutation(3000)
        shuffled = memory_engine_from_arrays(
            {name: column[order] for name, column in arrays.items()}, SCHEMA, dp.Replace()
        )
        file = FileEngine(tmp_path / "rows.parquet", "parquet", SCHEMA, dp.Replace())
        assert (
            counts
            == query.assemble(execute(shuffled, query.plan()))
            == query.assemble(execute(file, query.plan()))
        )
        kept = np.ones(3000, dtype=bool) if where is None else arrays["g"] != "b"
        eta = 10 * (0.1 + 0.4 * np.clip(arrays["x"], -4, 4) / 4 - 0.2 * (arrays["g"] == "b"))
        real = np.histogram(
            ((np.clip(arrays["y"], -10, 10) - eta) / 1.0)[kept],
            bins=[-np.inf, -2, -1, 0, 1, 2, np.inf],
        )[0]
        assert sum(counts) == kept.sum()
        # rounding to the grid moves few rows across an edge
        assert np.abs(np.array(counts) - real).max() <= 6


def test_sensitivity_is_never_exceeded():
    """Every row falls in exactly one cell, so exchanging or removing rows moves counts as in a
    histogram; both bounds are attained.
    """
    rng = np.random.default_rng(2)
    matrix = rng.integers(-UNIT, UNIT + 1, (400, 3)).astype(np.int16)
    response = rng.integers(-(2**23), 2**23 + 1, 400).astype(np.int32)
    for sigma in (2.0**-16, 0.1, 4.0):
        query = query_of(sigma=sigma)
        alone = np.array(
            [
                residual_counts(ModelData(matrix[[i]], response[[i]]), query.point, EDGES)
                for i in range(400)
            ]
        )
        assert (alone.sum(axis=1) == 1).all()
        for neighbors in (
            dp.Replace(),
            dp.AddRemove(),
            dp.Replace(unit="id", max_rows=3),
            dp.AddRemove(unit="id", max_rows=3),
        ):
            l1, l2 = query.sensitivity(neighbors)
            k, moved = (
                neighbors.rows,
                (
                    alone[:, None] - alone[None]
                    if isinstance(neighbors, dp.Replace)
                    else alone[:, None]
                ),
            )
            assert k * np.abs(moved).sum(axis=2).max() == l1.value
            assert k * math.sqrt((moved**2).sum(axis=2).max()) == pytest.approx(
                math.sqrt(l2.squared)
            )


def test_queries_round_trip_and_bad_ones_are_refused():
    query = query_of({"g": "a"})
    assert query_from_dict(query.to_dict()) == query
    for edges in ((), (5, 5), (5, 4), tuple(range(1000)), (1 << 31,)):
        with pytest.raises(dp.InvalidParameter):
            ResidualCounts(query.model, query.point, edges, False)
