"""What a task does with the batches of its part: the engine in memory answers, batch by batch.

Theorem.  Nothing of a cell is in what a task raises, prints or logs.
Proof.    Every batch is worked on in a secluded section (`aside`), whose failure is one fixed text.
Checked.  tests/trusted/cluster/test_cluster_engine.py::test_a_task_that_fails_says_one_thing,
          tests/trusted/cluster/test_spark.py
"""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.neighbors import Neighbors
from discreet.schema import Schema
from discreet.seclusion import Failed, aside
from discreet.specs.estimating.model import Model
from discreet.specs.queries.open_keys import OpenPlan
from discreet.trusted.cluster.answers import placed
from discreet.trusted.cluster.units import groups_of, least_copies, least_rows
from discreet.trusted.engines.batches import BATCH_ROWS, BatchEngine
from discreet.trusted.engines.engine import State, needed_columns
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.extensions.estimating.reading import model_codes, unit_labels_of
from discreet.trusted.extensions.estimating.rows import KeptRows, ModelRows, encoded_matrix
from discreet.trusted.scale.streams import mixing

Arrow = Iterator[pa.RecordBatch]
Task = Callable[["Reading", Arrow], Arrow]
Words = npt.NDArray[np.uint64]
Piece = tuple[MemoryEngine, Words]  # rows that are looked at together, and sums that tell a change
BATCH_BYTES = 1 << 26
VERSION: str = sys.modules["discreet"].__version__
PARTIAL = {
    "long": pa.schema([("place", pa.int64()), ("total", pa.decimal128(38, 0))]),
    "binary": pa.schema([("place", pa.binary()), ("total", pa.decimal128(38, 0))]),
}
BLOCK = "words binary, count long, matrix binary, response binary, units binary"
FAILED = "a task of discreet failed; what it met is not shown"


@dataclass(frozen=True)
class Reading:
    """How tasks read a frame: public facts, and a key whose sums tell whether rows changed.

    Column number i of the needed ones is named s‹i›; those that are not asked for are not there.
    """

    schema: Schema
    neighbors: Neighbors
    names: tuple[str, ...]
    key: bytes
    kept: bool = False  # whether rows come as tables of units that were bounded

    @property
    def needed(self) -> tuple[str, ...]:
        return needed_columns(self.schema, self.neighbors)

    @property
    def summed(self) -> int:
        """How many sums of a pass tell whether its rows changed."""
        return len(self.about(()))

    def about(self, states: tuple[str, ...]) -> list[tuple[str, ...]]:
        """What those sums are about; with the states of cells, other rows of a unit count."""
        if self.kept:
            return [("kept rows", *states), ("kept", *states)]
        row = [("row", *sorted(self.names))] if len(self.names) > 1 else []
        return [("rows",), *row, *((name, "") for name in self.names)]

    def places(self) -> list[str]:
        """The columns of the frame that hold the names."""
        return [f"s{self.needed.index(name)}" for name in self.names]


class TaskEngine(BatchEngine):
    """Plans over the pieces of one task."""

    def __init__(self, reading: Reading, types: dict[str, Any], pieces: Iterator[Piece]) -> None:
        absent = {
            name: pa.string() if name == reading.neighbors.unit else pa.null()
            for name in reading.needed
        }
        source: Any = SimpleNamespace(
            kind="spark", size=1 << 30, columns=reading.needed, types=absent | types
        )
        super().__init__(source, reading.schema, reading.neighbors)
        self._pieces = pieces
        self.words = np.zeros(reading.summed, dtype=np.uint64)

    def fold(
        self,
        names: Any,
        start: Callable[[], State],
        add: Callable[[State, int, MemoryEngine], object],
        *,
        batch_rows: int | None = None,
        bounded: bool = True,
    ) -> list[State]:
        """add(state, number, piece) for every piece."""
        state = start()
        for number, (batch, words) in enumerate(self._pieces):
            add(state, number, batch)
            self.words += words
        return [state]

    def batch(self, columns: dict[str, Any], rows: int, *, bounded: bool = False) -> MemoryEngine:
        """The engine in memory over some rows."""
        return self._batch(columns, rows, bounded=bounded)


def in_task(task: Task, reading: Reading, version: str) -> Callable[[Arrow], Arrow]:
    """`task` as Spark runs it: what fails says one thing."""

    def run(batches: Arrow) -> Arrow:
        answers = task(reading, batches)
        while True:
            answer = aside(lambda: next(answers, None))
            if isinstance(answer, Failed) or version != VERSION:
                raise RuntimeError(FAILED)
            if answer is None:
                return
            yield answer

    return run


def tables(batches: Arrow) -> Iterator[pa.Table]:
    """Small batches together, up to a number of rows and of bytes."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + len(batch) > BATCH_ROWS or size + batch.nbytes > BATCH_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
    if rows:
        yield pa.Table.from_batches(held)


def engine_of(reading: Reading, batches: Arrow) -> TaskEngine | None:
    """The engine of a task over all of its rows; None: there are none."""
    given = tables(batches)
    first = next(given, None)
    if first is None:
        return None
    given = itertools.chain([first], given)
    return _engine_of_kept(reading, given) if reading.kept else _engine_of_rows(reading, given)


def _engine_of_rows(reading: Reading, given: Iterator[pa.Table]) -> TaskEngine:
    first = next(given)
    types = {
        name: first.schema.field(place).type
        for name, place in zip(reading.names, reading.places(), strict=True)
    }

    def pieces() -> Iterator[Piece]:
        for table in itertools.chain([first], given):
            cells = table.select(reading.places()).columns
            words = [
                table.column(f"h{number}").to_numpy().view(np.uint64).sum(dtype=np.uint64)
                for number in range(reading.summed - 1)
            ]
            columns = dict(zip(reading.names, cells, strict=True))
            yield engine.batch(columns, len(table)), np.array([len(table), *words], np.uint64)

    engine = TaskEngine(reading, types, pieces())
    return engine


def _engine_of_kept(reading: Reading, given: Iterator[pa.Table]) -> TaskEngine:
    first = next(given)
    types = {
        name: _column(first.column(place)[0]).type
        for name, place in zip(reading.names, reading.places(), strict=True)
    }

    def pieces() -> Iterator[Piece]:
        for table in itertools.chain([first], given):
            for row in range(len(table)):
                columns = {
                    name: _column(table.column(place)[row])
                    for name, place in zip(reading.names, reading.places(), strict=True)
                }
                words = np.frombuffer(table.column("words")[row].as_py(), dtype=np.uint64)
                yield engine.batch(columns, int(words[0]), bounded=True), words

    engine = TaskEngine(reading, types, pieces())
    return engine


def _column(cell: pa.Scalar) -> Any:
    return pa.ipc.open_stream(cell.as_buffer()).read_all().column(0)


def _binary(column: Any) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"": column})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────


def answering(plan: Any) -> Task:
    """The task that answers a plan; None: the public number of rows or units."""

    def task(reading: Reading, batches: Arrow) -> Arrow:
        engine = engine_of(reading, batches)
        if engine is None:
            return
        answer: Any = engine.public_count() if plan is None else execute(engine, plan)
        if isinstance(plan, OpenPlan):
            for piece in answer.pieces():
                names = [name.encode("utf-8") for name in piece.names]
                yield _partial(names, piece.counts.tolist(), "binary")
            words = [b"\xff%d" % place for place in range(len(engine.words))]  # no text is so
            yield _partial(words, engine.words.tolist(), "binary")
            return
        for places, totals in placed(answer):
            yield _partial(places, totals)
        yield _told(engine.words)

    return task


def of_blocks(plan: Any) -> Task:
    """The task that answers a plan about a model, of blocks of its rows."""

    def task(reading: Reading, batches: Arrow) -> Arrow:
        words, width, total = np.zeros(reading.summed, np.uint64), len(plan.model.columns), None
        for batch in batches:
            for row in range(len(batch)):
                here, kept = _block(batch, row, width)
                answer = ModelRows(_given(kept)).sums(plan)
                total = answer if total is None else _added(total, answer)
                words += here
        if total is not None:
            for places, totals in placed(total):
                yield _partial(places, totals)
            yield _told(words)

    return task


def _given(kept: KeptRows) -> Callable[[Model], KeptRows]:
    return lambda _: kept


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, (list, tuple)):
        return type(one)(map(_added, one, other))
    return one + other


def _block(batch: pa.RecordBatch, row: int, width: int) -> tuple[Words, KeptRows]:
    words, count, matrix, response, units = (column[row].as_py() for column in batch.columns)
    rows = np.frombuffer(matrix, dtype=np.int16).reshape(count, width)
    given = None if response is None else np.frombuffer(response, dtype=np.int32)
    labels = np.frombuffer(units or b"", dtype=np.int64)
    return (
        np.frombuffer(words, dtype=np.uint64),
        KeptRows(rows, given, lambda: iter([(slice(0, count), labels)])),
    )


def _partial(places: Any, totals: list[int], kind: str = "long") -> pa.RecordBatch:
    schema = PARTIAL[kind]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(places, schema.field("place").type),
            pa.array([Decimal(total) for total in totals], pa.decimal128(38, 0)),
        ],
        schema=schema,
    )


def _told(words: Words) -> pa.RecordBatch:
    """The sums that tell a change, at places below 0."""
    return _partial([-1 - place for place in range(len(words))], [int(word) for word in words])


# ── rows that are kept on the cluster ─────────────────────────────────────────────────────────────


def encoding(model: Model) -> Task:
    """The task that makes the blocks of a model."""

    def task(reading: Reading, batches: Arrow) -> Arrow:
        engine = engine_of(reading, batches)
        if engine is None:
            return
        for rows, words in engine._pieces:
            codes, response, count = model_codes(rows, model)
            matrix = encoded_matrix(model.columns, codes, count)
            units = unit_labels_of(rows, model) if reading.neighbors.unit is not None else None
            given = None if response is None else np.asarray(response).astype(np.int32)
            yield pa.RecordBatch.from_pylist(
                [
                    {
                        "words": words.tobytes(),
                        "count": count,
                        "matrix": matrix.tobytes(),
                        "response": None if given is None else given.tobytes(),
                        "units": None if units is None else units.astype(np.int64).tobytes(),
                    }
                ],
                schema=pa.schema(
                    [
                        ("words", pa.binary()),
                        ("count", pa.int64()),
                        *((name, pa.binary()) for name in ("matrix", "response", "units")),
                    ]
                ),
            )

    return task


def together(states: tuple[str, ...]) -> Task:
    """The task that puts rows of a batch together that are copies of each other."""

    def task(reading: Reading, batches: Arrow) -> Arrow:
        for table in tables(batches):
            rows = _rows(reading, table)
            groups = groups_of(rows, states)
            yield from _with(
                table.take(pa.array(groups.rows)), copies=groups.counts, spread=groups.values
            )

    return task


def few_of_units(states: tuple[str, ...]) -> Task:
    """The task that keeps the least rows of each unit, of all copies of what it meets."""

    def task(reading: Reading, batches: Arrow) -> Arrow:
        for table in _whole(batches):
            times = table.column("copies").to_numpy()
            groups = groups_of(_rows(reading, table), states, times)
            chosen, values = least_copies(groups, reading.neighbors.rows)
            found = table.take(pa.array(groups.rows[chosen])).drop_columns(["copies", "spread"])
            yield from _with(found, least=values, home=groups.seeds[chosen])

    return task


def kept_of_units(states: tuple[str, ...]) -> Task:
    """The task that keeps the rows of its units that count, in tables of whole units."""

    def task(reading: Reading, batches: Arrow) -> Arrow:
        for table in _whole(batches):
            rows = _rows(reading, table)
            least, home = (table.column(name).to_numpy() for name in ("least", "home"))
            kept = least_rows(rows, states, least)
            labels = rows.units()[0][kept]
            cuts = [0]
            for begin in np.flatnonzero(labels[1:] != labels[:-1]) + 1:
                if begin - cuts[-1] >= BATCH_ROWS:
                    cuts.append(int(begin))
            word = int.from_bytes(hashlib.blake2b(reading.key, digest_size=8).digest(), "big")
            for low, high in itertools.pairwise([*cuts, len(kept)]):
                some = kept[low:high]
                mixed = mixing(
                    (home[some].astype(np.uint64) << np.uint64(32))
                    ^ least[some].astype(np.uint64)
                    ^ np.uint64(word)
                )
                words = np.array([len(some), mixed.sum(dtype=np.uint64)], dtype=np.uint64)
                held = table.take(pa.array(some))
                cells = [_binary(held.column(place)) for place in reading.places()]
                yield pa.RecordBatch.from_arrays(
                    [pa.array([words.tobytes()]), *(pa.array([cell]) for cell in cells)],
                    names=["words", *reading.places()],
                )

    return task


def _whole(batches: Arrow) -> Iterator[pa.Table]:
    """All rows of a task's part as one table, if there are any."""
    held = [batch for batch in batches if len(batch)]
    if held:
        yield pa.Table.from_batches(held)


def _rows(reading: Reading, table: pa.Table) -> MemoryEngine:
    """The engine in memory over all rows of a table."""
    columns = {
        name: table.column(place)
        for name, place in zip(reading.names, reading.places(), strict=True)
    }
    types = {name: column.type for name, column in columns.items()}
    return TaskEngine(reading, types, iter(())).batch(columns, len(table))


def _with(table: pa.Table, **numbers: npt.NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    for name, column in numbers.items():
        table = table.append_column(name, pa.array(column, pa.int64()))
    yield from table.combine_chunks().to_batches()
