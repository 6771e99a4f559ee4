"""One reader for every kind of source: the choice is one of types, is told, and changes nothing."""

from __future__ import annotations

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import discreet as dp
from discreet.testing import seeded_session

TABLE = pa.table({"x": [0.5, 1.0, None, 4.0] * 40, "g": ["a", "b", "c", None] * 40})
SCHEMA = {"x": dp.Real(0, 5), "g": dp.Category(["a", "b"])}
GIVEN = {"schema": SCHEMA, "neighbors": dp.AddRemove()}


def sources(folder):
    pyarrow.parquet.write_table(TABLE, folder / "t.parquet")
    pyarrow.csv.write_csv(TABLE, folder / "t.csv")
    frame = polars.from_arrow(TABLE)
    connection = duckdb.connect()
    return {
        "parquet": ((folder / "t.parquet",), {}, "files: paths were given"),
        "csv": ((str(folder / "t.csv"),), {}, "files: paths were given"),
        "pandas": ((TABLE.to_pandas(),), {}, "memory: a table in memory was given"),
        "arrow": ((TABLE,), {}, "memory: a table in memory was given"),
        "mapping": ((TABLE.to_pydict(),), {}, "memory: a mapping of arrays was given"),
        "lazy": ((frame.lazy(),), {}, "memory: a lazy frame, which is carried out once, was given"),
        "limited": (
            (frame.lazy(),),
            {"memory_limit": "500MB"},
            "stream: a lazy frame and a limit of memory were given",
        ),
        "streamed": ((frame,), {"engine": "stream"}, "stream: it was asked for"),
        "duckdb": (
            (connection.from_arrow(TABLE),),
            {"engine": "stream"},
            "stream: it was asked for",
        ),
        "program": (
            (lambda columns: TABLE.select(columns).to_reader(),),
            {},
            "stream: a function that gives readers was given",
        ),
    }


def test_the_choice_is_told_and_no_release_depends_on_it(tmp_path):
    found = {}
    for name, (source, more, said) in sources(tmp_path).items():
        data = dp.read(*source, **GIVEN, **more)
        assert data.engine == said, name
        assert data.with_budget(dp.GDP(1)).engine == said
        session = seeded_session(data, dp.ApproxDP(50, 1e-4), seed=3)
        release = dp.table(session, "x", by="g", spend=dp.GDP(1)).release
        found[name] = release.integers
        entries = [str(entry) for entry in session.ledger.entries()]
        assert said not in release.to_json() + "".join(entries)
    assert len({str(integers) for integers in found.values()}) == 1, found


def test_readers_of_one_kind_say_that_they_were_called():
    data = dp.from_frame(TABLE, **GIVEN)
    assert data.engine == "memory: its own reader was called"


@pytest.mark.parametrize("rows", [0, 1, 100_000])
def test_no_number_of_rows_decides(rows):
    table = pandas.DataFrame({"x": [1.0] * rows, "g": ["a"] * rows})
    assert dp.read(table, **GIVEN).engine == "memory: a table in memory was given"


@pytest.mark.parametrize(
    ("source", "more", "said"),
    [
        (TABLE, {"engine": "fast"}, "no engine has that name"),
        (TABLE, {"engine": ["auto"]}, "no engine has that name"),
        (TABLE, {"engine": "files"}, "a table in memory was given, which it does not read"),
        ("t.parquet", {"engine": "memory"}, "paths were given, which it does not read"),
        ("t.parquet", {"name": "t"}, "files go by their paths"),
    ],
    ids=str,
)
def test_what_an_engine_cannot_read_is_refused(source, more, said):
    with pytest.raises(dp.DiscreetError, match=said):
        dp.read(source, **GIVEN, **more)
