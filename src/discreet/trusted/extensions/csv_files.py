"""CSV, read by one total rule: every sequence of bytes is a table, and no byte makes reading fail.

Fields are separated by commas, or by the mark that was declared (specs/dialects.py), and records by
line ends (LF, CR LF or CR). A field whose first byte is a double quote goes on to the next double
quote that is not doubled, whatever is between; two double quotes inside it are one; what follows up
to the next separator belongs to the field as it stands. A quote anywhere else is text. A quote that
is never closed makes the rest of the file one field. A blank line is no record; the first record is
the header; a short record has missing cells, further fields are ignored, and an empty field is
missing, as is one of the declared texts. Bytes that the encoding does not have read as U+FFFD. A
byte order mark at the beginning of UTF-8 is skipped. Numbers that are written with other marks than
a decimal point are written anew with one, a cell at a time.

What is protected is the table that is read in this way.
Reading goes through the file once, a block of whole records at a time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.schema import Boolean, Category, Date, Open, Schema, level_text
from discreet.specs.dialects import Dialect

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]

BLOCK = 1 << 23  # bytes that are read at a time
QUOTE, LINE_FEED, CARRIAGE_RETURN = (ord(character) for character in '"\n\r')
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
PLAIN = Dialect()


@dataclass(frozen=True, eq=False, slots=True)
class Quoted:
    """Quoted stretches of a block: where they open and close,
    and which are a whole field without doubled quotes.
    """

    opens: Places
    closes: Places  # the number of bytes where nothing closes it
    simple: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Records:
    """Whole records of a block: field f is the bytes starts[f] … ends[f], record r has the
    `width[r]` fields from first[r] on.
    """

    block: Bytes
    starts: Places
    ends: Places
    first: Places
    width: Places
    quoted: Quoted | None
    used: int  # bytes of the block that the records and blank lines take

    def __len__(self) -> int:
        return len(self.first)

    def column(self, place: int) -> Any:
        """The texts of one field of every record, as an Arrow array;
        empty and absent ones are missing.
        """
        absent = self.width <= place
        field = self.first + np.where(absent, self.width - 1, place)
        low, high = self.starts[field], self.ends[field].copy()
        low[absent] = high[absent]
        special: dict[int, bytes] = {}
        if self.quoted is not None:
            low, high, special = self._unquoted(low, high)
        return _texts(_cut(self.block, low, high, special))

    def _unquoted(self, low: Places, high: Places) -> tuple[Places, Places, dict[int, bytes]]:
        """Ends without the quotes around a field,
        and the bytes of those fields that are not one stretch of the block.
        """
        quoted = self.quoted
        assert quoted is not None
        place = np.minimum(np.searchsorted(quoted.opens, low), len(quoted.opens) - 1)
        is_quoted = (quoted.opens[place] == low) & (low < high)
        plain = is_quoted & quoted.simple[place]
        special = {}
        for row in np.flatnonzero(is_quoted & ~plain).tolist():
            opened, closed, end = int(low[row]), int(quoted.closes[place[row]]), int(high[row])
            special[row] = (
                self.block[opened + 1 : min(closed, end)].tobytes().replace(b'""', b'"')
                + self.block[closed + 1 : end].tobytes()
            )
        return low + plain, high - plain, special


class CsvSource:
    """One CSV file: the names of its columns, all of them text, and its rows in batches."""

    def __init__(
        self, path: str, dialect: Dialect | None, schema: Schema, unit: str | None = None
    ) -> None:
        self._path, self._dialect = path, dialect or PLAIN
        self.columns = header_of(path, dialect=self._dialect)
        self.types: dict[str, Any] = dict.fromkeys(self.columns, pa.string())
        self._readers = {
            name: cell_reader(self._dialect, schema, None if name == unit else name)
            for name in self.columns
        }

    def tasks(
        self, names: Sequence[str], rows: int
    ) -> Iterator[Callable[[], Iterator[tuple[dict[str, Any], int]]]]:
        """One task a block of records: blocks are found in turn,
        and their fields can be read side by side.
        """
        for number, found in enumerate(records_of(self._path, dialect=self._dialect)):
            if number == 0 and fields_of(found, 0) != self.columns:
                raise ValueError("another header")  # the file changed while it was opened
            records = without_first(found) if number == 0 else found
            yield functools.partial(self._batch, records, tuple(names))

    def _batch(
        self, records: Records, names: Sequence[str]
    ) -> Iterator[tuple[dict[str, Any], int]]:
        read = {
            name: self._readers[name](records.column(self.columns.index(name))) for name in names
        }
        yield read, len(records)


def cell_reader(dialect: Dialect, schema: Schema, name: str | None) -> Callable[[Any], Any]:
    """What a dialect makes of the texts of one column, each by itself; of no name, and of `Open`
    and `Date` columns, the missing ones alone are taken out.
    """
    steps: list[Callable[[Any], Any]] = []
    if dialect.missing_text:
        missing = pa.array(dialect.missing_text, type=pa.large_string())
        steps.append(lambda texts: _without(texts, pc.is_in(texts, value_set=missing)))
    column = schema[name] if name is not None and name in schema else Open()
    if not dialect.has_plain_numbers and not isinstance(column, (Open, Date)):
        levels = map(level_text, column.levels) if isinstance(column, Category) else ()
        kept = pa.array(levels, type=pa.large_string())
        numbers = isinstance(column, (Category, Boolean))
        steps.append(lambda texts: _plain_numbers(texts, dialect, kept, others_stay=numbers))
    return lambda texts: functools.reduce(lambda read, step: step(read), steps, texts)


def _without(texts: Any, gone: Any) -> Any:
    return pc.if_else(gone, pa.scalar(None, texts.type), texts)


def _plain_numbers(texts: Any, dialect: Dialect, kept: Any, *, others_stay: bool) -> Any:
    """Numbers of a dialect with a decimal point and nothing between digits; texts in `kept` stay,
    and others do, or stand in quotes: no number then, and still told from a cell that is missing.
    """
    trimmed = pc.ascii_trim(texts, " ")
    fits = pc.match_substring_regex(trimmed, f"\\A(?:{dialect.number_pattern()})\\z")
    if dialect.thousands is not None:
        trimmed = pc.replace_substring(trimmed, dialect.thousands, "")
    written = pc.replace_substring(trimmed, dialect.decimal, ".")
    fits = pc.and_(fits, pc.invert(pc.is_in(texts, value_set=kept)))
    quoted = pc.replace_substring_regex(texts, r"(?s)\A(.*[^\s\pZ].*)\z", r"'\1'")
    return pc.if_else(fits, written, texts if others_stay else quoted)


def records_of(
    path: str, block: int | None = None, *, dialect: Dialect = PLAIN
) -> Iterator[Records]:
    """The records of a file, some at a time, the header among the first."""
    block = BLOCK if block is None else block
    rest, size = b"", block
    with open(path, "rb", buffering=0) as source:
        for number in itertools.count():
            read = _read(source, max(size, len(BYTE_ORDER_MARK)))
            at_end = len(read) == 0
            if dialect.encoding != "utf-8":
                read = read.decode(dialect.encoding, "replace").encode()
            elif number == 0:
                read = read.removeprefix(BYTE_ORDER_MARK)
            content = rest + read
            found = split(
                np.frombuffer(content, dtype=np.uint8), at_end=at_end, separator=dialect.separator
            )
            if len(found):
                yield found
            if at_end:
                return
            rest = content[found.used :]
            # a record that does not end is not looked through again and again
            size = max(block, len(rest))


def _read(source: Any, size: int) -> bytes:
    """`size` bytes, fewer only at the end of the file."""
    parts: list[bytes] = []
    while size > 0 and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def header_of(path: str, block: int = 1 << 16, *, dialect: Dialect = PLAIN) -> list[str]:
    """The fields of the first record; none in an empty file."""
    for found in records_of(path, block, dialect=dialect):
        return fields_of(found, 0)
    return []


def fields_of(records: Records, record: int) -> list[str]:
    """All fields of one record, as text."""
    fields = records.first[record] + np.arange(records.width[record])
    each = Records(
        records.block,
        records.starts,
        records.ends,
        fields,
        np.ones(len(fields), dtype=np.int64),
        records.quoted,
        0,
    )
    return [text or "" for text in each.column(0).to_pylist()]


def without_first(records: Records) -> Records:
    """The records after the first."""
    return Records(
        records.block,
        records.starts,
        records.ends,
        records.first[1:],
        records.width[1:],
        records.quoted,
        records.used,
    )


@functools.lru_cache(maxsize=16)
def _separating(mark: str) -> npt.NDArray[np.bool_]:
    """Which bytes end a field."""
    separates = np.zeros(256, dtype=bool)
    separates[[ord(mark), LINE_FEED, CARRIAGE_RETURN]] = True
    return separates


def split(block: Bytes, *, at_end: bool, separator: str = ",") -> Records:
    """The whole records that a block begins with; `at_end` says that the file ends with it,
    so that its last record is whole too.
    """
    separates = _separating(separator)
    is_mark = separates.copy()
    is_mark[QUOTE] = True
    marks = np.flatnonzero(is_mark[block])
    is_quote = block[marks] == QUOTE
    separators, quotes = marks[~is_quote], marks[is_quote]
    quoted = quoted_stretches(block, quotes, separates) if quotes.size else None
    if quoted is not None and quoted.opens.size:
        place = np.searchsorted(quoted.opens, separators) - 1
        separators = separators[(place < 0) | (separators > quoted.closes[place])]
    else:
        quoted = None
    ends, after, closing = _field_ends(block, separators, ord(separator), at_end=at_end)
    last = np.flatnonzero(closing)
    used = int(after[last[-1]]) if last.size else 0
    starts = np.concatenate([np.zeros(1, dtype=np.int64), after])[: len(ends)]
    first = (
        np.concatenate([np.zeros(1, dtype=np.int64), last + 1])[:-1]
        if last.size
        else np.zeros(0, dtype=np.int64)
    )
    width = last + 1 - first
    blank = (width == 1) & (starts[first] == ends[first])
    return Records(block, starts, ends, first[~blank], width[~blank], quoted, used)


def _field_ends(
    block: Bytes, separators: Places, mark: int, *, at_end: bool
) -> tuple[Places, Places, npt.NDArray[np.bool_]]:
    """Where each field ends, where the next one starts, and whether a record ends there too."""
    kinds = block[separators]
    # of a pair
    second = (kinds == LINE_FEED) & (separators > 0) & (block[separators - 1] == CARRIAGE_RETURN)
    ends = separators[~second]
    closing = kinds[~second] != mark
    after = ends + 1
    followed = (block[ends] == CARRIAGE_RETURN) & (after < len(block))
    after[followed] += block[after[followed]] == LINE_FEED
    if not at_end:
        # its line feed may be still to come
        unsure = ends.size and ends[-1] == len(block) - 1 and block[-1] == CARRIAGE_RETURN
        return (ends[:-1], after[:-1], closing[:-1]) if unsure else (ends, after, closing)
    if len(block) and not (ends.size and closing[-1] and after[-1] == len(block)):
        size = np.array([len(block)], dtype=np.int64)
        return np.concatenate([ends, size]), np.concatenate([after, size]), np.append(closing, True)
    return ends, after, closing


def quoted_stretches(block: Bytes, quotes: Places, separates: npt.NDArray[np.bool_]) -> Quoted:
    """The stretches of a block inside quotes, from the places of all its quotes."""
    return _tidy_stretches(block, quotes, separates) or _stretches_in_turn(block, quotes, separates)


def _tidy_stretches(
    block: Bytes, quotes: Places, separates: npt.NDArray[np.bool_]
) -> Quoted | None:
    """All at once, where every pair of quotes is around a whole field; else None."""
    opens, closes = quotes[0::2], quotes[1::2]
    if len(opens) != len(closes):
        return None
    begins = (opens == 0) | separates[block[opens - 1]]
    inside = closes + 1 < len(block)
    finishes = ~inside | separates[block[np.where(inside, closes + 1, 0)]]
    return (
        Quoted(opens, closes, np.ones(len(opens), dtype=bool))
        if begins.all() and finishes.all()
        else None
    )


def _stretches_in_turn(block: Bytes, quotes: Places, separates: npt.NDArray[np.bool_]) -> Quoted:
    """One quote after another, by the rule of the module."""
    places, size, found = quotes.tolist(), len(block), []
    starts_field = ((quotes == 0) | separates[block[quotes - 1]]).tolist()
    index = 0
    while index < len(places):
        if not starts_field[index]:
            index += 1
            continue
        opened, doubled = places[index], False
        index += 1
        while index + 1 < len(places) and places[index + 1] == places[index] + 1:
            index, doubled = index + 2, True
        closed = places[index] if index < len(places) else size
        index += 1
        whole = closed + 1 >= size or bool(separates[block[closed + 1]])
        found.append((opened, closed, closed < size and whole and not doubled))
    columns = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Quoted(columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].astype(bool))


def _cut(block: Bytes, low: Places, high: Places, special: dict[int, bytes]) -> Any:
    """The stretches low … high of a block as an Arrow array of bytes,
    `special` in the place of some.
    """
    ends = np.empty(2 * len(low) + 1, dtype=np.int64)
    ends[0:-1:2], ends[1::2] = low, high
    ends[-1] = high[-1] if len(high) else 0
    both = pa.Array.from_buffers(
        pa.large_binary(), 2 * len(low), [None, pa.py_buffer(ends), pa.py_buffer(block)]
    )
    cut = both.take(pa.array(np.arange(0, 2 * len(low), 2)))  # the others are what lies between
    if special:
        chosen = np.zeros(len(low), dtype=bool)
        chosen[list(special)] = True
        cut = pc.replace_with_mask(
            cut, pa.array(chosen), pa.array(list(special.values()), type=pa.large_binary())
        )
    return pc.if_else(pc.greater(pc.binary_length(cut), 0), cut, pa.scalar(None, cut.type))


def _texts(cut: Any) -> Any:
    """Bytes as text; a byte that is not UTF-8 reads as U+FFFD, and changes no other cell."""
    try:
        return cut.cast(pa.large_string())
    except pa.ArrowInvalid:
        cells: Sequence[bytes | None] = cut.to_pylist()
        return pa.array(
            [None if cell is None else cell.decode("utf-8", "replace") for cell in cells],
            type=pa.large_string(),
        )
