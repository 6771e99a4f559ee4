"""The rows of a prediction: numbers in the order of the coefficients, or columns by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.inference.results.laws import Array

INTERCEPT = "intercept"


def new_rows(rows: Any, names: tuple[str, ...]) -> Array:
    """Rows × coefficients. A mapping or a frame is read by names, whatever their order: the
    intercept is 1 where it is not among them, a product a:b that of its parts; further columns are
    not read.
    """
    named = _columns(rows)
    if named is not None:
        return _by_name(named, names)
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
    columns = ", ".join(
        f"{name!r}: [0]" if name.endswith("]") else f"{name!r}: [30]"
        for name in names
        if name != INTERCEPT and ":" not in name
    )
    return InvalidParameter(
        "predict",
        found,
        f"there are {len(names)} coefficients: {', '.join(names)}",
        f"give one number for each, 1 for the intercept: predict([[{ones}]]), or columns of "
        f"numbers by these names, levels as 0 or 1: predict({{{columns}}})",
    )
