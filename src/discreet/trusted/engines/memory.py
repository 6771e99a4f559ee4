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

from discreet.errors import DataShapeRefused
from discreet.neighbors import Neighbors
from discreet.schema import Boolean, Category, Integer, Open, Real, Schema
from discreet.specs.estimating.components import LevelComponent
from discreet.specs.estimating.model import EstimatingPlan, Model
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Between, Bins, Key, Levels, Split
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.specs.queries.plans import BLOCK_ROWS, Factor, GramPlan, SumsPlan, term_bounds
from discreet.specs.statistics import (
    COUNTED_CELLS,
    Histogram,
    KeyCounts,
    histogram_of_counts,
    key_counts,
)
from discreet.trusted.engines import kernels
from discreet.trusted.engines.bounding import Content, kept_rows, unit_seed
from discreet.trusted.engines.cells import (
    NOT_NUMBERS,
    Cells,
    boolean_codes,
    category_codes,
    cells_from_array,
    cells_from_sequence,
    cells_from_series,
    numbers,
    open_labels,
    unit_labels,
)
from discreet.trusted.engines.engine import (
    ObjectIntegers,
    needed_columns,
    refuse_unit,
    require_columns,
)
from discreet.trusted.extensions.estimating.rows import ModelCodes, ModelRows, Unread
from discreet.trusted.extensions.parts import balanced_parts, independent_parts, rejections

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
        self.schema, self.neighbors = schema, neighbors
        self._columns, self._rows, self._source = dict(columns), rows, source
        self._token = secrets.token_hex(16)
        self._lock = threading.RLock()
        self._codes: dict[Any, npt.NDArray[Any]] = {}
        self._texts: dict[str, list[str]] = {}  # of the labels of Open columns, in order
        self._kept: npt.NDArray[np.int64] | None = None
        self._bounded = neighbors.unit is None
        self._models = ModelRows(self.model_codes)

    def sums(self, plan: SumsPlan) -> ObjectIntegers:
        """Σ of each term over the rows of each cell: Python integers of shape (cells, terms)."""
        sums = sums_of(plan, self._rows)
        self.add_sums(plan, sums)
        return sums.total()

    def add_sums(self, plan: SumsPlan, sums: kernels.CellSums) -> None:
        """Adds what `sums` gives to the sums of other rows."""
        with self._lock:
            cells = self._cell_index(plan.keys)
            terms = [tuple(self._factor(factor) for factor in term) for term in plan.terms]
        sums.add(cells, terms)

    def gram(self, plan: GramPlan) -> ObjectIntegers:
        """Σ of all pairwise products of the factors:
        Python integers of shape (factors, factors).
        """
        with self._lock:
            columns = tuple(self._factor(factor) for factor in plan.factors)
        return kernels.gram(_row_blocks(columns), len(columns), plan.block_rows, plan.product_bits)

    def histogram(self, plan: HistogramPlan) -> Histogram:
        """How many rows hold each value of a factor's grid."""
        with self._lock:
            codes = self._factor(plan.factor)
            if plan.keys:
                codes = codes[self._cell_index(plan.keys) == 0]
        low, cells = plan.factor.encoding.low, plan.cells
        if cells <= COUNTED_CELLS and len(codes) >= cells // 8:
            return histogram_of_counts(kernels.grid_counts(codes, low, plan.stride, cells))
        distinct, counts = np.unique(codes, return_counts=True)
        return Histogram(cells, kernels.places(distinct, low, plan.stride), counts.astype(np.int64))

    def keys(self, plan: OpenPlan) -> KeyCounts:
        """How many rows hold each key that nobody declared."""
        with self._lock:
            columns = [(self._open_labels(name), len(self._texts[name])) for name in plan.open]
            if plan.keys:
                cells = self._cell_index(plan.keys)
                if plan.cells > 1:
                    columns.append((cells, plan.cells))
                else:
                    columns[0] = (np.where(cells < 0, np.int64(-1), columns[0][0]), columns[0][1])
            texts = [self._texts[name] for name in plan.open]
        parts, counts = kernels.grouped(columns)
        if plan.plain:
            return key_counts(texts[0], counts)
        cells_held = parts[len(texts)].tolist() if plan.cells > 1 else [0] * len(counts)
        held = [[words[label] for label in part] for words, part in zip(texts, parts, strict=False)]
        return key_counts(
            [plan.name(words, cell) for *words, cell in zip(*held, cells_held, strict=True)], counts
        )

    def estimating(self, plan: EstimatingPlan | ResidualPlan) -> Any:
        """The sums of an estimating equation, exact."""
        return self._models.sums(plan)

    def model_codes(self, model: Model) -> ModelCodes:
        """Codes of a model's pieces and response in the rows that its filters keep."""
        with self._lock:
            chosen = (
                np.flatnonzero(self._cell_index(model.keys) == 0) if model.keys else slice(None)
            )
            components = {component for column in model.columns for component in column.components}
            codes = {
                component: self._level_codes(component.column)[chosen]
                if isinstance(component, LevelComponent)
                else self._piece_codes(component.factor, chosen)
                for component in components
            }
            response = None
            if model.response is not None:
                whole = (
                    self._factor(model.response.factor)
                    if model.response.factor is not None
                    else self._level_codes(model.response.column)
                )
                response = whole[chosen]
            rows = len(chosen) if isinstance(chosen, np.ndarray) else self._counted_rows()
        return codes, response, rows

    def _piece_codes(self, factor: Factor, chosen: Any) -> npt.NDArray[Any] | Unread:
        """Codes of a number column in the chosen rows: as given, where reading it again is free,
        so that no second copy is kept.
        """
        column, cells = self.schema[factor.column], self._columns[factor.column]()
        if (
            factor in self._codes
            or not isinstance(column, (Real, Integer))
            or cells.kind != "number"
            or self._columns[factor.column]().values is not cells.values
        ):
            return np.asarray(self._factor(factor)[chosen])
        self._bound()
        rows = (
            self._kept
            if isinstance(chosen, slice)
            else chosen
            if self._kept is None
            else self._kept[chosen]
        )
        return Unread(cells, column, factor.encoding, rows)

    def parts(self, plan: PartsPlan) -> int:
        """In how many random parts of the rows a caller's test rejects;
        a unit's rows are in one part.
        """
        with self._lock:
            if self.neighbors.unit is None:
                assigned = (
                    balanced_parts if self.neighbors.row_count_is_public else independent_parts
                )(self._rows, plan.parts)
            else:
                labels, seeds = unit_labels(self._columns[self.neighbors.unit]())
                assigned = independent_parts(len(seeds), plan.parts)[self._select(labels)]
            columns = [self._given(name) for name in plan.columns]
            if plan.keys:
                chosen = np.flatnonzero(self._cell_index(plan.keys) == 0)
                assigned, columns = assigned[chosen], [column[chosen] for column in columns]
        return rejections(plan, columns, assigned)

    def _given(self, name: str) -> npt.NDArray[Any]:
        """A column as a caller's test gets it: clamped numbers, True and False,
        or declared levels (None where there is none).
        """
        column = self.schema[name]
        if isinstance(column, Category):
            return np.asarray(
                np.array([*column.levels, None], dtype=object)[self._level_codes(name)]
            )
        return (
            np.asarray(self._values(name) == 1.0)
            if isinstance(column, Boolean)
            else self._values(name)
        )

    def public_count(self) -> int | None:
        """Rows under row-level Replace, distinct units under Replace(unit=),
        None under AddRemove.
        """
        if self.neighbors.row_count_is_public:
            return self._rows
        if not self.neighbors.unit_count_is_public:
            return None
        with self._lock:
            return len(unit_labels(self._columns[self.neighbors.unit or ""]())[1])

    def unchanged(self) -> bool:
        """Arrays are what they are when they are read."""
        return True

    def describe(self) -> dict[str, Any]:
        """Public facts only."""
        return {"kind": "memory", "source": self._source, "columns": sorted(self._columns)}

    def data_id(self) -> str:
        """A random token made with the engine: contents are never hashed (see `Engine.data_id`)."""
        return f"memory:{self._token}"

    def _cell_index(self, keys: tuple[Key, ...]) -> npt.NDArray[Any]:
        if not keys:
            return np.zeros(self._counted_rows(), dtype=np.int32)
        index = self._key(keys[0])
        for key in keys[1:]:
            here = self._key(key)
            index = np.where(
                (index < 0) | (here < 0), np.int32(-1), index * np.int32(key.size) + here
            ).astype(np.int32)
        return index

    def _key(self, key: Key) -> npt.NDArray[Any]:
        if isinstance(key, Bins):
            return kernels.bin_index(self._values(key.column), key.edges)
        if isinstance(key, Between):
            values = self._values(key.column)
            inside = (values >= key.low) & (values <= key.high)
        elif isinstance(key, Levels):
            codes, column = self._level_codes(key.column), self.schema[key.column]
            if key.size >= (
                2
                if isinstance(column, Boolean)
                else len(column.levels)
                if isinstance(column, Category)
                else 0
            ):
                return codes  # each is below the size
            return np.where(codes < key.size, codes, np.int32(-1)).astype(np.int32)
        else:
            inside = np.isin(self._level_codes(key.column), np.array(key.codes, dtype=np.int32))
        outside = 1 if isinstance(key, Split) else -1
        return np.where(inside, np.int32(0), np.int32(outside)).astype(np.int32)

    def _factor(self, factor: Factor) -> npt.NDArray[Any]:
        """Codes of a number column on the factor's grid, kept rows only, cached."""
        return self._cached(factor, lambda: self._select(self._encoded(factor)))

    def _encoded(self, factor: Factor) -> npt.NDArray[Any]:
        column, encoding = self.schema[factor.column], factor.encoding
        if isinstance(column, Boolean):
            return kernels.encode(self._all_values(factor.column), encoding)
        assert not isinstance(column, (Category, Open)), (
            "a plan reads numbers of a column of levels"
        )
        return kernels.clamp_and_encode(numbers(self._columns[factor.column]()), column, encoding)

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
        assert not isinstance(column, (Category, Open)), (
            "a plan reads numbers of a column that has none"
        )
        return kernels.clamp(numbers(cells), column)

    def _all_level_codes(self, name: str) -> npt.NDArray[Any]:
        column, cells = self.schema[name], self._columns[name]()
        if isinstance(column, Boolean):
            return boolean_codes(cells, column).astype(np.int8)
        assert isinstance(column, Category), "a plan reads levels of a number column"
        codes = category_codes(cells, column)
        return codes.astype(np.int16) if len(column.levels) < 1 << 15 else codes

    def _open_labels(self, name: str) -> npt.NDArray[Any]:
        return self._cached(name, lambda: self._select(self._all_open_labels(name)))

    def _all_open_labels(self, name: str) -> npt.NDArray[np.int64]:
        """Labels of an Open column's keys, in the order of their texts (−1: no key)."""
        assert isinstance(self.schema[name], Open), "a plan reads keys of a column that is not open"
        labels, texts = open_labels(self._columns[name]())
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self._texts[name] = [texts[place] for place in order]
        places = np.full(len(texts) + 1, -1, dtype=np.int64)
        places[order] = np.arange(len(texts))
        return places[labels]

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
            if isinstance(self.schema[name], (Category, Open)):
                self._codes[name] = self._select(content.ordered)

    def _content(self, name: str) -> Content:
        column = self.schema[name]
        if isinstance(column, Category):
            codes = self._all_level_codes(name)
            return Content(codes, codes.astype(np.int64) + 1)
        if isinstance(column, Open):
            labels = self._all_open_labels(name)
            return Content(
                labels,
                np.array([*(unit_seed(text) + 1 for text in self._texts[name]), 0], dtype=np.int64)[
                    labels
                ],
            )
        values, encoding = self._all_values(name), column.encoding()
        return Content(values, kernels.encode(values, encoding).astype(np.int64) - encoding.low)


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
        raise _not_columns("the data", type(mapping).__name__)
    require_columns(schema, neighbors, list(mapping))
    columns, lengths = {}, {}
    for name in needed_columns(schema, neighbors):
        columns[name], lengths[name] = _array_reader(
            name, mapping[name], is_unit=name == neighbors.unit
        )
    if len(set(lengths.values())) > 1:
        raise DataShapeRefused(
            "columns of one data set",
            "they have different lengths: " + _other_lengths(lengths),
            "a row is one entry of every column",
            "pass columns of equal length",
        )
    return MemoryEngine(
        columns, schema, neighbors, rows=next(iter(lengths.values())), source="arrays"
    )


def _other_lengths(lengths: Mapping[str, int]) -> str:
    """Which columns are not as long as the first, without saying how long any is:
    that may be private.
    """
    first, *others = lengths
    return ", ".join(name for name in others if lengths[name] != lengths[first]) + f" and {first}"


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


def _not_columns(what: str, found: str) -> DataShapeRefused:
    return DataShapeRefused(
        what,
        f"a {found} is not a column of cells"
        if what.startswith("column")
        else f"a {found} is not a table with named columns",
        "every declared column must be found by its name, one cell a row",
        "pass a mapping of arrays, or a pandas, polars or pyarrow table",
    )
