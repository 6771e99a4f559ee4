"""Tables of databases, read by ADBC: one statement a pass, so one snapshot, and rows are streamed.

Nothing is added up in the database, and what one cell holds decides nothing: every column is asked
for in a form that no cell can make fail.

| database   | column                         | asked for as                                       |
|------------|--------------------------------|----------------------------------------------------|
| PostgreSQL | whole numbers, floats, boolean | they stand                                         |
|            | dates, timestamps              | they stand within the years 1 to 9999, else as the |
|            |                                | first or last instant of these (infinity too)      |
|            | bytes                          | missing cells                                      |
|            | numeric, money                 | their digits; infinity as 1e308                    |
|            | all others (text, uuid …)      | their text                                         |
| SQLite     | every column, cell by cell     | the cell's text, a float with 17 digits,           |
|            |                                | infinity as 1e308; bytes are missing               |

A cell of SQLite has a type of its own, and its driver takes a column's type from the first cells:
so all are text, and a cell that is missing is the byte FF, which is none.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from discreet.errors import MissingExtra, data
from discreet.seclusion import Failed, aside

BATCH = 1 << 16  # rows that SQLite's driver gives at a time
SPAN = {
    "date": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
    "timestamp": (
        "TIMESTAMP '0001-01-01 00:00:00'",
        "TIMESTAMP '9999-12-31 23:59:59.999999'",
    ),
    "timestamptz": (
        "TIMESTAMPTZ '0001-01-02 00:00:00+00'",
        "TIMESTAMPTZ '9999-12-30 23:59:59.999999+00'",
    ),
}


class Table:
    """A table, and how its columns are asked for; the address stays in here."""

    def __init__(self, uri: str, table: str | Sequence[str]) -> None:
        self._connect, self.place, self._sqlite = _connection(uri)
        names = [table] if isinstance(table, str) else list(table)
        if not names:
            raise data.no_table_name()
        self._name = ".".join(quoted(name) for name in names)
        self.place += ":" + ".".join(names)
        fields = aside(lambda: self._fields())
        if isinstance(fields, Failed):
            raise data.no_database("the table of a database")
        self._fields_by_name = {field.name: field for field in fields}
        self.columns = [field.name for field in fields]

    def reader(self, columns: list[str]) -> Any:
        """One statement over the table."""
        asked = [
            (self._text_of if self._sqlite else self._safe)(f"t.{quoted(name)}", name)
            for name in columns
        ]
        statement = ", ".join(
            f"{expression} AS {quoted(name)}"
            for expression, name in zip(asked, columns, strict=True)
        )
        return self._streamed(f"SELECT {statement} FROM {self._name} AS t", columns)

    def _fields(self) -> list[Any]:
        with contextlib.closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {self._name} AS t LIMIT 0")
            return list(cursor.fetch_record_batch().schema)

    def _safe(self, column: str, name: str) -> str:
        kind = self._fields_by_name[name].type
        own = (self._fields_by_name[name].metadata or {}).get(b"POSTGRESQL:type")
        if own == b"money":
            return f"{column}::numeric::text"  # its driver gives cents
        if own == b"numeric":
            return (
                f"CASE {column}::text WHEN 'Infinity' THEN '1e308' "
                f"WHEN '-Infinity' THEN '-1e308' ELSE {column}::text END"
            )
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return column
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return "NULL::text"
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            zoned = pa.types.is_timestamp(kind) and kind.tz is not None
            low, high = SPAN[
                "date" if pa.types.is_date(kind) else "timestamptz" if zoned else "timestamp"
            ]
            return (
                f"CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} "
                f"ELSE {column} END"
            )
        return f"{column}::text"

    def _text_of(self, column: str, _: str) -> str:
        return (
            f"COALESCE(CASE typeof({column}) WHEN 'real' THEN CASE {column} WHEN 9e999 "
            f"THEN '1e308' WHEN -9e999 THEN '-1e308' ELSE printf('%!.17g', {column}) END "
            f"WHEN 'blob' THEN NULL ELSE CAST({column} AS TEXT) END, CAST(x'FF' AS TEXT))"
        )

    def _streamed(self, statement: str, columns: list[str]) -> Any:
        """The rows of a statement; the connection is closed with the last."""
        stack = contextlib.ExitStack()
        try:
            connection = stack.enter_context(contextlib.closing(self._connect()))
            cursor = stack.enter_context(connection.cursor())
            if self._sqlite:
                cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH)})
            cursor.execute(statement)
            reader = cursor.fetch_record_batch()
        except BaseException:
            stack.close()
            raise
        schema = (
            pa.schema([(name, pa.large_string()) for name in columns])
            if self._sqlite
            else reader.schema
        )
        return pa.RecordBatchReader.from_batches(
            schema, _batches(reader, schema if self._sqlite else None, stack)
        )


def _batches(reader: Any, texts: Any, stack: contextlib.ExitStack) -> Iterator[Any]:
    with stack:
        for batch in reader:
            yield (
                batch
                if texts is None
                else pa.RecordBatch.from_arrays(
                    [_texts(column) for column in batch.columns], schema=texts
                )
            )


def _texts(column: Any) -> Any:
    """Text, missing where the byte FF stands, which no text is; other bytes that are not UTF-8
    stay, and read as a missing cell.
    """
    if not pa.types.is_string(column.type):
        return pa.nulls(len(column), pa.large_string())  # there is no row
    cells = pa.Array.from_buffers(
        pa.binary(), len(column), column.buffers(), offset=column.offset
    ).cast(pa.large_binary())
    held = pc.if_else(pc.equal(cells, b"\xff"), pa.scalar(None, cells.type), cells)
    return pa.Array.from_buffers(pa.large_string(), len(held), held.buffers(), offset=held.offset)


def quoted(name: Any) -> str:
    """A name as SQL reads it, whatever is in it."""
    if type(name) is not str or not name or "\0" in name:
        raise data.no_table_name()
    return '"' + name.replace('"', '""') + '"'


def _connection(uri: str) -> tuple[Callable[[], Any], str, bool]:
    """How to connect, and the place without who asks and with what password."""
    try:
        parts = urlsplit(uri)
        given = parse_qs(parts.query)
        port = parts.port
    except ValueError:
        raise data.unknown_database() from None
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        path = os.path.abspath(unquote(parts.path[1:]))
        driver = _sqlite()
        if not os.path.isfile(path):
            raise data.no_file(os.path.basename(path))
        address = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return lambda: driver.connect(address + "?mode=ro"), f"sqlite:{path}", True
    if parts.scheme not in ("postgresql", "postgres"):
        raise data.unknown_database()
    driver = _postgresql()
    host = parts.hostname or given.get("host", [""])[0]
    at = port or given.get("port", [""])[0]
    name = unquote(parts.path[1:]) or given.get("dbname", [""])[0]
    return lambda: driver.connect(uri), f"postgresql:{host}:{at}/{name}", False


def _postgresql() -> Any:
    try:
        return importlib.import_module("adbc_driver_postgresql.dbapi")
    except ImportError:
        raise MissingExtra("adbc-driver-postgresql", "databases", "reading a database") from None


def _sqlite() -> Any:
    try:
        return importlib.import_module("adbc_driver_sqlite.dbapi")
    except ImportError:
        raise MissingExtra("adbc-driver-sqlite", "databases", "reading a database") from None
