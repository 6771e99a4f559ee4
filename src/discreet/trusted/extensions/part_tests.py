"""A caller's test, run on each of some random disjoint parts of the data."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.schema import Boolean, Category, Column
from discreet.seclusion import Failed, Secluded, aside, seclude_worker
from discreet.specs.aggregation.part_outputs import OutputsPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.later import later
from discreet.trusted.noise.assignment import balanced_parts, independent_parts
from discreet.trusted.noise.source import Source

_GATHERED = later("discreet.trusted.extensions.estimating.reading", "Gathered")
_NO_ROWS = later("discreet.trusted.extensions.estimating.reading", "no_rows")
_DEALT = later("discreet.trusted.scale.part_rows", "rows_of_parts")


def rejecting_parts(engine: Engine, plan: PartsPlan, source: Source) -> int:
    """In how many random parts of the rows a caller's test rejects."""
    return rejections(plan, rows_of_parts(engine, plan, source))


def rows_of_parts(
    engine: Engine, plan: PartsPlan | OutputsPlan, source: Source
) -> Iterator[list[npt.NDArray[Any]]]:
    """The columns of a plan in each random part, as a caller's function gets them; a unit's rows
    are in one part.

    Rows that come in batches go to disk where they are many, and are dealt out there; those of
    units are read into memory.
    """
    found: Iterator[Any]  # rows of each part, by field
    if isinstance(engine, MemoryEngine) or engine.neighbors.unit is not None:
        found = _of_memory(engine.whole(), plan, source)
    else:
        cells, balanced = _cells(engine, plan), engine.neighbors.row_count_is_public
        if isinstance(cells, np.ndarray):
            draw = balanced_parts if balanced else independent_parts
            parts = draw(source, len(cells), plan.parts)
            parts[~cells["kept"]] = plan.parts
            found = (cells[rows] for rows in _by_part(parts, plan.parts))
        else:
            found = _DEALT(cells, plan.parts, source, balanced, engine.scale.held)
    names = _fields(plan)
    return (
        [_given(engine.schema[name], rows[field]) for field, name in names.items()]
        for rows in found
    )


def _fields(plan: PartsPlan | OutputsPlan) -> dict[str, str]:
    return {f"c{place}": name for place, name in enumerate(plan.columns)}


def _by_part(assigned: npt.NDArray[np.int64], parts: int) -> Iterator[npt.NDArray[np.intp]]:
    """The rows of each part."""
    order = np.argsort(assigned, kind="stable")
    ends = np.searchsorted(assigned[order], np.arange(parts + 1))
    return (order[low:high] for low, high in itertools.pairwise(ends))


def _of_memory(
    rows: MemoryEngine, plan: PartsPlan | OutputsPlan, source: Source
) -> Iterator[dict[str, npt.NDArray[Any]]]:
    with rows.lock:
        assigned = _assigned(rows, plan.parts, source)
        columns = {field: _read(rows, name) for field, name in _fields(plan).items()}
        if plan.keys:
            assigned[rows.cell_index(plan.keys) != 0] = plan.parts
    return (
        {field: column[some] for field, column in columns.items()}
        for some in _by_part(assigned, plan.parts)
    )


def _cells(engine: Engine, plan: PartsPlan | OutputsPlan) -> Any:
    """The cells of a plan's columns, row by row in the order of the source, with whether the plan's
    filters keep it: an array, or one on disk.
    """
    fields = _fields(plan)
    gathered, lock, met = _GATHERED(engine.scale), threading.Lock(), Counter[int]()

    def add(_: object, number: int, batch: MemoryEngine) -> None:
        with batch.lock:
            rows = _read_of(batch, plan, fields)
        with lock:
            place = number, met[number]
            met[number] += 1
        gathered.add(place, rows)

    filtered = (key.column for key in plan.keys)
    engine.fold(tuple(dict.fromkeys((*plan.columns, *filtered))), lambda: None, add)
    if not met:
        add(None, 0, _NO_ROWS(engine))
    return gathered.rows()


def _read_of(
    batch: MemoryEngine, plan: PartsPlan | OutputsPlan, fields: dict[str, str]
) -> npt.NDArray[Any]:
    columns = {"kept": batch.cell_index(plan.keys) == 0}
    columns |= {field: _read(batch, name) for field, name in fields.items()}
    dtype = [(field, column.dtype) for field, column in columns.items()]
    rows = np.empty(batch.rows, dtype=dtype)
    for field, column in columns.items():
        rows[field] = column
    return rows


def _assigned(rows: MemoryEngine, parts: int, source: Source) -> npt.NDArray[np.int64]:
    """A part for each row that counts, drawn by the session's source without looking at cells but
    to tell which rows are one unit's.
    """
    if rows.neighbors.unit is not None:
        labels, seeds = rows.units()
        return np.asarray(independent_parts(source, len(seeds), parts)[rows.select(labels)])
    draw = balanced_parts if rows.neighbors.row_count_is_public else independent_parts
    return draw(source, rows.rows, parts)


def _read(rows: MemoryEngine, name: str) -> npt.NDArray[Any]:
    """A column as numbers: clamped ones, True and False, or codes of levels."""
    column = rows.schema[name]
    if isinstance(column, Category):
        return rows.level_codes(name)
    values = rows.values(name)
    return np.asarray(values == 1.0) if isinstance(column, Boolean) else values


def _given(column: Column, read: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column as a caller's test gets it: with declared levels, None where there is none."""
    if not isinstance(column, Category):
        return np.ascontiguousarray(read)
    return np.asarray(np.array([*column.levels, None], dtype=object)[read])


def rejections(plan: PartsPlan, parts: Iterable[list[npt.NDArray[Any]]]) -> int:
    """The number of parts whose p-value is a number of at most the plan's level.

    Every part gets arrays of its own. What the test prints or warns is dropped, and its failures
    count as no rejection: the outcome of a part depends on that part alone. There is no time limit,
    because a clock would let one part's rows decide another's outcome. The test runs in a thread of
    its own: an interrupt from the keyboard reaches the main thread, so that one in here is the
    test's own failure.
    """

    def count() -> int:
        return sum(_rejects(plan, columns) for columns in parts)

    with Secluded(), ThreadPoolExecutor(1, initializer=seclude_worker) as pool:
        return pool.submit(count).result()


def _rejects(plan: PartsPlan, columns: list[npt.NDArray[Any]]) -> bool:
    try:
        p = aside(lambda: float(plan.test(*columns)))
    except KeyboardInterrupt:
        return False
    return not isinstance(p, Failed) and math.isfinite(p) and p <= plan.level
