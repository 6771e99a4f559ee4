"""Data sets that are streams: any program that gives Arrow batches, and tables of databases."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet import plain
from discreet.errors import data
from discreet.neighbors import Neighbors, require_neighbors
from discreet.schema import Column, Schema
from discreet.trusted.datasets import LONGEST_NAME, Dataset
from discreet.trusted.engines.batches import BatchEngine, arrow_cells
from discreet.trusted.engines.engine import needed_columns, require_columns
from discreet.trusted.scale.limits import limits

if TYPE_CHECKING:
    from discreet.trusted.scale.streams import MakeReader


@plain.called
def from_batches(
    make_reader: MakeReader,
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    name: str | None = None,
    memory_limit: str | int | None = None,
    cache: str | Path | None = "temporary",
) -> Dataset:
    """A data set in any program that gives Arrow batches: Ibis, DuckDB, Flight, files of your own.

    ``make_reader(columns)`` is called once a pass and gives a fresh reader over the same rows, with
    at least these columns: a ``pyarrow.RecordBatchReader``, anything with ``__arrow_c_stream__``,
    or record batches in turn. Rows may come in another order and in other batches. One that gives
    other rows or other types than before, is cut short or raises fails the question after its
    debit; the same key goes on later. `name`, `memory_limit` and `cache` are as in `from_frame`
    and `read_parquet`.

    Example.
            import pyarrow

            table = pyarrow.table({"age": [31, 52, 47]})
            data = dp.from_batches(
                lambda columns: table.select(columns).to_reader(),
                schema={"age": dp.Integer(18, 90)},
                neighbors=dp.Replace(),
            )
            print(data.schema)
    See also. `dp.read_parquet`, `dp.from_database`; docs/how-to/large-data.md.
    """
    if not callable(make_reader):
        raise data.no_reader(plain.kind_name(make_reader))
    return _declared(make_reader, schema, neighbors, name, (memory_limit, cache))


@plain.called
def from_database(
    uri: str,
    table: str | Sequence[str],
    *,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None = None,
    name: str | None = None,
    memory_limit: str | int | None = None,
    cache: str | Path | None = "temporary",
) -> Dataset:
    """A data set in a table or view of PostgreSQL or SQLite; rows are streamed in batches.

    ``uri`` is ``postgresql://user@host/database`` or ``sqlite:///folder/file.db`` (four slashes for
    an absolute path). It stays in this process: what identifies the data in a ledger is the host,
    the database and the table, or `name`, and never the user or the password. `table` is a name or
    a list such as ``("public", "visits")``; names are quoted. Each pass is one statement, so one
    snapshot; rows that changed since an earlier pass fail the question. `memory_limit` and `cache`
    are as in `read_parquet`.

    Example.
            import sqlite3

            with sqlite3.connect("clinic.db") as base:
                base.execute("CREATE TABLE visits (cost REAL, person INTEGER)")
                rows = [(float(40 + i % 100), i // 3) for i in range(3000)]
                base.executemany("INSERT INTO visits VALUES (?, ?)", rows)
            data = dp.from_database(
                "sqlite:///clinic.db",
                "visits",
                schema={"cost": dp.Real(0, 500)},
                neighbors=dp.Replace(unit="person", max_rows=3),
            )
            print(dp.mean(data.open(budget=dp.GDP(1)), "cost", spend=dp.GDP(0.5)))
    See also. `dp.from_batches`, `dp.read_parquet`.
    """
    from discreet.trusted.scale.databases import Table

    arrow_cells()
    address = plain.text(uri, "uri")
    if not any(plain.derives(type(table), kind) for kind in (str, list, tuple)):
        raise data.no_table_name()
    named = [table] if plain.derives(type(table), str) else plain.members(table, "table")
    found = Table(address, [plain.text(one, "table") for one in named])
    declared, relation = Schema(schema), require_neighbors(neighbors)
    require_columns(declared, relation, found.columns)
    place = f"place:{found.place}"
    return _declared(
        found.reader, declared, relation, name, (memory_limit, cache), ("database", place)
    )


def _declared(
    make_reader: MakeReader,
    schema: Mapping[str, Column],
    neighbors: Neighbors | None,
    name: str | None,
    scale: tuple[Any, Any],
    kind: tuple[str, str] = ("stream", ""),
) -> Dataset:
    arrow_cells()  # says what is missing where Arrow is
    from discreet.trusted.scale.streams import StreamSource

    declared, relation = Schema(schema), require_neighbors(neighbors)
    known = None if name is None else plain.text(name, "name=", longest=LONGEST_NAME)
    given = f"named:{known}" if known is not None else kind[1] or secrets.token_hex(16)
    bounds = limits(*scale, len(declared))
    source = StreamSource(make_reader, needed_columns(declared, relation), given, kind[0])
    engine = BatchEngine(source, declared, relation, bounds)
    engine.has_name = known is not None or bool(kind[1])
    return Dataset(engine, declared, relation)
