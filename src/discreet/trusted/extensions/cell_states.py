"""What the cells of columns hold: the counts that `specs/queries/cell_states.py` defines, over any
engine, and for the holder's own eyes some of the cells themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from discreet.errors import questions
from discreet.plain.kinds import kind_name
from discreet.schema import Boolean, Category, Date, Open
from discreet.specs.queries.cell_states import STATES, StatesPlan
from discreet.trusted.engines.bounding import Content, kept_rows
from discreet.trusted.engines.cells import Cells, boolean_codes, category_codes, numbers
from discreet.trusted.engines.columns import python_objects
from discreet.trusted.engines.engine import Engine, needed_columns
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.extensions.date_cells import date_cells

MISSING, UNREADABLE, OUTSIDE = range(len(STATES))
FINE = -1


def state_counts(engine: Engine, plan: StatesPlan) -> npt.NDArray[np.object_]:
    """The rows that count, then the cells of each column in each state."""

    def add(total: npt.NDArray[np.object_], _: int, batch: MemoryEngine) -> None:
        with batch.lock:
            found = [cell_states(batch, name) for name in plan.columns]
            kept = kept_by_state(batch, found)
            total[0] += batch.rows if kept is None else len(kept)
            for place, states in enumerate(found):
                counted = states if kept is None else states[kept]
                for state in range(len(STATES)):
                    total[1 + len(STATES) * place + state] += int((counted == state).sum())

    size = 1 + len(STATES) * len(plan.columns)
    names = (
        needed_columns(engine.schema, engine.neighbors) if engine.neighbors.unit else plan.columns
    )
    totals = engine.fold(names, lambda: np.zeros(size, dtype=object), add, bounded=False)
    return np.asarray(np.sum(totals, axis=0), dtype=object)


def kept_by_state(
    batch: MemoryEngine, found: Sequence[npt.NDArray[np.int8]]
) -> npt.NDArray[np.int64] | None:
    """The rows of each unit that count; None: all rows.

    Theorem.  Which states are counted of a unit depends on that unit's rows alone.
    Proof.    Values do not tell states: 11 in a range that ends at 10 is 10 there. With the states
              beside the values, rows that tie are equal in all that is counted (bounding.py).
    Checked.  tests/claims/test_cell_states.py::test_rows_that_tie_are_kept_by_their_own_unit_alone
    """
    if batch.neighbors.unit is None:
        return None
    contents = [batch.content(name) for name in sorted(batch.schema)]
    contents += [Content(states, states.astype(np.int64) + 1) for states in found]
    return kept_rows(*batch.units(), contents, batch.neighbors.rows)


def cell_states(batch: MemoryEngine, name: str) -> npt.NDArray[np.int8]:
    """The state of every cell, −1 where it holds a value in range; each follows from that cell and
    the type of its column alone.
    """
    cells, column = batch.cells(name, dated=False), batch.schema[name]
    empty, outside = empty_cells(cells), np.zeros(cells.length, dtype=bool)
    if isinstance(column, Open):
        from discreet.trusted.extensions.open_keys.labels import ordered_labels

        known = ordered_labels(cells)[0] >= 0
    elif isinstance(column, Boolean):
        known = boolean_codes(cells, Boolean()) >= 0
    elif isinstance(column, Category):
        known = category_codes(cells, Category(column.levels)) >= 0
    else:
        read = numbers(date_cells(cells, column) if isinstance(column, Date) else cells)
        known = ~np.isnan(read)
        with np.errstate(invalid="ignore"):
            outside = (read < column.low) | (read > column.high)
    states = np.select([outside, known, empty], [OUTSIDE, FINE, MISSING], UNREADABLE)
    return states.astype(np.int8)


def empty_cells(cells: Cells) -> npt.NDArray[np.bool_]:
    """Whether a cell holds nothing: a null, NaN, None, NaT, pandas' NA, blank text."""
    if cells.kind in ("number", "boolean", "time", "nothing"):
        is_none = {"f": np.isnan, "M": np.isnat}.get(np.asarray(cells.values).dtype.kind)
        empty = np.zeros(cells.length, dtype=bool) if is_none is None else is_none(cells.values)
        return empty if cells.missing is None else empty | cells.missing
    return np.fromiter(map(is_empty, cells.values), dtype=bool, count=cells.length)


def is_empty(cell: Any) -> bool:
    """`empty_cells` of one Python value; its own methods are not asked."""
    kind = type(cell)
    if issubclass(kind, str):
        return not str.strip(str.__str__(cell))
    if issubclass(kind, float):
        return math.isnan(float.__float__(cell))
    if issubclass(kind, Decimal):
        return Decimal.is_nan(cell)
    if issubclass(kind, (np.floating, np.datetime64)):
        item = np.generic.item(cell)
        return item is None or bool(item != item)
    return cell is None or kind_name(cell) in ("NAType", "NaTType")


def shown_cells(
    engine: Engine, plan: StatesPlan, most: int
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """(column, state, some different cells in it), for the holder's eyes alone: exact contents."""
    found: dict[tuple[str, int], dict[str, None]] = {}

    def add(_: object, __: int, batch: MemoryEngine) -> None:
        with batch.lock:
            for name in plan.columns:
                states = batch.select(cell_states(batch, name))
                cells = batch.cells(name, dated=False)
                held = cells.values if cells.kind == "time" else python_objects(cells)
                objects = batch.select(np.array([*held, None], dtype=object)[:-1])
                for state in (UNREADABLE, OUTSIDE):
                    some = found.setdefault((name, state), {})
                    for cell in objects[states == state][: 100 * most]:
                        if len(some) < most:
                            some.setdefault(_shown(cell), None)

    engine.fold(plan.columns, lambda: None, add)
    for (name, state), some in found.items():
        yield name, state, tuple(some)


def _shown(cell: Any) -> str:
    try:
        return repr(cell)[:60]
    except Exception:
        return f"a {type(cell).__name__}"


class Check:
    """Exact shares of cells that hold no value, for the holder's own eyes: NOT PRIVATE.

    It prints and renders, and has no other way out: no pickle, no copy, no JSON.
    """

    __slots__ = ("_rows", "_table")

    def __init__(self, rows: int, table: tuple[tuple[str, str, int, tuple[str, ...]], ...]) -> None:
        self._rows, self._table = rows, table

    def __str__(self) -> str:
        lines = [
            "NOT PRIVATE: exact counts and contents, for the holder of the data alone.",
            "Do not publish them, and do not choose bounds, levels or questions by them: what is "
            "chosen by the data tells about the data. dp.missing gives private shares.",
            f"{self._rows} rows count.",
        ]
        for name, state, count, examples in self._table:
            if count:
                share = 100 * count / max(self._rows, 1)
                some = f": {', '.join(examples)}" if examples else ""
                lines.append(f"  {name}: {count} {state} ({share:.3g} %){some}")
        return "\n".join(lines if len(lines) > 3 else [*lines, "  Every cell holds a value."])

    __repr__ = __str__

    def __reduce__(self) -> NoReturn:
        raise questions.not_copied("check of the data")


def checked(engine: Engine, names: tuple[str, ...], examples: int) -> Check:
    """All states of all columns, exactly."""
    plan = StatesPlan(names)
    counts = [int(value) for value in state_counts(engine, plan)]
    some = {(name, state): cells for name, state, cells in shown_cells(engine, plan, examples)}
    table = tuple(
        (
            name,
            "undeclared" if state == UNREADABLE and isinstance(column, Category) else STATES[state],
            counts[1 + len(STATES) * place + state],
            some.get((name, state), ()),
        )
        for place, (name, column) in enumerate((name, engine.schema[name]) for name in names)
        for state in range(len(STATES))
    )
    return Check(counts[0], table)
