"""Trees of counts: sensitivity against brute force over all neighbours,
and the statistic against a naive recursion.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.survey import RELATIONS, data_set, survey

import discreet as dp
from discreet.encoding import Encoding
from discreet.neighbors import AddRemove, Neighbors, Replace
from discreet.schema import Integer, Real
from discreet.specs.queries.keys import Subset
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.trees import (
    LEAST_BRANCHING,
    TreeCounts,
    mean_prefix_variance,
    tree_over,
    tree_shape,
)
from discreet.specs.registry import query_from_dict
from discreet.specs.statistics import Histogram, histogram_of_cells
from discreet.trusted.engines.execution import execute

UNITS = [
    Replace(),
    AddRemove(),
    Replace(unit="id", max_rows=1),
    Replace(unit="id", max_rows=2),
    AddRemove(unit="id", max_rows=3),
    Replace(unit="id", max_rows=3),
]
SHAPES = [(2, 1), (3, 1), (2, 2), (2, 3), (3, 2)]


def tree(
    branching: int, levels: int, *, optional: bool = False, cells: int | None = None
) -> TreeCounts:
    cells = branching**levels if cells is None else cells
    return TreeCounts(
        (), Factor("x", Encoding(0.0, 2.0, -(cells - 1), cells - 1)), optional, branching, levels
    )


def naive(query: TreeCounts, places: list[int]) -> list[int]:
    """Every node's count by looking at every row."""
    counts = []
    for level in range(1, query.levels + 1):
        width = query.width * query.branching ** (query.levels - level)
        counts += [
            sum(1 for place in places if place // width == node)
            for node in range(query.branching**level)
        ]
    return counts


def statistic(query: TreeCounts, places: list[int]) -> np.ndarray:
    return np.array(
        query.assemble(histogram_of_cells(query.cells, np.array(places, dtype=np.int64)))
    )


def rows_of_a_unit(query: TreeCounts, neighbors: Neighbors) -> list[tuple[int, ...]]:
    """All that one unit may hold: a row under row-level relations (or none, where a filter can
    leave it out), up to max_rows rows else.
    """
    if neighbors.unit is None:
        return [(leaf,) for leaf in range(query.leaves)] + ([()] if query.optional else [])
    return [
        rows
        for count in range(neighbors.rows + 1)
        for rows in itertools.combinations_with_replacement(range(query.leaves), count)
    ]


@pytest.mark.parametrize("neighbors", UNITS, ids=str)
@pytest.mark.parametrize(("branching", "levels"), SHAPES)
@pytest.mark.parametrize("optional", [False, True])
def test_sensitivity_is_never_exceeded_and_is_attained(
    neighbors: Neighbors, branching: int, levels: int, optional: bool
) -> None:
    query = tree(branching, levels, optional=optional)
    held = np.array([statistic(query, list(rows)) for rows in rows_of_a_unit(query, neighbors)])
    changes = held[:, None, :] - held[None, :, :] if isinstance(neighbors, Replace) else held
    changes = changes.reshape(-1, query.size)
    l1, l2 = query.sensitivity(neighbors)
    assert l1.value == np.abs(changes).sum(axis=1).max()
    assert l2.squared == (changes**2).sum(axis=1).max()


def test_sensitivity_formulas() -> None:
    query = tree(4, 5)
    assert [
        (one.value, two.squared)
        for one, two in (query.sensitivity(neighbors) for neighbors in UNITS)
    ] == [
        (Fraction(a), Fraction(b))
        for a, b in [(10, 10), (5, 5), (10, 10), (20, 40), (15, 45), (30, 90)]
    ]


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 5), st.integers(1, 3), st.integers(2, 150), st.data())
def test_the_statistic_equals_a_naive_recursion(
    branching: int, levels: int, cells: int, data: st.DataObject
) -> None:
    query = tree(branching, levels, cells=cells)
    places = data.draw(st.lists(st.integers(0, cells - 1), max_size=30))
    assert query.assemble(
        histogram_of_cells(query.cells, np.array(places, dtype=np.int64))
    ) == naive(query, places)
    assert query.width * query.leaves >= query.cells > (query.width - 1) * query.leaves


def test_counts_beyond_what_a_float_holds_stay_exact() -> None:
    query = tree(2, 2, cells=8)
    counts = np.array([2**60 + 1, 2**60 + 3], dtype=np.int64)
    assert query.assemble(Histogram(8, np.array([0, 7], dtype=np.int64), counts)) == [
        2**60 + 1,
        2**60 + 3,
        2**60 + 1,
        0,
        0,
        2**60 + 3,
    ]


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_the_engine_counts_what_is_kept(neighbors: Neighbors) -> None:
    data, engine = survey(), data_set(neighbors)._engine
    query = tree_over(
        (Subset("region", (1,)),),
        Factor("age", Integer(18, 90).encoding()),
        optional=True,
        leaves=1000,
        norm=2,
    )
    counts = query.assemble(execute(engine, query.plan()))
    kept = data["age"][data["region"] == "N"]
    assert counts == naive(query, [int(age) - 18 for age in kept])
    assert type(counts[0]) is int
    assert sum(counts[: query.branching]) == len(kept)


def test_trees_come_back_from_json() -> None:
    query = TreeCounts(
        (Subset("region", (1, 2)),), Factor("x", Real(0, 100).encoding()), True, 4, 6
    )
    assert query_from_dict(query.to_dict()) == query


@pytest.mark.parametrize("bad", [(1, 3), (2, 0), (2.0, 3), (True, 3), (2, 19), (1000, 2)])
def test_impossible_trees_are_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(dp.InvalidParameter):
        TreeCounts((), Factor("x", Real(0, 1).encoding()), False, *bad)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("leaves", [1, 2, 3, 7, 73, 256, 1000, 4096, 20_000, 65_535])
def test_the_shape_has_enough_leaves_and_nearly_the_least_noise(leaves: int, norm: int) -> None:
    branching, levels = tree_shape(leaves, norm)
    assert branching**levels >= leaves

    def noise(b: int, h: int) -> float:
        return mean_prefix_variance(b, h) * h ** (3 - norm)

    others = [
        (b, h)
        for h in range(1, 9)
        for b in range(LEAST_BRANCHING, 300)
        if leaves <= b**h <= 4 * leaves + 4
    ]
    assert (
        noise(branching, levels)
        <= 1.05 * min(noise(b, h) for b, h in [*others, (branching, levels)]) + 1e-9
    )


def test_wide_columns_get_wide_leaves() -> None:
    query = tree_over(
        (), Factor("x", Real(0, 1, bits=32).encoding()), optional=False, leaves=1 << 20, norm=2
    )
    assert query.leaves == 1 << 16
    assert query.width == 1 << 16
    assert query.value(0) == pytest.approx(0.0, abs=1e-9)
    assert query.value(query.cells - 1) == pytest.approx(1.0)
