"""Cells of a Date or Datetime column as whole days or seconds since its first, each by itself.

    times            arrays of datetime64 of any unit, rounded down to whole seconds; NaT is missing
    texts, objects   ISO 8601 text, and dates and times of Python (`discreet.dates`), one by one
    anything else    missing: what a number would mean is not known

Whole numbers all the way: a count of any unit becomes seconds by one multiplication that cannot
overflow or one division, rounded down, and seconds become days by another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.dates import seconds_of, seconds_of_text
from discreet.schema import Date
from discreet.trusted.engines.cells import Cells

Seconds = npt.NDArray[np.int64]
NOT_A_TIME = np.iinfo(np.int64).min
FARTHEST = 1 << 60  # seconds from 1970: beyond every declared range
MULTIPLES = {"W": 7 * 86_400, "D": 86_400, "h": 3600, "m": 60, "s": 1}  # seconds
PARTS = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}


def date_cells(cells: Cells, column: Date) -> Cells:
    """Numbers of a column, missing where a cell is no date or time."""
    if cells.kind == "time":
        seconds, missing = seconds_of_times(cells.values)
        if cells.missing is not None:
            missing |= cells.missing
    elif cells.kind == "text":
        labels, texts = cells.values.labelled()
        each, gone = _known([None if text is None else seconds_of_text(text) for text in texts])
        seconds, missing = np.append(each, 0)[labels], np.append(gone, True)[labels]
    elif cells.kind == "objects":
        seconds, missing = _known([_object_seconds(cell) for cell in cells.values])
    else:
        return Cells("nothing", None, None, cells.length)
    numbers = (seconds - column.moment(column.origin)) // column.seconds
    return Cells("number", numbers, missing, cells.length)


def seconds_of_times(times: npt.NDArray[Any]) -> tuple[Seconds, npt.NDArray[np.bool_]]:
    """Whole seconds since 1970 of datetime64, rounded down, and which are none."""
    unit, step = np.datetime_data(times.dtype)
    if unit in ("Y", "M") and step == 1:
        near = np.clip(times.astype(np.int64), -(10**6), 10**6)
        days = near.astype(f"datetime64[{unit}]").astype("datetime64[D]")
        return seconds_of_times(days)[0], np.isnat(times)
    if step != 1 or unit not in (*MULTIPLES, *PARTS):
        return np.zeros(len(times), dtype=np.int64), np.ones(len(times), dtype=bool)
    counts = times.astype(np.int64)
    missing = counts == NOT_A_TIME
    if unit in PARTS:
        return counts // PARTS[unit], missing
    farthest = FARTHEST // MULTIPLES[unit]
    return np.clip(counts, -farthest, farthest) * MULTIPLES[unit], missing


def _object_seconds(cell: Any) -> int | None:
    """The seconds of one value, that of a numpy scalar too."""
    if not issubclass(type(cell), np.datetime64):
        return seconds_of(cell)
    try:
        seconds, missing = seconds_of_times(np.array([cell]))
        return None if missing[0] else int(seconds[0])
    except Exception:  # decided by this value alone
        return None


def _known(each: list[int | None]) -> tuple[Seconds, npt.NDArray[np.bool_]]:
    missing = np.array([seconds is None for seconds in each], dtype=bool)
    return np.array([seconds or 0 for seconds in each], dtype=np.int64), missing
