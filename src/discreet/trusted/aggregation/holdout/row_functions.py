"""A caller's function, called on one row at a time.

Theorem.  The sum is one of terms from 0 to 2^bits, each a function of its row alone, whatever the
          function does; nothing that it raises is seen.
Proof.    What is called is a copy that keeps nothing (specs/holdout/pure_functions.py), made here
          from the function as it is now, on a mapping made for the row out of its own cells; its
          value is read by `_steps`, to which every outcome is a number of that range.
Checked.  tests/claims/test_row_functions.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from discreet.schema import Boolean, Category, Integer
from discreet.specs.holdout.pure_functions import Function, pure_copy
from discreet.specs.holdout.surprises import RowsPlan
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.memory import MemoryEngine


def row_sums(engine: Engine, plan: RowsPlan) -> tuple[int, int]:
    """Σ of the function's values in steps, and the number of rows."""
    function = pure_copy(plan.function)

    def add(state: list[int], number: int, batch: MemoryEngine) -> None:
        with batch.lock:
            columns = [list(_cells(batch, name)) for name in plan.columns]
        for cells in zip(*columns, strict=True):
            row = dict(zip(plan.columns, cells, strict=True))
            state[0] += _steps(function, row, plan.bits)
            state[1] += 1

    states = engine.fold(plan.columns, lambda: [0, 0], add)
    return sum(total for total, _ in states), sum(rows for _, rows in states)


def _steps(function: Function, row: dict[str, Any], bits: int) -> int:
    """⌊2^bits·clip(f(row), 0, 1)⌋; 0 where it fails, or gives another type or NaN."""
    try:
        value = function(row)
    except Exception:
        return 0
    if type(value) not in (int, float, bool) or value != value:
        return 0
    return int(min(max(value, 0), 1) * (1 << bits))  # a product with a power of two is exact


def _cells(rows: MemoryEngine, name: str) -> Iterator[Any]:
    """A column as plain values: clamped numbers, True and False, or declared levels; None where a
    cell has none of these.
    """
    column = rows.schema[name]
    if isinstance(column, (Category, Boolean)):
        levels = (False, True) if isinstance(column, Boolean) else column.levels
        return (None if code < 0 else levels[code] for code in rows.level_codes(name).tolist())
    number: Callable[[float], float] = int if isinstance(column, Integer) else float
    return (None if value != value else number(value) for value in rows.values(name).tolist())
