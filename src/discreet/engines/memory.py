"""Data in memory: arrays, lists, and pandas, polars or pyarrow tables.

Columns are read and encoded on first use, and the codes are kept (2 bytes a cell where they fit).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from discreet import kernels
from discreet.engines.bounding import Content, kept_rows
from discreet.engines.cells import (
    NOT_NUMBERS,
    Cells,
    boolean_codes,
    category_codes,
    cells_from_array,
    cells_from_sequence,
    cells_from_series,
    numbers,
    unit_labels,
)
from discreet.engines.engine import ObjectIntegers, needed_columns, refuse_unit, require_columns
from discreet.errors import DataShapeRefused
from discreet.neighbors import Neighbors
from discreet.queries import Between, Bins, Factor, GramPlan, Key, Levels, Split, SumsPlan, TallyPlan
from discreet.queries.plans import BLOCK_ROWS, term_bounds
from discreet.schema import Boolean, Category, Schema
from discreet.tally import Tally, tally_of_cells

Read = Callable[[], Cells]


class MemoryEngine:
    """Plans over columns in memory; make one with `memory_engine_from_arrays` or `memory_engine_from_frame`."""

    def __init__(self, columns: Mapping[str, Read], schema: Schema, neighbors: Neighbors, *, rows: int, source: str) -> None:
        self.schema, self.neighbors = schema, neighbors
        self._columns, self._rows, self._source = dict(columns), rows, source
        self._token = secrets.token_hex(16)
        self._lock = threading.RLock()
        self._codes: dict[Any, npt.NDArray[Any]] = {}
        self._kept: npt.NDArray[np.int64] | None = None
        self._bounded = neighbors.unit is None

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell: Python integers of shape (cells, terms)."""
        with self._lock:
            cells = self._cell_index(plan.keys)
            terms = []
            for term in plan.terms:
                low, high = term_bounds(term)
                terms.append((tuple(self._factor(factor) for factor in term), max(abs(low), abs(high)).bit_length()))
        return kernels.cell_sums(cells, plan.cells, terms)

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors: Python integers of shape (factors, factors)."""
        with self._lock:
            columns = tuple(self._factor(factor) for factor in plan.factors)
        return kernels.gram(_row_blocks(columns), len(columns), plan.block_rows, plan.product_bits)

    def tally(self, plan: TallyPlan) -> Tally:
        """How many rows hold each value of a factor's grid."""
        with self._lock:
            codes = self._factor(plan.factor)
            if plan.keys:
                codes = codes[self._cell_index(plan.keys) == 0]
        return tally_of_cells(plan.cells, kernels.places(codes, plan.factor.encoding.low, plan.stride))

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=), None under AddRemove."""
        if self.neighbors.row_count_is_public:
            return self._rows
        if not self.neighbors.unit_count_is_public:
            return None
        with self._lock:
            return len(unit_labels(self._columns[self.neighbors.unit or ""]())[1])

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {"kind": "memory", "source": self._source, "columns": sorted(self._columns)}

    def data_id(self) -> str:
        """A random token made with the engine: contents are never hashed (see `Engine.data_id`)."""
        return f"memory:{self._token}"

    def _cell_index(self, keys: tuple[Key, ...]) -> npt.NDArray[np.int32]:
        index = np.zeros(self._counted_rows(), dtype=np.int32)
        for key in keys:
            here = self._key(key)
            index = np.where((index < 0) | (here < 0), np.int32(-1), index * np.int32(key.size) + here).astype(np.int32)
        return index

    def _key(self, key: Key) -> npt.NDArray[np.int32]:
        if isinstance(key, Bins):
            return kernels.bin_index(self._values(key.column), key.edges)
        if isinstance(key, Between):
            values = self._values(key.column)
            inside = (values >= key.low) & (values <= key.high)
        elif isinstance(key, Levels):
            codes = self._level_codes(key.column)
            return np.where(codes < key.size, codes, np.int32(-1)).astype(np.int32)
        else:
            inside = np.isin(self._level_codes(key.column), np.array(key.codes, dtype=np.int32))
        outside = 1 if isinstance(key, Split) else -1
        return np.where(inside, np.int32(0), np.int32(outside)).astype(np.int32)

    def _factor(self, factor: Factor) -> npt.NDArray[Any]:
        """Codes of a number column on the factor's grid, kept rows only, cached."""
        return self._cached(factor, lambda: kernels.encode(self._values(factor.column), factor.encoding))

    def _level_codes(self, name: str) -> npt.NDArray[Any]:
        return self._cached(name, lambda: self._select(self._all_level_codes(name)))

    def _values(self, name: str) -> npt.NDArray[np.float64]:
        """Clamped numbers of the kept rows."""
        return self._select(self._all_values(name))

    def _cached(self, key: Any, make: Callable[[], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        if key not in self._codes:
            self._codes[key] = make()
        return self._codes[key]

    def _all_values(self, name: str) -> npt.NDArray[np.float64]:
        column, cells = self.schema[name], self._columns[name]()
        if isinstance(column, Boolean):
            return boolean_codes(cells, column).astype(np.float64)
        assert not isinstance(column, Category), "a plan reads numbers of a Category column"
        return kernels.clamp(numbers(cells), column)

    def _all_level_codes(self, name: str) -> npt.NDArray[Any]:
        column, cells = self.schema[name], self._columns[name]()
        if isinstance(column, Boolean):
            return boolean_codes(cells, column).astype(np.int8)
        assert isinstance(column, Category), "a plan reads levels of a number column"
        codes = category_codes(cells, column)
        return codes.astype(np.int16) if len(column.levels) < 1 << 15 else codes

    def _select(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._bound()
        return array if self._kept is None else array[self._kept]

    def _counted_rows(self) -> int:
        self._bound()
        return self._rows if self._kept is None else len(self._kept)

    def _bound(self) -> None:
        """Chooses, once, the rows of each unit that count (see `bounding`)."""
        if self._bounded:
            return
        labels, seeds = unit_labels(self._columns[self.neighbors.unit or ""]())
        contents = [self._content(name) for name in sorted(self.schema)]
        self._kept = kept_rows(labels, seeds, contents, self.neighbors.rows)
        self._bounded = True
        for name, content in zip(sorted(self.schema), contents, strict=True):
            if isinstance(self.schema[name], Category):
                self._codes[name] = self._select(content.ordered)

    def _content(self, name: str) -> Content:
        column = self.schema[name]
        if isinstance(column, Category):
            codes = self._all_level_codes(name)
            return Content(codes, codes.astype(np.int64) + 1)
        values, encoding = self._all_values(name), column.encoding()
        return Content(values, kernels.encode(values, encoding).astype(np.int64) - encoding.low)


def _row_blocks(columns: tuple[npt.NDArray[Any], ...]) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    for start in range(0, len(columns[0]), BLOCK_ROWS):
        yield tuple(column[start : start + BLOCK_ROWS] for column in columns)


def memory_engine_from_arrays(mapping: Mapping[str, Any], schema: Schema, neighbors: Neighbors) -> MemoryEngine:
    """An engine over a mapping from column names to one-dimensional arrays, series, lists or tuples."""
    if not isinstance(mapping, Mapping):
        raise _not_columns("the data", type(mapping).__name__)
    require_columns(schema, neighbors, list(mapping))
    columns, lengths = {}, {}
    for name in needed_columns(schema, neighbors):
        columns[name], lengths[name] = _array_reader(name, mapping[name], is_unit=name == neighbors.unit)
    if len(set(lengths.values())) > 1:
        raise DataShapeRefused(
            "columns of one data set", "they have different lengths: " + ", ".join(f"{name} {length}" for name, length in lengths.items()),
            "a row is one entry of every column", "pass columns of equal length")
    return MemoryEngine(columns, schema, neighbors, rows=next(iter(lengths.values())), source="arrays")


def _array_reader(name: str, column: Any, *, is_unit: bool) -> tuple[Read, int]:
    if isinstance(column, (list, tuple)):
        return lambda: cells_from_sequence(column), len(column)
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise _not_columns(f"column {name!r}", f"array of {column.ndim} dimensions")
        if is_unit and column.dtype.kind not in "iufbOUT":
            raise refuse_unit(name, str(column.dtype))
        return lambda: cells_from_array(column), len(column)
    series = nw.from_native(column, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        raise _not_columns(f"column {name!r}", type(column).__name__)
    return _series_reader(name, series, is_unit=is_unit), len(series)


def _series_reader(name: str, series: nw.Series[Any], *, is_unit: bool) -> Read:
    if is_unit and isinstance(series.dtype, NOT_NUMBERS):
        raise refuse_unit(name, str(series.dtype))
    return lambda: cells_from_series(series)


def memory_engine_from_frame(frame: Any, schema: Schema, neighbors: Neighbors) -> MemoryEngine:
    """An engine over a pandas, polars or pyarrow table (or whatever else narwhals reads)."""
    try:
        table = nw.from_native(frame, eager_only=True)
        names = list(table.columns)
    except (TypeError, ValueError, nw.exceptions.NarwhalsError):
        raise _not_columns("the data", type(frame).__name__) from None
    require_columns(schema, neighbors, names)
    columns = {name: _series_reader(name, table[name], is_unit=name == neighbors.unit) for name in needed_columns(schema, neighbors)}
    return MemoryEngine(columns, schema, neighbors, rows=len(table), source=type(frame).__module__.split(".")[0] + " table")


def _not_columns(what: str, found: str) -> DataShapeRefused:
    return DataShapeRefused(what, f"a {found} is not a column of cells" if what.startswith("column") else f"a {found} is not a table with named columns",
                            "every declared column must be found by its name, one cell a row", "pass a mapping of arrays, or a pandas, polars or pyarrow table")
