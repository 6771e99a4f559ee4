"""When an answer may leave: a time that is computed from public facts when a question is admitted.

A question's public cost grows with the declared `rows_at_most`, the columns that it reads and the
numbers that it gives; its answer leaves at the next multiple of the tick. One that is late leaves
at a later slot, each twice as far from the admission as the one before, so that the time at which
it leaves tells next to nothing of the time it took.
"""

from __future__ import annotations

import math
from typing import Any

from discreet.specs.statistics import COUNTED_CELLS

SECONDS_A_CELL = 2e-8  # of one column in one row
SECONDS_A_NUMBER = 1e-6
LEAST_SLOT = 0.05


def public_cost(question: Any, rows_at_most: int) -> float:
    """Seconds that a question may take, by public facts."""
    columns = max(1, len(question.query.plan().columns))
    size = int(question.query.size)
    if size > COUNTED_CELLS:  # of a fine grid the values that are there are counted
        size = min(size, 2 * rows_at_most)
    return SECONDS_A_CELL * columns * rows_at_most + SECONDS_A_NUMBER * size


def ready_at(admitted: float, cost: float, tick: float) -> float:
    """When the answer may leave first; at once where there are no ticks."""
    if tick <= 0:
        return admitted
    return math.ceil((admitted + cost) / tick) * tick


def slot_after(admitted: float, ready: float, moment: float, tick: float) -> float:
    """The first slot that is not before a moment; the moment itself where there are no ticks."""
    if tick <= 0 or moment <= ready:
        return max(ready, moment) if tick <= 0 else ready
    length = max(ready - admitted, tick, LEAST_SLOT)
    slot = length
    while admitted + slot < moment:
        slot *= 2
    return admitted + slot
