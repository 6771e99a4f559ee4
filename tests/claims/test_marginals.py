"""Tables of counts and their distances from guesses: exact on every engine, and no unit moves them
further than claimed, whatever it holds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise
from discreet.errors import InvalidParameter
from discreet.schema import Schema
from discreet.sensitivity import L1, LInf
from discreet.specs.mechanisms.additive import GeometricNoise
from discreet.specs.queries.keys import Between, Bins, Levels
from discreet.specs.queries.marginals import Axis, Discrepancies, Marginals, TablesPlan, sizes_of
from discreet.specs.registry import query_from_dict
from discreet.testing import seeded_session
from discreet.trusted.aggregation import tables as extension
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.release import Description, Question

SCHEMA = Schema(
    {"g": dp.Category(["p", "q"]), "b": dp.Boolean(missing=False), "x": dp.Integer(0, 9)}
)
AXES = (
    Axis(Levels("g", 2), True),
    Axis(Levels("b", 2), False),
    Axis(Bins("x", (0.0, 3.0, 9.0)), True),
    Axis(Bins("x", (0.0, 3.0, 9.0)), False),  # a row without a number has no cell
    Axis(Between("x", 0.0, 4.0), False),
)
TABLES = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2), (1, 3), (4,))
PLAN = TablesPlan(AXES, TABLES)
ROWS = [("p", True, 1), ("q", False, 9), (None, None, None), ("p", False, 3), ("?", True, 4)]
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
)


def columns_of(rows):
    """Columns of rows (unit, g, b, x)."""
    return {name: [row[place] for row in rows] for place, name in enumerate(("id", "g", "b", "x"))}


def in_memory(rows, neighbors, _=None):
    return memory_engine_from_arrays(columns_of(rows), SCHEMA, neighbors)


def in_a_file(rows, neighbors, folder):
    kinds = {name: pyarrow.string() for name in ("id", "g")}
    kinds |= {"b": pyarrow.bool_(), "x": pyarrow.int64()}
    columns = columns_of(rows)
    table = {name: pyarrow.array(columns[name], kind) for name, kind in kinds.items()}
    pyarrow.parquet.write_table(pyarrow.table(table), folder / "rows.parquet", row_group_size=2)
    return FileEngine(str(folder / "rows.parquet"), "parquet", SCHEMA, neighbors)


ENGINES = {"memory": in_memory, "file": in_a_file}


def places_of(row):
    """A row's place on every axis, read naively; None: it has none."""
    _, g, b, x = row
    return (
        {"p": 0, "q": 1}.get(g, 2),
        int(b is True),
        2 if x is None else int(x >= 3),
        None if x is None else int(x >= 3),
        0 if x is not None and x <= 4 else None,
    )


def naive(rows, plan=PLAN):
    """The tables, counted row by row."""
    found = []
    for table in plan.tables:
        here = Counter(tuple(places_of(row)[place] for place in table) for row in rows)
        cells = itertools.product(*(range(size) for size in plan.shape(table)))
        found.append([here[cell] for cell in cells])
    return found


# -- exact on every engine ----------------------------------------


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("block", [20, extension.BLOCK])
def test_tables_are_those_of_the_definition(name, block, tmp_path, monkeypatch):
    monkeypatch.setattr(extension, "BLOCK", block)
    rng = np.random.default_rng(2)
    for rows in (0, 1, 7, 65):
        given = [(str(row), *ROWS[rng.integers(len(ROWS))]) for row in range(rows)]
        for neighbors in (dp.AddRemove(), dp.AddRemove(unit="id", max_rows=1)):
            counts = execute(ENGINES[name](given, neighbors, tmp_path), PLAN)
            assert [table.tolist() for table in counts] == naive(given)


def test_a_statistic_is_weighted_counts_or_exact_distances():
    given = [("a", *row) for row in ROWS]
    counts = execute(in_memory(given, dp.AddRemove()), PLAN)
    weights = tuple(range(1, len(TABLES) + 1))
    weighted = Marginals(AXES, TABLES, weights).assemble(counts)
    assert weighted == [
        a * count for a, table in zip(weights, naive(given), strict=True) for count in table
    ]
    assert all(type(value) is int for value in weighted)
    one = naive(given)[2]  # of three cells
    guess = (5, -2, 1 << 40)
    apart = [x - g for x, g in zip(one, guess, strict=True)]
    asked = functools.partial(Discrepancies, AXES, ((2,),), (guess,))
    table = [counts[2]]
    assert asked().assemble(table) == [sum(map(abs, apart))]
    assert asked("cells").assemble(table) == list(map(abs, apart))
    assert asked("ranges").assemble(table) == [
        abs(sum(apart[a : b + 1])) for a in range(3) for b in range(a, 3)
    ]


# -- no unit moves them further ----------------------------------------


def guesses_at(row):
    """A hundred in the cells of one row, nothing elsewhere: whoever leaves another row's cells for
    these moves every distance as far as it goes."""
    return tuple(tuple(100 * count for count in table) for table in naive([("a", *row)]))


def queries():
    yield Marginals(AXES, TABLES, tuple(range(1, len(TABLES) + 1)))
    for row in ROWS[:2]:
        yield Discrepancies(AXES, TABLES, guesses_at(row))
        yield Discrepancies(AXES, TABLES, guesses_at(row), "cells")
        one_way = tuple(table for table in TABLES if len(table) == 1)
        guesses = tuple(
            guess for table, guess in zip(TABLES, guesses_at(row), strict=True) if len(table) == 1
        )
        yield Discrepancies(AXES, one_way, guesses, "ranges")


def statistic(query, counts):
    kept = [counts[TABLES.index(table)] for table in query.tables]
    return query.assemble(kept)


def moved(sensitivity, before, after):
    """How far a statistic moved, in the sensitivity's own measure."""
    apart = [abs(b - a) for a, b in zip(before, after, strict=True)]
    if isinstance(sensitivity, LInf):
        return max(apart)
    return sum(apart) if isinstance(sensitivity, L1) else sum(one * one for one in apart)


def neighbouring(neighbors):
    """Pairs of small neighbouring tables: one unit's rows before and after, others beside."""
    most = 1 if neighbors.unit is None else neighbors.rows
    least = 1 if neighbors == dp.Replace() else 0
    holdings = [
        held
        for size in range(least, most + 1)
        for held in itertools.combinations_with_replacement(ROWS, size)
    ]
    for beside in ((), (ROWS[0],), (ROWS[1], ROWS[2])):
        others = [(f"other {place}", *row) for place, row in enumerate(beside)]
        tables = [[*others, *(("one", *row) for row in held)] for held in holdings]
        if isinstance(neighbors, dp.AddRemove):
            yield from ((others, table) for table in tables)
        else:
            yield from itertools.combinations(tables, 2)


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("name", ENGINES)
def test_no_unit_moves_tables_or_distances_further_than_claimed(name, neighbors, tmp_path):
    counted: dict[str, list[np.ndarray]] = {}

    def counts_of(rows):
        key = repr(sorted(map(repr, rows)))
        if key not in counted:
            counted[key] = execute(ENGINES[name](rows, neighbors, tmp_path), PLAN)
        return counted[key]

    pairs = [(counts_of(first), counts_of(second)) for first, second in neighbouring(neighbors)]
    worst: Counter[tuple[str, str]] = Counter()
    for query in queries():
        changes = [(statistic(query, one), statistic(query, two)) for one, two in pairs]
        for sensitivity in query.sensitivity(neighbors):
            bound = sensitivity.squared if hasattr(sensitivity, "squared") else sensitivity.value
            most = max(
                max(moved(sensitivity, one, two), moved(sensitivity, two, one))
                for one, two in changes
            )
            assert most <= bound, (query.kind, sensitivity)
            if most == bound:
                worst[f"{query.kind} {getattr(query, 'of', '')}", type(sensitivity).__name__] += 1
    attained = {"marginals ", "discrepancies tables", "discrepancies cells"}
    assert {kind for kind, norm in worst if norm == "L2"} == attained
    assert {kind for kind, norm in worst if norm == "L1"} == attained
    assert {kind for kind, norm in worst if norm == "LInf"} == {
        "discrepancies tables",
        "discrepancies cells",
        "discrepancies ranges",
    }


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_the_law_of_noisy_tables_keeps_epsilon_on_a_small_domain(neighbors):
    """All outputs near the data, for all neighbours: the ratio of the exact laws is at most e^ε;
    with noise for the other relation's sensitivity it is not."""
    tables = ((1,), (4,))
    query = Marginals(AXES, tables, (2, 1))
    first = query.sensitivity(neighbors)[0]
    epsilon = Fraction(1, 2)
    spread = first.value / epsilon
    assert GeometricNoise(first, spread, 0).spread == spread

    def worst(spread):
        found = 0.0
        for pair in neighbouring(neighbors):
            one, two = (
                query.assemble([execute(in_memory(rows, neighbors), TablesPlan(AXES, tables))][0])
                for rows in pair
            )
            for shift in itertools.product((-4, 0, 4), repeat=len(one)):
                seen = [value + step for value, step in zip(one, shift, strict=True)]
                logs = [
                    sum(abs(y - x) for y, x in zip(seen, given, strict=True)) / spread
                    for given in (one, two)
                ]
                found = max(found, abs(float(logs[0] - logs[1])))
        return found

    assert worst(spread) <= float(epsilon)
    assert worst(spread / 2) > float(epsilon)


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_the_law_of_chosen_distances_keeps_epsilon_on_a_small_domain(neighbors):
    """All orders of the chosen tables, for all neighbours: the ratio of the exact laws is at most
    that of the price; with four times the rate it is not."""
    tables = ((0,), (1,), (2,))
    guesses = tuple(
        guess for table, guess in zip(TABLES, guesses_at(ROWS[0]), strict=True) if table in tables
    )
    query = Discrepancies(AXES, tables, guesses)
    _, _, largest = query.sensitivity(neighbors)
    count, epsilon = 2, Fraction(1, 2)

    def law(scores, rate):
        found = {}
        for order in itertools.permutations(range(3), count):
            left, chance = [0, 1, 2], 1.0
            for place in order:
                weights = [math.exp(rate * (scores[one] - max(scores))) for one in left]
                chance *= weights[left.index(place)] / sum(weights)
                left.remove(place)
            found[order] = chance
        return found

    def worst(rate):
        ratios = [0.0]
        for pair in neighbouring(neighbors):
            plan = TablesPlan(AXES, tables)
            one, two = (
                law(query.assemble(execute(in_memory(rows, neighbors), plan)), rate)
                for rows in pair
            )
            ratios += [abs(math.log(one[order] / two[order])) for order in one]
        return max(ratios)

    rate = float(epsilon / (count * largest.span))
    assert worst(rate) <= float(epsilon)
    # the price has room: what all distances move alike tells nothing
    assert worst(4 * rate) > float(epsilon)


# -- what is refused, what is stored ----------------------------------------


def test_the_session_answers_and_the_query_is_read_again():
    rows = [("a", *row) for row in ROWS * 40]
    data = dp.from_arrays(columns_of(rows), schema=SCHEMA, neighbors=dp.Replace())
    session = seeded_session(data, dp.GDP(100), 3)
    for query in queries():
        assert query_from_dict(query.to_dict()) == query
        mechanism = gaussian_noise(query.sensitivity(dp.Replace())[1], Fraction(400))
        release = session.release(Question(Description("tables"), query, mechanism, dp.GDP(20)))
        exact = statistic(query, execute(in_memory(rows, dp.Replace()), PLAN))
        sigma = math.sqrt(mechanism.variance)
        noisy = np.array(release.integers) / (1 << mechanism.refinement)
        assert np.abs(noisy - exact).max() < 7 * sigma


@pytest.mark.parametrize(
    "made",
    [
        lambda: Axis("g", True),
        lambda: Axis(Levels("g", 2), 1),
        lambda: Marginals((), ((0,),), (1,)),
        lambda: Marginals(AXES, (), ()),
        lambda: Marginals(AXES, ((0,), (0,)), (1, 1)),
        lambda: Marginals(AXES, ((1, 0),), (1,)),
        lambda: Marginals(AXES, ((0, 0),), (1,)),
        lambda: Marginals(AXES, ((0, 9),), (1,)),
        lambda: Marginals(AXES, ((-1,),), (1,)),
        lambda: Marginals(AXES, ((0,),), (0,)),
        lambda: Marginals(AXES, ((0,),), (1, 1)),
        lambda: Marginals(AXES, ((0,),), (1.0,)),
        lambda: Marginals(
            tuple(Axis(Levels(name, 1 << 11), True) for name in "ab"), ((0, 1),), (1,)
        ),
        lambda: Discrepancies(AXES, ((0,),), ((0, 0),)),
        lambda: Discrepancies(AXES, ((0,),), ((0, 0, 0.5),)),
        lambda: Discrepancies(AXES, ((0,),), ((0, 0, 1 << 41),)),
        lambda: Discrepancies(AXES, ((0,),), ((0, 0, 0),), "rows"),
        lambda: Discrepancies(AXES, ((0, 1),), ((0,) * 6,), "ranges"),
        lambda: Discrepancies(
            (Axis(Levels("a", 1 << 12), True),), ((0,),), ((0,) * 4097,), "ranges"
        ),
    ],
)
def test_what_are_no_tables_is_refused(made):
    with pytest.raises(InvalidParameter):
        made()


def test_sizes_are_those_of_the_statistic():
    for query in queries():
        counts = [np.zeros(size, np.int64) for size in sizes_of(query.plan())]
        assert len(query.assemble(counts)) == query.size
