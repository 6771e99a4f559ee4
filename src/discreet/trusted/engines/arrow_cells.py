"""Columns of Arrow tables, and so of files, as cells:
one reading for every type that Arrow has, decided by the type alone.

| Arrow type                                      | read as                                     |
|-------------------------------------------------|---------------------------------------------|
| whole numbers, floats (of 16 bits too)          | numbers                                     |
| decimals                                        | numbers, rounded once                       |
| booleans, bool8                                 | booleans                                    |
| text (of every layout), JSON                    | text; a cell that is not UTF-8 is missing,  |
|                                                 | alone                                       |
| UUIDs                                           | ids and keys, by their usual text           |
| dictionaries, run-end encoded columns           | what they hold                              |
| dates, timestamps                               | times, in UTC where they have a zone        |
| times of day, durations, intervals, bytes,      | nothing: every cell is missing              |
| lists, structures, maps, unions, nulls, other   |                                             |
| extensions                                      |                                             |
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.schema import LARGEST_EXACT_FLOAT, MINUS, NUMBER_PATTERN, text_number
from discreet.trusted.engines.cells import Cells, Floats, Labels, distinct_texts

Reading = Literal["number", "decimal", "boolean", "text", "time", "uuid", "nothing"]
EXTENSIONS: dict[str, Reading] = {
    "arrow.bool8": "boolean",
    "arrow.json": "text",
    "arrow.uuid": "uuid",
}
EXACT_POWERS = 22  # 10**22 is a float, so a whole number below 2**53 divided by it is rounded once


def reading_of(kind: pa.DataType) -> Reading:
    """How cells of an Arrow type are read."""
    kind = _held(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return EXTENSIONS.get(kind.extension_name, "nothing")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return "number"
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "time"
    return "text" if _is_text(kind) else "nothing"


def type_name(kind: pa.DataType) -> str:
    """The name by which types of two files are compared:
    how text is laid out, or that values are listed, does not matter.
    """
    held = _held(kind)
    return "string" if _is_text(held) else str(held)


def _held(kind: pa.DataType) -> pa.DataType:
    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return kind


def _is_text(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def cells_from_arrow(column: Any) -> Cells:
    """The cells of an Arrow array, of one piece or of several."""
    reading, length = reading_of(column.type), len(column)
    if reading == "nothing":
        return Cells("nothing", None, None, length)
    array = _in_one_piece(column)
    if reading == "text":
        return Cells("text", ArrowTexts(array), None, length)
    if reading == "uuid":
        return Cells("objects", array.to_pylist(), None, length)
    if reading == "decimal":
        return Cells("decimal", ArrowDecimals(array), None, length)
    if reading == "time":
        return Cells("time", array.to_numpy(zero_copy_only=False), None, length)
    missing = np.asarray(array.is_null()) if array.null_count else None
    values = (array.fill_null(_nothing(array.type)) if array.null_count else array).to_numpy(
        zero_copy_only=False
    )
    if reading == "boolean":
        return Cells("boolean", values.astype(bool, copy=False), missing, length)
    return Cells("number", values, missing, length)


def no_cells(rows: int) -> Cells:
    """A column of a type that holds neither numbers nor text."""
    return Cells("nothing", None, None, rows)


def joined(columns: list[Any], kind: pa.DataType) -> Any:
    """Parts of one column, one after another, without dictionaries."""
    pieces = [piece for column in columns for piece in _pieces(plain(column))]
    return pa.chunked_array(pieces) if pieces else plain(pa.array([], type=kind))


def give_back() -> None:
    """Gives the system what Arrow keeps of earlier batches: some 100 MB after a pass."""
    pa.default_memory_pool().release_unused()


def _nothing(kind: pa.DataType) -> Any:
    return (
        pa.scalar(np.float16(0) if pa.types.is_float16(kind) else 0, type=kind)
        if not pa.types.is_boolean(kind)
        else False
    )


def plain(column: Any) -> Any:
    """A column without a dictionary or runs around its values, in the pieces that it has.

    Text has 64-bit offsets, however it was laid out:
    parts of one column have one type, whether they hold cells or not.
    """
    while pa.types.is_dictionary(column.type) or pa.types.is_run_end_encoded(column.type):
        pieces = [
            _unlisted(piece) if pa.types.is_dictionary(piece.type) else _run_out(piece)
            for piece in _pieces(column)
        ]
        column = pa.chunked_array(pieces, type=pieces[0].type if pieces else column.type.value_type)
    if reading_of(column.type) != "text":
        return column
    return pa.chunked_array([_takeable(piece) for piece in _pieces(column)], type=pa.large_string())


def _unlisted(piece: Any) -> Any:
    """The cells of a dictionary array; a place without an entry, or an entry that is null,
    is missing.
    """
    return _takeable(piece.dictionary).take(pa.array(_places(piece), mask=_places(piece) < 0))


def _run_out(piece: Any) -> Any:
    """The cells of a run-end encoded array, a run at a time."""
    rows = np.arange(piece.offset, piece.offset + len(piece))
    return _takeable(piece.values).take(
        pa.array(np.searchsorted(np.asarray(piece.run_ends), rows, side="right"))
    )


def _takeable(values: Any) -> Any:
    """Values that can be taken by place, however often:
    text with 64-bit offsets, extensions by what they store.
    """
    if isinstance(values, pa.ExtensionArray) and reading_of(values.type) == "text":
        values = values.storage
    return _wide_text(values) if _is_text(values.type) else values


def _pieces(column: Any) -> list[Any]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def _in_one_piece(column: Any) -> Any:
    """One array: of text, of places in a dictionary of texts, or of the values that are held."""
    pieces = _pieces(column)
    held = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if len(pieces) == 1 and _is_text(held) and not pa.types.is_string_view(column.type):
        return pieces[0]
    column = plain(column)
    pieces = [
        piece.storage
        if isinstance(piece, pa.ExtensionArray) and reading_of(piece.type) != "uuid"
        else piece
        for piece in _pieces(column)
    ]
    return (
        pa.concat_arrays(pieces)
        if len(pieces) > 1
        else pieces[0]
        if pieces
        else pa.array([], type=_stored(column.type))
    )


def _stored(kind: pa.DataType) -> pa.DataType:
    """The type of the values of an empty column."""
    held = _held(kind)
    return (
        held.storage_type
        if isinstance(held, pa.BaseExtensionType) and reading_of(held) != "uuid"
        else held
    )


def _wide_text(array: Any) -> Any:
    """Text with 64-bit offsets: pieces of any length can be joined.

    Bytes stay as they are, UTF-8 or not.
    """
    return pc.cast(array, options=pc.CastOptions(pa.large_string(), allow_invalid_utf8=True))


@dataclass(frozen=True, eq=False, slots=True)
class ArrowTexts:
    """A text column: an array of text, or of places in a dictionary of texts."""

    array: Any

    def __iter__(self) -> Iterator[str | None]:
        labels, texts = self.labelled()
        return iter([*texts, None][label] for label in labels.tolist())

    def labelled(self) -> tuple[Labels, list[str | None]]:
        """A label 0, 1, … for each cell (−1: missing) and each label's text (None: it is not
        UTF-8), each text once.
        """
        listed = pa.types.is_dictionary(self.array.type)
        encoded = self.array if listed else self.array.dictionary_encode()
        return distinct_texts(_places(encoded), python_cells(encoded.dictionary))

    def find(self, texts: Sequence[str]) -> Labels:
        """The place of each cell's text among `texts`, which are all different; −1 for none."""
        listed = pa.types.is_dictionary(self.array.type)
        cells = _takeable(self.array.dictionary) if listed else self.array
        found = (
            pc.index_in(cells, value_set=_listed_texts(tuple(texts), cells.type), skip_nulls=True)
            .fill_null(-1)
            .to_numpy(zero_copy_only=False)
        )
        if not listed:
            return np.asarray(found)
        # −1 is the last one
        return np.asarray(np.append(found, np.int32(-1)).take(_places(self.array), mode="wrap"))

    def numbers(self) -> Floats:
        """Each cell by the decimal grammar of `schema.text_number`,
        NaN where it is missing or no number.

        Arrow reads decimals as Python does, rounded once, and knows words beside them
        ("inf", "nan"), which are read again here.
        Checked.
            tests/trusted/engines/test_arrow_cells.py::test_arrow_reads_decimals_as_the_grammar_says
        """
        if pa.types.is_dictionary(self.array.type):
            labels, texts = self.labelled()
            return np.array([*(_number(text) for text in texts), np.nan])[labels]
        trimmed = pc.ascii_trim(self.array, " ")
        try:
            values, sure = pc.cast(trimmed, pa.float64()), False
        except pa.ArrowInvalid:  # some cell is no number: only those that are get there
            trimmed = pc.replace_substring(trimmed, MINUS, "-")
            fits = pc.match_substring_regex(trimmed, f"\\A(?:{NUMBER_PATTERN})\\z")
            values, sure = (
                pc.cast(pc.if_else(fits, trimmed, pa.scalar(None, trimmed.type)), pa.float64()),
                True,
            )
        numbers: Floats = values.to_numpy(zero_copy_only=False)
        odd = np.flatnonzero(~np.isfinite(numbers)) if not sure else ()
        if len(odd):
            numbers = numbers.copy()
            numbers[odd] = [_number(text) for text in python_cells(self.array.take(pa.array(odd)))]
        return numbers


def _places(encoded: Any) -> Labels:
    """The place in its dictionary of each cell of an Arrow array, −1 for a missing one."""
    indices = encoded.indices
    if not pa.types.is_signed_integer(indices.type):
        indices = indices.cast(pa.int64())
    return np.asarray(
        (indices.fill_null(-1) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    )


@dataclass(frozen=True, eq=False, slots=True)
class ArrowDecimals:
    """A decimal column: Python decimals one by one, or all as floats."""

    array: Any

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array.to_pylist())

    def numbers(self) -> Floats:
        """Each cell as the nearest float, NaN where it is missing.

        A decimal is a whole number over a power of ten; where both are floats, their quotient is
        rounded once, as by `float(Decimal)`.
        """
        kind = self.array.type
        steps, small = (
            _small_steps(self.array)
            if pa.types.is_decimal128(kind) and 0 <= kind.scale <= EXACT_POWERS
            else (np.zeros(len(self.array)), np.zeros(len(self.array), dtype=bool))
        )
        numbers: Floats = (
            steps / float(10 ** max(kind.scale, 0)) if 0 <= kind.scale <= EXACT_POWERS else steps
        )
        wide = np.flatnonzero(~small)
        if len(wide):
            cells = self.array.take(pa.array(wide)).to_pylist()
            numbers[wide] = [np.nan if cell is None else float(cell) for cell in cells]
        return numbers


def _small_steps(array: Any) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The whole numbers behind 128-bit decimals,
    and which of them are below 2**53 and not missing.
    """
    words = np.frombuffer(array.buffers()[1], dtype="<i8")[
        2 * array.offset : 2 * (array.offset + len(array))
    ].reshape(-1, 2)
    low, high = words[:, 0], words[:, 1]
    small = (high == low >> 63) & (low < LARGEST_EXACT_FLOAT) & (low > -LARGEST_EXACT_FLOAT)
    if array.null_count:
        small &= ~np.asarray(array.is_null())
    return np.where(small, low, 0).astype(np.float64), small


@functools.lru_cache(maxsize=16)
def _listed_texts(texts: tuple[str, ...], kind: pa.DataType) -> Any:
    """Texts as an Arrow array; one that no cell can hold is missing, and finds nothing."""
    return pa.array([text if _is_unicode(text) else None for text in texts], type=kind)


def _is_unicode(text: str) -> bool:
    """Whether a text has UTF-8 (half a surrogate pair has none, so no cell of Arrow holds it)."""
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False


def _number(text: str | None) -> float:
    number = None if text is None else text_number(text)
    return np.nan if number is None else number


def python_cells(array: Any) -> list[Any]:
    """Each cell of an Arrow array as a Python value;
    None where there is none, such as for text that is not UTF-8.
    """
    try:
        return list(array.to_pylist())
    except Exception:  # one cell at a time: what cannot be read is missing, alone
        return [_scalar(scalar) for scalar in array]


def _scalar(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except Exception:
        return None
