"""Parquet and CSV files: rows are read in batches, and a batch is answered by the engine in memory.

There is one reading of a cell, `arrow_cells` and `cells`, whatever a column holds and wherever it
comes from: no database plans, reorders or shortens a pass by what it knows of the values, and no
cell decides how another one is read. Sums of batches are sums of whole numbers, so that the size of
batches, their order and the number of threads do not matter.

A unit's rows must be bounded together. They are dealt out by their unit to buckets that fit in
memory, on disk in a private folder that is removed afterwards, and each bucket is then a data set
of whole units.

A file is what it was when it was declared, or it is refused: its size, its times, its place on the
disk, its header or footer and its first and last bytes (by a keyed digest that nobody sees) are
looked at before and after every pass. A file that cannot be read (a broken footer or page) gives
one fixed error without contents.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from discreet.errors import MissingExtra, SourceChanged, data
from discreet.neighbors import Neighbors
from discreet.schema import Category, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.statistics import (
    COUNTED_CELLS,
    Histogram,
    histogram_of_counts,
    merged_histogram,
)
from discreet.trusted.engines.engine import (
    ObjectIntegers,
    State,
    needed_columns,
    require_columns,
)
from discreet.trusted.engines.kernels import MOST_THREADS, in_threads
from discreet.trusted.engines.memory import MemoryEngine, sums_of

FORMATS = ("parquet", "csv")
BATCH_ROWS = 1 << 17
SEVERAL_THREADS = 1 << 22  # bytes of files from which on several threads read them
READ_ENDS = 1 << 16  # bytes at the beginning and the end of a file that are looked at again
Result = TypeVar("Result")
Batch = tuple[dict[str, Any], int]  # Arrow arrays by column name, and the number of rows
Task = Callable[[], Iterator[Batch]]
Batches = Callable[[], Iterator[MemoryEngine]]


class Source(Protocol):
    """One file: the names of its columns, their Arrow types, and its rows in batches."""

    columns: list[str]
    types: dict[str, Any]

    def tasks(self, names: Sequence[str], rows: int) -> Iterator[Task]:
        """What can be done side by side: each task gives batches of some columns."""
        ...


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is remembered of a file, to notice that it changed; the key of its digest is forgotten
    with the engine, and neither is shown.
    """

    facts: tuple[int, ...]
    digest: bytes


class FileEngine:
    """Plans over one or more Parquet or CSV files with the same columns."""

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        format: str,
        schema: Schema,
        neighbors: Neighbors,
        *,
        dialect: Any = None,
    ) -> None:
        listed = [paths] if isinstance(paths, (str, os.PathLike)) else paths
        if (
            not isinstance(listed, Sequence)
            or not listed
            or not all(isinstance(path, (str, os.PathLike)) for path in listed)
        ):
            raise data.not_paths()
        if format not in FORMATS:
            raise data.unknown_format(format)
        self._arrow = _arrow_cells()
        self.schema, self.neighbors = schema, neighbors
        self.remembered: dict[type[Any], Any] = {}
        self._paths = tuple(os.path.abspath(os.fspath(path)) for path in listed)
        self._format, self._dialect = format, dialect
        for name, column in schema.items():
            if isinstance(column, Category):
                _require_text(name, column)
        self._key = secrets.token_bytes(32)
        self._sources, self._seen = self._opened()
        self._readings = self._check_columns()

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell:
        Python integers of shape (cells, terms), in one pass.
        """
        states = self.fold(
            plan.columns,
            lambda: sums_of(plan, self._bytes() >> 3),
            lambda sums, _, batch: batch.add_sums(plan, sums),
        )
        return np.asarray(sum((state.total() for state in states[1:]), states[0].total()))

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors, exact."""
        width = len(plan.factors)
        states = self.fold(
            plan.columns,
            lambda: np.zeros((width, width), dtype=object),
            lambda total, _, batch: np.add(total, batch.gram(plan), out=total),
        )
        return np.asarray(sum(states[1:], states[0]))

    def histogram(self, plan: HistogramPlan) -> Histogram:
        """How many rows hold each value of a factor's grid."""
        if plan.cells > COUNTED_CELLS:
            found: list[Histogram] = []
            self.fold(
                plan.columns,
                lambda: found,
                lambda histograms, _, batch: histograms.append(batch.histogram(plan)),
            )
            return merged_histogram(plan.cells, found)

        def add(counts: Any, _: int, batch: MemoryEngine) -> None:
            histogram = batch.histogram(plan)
            counts[histogram.places] += histogram.counts

        return histogram_of_counts(
            np.add.reduce(
                self.fold(plan.columns, lambda: np.zeros(plan.cells, dtype=np.int64), add)
            )
        )

    def whole(self) -> MemoryEngine:
        """All rows in memory."""
        names = needed_columns(self.schema, self.neighbors)
        return self._guarded(
            lambda: self._joined(
                names, [batch for task in self._tasks(names, BATCH_ROWS) for batch in task()]
            )
        )

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=),
        None under AddRemove.
        """
        if not self.neighbors.unit_count_is_public:
            return None
        names = () if self.neighbors.unit is None else (self.neighbors.unit,)
        counts: list[int] = []
        self.fold(
            names,
            lambda: counts,
            lambda total, _, batch: total.append(batch.public_count() or 0),
            bounded=False,
        )
        return sum(counts)

    def unchanged(self) -> bool:
        """Whether the files are still those that were declared."""
        try:
            return tuple(map(self._fingerprint, self._paths)) == self._seen
        except OSError:
            return False

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {
            "kind": self._format,
            "source": [os.path.basename(path) for path in self._paths],
            "columns": sorted(set(self._sources[0].columns)),
        } | ({"dialect": self._dialect.to_dict()} if self._dialect and self._dialect.name() else {})

    def data_id(self) -> str:
        """Format, dialect and absolute paths: contents are never hashed (see `Engine.data_id`)."""
        written = self._dialect.name() if self._dialect else ""
        return f"{self._format}{written}:" + "|".join(self._paths)

    # ── passes ────────────────────────────────────────────────────────────────────────────────────

    def fold(
        self,
        names: Sequence[str],
        start: Callable[[], State],
        add: Callable[[State, int, MemoryEngine], object],
        *,
        batch_rows: int | None = None,
        bounded: bool = True,
    ) -> list[State]:
        """add(state, number, batch) for every batch of the rows, on several threads,
        each with a state of its own; the states.

        Which rows of a unit count depends on all its columns,
        so that a bounded pass reads them all.
        """
        unit = self.neighbors.unit
        if unit is not None and bounded:
            names = needed_columns(self.schema, self.neighbors)

        def work() -> list[State]:
            with contextlib.ExitStack() as stack:
                tasks = self._tasks(names, BATCH_ROWS if batch_rows is None else batch_rows)
                if unit is None:
                    numbered = enumerate(self._row_batches(tasks))
                else:
                    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="discreet-"))
                    numbered = enumerate(self._unit_batches(unit, names, tasks, folder))
                lock = threading.Lock()

                def one_thread(_: int) -> State:
                    state = start()
                    while True:
                        with lock:
                            number, batches = next(numbered, (-1, None))
                        if batches is None:
                            return state
                        for batch in batches():
                            add(state, number, batch)

                return in_threads(one_thread, range(self._threads()))

        return self._guarded(work)

    def _threads(self) -> int:
        large = self._bytes() >= SEVERAL_THREADS
        return max(1, min(os.cpu_count() or 1, MOST_THREADS)) if large else 1

    def _guarded(self, work: Callable[[], Result]) -> Result:
        """What `work` gives, from files that did not change;
        whatever fails is told without contents.
        """
        if not self.unchanged():
            raise SourceChanged()
        result: Result | None = None
        done = False
        # raised below: its text may quote a cell, so it is not even chained
        with contextlib.suppress(Exception):
            result, done = work(), True
        if not self.unchanged():
            raise SourceChanged()
        if not done:
            raise data.unreadable(self._format)
        return result  # type: ignore[return-value]

    def _tasks(self, names: Sequence[str], rows: int) -> Iterator[Task]:
        for source in self._sources:
            yield from source.tasks(names, rows)

    def _row_batches(self, tasks: Iterator[Task]) -> Iterator[Batches]:
        for task in tasks:
            yield functools.partial(self._batches_of, task)

    def _unit_batches(
        self, unit: str, names: Sequence[str], tasks: Iterator[Task], folder: str
    ) -> Iterator[Batches]:
        """Batches that hold all rows of each of their units."""
        from discreet.trusted.extensions.unit_buckets import dealt

        read = [name for name in names if self._readings[name] != "nothing"]
        batches = (batch for task in tasks for batch in task())
        for table in dealt(batches, unit, read, folder, self._bytes()):
            held = {name: table.column(name) for name in read}, table.num_rows
            yield functools.partial(self._batches_of, functools.partial(iter, [held]))

    def _batches_of(self, task: Task) -> Iterator[MemoryEngine]:
        return (self._batch(columns, rows) for columns, rows in task())

    def _batch(self, columns: dict[str, Any], rows: int) -> MemoryEngine:
        """The engine in memory over some of the rows."""
        readers = {
            name: _once(functools.partial(self._arrow.cells_from_arrow, array))
            for name, array in columns.items()
        }
        absent = self._arrow.no_cells(rows)
        readers |= {
            name: lambda: absent for name, reading in self._readings.items() if reading == "nothing"
        }
        return MemoryEngine(readers, self.schema, self.neighbors, rows=rows, source=self._format)

    def _joined(self, names: Sequence[str], batches: Sequence[Batch]) -> MemoryEngine:
        """The engine in memory over all rows."""
        types = self._sources[0].types
        columns = {
            name: self._arrow.joined([held[name] for held, _ in batches], types[name])
            for name in names
            if self._readings[name] != "nothing"
        }
        return self._batch(columns, sum(rows for _, rows in batches))

    def _bytes(self) -> int:
        return sum(fingerprint.facts[0] for fingerprint in self._seen)

    # ── declaring ─────────────────────────────────────────────────────────────────────────────────

    def _opened(self) -> tuple[tuple[Source, ...], tuple[Fingerprint, ...]]:
        """The sources, and what is remembered of each:
        taken before it is opened and compared after.
        """
        for path in self._paths:
            if not os.path.isfile(path):
                raise data.no_file(os.path.basename(path))
        try:
            seen = tuple(map(self._fingerprint, self._paths))
            sources = tuple(map(self._source, self._paths))
            if tuple(map(self._fingerprint, self._paths)) == seen:
                return sources, seen
        except Exception:  # raised below: the reader's own text may quote the data
            pass
        raise data.unreadable(self._format)

    def _source(self, path: str) -> Source:
        if self._format == "csv":
            from discreet.trusted.extensions.csv_files import CsvSource

            return CsvSource(path, self._dialect, self.schema, self.neighbors.unit)
        from discreet.trusted.engines.parquet_files import ParquetSource

        return ParquetSource(path)

    def _fingerprint(self, path: str) -> Fingerprint:
        with open(path, "rb", buffering=0) as file:
            facts = os.fstat(file.fileno())
            digest = hashlib.blake2b(file.read(READ_ENDS), key=self._key)
            file.seek(max(0, facts.st_size - READ_ENDS))
            digest.update(file.read(READ_ENDS))
        return Fingerprint(
            (facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino, facts.st_dev),
            digest.digest(),
        )

    def _check_columns(self) -> dict[str, Any]:
        """How each needed column is read, decided by its type,
        which must be the same in all files.
        """
        found: dict[str, str] = {}
        readings: dict[str, Any] = {}
        for source in self._sources:
            require_columns(
                self.schema, self.neighbors, source.columns, header_line=self._format == "csv"
            )
            for name in needed_columns(self.schema, self.neighbors):
                kind = self._arrow.type_name(source.types[name])
                readings[name] = self._arrow.reading_of(source.types[name])
                if found.setdefault(name, kind) != kind:
                    raise data.types_differ(name)
        unit = self.neighbors.unit
        if unit is not None and readings[unit] in ("nothing", "time"):
            raise data.unit_without_ids(unit, found[unit])
        return readings


def _once(read: Callable[[], Result]) -> Callable[[], Result]:
    """`read`, done at the first call and remembered."""
    held: list[Result] = []

    def reading() -> Result:
        if not held:
            held.append(read())
        return held[0]

    return reading


def _arrow_cells() -> Any:
    try:
        return importlib.import_module("discreet.trusted.engines.arrow_cells")
    except ImportError:
        raise MissingExtra("pyarrow", "files", "reading a Parquet or CSV file") from None


def _require_text(name: str, column: Category) -> None:
    try:
        "".join(str(level) for level in column.levels).encode("utf-8")
    except UnicodeEncodeError:
        raise data.levels_not_unicode(name) from None
