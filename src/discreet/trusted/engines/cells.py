"""The cells of one column in memory, read by the total rules of `schema.py`.

A column arrives as numbers, booleans, text, decimals or Python objects. Whatever a cell holds,
reading it gives a number, a code or "missing"; no cell can raise, warn or drop a row, and none
decides how another is read: what a column is follows from its type alone.
"""

from __future__ import annotations

import math
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from discreet.schema import Boolean, Category
from discreet.trusted.values import boolean_of, booleans_of, levels_of, number_of, whole_of

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Labels = npt.NDArray[np.signedinteger[Any]]
NAN = math.nan
LARGEST_SEED = 1 << 128
WRITTEN_WHOLE = re.compile("0|-?[1-9][0-9]{0,37}")  # all below LARGEST_SEED: seeds are the text


@dataclass(frozen=True, slots=True)
class Cells:
    """One column as read: numbers or booleans with a mask of missing cells, text or missing,
    decimals, times (an array of datetime64), Python objects, or nothing usable.
    """

    kind: Literal["number", "boolean", "text", "decimal", "time", "objects", "nothing"]
    values: Any
    missing: npt.NDArray[np.bool_] | None
    length: int


class Texts(Protocol):
    """A text column."""

    def __iter__(self) -> Iterator[str | None]:
        """Its cells one by one."""
        ...

    def labelled(self) -> tuple[Labels, list[str | None]]:
        """A label 0, 1, … for each cell (−1: missing) and each label's text, each text once; None:
        it is not Unicode.
        """
        ...

    def find(self, texts: Sequence[str]) -> Labels:
        """The place of each cell's text among `texts`, which are all different; −1 for none."""
        ...

    def numbers(self) -> Floats:
        """Each cell as a number, NaN where it is missing or no number."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class PlainTexts:
    """A text column as a list of Python cells; what is no text is missing."""

    cells: Sequence[Any]

    def __iter__(self) -> Iterator[str | None]:
        return (str.__str__(cell) if issubclass(type(cell), str) else None for cell in self.cells)

    def labelled(self) -> tuple[Labels, list[str | None]]:
        found: dict[str | None, int] = {}
        labels = np.fromiter(
            (found.setdefault(text, len(found)) for text in self),
            dtype=np.int64,
            count=len(self.cells),
        )
        return labels, list(found)

    def find(self, texts: Sequence[str]) -> Labels:
        places = {text: place for place, text in enumerate(texts)}
        return np.fromiter(
            (-1 if text is None else places.get(text, -1) for text in self),
            dtype=np.int32,
            count=len(self.cells),
        )

    def numbers(self) -> Floats:
        return np.fromiter(map(number_of, self), dtype=np.float64, count=len(self.cells))


def distinct_texts(labels: Labels, texts: list[str | None]) -> tuple[Labels, list[str | None]]:
    """The same cells with each text once: a dictionary may list a text twice."""
    found: dict[str | None, int] = {}
    places = [found.setdefault(text, len(found)) for text in texts]
    return (
        (labels, texts)
        if len(found) == len(texts)
        else (np.array([*places, -1], dtype=np.int64)[labels], list(found))
    )


def numbers(cells: Cells) -> Floats:
    """Every cell as a float64, NaN where it is missing or not a number."""
    if cells.kind in ("nothing", "time"):
        return np.full(cells.length, NAN)
    if cells.kind in ("text", "decimal"):
        read: Floats = cells.values.numbers()
        return read
    if cells.kind == "objects":
        return np.fromiter(map(number_of, cells.values), dtype=np.float64, count=cells.length)
    with np.errstate(all="ignore"):
        # nobody writes into what is read
        values: Floats = cells.values.astype(np.float64, copy=cells.missing is not None)
    if cells.missing is not None:
        values[cells.missing] = NAN
    return values


def boolean_codes(cells: Cells, column: Boolean) -> Codes:
    """0 or 1 for every cell; −1 where it has no value."""
    otherwise = -1 if column.missing is None else int(column.missing)
    if cells.kind == "boolean":
        codes: Codes = cells.values.astype(np.int32)
        if cells.missing is not None:
            codes[cells.missing] = otherwise
        return codes
    if cells.kind == "text":
        labels, texts = cells.values.labelled()
        read: Codes = np.array(
            [
                *(otherwise if text is None else boolean_of(text, otherwise) for text in texts),
                otherwise,
            ],
            dtype=np.int32,
        )
        return np.asarray(read[labels])
    if cells.kind == "objects":
        return np.fromiter(
            (boolean_of(cell, otherwise) for cell in cells.values),
            dtype=np.int32,
            count=cells.length,
        )
    return booleans_of(numbers(cells), otherwise).astype(np.int32)


def category_codes(cells: Cells, column: Category) -> Codes:
    """The code of each cell's level, `missing`'s code, or −1."""
    levels = levels_of(column)
    if cells.kind == "boolean":
        codes = levels.of_booleans(cells.values).astype(np.int32)
        if cells.missing is not None:
            codes[cells.missing] = levels.otherwise
        return codes
    if cells.kind == "text":
        found: Codes = cells.values.find(tuple(levels.texts))  # in the order of their codes
        lost = found < 0
        if lost.any() and (levels.numbers or levels.truths):  # some may match in another spelling
            labels, texts = cells.values.labelled()
            read = [*map(levels.of_text, texts), levels.otherwise]
            return np.asarray(np.array(read, dtype=np.int32)[labels])
        return np.where(lost, np.int32(levels.otherwise), found)
    if cells.kind == "objects":
        return np.fromiter(map(levels, cells.values), dtype=np.int32, count=cells.length)
    return levels.of_numbers(numbers(cells)).astype(np.int32)


def uuid_text(cell: Any) -> str | None:
    number = getattr(cell, "int", None) if type(cell) is uuid.UUID else None
    return str(uuid.UUID(int=number)) if type(number) is int and 0 <= number < 1 << 128 else None


def unit_labels(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A label 0, 1, … for each row's unit (−1: it has no id), and the seed text of each label.

    Ids are compared by value: text by code points, numbers by value.
    """
    if cells.kind == "text":
        texts, distinct = cells.values.labelled()
        return _held_labels(texts, distinct)
    if cells.kind in ("objects", "decimal"):
        return _label_objects(map(unit_key, cells.values), cells.length)
    if cells.kind == "boolean":
        return _label_objects(
            (
                ("true" if cell else "false") if known else None
                for cell, known in zip(cells.values, known_cells(cells), strict=True)
            ),
            cells.length,
        )
    if cells.kind in ("nothing", "time"):
        return np.full(cells.length, -1, dtype=np.int64), []
    known = known_cells(cells)
    if cells.values.dtype.kind == "f":
        known = known & ~np.isnan(cells.values)
    distinct, inverse = np.unique(cells.values[known], return_inverse=True)
    labels = np.full(cells.length, -1, dtype=np.int64)
    labels[known] = inverse
    return labels, [seed_text(number) for number in distinct.tolist()]


def _held_labels(
    labels: Labels, texts: Sequence[str | None]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The same units, numbered among those that some row holds (a dictionary may list others);
    a text that is not Unicode is no id.
    """
    held = np.bincount(labels[labels >= 0], minlength=len(texts)) > 0
    kept = [place for place, text in enumerate(texts) if text is not None and held[place]]
    return renumbered(labels, texts, kept)


def renumbered(
    labels: Labels, texts: Sequence[str | None], kept: Sequence[int]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Labels 0, 1, … in the order of `kept` among the old ones, −1 for all others,
    and the texts that are kept.
    """
    places = np.full(len(texts) + 1, -1, dtype=np.int64)  # the last one is for the label −1
    places[kept] = np.arange(len(kept))
    return places[labels], [texts[place] or "" for place in kept]


def known_cells(cells: Cells) -> npt.NDArray[np.bool_]:
    return np.ones(cells.length, dtype=bool) if cells.missing is None else ~cells.missing


def _label_objects(keys: Iterable[Any], length: int) -> tuple[npt.NDArray[np.int64], list[str]]:
    found: dict[Any, int] = {}
    labels = np.fromiter(
        (-1 if key is None else found.setdefault(key, len(found)) for key in keys),
        dtype=np.int64,
        count=length,
    )
    return labels, [seed_text(key) for key in found]


def unit_key(cell: Any) -> str | int | float | Decimal | None:
    """What makes two unit ids the same: equal text, equal numbers, or a number and the text that
    writes it as a whole one, which puts two persons into one unit rather than one person into two;
    None for a missing or unusable id.
    """
    if issubclass(type(cell), str):
        text = str.__str__(cell)
        return int(text) if WRITTEN_WHOLE.fullmatch(text) else text
    if issubclass(type(cell), (bool, np.bool_)):
        return "true" if cell else "false"
    whole = whole_of(cell)
    if whole is not None:
        return whole
    if issubclass(type(cell), (float, np.floating)):
        number = number_of(cell)
        return None if math.isnan(number) else number
    if issubclass(type(cell), Decimal):
        return None if Decimal.is_nan(cell) else Decimal(cell)
    return uuid_text(cell)


def seed_text(key: str | int | float | Decimal) -> str:
    """The public text that seeds a unit's row order: text itself, numbers as the decimal text of
    their floor; the same for equal numbers of all types.
    """
    if isinstance(key, str):
        return key
    if isinstance(key, Decimal) and not (
        key.is_finite() and (key.is_zero() or key.adjusted() < 40)
    ):
        return "large"
    return str(math.floor(key)) if -LARGEST_SEED < key < LARGEST_SEED else "large"
