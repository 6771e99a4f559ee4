"""A caller's test, run on each of some random disjoint parts of the data."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.schema import Boolean, Category
from discreet.seclusion import Failed, Secluded, aside, seclude_worker
from discreet.specs.aggregation.part_outputs import OutputsPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.noise.assignment import balanced_parts, independent_parts
from discreet.trusted.noise.source import Source


def rejecting_parts(engine: Engine, plan: PartsPlan, source: Source) -> int:
    """In how many random parts of the rows a caller's test rejects."""
    return rejections(plan, *rows_of_parts(engine, plan, source))


def rows_of_parts(
    engine: Engine, plan: PartsPlan | OutputsPlan, source: Source
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[np.intp]]]:
    """The columns of a plan as a caller's function gets them, and the rows of each random part; a
    unit's rows are in one part.

    Files are read into memory, where the function runs.
    """
    rows = engine.whole()
    with rows.lock:
        assigned = _assigned(rows, plan.parts, source)
        columns = [_given(rows, name) for name in plan.columns]
        if plan.keys:
            assigned[rows.cell_index(plan.keys) != 0] = plan.parts
    order = np.argsort(assigned, kind="stable")
    ends = np.searchsorted(assigned[order], np.arange(plan.parts + 1))
    return columns, [order[low:high] for low, high in itertools.pairwise(ends)]


def _assigned(rows: MemoryEngine, parts: int, source: Source) -> npt.NDArray[np.int64]:
    """A part for each row that counts, drawn by the session's source without looking at cells but
    to tell which rows are one unit's.
    """
    if rows.neighbors.unit is not None:
        labels, seeds = rows.units()
        return np.asarray(independent_parts(source, len(seeds), parts)[rows.select(labels)])
    draw = balanced_parts if rows.neighbors.row_count_is_public else independent_parts
    return draw(source, rows.rows, parts)


def _given(rows: MemoryEngine, name: str) -> npt.NDArray[Any]:
    """A column as a caller's test gets it: clamped numbers, True and False,
    or declared levels (None where there is none).
    """
    column = rows.schema[name]
    if isinstance(column, Category):
        return np.asarray(np.array([*column.levels, None], dtype=object)[rows.level_codes(name)])
    values = rows.values(name)
    return np.asarray(values == 1.0) if isinstance(column, Boolean) else values


def rejections(
    plan: PartsPlan, columns: list[npt.NDArray[Any]], parts: list[npt.NDArray[np.intp]]
) -> int:
    """The number of parts whose p-value is a number of at most the plan's level.

    Every part gets copies of its own. What the test prints or warns is dropped, and its failures
    count as no rejection: the outcome of a part depends on that part alone. There is no time limit,
    because a clock would let one part's rows decide another's outcome. The test runs in a thread of
    its own: an interrupt from the keyboard reaches the main thread, so that one in here is the
    test's own failure.
    """

    def count() -> int:
        return sum(_rejects(plan, [column[rows] for column in columns]) for rows in parts)

    with Secluded(), ThreadPoolExecutor(1, initializer=seclude_worker) as pool:
        return pool.submit(count).result()


def _rejects(plan: PartsPlan, columns: list[npt.NDArray[Any]]) -> bool:
    try:
        p = aside(lambda: float(plan.test(*columns)))
    except KeyboardInterrupt:
        return False
    return not isinstance(p, Failed) and math.isfinite(p) and p <= plan.level
