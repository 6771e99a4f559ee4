"""Data in memory: arrays, lists, and pandas, polars or pyarrow tables.

Columns are read and encoded on first use, and the codes are kept (2 bytes a cell where they fit).
"""

from __future__ import annotations

import functools
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet.errors import data
from discreet.neighbors import Neighbors
from discreet.schema import Boolean, Category, Date, Integer, Open, Real, Schema
from discreet.seclusion import FAILED, aside
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import (
    Between,
    Bins,
    Cycle,
    Held,
    Key,
    Levels,
    Split,
    may_leave_out,
)
from discreet.specs.queries.plans import BLOCK_ROWS, Factor, GramPlan, SumsPlan, term_bounds
from discreet.specs.statistics import COUNTED_CELLS, Histogram, histogram_of_counts
from discreet.trusted.engines import kernels
from discreet.trusted.engines.bounding import Content, kept_rows, unit_seed
from discreet.trusted.engines.cells import (
    Cells,
    boolean_codes,
    category_codes,
    numbers,
    unit_labels,
)
from discreet.trusted.engines.columns import (
    NOT_NUMBERS,
    cells_from_array,
    cells_from_sequence,
    cells_from_series,
)
from discreet.trusted.engines.engine import (
    ObjectIntegers,
    State,
    needed_columns,
    require_columns,
)

Read = Callable[[], Cells]


class MemoryEngine:
    """Plans over columns in memory; make one with `memory_engine_from_arrays` or
    `memory_engine_from_frame`.
    """

    def __init__(
        self,
        columns: Mapping[str, Read],
        schema: Schema,
        neighbors: Neighbors,
        *,
        rows: int,
        source: str,
    ) -> None:
        self.schema, self.neighbors, self.rows = schema, neighbors, rows
        self.remembered: dict[type[Any], Any] = {}
        self.scale = None
        self.lock = threading.RLock()  # held while columns are read for a plan
        self._columns, self._source = dict(columns), source
        self._token, self.has_name = secrets.token_hex(16), False
        self._codes: dict[Any, npt.NDArray[Any]] = {}
        self._texts: dict[str, list[str]] = {}  # of the labels of Open columns, in order
        self._kept: npt.NDArray[np.int64] | None = None
        self.bounded = neighbors.unit is None  # whether the rows that count are chosen
        self.known_units: Callable[[], npt.NDArray[Any]] | None = None  # of the rows that count

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell: Python integers of shape (cells, terms)."""
        sums = sums_of(plan, self.rows)
        self.add_sums(plan, sums)
        return sums.total()

    def add_sums(self, plan: SumsPlan, sums: kernels.CellSums) -> None:
        """Adds what `sums` gives to the sums of other rows."""
        with self.lock:
            terms = [tuple(self.factor_codes(factor) for factor in term) for term in plan.terms]
            cells = self.cell_index(plan.keys)
            if plan.absent:
                held = self.cell_index(tuple(Held(key.column) for key in plan.keys))
                cells = np.where(held < 0, np.int32(plan.cells - 1), cells)
        sums.add(cells, terms)

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors:
        Python integers of shape (factors, factors).
        """
        with self.lock:
            columns = tuple(self.factor_codes(factor) for factor in plan.factors)
        return kernels.gram(_row_blocks(columns), len(columns), plan.block_rows, plan.product_bits)

    def histogram(self, plan: HistogramPlan) -> Histogram:
        """How many rows hold each value of a factor's grid."""
        with self.lock:
            codes = self.factor_codes(plan.factor)
            if plan.keys:
                codes = codes[self.cell_index(plan.keys) == 0]
        low, cells = plan.factor.encoding.low, plan.cells
        if cells <= COUNTED_CELLS and len(codes) >= cells // 8:
            return histogram_of_counts(kernels.grid_counts(codes, low, plan.stride, cells))
        distinct, counts = np.unique(codes, return_counts=True)
        return Histogram(cells, kernels.places(distinct, low, plan.stride), counts.astype(np.int64))

    def fold(
        self,
        names: Sequence[str],
        start: Callable[[], State],
        add: Callable[[State, int, MemoryEngine], object],
        *,
        batch_rows: int | None = None,
        bounded: bool = True,
    ) -> list[State]:
        """add(state, 0, self): all rows are one batch."""
        state = start()
        add(state, 0, self)
        return [state]

    def whole(self) -> MemoryEngine:
        """These rows."""
        return self

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=),
        None under AddRemove.
        """
        if self.neighbors.row_count_is_public:
            return self.rows
        if not self.neighbors.unit_count_is_public:
            return None
        with self.lock:
            return len(self.units()[1])

    def unchanged(self) -> bool:
        """Arrays are what they are when they are read."""
        return True

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {"kind": "memory", "source": self._source, "columns": sorted(self._columns)}

    def data_id(self) -> str:
        """The name that the holder gave, or a random token made with the engine: contents are never
        hashed (see `Engine.data_id`).
        """
        return f"memory:{self._token}"

    def call(self, name: str) -> None:
        """Gives the data a name, by which a later process can mean them too; the holder vouches
        that it always means these rows.
        """
        self._token, self.has_name = f"named:{name}", True

    def cell_index(self, keys: tuple[Key, ...]) -> npt.NDArray[Any]:
        """The cell of each kept row, −1 for none."""
        if not keys:
            return np.zeros(self.counted_rows(), dtype=np.int32)
        filters = [self._key(key) for key in keys if key.size == 1]  # of 0 and −1 alone
        index: npt.NDArray[Any] | None = None
        for key in (key for key in keys if key.size > 1):
            here = self._key(key)
            if index is not None:
                here = np.where((index < 0) | (here < 0), -1, index * np.int32(key.size) + here)
            index = here if index is None else here.astype(np.int32)
        if index is not None and not filters:
            return index
        kept = functools.reduce(np.minimum, filters)
        return kept if index is None else np.where(kept < 0, np.int32(-1), index.astype(np.int32))

    def _key(self, key: Key) -> npt.NDArray[Any]:
        if isinstance(key, Held):
            return self._cached(
                ("held", key.column), lambda: self._held(key, self._read(key.column))
            )
        if isinstance(key, Bins):
            return kernels.bin_index(self.values(key.column), key.edges)
        if isinstance(key, Cycle):
            turned = np.floor((self.values(key.column) + key.shift) / key.step) % key.size
            return np.where(np.isnan(turned), -1, turned).astype(np.int32)
        if isinstance(key, Between):
            values = self.values(key.column)
            inside = (values >= key.low) & (values <= key.high)
        elif isinstance(key, Levels):
            codes, column = self.level_codes(key.column), self.schema[key.column]
            if key.size >= (len(column.levels) if isinstance(column, Category) else 2):
                return codes  # each is below the size
            return np.where(codes < key.size, codes, np.int32(-1)).astype(np.int32)
        else:
            inside = np.isin(self.level_codes(key.column), np.array(key.codes, dtype=np.int32))
        outside = 1 if isinstance(key, Split) else -1
        return np.where(inside, np.int32(0), np.int32(outside)).astype(np.int32)

    def _held(self, key: Held, read: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """0 where a cell holds a value, −1 where it has none (NaN, or the code −1, with nothing
        filled in).
        """
        if not may_leave_out(key, self.schema):
            return np.zeros(self.counted_rows(), dtype=np.int8)
        absent = np.isnan(read) if read.dtype.kind == "f" else read < 0
        return self.select(-absent.astype(np.int8))

    def _read(self, name: str) -> npt.NDArray[Any]:
        """A column as read: numbers, or codes of levels; all rows."""
        column = self.schema[name]
        if isinstance(column, (Real, Integer)):
            return numbers(self.cells(name))
        return self._all_level_codes(name)

    def factor_codes(self, factor: Factor) -> npt.NDArray[Any]:
        """Codes of a number column on the factor's grid, kept rows only, cached."""
        return self._cached(_grid_of(factor), lambda: self.select(self._encoded(factor)))

    def _encoded(self, factor: Factor) -> npt.NDArray[Any]:
        column, read = self.schema[factor.column], self._read(factor.column)
        assert not isinstance(column, (Category, Open)), (
            "a plan reads numbers of a column of levels"
        )
        held = Held(factor.column)
        if may_leave_out(held, self.schema):  # text is parsed once, for both
            self._cached(("held", factor.column), lambda: self._held(held, read))
        if isinstance(column, Boolean):
            filled = np.where(read < 0, np.float64(column.fill), read)
            return kernels.encode(filled, factor.encoding)
        return kernels.clamp_and_encode(read, column, factor.encoding)

    def level_codes(self, name: str) -> npt.NDArray[Any]:
        """Codes of a column of levels, kept rows only, cached."""
        return self._cached(("levels", name), lambda: self.select(self._all_level_codes(name)))

    def values(self, name: str) -> npt.NDArray[np.float64]:
        """Clamped numbers of the kept rows; NaN where a cell has no value."""
        return self.select(self._all_values(name))

    def _cached(self, key: Any, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if key not in self._codes:
            self._codes[key] = make()
        return self._codes[key]

    def _all_values(self, name: str) -> npt.NDArray[np.float64]:
        column, cells = self.schema[name], self.cells(name)
        if isinstance(column, Boolean):
            codes = boolean_codes(cells, column)
            return np.where(codes < 0, np.nan, codes.astype(np.float64))
        assert not isinstance(column, (Category, Open)), (
            "a plan reads numbers of a column that has none"
        )
        return kernels.clamp(numbers(cells), column)

    def _all_level_codes(self, name: str) -> npt.NDArray[Any]:
        column, cells = self.schema[name], self.cells(name)
        if isinstance(column, Boolean):
            return boolean_codes(cells, column).astype(np.int8)
        assert isinstance(column, Category), "a plan reads levels of a number column"
        codes = category_codes(cells, column)
        return codes.astype(np.int16) if len(column.levels) < 1 << 15 else codes

    def open_labels(self, name: str) -> tuple[npt.NDArray[Any], list[str]]:
        """Labels of an Open column's keys in the kept rows (−1: no key), and their texts, in
        order.
        """
        labels = self._cached(("open", name), lambda: self.select(self._all_open_labels(name)))
        return labels, self._texts[name]

    def _all_open_labels(self, name: str) -> npt.NDArray[np.int64]:
        from discreet.trusted.extensions.open_keys.labels import ordered_labels

        assert isinstance(self.schema[name], Open), "a plan reads keys of a column that is not open"
        labels, self._texts[name] = ordered_labels(self.cells(name))
        return labels

    def cells(self, name: str, *, dated: bool = True) -> Cells:
        """The cells of a column, all rows; dates as numbers, or as they came."""
        cells, column = self._columns[name](), self.schema[name]
        if not (dated and isinstance(column, Date)):
            return cells
        from discreet.trusted.extensions.date_cells import date_cells

        return date_cells(cells, column)

    def units(self) -> tuple[npt.NDArray[np.int64], list[str]]:
        """A label of each row's unit (−1: none), all rows, and the seed text of each label."""
        return unit_labels(self._columns[self.neighbors.unit or ""]())

    def counted_units(self) -> npt.NDArray[Any]:
        """A label of the unit of each row that counts."""
        narrow = np.int32 if self.rows < 1 << 31 else np.int64
        read = self.known_units or (lambda: self.select(self.units()[0].astype(narrow)))
        return self._cached(("units",), read)

    def has_codes(self, factor: Factor) -> bool:
        """Whether codes of a factor were made already."""
        return _grid_of(factor) in self._codes

    def select(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Entries of the rows that count, of one entry a row."""
        kept = self.kept_rows()
        return array if kept is None else array[kept]

    def kept_rows(self) -> npt.NDArray[np.int64] | None:
        """The rows of each unit that count; None: all rows."""
        self._bound()
        return self._kept

    def counted_rows(self) -> int:
        """How many rows count."""
        kept = self.kept_rows()
        return self.rows if kept is None else len(kept)

    def _bound(self) -> None:
        """Chooses, once, the rows of each unit that count (see `bounding`)."""
        if self.bounded:
            return
        labels, seeds = self.units()
        contents = [self.content(name) for name in sorted(self.schema)]
        self._kept = kept_rows(labels, seeds, contents, self.neighbors.rows)
        self.bounded = True
        for name, content in zip(sorted(self.schema), contents, strict=True):
            if isinstance(self.schema[name], (Category, Open)):
                kind = "levels" if isinstance(self.schema[name], Category) else "open"
                self._codes[kind, name] = self.select(content.ordered)

    def content(self, name: str) -> Content:
        column = self.schema[name]
        if isinstance(column, Category):
            codes = self._all_level_codes(name)
            return Content(codes, codes.astype(np.int64) + 1)
        if isinstance(column, Open):
            labels = self._all_open_labels(name)
            seeds = [*(unit_seed(text) + 1 for text in self._texts[name]), 0]
            return Content(labels, np.array(seeds, dtype=np.int64)[labels])
        values, encoding = self._all_values(name), column.encoding()
        absent = np.isnan(values)
        codes = kernels.encode(np.where(absent, encoding.center, values), encoding)
        hashed = np.where(absent, encoding.high + 1, codes.astype(np.int64)) - encoding.low
        return Content(np.where(absent, np.inf, values), hashed)


def _grid_of(factor: Factor) -> tuple[Any, ...]:
    """What codes of a factor are kept under: plain values, which nobody can change."""
    grid = factor.encoding
    return ("grid", factor.column, grid.center, grid.per_unit, grid.low, grid.high)


def sums_of(plan: SumsPlan, rows: int) -> kernels.CellSums:
    """The sums of a plan over no rows yet; about so many will come."""
    bits = [max(map(abs, term_bounds(term))).bit_length() for term in plan.terms]
    return kernels.CellSums(plan.cells, bits, kernels.scatter_for(rows))


def _row_blocks(columns: tuple[npt.NDArray[Any], ...]) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    for start in range(0, len(columns[0]), BLOCK_ROWS):
        yield tuple(column[start : start + BLOCK_ROWS] for column in columns)


def memory_engine_from_arrays(
    mapping: Mapping[str, Any], schema: Schema, neighbors: Neighbors
) -> MemoryEngine:
    """An engine over a mapping from column names to one-dimensional arrays, series,
    lists or tuples.
    """
    if not isinstance(mapping, Mapping):
        raise data.not_a_table(type(mapping).__name__)
    require_columns(schema, neighbors, list(mapping))
    columns, lengths = {}, {}
    for name in needed_columns(schema, neighbors):
        columns[name], lengths[name] = _array_reader(
            name, mapping[name], is_unit=name == neighbors.unit
        )
    if len(set(lengths.values())) > 1:
        raise data.different_lengths(lengths)
    return MemoryEngine(
        columns, schema, neighbors, rows=next(iter(lengths.values())), source="arrays"
    )


def _array_reader(name: str, column: Any, *, is_unit: bool) -> tuple[Read, int]:
    if isinstance(column, (list, tuple)):
        return lambda: cells_from_sequence(column), len(column)
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise data.not_a_column(name, f"array of {column.ndim} dimensions")
        if is_unit and column.dtype.kind not in "iufbOUT":
            raise data.unit_without_ids(name, str(column.dtype))
        return lambda: cells_from_array(column), len(column)
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise data.not_a_column(name, type(column).__name__)
    return _series_reader(name, series, is_unit=is_unit), len(series)


def _series_reader(name: str, series: nw.Series[Any], *, is_unit: bool) -> Read:
    if is_unit and isinstance(series.dtype, NOT_NUMBERS):
        raise data.unit_without_ids(name, str(series.dtype))
    return lambda: cells_from_series(series)


def memory_engine_from_frame(frame: Any, schema: Schema, neighbors: Neighbors) -> MemoryEngine:
    """An engine over a pandas, polars or pyarrow table, or whatever else narwhals reads; a table
    that is computed on demand is carried out once, for the needed columns.
    """
    try:
        table = nw.from_native(frame)
        names = table.collect_schema().names()
    except Exception:
        raise data.not_a_frame(frame) from None
    require_columns(schema, neighbors, names)
    if isinstance(table, nw.LazyFrame):
        wanted = table.select(needed_columns(schema, neighbors))
        collected = aside(lambda: wanted.collect())
        if collected is FAILED:
            raise data.not_collected(type(frame).__name__)
        table = collected
    columns = {
        name: _series_reader(name, table[name], is_unit=name == neighbors.unit)
        for name in needed_columns(schema, neighbors)
    }
    return MemoryEngine(
        columns,
        schema,
        neighbors,
        rows=len(table),
        source=type(frame).__module__.split(".")[0] + " table",
    )
