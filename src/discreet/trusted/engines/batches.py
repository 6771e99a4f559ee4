"""Rows that come in batches (files, streams, databases): each batch is answered by the engine in
memory, and whole numbers are added up.

There is one reading of a cell, `arrow_cells` and `cells`, whatever a column holds and wherever it
comes from: no database plans, reorders or shortens a pass by what it knows of the values, and no
cell decides how another one is read. Sums of batches are sums of whole numbers, so that the size of
batches, their order and the number of threads do not matter.

A unit's rows must be bounded together. They are dealt out by their unit to buckets that fit in
memory, on disk in a private folder, and each bucket is then a data set of whole units.

A source is what it was when it was declared, or it is refused; one that cannot be read gives one
fixed error without contents.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from discreet.errors import MissingExtra, SourceChanged, data
from discreet.neighbors import Neighbors
from discreet.schema import Category, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.statistics import (
    COUNTED_CELLS,
    histogram_of_counts,
)
from discreet.trusted.engines.engine import (
    ObjectIntegers,
    State,
    needed_columns,
    require_columns,
)
from discreet.trusted.engines.kernels import MOST_THREADS, in_threads, scatter_for
from discreet.trusted.engines.memory import MemoryEngine, sums_of

BATCH_ROWS = 1 << 17
SEVERAL_THREADS = 1 << 22  # bytes of a source from which on several threads read it
Result = TypeVar("Result")
Batch = tuple[dict[str, Any], int]  # Arrow arrays by column name, and the number of rows
Task = Callable[[], Iterator[Batch]]
Batches = Callable[[], Iterator[MemoryEngine]]


class BatchSource(Protocol):
    """Where batches come from; `size` is about how many bytes all rows are."""

    kind: str
    size: int
    columns: Sequence[str]
    types: dict[str, Any]  # Arrow types by column name

    def reading(
        self, names: Sequence[str], rows: int
    ) -> contextlib.AbstractContextManager[Iterator[Task]]:
        """One pass: what can be done side by side, each task giving batches of at most about so
        many rows of some columns; leaving it raises where other rows came than before.
        """
        ...

    def unchanged(self) -> bool:
        """Whether this is still the source that was declared, as far as is seen from outside."""
        ...

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        ...

    def data_id(self) -> str:
        """What identifies the source in the ledger (see `Engine.data_id`)."""
        ...


class BatchEngine:
    """Plans over rows that come in batches; `scale` says what may be kept, and where."""

    def __init__(
        self, source: BatchSource, schema: Schema, neighbors: Neighbors, scale: Any = None
    ) -> None:
        self._arrow = arrow_cells()
        self.schema, self.neighbors, self.scale = schema, neighbors, scale
        self.remembered: dict[type[Any], Any] = {}
        self._source, self.has_name, self._passes = source, True, 0
        for name, column in schema.items():
            if isinstance(column, Category):
                _require_text(name, column)
        self._readings = self._check_columns()

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell:
        Python integers of shape (cells, terms), in one pass.
        """
        states = self.fold(
            plan.columns,
            lambda: sums_of(plan, self._source.size >> 3),
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

    def histogram(self, plan: HistogramPlan) -> Any:
        """How many rows hold each value of a factor's grid; of a fine one perhaps on disk."""
        if plan.cells > COUNTED_CELLS:
            from discreet.trusted.scale.tallies import Tally

            return Tally.joined(
                self.fold(
                    plan.columns,
                    lambda: Tally(plan.cells, self.scale),
                    lambda tally, _, batch: tally.add(batch.histogram(plan)),
                )
            )

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

        def work() -> MemoryEngine:
            with self._source.reading(names, self._batch_rows(None, len(names))) as tasks:
                return self._joined(names, [batch for task in tasks for batch in task()])

        return self._guarded(work)

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
        """Whether the source is still the one that was declared."""
        return self._source.unchanged()

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return self._source.describe()

    def data_id(self) -> str:
        """The source's place or name: contents are never hashed (see `Engine.data_id`)."""
        return self._source.data_id()

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
            scatter_for(self._source.size >> 3)  # compiles encoding, where there are many rows
            names = needed_columns(self.schema, self.neighbors)

        from discreet.trusted.scale.progress import watched

        def work() -> list[State]:
            with contextlib.ExitStack() as stack:
                kept = self._kept_units() if unit is not None and bounded else None
                if kept is not None and kept.whole:
                    numbered = enumerate(watched(self._again(kept), kept.count()))
                else:
                    rows = self._batch_rows(batch_rows, len(names))
                    tasks = watched(
                        stack.enter_context(self._source.reading(names, rows)), passes=self._passes
                    )
                    numbered = enumerate(
                        self._row_batches(tasks)
                        if unit is None
                        else self._unit_batches(unit, names, tasks, kept)
                    )
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

                states = in_threads(one_thread, range(self._threads(len(names))))
                self._arrow.give_back()
            self._passes += 1
            if kept is not None:
                kept.whole = True
                self.remembered[type(kept)] = kept
            return states

        return self._guarded(work)

    def _batch_rows(self, asked: int | None, columns: int) -> int:
        most = BATCH_ROWS if asked is None else asked
        return most if self.scale is None else self.scale.batch_rows(columns, most)

    def _threads(self, columns: int) -> int:
        if self._source.size < SEVERAL_THREADS:
            return 1
        most = MOST_THREADS if self.scale is None else self.scale.threads(columns)
        return max(1, min(os.cpu_count() or 1, most))

    def _kept_units(self) -> Any:
        """The rows of units that count, which the first bounded pass keeps; None: none does."""
        if self.scale is None or self.scale.folder is None:
            return None
        from discreet.trusted.scale.units import KeptUnits

        return self.remembered.get(KeptUnits) or KeptUnits(self.scale)

    def _again(self, kept: Any) -> Iterator[Batches]:
        for columns, units, rows in kept.buckets():
            batch = self._batch(columns, rows, bounded=True)
            batch.known_units = units
            yield functools.partial(iter, [batch])

    def _guarded(self, work: Callable[[], Result]) -> Result:
        """What `work` gives, from a source that did not change;
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
            raise data.unreadable(self._source.kind)
        return result  # type: ignore[return-value]

    def _row_batches(self, tasks: Iterator[Task]) -> Iterator[Batches]:
        for task in tasks:
            yield functools.partial(self._batches_of, task)

    def _unit_batches(
        self, unit: str, names: Sequence[str], tasks: Iterator[Task], kept: Any
    ) -> Iterator[Batches]:
        """Batches that hold all rows of each of their units."""
        from discreet.trusted.extensions.unit_buckets import dealt

        read = [name for name in names if self._readings[name] != "nothing"]
        batches = (batch for task in tasks for batch in task())
        size = self._source.size
        for number, table in enumerate(dealt(batches, unit, read, size, self.scale)):
            columns = {name: table.column(name) for name in read}
            if kept is None:
                held = functools.partial(iter, [(columns, table.num_rows)])
                yield functools.partial(self._batches_of, held)
            else:
                batch = self._batch(columns, table.num_rows)
                yield functools.partial(kept.first, batch, columns, number)

    def _batches_of(self, task: Task) -> Iterator[MemoryEngine]:
        return (self._batch(columns, rows) for columns, rows in task())

    def _batch(self, columns: dict[str, Any], rows: int, *, bounded: bool = False) -> MemoryEngine:
        """The engine in memory over some of the rows: Arrow columns, or what reads their cells;
        `bounded` says that all of them count.
        """
        readers = {
            name: _once(
                array if callable(array) else functools.partial(self._arrow.cells_from_arrow, array)
            )
            for name, array in columns.items()
        }
        absent = self._arrow.no_cells(rows)
        readers |= {
            name: lambda: absent for name, reading in self._readings.items() if reading == "nothing"
        }
        engine = MemoryEngine(
            readers, self.schema, self.neighbors, rows=rows, source=self._source.kind
        )
        engine.bounded |= bounded
        return engine

    def _joined(self, names: Sequence[str], batches: Sequence[Batch]) -> MemoryEngine:
        """The engine in memory over all rows."""
        columns = {
            name: self._arrow.joined([held[name] for held, _ in batches], self._source.types[name])
            for name in names
            if self._readings[name] != "nothing"
        }
        return self._batch(columns, sum(rows for _, rows in batches))

    def _check_columns(self) -> dict[str, Any]:
        """How each needed column is read, decided by its type."""
        source, unit = self._source, self.neighbors.unit
        require_columns(
            self.schema, self.neighbors, source.columns, header_line=source.kind == "csv"
        )
        readings = {
            name: self._arrow.reading_of(source.types[name])
            for name in needed_columns(self.schema, self.neighbors)
        }
        if unit is not None and readings[unit] in ("nothing", "time"):
            raise data.unit_without_ids(unit, self._arrow.type_name(source.types[unit]))
        return readings


def _once(read: Callable[[], Result]) -> Callable[[], Result]:
    """`read`, done at the first call and remembered."""
    held: list[Result] = []

    def reading() -> Result:
        if not held:
            held.append(read())
        return held[0]

    return reading


def arrow_cells() -> Any:
    """The reading of Arrow's columns."""
    try:
        return importlib.import_module("discreet.trusted.engines.arrow_cells")
    except ImportError:
        raise MissingExtra("pyarrow", "files", "reading rows in batches") from None


def _require_text(name: str, column: Category) -> None:
    try:
        "".join(str(level) for level in column.levels).encode("utf-8")
    except UnicodeEncodeError:
        raise data.levels_not_unicode(name) from None
