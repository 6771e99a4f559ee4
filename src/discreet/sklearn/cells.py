"""Each cell read for itself: as a number, within its bounds, or equal to a label."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.seclusion import Secluded
from discreet.sklearn.tables import Table
from discreet.trusted.engines.cells import numbers
from discreet.trusted.engines.columns import cells_of, python_objects

Floats = np.ndarray[Any, np.dtype[np.float64]]


def numbers_of(column: Any) -> Floats:
    """Every cell of a column as a float, NaN where it is no number: the rule of a fit.

    Checked.  tests/claims/test_rows_alone.py::test_lists_are_read_as_the_fit_reads_them
    """
    return numbers(cells_of(column))


def clamped(column: Any, low: float, high: float) -> Floats:
    """Numbers within their bounds; what is no number is the middle."""
    numbers = numbers_of(column)
    return np.asarray(np.clip(np.where(np.isnan(numbers), (low + high) / 2, numbers), low, high))


def bounded(table: Table, schema: dict[str, Any]) -> list[Floats]:
    """The columns of X within their bounds, as the fit read them."""
    return [
        clamped(column, declared.low, declared.high)
        for column, declared in zip(table.columns, schema.values(), strict=False)
    ]


def equal_to(column: Any, label: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which cells equal a label, each compared for itself.

    What cannot be compared, or gives no single answer, is not equal.
    """
    wanted = label.item() if isinstance(label, np.generic) else label
    kinds = "U" if isinstance(wanted, str) else "iufb" if isinstance(wanted, (int, float)) else ""
    if isinstance(column, np.ndarray) and column.dtype.kind in kinds:
        with np.errstate(all="ignore"):
            same = (np.ma.getdata(column) == wanted) & ~np.ma.getmaskarray(column)
        return np.asarray(same, dtype=np.bool_)
    with Secluded():
        cells = _objects(column)
        return np.fromiter((_is(cell, wanted) for cell in cells), dtype=np.bool_, count=len(cells))


def _objects(column: Any) -> list[Any]:
    """The cells of a column as Python objects, each as a fit reads it."""
    return python_objects(cells_of(column))


def _is(cell: Any, label: Any) -> bool:
    try:
        same = cell == label
    except Exception:
        return False
    return (type(same) is bool or type(same) is np.bool_) and bool(same)
