"""Cells without a value: every statistic that leaves them out, counts them or counts beside them
moves between neighbours by at most what is claimed, for all small tables.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pyarrow
import pytest

import discreet as dp
from discreet.schema import Schema
from discreet.sensitivity import L1, L2
from discreet.specs.queries.keys import Bins, Held, Levels, Split
from discreet.specs.queries.moments import DESIGNS, Moments, mean_design, variance_design
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.sums import Sum, number_factor
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame

SCHEMA = Schema(
    {"x": dp.Integer(0, 2), "b": dp.Boolean(), "g": dp.Category(["p", "q"]), "id": dp.Open()}
)
NUMBERS = (0, 1, 2, None)
BOTH = (dp.Replace(), dp.AddRemove())
UNITS = (dp.Replace(unit="id", max_rows=2), dp.AddRemove(unit="id", max_rows=2))
ENGINES = {
    "arrays": memory_engine_from_arrays,
    "arrow": lambda columns, schema, neighbors: memory_engine_from_frame(
        pyarrow.table(
            {
                "x": pyarrow.array(columns["x"], pyarrow.int64()),
                "b": pyarrow.array(columns["b"], pyarrow.bool_()),
                "g": pyarrow.array(columns["g"], pyarrow.string()),
                "id": pyarrow.array(columns["id"], pyarrow.string()),
            }
        ),
        schema,
        neighbors,
    ),
}


def statistic(query, rows, neighbors, engine="arrays"):
    """The exact statistic of rows (x, b, g, id)."""
    columns = {name: [row[place] for row in rows] for place, name in enumerate(("x", "b", "g"))}
    columns["id"] = [row[3] for row in rows]
    made = ENGINES[engine](columns, SCHEMA, neighbors)
    return query.assemble(execute(made, query.plan()))


def tables(cells, sizes, neighbors):
    """All tables of these cells; each row its own unit, or all rows of one."""
    for size in sizes:
        for chosen in itertools.product(cells, repeat=size):
            ids = [str(place) for place in range(size)]
            if neighbors.unit is not None:
                ids = ["one"] * size
            yield [(*cell, one) for cell, one in zip(chosen, ids, strict=True)]


def pairs(cells, neighbors):
    """Neighbouring tables, all small ones: what one unit, or one row, can be."""
    if isinstance(neighbors, dp.Replace) and neighbors.unit is None:
        yield from itertools.combinations(tables(cells, (1,), neighbors), 2)
    elif isinstance(neighbors, dp.Replace):
        yield from itertools.combinations(tables(cells, (1, 2), neighbors), 2)
    else:
        yield from (([], table) for table in tables(cells, (1, 2), neighbors) if one_unit(table))


def one_unit(table):
    return len({row[3] for row in table}) == 1


def furthest(query, cells, neighbors, norm, engine="arrays"):
    """The greatest p-th power of a distance between neighbours."""
    seen = {}

    def value(table):
        key = tuple(table)
        if key not in seen:
            seen[key] = statistic(query, table, neighbors, engine)
        return seen[key]

    return max(
        sum(abs(a - b) ** norm for a, b in zip(value(first), value(second), strict=True))
        for first, second in pairs(cells, neighbors)
    )


def claimed(sensitivity):
    return sensitivity.value if isinstance(sensitivity, L1) else sensitivity.squared


X_CELLS = [(x, True, "p") for x in NUMBERS]


@pytest.mark.few(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("neighbors", BOTH + UNITS, ids=str)
@pytest.mark.parametrize("design", [mean_design, variance_design])
def test_moments_of_cells_that_hold_a_value(design, neighbors, norm, engine):
    chosen = design(neighbors, cells=1, optional=True, norm=norm)
    factor = number_factor(SCHEMA, "x", "a mean", 10)
    query = Moments((Held("x"),), factor, chosen, True)
    bound = claimed(query.sensitivity(neighbors))
    found = furthest(query, X_CELLS, neighbors, norm, engine)
    assert found <= bound
    assert found >= Fraction(4, 5) * bound  # the claim is no larger than it must be


def test_a_claim_that_forgets_the_count_is_exceeded():
    """Without A² in the bound of a row that loses its value, the same noise would protect less."""
    design = DESIGNS["mean-optional-l2"]
    query = Moments((Held("x"),), number_factor(SCHEMA, "x", "a mean", 10), design, True)
    heavier = replace(design, count=2 * design.count)
    forgotten = heavier.bound(dp.Replace(), cells=1, optional=True) * query.height**4
    weights = (Fraction(2), Fraction(1), Fraction(1))  # the statistic with that count
    gone, held = (
        [
            weight * value
            for weight, value in zip(
                weights, statistic(query, [(x, True, "p", "0")], dp.Replace()), strict=True
            )
        ]
        for x in (None, 2)
    )
    assert sum((a - b) ** 2 for a, b in zip(gone, held, strict=True)) > forgotten


@pytest.mark.few(3)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("neighbors", BOTH + UNITS, ids=str)
def test_shares_move_no_further_than_claimed(neighbors, norm, engine):
    cells = [(1, b, g) for b in (True, False, None) for g in ("p", None)]
    for keys in (
        (Split("b", (1,)), Held("b")),
        (Split("g", (0,)), Held("g"), Held("b")),
    ):
        design = DESIGNS["mean-optional-l2" if norm == 2 else "mean-replace-l1"]
        query = ShareCounts(keys, design)
        bound = claimed(query.sensitivity(neighbors))
        found = furthest(query, cells, neighbors, norm, engine)
        assert found <= bound
        assert found >= Fraction(4, 5) * bound


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("neighbors", BOTH + UNITS, ids=str)
def test_counts_with_a_cell_for_rows_without_a_value(neighbors, engine):
    cells = [(x, True, g) for x in (0, 2, None) for g in ("p", "q", None)]
    query = Sum((Levels("g", 2), Bins("x", (0.0, 1.0, 2.0))), (), True, True)
    for sensitivity, norm in zip(query.sensitivity(neighbors)[:2], (1, 2), strict=True):
        assert furthest(query, cells, neighbors, norm, engine) == claimed(sensitivity)
    table = [(x, b, g, str(place)) for place, (x, b, g) in enumerate(cells)]
    if neighbors.unit is None:
        # p0 p2 q0 q2, and the five rows that lack one or both
        assert statistic(query, table, neighbors, engine) == [1, 1, 1, 1, 5]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cell_that_is_filled_in_holds_a_value(engine):
    """Otherwise a key that says it leaves no row out would, and its sensitivity be too small."""
    filled = Schema({**SCHEMA, "x": dp.Integer(0, 2, missing=1), "b": dp.Boolean(missing=True)})
    columns = {"x": [None, 1], "b": [None, False], "g": ["p", "q"], "id": ["0", "1"]}
    made = ENGINES[engine](columns, filled, dp.Replace())
    for name in ("x", "b"):
        query = Sum((Held(name),), (), True)
        assert query.assemble(execute(made, query.plan())) == [2]


@pytest.mark.few(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("neighbors", BOTH + UNITS, ids=str)
def test_scores_of_cells_that_hold_a_value(neighbors, engine):
    """Sums of a column whose range is far from 0: a value that vanishes moves one by its size."""
    far = Schema({**SCHEMA, "x": dp.Integer(10, 12)})
    factor = number_factor(far, "x", "a sum", 10)
    cells = [(x, True, g) for x in (10, 12, None) for g in ("p", "q")]
    for keys in ((Held("x"),), (Levels("g", 2), Held("x"))):
        query = CandidateScores((CandidateGroup(keys, factor),))
        seen = {}

        def scores(table, query=query, seen=seen):
            key = tuple(table)
            if key not in seen:
                columns = {
                    name: [row[place] for row in table]
                    for place, name in enumerate(("x", "b", "g", "id"))
                }
                made = ENGINES[engine](columns, far, neighbors)
                seen[key] = query.assemble(execute(made, query.plan()))
            return seen[key]

        furthest_score = max(
            max(abs(a - b) for a, b in zip(scores(first), scores(second), strict=True))
            for first, second in pairs(cells, neighbors)
        )
        assert furthest_score == query.sensitivity(neighbors).value


def test_a_count_of_absent_rows_is_priced_as_a_cell_of_its_own():
    one = Sum((Bins("x", (0.0, 1.0)),), (), True)
    beside = replace(one, absent=True)
    assert isinstance(beside.sensitivity(dp.Replace())[1], L2)
    assert claimed(one.sensitivity(dp.Replace())[1]) == 1
    assert claimed(beside.sensitivity(dp.Replace())[1]) == 2
