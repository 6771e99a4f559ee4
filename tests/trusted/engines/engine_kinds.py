"""One data set as every kind of source, so that one test body runs for all of them."""

from __future__ import annotations

import contextlib
import csv
import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.trusted.engines.batches import BatchEngine
from discreet.trusted.engines.engine import needed_columns
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame
from discreet.trusted.scale.databases import Table, quoted
from discreet.trusted.scale.limits import Limits
from discreet.trusted.scale.streams import StreamSource

IN_MEMORY = ("arrays", "objects", "lists", "pandas", "polars", "pyarrow")
# "kept" is Parquet whose rows are kept on disk between questions, from the first byte on
KINDS = (*IN_MEMORY, "parquet", "kept", "folder", "csv", "stream", "sqlite")
AS_TEXT = ("csv", "sqlite")  # kinds whose cells are text, whatever they were
TYPED = {
    "float": pa.float64(),
    "integer": pa.int64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "unsigned": pa.uint64(),
    "decimal": pa.decimal128(38, 4),
}


def counts_in(found):
    """Counts by place or by key, in their order, of what may be on disk."""
    counts = {}
    for piece in found.pieces():
        places, each = piece if isinstance(piece, tuple) else (piece.names, piece.counts)
        counts |= dict(zip(list(places), each.tolist(), strict=True))
    return counts


def arrow_table(columns, types):
    return pa.table(
        {name: pa.array(cells, type=TYPED[types[name]]) for name, cells in columns.items()}
    )


def write_cell(cell):
    if cell is None:
        return ""
    return ("true" if cell else "false") if isinstance(cell, bool) else str(cell)


def make_engine(kind, columns, types, schema, neighbors, folder):
    """An engine of the given kind over `columns`, a mapping from names to lists of cells."""
    if kind == "lists":
        return memory_engine_from_arrays(columns, schema, neighbors)
    if kind == "objects":
        return memory_engine_from_arrays(
            {name: np.array(cells, dtype=object) for name, cells in columns.items()},
            schema,
            neighbors,
        )
    if kind == "arrays":
        return memory_engine_from_arrays(
            {name: numpy_column(cells, types[name]) for name, cells in columns.items()},
            schema,
            neighbors,
        )
    if kind == "csv":
        path = folder / "data.csv"
        with open(path, "w", newline="", encoding="utf-8") as target:
            writer = csv.writer(target)
            writer.writerow(columns)
            writer.writerows(
                zip(
                    *([write_cell(cell) for cell in cells] for cells in columns.values()),
                    strict=True,
                )
            )
        return FileEngine(path, "csv", schema, neighbors)
    if kind == "sqlite":
        return sqlite_engine(columns, schema, neighbors, folder)
    table = arrow_table(columns, types)
    if kind in ("parquet", "kept"):
        scale = Limits(3200, str(folder)) if kind == "kept" else None
        pq.write_table(table, folder / "data.parquet")
        return FileEngine(folder / "data.parquet", "parquet", schema, neighbors, scale=scale)
    if kind == "folder":
        (folder / "many" / "more").mkdir(parents=True, exist_ok=True)
        pq.write_table(table.slice(0, 5), folder / "many" / "a.parquet")
        pq.write_table(table.slice(5), folder / "many" / "more" / "b.parquet")
        return FileEngine(folder / "many", "parquet", schema, neighbors)
    if kind == "stream":
        source = StreamSource(
            lambda names: table.select(names).to_reader(max_chunksize=7),
            needed_columns(schema, neighbors),
            "rows",
        )
        return BatchEngine(source, schema, neighbors, Limits(3200, str(folder)))
    frames = {
        "pyarrow": lambda: table,
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: pandas_frame(table),
    }
    return memory_engine_from_frame(frames[kind](), schema, neighbors)


def sqlite_engine(columns, schema, neighbors, folder):
    """All cells as text in a table of SQLite."""
    path = folder / "data.db"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path)) as base, base:
        base.execute(f"CREATE TABLE rows ({', '.join(map(quoted, columns))})")
        rows = zip(
            *([write_cell(cell) or None for cell in cells] for cells in columns.values()),
            strict=True,
        )
        base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})", rows)
    table = Table(f"sqlite:///{path}", "rows")
    source = StreamSource(table.reader, needed_columns(schema, neighbors), table.place, "database")
    return BatchEngine(source, schema, neighbors)


def pandas_frame(table):
    frame = table.to_pandas(
        types_mapper={
            pa.int64(): pd.Int64Dtype(),
            pa.uint64(): pd.UInt64Dtype(),
            pa.bool_(): pd.BooleanDtype(),
        }.get
    )
    assert isinstance(frame, pd.DataFrame)
    return frame


def numpy_column(cells, kind):
    missing = [cell is None for cell in cells]
    if kind in ("text", "decimal"):
        return np.array(cells, dtype=object)
    dtype = {"float": np.float64, "integer": np.int64, "boolean": bool, "unsigned": np.uint64}[kind]
    return np.ma.array(
        np.array(
            [dtype() if gone else cell for cell, gone in zip(cells, missing, strict=True)],
            dtype=dtype,
        ),
        mask=missing,
    )
