"""Sums of units' own rows, their squares and products: exact on every engine, and no unit moves
them further than claimed, whatever it holds.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.schema import Schema
from discreet.specs.queries.keys import Held, Levels, Split, Subset
from discreet.specs.queries.sums import number_factor
from discreet.specs.queries.unit_sums import (
    UNIT_DESIGNS,
    UnitShares,
    UnitSums,
    UnitSumsPlan,
    unit_design,
)
from discreet.specs.registry import query_from_dict
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions import unit_sums as extension

SCHEMA = Schema({"x": dp.Integer(0, 2), "g": dp.Category(["p", "q"])})
ROWS = [(x, g) for x in (0, 1, 2, None) for g in ("p", "q", None)]
MOST = 2
RELATIONS = (dp.Replace(unit="id", max_rows=MOST), dp.AddRemove(unit="id", max_rows=MOST))
FACTOR = number_factor(SCHEMA, "x", "a mean", 10)


def columns_of(units):
    """Columns of units, each a list of rows (x, g)."""
    rows = [(*row, f"u{place}") for place, unit in enumerate(units) for row in unit]
    return {name: [row[place] for row in rows] for place, name in enumerate(("x", "g", "id"))}


def in_memory(units, neighbors, _):
    return memory_engine_from_arrays(columns_of(units), SCHEMA, neighbors)


def in_a_file(units, neighbors, folder):
    kinds = {"x": pyarrow.int64(), "g": pyarrow.string(), "id": pyarrow.string()}
    columns = columns_of(units)
    path = folder / "rows.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({name: pyarrow.array(columns[name], kind) for name, kind in kinds.items()}),
        path,
        row_group_size=2,
    )
    return FileEngine(str(path), "parquet", SCHEMA, neighbors)


ENGINES = {"memory": in_memory, "file": in_a_file}


def queries(neighbors):
    """Every layout that is asked: one cell and several, values that may be missing."""
    by_g = (Levels("g", 2), Held("g"))
    yield UnitSums((Held("x"),), FACTOR, unit_design(neighbors, cells=1), MOST, True)
    yield UnitSums((Held("x"),), FACTOR, UNIT_DESIGNS["units-cells-l2"], MOST, True)
    yield UnitSums((*by_g, Held("x")), FACTOR, unit_design(neighbors, cells=2), MOST, True)
    yield UnitSums((Subset("g", (0,)),), None, UNIT_DESIGNS["units-counts-l2"], MOST, True)
    yield UnitSums(by_g, None, UNIT_DESIGNS["units-counts-l2"], MOST, True)
    yield UnitShares((Split("g", (0,)), Held("g")), UNIT_DESIGNS["units-optional-l2"], MOST)


def one_units():
    """All units of up to two rows."""
    return [
        list(rows)
        for size in (1, 2)
        for rows in itertools.combinations_with_replacement(ROWS, size)
    ]


def statistic(query, units, neighbors, engine, folder):
    return query.assemble(execute(ENGINES[engine](units, neighbors, folder), query.plan()))


def distance(first, second):
    return sum((a - b) ** 2 for a, b in zip(first, second, strict=True))


def furthest(values, neighbors):
    """The greatest squared distance of neighbours: one unit exchanged, or there and not there."""
    if isinstance(neighbors, dp.Replace):
        distinct = np.array(sorted({tuple(value) for value in values}), dtype=np.float64)
        return max(float(((distinct - one) ** 2).sum(axis=1).max()) for one in distinct)
    return max(distance(value, [0] * len(value)) for value in values)


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_one_unit_moves_the_sums_no_further_than_claimed(neighbors, tmp_path):
    for query in queries(neighbors):
        values = [statistic(query, [unit], neighbors, "memory", tmp_path) for unit in one_units()]
        bound = query.sensitivity(neighbors).squared
        found = furthest(values, neighbors)
        assert found <= bound
        if query.design.name != "units-add-l2" or query.cells == 1:
            assert found >= Fraction(4, 5) * bound  # the claim is no larger than it must be


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_files_give_the_same_integers_and_neighbours(neighbors, tmp_path):
    """Other units beside, more rows than count, and rows dealt out by their units."""
    rng = np.random.default_rng(3)
    drawn = [[ROWS[place] for place in rng.integers(0, len(ROWS), size)] for size in (1, 5, 2, 3)]
    for query in queries(neighbors):
        here = statistic(query, drawn, neighbors, "memory", tmp_path)
        assert statistic(query, drawn, neighbors, "file", tmp_path) == here
        other = [*drawn[:1], [(2, "p")] * 4, *drawn[2:]]
        moved = statistic(query, other, neighbors, "file", tmp_path)
        once = query.sensitivity(dp.Replace(unit="id", max_rows=MOST)).squared
        assert distance(here, moved) <= once


@pytest.mark.parametrize("engine", ENGINES)
def test_sums_are_those_of_the_definition(engine, tmp_path):
    neighbors = dp.AddRemove(unit="id", max_rows=4)
    rng = np.random.default_rng(11)
    units = [
        [ROWS[place] for place in rng.integers(0, len(ROWS), size)] for size in (1, 2, 3, 4, 4)
    ]
    query = UnitSums((Levels("g", 2), Held("x")), FACTOR, unit_design(neighbors, cells=2), 4, True)
    sums = execute(ENGINES[engine](units, neighbors, tmp_path), query.plan())
    step = FACTOR.encoding
    for cell, level in enumerate(("p", "q")):
        expected = np.zeros(6, dtype=object)
        for unit in units:
            codes = [
                step.low + x * (step.high - step.low) // 2
                for x, g in unit
                if g == level and x is not None
            ]
            n, s = len(codes), sum(codes)
            t = sum(g is not None and x is not None for x, g in unit)
            expected = expected + np.array([n, n * t, n * n, s, n * s, s * s], dtype=object)
        assert list(sums[cell]) == list(expected)


@pytest.mark.compiled
@pytest.mark.parametrize("pays", [False, True])
def test_sums_are_exact_at_the_largest_codes(pays, monkeypatch):
    """A unit of many rows at the ends of a fine grid: squares beyond 2**53 lose nothing, also
    where 64 bits are too few for what a batch could hold.
    """
    monkeypatch.setattr(extension, "_pays", lambda rows: pays)
    schema = Schema({"x": dp.Integer(0, (1 << 19) - 1)})
    neighbors = dp.AddRemove(unit="id", max_rows=1 << 14)
    factor = number_factor(schema, "x", "a mean", 20)
    x = np.repeat([0, (1 << 19) - 1], (1000, 16000))
    ids = np.repeat([0, 1], (1000, 16000))
    engine = memory_engine_from_arrays({"x": x, "id": ids}, schema, neighbors)
    query = UnitSums((), factor, unit_design(neighbors, cells=1), 1 << 14, False)
    sums = execute(engine, query.plan())[0]
    low, high = factor.encoding.low, factor.encoding.high
    assert int(sums[5]) == (1000 * low) ** 2 + (16000 * high) ** 2 > 1 << 64
    assert int(sums[4]) == 1000**2 * low + 16000**2 * high


@pytest.mark.compiled
@pytest.mark.parametrize("factor", [FACTOR, None])
@pytest.mark.parametrize("keys", [(), (Levels("g", 2), Held("g")), (Held("x"),)])
def test_sums_are_the_same_compiled_and_not(factor, keys, monkeypatch):
    """Rows in the order of their units and in any other; some in no cell, some nobody's."""
    rng, rows = np.random.default_rng(5), 400
    ids = rng.integers(0, 90, rows).astype(object)
    ids[:7] = None
    columns = {
        "x": rng.choice([0, 1, 2, None], rows),
        "g": rng.choice(["p", "q", None], rows),
        "id": ids,
    }
    plan, found = UnitSumsPlan(keys, factor), []
    for order in (np.arange(rows), np.argsort([str(one) for one in ids])):
        for pays in (False, True):
            monkeypatch.setattr(extension, "_pays", lambda rows, pays=pays: pays)
            there = {name: column[order] for name, column in columns.items()}
            engine = memory_engine_from_arrays(there, SCHEMA, dp.AddRemove(unit="id", max_rows=3))
            found.append(execute(engine, plan).tolist())
    assert all(one == found[0] for one in found)
    assert found[0][0][0] > 0


def test_the_designs_numbers_meet_the_inequalities_of_their_proof():
    for design in UNIT_DESIGNS.values():
        a, e = design.count**2, design.gap**2
        b, c = (weight**2 for weight in design.weights or (0, 0))
        assert design.add == a + b
        assert (3 if b else 2) * e <= 4 * design.add
        assert c <= b
        assert design.several == (2 if a >= b else 4) * design.add
        assert (a <= 3 * b and e <= 8 * b) if b else e <= 11 * a
        assert design.one == (4 * b or a)


def random_units(rng, size, cells):
    """Shares (a, b) of a unit's rows at both ends, by cell; many near corners and edges."""
    weights = rng.gamma(rng.choice([0.05, 0.3, 1.0], (size, 1)) * np.ones((size, 2 * cells + 1)))
    weights = (weights + 1e-12) / (weights + 1e-12).sum(axis=1, keepdims=True)
    return weights[:, :cells], weights[:, cells : 2 * cells]


def vectors(design, units, gap=None):
    (a, b), e = units, design.gap if gap is None else gap
    t, s = a + b, a - b
    parts = [design.count * t, e * t * (1 - t), e * t * (t.sum(axis=1, keepdims=True) - t)]
    if design.weights:
        parts += [design.weights[0] * s, design.weights[1] * (t**2 - s**2), e * s * (1 - t)]
    return np.concatenate(parts, axis=1)


@pytest.mark.few(3)
@pytest.mark.parametrize("cells", [1, 2, 4])
@pytest.mark.parametrize("name", UNIT_DESIGNS)
def test_units_of_any_shares_stay_within_the_bounds(name, cells):
    design, rng = UNIT_DESIGNS[name], np.random.default_rng(cells)
    first, second = (vectors(design, random_units(rng, 20_000, cells)) for _ in range(2))
    assert (first**2).sum(axis=1).max() <= float(design.add) * (1 + 1e-12)
    apart = ((first - second) ** 2).sum(axis=1).max()
    assert apart <= float(design.one if cells == 1 else design.several) * (1 + 1e-12)


@pytest.mark.parametrize("name", ["units-cells-l2", "units-counts-l2"])
def test_heavier_gaps_would_exceed_the_claim(name):
    """The positive control: with twice the gap's weight the same bound is false."""
    design = UNIT_DESIGNS[name]
    half = np.full((1, 2), 0.5)
    moved = vectors(design, (half, 0 * half), gap=2 * design.gap)
    assert (moved**2).sum() > float(design.add)


def test_a_query_for_other_units_has_no_sensitivity():
    query = UnitSums((), FACTOR, UNIT_DESIGNS["units-add-l2"], 3, False)
    for neighbors in (dp.AddRemove(), dp.AddRemove(unit="id", max_rows=4), dp.Replace()):
        with pytest.raises(InvalidParameter):
            query.sensitivity(neighbors)
    with pytest.raises(InvalidParameter):
        UnitSums((), None, UNIT_DESIGNS["units-add-l2"], 3, False)
    with pytest.raises(InvalidParameter):
        UnitSums((), FACTOR, UNIT_DESIGNS["units-add-l2"], 1, False)
    with pytest.raises(InvalidParameter):
        UnitShares((Levels("g", 2),), UNIT_DESIGNS["units-counts-l2"], 2)


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_what_was_written_is_read_again(neighbors):
    for query in queries(neighbors):
        assert query_from_dict(query.to_dict()) == query
