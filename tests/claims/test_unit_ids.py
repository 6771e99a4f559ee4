"""Claim: which rows of a unit count is decided by that unit's rows alone,
       whatever its id is and whatever others do.

Every row has a category of its own, so that a table of counts shows exactly which rows were kept.
"""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Real, Schema
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.plans import SumsPlan
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays

ROWS = 24
SCHEMA = Schema({"row": Category(list(range(ROWS))), "x": Real(0, 1)})
PLAN = SumsPlan((Levels("row", ROWS),), ((),))
OTHER_IDS = [
    1,
    "1",
    1.5,
    2**70,
    None,
    "",
    "é",
    "TRUE",
    -(10**40),
    Decimal("0.1"),
    "null",
    9007199254740993,
    "\U0001f600",
]
MY_IDS = [
    True,
    "1.0",
    2,
    2.0**71,
    "e\u0301",
    "None",
    "nan",
    math.inf,
    Decimal("0.10000000000000000555"),
    9007199254740992,
    " 1",
    b"no id".decode(),
    0,
]


def kept(ids, max_rows, *, relation=AddRemove, values=None):
    """Which rows count, as a set of row numbers."""
    columns = {"id": ids, "row": list(range(len(ids))), "x": values or [0.5] * len(ids)}
    sums = memory_engine_from_arrays(columns, SCHEMA, relation(unit="id", max_rows=max_rows)).sums(
        PLAN
    )
    return {row for row in range(len(ids)) if sums[row, 0]}


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(OTHER_IDS), min_size=1, max_size=14),
    st.sampled_from(MY_IDS),
    st.integers(0, 10),
    st.integers(1, 3),
    st.sampled_from([Replace, AddRemove]),
)
def test_no_unit_decides_which_rows_of_others_count(others, mine, count, max_rows, relation):
    values = [(row % 7) / 7 for row in range(len(others) + count)]
    alone = kept(others, max_rows, relation=relation, values=values[: len(others)])
    together = kept([*others, *[mine] * count], max_rows, relation=relation, values=values)
    assert {row for row in together if row < len(others)} == alone
    assert len(together - alone) == min(count, max_rows)


def test_the_same_id_in_other_clothes_is_one_unit():
    for ids in (
        [1, 1.0, Decimal(1), np.int64(1), np.float32(1), Decimal("1.000")],
        ["é", np.str_("é")],
        [True, np.True_, "true"],
        [0.0, -0.0, 0, Decimal("-0")],
        [2**70, float(2**70), Decimal(2**70)],
        [math.inf, np.float32(math.inf)],
    ):
        assert len(kept(ids, 1)) == 1, ids
    one = uuid.uuid4()
    assert len(kept([one, str(one)], 1)) == 1


def test_rows_without_an_id_count_nowhere():
    """Whoever has no id is in no unit: their rows move nothing,
    and cannot move which rows of others count.
    """
    nobody = [
        None,
        math.nan,
        np.nan,
        Decimal("NaN"),
        [1],
        {},
        object(),
        datetime.date(2020, 1, 1),
        1j,
    ]
    assert kept(nobody, 3) == set()
    assert kept([*nobody, 7, *nobody], 1) == {len(nobody)}
    typed = np.array([math.nan, 7.0, math.nan, math.nan])
    assert kept(typed, 3) == {1}
    assert kept(np.ma.array([1.0, 7.0, 2.0, 3.0], mask=[True, False, True, True]), 3) == {1}


def test_ids_that_differ_are_different_units():
    ids = [
        1,
        "01",
        "1.0",
        1.5,
        True,
        2**53,
        2**53 + 1,
        "é",
        "e\u0301",
        "É",
        " é",
        "",
        "None",
        math.inf,
        -math.inf,
        10**400,
        "\x00",
        "\ud800",
    ]
    assert len(kept(ids, 1)) == len(ids)


TYPED = {
    "text": (
        pa.string(),
        ["a", "A", "a ", "é", "e\u0301", "", None, "\x00", "a\x00", "1", "1.0", "NULL"],
    ),
    "integer": (pa.int64(), [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "unsigned": (pa.uint64(), [0, 1, 2**53 + 1, 2**64 - 1, 2**64 - 2, None]),
    "float": (
        pa.float64(),
        [0.0, 1.0, 1.0000000000000002, 5e-324, 1e308, math.inf, -math.inf, None],
    ),
}


@pytest.mark.parametrize("kind", TYPED)
def test_files_keep_the_same_rows_and_no_unit_decides_for_others(kind, tmp_path):
    type_, distinct = TYPED[kind]
    last = distinct[1]
    others = [cell for cell in distinct if cell != last] + [distinct[0]] * 4
    results = []
    for ids in (others, [*others, *[last] * 6]):
        table = pa.table(
            {
                "id": pa.array(ids, type=type_),
                "row": pa.array(range(len(ids)), type=pa.int64()),
                "x": pa.array([0.5] * len(ids)),
            }
        )
        pq.write_table(table, tmp_path / "data.parquet")
        sums = FileEngine(
            tmp_path / "data.parquet", "parquet", SCHEMA, AddRemove(unit="id", max_rows=2)
        ).sums(PLAN)
        results.append({row for row in range(len(ids)) if sums[row, 0]})
        assert results[-1] == kept(ids, 2)
    assert {row for row in results[1] if row < len(others)} == results[0]
    assert len(results[1]) == len(results[0]) + 2
    # every other unit has one row, the first five (two count); None has no unit
    assert len(results[0]) == len(distinct) - 2 + 1
