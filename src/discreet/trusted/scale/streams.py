"""Any Arrow stream as a source of batches: a fresh reader over the same rows for every pass.

A reader is the holder's own program. What is asked of it: it gives the declared columns with the
types it gave when it was declared, and the same rows in every pass, in any order and in batches of
any size. A pass that is told otherwise, or that is cut short, raises; the answer is not drawn, and
the same question may be asked again.

Theorem.  A pass that ends has read, of each column, the cells that every earlier pass read of it,
          and of the same columns the same rows, but with probability about 2**-64.
Proof.    Sums of a keyed mixing of cells, and of rows, do not depend on their order; two lists of
          different cells have the same sum by chance only, since the source does not know the key.
Checked.  tests/trusted/scale/test_streams.py
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.errors import data
from discreet.seclusion import Failed, aside
from discreet.trusted.engines.arrow_cells import plain, reading_of
from discreet.trusted.engines.batches import Batch, Task

Words = npt.NDArray[np.uint64]
MakeReader = Callable[[list[str]], Any]
Hashed = Callable[[Any], int]  # 64 bits of a cell that is no number
SEVERAL = 1 << 30  # bytes that a source of unknown size is taken to have
WEYL, FIRST, SECOND = (
    np.uint64(word) for word in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


class StreamSource:
    """What `make_reader(columns)` gives, which is called once a pass."""

    def __init__(
        self, make_reader: MakeReader, needed: Sequence[str], name: str, kind: str = "stream"
    ) -> None:
        self.kind, self.size, self._make, self._name = kind, SEVERAL, make_reader, name
        fields = aside(lambda: readable(make_reader(list(needed)))[0])
        if isinstance(fields, Failed):
            raise data.no_stream()
        self.columns: Sequence[str] = list(fields.names)
        self.types = dict(zip(fields.names, fields.types, strict=True))
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, ...], int] = {}  # of what earlier passes read

    @contextlib.contextmanager
    def reading(self, names: Sequence[str], rows: int) -> Iterator[Iterator[Task]]:
        """One pass: batches are taken from the reader in turn, and looked at side by side."""
        asked = list(names) or self.columns[:1]  # rows without a column cannot be counted
        found = PassSums(self._key, asked, self.types)
        yield self._tasks(asked, rows, found)
        with self._lock:
            known = self._sums | found.totals
            if known != found.totals | self._sums:
                raise ValueError("other rows than in an earlier pass")
            self._sums = known  # of passes that came to their end, and of no other

    def _tasks(self, names: Sequence[str], rows: int, found: PassSums) -> Iterator[Task]:
        """Batches of at most so many rows, small ones together."""
        held: list[Any] = []
        for batch in readable(self._make(list(names)))[1]:
            if any(batch.schema.field(name).type != self.types[name] for name in names):
                raise ValueError("columns of other types than were declared")
            few = batch.select(list(names))
            for start in range(0, few.num_rows, rows):
                held.append(few.slice(start, rows))
                if sum(map(len, held)) >= rows // 2:
                    yield functools.partial(found.seen, pa.Table.from_batches(held))
                    held = []
        if held:
            yield functools.partial(found.seen, pa.Table.from_batches(held))

    def unchanged(self) -> bool:
        """A stream is only seen where it is read."""
        return True

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        named = self._name.removeprefix("named:") if self._name.startswith("named:") else ""
        return {"kind": self.kind, "source": named, "columns": sorted(set(self.columns))}

    def data_id(self) -> str:
        """The name that the holder gave, or one that was made with the source."""
        return f"{self.kind}:{self._name}"


def readable(given: Any) -> tuple[pa.Schema, Iterable[Any]]:
    """The schema and the batches of a reader, of what gives one, or of batches in turn."""
    if hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.RecordBatchReader):
        given = pa.RecordBatchReader.from_stream(given)
    if isinstance(given, pa.RecordBatchReader):
        return given.schema, given
    batches = iter(given)
    first = next(batches)
    return first.schema, _chained(first, batches)


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


class PassSums:
    """Keyed sums of the cells of each column, of the rows, and their number, over one pass."""

    def __init__(
        self, key: bytes, names: Sequence[str], types: dict[str, Any], hashed: Hashed | None = None
    ) -> None:
        self._hashed = _hash if hashed is None else hashed
        self._names = [name for name in names if reading_of(types[name]) != "nothing"]
        self._keys = {name: _word(key, name) for name in self._names}
        self.totals: dict[tuple[str, ...], int]
        self._lock, self.totals = (
            threading.Lock(),
            dict.fromkeys(
                [("rows",), ("row", *sorted(self._names)), *((name, "") for name in self._names)], 0
            ),
        )

    def seen(self, batch: Any) -> Iterator[Batch]:
        """The columns of a batch, after they were added."""
        rows = np.zeros(batch.num_rows, dtype=np.uint64)
        added: dict[tuple[str, ...], int] = {("rows",): batch.num_rows}
        for name in self._names:
            mixed = mixing(words_of(batch.column(name), self._hashed) ^ self._keys[name])
            added[name, ""] = int(mixed.sum(dtype=np.uint64))
            rows += mixed
        added["row", *sorted(self._names)] = int(mixing(rows).sum(dtype=np.uint64))
        with self._lock:
            for about, value in added.items():
                self.totals[about] = (self.totals[about] + value) % (1 << 64)
        yield dict(zip(batch.column_names, batch.columns, strict=True)), batch.num_rows


def _word(key: bytes, name: str) -> np.uint64:
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), key=key, digest_size=8)
    return np.uint64(int.from_bytes(digest.digest(), "big"))


def mixing(words: Words) -> Words:
    """A bijection of 64 bits, each of which moves all (splitmix64)."""
    words = words + WEYL
    words = (words ^ (words >> np.uint64(30))) * FIRST
    words = (words ^ (words >> np.uint64(27))) * SECOND
    return words ^ (words >> np.uint64(31))


def words_of(column: Any, hashed: Hashed | None = None) -> Words:
    """A word for each cell, equal for equal cells of one column; `hashed` gives that of text or
    bytes, in this process alone where it is not given.
    """
    hashed = hashed or _hash
    array = plain(column)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_boolean(kind) or (
        pa.types.is_primitive(kind) and kind.bit_width in (8, 16, 32, 64)
    ):
        absent = np.asarray(array.is_null())
        filled = array.fill_null(pa.scalar(0, kind) if pa.types.is_integer(kind) else _zero(kind))
        values = filled.to_numpy(zero_copy_only=False)
        words = _bits(values)
        return np.where(absent, WEYL, words) if absent.any() else words
    listed = (array.cast(pa.large_binary()) if _is_text(kind) else array).dictionary_encode()
    different = [hashed(cell) for cell in listed.dictionary.to_pylist()]
    words = np.array([*different, hashed(None)], dtype=np.int64).view(np.uint64)
    found: Words = words[listed.indices.fill_null(len(different)).to_numpy(zero_copy_only=False)]
    return found


def _zero(kind: Any) -> Any:
    if pa.types.is_boolean(kind):
        return False
    return pa.scalar(np.float16(0) if pa.types.is_float16(kind) else 0, type=kind)


def _bits(values: npt.NDArray[Any]) -> Words:
    """The bits of each value; of a NaN, those of one NaN."""
    if values.dtype.kind == "f":
        wide = np.where(np.isnan(values), np.nan, values).astype(np.float64)
        return wide.view(np.uint64)
    if values.dtype.kind in "Mm":
        return values.view(np.uint64)
    return values.astype(np.int64 if values.dtype.kind != "u" else np.uint64).view(np.uint64)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_string(kind))


def _hash(cell: Any) -> int:
    return hash(repr(cell)) if not isinstance(cell, bytes) else hash(cell)
