"""Columns in memory as cells: lists, numpy arrays, and columns of pandas, polars and pyarrow.

What a column is follows from its type alone, never from what a cell holds.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.trusted.engines.cells import Cells, PlainTexts, Texts

TIMES = (nw.Date, nw.Datetime)
NOT_NUMBERS = (*TIMES, nw.Duration, nw.Time, nw.List, nw.Array, nw.Struct, nw.Binary)


def cells_of(column: Any) -> Cells:
    """Cells of a list or tuple, a one-dimensional array, or a column of a frame."""
    if isinstance(column, (list, tuple)):
        return cells_from_sequence(column)
    return (
        cells_from_array(column)
        if isinstance(column, np.ndarray)
        else cells_from_series(nw.from_native(column, series_only=True))
    )


def cells_from_array(array: npt.NDArray[Any]) -> Cells:
    """Cells of a one-dimensional numpy array (masked cells are missing)."""
    plain = np.asarray(array)
    if plain.dtype.kind not in "iufbOUTM":  # before its mask is read: records have masks of records
        return Cells("nothing", None, None, len(plain))
    missing = (
        np.ma.getmaskarray(array).copy()
        if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array)
        else None
    )
    if plain.dtype.kind in "iuf":
        return Cells("number", plain, missing, len(plain))
    if plain.dtype.kind in "bM":
        kind: Literal["boolean", "time"] = "boolean" if plain.dtype.kind == "b" else "time"
        return Cells(kind, plain, missing, len(plain))
    listed = _listed(plain)
    return Cells(
        "objects",
        listed
        if missing is None
        else [None if gone else cell for cell, gone in zip(listed, missing, strict=True)],
        None,
        len(plain),
    )


def _listed(array: npt.NDArray[Any]) -> list[Any]:
    """An array as a list of its cells; one that is no Python value (a code point beyond Unicode) is
    missing, alone.
    """
    try:
        return list(array.tolist())
    except Exception:
        return [
            _or_missing(lambda row=row: array[row : row + 1].tolist()[0])
            for row in range(len(array))
        ]


def _or_missing(read: Any) -> Any:
    try:
        return read()
    except KeyboardInterrupt:
        raise
    except BaseException:  # some libraries panic outside of Exception
        return None


def cells_from_sequence(cells: Sequence[Any]) -> Cells:
    """Cells of a list or tuple: each is read by its own type."""
    return Cells("objects", cells, None, len(cells))


def cells_from_series(series: nw.Series[Any]) -> Cells:
    """Cells of a pandas, polars or pyarrow column."""
    length = len(series)
    if series.implementation.is_pyarrow():
        cells: Cells = _arrow().cells_from_arrow(series.to_native())
        return cells
    # by its first cells narwhals would call it text, or not
    native = getattr(series.to_native(), "dtype", "")
    if str(native) == "object":
        return Cells("objects", _python_cells(series), None, length)
    dtype = series.dtype
    if isinstance(dtype, TIMES) and hasattr(native, "pyarrow_dtype"):  # Python has not all dates
        cells = _arrow().cells_from_arrow(series.to_arrow())
        return cells
    if isinstance(dtype, TIMES):
        return _times(series, dtype)
    if isinstance(dtype, NOT_NUMBERS):
        return Cells("nothing", None, None, length)
    if dtype in (nw.Float32, nw.Float64):
        gone = series.is_null().to_numpy()
        values = series.fill_null(0.0).to_numpy() if gone.any() else series.to_numpy()
        return Cells("number", np.asarray(values, dtype=np.float64), _mask(gone), length)
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        gone = series.is_null().to_numpy()
        values = series.fill_null(0).to_numpy() if gone.any() else series.to_numpy()
        return Cells("number", np.asarray(values), _mask(gone), length)
    if dtype == nw.Boolean:
        gone = series.is_null().to_numpy()
        values = series.fill_null(False).to_numpy() if gone.any() else series.to_numpy()
        return Cells("boolean", np.asarray(values, dtype=bool), _mask(gone), length)
    if dtype == nw.String:
        return Cells("text", _texts(series), None, length)
    return Cells("objects", _python_cells(series), None, length)


def _times(series: nw.Series[Any], dtype: Any) -> Cells:
    """A column of dates or moments, in UTC where it has a zone."""
    if getattr(dtype, "time_zone", None) is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    values = series.to_numpy()
    if values.dtype.kind == "M":
        return Cells("time", values, None, len(series))
    return Cells("objects", _python_cells(series), None, len(series))


def _texts(series: nw.Series[Any]) -> Texts:
    """A text column through Arrow, or one by one where Arrow is not there or cannot hold a cell:
    the same texts.
    """
    try:
        texts: Texts = _arrow().cells_from_arrow(series.to_arrow()).values
        return texts
    except Exception:
        return PlainTexts(_python_cells(series))


def _arrow() -> Any:
    return importlib.import_module("discreet.trusted.engines.arrow_cells")  # pyarrow is optional


def _mask(gone: Any) -> npt.NDArray[np.bool_] | None:
    mask = np.asarray(gone, dtype=bool)
    return mask if mask.any() else None


def _python_cells(series: nw.Series[Any]) -> list[Any]:
    listed = _or_missing(lambda: list(series.to_list()))
    if listed is not None:
        return list(listed)
    # a date that Python has not, say: missing, alone
    return [_or_missing(lambda row=row: series.item(row)) for row in range(len(series))]


def python_objects(cells: Cells) -> list[Any]:
    """Each cell as a Python value, None where it is missing or nothing."""
    if cells.kind in ("nothing", "time"):
        return [None] * cells.length
    listed = cells.values.tolist() if cells.kind in ("number", "boolean") else list(cells.values)
    return (
        listed
        if cells.missing is None
        else [None if gone else cell for cell, gone in zip(listed, cells.missing, strict=True)]
    )
