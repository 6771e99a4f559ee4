"""Seams between libraries where one cell decided more than itself: encodings that a writer chooses
by the cells, dictionaries of several pieces, types that cannot be taken by place, spellings of
one id.
"""

from __future__ import annotations

import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Open, Real, Schema
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.arrow_cells import plain
from discreet.trusted.engines.cells import seed_text
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame
from discreet.trusted.extensions import unit_buckets

SCHEMA = Schema({"c": Category(["N", "S"])})
BY_LEVEL = SumsPlan((Levels("c", 2),), ((),))


def counts(engine):
    return engine.sums(BY_LEVEL)[:, 0].tolist()


@pytest.mark.parametrize("last", ["N", "zzz"])
def test_a_text_that_makes_the_writer_choose_another_encoding_is_one_text(last, tmp_path):
    """DuckDB writes a dictionary, or lengths and bytes, by how many different texts there are;
    Arrow reads only the first as a dictionary.
    """
    given = pa.table({"c": ["N"] * 800 + [f"t{place}" for place in range(199)] + [last]})
    path = tmp_path / "data.parquet"
    with duckdb.connect() as connection:
        connection.register("given", given)
        connection.execute(f"COPY given TO '{path}' (FORMAT parquet, PARQUET_VERSION V2)")
    for neighbors in (Replace(), AddRemove()):
        assert counts(FileEngine(path, "parquet", SCHEMA, neighbors)) == [800 + (last == "N"), 0]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_every_encoding_of_text_is_read(encoding, tmp_path):
    pq.write_table(
        pa.table({"c": ["N", "S", None, "N"]}),
        tmp_path / "data.parquet",
        use_dictionary=False,
        column_encoding={"c": encoding},
    )
    assert counts(FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, AddRemove())) == [2, 1]


@pytest.mark.parametrize("last", ["b0", "zzz"])
def test_dictionaries_of_several_pieces_may_have_more_texts_than_one_could(last):
    def encoded(texts):
        return pa.array(texts).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))

    column = pa.chunked_array(
        [
            encoded(["N", *(f"a{place}" for place in range(99))]),
            encoded([*(f"b{place}" for place in range(27)), last]),
        ]
    )
    assert counts(memory_engine_from_frame(pa.table({"c": column}), SCHEMA, AddRemove())) == [1, 0]


def test_pieces_of_a_dictionary_with_nulls_are_joined():
    pieces = [
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(texts))
        for texts in (["N", "S"], ["S", None])
    ]
    assert counts(
        memory_engine_from_frame(pa.table({"c": pa.chunked_array(pieces)}), SCHEMA, AddRemove())
    ) == [1, 2]


@pytest.mark.parametrize(
    "kind",
    [
        pa.dictionary(pa.int32(), pa.string_view()),
        pa.run_end_encoded(pa.int32(), pa.string()),
        pa.run_end_encoded(pa.int16(), pa.string_view()),
        pa.string_view(),
        pa.large_string(),
        pa.json_(),
    ],
)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_text_of_every_layout_is_read_with_any_number_of_pieces(kind, rows):
    texts = ["N", "S", "S", None, "N"][:rows]
    if pa.types.is_run_end_encoded(kind):
        runs = pa.RunEndEncodedArray.from_arrays(
            pa.array(range(1, rows + 1), kind.run_end_type), pa.array(texts, kind.value_type)
        )
        columns = [runs, runs.slice(rows // 2)]
    elif pa.types.is_dictionary(kind):
        columns = [
            pa.DictionaryArray.from_arrays(
                pa.array(
                    [None if text is None else place for place, text in enumerate(texts)],
                    pa.int32(),
                ),
                pa.array(texts, kind.value_type),
            )
        ]
    else:
        columns = [pa.array(texts, pa.string()).cast(kind)]
    for column in columns:
        expected = [texts[rows - len(column) :].count(level) for level in ("N", "S")]
        for pieces in (
            [column],
            [column, column.slice(0, 0)],
            [] if not len(column) else [column.slice(0, 1), column.slice(1)],
        ):
            frame = pa.table({"c": pa.chunked_array(pieces, type=column.type)})
            assert counts(memory_engine_from_frame(frame, SCHEMA, AddRemove())) == (
                expected if pieces else [0, 0]
            )
            number = Schema({"c": Real(0, 1)})
            assert memory_engine_from_frame(frame, number, AddRemove()).sums(
                SumsPlan((), ((), (number_factor(number, "c", "a sum"),)))
            )[0, 0] == (len(column) if pieces else 0)


@pytest.mark.slow
def test_long_texts_in_a_dictionary_are_not_written_out_beyond_32_bits(tmp_path, monkeypatch):
    """2³¹ bytes of text in a file of a few kilobytes: one row more made the question fail.

    They stay in memory here; what is dealt out on disk is of the same type, with 64-bit offsets.
    """
    monkeypatch.setattr(unit_buckets, "HELD_BYTES", 1 << 32)
    long = "x" * (1 << 22)
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 520, pa.int32()), pa.array([long]))
    assert plain(column.slice(0, 2)).type == pa.large_string()
    pq.write_table(
        pa.table({"c": ["N"] * 520, "k": column, "id": [str(row) for row in range(520)]}),
        tmp_path / "data.parquet",
    )
    schema = Schema({"c": Category(["N", "S"]), "k": Open()})
    assert counts(
        FileEngine(tmp_path / "data.parquet", "parquet", schema, AddRemove(unit="id", max_rows=1))
    ) == [520, 0]


def test_levels_that_are_equal_numbers_of_other_types_are_other_levels():
    """1 and True are equal; a cache of levels by equality read one column by the other's."""
    assert Category([0, 1]) != Category([False, True])
    schema = Schema({"a": Category([0, 1]), "b": Category([False, True])})
    engine = memory_engine_from_arrays(
        {"a": [0, 1, 1], "b": [True, False, True]}, schema, AddRemove()
    )
    found = {
        name: engine.sums(SumsPlan((Levels(name, 2),), ((),)))[:, 0].tolist()
        for name in ("a", "b", "a")
    }
    assert found == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize(
    "same",
    [
        (2**70, 2.0**70),
        (0, Decimal("0E+50"), 0.0, -0.0),
        (2**63, 2.0**63, Decimal(2**63)),
        (-(2**100), -(2.0**100)),
        (3, 3.0, Decimal("3.00")),
        (10**400, Decimal(10) ** 400),
    ],
)
def test_one_id_seeds_one_order_however_it_is_spelled(same):
    assert len({seed_text(key) for key in same}) == 1
    rows = [{"id": key, "c": level} for key in same for level in ("N", "S")] * 3
    orders = [[row for row in rows if row["id"] is not None], rows[::-1], sorted(rows, key=repr)]
    kept = [
        counts(
            memory_engine_from_arrays(
                {name: [row[name] for row in order] for name in ("id", "c")},
                SCHEMA,
                AddRemove(unit="id", max_rows=2),
            )
        )
        for order in orders
    ]
    assert kept[0] == kept[1] == kept[2]


def test_cells_that_are_no_python_values_are_missing_alone():
    hollow = object.__new__(uuid.UUID)
    beyond = np.array([65, 0x110000], dtype="<u4").view("<U1")
    schema = Schema({"k": Open()})
    for column, expected in (
        ([hollow, "A"], ["A"]),
        (beyond, ["A"]),
        (pd.Series([hollow, "A"], dtype=object), ["A"]),
    ):
        assert (
            list(
                execute(
                    memory_engine_from_arrays({"k": column}, schema, AddRemove()),
                    OpenPlan(("k",), ()),
                ).names
            )
            == expected
        )


@pytest.mark.parametrize("neighbors", [AddRemove(unit="id", max_rows=1), AddRemove()], ids=str)
def test_a_part_without_rows_and_one_of_another_encoding_are_parts_like_others(neighbors, tmp_path):
    """Text of a part without rows had another type than that of a part with one: whether one row
    was there decided whether a question failed.
    """
    kinds = {
        "dictionary": {},
        "bytes": {
            "use_dictionary": False,
            "column_encoding": {"c": "DELTA_BYTE_ARRAY", "id": "DELTA_BYTE_ARRAY"},
        },
    }
    for rows in (0, 1, 2):
        for first, second in (
            ("dictionary", "bytes"),
            ("bytes", "dictionary"),
            ("dictionary", "dictionary"),
        ):
            paths = [tmp_path / "first.parquet", tmp_path / "second.parquet"]
            pq.write_table(
                pa.table({"c": pa.array(["N", "S"], pa.large_string()), "id": ["a", "b"]}),
                paths[0],
                **kinds[first],
            )
            pq.write_table(
                pa.table(
                    {
                        "c": pa.array(["N"] * rows, pa.string()),
                        "id": pa.array(["c", "d"][:rows], pa.string()),
                    }
                ),
                paths[1],
                **kinds[second],
            )
            engine = FileEngine(paths, "parquet", SCHEMA, neighbors)
            assert counts(engine) == [1 + rows, 1]
            if neighbors.unit is not None:
                continue
            with engine._source.reading(["c"], 1) as tasks:
                read = [batch for task in tasks for batch in task()]
            joined = engine._joined(["c"], read)
            assert joined.sums(BY_LEVEL)[:, 0].tolist() == [1 + rows, 1]


@pytest.mark.parametrize("middle", [0, 1])
def test_an_empty_row_group_is_no_reason_to_fail(middle, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.trusted.engines.batches.BATCH_ROWS", 3)
    schema = pa.schema([("c", pa.string()), ("id", pa.string())])
    with pq.ParquetWriter(tmp_path / "data.parquet", schema) as writer:
        for rows in (10, middle, 10):
            writer.write_table(
                pa.table(
                    {"c": ["N"] * rows, "id": [f"{rows} {row}" for row in range(rows)]},
                    schema=schema,
                ),
                row_group_size=max(rows, 1),
            )
    assert counts(
        FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, AddRemove(unit="id", max_rows=1))
    ) == [10 + middle, 0]
