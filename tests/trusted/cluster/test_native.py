"""Which questions Spark's own expressions answer, and which go the Python way: decided by the
schema and the types alone. What the expressions give is in native_cells.py, which a session asks.
"""

from __future__ import annotations

import pytest

import discreet as dp
from discreet.schema import Boolean, Category, Date, Integer, Open, Real, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Cycle, Held, Levels
from discreet.specs.queries.plans import Factor, GramPlan, SumsPlan
from discreet.trusted.cluster.native import MOST_ROWS, WIDTH, Query, hashes, native
from discreet.trusted.cluster.tasks import Reading

NUMBER = Factor("x", Real(0, 1).encoding())
COUNT = SumsPlan((), ((),))
KEY = b"k" * 32


def asked(plan, column, kind):
    reading = Reading(Schema({"x": column}), dp.AddRemove(), ("x",), KEY)
    return native(plan, reading, {"s0": kind})


def sums(key, term=()):
    return SumsPlan((key,), (term,))


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint", "float", "double"])
def test_numbers_are_answered_by_spark(kind):
    mean, held = SumsPlan((), ((), (NUMBER,))), sums(Held("x"), (NUMBER, NUMBER))
    for plan in (None, COUNT, mean, held, HistogramPlan((), NUMBER)):
        assert asked(plan, Real(0, 1), kind) is not None
    assert asked(sums(Levels("x", 2)), Category([1, 0]), kind) is not None


@pytest.mark.parametrize(
    ("plan", "column", "kind"),
    [
        (sums(Held("x"), (NUMBER,)), Real(0, 1), "string"),
        (sums(Held("x"), (NUMBER,)), Real(0, 1), "decimal(10,2)"),
        (sums(Held("x")), Date("2020-01-01", "2021-01-01"), "date"),
        (sums(Held("x")), Date("2020-01-01", "2021-01-01"), "bigint"),
        (sums(Held("x")), Boolean(), "string"),
        (sums(Held("x")), Open(), "string"),
        (sums(Levels("x", 2)), Category(["a", "1"]), "string"),  # " 1.0" is that level too
        (sums(Levels("x", 2)), Category(["a", "True"]), "string"),
        (sums(Levels("x", 2)), Category(["a", "b"]), "string collate UNICODE_CI"),
        (sums(Levels("x", 2)), Category(["a", "\ud800"]), "string"),
        (sums(Levels("x", 2)), Category(["a", "b"]), "decimal(10,2)"),
        (sums(Levels("x", 99)), Category([f"level {n}" for n in range(99)]), "string"),
        (sums(Bins("x", tuple(n / 99 for n in range(99)))), Real(0, 1), "double"),
        (sums(Cycle("x", 7)), Integer(0, 50), "int"),
        (HistogramPlan((Between("x", 0, 1),), NUMBER), Real(0, 1), "timestamp"),
        (SumsPlan((), ((),) * 13), Real(0, 1), "double"),
        (GramPlan((NUMBER,)), Real(0, 1), "double"),
    ],
    ids=str,
)
def test_what_is_not_proven_goes_the_python_way(plan, column, kind):
    assert asked(plan, column, kind) is None


def test_no_sum_of_the_most_rows_leaves_64_bits():
    """Pieces, put together, are the product, whatever its sign, and each is small."""
    wide, wider = Real(0, 1, bits=32).encoding(), Real(0, 1).encoding()
    query = Query(Schema({"x": Real(0, 1, bits=32)}), {"x": "s0"}, {"s0": "double"})
    query.add(0, (Factor("x", wide), Factor("x", wider)))
    for product in (-(wide.high * wider.high), -1, 0, 12345678901, wide.high * wider.high):
        found = 0
        for _, _, shift in query.pieces:
            last = shift == query.pieces[-1][2]
            piece = product >> shift if last else (product >> shift) & ((1 << (WIDTH - 1)) - 1)
            assert abs(piece) * MOST_ROWS < 1 << 62
            found += piece << shift
        assert found == product


def test_hashes_tell_rows_and_cells_apart_by_a_key():
    assert len(hashes(KEY, ["s0"])) == 1
    two = hashes(KEY, ["s0", "s1"])
    assert len(two) == 3
    assert "isnull(s0), s1, isnull(s1)" in two[0]
    assert two != hashes(b"l" * 32, ["s0", "s1"])
