"""X and y as columns, refused for their shapes and types alone; each cell is left as it is."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.exceptions import DataConversionWarning

from discreet.seclusion import Secluded


@dataclass(frozen=True, slots=True)
class Table:
    """X as columns: lists of cells, arrays or series, all of one length."""

    columns: list[Any]
    rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.columns)


def columns_of(X: Any, declared: int | None) -> tuple[list[Any], int]:  # noqa: N803
    """The columns of X and its number of rows."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [column.to_native() for column in frame.iter_columns()], len(frame)
    if is_list(X):
        with Secluded():
            rows = [_row(row) for row in X]
        return _columns_of_rows(rows, declared), len(rows)
    table = _array(X)
    if table.ndim != 2:
        raise _not_two_dimensional(table.ndim)
    return [table[:, place] for place in range(table.shape[1])], len(table)


def is_list(table: Any) -> bool:
    """Whether X or y is a list of rows or cells, which has no type and no shape of its own."""
    return (
        isinstance(table, Sequence)
        and not isinstance(table, (str, bytes, bytearray))
        and not hasattr(table, "__array__")
    )


def _columns_of_rows(rows: Sequence[Sequence[Any]], declared: int | None) -> list[Any]:
    """Rows as columns of cells: None where a row is short; what is beyond the width is left out."""
    lengths = Counter(map(len, rows))
    usual = min(
        (length for length, count in lengths.items() if count == max(lengths.values())), default=0
    )
    if usual == 0 and declared is None:
        raise _not_two_dimensional(1)
    width = usual if declared is None else declared
    return [[row[place] if place < len(row) else None for row in rows] for place in range(width)]


def _row(row: Any) -> Sequence[Any]:
    """The cells of one row; none where it is no row. It fails for nothing that a row can be."""
    try:
        if isinstance(row, np.ndarray):
            return tuple(row.tolist()) if row.ndim == 1 else ()
        if isinstance(row, (str, bytes, bytearray, Mapping, Set)) or not hasattr(
            type(row), "__len__"
        ):
            return ()
        return tuple(row)
    except Exception:
        return ()


def _array(values: Any) -> Any:
    """An array (or what can be one) as it is, dtype and mask kept; refused by its type alone."""
    if not (hasattr(values, "__array__") or isinstance(values, (np.generic, memoryview))):
        raise ValueError(f"Expected 2D array, got a {type(values).__name__} instead.")
    array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
    if np.iscomplexobj(array):
        raise ValueError("Complex data not supported.")
    return array


def _not_two_dimensional(dimensions: int) -> ValueError:
    return ValueError(
        f"Expected 2D array, got {dimensions}D array instead. Reshape your data using "
        "array.reshape(-1, 1) or array.reshape(1, -1)."
    )


def vector(y: Any, rows: int) -> Any:
    """y as one column (a list, an array or a series), refused for its shape or type alone."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    target: Any = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(target, nw.DataFrame):
        target = list(target.iter_columns())
        if len(target) != 1:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {(rows, len(target))} instead."
            )
        _warn_of_a_column()
        target = target[0]
    if isinstance(target, nw.Series):
        length, target = len(target), target.to_native()
    elif is_list(target):
        target = [_only(cell) for cell in target]
        length = len(target)
    else:
        target = _array(target)
        if target.ndim == 2 and target.shape[1] == 1:
            _warn_of_a_column()
            target = target[:, 0]
        if target.ndim != 1:
            raise ValueError(
                f"y should be a 1d array, got an array of shape {target.shape} instead."
            )
        length = len(target)
    if length != rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[rows, length]}"
        )
    return target


def _warn_of_a_column() -> None:
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected.",
        DataConversionWarning,
        stacklevel=4,
    )


def _only(cell: Any) -> Any:
    """The one cell of a row of one, as lists of columns have them; any other cell as it is."""
    one = (
        len(cell) == 1
        if type(cell) is list or type(cell) is tuple
        else type(cell) is np.ndarray and cell.shape == (1,)
    )
    return cell[0] if one else cell
