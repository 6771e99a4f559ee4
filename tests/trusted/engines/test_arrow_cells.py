"""Columns of Arrow: one reading a type, decided by the type alone;
no cell changes how another one is read.
"""

from __future__ import annotations

import datetime
import math
import random
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Category, Open, Real, Schema, text_number
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.arrow_cells import (
    ArrowDecimals,
    ArrowTexts,
    cells_from_arrow,
    reading_of,
)
from discreet.trusted.engines.cells import numbers
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame

ALPHABET = [
    "0",
    "1",
    "9",
    "5",
    "00",
    "123456789",
    "+",
    "-",
    ".",
    "e",
    "E",
    "e-",
    "e+",
    "e3",
    "e400",
    "nan",
    "inf",
    "NaN",
    "INF",
    "infinity",
    "x",
    "_",
    " ",
    "\t",
    ",",
    "٣",
    "f",
    "d",
    "(",
    "e-320",
    "1e",
    "\u00a0",
    "\u2212",
    "\n",
]


@pytest.mark.slow
def test_arrow_reads_decimals_as_the_grammar_says():
    """One column of all texts (some are no numbers), and each text alone: the two ways of reading
    give what `text_number` gives.
    """
    choose = random.Random(1)
    texts = [
        "".join(choose.choice(ALPHABET) for _ in range(choose.randrange(6))) for _ in range(6000)
    ]
    texts += [
        repr(choose.uniform(-1, 1) * 10.0 ** choose.randrange(-330, 308)) for _ in range(4000)
    ]
    texts += [
        str(choose.getrandbits(choose.randrange(1, 90))) + "." + str(choose.getrandbits(40))
        for _ in range(2000)
    ]
    expected = np.array(
        [math.nan if (number := text_number(text)) is None else number for text in texts]
    )
    together = ArrowTexts(pa.array(texts)).numbers()
    assert np.array_equal(together, expected, equal_nan=True)
    assert np.array_equal(np.signbit(together), np.signbit(expected))
    for text, number in zip(texts[:6000:3], expected[:6000:3], strict=True):
        assert np.array_equal(ArrowTexts(pa.array([text])).numbers(), [number], equal_nan=True), (
            text
        )
        assert np.array_equal(
            ArrowTexts(pa.array([text]).dictionary_encode()).numbers(), [number], equal_nan=True
        ), text
    readable = [
        text for text, number in zip(texts, expected, strict=True) if not math.isnan(number)
    ]
    # without a text that is no number
    assert np.array_equal(ArrowTexts(pa.array(readable)).numbers(), expected[~np.isnan(expected)])


def test_decimals_are_rounded_once():
    choose = random.Random(2)
    for kind in (
        pa.decimal128(38, 4),
        pa.decimal128(38, 30),
        pa.decimal128(10, 2),
        pa.decimal256(60, 5),
        pa.decimal128(38, 22),
        pa.decimal128(20, -3),
    ):
        digits = kind.precision
        cells = [
            None,
            *(
                Decimal(
                    choose.choice([-1, 1]) * choose.randrange(10 ** choose.randrange(1, digits + 1))
                ).scaleb(-kind.scale)
                for _ in range(500)
            ),
        ]
        array = pa.array(cells, kind)
        expected = [math.nan if cell is None else float(cell) for cell in cells]
        for part in (array, array.slice(3), pa.chunked_array([array.slice(0, 7), array.slice(7)])):
            found = numbers(cells_from_arrow(part))
            assert np.array_equal(found, expected[len(expected) - len(part) :], equal_nan=True), (
                kind
            )
    assert ArrowDecimals(pa.array([], pa.decimal128(5, 2))).numbers().tolist() == []


SCHEMA = Schema(
    {"v": Real(-10, 100), "f": Boolean(), "c": Category(["1", "true", "a", 3]), "k": Open()}
)
PLANS = (
    SumsPlan(
        (), ((), (number_factor(SCHEMA, "v", "a sum"),), (number_factor(SCHEMA, "f", "a sum"),))
    ),
    SumsPlan((Levels("c", 4),), ((),)),
)
DAY = datetime.date(2020, 2, 1)
EVERY_TYPE = {
    "int8": pa.array([1, None, -3, 3], pa.int8()),
    "uint64": pa.array([1, 2**64 - 1, None, 3], pa.uint64()),
    "half": pa.array(np.array([1, np.nan, 3, -0.0], dtype=np.float16)),
    "float": pa.array([1.0, None, math.nan, 3.0], pa.float32()),
    "double": pa.array([-0.0, math.inf, -math.inf, 5e-324]),
    "boolean": pa.array([True, None, False, True]),
    "decimal": pa.array(
        [Decimal("1.00"), None, Decimal("3.00"), Decimal("-99.99")], pa.decimal128(9, 2)
    ),
    "decimal256": pa.array([Decimal(1), None, Decimal(10) ** 40, Decimal(3)], pa.decimal256(60, 2)),
    "string": pa.array(["1", None, "true", "a"]),
    "large string": pa.array(["1", None, "true", "3"], pa.large_string()),
    "string view": pa.array(["1", None, "a" * 40, "3"], pa.string_view()),
    "dictionary": pa.array(["1", None, "a", "1"]).dictionary_encode(),
    "dictionary by unsigned": pa.array(["1", None, "a", "1"])
    .dictionary_encode()
    .cast(pa.dictionary(pa.uint8(), pa.string())),
    "dictionary of numbers": pa.array([1, 3, None, 1]).dictionary_encode(),
    "runs": pc.run_end_encode(pa.array([1, 1, 3, None])),
    "bool8": pa.array([1, 0, None, 7], pa.int8()).cast(pa.bool8()),
    "json": pa.array(["1", "{}", None, "3"]).cast(pa.json_()),
    "uuid": pa.array(
        [uuid.UUID(int=5).bytes, None, uuid.UUID(int=5).bytes, uuid.UUID(int=6).bytes], pa.uuid()
    ),
    "duration": pa.array([1, 3, None, 1], pa.duration("us")),
    "date": pa.array([DAY, None, DAY, DAY]),
    "date64": pa.array([1, None, 3, 1], pa.date64()),
    "time": pa.array([1, None, 3, 3], pa.time64("us")),
    "timestamp": pa.array([1, 3, None, 1], pa.timestamp("ns", "UTC")),
    "binary": pa.array([b"1", None, b"a", b"3"]),
    "fixed bytes": pa.array([b"1", None, b"a", b"3"], pa.binary(1)),
    "binary view": pa.array([b"1", None, b"a", b"3"], pa.binary_view()),
    "list": pa.array([[1], None, [], [3]]),
    "structure": pa.array([{"x": 1}, None, {"x": 3}, {}], pa.struct([("x", pa.int64())])),
    "map": pa.array([[("a", 1)], None, [], []], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(4),
    "interval": pa.array([(1, 2, 3), None, (0, 0, 0), (1, 1, 1)], pa.month_day_nano_interval()),
}
NO_PARQUET = {"runs", "interval"}  # types that Parquet has not


def frame_of(column):
    return pa.table(dict.fromkeys(SCHEMA, column))


def answers(engine):
    counts = execute(engine, OpenPlan(("k",), ()))
    return (
        [engine.sums(plan).tolist() for plan in PLANS],
        list(counts.names),
        counts.counts.tolist(),
    )


def plain_cell(cell):
    """A cell as a list holds it: what is neither number nor text is nothing to any column."""
    return cell if isinstance(cell, (bool, int, float, str, Decimal, uuid.UUID)) else None


@pytest.mark.parametrize("name", EVERY_TYPE)
def test_every_arrow_type_is_read_alike_in_files_in_frames_and_cell_by_cell(name, tmp_path):
    column = EVERY_TYPE[name]
    expected = answers(
        memory_engine_from_arrays(
            {key: [plain_cell(cell) for cell in column.to_pylist()] for key in SCHEMA},
            SCHEMA,
            AddRemove(),
        )
    )
    assert answers(memory_engine_from_frame(frame_of(column), SCHEMA, AddRemove())) == expected
    assert (
        answers(
            memory_engine_from_frame(
                frame_of(pa.chunked_array([column.slice(0, 1), column.slice(1)])),
                SCHEMA,
                AddRemove(),
            )
        )
        == expected
    )
    if name not in NO_PARQUET:
        pq.write_table(frame_of(column), tmp_path / "data.parquet", row_group_size=3)
        assert (
            answers(FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, AddRemove()))
            == expected
        )


@pytest.mark.parametrize("name", [name for name in EVERY_TYPE if name not in NO_PARQUET])
def test_one_cell_that_is_not_utf8_changes_no_other_column(name, tmp_path):
    """DuckDB refused such a file, and the engine that took over read durations and bool8 in another
    way: a count moved from 1000 to 0.
    """
    seen = []
    for cell in (b"x", b"\xff"):
        text = pa.Array.from_buffers(pa.string(), 4, pa.array([b"x", cell, b"y", b"z"]).buffers())
        schema = Schema({**{key: SCHEMA[key] for key in SCHEMA}, "t": Category(["x", "y"])})
        pq.write_table(
            pa.table({**dict.fromkeys(SCHEMA, EVERY_TYPE[name]), "t": text}),
            tmp_path / "data.parquet",
        )
        engine = FileEngine(tmp_path / "data.parquet", "parquet", schema, AddRemove())
        seen.append(answers(engine))
        assert engine.sums(SumsPlan((Levels("t", 2),), ((),)))[:, 0].tolist() == [
            1 + (cell == b"x"),
            1,
        ]
    assert seen[0] == seen[1]


def test_a_dictionary_may_list_texts_twice_or_for_nobody():
    listed = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2, 4], pa.int8()), pa.array(["a", "b", "a", "nobody", None])
    )
    frame = pa.table({"k": listed, "c": listed, "id": listed, "v": [1.0] * 5, "f": [True] * 5})
    schema = Schema({"k": Open(), "c": Category(["a", "b"])})
    engine = memory_engine_from_frame(frame, schema, Replace(unit="id", max_rows=1))
    assert engine.public_count() == 2  # a and b
    rows = memory_engine_from_frame(frame, schema, AddRemove())
    counts = execute(rows, OpenPlan(("k",), ()))
    assert (list(counts.names), counts.counts.tolist()) == (["a", "b"], [2, 1])
    assert rows.sums(SumsPlan((Levels("c", 2),), ((),)))[:, 0].tolist() == [2, 1]


def test_a_column_of_objects_is_read_cell_by_cell_whatever_its_first_cells_are():
    """narwhals calls a pandas column of objects text if its first hundred cells are:
    later numbers then matched no level.
    """
    schema = Schema({"c": Category(["x", "5"])})
    late = ["x"] * 150 + [5, "5", np.timedelta64(3, "D"), None]
    for first in ("x", 7):
        cells = [first, *late[1:]]
        frame = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
        counts = (
            memory_engine_from_frame(frame, schema, AddRemove())
            .sums(SumsPlan((Levels("c", 2),), ((),)))[:, 0]
            .tolist()
        )
        assert counts == [149 + (first == "x"), 2]


class Unhashable(str):
    def __hash__(self):
        raise RuntimeError("no hash")


class Raises(int):
    def __index__(self):
        raise RuntimeError("no number")

    __int__ = __float__ = __bool__ = __index__


class LyingFloat(np.float64):
    def __float__(self):
        raise RuntimeError("no number")


@pytest.mark.parametrize(
    "cell",
    [
        np.timedelta64(3, "D"),
        np.timedelta64("NaT"),
        np.datetime64("2020-01-01"),
        Unhashable("x"),
        Raises(3),
        LyingFloat(3.0),
        3 + 0j,
        Decimal("sNaN"),
        10**400,
        [1],
        {},
        b"x",
        object(),
        uuid.UUID(int=1),
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_no_cell_makes_reading_fail(cell):
    """A span of time is an integer to numpy, and its int() raises;
    so does the hash of a text with a class of its own.
    """
    schema = Schema({"v": Real(0, 10), "f": Boolean(), "c": Category(["x", "3"]), "k": Open()})
    for column in (
        [cell, "x", 3],
        np.array([cell, "x", 3], dtype=object),
        pd.Series([cell, "x", 3], dtype=object),
    ):
        for neighbors in (AddRemove(), Replace(unit="id", max_rows=1)):
            engine = memory_engine_from_arrays(
                {**dict.fromkeys(schema, column), "id": column}, schema, neighbors
            )
            assert engine.sums(SumsPlan((), ((), (number_factor(schema, "v", "a sum"),))))[
                0, 0
            ] in (2, 3)
            assert engine.sums(SumsPlan((Levels("c", 2),), ((),))).sum() in (2, 3)
            assert "x" in execute(engine, OpenPlan(("k",), ())).names


def test_each_reading_has_a_type():
    assert {reading_of(column.type) for column in EVERY_TYPE.values()} == {
        "number",
        "decimal",
        "boolean",
        "text",
        "time",
        "uuid",
        "nothing",
    }
