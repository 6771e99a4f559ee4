"""One cell, one meaning: one table as Parquet, as CSV files of four writers, as frames, lazy frames
and relations, and as lists gives the same exact statistics, bit for bit.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trusted.engines.engine_kinds import counts_in

import discreet as dp
from discreet.errors import DataShapeRefused
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Boolean, Category, Integer, Real, Schema
from discreet.specs.dialects import Dialect
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame

SCHEMA = Schema(
    {
        "x": Real(-50, 50, missing=1.0),
        "n": Integer(0, 20),
        "b": Boolean(missing=True),
        "level": Category([3, 1, "2", -4]),
        "code": Category(["01", "1", "x"], missing="x"),
        "word": Category(["né", "a;b", "true", "NA"]),
        "truth": Category([True, "FALSE"]),
    }
)
TYPES = {
    "x": pa.float64(),
    "n": pa.int64(),
    "b": pa.bool_(),
    "level": pa.int64(),
    "code": pa.string(),
    "word": pa.string(),
    "truth": pa.bool_(),
    "person": pa.int64(),
}
# R and Excel write fifteen digits
DECIMALS = st.integers(-(10**7), 10**7).map(lambda whole: whole / 10**5)
WORDS = st.sampled_from(["né", "a;b", "true", 'q"q', "other", " né", "line\nend"])
ROW = st.fixed_dictionaries(
    {
        "x": st.none() | DECIMALS,
        "n": st.none() | st.integers(-3, 25),
        "b": st.none() | st.booleans(),
        "level": st.none() | st.integers(-5, 5),
        "code": st.none() | st.sampled_from(["01", "1", "x", "1.0", "2", "y"]),
        "word": st.none() | WORDS,
        "truth": st.none() | st.booleans(),
        "person": st.integers(1, 4),
    }
)
PLANS = (
    *(SumsPlan((), ((number_factor(SCHEMA, name, "a sum"),),)) for name in ("x", "n", "b")),
    *(
        SumsPlan(
            (Levels(name, len(SCHEMA[name].levels)),), ((), (number_factor(SCHEMA, "x", "a"),))
        )
        for name in ("level", "code", "word", "truth")
    ),
    SumsPlan((Levels("b", 2), Levels("level", 4)), ((), (number_factor(SCHEMA, "n", "a sum"),))),
)
HISTOGRAM = HistogramPlan((), number_factor(SCHEMA, "x", "a histogram", 16))
RELATIONS = (Replace(), AddRemove(unit="person", max_rows=2))


def statistics(engine):
    histogram = engine.histogram(HISTOGRAM)
    return (
        [engine.sums(plan).tolist() for plan in PLANS],
        [*counts_in(histogram).items()],
        engine.public_count(),
    )


def written(cell, *, decimal=".", quoted=True, truth=("TRUE", "FALSE"), missing=""):
    if cell is None:
        return missing
    if isinstance(cell, bool):
        return truth[0] if cell else truth[1]
    if isinstance(cell, str):
        plain = not quoted and not set(cell) & set(';"\n')
        return cell if plain else '"' + cell.replace('"', '""') + '"'
    return f"{cell:.15g}".replace(".", decimal)


def by_r(table, path):
    """write.csv: row names, quoted texts, NA."""
    rows = [",".join(f'"{name}"' for name in ["", *table.column_names])]
    for number, row in enumerate(table.to_pylist(), start=1):
        cells = [written(cell, missing="NA") for cell in row.values()]
        rows.append(",".join([f'"{number}"', *cells]))
    path.write_text("\n".join([*rows, ""]), encoding="utf-8", newline="")
    return Dialect(missing_text=("NA",))


def by_excel(encoding, mark):
    """Semicolons and decimal commas, in cp1252 or in UTF-8 with a byte order mark."""

    def write(table, path):
        rows = [";".join(table.column_names)]
        rows += [
            ";".join(written(cell, decimal=",", quoted=False) for cell in row.values())
            for row in table.to_pylist()
        ]
        path.write_bytes(mark + "\r\n".join([*rows, ""]).encode(encoding))
        return Dialect(";", ",", encoding=encoding)

    return write


def by_pandas(frame):
    def write(table, path):
        frame(table).to_csv(path, index=False)
        return Dialect()

    return write


def by_polars(table, path):
    pl.from_arrow(table).write_csv(path)
    return Dialect()


def nullable(table):
    return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)


def classical(table):
    """Missing cells make whole numbers floats, and booleans objects."""
    return table.to_pandas()


WRITERS = {
    "pandas": by_pandas(nullable),
    "pandas, floats": by_pandas(classical),
    "polars": by_polars,
    "R": by_r,
    "Excel": by_excel("cp1252", b""),
    "Excel, UTF-8": by_excel("utf-8", b"\xef\xbb\xbf"),
}
FRAMES = {
    "pandas": nullable,
    "pandas, floats": classical,
    "polars": pl.from_arrow,
    "Arrow": lambda table: table,
    "lazy": lambda table: pl.from_arrow(table).lazy().filter(pl.lit(True)),
    "DuckDB": duckdb.from_arrow,
}


def engines(table, relation, folder):
    """One table as every source: pairs of a name and an engine."""
    pq.write_table(table, folder / "data.parquet")
    yield "Parquet", FileEngine(folder / "data.parquet", "parquet", SCHEMA, relation)
    for place, (name, write) in enumerate(WRITERS.items()):
        path = folder / f"{place}.csv"
        dialect = write(table, path)
        yield f"CSV of {name}", FileEngine(path, "csv", SCHEMA, relation, dialect=dialect)
    for name, frame in FRAMES.items():
        yield name, memory_engine_from_frame(frame(table), SCHEMA, relation)
    yield "lists", memory_engine_from_arrays(table.to_pydict(), SCHEMA, relation)


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation", [pytest.param(RELATIONS[0], marks=pytest.mark.slow), RELATIONS[1]], ids=str
)
@settings(max_examples=8)
@given(rows=st.lists(ROW, max_size=12))
def test_one_table_gives_the_same_statistics_from_every_source(relation, rows, tmp_path_factory):
    columns = {name: [row[name] for row in rows] for name in TYPES}
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in TYPES.items()})
    expected = statistics(memory_engine_from_arrays(columns, SCHEMA, relation))
    for name, engine in engines(table, relation, tmp_path_factory.mktemp("sources")):
        assert statistics(engine) == expected, name


def test_levels_of_a_column_with_missing_cells_are_counted_in_the_csv_of_pandas(tmp_path):
    """It writes 3.0 for level 3: no row was found."""
    frame = pd.DataFrame({"level": [3, 3, 1, None, 3]})
    frame.to_csv(tmp_path / "data.csv", index=False)
    schema = {"level": dp.Category([1, 2, 3])}
    plan = SumsPlan((Levels("level", 3),), ((),))
    engine = FileEngine(tmp_path / "data.csv", "csv", Schema(schema), Replace())
    assert engine.sums(plan).tolist() == [[1], [0], [3]]


# ── tables that are computed on demand ────────────────────────────────────────────────────────────


def test_a_table_on_demand_is_carried_out_once_for_the_needed_columns():
    calls = []

    def counted(series):
        calls.append(1)
        return series

    lazy = pl.LazyFrame({"n": [1, 2, 3], "other": ["a", "b", "c"]}).with_columns(
        pl.col("n").map_batches(counted, return_dtype=pl.Int64),
        pl.col("other").cast(pl.Int64),  # would fail
    )
    data = dp.from_frame(lazy, schema={"n": dp.Integer(0, 20)}, neighbors=Replace())
    session = data.open(budget=dp.GDP(100))
    for _ in range(2):
        assert abs(dp.mean(session, "n", spend=dp.GDP(20)).estimate - 2) < 5
    assert calls == [1]


@pytest.mark.parametrize(
    "frame",
    [
        lambda: pl.LazyFrame({"n": ["planted-4417"]}).select(pl.col("n").cast(pl.Int64)),
        lambda: duckdb.sql("SELECT CAST(v AS INTEGER) AS n FROM (VALUES ('planted-4417')) AS t(v)"),
    ],
    ids=["polars", "DuckDB"],
)
def test_a_table_on_demand_that_fails_quotes_no_cell(frame, capfd):
    with pytest.raises(DataShapeRefused, match="could not be carried out") as caught:
        dp.from_frame(frame(), schema={"n": dp.Integer(0, 20)}, neighbors=Replace())
    assert "planted" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "planted" not in "".join(capfd.readouterr())


def test_columns_of_a_relation_are_found_by_name():
    relation = duckdb.sql("SELECT 1 AS Age")
    with pytest.raises(DataShapeRefused, match="did you mean 'Age'"):
        dp.from_frame(relation, schema={"age": dp.Integer(0, 20)}, neighbors=Replace())


def test_an_array_of_texts_is_read_as_a_list_of_them():
    texts = ["3.0", " 1", "2", "\u22124", "1e0", "x", ""]
    schema = Schema({"level": SCHEMA["level"]})
    plan = SumsPlan((Levels("level", 4),), ((),))
    for held in (texts, tuple(texts), np.array(texts), np.array(texts, dtype=object)):
        engine = memory_engine_from_arrays({"level": held}, schema, Replace())
        assert engine.sums(plan).tolist() == [[1], [2], [1], [1]]
