"""Claim: one unit moves the number of rejecting parts by at most one, whatever the test;
failures say nothing.
"""

from __future__ import annotations

import itertools
import secrets
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Category, Integer, Schema
from discreet.specs.queries.parts import PartRejections, PartsPlan
from discreet.specs.registry import query_from_dict
from discreet.testing.seeded import SeededSource
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.noise.assignment import balanced_parts, independent_parts
from discreet.trusted.noise.source import secure_source

SCHEMA = Schema({"x": Integer(0, 9), "g": Category(["a", "b"]), "f": Boolean()})
HALF = 0.5


def engine(rows, neighbors):
    return memory_engine_from_arrays(
        {name: [row[place] for row in rows] for place, name in enumerate(("id", "x", "g", "f"))},
        SCHEMA,
        neighbors,
    )


def odd(x, g):
    """A test as jumpy as can be: every row turns its part around."""
    return 0.0 if int(x.sum()) % 2 else 1.0


class FixedWords:
    """The same random word for the same unit, and a word for one that is absent:
    the coupling of the proof.
    """

    secure = False

    def __init__(self, by_unit):
        self._by_unit = by_unit

    def uint64(self, count):
        return np.array(self._by_unit[:count], dtype=np.uint64)


def reject(data, plan, source=None):
    return execute(data, plan, source or secure_source())


def plan(test, many=3, keys=()):
    return PartsPlan(keys, ("x", "g"), many, HALF, test)


@pytest.mark.parametrize(
    "neighbors",
    [Replace(), AddRemove(), Replace(unit="id", max_rows=2), AddRemove(unit="id", max_rows=2)],
    ids=str,
)
def test_one_unit_moves_the_count_by_at_most_one(neighbors):
    words = [int.from_bytes(secrets.token_bytes(7), "little") for _ in range(8)]
    others = [(name, x, "a", True) for name, x in (("u1", 1), ("u1", 4), ("u2", 7), ("u3", 2))]
    mine = [
        [("me", x, "b", True)] * k
        for x, k in itertools.product(range(4), (1, 2) if neighbors.unit else (1,))
    ]
    without = [[]] if isinstance(neighbors, AddRemove) else []
    counts = [
        reject(engine(others + own, neighbors), plan(odd), FixedWords(words))
        for own in mine + without
    ]
    assert max(counts) - min(counts) <= 1
    if neighbors.rows == 1:
        assert max(counts) - min(counts) == 1  # the bound is attained


def test_an_assignment_that_looks_at_the_data_would_move_it_further():
    """The control: parts of sorted rows are no secret parts, and one row shifts all of them."""

    def sorted_parts(values):
        return sum(int(part.min()) % 2 for part in np.array_split(np.sort(values), 4))

    base = np.array([1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8])
    assert abs(sorted_parts(np.append(base[1:], 9)) - sorted_parts(base)) == 4


def test_parts_are_balanced_where_rows_are_public_and_units_stay_together():
    assert sorted(np.bincount(balanced_parts(secure_source(), 11, 4))) == [2, 3, 3, 3]
    assert balanced_parts(secure_source(), 0, 3).size == 0
    seen = []
    rows = [(f"u{number // 2}", number // 2 % 10, "a", True) for number in range(40)]
    reject(
        engine(rows, AddRemove(unit="id", max_rows=2)),
        plan(lambda x, g: seen.append(np.sort(x)) or 1.0, many=4),
    )
    assert len(seen) == 4
    assert sum(len(x) for x in seen) == 40
    assert all(len(x) % 2 == 0 for x in seen)
    counts = np.bincount(independent_parts(secure_source(), 100_000, 5), minlength=5)
    assert np.abs(counts - 20_000).max() < 7 * np.sqrt(100_000 * 0.16)


@pytest.mark.parametrize("draw", [balanced_parts, independent_parts])
def test_parts_are_drawn_anew_and_each_pair_is_together_as_often_as_it_should_be(draw):
    """Six rows in three parts, 4000 times: two rows are together with probability 1/5 where parts
    have two rows each, and 1/3 where each is drawn for itself.
    """
    source, runs = SeededSource("parts"), 4000
    drawn = np.array([draw(source, 6, 3) for _ in range(runs)])
    together = np.mean(drawn[:, :, None] == drawn[:, None, :], axis=0)
    share = 1 / 5 if draw is balanced_parts else 1 / 3
    apart = ~np.eye(6, dtype=bool)
    assert np.abs(together[apart] - share).max() < 6 * np.sqrt(share * (1 - share) / runs)
    places = np.array([np.mean(drawn == part, axis=0) for part in range(3)])
    assert np.abs(places - 1 / 3).max() < 6 * np.sqrt(2 / 9 / runs)


def fails(x, g):
    raise ValueError(f"a secret {x}")


def leaves(x, g):
    raise SystemExit(3)


@pytest.mark.parametrize(
    "test",
    [
        fails,
        leaves,
        lambda x, g: float("nan"),
        lambda x, g: None,
        lambda x, g: "0.01x",
        lambda x, g: np.zeros(2),
        lambda x: 0.0,
        lambda x, g: -float("inf"),
    ],
)
def test_a_test_that_gives_no_number_rejects_nowhere(test, capfd):
    assert reject(engine([("u", 1, "a", True)] * 6, Replace()), plan(test)) == 0
    assert capfd.readouterr() == ("", "")


def test_nothing_is_printed_and_no_part_sees_another(capfd):
    def careless(x, g):
        print("row", x)
        x[:] = 0
        return 0.0

    data = engine([("u", 5, "a", True)] * 6, Replace())
    assert reject(data, plan(careless)) == 3

    def untouched(x, g):
        return 0.0 if (x == 5).all() and set(g) <= {"a", "b", None} else 1.0

    assert reject(data, plan(untouched)) == 3
    assert capfd.readouterr() == ("", "")


def test_empty_data_runs_the_test_on_empty_parts():
    assert reject(engine([], AddRemove()), plan(lambda x, g: 0.0 if len(x) == 0 else 1.0)) == 3


def test_the_query_is_kept_without_its_function():
    query = PartRejections((), ("x",), 5, Fraction(1, 5), "a.b#1", odd)
    assert query_from_dict(query.to_dict()) == query
    assert query.plan().test is odd
    with pytest.raises(InvalidParameter, match="its function is not here"):
        query_from_dict(query.to_dict()).plan()
    assert [bound.to_dict() for bound in query.sensitivity(Replace(unit="id", max_rows=9))] == [
        {"norm": "l1", "value": "1"},
        {"norm": "l2", "squared": "1"},
    ]
