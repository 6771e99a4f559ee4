"""Claim: no neighbour moves the moments of a difference of two columns by more than its noise is
set by, and the sums are exact.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.accounting.guarantees import GDP, PureDP
from discreet.errors import InvalidParameter
from discreet.estimators.hypotheses.mean_comparisons import paired_question
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Integer, Real, Schema
from discreet.sensitivity import L1
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.registry import query_from_dict
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.release import PublicFacts

SCHEMA = Schema(
    {"x": Real(-1, 3), "y": Real(0, 5), "n": Integer(0, 4), "m": Integer(-2, 2), "b": Boolean()}
)
RELATIONS = (
    Replace(),
    AddRemove(),
    Replace(unit="id", max_rows=2),
    AddRemove(unit="id", max_rows=2),
)
PAIRS = (("x", "y"), ("n", "m"), ("n", "b"), ("x", "n"))
VALUES = {
    "x": (-1, 0.3, 3, None),
    "y": (0, 2.7, 5, float("nan")),
    "n": (0, 1, 4, 99),
    "m": (-2, 1, 2, "x"),
    "b": (True, False),
}


def statistic(question, rows, neighbors):
    columns = {name: [row.get(name, 0) for row in rows] for name in (*SCHEMA, "id")}
    return np.array(
        question.query.assemble(
            memory_engine_from_arrays(columns, SCHEMA, neighbors).sums(question.query.plan())
        ),
        dtype=object,
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", [PureDP(1), GDP(1)], ids=str)
def test_no_neighbour_moves_the_moments_further_than_claimed_and_one_moves_them_as_far(
    neighbors, spend
):
    for (first, second), where in itertools.product(PAIRS, (None, {"b": True})):
        question = paired_question(
            PublicFacts(SCHEMA, neighbors, 3), first, second, spend=spend, where=where
        )
        sensitivity = question.mechanism.sensitivity
        k = neighbors.rows
        single = [
            dict([(first, u), (second, v), *([("b", True)] if "b" not in (first, second) else [])])
            for u, v in itertools.product(VALUES[first], VALUES[second])
        ]
        parts = [statistic(question, [row | {"id": "me"}] * k, neighbors) for row in single]
        absent = neighbors.unit is not None or isinstance(neighbors, AddRemove) or where is not None
        others = ([0 * parts[0]] if absent else []) + (
            parts if isinstance(neighbors, Replace) else []
        )
        moves = [a - b for a, b in itertools.product(parts, others)]
        power = 1 if isinstance(sensitivity, L1) else 2
        farthest = max(sum(abs(entry) ** power for entry in move) for move in moves)
        bound = sensitivity.value if power == 1 else sensitivity.squared
        assert farthest <= bound
        # the ends of both ranges are grid points and the ranges overlap
        if where is None and {first, second} == {"n", "m"}:
            assert farthest >= Fraction(1, 5) * bound


def test_sums_are_those_of_the_differences_on_every_engine(tmp_path):
    rng = np.random.default_rng(4)
    columns = {
        "x": rng.uniform(-2, 4, 500),
        "y": rng.uniform(-1, 6, 500),
        "n": rng.integers(0, 5, 500),
        "m": rng.integers(-2, 3, 500),
        "b": rng.random(500) < 0.5,
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    question = paired_question(PublicFacts(SCHEMA, AddRemove(), None), "n", "m", spend=GDP(1))
    query = question.query
    sums = [
        query.assemble(engine.sums(query.plan()))
        for engine in (
            memory_engine_from_arrays(columns, SCHEMA, AddRemove()),
            FileEngine([str(tmp_path / "rows.parquet")], "parquet", SCHEMA, AddRemove()),
        )
    ]
    assert sums[0] == sums[1]
    difference = columns["n"].astype(int) - columns["m"].astype(int)
    half = query.factor.encoding.high * float(query.factor.encoding.step)
    values = np.array(sums[0], dtype=float) * query.unit_values()
    np.testing.assert_allclose(
        values, [500, difference.sum() / half, (1 - (difference / half) ** 2).sum()], rtol=1e-12
    )


def test_it_refuses_what_it_is_not_proven_for_and_comes_back_from_json():
    query = paired_question(PublicFacts(SCHEMA, Replace(), 9), "x", "y", spend=GDP(1)).query
    assert query_from_dict(query.to_dict()) == query
    with pytest.raises(InvalidParameter):
        DifferenceMoments((), query.first, query.first, query.design, False)
    with pytest.raises(InvalidParameter):
        paired_question(PublicFacts(SCHEMA, Replace(), 9), "x", "x", spend=GDP(1))
