"""Parquet and CSV files, through DuckDB: clamping, encoding, bounding and summing happen inside the database.

Every query opens its own in-process database, so an engine can be used from several threads. What spills to
disk goes to a private folder that is removed afterwards.

CSV is read with fixed options (comma, double quotes, a header; every cell is text), so no row can change how
others are read: a row with too few fields has missing cells, further fields are ignored, a blank line is no
row, an empty field is missing, bytes that are not UTF-8 read as U+FFFD, and a quote that is never closed makes
the rest of the file one field. What is protected is the table that is read in this way. A file that cannot be
read at all (a broken Parquet footer or page) gives one fixed error without contents.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import glob
import importlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from discreet import kernels
from discreet.engines.engine import ObjectIntegers, needed_columns, refuse_unit, require_columns
from discreet.engines.memory import MemoryEngine, memory_engine_from_frame
from discreet.engines.models import ModelCodes, ModelRows, level_columns
from discreet.engines.selection import Selection
from discreet.engines.sql import identifier, source_kind, text_literal, unit_sql
from discreet.errors import DataShapeRefused, InvalidParameter, MissingExtra
from discreet.neighbors import Neighbors
from discreet.queries import GramPlan, OpenPlan, SumsPlan, TallyPlan
from discreet.queries.model import EstimatingPlan, Model
from discreet.queries.parts import PartsPlan
from discreet.queries.pieces import NumberPiece
from discreet.queries.residuals import ResidualPlan
from discreet.schema import Category, Schema
from discreet.tally import KeyCounts, Tally, key_counts

FORMATS = ("parquet", "csv")
CHUNK = 1 << 22
Result = TypeVar("Result")


class FileEngine:
    """Plans over one or more Parquet or CSV files with the same columns."""

    def __init__(self, paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], format: str, schema: Schema, neighbors: Neighbors) -> None:
        listed = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths) if isinstance(paths, Sequence) else []
        if not listed or not all(isinstance(path, (str, os.PathLike)) for path in listed):
            raise InvalidParameter("path", "neither a path nor a list of paths", "data are read from files", "pass for example 'survey.parquet'")
        self._duckdb = _duckdb()
        self.schema, self.neighbors = schema, neighbors
        self._paths, self._format = tuple(os.path.abspath(os.fspath(path)) for path in listed), format
        if format not in FORMATS:
            raise InvalidParameter("format=", f"{format!r} is not known", "it decides how a file is read", "use 'parquet' or 'csv'")
        for name, column in schema.items():
            if isinstance(column, Category):
                _require_text(name, column)
        self._headers: dict[str, list[str]] = {}
        self._types = self._check_columns()
        self._models = ModelRows(self._model_codes)

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell: Python integers of shape (cells, terms), in one pass."""

        def work(connection: Any, folder: str) -> ObjectIntegers:
            result = np.full((plan.cells, len(plan.terms)), 0, dtype=object)
            for cell, *sums in connection.execute(self._selection(connection, folder, plan).sums(plan)).fetchall():
                if cell is not None:
                    result[cell, :] = [int(value or 0) for value in sums]
            return result

        return self._run(work, lambda engine: engine.sums(plan))

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors: codes are streamed in blocks, products are exact."""

        def work(connection: Any, folder: str) -> ObjectIntegers:
            query = self._selection(connection, folder, plan).codes(plan)
            reader = connection.sql(query).to_arrow_reader(1 << 17)  # streams; execute would hold all rows
            blocks = (tuple(column.to_numpy(zero_copy_only=False) for column in batch.columns) for batch in reader)
            return kernels.gram(blocks, len(plan.factors), plan.block_rows, plan.product_bits)

        return self._run(work, lambda engine: engine.gram(plan))

    def tally(self, plan: TallyPlan) -> Tally:
        """How many rows hold each value of a factor's grid."""

        def work(connection: Any, folder: str) -> Tally:
            found = connection.execute(self._selection(connection, folder, plan).tally(plan)).fetchnumpy()
            places, counts = (np.asarray(column, dtype=np.int64) for column in found.values())
            return Tally(plan.cells, places, counts)

        return self._run(work, lambda engine: engine.tally(plan))

    def keys(self, plan: OpenPlan) -> KeyCounts:
        """How many rows hold each key that nobody declared."""

        def work(connection: Any, folder: str) -> KeyCounts:
            found = connection.execute(self._selection(connection, folder, plan).keys(plan)).fetchall()
            names = [row[0] for row in found] if plan.plain else [plan.name(row[:-2], row[-2]) for row in found]
            return key_counts(names, np.array([row[-1] for row in found], dtype=np.int64))

        return self._run(work, lambda engine: engine.keys(plan))

    def estimating(self, plan: EstimatingPlan | ResidualPlan) -> Any:
        """The sums of an estimating equation; the model's rows are read once and kept as whole numbers, two bytes a cell."""
        return self._models.sums(plan)

    def parts(self, plan: PartsPlan) -> int:
        """In how many random parts of the rows a caller's test rejects; the files are read into memory, where the test runs."""

        def work(connection: Any, folder: str) -> Any:
            return connection.sql(self._source(folder)).to_arrow_table()

        names = needed_columns(self.schema, self.neighbors)
        table = self._run(work, lambda engine: None)
        engine = self._memory_engine() if table is None else memory_engine_from_frame(table.rename_columns(list(names)), self.schema, self.neighbors)
        return engine.parts(plan)

    def _model_codes(self, model: Model) -> ModelCodes:
        pieces = sorted({piece for column in model.columns for piece in column.pieces}, key=repr)
        response = model.response
        factors = list(dict.fromkeys([piece.factor for piece in pieces if isinstance(piece, NumberPiece)] + ([response.factor] if response and response.factor else [])))
        levels = level_columns(model)

        def work(connection: Any, folder: str) -> ModelCodes:
            reader = connection.sql(self._selection(connection, folder, model).model(model, factors, levels)).to_arrow_reader(1 << 17)
            blocks = [[column.to_numpy(zero_copy_only=False) for column in batch.columns] for batch in reader]
            columns = [np.concatenate(parts) for parts in zip(*blocks, strict=True)] if blocks else [np.zeros(0, dtype=np.int32)] * (len(factors) + len(levels))
            by_factor, by_level = dict(zip(factors, columns, strict=False)), dict(zip(levels, columns[len(factors) :], strict=True))
            codes = {piece: by_factor[piece.factor] if isinstance(piece, NumberPiece) else by_level[piece.column] for piece in pieces}
            answer = None if response is None else by_factor[response.factor] if response.factor else by_level[response.column]
            return codes, answer, len(columns[0])

        return self._run(work, lambda engine: engine.model_codes(model))

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=), None under AddRemove."""
        if not self.neighbors.unit_count_is_public:
            return None
        count = "count(*)"
        if self.neighbors.unit is not None:
            place = needed_columns(self.schema, self.neighbors).index(self.neighbors.unit)
            unit, _ = unit_sql(f"s{place}", self._types[self.neighbors.unit])
            count = f"count(DISTINCT {unit})"
        return self._run(lambda connection, folder: int(connection.execute(f"SELECT {count} FROM ({self._source(folder)})").fetchall()[0][0]), lambda engine: engine.public_count())

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {"kind": self._format, "source": [os.path.basename(path) for path in self._paths], "columns": sorted(self._types)}

    def data_id(self) -> str:
        """Format and absolute paths: contents are never hashed (see `Engine.data_id`)."""
        return f"{self._format}:" + "|".join(self._paths)

    def _selection(self, connection: Any, folder: str, plan: SumsPlan | GramPlan | TallyPlan | OpenPlan | Model) -> Selection:
        selection = Selection(self._source(folder), self._types, self.schema, self.neighbors)
        for statement, values in selection.setup(plan):
            connection.execute(statement, [values, values] if values else [])
        return selection

    def _run(self, work: Callable[[Any, str], Result], in_memory: Callable[[MemoryEngine], Result] | None = None) -> Result:
        """Does `work` in a database of its own with a private folder; whatever fails there is told without contents.

        DuckDB refuses a Parquet file with one text cell that is not UTF-8. Engines agree bit for bit, so such a file
        is read in memory instead (the cell is missing), and no cell decides whether there is an answer.
        """
        with tempfile.TemporaryDirectory(prefix="discreet-") as folder:
            connection = self._duckdb.connect(":memory:", config={"temp_directory": os.path.join(folder, "spill"), "preserve_insertion_order": "false"})
            try:
                connection.execute("SET enable_progress_bar = false")
                return work(connection, folder)
            except (self._duckdb.Error, OSError, ValueError):
                pass  # raised below: the database's own text may quote a row, so it is not even chained
            finally:
                connection.close()
        if in_memory is not None and self._format == "parquet":
            with contextlib.suppress(OSError, ValueError):
                return in_memory(self._memory_engine())
        raise _unreadable(self._format)

    def _memory_engine(self) -> MemoryEngine:
        parquet, names = importlib.import_module("pyarrow.parquet"), needed_columns(self.schema, self.neighbors)
        tables = [parquet.ParquetFile(path).read(columns=list(names)).select(names) for path in self._paths]
        return memory_engine_from_frame(importlib.import_module("pyarrow").concat_tables(tables), self.schema, self.neighbors)

    def _source(self, folder: str) -> str:
        """The needed columns of all files, as s0, s1, …"""
        names = needed_columns(self.schema, self.neighbors)
        return " UNION ALL ".join(self._file_source(path, names, folder) for path in self._paths)

    def _file_source(self, path: str, names: Sequence[str], folder: str) -> str:
        if self._format == "parquet":
            chosen = ", ".join(f"{identifier(name)} AS s{place}" for place, name in enumerate(names))
            return f"SELECT {chosen} FROM {_parquet(path)}"
        header = self._headers[path]
        chosen = ", ".join(f"column{header.index(name)} AS s{place}" for place, name in enumerate(names))
        return f"SELECT {chosen} FROM {_csv(_utf8_copy(path, folder), len(header))}"

    def _check_columns(self) -> dict[str, Any]:
        found: dict[str, str] = {}
        for path in self._paths:
            if not os.path.isfile(path):
                raise DataShapeRefused(f"file {os.path.basename(path)!r}", "there is no such file", "data are read from it", "check the path")
            types = self._file_types(path)
            for name in needed_columns(self.schema, self.neighbors):
                if found.setdefault(name, types[name]) != types[name]:
                    raise DataShapeRefused(f"column {name!r}", "its type differs between files", "files of one data set have the same columns", "write the files with one type")
        kinds = {name: source_kind(kind) for name, kind in found.items()}
        unit = self.neighbors.unit
        if unit is not None and kinds[unit] == "nothing":
            raise refuse_unit(unit, found[unit])
        return kinds

    def _file_types(self, path: str) -> dict[str, str]:
        if self._format == "csv":
            with open(path, encoding="utf-8-sig", errors="replace", newline="") as lines:
                header = _header(lines)
            require_columns(self.schema, self.neighbors, header, header_line=True)
            self._headers[path] = header
            return dict.fromkeys(header, "VARCHAR")
        rows = self._run(lambda connection, _: connection.execute(f"DESCRIBE SELECT * FROM {_parquet(path)}").fetchall())
        types = {row[0]: str(row[1]) for row in rows}
        require_columns(self.schema, self.neighbors, list(types))
        return types


def _header(lines: Iterable[str]) -> list[str]:
    try:
        return next(csv.reader(lines), [])
    except csv.Error:  # a first line that no header is like, such as one name of a megabyte
        return []


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise MissingExtra("duckdb", "files", "reading a Parquet or CSV file") from None


def _parquet(path: str) -> str:
    return f"read_parquet({text_literal(glob.escape(path))}, hive_partitioning=false)"


def _csv(path: str, width: int) -> str:
    """A CSV reader that no row can make fail: a record may be as long as the file, and short or long rows are read."""
    columns = ", ".join(f"'column{index}': 'VARCHAR'" for index in range(width))
    return (f"read_csv({text_literal(glob.escape(path))}, auto_detect=false, header=true, columns={{{columns}}}, delim=',', quote='\"', escape='\"',"
            f" comment='', nullstr='', null_padding=true, strict_mode=false, parallel=false, max_line_size={os.path.getsize(path) + 2_000_000})")


def _utf8_copy(path: str, folder: str) -> str:
    """The file itself if it is UTF-8, else a private copy in which other bytes are U+FFFD (a local change, row by row)."""
    try:
        decoder = codecs.getincrementaldecoder("utf-8")()
        for chunk in _chunks(path):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
        return path
    except UnicodeDecodeError:
        pass
    handle, copy = tempfile.mkstemp(dir=folder, suffix=".csv")
    replacing = codecs.getincrementaldecoder("utf-8")(errors="replace")
    with os.fdopen(handle, "wb") as target:
        for chunk in _chunks(path):
            target.write(replacing.decode(chunk).encode("utf-8"))
        target.write(replacing.decode(b"", final=True).encode("utf-8"))
    return copy


def _chunks(path: str) -> Iterator[bytes]:
    with open(path, "rb") as source:
        while chunk := source.read(CHUNK):
            yield chunk


def _require_text(name: str, column: Category) -> None:
    try:
        "".join(str(level) for level in column.levels).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidParameter(f"levels of {name!r}", "one of them is not valid Unicode text", "levels are compared with the text of a file", "remove lone surrogates") from None


def _unreadable(format: str) -> DataShapeRefused:
    return DataShapeRefused(f"reading a {format} file", "the file could not be read", "the database's own message may quote the data and is not shown", f"check that it is an intact {format} file")
