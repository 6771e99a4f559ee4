"""Data in memory: shapes are refused from metadata alone, cells are read only when asked."""

from __future__ import annotations

import datetime
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.errors import DataShapeRefused
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Integer, Real, Schema
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame

SCHEMA = Schema({"a": Integer(0, 10, missing=5), "b": Category(["x", "y"])})
FACTOR = number_factor(SCHEMA, "a", "a sum")


def values_of_a(engine):
    count, total = engine.sums(SumsPlan((), ((), (FACTOR,))))[0]
    return count, int(count * 5 + total * FACTOR.encoding.step)


class Untouchable(list):
    """A column whose length may be asked, and whose cells may not."""

    def __iter__(self):
        raise AssertionError("a cell was read")

    __getitem__ = None


def test_making_an_engine_reads_no_cell():
    engine = memory_engine_from_arrays(
        {"a": Untouchable([1, 2]), "b": Untouchable(["x", "y"])}, SCHEMA, Replace()
    )
    assert engine.public_count() == 2
    with pytest.raises(AssertionError, match="a cell was read"):
        engine.sums(SumsPlan((Levels("b", 2),), ((),)))


def test_shapes_are_refused():
    for bad in (
        {"a": [1]},
        {"a": [1], "b": ["x", "y"]},
        {"a": np.zeros((2, 2)), "b": ["x", "y"]},
        {"a": 3, "b": ["x"]},
        {"a": "text", "b": ["x"]},
        [1, 2],
        None,
        {"a": np.float64(1), "b": ["x"]},
    ):
        with pytest.raises(DataShapeRefused):
            memory_engine_from_arrays(bad, SCHEMA, Replace())
    for bad in (
        {"a": [1], "b": ["x"]},
        5,
        pl.LazyFrame({"a": [1], "c": ["x"]}),
        pd.DataFrame({"a": [1]}),
        pd.DataFrame([[1, "x", 2]], columns=["a", "b", "a"]),
    ):
        with pytest.raises(DataShapeRefused):
            memory_engine_from_frame(bad, SCHEMA, Replace())
    with pytest.raises(DataShapeRefused, match=r"'id'.*columns: a, b"):
        memory_engine_from_arrays({"a": [1], "b": ["x"]}, SCHEMA, AddRemove(unit="id", max_rows=1))


def test_a_unit_column_of_dates_is_refused_from_its_type():
    days = np.array(["2020-01-01"], dtype="datetime64[D]")
    with pytest.raises(DataShapeRefused, match="datetime64"):
        memory_engine_from_arrays(
            {"a": [1], "b": ["x"], "day": days}, SCHEMA, AddRemove(unit="day", max_rows=1)
        )
    with pytest.raises(DataShapeRefused, match="Date"):
        memory_engine_from_frame(
            pl.DataFrame({"a": [1], "b": ["x"], "day": [datetime.date(2020, 1, 1)]}),
            SCHEMA,
            AddRemove(unit="day", max_rows=1),
        )


@pytest.mark.parametrize(
    "column",
    [
        [datetime.date(2020, 1, 1), None],
        [[1], [2, 3]],
        [{"x": 1}, {}],
        [object(), pd.NA],
        [b"1", b"2"],
        [1j, 2j],
        [pd.NaT, np.datetime64("2020-01-01")],
        np.array([b"1", b"2"]),
        np.array([1j, 2j]),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([(1,), (2,)], dtype=[("x", int)]),
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pl.Series([[1], [2, 3]]),
        pa.chunked_array([pa.array([None, None])]),
        pl.Series([datetime.timedelta(1), None]),
    ],
)
def test_wrong_types_become_missing(column):
    assert values_of_a(
        memory_engine_from_arrays({"a": column, "b": ["x", "y"]}, SCHEMA, Replace())
    ) == (2, 10)


@pytest.mark.parametrize(
    "column",
    [
        [10**5000, 1],
        ["1e999", " 1 "],
        np.array([np.inf, 1.0], dtype=np.float16),
        np.array([np.longdouble("1e4000"), 1]),
        np.array([255, 1], dtype=np.uint8),
        [np.float32(99), np.int8(1)],
        [np.str_("77"), True],
        pd.Series([99, 1], dtype="Int8"),
        pd.Series(["99", "1"], dtype="category"),
        pl.Series(["99", "1"], dtype=pl.Categorical),
        pa.chunked_array([pa.array([99, 1]), pa.array([], pa.int64())]),
        pd.Series([99, 1], dtype=object),
        pl.Series([99, 1], dtype=pl.Int128),
        np.array(["99", "1"]),
    ],
)
def test_numbers_of_every_type_are_read(column):
    assert values_of_a(
        memory_engine_from_arrays({"a": column, "b": ["x", "y"]}, SCHEMA, Replace())
    ) == (2, 11)


def test_text_that_is_not_utf8_matches_nothing():
    broken = pa.Array.from_buffers(pa.string(), 2, pa.array([b"x", b"\xff"]).buffers())
    table = pa.table({"a": [1, 2], "b": broken})
    assert memory_engine_from_frame(table, SCHEMA, Replace()).sums(
        SumsPlan((Levels("b", 2),), ((),))
    )[:, 0].tolist() == [1, 0]


def test_codes_are_kept_in_two_bytes_and_threads_share_them():
    schema = Schema({"x": Real(0, 1), "y": Real(0, 1, bits=32)})
    engine = memory_engine_from_arrays(
        {"x": np.linspace(0, 1, 1000), "y": np.linspace(0, 1, 1000)}, schema, Replace()
    )
    plan = SumsPlan(
        (), ((number_factor(schema, "x", "a sum"),), (number_factor(schema, "y", "a sum"),))
    )
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(engine.sums(plan).tolist()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({str(answer) for answer in answers}) == 1
    assert sorted(codes.dtype.itemsize for codes in engine._codes.values()) == [1, 1, 2, 4]


def test_integers_near_the_extremes_of_machine_types_do_not_wrap():
    """Case 38: neighbours at the ends of int32,
    int64 and uint64 differ by no more than the range.
    """
    schema = Schema({"x": Integer(0, 2**31 - 1), "y": Integer(0, 2**15)})
    plan = SumsPlan(
        (),
        (
            (number_factor(schema, "x", "a sum"),),
            (number_factor(schema, "x", "a sum"), number_factor(schema, "y", "a sum", 16)),
        ),
    )
    for dtype in (np.int32, np.int64, np.uint64, np.uint32):
        ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
        answers = [
            memory_engine_from_arrays(
                {"x": np.array([end] * 1000, dtype=dtype), "y": np.full(1000, 2**15)},
                schema,
                Replace(),
            ).sums(plan)[0]
            for end in ends
        ]
        bound = 2**31 - 1
        assert [answer[0] for answer in answers] == [-1000 * bound, 1000 * bound]
        largest = plan.terms[1][1].encoding.high
        assert [answer[1] for answer in answers] == [
            -1000 * bound * largest,
            1000 * bound * largest,
        ]
