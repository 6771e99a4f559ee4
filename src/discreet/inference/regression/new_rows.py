"""The rows of a prediction: numbers in the order of the coefficients, or columns by name, those of
the data (with the names of levels) or those of the coefficients.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.inference.results.laws import Array
from discreet.schema import level_text
from discreet.specs.estimating.components import LevelComponent, ModelColumn

INTERCEPT = "intercept"
_LEVEL = re.compile(r"(?P<column>.+)\[(?P<level>.+)\]")
_TRANSFORMED = re.compile(r"(?P<transform>square|log)\((?P<column>.+)\)")


def new_rows(rows: Any, names: tuple[str, ...], bases: Mapping[str, str] | None = None) -> Array:
    """Rows × coefficients. A mapping or a frame is read by names, whatever their order: the
    intercept is 1 where it is not among them, a product a:b that of its parts, a level that of its
    column, whose `bases` count 0; further columns are not read.
    """
    named = _columns(rows)
    if named is not None:
        return _by_name(_with_terms(named, names, bases or {}), names)
    try:
        along = np.atleast_2d(np.asarray(rows, dtype=float))
    except (TypeError, ValueError):
        raise _refused(names, f"a {type(rows).__name__} is not an array of numbers") from None
    if along.ndim != 2 or along.shape[1] != len(names):
        raise _refused(names, f"rows of {along.shape[-1]} values")
    return along


def _columns(rows: Any) -> dict[str, Any] | None:
    """The columns of a mapping or a frame by name; None for anything else."""
    if isinstance(rows, Mapping):
        return {str(name): column for name, column in rows.items()}
    labels = getattr(rows, "column_names", getattr(rows, "columns", None))
    if labels is None or not hasattr(rows, "__getitem__"):
        return None
    return {str(label): rows[label] for label in labels}


def bases_by_text(bases: Mapping[str, Any], columns: Sequence[ModelColumn]) -> dict[str, str]:
    """The bases that count 0: those of columns whose levels are not coded by sums."""
    by_sums = {
        component.column
        for column in columns
        for component in column.components
        if isinstance(component, LevelComponent) and -1 in component.contrast
    }
    return {name: level_text(level) for name, level in bases.items() if name not in by_sums}


def _with_terms(
    columns: dict[str, Any], names: tuple[str, ...], bases: Mapping[str, str]
) -> dict[str, Any]:
    """The columns, and what terms such as region[N] and square(age) are of them."""
    terms = dict.fromkeys(part for name in names for part in name.split(":"))
    levels: dict[str, list[str]] = {}
    for found in filter(None, map(_LEVEL.fullmatch, terms)):
        levels.setdefault(found["column"], []).append(found["level"])
    read = dict(columns)
    for column in levels.keys() & columns.keys():
        texts = [level_text(value) for value in np.atleast_1d(np.asarray(columns[column])).tolist()]
        known = levels[column] + ([bases[column]] if column in bases else [])
        strange = next((text for text in texts if text not in known), None)
        if strange is not None:
            levels_told = ", ".join(known)
            raise _refused(names, f"{column} = {strange!r} is none of its levels ({levels_told})")
        for level in levels[column]:
            read.setdefault(f"{column}[{level}]", [float(text == level) for text in texts])
    for found in filter(None, map(_TRANSFORMED.fullmatch, terms)):
        if found["column"] in columns and found[0] not in columns:
            values = np.asarray(columns[found["column"]], dtype=float)
            read[found[0]] = values**2 if found["transform"] == "square" else np.log(values)
    return read


def _by_name(columns: dict[str, Any], names: tuple[str, ...]) -> Array:
    read: dict[str, Array] = {}
    for name, column in columns.items():
        if any(name in (one, *one.split(":")) for one in names):
            try:
                read[name] = np.atleast_1d(np.asarray(column, dtype=float))
            except (TypeError, ValueError):
                raise _refused(names, f"{name!r} holds something else than numbers") from None
    absent = [name for name in names if name != INTERCEPT and not _is_known(name, read)]
    if absent:
        raise _refused(names, f"no column gives {', '.join(absent)}")
    try:
        parts = np.broadcast_arrays(np.ones(1), *read.values())
    except ValueError:
        raise _refused(names, "its columns have different lengths") from None
    ones, known = parts[0], dict(zip(read, parts[1:], strict=True))
    found = [
        known[name]
        if name in known
        else ones
        if name == INTERCEPT
        else np.prod([known[part] for part in name.split(":")], axis=0)
        for name in names
    ]
    return np.stack(found, axis=1)


def _is_known(name: str, read: dict[str, Array]) -> bool:
    return name in read or all(part in read for part in name.split(":"))


def _refused(names: tuple[str, ...], found: str) -> InvalidParameter:
    ones = ", ".join("1" if name == INTERCEPT else name for name in names)
    columns: dict[str, str] = {}
    for name in names:
        if name != INTERCEPT and ":" not in name:
            level, moved = _LEVEL.fullmatch(name), _TRANSFORMED.fullmatch(name)
            column = level["column"] if level else moved["column"] if moved else name
            columns.setdefault(column, f"{level['level']!r}" if level else "30")
    shown = ", ".join(f"{column!r}: [{value}]" for column, value in columns.items())
    return InvalidParameter(
        "predict",
        found,
        f"there are {len(names)} coefficients: {', '.join(names)}",
        f"give one number for each, 1 for the intercept: predict([[{ones}]]), or the columns of "
        f"the data: predict({{{shown}}})",
    )
