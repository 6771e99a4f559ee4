"""Claim: neighbouring histograms differ as `Rows` says,
and weighted prefix counts move no further than `Rows.weighted`.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import discreet as dp
from discreet.schema import Schema
from discreet.sensitivity import Rows, histogram_sensitivity
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Subset
from discreet.specs.queries.sums import number_factor
from discreet.specs.statistics import Histogram, histogram_of_cells
from discreet.trusted.engines.memory import memory_engine_from_arrays

SCHEMA = Schema({"x": dp.Integer(0, 2), "g": dp.Category(["in", "out"])})
ROWS = [
    (value, group, person) for value in (0, 2) for group in ("in", "out") for person in ("a", "b")
]


def histogram(rows, neighbors, where):
    columns = {
        "x": [row[0] for row in rows],
        "g": [row[1] for row in rows],
        "id": [row[2] for row in rows],
    }
    query = GridCounts(
        (Subset("g", (0,)),) if where else (), number_factor(SCHEMA, "x", "a histogram"), where
    )
    found = memory_engine_from_arrays(columns, SCHEMA, neighbors).histogram(query.plan())
    dense = np.zeros(found.cells, dtype=int)
    dense[found.places] = found.counts
    return dense, query.sensitivity(neighbors)


def exchanged(rows):
    """All data sets with one row replaced by another."""
    return [[*rows[:i], other, *rows[i + 1 :]] for i in range(len(rows)) for other in ROWS]


def of_one_person(rows, replaced):
    """All data sets in which the rows of person "a" are taken away or, if `replaced`,
    exchanged for up to two others.
    """
    rest, own = [row for row in rows if row[2] != "a"], [row for row in ROWS if row[2] == "a"]
    if not replaced:
        return [rest]
    return [
        rest + list(chosen)
        for size in (1, 2)
        for chosen in itertools.combinations_with_replacement(own, size)
    ]


def moved(before, after):
    """(rows that came, rows that went)."""
    return int(np.maximum(after - before, 0).sum()), int(np.maximum(before - after, 0).sum())


def allowed(came, went, change):
    if change.change == "replaced":
        return came == went <= change.rows
    if change.change == "added or removed":
        return min(came, went) == 0 and max(came, went) <= change.rows
    return max(came, went) <= change.rows


@pytest.mark.few(2)
@pytest.mark.parametrize("where", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize(
    "neighbors",
    [
        dp.Replace(),
        dp.AddRemove(),
        dp.Replace(unit="id", max_rows=2),
        dp.AddRemove(unit="id", max_rows=2),
    ],
    ids=str,
)
def test_neighbouring_tallies_differ_as_stated(neighbors, where):
    worst = 0
    for rows in itertools.combinations_with_replacement(ROWS, 3):
        before, change = histogram(list(rows), neighbors, where)
        if neighbors.unit is not None:
            others = (
                of_one_person(list(rows), isinstance(neighbors, dp.Replace))
                if any(row[2] == "a" for row in rows)
                else []
            )
        else:
            others = (
                exchanged(list(rows)) if isinstance(neighbors, dp.Replace) else [list(rows[1:])]
            )
        for other in others:
            after, _ = histogram(other, neighbors, where)
            assert allowed(*moved(before, after), change), (rows, other)
            worst = max(worst, *moved(before, after))
    assert worst == change.rows  # and the bound is attained


@pytest.mark.parametrize("change", ["replaced", "added or removed", "changed"])
@pytest.mark.parametrize("k", [1, 2])
def test_weighted_prefix_counts_move_no_further(change, k):
    """All changes of at most k values on four cells, all thresholds at once, several weights;
    the bound is attained.
    """
    vectors = [np.array(v) for v in itertools.product(range(k + 1), repeat=4) if sum(v) <= k]
    for below, above in ((1, 1), (1, 3), (9, 1), (0, 1)):
        bound, worst = Rows(k, change).weighted(below, above), 0
        for came, went in itertools.product(vectors, vectors):
            if not allowed(int(came.sum()), int(went.sum()), Rows(k, change)):
                continue
            step = came - went
            for cut in range(5):
                worst = max(
                    worst, abs(below * int(step[:cut].sum()) - above * int(step[cut:].sum()))
                )
        assert worst == bound


def test_relations_become_changes():
    assert histogram_sensitivity(dp.Replace(), optional=False) == Rows(1, "replaced")
    assert histogram_sensitivity(dp.Replace(), optional=True) == Rows(1, "changed")
    assert histogram_sensitivity(dp.AddRemove(unit="id", max_rows=3), optional=True) == Rows(
        3, "added or removed"
    )
    for wrong in ((0, "replaced"), (True, "replaced"), (1, "other")):
        with pytest.raises(dp.DiscreetError, match="number of changed rows"):
            Rows(*wrong)


def test_histograms_count():
    values = np.array([5, 1, 5, 0, 5, 9])
    for cells in (10, 1 << 32):
        found = histogram_of_cells(cells, values)
        assert found.places.tolist() == [0, 1, 5, 9]
        assert found.counts.tolist() == [1, 1, 3, 1]
        assert found.rows == 6
        assert [found.below(place) for place in (0, 1, 2, 5, 6, 9, 10)] == [0, 1, 2, 2, 5, 5, 6]
    empty = histogram_of_cells(10, values[:0])
    assert (empty.rows, empty.below(7), len(empty.places)) == (0, 0, 0)
    assert isinstance(empty, Histogram)
