"""The keys of an Open column: which text a cell stands for, and a label for each text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.schema import LARGEST_EXACT_FLOAT, LONGEST_KEY, MOST_KEY_DIGITS
from discreet.trusted.engines.cells import Cells, known_cells, numbers, renumbered, uuid_text
from discreet.trusted.values import number_of, whole_of


def ordered_labels(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Labels of the keys of an Open column in the order of their texts (−1: no key),
    and these texts.
    """
    labels, texts = open_labels(cells)
    return renumbered(labels, texts, sorted(range(len(texts)), key=texts.__getitem__))


def open_labels(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A label 0, 1, … for each row's key in an Open column (−1: it has none),
    and the text of each label, in no order.
    """
    if cells.kind in ("nothing", "time"):
        return np.full(cells.length, -1, dtype=np.int64), []
    if cells.kind == "boolean":
        labels = cells.values.astype(np.int64)
        labels[~known_cells(cells)] = -1
        return labels, ["false", "true"]
    if cells.kind == "number":
        return _open_numbers(cells)
    return _with_keys(*(cells.values.labelled() if cells.kind == "text" else _open_objects(cells)))


def _open_numbers(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str]]:
    known, values = known_cells(cells), cells.values
    if values.dtype.kind == "f":
        values = numbers(cells)
        known = (values == np.floor(values)) & (np.abs(values) < LARGEST_EXACT_FLOAT)
        values = np.where(known, values, 0.0).astype(np.int64)
    distinct, inverse = np.unique(values[known], return_inverse=True)
    labels = np.full(cells.length, -1, dtype=np.int64)
    labels[known] = inverse
    return labels, [str(int(number)) for number in distinct]


def _open_objects(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str | None]]:
    found: dict[str | None, int] = {}
    labels = np.fromiter(
        (
            found.setdefault(cell if type(cell) is str else open_text(cell), len(found))
            for cell in cells.values
        ),
        dtype=np.int64,
        count=cells.length,
    )
    return labels, list(found)


def open_text(cell: Any) -> str | None:
    """The text that one Python cell of an Open column stands for, before its length is looked at;
    None for none.
    """
    if issubclass(type(cell), str):
        return str.__str__(cell)
    if issubclass(type(cell), (bool, np.bool_)):
        return "true" if cell else "false"
    whole = whole_of(cell)
    if whole is not None:
        return str(whole) if abs(whole) < 10**MOST_KEY_DIGITS else None
    if issubclass(type(cell), (float, np.floating)):
        number = number_of(cell)
        return (
            str(int(number))
            if abs(number) < LARGEST_EXACT_FLOAT and number == math.floor(number)
            else None
        )
    if issubclass(type(cell), Decimal):
        small = Decimal.is_finite(cell) and (
            Decimal.is_zero(cell) or Decimal.adjusted(cell) < MOST_KEY_DIGITS
        )
        return (
            str(Decimal.__int__(cell))
            if small and Decimal.__eq__(cell, Decimal.__int__(cell))
            else None
        )
    return uuid_text(cell)


def _with_keys(
    labels: npt.NDArray[np.int64], texts: Sequence[str | None]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Labels and texts without those that are no key."""
    kept = [place for place, text in enumerate(texts) if is_key(text)]
    return renumbered(labels, texts, kept)


def is_key(text: str | None) -> bool:
    """Whether a text is a key: 1 to 200 characters, none of them half a surrogate pair."""
    if text is None or not 1 <= len(text) <= LONGEST_KEY:
        return False
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False
