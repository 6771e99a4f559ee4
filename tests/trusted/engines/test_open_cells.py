"""Which cells of an Open column have a key: kinds of source that the conformance suite cannot build
for all engines alike.
"""

from __future__ import annotations

import datetime
import math
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_reference import open_key

from discreet.errors import DataShapeRefused
from discreet.neighbors import AddRemove
from discreet.schema import Open, Real, Schema
from discreet.specs.queries.keys import Between
from discreet.specs.queries.open_keys import OpenPlan
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame
from discreet.trusted.extensions.open_keys.labels import open_text

SCHEMA = Schema({"word": Open()})
PLAN = OpenPlan(("word",), ())
NIL = uuid.UUID(int=5)


class Loud(str):
    """Text that shouts when it is asked for itself."""

    __slots__ = ()

    def __str__(self):
        raise RuntimeError("a cell must not run code")

    __len__ = __hash__ = __eq__ = __str__  # type: ignore[assignment]


def found(engine, plan=PLAN):
    counts = execute(engine, plan)
    return dict(zip(counts.names, counts.counts.tolist(), strict=True))


def test_python_cells_of_every_type():
    cells = [
        "a",
        "a",
        "",
        " ",
        "x" * 200,
        "x" * 201,
        "\ud800",
        "a\0b",
        3,
        3.0,
        "3",
        Decimal("3.00"),
        np.int8(3),
        np.float32(3),
        True,
        np.bool_(True),
        "true",
        10**38 - 1,
        10**38,
        -(10**38) + 1,
        2**200,
        10**5000,
        2.0**53,
        2.0**53 - 1,
        0.5,
        -0.0,
        math.nan,
        math.inf,
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1E+37"),
        Decimal("1E+38"),
        Decimal("1E+999999"),
        Decimal("0E+999999"),
        Decimal("0.5"),
        None,
        NIL,
        b"a",
        [1],
        (1,),
        {"a": 1},
        object(),
        datetime.date(2026, 1, 1),
        np.datetime64("2026-01-01"),
        pd.NA,
        pd.NaT,
        np.str_("a"),
        1j,
    ]
    expected: dict[str, int] = {}
    for cell in cells:
        plain = (
            cell.item()
            if isinstance(cell, (np.generic,)) and not isinstance(cell, np.datetime64)
            else cell
        )
        key = (
            open_key(plain)
            if plain is not pd.NA
            and plain is not pd.NaT
            and not (isinstance(plain, Decimal) and not plain.is_finite())
            and plain != Decimal("1E+999999")
            else None
        )
        if key is not None:
            expected[key] = expected.get(key, 0) + 1
    assert expected["3"] == 6
    assert expected["true"] == 3
    for shaped in (cells, tuple(cells), np.array([*cells, None], dtype=object)[:-1]):
        assert found(memory_engine_from_arrays({"word": shaped}, SCHEMA, AddRemove())) == dict(
            sorted(expected.items())
        )


def test_a_cell_runs_no_code():
    assert open_text(Loud("a")) == "a"
    assert found(memory_engine_from_arrays({"word": [Loud("a"), "a"]}, SCHEMA, AddRemove())) == {
        "a": 2
    }


@pytest.mark.parametrize("kind", ["pyarrow", "polars", "pandas", "parquet"])
@pytest.mark.parametrize(
    ("cells", "kind_of_cells", "expected"),
    [
        ([1.0, 1.5, None, 16777216.0], pa.float32(), {"1": 1, "16777216": 1}),
        ([-128, 127, None], pa.int8(), {"-128": 1, "127": 1}),
        ([2**64 - 1, 0], pa.uint64(), {"18446744073709551615": 1, "0": 1}),
        (["a", None, "b", "a"], pa.dictionary(pa.int32(), pa.string()), {"a": 2, "b": 1}),
        (["a", "日", None], pa.large_string(), {"a": 1, "日": 1}),
        ([Decimal("9" * 38), Decimal("-5")], pa.decimal128(38, 0), {"9" * 38: 1, "-5": 1}),
        ([datetime.date(2026, 1, 1), None], pa.date32(), {}),
        ([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)], pa.timestamp("us", tz="UTC"), {}),
        ([b"a", b"\xff"], pa.binary(), {}),
        ([[1], [2]], pa.list_(pa.int64()), {}),
        ([None, None], pa.null(), {}),
        ([True, None, False, None], pa.bool_(), {"true": 1, "false": 1}),
        ([], pa.string(), {}),
    ],
    ids=range(13),
)
def test_typed_columns(kind, cells, kind_of_cells, expected, tmp_path):
    table = pa.table(
        {
            "word": pa.array(cells, type=pa.string()).dictionary_encode()
            if pa.types.is_dictionary(kind_of_cells)
            else pa.array(cells, type=kind_of_cells)
        }
    )
    if kind == "parquet":
        pq.write_table(table, tmp_path / "a.parquet")
        engine = FileEngine(tmp_path / "a.parquet", "parquet", SCHEMA, AddRemove())
    else:
        engine = memory_engine_from_frame(
            {
                "pyarrow": lambda: table,
                "polars": lambda: pl.from_arrow(table),
                "pandas": table.to_pandas,
            }[kind](),
            SCHEMA,
            AddRemove(),
        )
    assert found(engine) == dict(sorted(expected.items()))


def test_text_that_is_not_unicode_has_no_key_alone(tmp_path):
    """The bad cell counts nowhere; its neighbours keep their keys,
    in Arrow and in a Parquet file.
    """
    bad = pa.array([b"good", b"\xff\xfe", b"good", "é".encode()], type=pa.binary()).view(
        pa.string()
    )
    table = pa.table({"word": bad, "x": [0.5] * 4})
    pq.write_table(table, tmp_path / "a.parquet")
    schema = Schema({"word": Open(), "x": Real(0, 1)})
    for engine in (
        memory_engine_from_frame(table, schema, AddRemove()),
        FileEngine(tmp_path / "a.parquet", "parquet", schema, AddRemove()),
    ):
        assert found(engine) == {"good": 2, "é": 1}
        assert found(engine, OpenPlan(("word",), (Between("x", 0.0, 1.0),))) == {"good": 2, "é": 1}


def test_wide_whole_numbers_and_uuids_of_a_database(tmp_path):
    place = tmp_path / "a.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT CAST('{NIL}' AS UUID) AS word UNION ALL SELECT NULL) TO '{place}' (FORMAT "
        "parquet)"
    )
    assert found(FileEngine(place, "parquet", SCHEMA, AddRemove())) == {str(NIL): 1}
    assert found(memory_engine_from_arrays({"word": [NIL, None]}, SCHEMA, AddRemove())) == {
        str(NIL): 1
    }


def test_several_files_are_one_data_set(tmp_path):
    for name, words in (("a", ["x", "y"]), ("b", ["x", None])):
        pl.DataFrame({"word": words}).write_parquet(tmp_path / f"{name}.parquet")
    assert found(
        FileEngine([tmp_path / "a.parquet", tmp_path / "b.parquet"], "parquet", SCHEMA, AddRemove())
    ) == {"x": 2, "y": 1}


def test_a_plan_for_a_column_that_is_not_open_fails(tmp_path):
    """Such a plan can only be forged; it reads nothing."""
    schema = Schema({"word": Real(0, 1)})
    pl.DataFrame({"word": [0.5]}).write_parquet(tmp_path / "a.parquet")
    for engine in (
        memory_engine_from_arrays({"word": [0.5]}, schema, AddRemove()),
        FileEngine(tmp_path / "a.parquet", "parquet", schema, AddRemove()),
    ):
        with pytest.raises((AssertionError, DataShapeRefused)):
            execute(engine, PLAN)


@pytest.mark.parametrize("kind", ["memory", "parquet"])
def test_a_units_kept_rows_depend_on_that_unit_alone(kind, tmp_path):
    """Other units, with other keys before and after in the order of texts,
    change nothing of which of a unit's rows are kept.
    """
    own = [("u", f"k{number}", 0.5) for number in range(20)]

    def kept(others):
        frame = pl.DataFrame([*own, *others], schema=["id", "word", "x"], orient="row")
        schema, neighbors = (
            Schema({"word": Open(), "x": Real(0, 1)}),
            AddRemove(unit="id", max_rows=4),
        )
        if kind == "parquet":
            frame.write_parquet(tmp_path / "a.parquet")
        engine = (
            memory_engine_from_frame(frame, schema, neighbors)
            if kind == "memory"
            else FileEngine(tmp_path / "a.parquet", "parquet", schema, neighbors)
        )
        return {name: count for name, count in found(engine).items() if name.startswith("k")}

    alone = kept([])
    assert sum(alone.values()) == 4
    assert (
        kept(
            [
                ("v", "a", 0.1),
                ("v", "z", 0.2),
                ("w", "é", 0.3),
                *[("x", f"m{number}", 0.9) for number in range(9)],
            ]
        )
        == alone
    )


@pytest.mark.parametrize("rows", [1, 2, 100])
@pytest.mark.parametrize("listed", [2, 7], ids="{} rows share a list of texts".format)
def test_keys_of_several_batches_are_added_up(rows, listed, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.trusted.extensions.open_keys.counts.KEYED_ROWS", rows)
    monkeypatch.setattr("discreet.trusted.engines.batches.BATCH_ROWS", rows)
    words = ["a", "b", "a", "c", "b", "a", "d"]
    pq.write_table(pa.table({"word": words}), tmp_path / "a.parquet", row_group_size=listed)
    engine = FileEngine(tmp_path / "a.parquet", "parquet", SCHEMA, AddRemove())
    assert found(engine) == {"a": 3, "b": 2, "c": 1, "d": 1}
