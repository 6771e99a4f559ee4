"""The cells of one column in memory, read by the total rules of `schema.py`.

A column arrives as numbers, booleans, text, decimals or Python objects. Whatever a cell holds,
reading it gives a number, a code or "missing"; no cell can raise, warn or drop a row, and none
decides how another is read: what a column is follows from its type alone.
"""

from __future__ import annotations

import importlib
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.schema import LARGEST_EXACT_FLOAT, LONGEST_KEY, MOST_KEY_DIGITS, Boolean, Category
from discreet.trusted.values import boolean_of, booleans_of, levels_of, number_of, whole_of

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Labels = npt.NDArray[np.signedinteger[Any]]
NOT_NUMBERS = (nw.Date, nw.Datetime, nw.Duration, nw.Time, nw.List, nw.Array, nw.Struct, nw.Binary)
NAN = math.nan
LARGEST_SEED = 1 << 128


@dataclass(frozen=True, slots=True)
class Cells:
    """One column as read: numbers or booleans with a mask of missing cells, text or missing,
    decimals, Python objects, or nothing usable.
    """

    kind: Literal["number", "boolean", "text", "decimal", "objects", "nothing"]
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


def cells_of(column: Any) -> Cells:
    """Cells of a list or tuple, a one-dimensional array, or a column of a frame."""
    if isinstance(column, (list, tuple)):
        return cells_from_sequence(column)
    return (
        cells_from_array(column)
        if isinstance(column, np.ndarray)
        else cells_from_series(nw.from_native(column, series_only=True))
    )


def python_objects(cells: Cells) -> list[Any]:
    """Each cell as a Python value, None where it is missing or nothing."""
    if cells.kind == "nothing":
        return [None] * cells.length
    listed = cells.values.tolist() if cells.kind in ("number", "boolean") else list(cells.values)
    return (
        listed
        if cells.missing is None
        else [None if gone else cell for cell, gone in zip(listed, cells.missing, strict=True)]
    )


def cells_from_array(array: npt.NDArray[Any]) -> Cells:
    """Cells of a one-dimensional numpy array (masked cells are missing)."""
    plain = np.asarray(array)
    if plain.dtype.kind not in "iufbOUT":  # before its mask is read: records have masks of records
        return Cells("nothing", None, None, len(plain))
    missing = (
        np.ma.getmaskarray(array).copy()
        if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array)
        else None
    )
    if plain.dtype.kind in "iuf":
        return Cells("number", plain, missing, len(plain))
    if plain.dtype.kind == "b":
        return Cells("boolean", plain, missing, len(plain))
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
    if str(getattr(series.to_native(), "dtype", "")) == "object":
        return Cells("objects", _python_cells(series), None, length)
    dtype = series.dtype
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


def _mask(gone: Any) -> npt.NDArray[np.bool_] | None:
    mask = np.asarray(gone, dtype=bool)
    return mask if mask.any() else None


def _python_cells(series: nw.Series[Any]) -> list[Any]:
    listed = _or_missing(lambda: list(series.to_list()))
    if listed is not None:
        return list(listed)
    # a date that Python has not, say: missing, alone
    return [_or_missing(lambda row=row: series.item(row)) for row in range(len(series))]


def numbers(cells: Cells) -> Floats:
    """Every cell as a float64, NaN where it is missing or not a number."""
    if cells.kind == "nothing":
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
    """0 or 1 for every cell."""
    otherwise = int(column.missing)
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
        return (
            found
            if levels.otherwise < 0
            else np.where(found < 0, np.int32(levels.otherwise), found)
        )
    if cells.kind == "objects":
        return np.fromiter(map(levels, cells.values), dtype=np.int32, count=cells.length)
    return levels.of_numbers(numbers(cells)).astype(np.int32)


def open_labels(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str]]:
    """A label 0, 1, … for each row's key in an Open column (−1: it has none),
    and the text of each label, in no order.
    """
    if cells.kind == "nothing":
        return np.full(cells.length, -1, dtype=np.int64), []
    if cells.kind == "boolean":
        labels = cells.values.astype(np.int64)
        labels[~_known(cells)] = -1
        return labels, ["false", "true"]
    if cells.kind == "number":
        return _open_numbers(cells)
    return _with_keys(*(cells.values.labelled() if cells.kind == "text" else _open_objects(cells)))


def _open_numbers(cells: Cells) -> tuple[npt.NDArray[np.int64], list[str]]:
    known, values = _known(cells), cells.values
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
    return _uuid_text(cell)


def _uuid_text(cell: Any) -> str | None:
    number = getattr(cell, "int", None) if type(cell) is uuid.UUID else None
    return str(uuid.UUID(int=number)) if type(number) is int and 0 <= number < 1 << 128 else None


def _with_keys(
    labels: npt.NDArray[np.int64], texts: Sequence[str | None]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Labels and texts without those that are no key."""
    kept = [text for text in texts if text is not None and _is_key(text)]
    if len(kept) == len(texts):
        return labels, kept
    places = np.full(len(texts) + 1, -1, dtype=np.int64)  # the last one is for the label −1
    places[[place for place, text in enumerate(texts) if text is not None and _is_key(text)]] = (
        np.arange(len(kept))
    )
    return places[labels], kept


def _is_key(text: str) -> bool:
    """Whether a text is a key: 1 to 200 characters, none of them half a surrogate pair."""
    try:
        return 1 <= len(text) <= LONGEST_KEY and bool(text.encode())
    except UnicodeEncodeError:
        return False


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
                for cell, known in zip(cells.values, _known(cells), strict=True)
            ),
            cells.length,
        )
    if cells.kind == "nothing":
        return np.full(cells.length, -1, dtype=np.int64), []
    known = _known(cells)
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
    places = np.full(len(texts) + 1, -1, dtype=np.int64)  # the last one is for the label −1
    places[kept] = np.arange(len(kept))
    return places[labels], [texts[place] or "" for place in kept]


def _known(cells: Cells) -> npt.NDArray[np.bool_]:
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
    """What makes two unit ids the same: equal text or equal numbers;
    None for a missing or unusable id.
    """
    if issubclass(type(cell), str):
        return str.__str__(cell)
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
    return _uuid_text(cell)


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
