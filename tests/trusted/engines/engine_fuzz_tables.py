"""Tables that anybody might write: random columns of random Arrow types, and random writers."""

from __future__ import annotations

import contextlib
import datetime
import math
import uuid
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

FLOATS = [
    0.0,
    -0.0,
    1.5,
    -5.0,
    100.0,
    101.0,
    -6.0,
    1e300,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
    math.nan,
    None,
    5e-324,
    -5e-324,
    1.7976931348623157e308,
    50.0,
    18.0,
    90.0,
    33.3,
    7.0,
    1.0,
    99.99999999999999,
]
SMALL = [0, 1, -1, 7, 18, 90, 91, 100, 127, -128, None, 45]
WHOLE = [*SMALL, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63)]
UNSIGNED = [0, 1, 7, 18, 90, 255, None, 45]
TEXTS = [
    "N",
    "S",
    "é",
    "7",
    " N",
    "1",
    "0",
    "true",
    "False",
    " 2.5 ",
    "1e3",
    "1e400",
    "nan",
    "inf",
    "-7.25",
    "45",
    "",
    None,
    "unseen",
    "x" * 250,
    "x" * 200,
    "\t",
    "18",
    "101",
]
DECIMALS = [
    Decimal("7.00"),
    Decimal("-5.00"),
    Decimal("100.01"),
    Decimal("0.00"),
    None,
    Decimal("99999999.99"),
    Decimal("45.00"),
    Decimal("1.00"),
]
POOLS = {
    pa.float64(): FLOATS,
    pa.float32(): [
        None
        if cell is None
        else float(np.float32(max(min(cell, 3e38), -3e38)))
        if math.isfinite(cell)
        else cell
        for cell in FLOATS
    ],
    pa.float16(): [
        None if cell is None else np.float16(cell)
        for cell in FLOATS
        if cell is None or abs(cell) < 6e4 or not math.isfinite(cell)
    ],
    pa.int8(): SMALL,
    pa.int16(): SMALL,
    pa.int32(): [cell for cell in WHOLE if cell is None or abs(cell) < 2**31],
    pa.int64(): WHOLE,
    pa.uint8(): UNSIGNED,
    pa.uint64(): [*UNSIGNED, 2**64 - 1, 2**63],
    pa.bool_(): [True, False, None],
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.string_view(): TEXTS,
    pa.dictionary(pa.int32(), pa.string()): TEXTS,
    pa.dictionary(pa.int8(), pa.float64()): FLOATS,
    pa.decimal128(10, 2): DECIMALS,
    pa.decimal128(38, 2): [*DECIMALS, Decimal("-" + "9" * 30 + ".25")],
    pa.decimal256(50, 2): DECIMALS,
    pa.binary(): [b"N", b"\xff", None, b"7"],
    pa.date32(): [datetime.date(2020, 1, 2), None],
    pa.timestamp("us"): [7, 45, None],
    pa.duration("ns"): [7, 45, None],
    pa.time64("us"): [7, None],
    pa.list_(pa.int64()): [[7], [], None],
    pa.struct([("N", pa.int64())]): [{"N": 7}, None],
    pa.null(): [None],
    pa.uuid(): [uuid.UUID(int=7).bytes, None],
    pa.bool8(): [1, 0, 7, None],
    pa.json_(): ["7", "{}", None],
}
STORED = {pa.bool8(): pa.int8(), pa.json_(): pa.string()}
USUAL = {
    "x": pa.float64(),
    "y": pa.float64(),
    "z": pa.float64(),
    "n": pa.int64(),
    "b": pa.bool_(),
    "c": pa.string(),
    "k": pa.string(),
    "id": pa.string(),
}
UNITS = {
    pa.string(): ["ann", "bob", "é", None, "17", ""],
    pa.int64(): [1, 2, -4, None, 2**62],
    pa.float64(): [0.0, -0.0, 1.5, math.nan, None, 1e300, math.inf],
    pa.bool_(): [True, False, None],
    pa.decimal128(10, 2): [Decimal("1.00"), Decimal("1.50"), None],
}
SHAPES = ("mixed", "mixed", "constant", "two", "sorted", "mostly missing", "tame")


def random_types(choose):
    """A type for each column: usually the usual one, often a float, sometimes anything."""
    types = {}
    for name, usual in USUAL.items():
        if name == "id":
            types[name] = choose.choice(list(UNITS))
        else:
            types[name] = choose.choice([usual, usual, pa.float64(), choose.choice(list(POOLS))])
    return types


def random_cells(choose, name, kind, rows):
    pool = UNITS[kind] if name == "id" else POOLS[kind]
    shape = choose.choice(SHAPES)
    if shape == "constant":
        pool = [choose.choice(pool)]
    elif shape == "two":
        pool = [choose.choice(pool), choose.choice(pool)]
    elif shape == "mostly missing":
        gone = [cell for cell in pool if cell is None or cell != cell] or [None]
        pool = [choose.choice(gone)] * 5 + [choose.choice(pool)]
    elif shape == "tame":
        pool = [
            cell
            for cell in pool
            if not (
                isinstance(cell, (int, float))
                and not isinstance(cell, bool)
                and cell == cell
                and not 18 <= cell <= 90
            )
        ]
    cells = [choose.choice(pool or [None]) for _ in range(rows)]
    if shape == "sorted" and all(isinstance(cell, (int, float)) for cell in cells):
        cells.sort()
    return cells


def table_of(columns, types):
    arrays = {}
    for name, cells in columns.items():
        kind = types[name]
        array = pa.array(
            cells, STORED.get(kind, kind.value_type if pa.types.is_dictionary(kind) else kind)
        )
        arrays[name] = (
            array.cast(kind)
            if kind in STORED
            else array.dictionary_encode().cast(kind)
            if pa.types.is_dictionary(kind)
            else array
        )
    return pa.table(arrays)


def random_columns(choose, types, rows):
    return {name: random_cells(choose, name, kind, rows) for name, kind in types.items()}


# ── writers ───────────────────────────────────────────────────────────────────────────────────────


def random_writer(choose):
    """A writer with its settings: a function of (table, path)."""
    rows = choose.choice([1, 2, 7, 1000])
    pages = {
        "compression": choose.choice(["none", "snappy", "zstd", "gzip"]),
        "use_dictionary": choose.random() < 0.6,
        "write_statistics": choose.random() < 0.8,
    }
    if choose.random() < 0.5:
        pages |= {
            "data_page_version": "2.0",
            "write_page_index": True,
            "data_page_size": 1 << choose.choice([4, 20]),
        }
    if choose.random() < 0.2:
        pages["bloom_filter_options"] = {"x": {"ndv": 100}}
    if choose.random() < 0.2:
        pages["sorting_columns"] = [pq.SortingColumn(0)]
    statistics, compression = (
        choose.choice([True, False, "full"]),
        choose.choice(["uncompressed", "snappy", "zstd"]),
    )

    def by_pyarrow(table, path):
        known = {name: value for name, value in pages.items() if name != "bloom_filter_options"}
        with contextlib.suppress(TypeError, OSError):  # truth values have no bloom filter
            return pq.write_table(table, path, row_group_size=rows, **pages)
        return pq.write_table(table, path, row_group_size=rows, **known)

    def by_polars(table, path):
        # it has no such types
        assert not any(
            pa.types.is_decimal256(kind) or kind in STORED for kind in table.schema.types
        )
        pl.from_arrow(table).write_parquet(
            path, statistics=statistics, compression=compression, row_group_size=rows
        )

    def by_pandas(table, path):
        import pandas as pd

        table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path, row_group_size=rows)

    def by_duckdb(table, path):
        with duckdb.connect() as connection:
            connection.register("given", table)
            connection.execute(
                f"COPY given TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE {rows}, COMPRESSION "
                f"'{compression}')"
            )

    return choose.choice([by_pyarrow, by_pyarrow, by_polars, by_pandas, by_duckdb]), by_pyarrow


def write(table, path, writers):
    """Writes by the first writer that has all the types; the table as Arrow reads it back."""
    for writer in writers:
        try:
            writer(table, path)
        except (Exception, pl.exceptions.PanicException):  # a type that it does not have
            continue
        return pq.read_table(path)
    raise AssertionError("no writer wrote the table")
