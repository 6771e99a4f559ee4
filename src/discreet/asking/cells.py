"""From what a caller writes (``by=``, ``where=``, ``bins=``) to keys,
labels and whether a row may fall in no cell.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.dates import CYCLES, PERIODS, cuts, cycle
from discreet.errors import InvalidParameter, shown
from discreet.exact import rational
from discreet.schema import Boolean, Category, Date, Integer, Open, Schema, level_text
from discreet.specs.queries.keys import (
    Between,
    Bins,
    Cycle,
    Held,
    Key,
    Levels,
    Subset,
    cell_count,
    may_leave_out,
)

By = str | Sequence[str | Mapping[str, object]] | Mapping[str, object]
Where = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Cells:
    """Keys with their labels; `optional` says that a row may fall in no cell."""

    keys: tuple[Key, ...] = ()
    by: tuple[str, ...] = ()
    labels: tuple[tuple[str, ...], ...] = ()
    optional: bool = False
    where: str = ""

    @property
    def count(self) -> int:
        return cell_count(self.keys)

    def joined(self, other: Cells) -> Cells:
        return Cells(
            self.keys + other.keys,
            self.by + other.by,
            self.labels + other.labels,
            self.optional or other.optional,
            self.where or other.where,
        )


def cells_by(schema: Schema, by: By, called: str = "by") -> Cells:
    """Cells of declared levels (a column name) or of declared bins (a mapping from column to edges
    or number of bins, or to a word of the calendar: {'visit': 'month'}), or of a list of both;
    `called` is the parameter's name in refusals.
    """
    cells = Cells()
    for name, bins in wanted_by(schema, by, called):
        cells = cells.joined(
            level_cells(schema, name, called) if bins is None else bin_cells(schema, name, bins)
        )
    cell_count(cells.keys)
    return cells


def wanted_by(schema: Schema, by: By, called: str = "by") -> list[tuple[str, object]]:
    """The columns of `by`, each with its bins or None; refuses what is not declared."""
    if isinstance(by, str):
        by = [by]
    if isinstance(by, Mapping):
        wanted: list[tuple[str, object]] = list(by.items())
    elif isinstance(by, Iterable):
        wanted = [
            pair
            for one in by
            for pair in (one.items() if isinstance(one, Mapping) else [(one, None)])
        ]
    else:
        raise InvalidParameter(
            f"{called}=",
            f"a {type(by).__name__} is not a column name",
            "cells are declared, never learnt from the data",
            "pass a column name, a list of them, or a mapping such as {'age': [18, 40, 65, 90]}",
        )
    for name, _ in wanted:
        schema[name]  # refuses what is not declared, or no name at all
    if not wanted or len({name for name, _ in wanted}) != len(wanted):
        raise InvalidParameter(
            f"{called}=",
            "no column, or one column twice",
            "cells are the combinations of different columns",
            "name each column once",
        )
    return wanted


def level_cells(schema: Schema, name: str, called: str = "by") -> Cells:
    """One cell for each declared level of a Category or Boolean column."""
    column = schema[name]
    if isinstance(column, Boolean):
        return Cells((Levels(name, 2),), (name,), (("False", "True"),), column.missing is None)
    if isinstance(column, Category):
        labels = tuple(str(level) for level in column.levels)
        return Cells((Levels(name, len(labels)),), (name,), (labels,), column.missing is None)
    if isinstance(column, Open):
        raise _open_column(f"cells of {name!r}")
    if isinstance(column, Date):
        raise InvalidParameter(
            f"{called}={name!r}",
            f"it is a {type(column).__name__} column without a period",
            "group keys must be declared: the periods of its public range are",
            f"pass {called}={{{name!r}: 'month'}} (or {_words(column)})",
        )
    raise InvalidParameter(
        f"{called}={name!r}",
        "it is a number column without declared bins",
        "group keys must be declared: undeclared ones would show who is in the data (thresholding "
        "needs a delta)",
        f"pass {called}={{{name!r}: [edge, edge, …]}}, or declare it as dp.Category(levels)",
    )


def bin_cells(schema: Schema, name: str, bins: object) -> Cells:
    """Bins of a number column: a number of equal ones over the declared range,
    or increasing edges.
    """
    column = schema[name]
    if isinstance(column, Open):
        raise _open_column(f"bins of {name!r}")
    if isinstance(column, (Category, Boolean)):
        raise InvalidParameter(
            f"bins of {name!r}",
            f"it is declared as {type(column).__name__}",
            "its declared levels are its cells",
            "leave bins out",
        )
    if isinstance(bins, str):
        return calendar_cells(name, column, bins)
    if (
        isinstance(bins, bool)
        or not isinstance(bins, (int, Sequence, np.ndarray))
        or (isinstance(bins, np.ndarray) and bins.ndim != 1)
    ):
        raise InvalidParameter(
            "bins",
            f"a {type(bins).__name__} is neither a number of bins nor a list of edges",
            "each bin is one noisy count",
            "pass for example bins=20 or bins=[0, 10, 20]",
        )
    edges = (
        _equal_edges(column, bins)
        if isinstance(bins, int)
        else tuple(_number(column, edge, "bin edge") for edge in list(bins))
    )
    key = Bins(name, edges)
    whole = isinstance(column, Integer) and all(edge == int(edge) for edge in edges)
    labels = tuple(
        _date_label(column, low, high, high == edges[-1])
        if isinstance(column, Date)
        else _bin_label(low, high, whole, high == edges[-1])
        for low, high in itertools.pairwise(edges)
    )
    return Cells((key,), (name,), (labels,), may_leave_out(key, schema))


def origin_of(schema: Schema, column: str | None) -> str:
    """The date or time from which the numbers of a Date column count; nothing for others."""
    declared = None if column is None else schema[column]
    return declared.origin or "" if isinstance(declared, Date) else ""


def calendar_cells(name: str, column: object, word: str) -> Cells:
    """The years, quarters, months or days of a Date column's public range, or its weekdays or
    hours, each of which every row has one.
    """
    if not isinstance(column, Date) or word not in _words(column).split(", "):
        raise InvalidParameter(
            f"{{{name!r}: {shown(word)}}}",
            f"it is declared as {type(column).__name__}"
            + (f", which has {_words(column)}" if isinstance(column, Date) else ""),
            "periods and cycles are those of a declared range of dates, or of times for hours",
            "declare it as dp.Date(first, last) or dp.Datetime(first, last), or name bins",
        )
    low = column.moment(column.origin)
    if word in CYCLES:
        shift, step, labels = cycle(word, low, column.seconds)  # type: ignore[arg-type]
        turn = Cycle(name, len(labels), step, shift)
        return Cells((turn,), (name,), (labels,), column.missing is None)
    found = cuts(word, low, low + column.high * column.seconds)  # type: ignore[arg-type]
    starts = [float((begin - low) // column.seconds) for begin, _ in found]
    key = Bins(name, (*starts, float(column.high + 1)))
    labels = tuple(label for _, label in found)
    return Cells((key,), (name,), (labels,), column.missing is None)


def _words(column: Date) -> str:
    """What a column of dates can be cut by."""
    cycles = [word for word in CYCLES if word != "hour" or column.seconds <= 3600]
    return ", ".join((*PERIODS, *cycles))


def _number(column: object, given: object, asked: str) -> float:
    """A caller's bound in the units of a column: dates of a Date column as whole numbers."""
    if isinstance(column, Date):
        return float(column.number(given))
    return float(rational(given, asked))


def _date_label(column: Date, low: float, high: float, last: bool) -> str:
    first, end = column.text(low), column.text(high if last else high - 1)
    return first if first == end else f"{first}–{end}"


def _equal_edges(column: object, bins: int) -> tuple[float, ...]:
    low, high = column.low, column.high  # type: ignore[attr-defined]
    if not 1 <= bins <= 4096:
        raise InvalidParameter(
            "bins", f"{shown(bins)} bins", "each bin is one noisy count", "use 1 to 4096 bins"
        )
    edges = np.linspace(low, high, bins + 1)
    if isinstance(column, Date):  # whole days or seconds, some bins fewer where the range is short
        edges = np.unique(np.floor(edges))
    return tuple(float(edge) for edge in edges)


def _bin_label(low: float, high: float, whole: bool, last: bool) -> str:
    if whole:
        top = int(high) if last else int(high) - 1
        return f"{int(low)}" if top == int(low) else f"{int(low)}–{top}"
    return f"[{low:g}, {high:g}{']' if last else ')'}"


def rows_asked(schema: Schema, where: Where | None, *reads: str) -> Cells:
    """The single cell of the rows that a question is about: those that a filter keeps and that hold
    a value in every column of `reads` (where `missing=` fills in, every row does).
    """
    for name in reads:
        schema[name]  # refuses what is not declared, or no name at all
    keys = [Held(name) for name in dict.fromkeys(reads)]
    held = tuple(key for key in keys if may_leave_out(key, schema))
    return cells_where(schema, where).joined(Cells(held, optional=bool(held)))


def cells_where(schema: Schema, where: Where | None) -> Cells:
    """The single cell of a filter: levels for a Category or Boolean column,
    (low, high) for a number column; an end that is None or infinite is the declared one.
    """
    if where is None:
        return Cells()
    if not isinstance(where, Mapping) or not where:
        raise InvalidParameter(
            "where=",
            "not a mapping from columns to conditions",
            "a filter is part of the question and is declared with it",
            "pass for example where={'region': 'N', 'age': (18, 30)}",
        )
    keys: list[Key] = []
    texts: list[str] = []
    for name, condition in where.items():
        column = schema[name]
        if isinstance(column, Open):
            raise _open_column(f"where={{{name!r}: …}}")
        if isinstance(column, (Category, Boolean)):
            wanted = list(condition) if isinstance(condition, (list, tuple, set)) else [condition]
            keys.append(Subset(name, tuple(sorted({_code(column, level) for level in wanted}))))
            texts.append(f"{name} is {' or '.join(str(level) for level in wanted)}")
        else:
            low, high = _range(name, column, condition)
            keys.append(Between(name, low, high))
            first, last = list(condition)  # type: ignore[call-overload]
            ends = _end_text(column, first, low), _end_text(column, last, high)
            texts.append(f"{ends[0]} ≤ {name} ≤ {ends[1]}")
    return Cells(tuple(keys), (), (), True, " and ".join(texts))


def _open_column(asked: str) -> InvalidParameter:
    return InvalidParameter(
        asked,
        "the column is declared as Open",
        "nobody has listed its values: it has neither levels nor a range, and a table can be "
        "grouped by it, with a delta, and nothing else",
        "use dp.table(session, by=…, spend=…, delta=…), or declare the column as "
        "dp.Category(levels)",
    )


def _code(column: Category | Boolean, level: object) -> int:
    if isinstance(column, Category):
        return column.index(level)
    if isinstance(level, bool):
        return int(level)
    raise InvalidParameter(
        "where=",
        f"{level_text(str(level))!r} is neither True nor False",
        "the column is Boolean",
        "use True or False",
    )


def _range(name: str, column: object, condition: object) -> tuple[float, float]:
    if not isinstance(condition, (tuple, list)) or len(condition) != 2:
        raise InvalidParameter(
            f"where={{{name!r}: …}}",
            "a number column needs a pair (low, high)",
            "the filter keeps rows between the two, both included",
            f"pass where={{{name!r}: (low, high)}}",
        )
    low, high = (_end(column, end) for end in condition)
    if low is None and high is None:
        raise InvalidParameter(
            f"where={{{name!r}: …}}",
            "both ends are open",
            "every row that holds a value would be kept",
            f"name one end, or leave {name!r} out",
        )
    first, last = float(column.low), float(column.high)  # type: ignore[attr-defined]
    low, high = first if low is None else low, last if high is None else high
    if low > high:
        is_open = any(_end(column, end) is None for end in condition)
        raise InvalidParameter(
            f"where={{{name!r}: …}}",
            f"low is above high, the declared range being {first:g} … {last:g}"
            if is_open
            else "low is above high",
            "no row could be kept",
            "name an end inside the declared range" if is_open else "give the smaller end first",
        )
    return low, high


def _end_text(column: object, given: object, number: float) -> str:
    if not isinstance(column, Date):
        return f"{number:g}"
    return column.text(number) if _end(column, given) is None else str(given)


def _end(column: object, given: object) -> float | None:
    """An end of a range; None where it is open: None, or an infinity."""
    if given is None or (isinstance(given, float) and math.isinf(given)):
        return None
    return _number(column, given, "where")
