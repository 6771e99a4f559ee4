"""Drawn rows as a data frame whose columns have the types of the declared ones: whole numbers,
truth values, dates and moments, numbers, levels.

    declared               pandas                           polars    pyarrow
    Integer, whole levels  int64; float64 if a value lacks  Int64     int64
    Boolean, truth levels  bool; object if a value lacks    Boolean   bool
    Date                   datetime64                       Date      date32
    Datetime               datetime64                       Datetime  timestamp
    Real                   float64                          Float64   double
    other levels           as pandas holds text             String    string

pandas' own types for lacking values (Int64, boolean) are left out: software for formulas does not
read them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.inference.results.results import _frame
from discreet.inference.synthesis.domain import Domain
from discreet.schema import Boolean, Category, Column, Date, Datetime, Integer, level_text

NUMBER, WHOLE, TRUTH, DAY, MOMENT, TEXT = "number", "whole", "truth", "day", "moment", "text"


def typed_frame(domain: Domain, columns: dict[str, list[Any]], backend: str) -> Any:
    """The columns, as `columns_of` gives them, as a frame of a library."""
    _frame({}, backend)  # refuses what is no such library, or not there
    make = {"pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}[backend]
    return _frame(
        {cut.name: make(_plain(cut.column, columns[cut.name])) for cut in domain.cuts}, backend
    )


def kind_of(column: Column) -> str:
    """What the values of a column are."""
    if isinstance(column, Date):
        return MOMENT if isinstance(column, Datetime) else DAY
    if isinstance(column, Boolean):
        return TRUTH
    if isinstance(column, Category):
        kinds = {type(level) for level in column.levels}
        return TRUTH if kinds == {bool} else WHOLE if kinds == {int} else TEXT
    return WHOLE if isinstance(column, Integer) else NUMBER


def _plain(column: Column, values: list[Any]) -> tuple[str, Any]:
    """The kind of a column and its values: times as datetime64, levels of mixed types as text."""
    kind = kind_of(column)
    if kind in (DAY, MOMENT):
        texts = ["NaT" if value is None else value for value in values]
        return kind, np.array(texts, dtype="datetime64[us]")
    if kind == TEXT:
        return kind, [None if value is None else level_text(value) for value in values]
    return kind, values


def _pandas(given: tuple[str, Any]) -> Any:
    import pandas

    kind, values = given
    if kind in (DAY, MOMENT):
        return pandas.Series(values)
    if kind == TEXT:
        return pandas.Series(values, dtype=None if any(values) else "object")
    lacks = None in values
    types = {NUMBER: "float64", WHOLE: "float64" if lacks else "int64"}
    return pandas.Series(values, dtype=types.get(kind, "object" if lacks else "bool"))


def _polars(given: tuple[str, Any]) -> Any:
    import polars

    kind, values = given
    types = {
        NUMBER: polars.Float64,
        WHOLE: polars.Int64,
        TRUTH: polars.Boolean,
        TEXT: polars.String,
        DAY: polars.Date,
        MOMENT: polars.Datetime("us"),
    }
    if kind in (DAY, MOMENT):
        return polars.Series(values).cast(types[kind])
    return polars.Series(values, dtype=types[kind])


def _pyarrow(given: tuple[str, Any]) -> Any:
    import pyarrow

    kind, values = given
    types = {
        NUMBER: pyarrow.float64(),
        WHOLE: pyarrow.int64(),
        TRUTH: pyarrow.bool_(),
        TEXT: pyarrow.string(),
        DAY: pyarrow.date32(),
        MOMENT: pyarrow.timestamp("us"),
    }
    if kind in (DAY, MOMENT):
        return pyarrow.array(values).cast(types[kind])
    return pyarrow.array(values, type=types[kind])
