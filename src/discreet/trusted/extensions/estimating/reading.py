"""Plans of estimating equations over an engine: the model's rows are read once, batch by batch,
and kept as whole numbers, two bytes a cell, in memory or on disk.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import SourceChanged
from discreet.schema import Integer, Real
from discreet.specs.estimating.components import LevelComponent
from discreet.specs.estimating.model import EstimatingPlan, Model
from discreet.specs.estimating.networks import NetworkPlan
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.queries.plans import Factor
from discreet.trusted.engines.cells import Cells
from discreet.trusted.engines.engine import Engine, needed_columns
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.extensions.estimating.rows import (
    KeptRows,
    ModelCodes,
    ModelRows,
    UnitLabels,
    Unread,
    encoded_matrix,
)
from discreet.trusted.later import later

_STORED_ROWS = later("discreet.trusted.scale.spill", "StoredRows")
Place = tuple[int, int]  # the number of a task, and of a batch of it


def model_sums(engine: Engine, plan: EstimatingPlan | ResidualPlan | NetworkPlan) -> Any:
    """The sums of an estimating equation, or counts of residuals, exact."""
    if not engine.unchanged():
        raise SourceChanged()
    fresh = ModelRows(lambda model: read_rows(engine, model))
    rows: ModelRows = engine.remembered.setdefault(ModelRows, fresh)
    return rows.sums(plan)


class Gathered:
    """Rows of one array, which come in batches: in memory, up to the engine's limits, then on
    disk; in the order of their places at the end.
    """

    def __init__(self, limits: Any) -> None:
        self._folder = None if limits is None else limits.folder
        self._most = 0 if limits is None else limits.held
        self._lock, self._bytes = threading.Lock(), 0
        self._held: dict[Place, npt.NDArray[Any]] = {}
        self._stored: Any = None

    def add(self, place: Place, rows: npt.NDArray[Any]) -> None:
        """The rows of one batch."""
        with self._lock:
            self._held[place] = rows
            self._bytes += rows.nbytes
            if self._folder is None or (self._stored is None and self._bytes <= self._most):
                return
            if self._stored is None:
                self._stored = _STORED_ROWS(self._folder, rows.dtype, *rows.shape[1:2] or (None,))
            moved, self._held = self._held, {}
        for here, some in moved.items():
            self._stored.put(here, some)

    def rows(self) -> Any:
        """All rows: an array, or what is read like one."""
        if self._stored is not None:
            return self._stored.sealed()
        ordered = [self._held.pop(place) for place in sorted(self._held)]
        return ordered[0] if len(ordered) == 1 else np.concatenate(ordered)


class _Parts:
    """What the batches of a pass add to the rows of a model."""

    def __init__(self, engine: Engine, model: Model) -> None:
        self._model, self._lock = model, threading.Lock()
        self._matrix, self._response, self._units = (Gathered(engine.scale) for _ in range(3))
        self._rows: dict[Place, int] = {}
        self._in_batches = engine.neighbors.unit is not None and not isinstance(
            engine, MemoryEngine
        )

    def add(self, number: int, batch: MemoryEngine) -> None:
        """The rows of one batch; batches of one number come in turn."""
        codes, response, rows = model_codes(batch, self._model)
        matrix = encoded_matrix(self._model.columns, codes, rows)
        with self._lock:
            place = number, sum(one == number for one, _ in self._rows)
            self._rows[place] = rows
        self._matrix.add(place, matrix)
        if response is not None:
            self._response.add(place, np.asarray(response))
        if self._in_batches:
            self._units.add(place, unit_labels_of(batch, self._model))

    def are_none(self) -> bool:
        """Whether no batch came."""
        return not self._rows

    def all(self, engine: Engine) -> KeptRows:
        """All rows of the model."""
        response = self._response.rows() if self._model.response is not None else None
        if not self._in_batches:
            return KeptRows(
                self._matrix.rows(), response, lambda: _units_at_once(engine, self._model)
            )
        units, sizes = self._units.rows(), [self._rows[place] for place in sorted(self._rows)]
        return KeptRows(self._matrix.rows(), response, lambda: _in_slices(units, sizes))


def read_rows(engine: Engine, model: Model) -> KeptRows:
    """The rows of a model in one pass, batch after batch in the order of the source.

    Labels of units are read in the same pass: a source may give its rows in another order next
    time.
    """
    parts = _Parts(engine, model)
    engine.fold(model.reads, lambda: parts, lambda to, number, batch: to.add(number, batch))
    if parts.are_none():
        parts.add(0, no_rows(engine))
    return parts.all(engine)


def _units_at_once(engine: Engine, model: Model) -> Iterator[UnitLabels]:
    labels = unit_labels_of(engine.whole(), model)
    yield slice(0, len(labels)), labels


def _in_slices(units: Any, sizes: Sequence[int]) -> Iterator[UnitLabels]:
    start = 0
    for rows in sizes:
        yield slice(start, start + rows), units[start : start + rows]
        start += rows


def unit_labels_of(rows: MemoryEngine, model: Model) -> npt.NDArray[Any]:
    """A label of the unit of each row that the model's filters keep."""
    with rows.lock:
        labels = rows.counted_units()
        return np.asarray(labels[rows.cell_index(model.keys) == 0] if model.keys else labels)


def no_rows(engine: Engine) -> MemoryEngine:
    columns = {
        name: lambda: Cells("nothing", None, None, 0)
        for name in needed_columns(engine.schema, engine.neighbors)
    }
    return MemoryEngine(columns, engine.schema, engine.neighbors, rows=0, source="no rows")


def model_codes(rows: MemoryEngine, model: Model) -> ModelCodes:
    """Codes of a model's components and response in the rows that its filters keep."""
    with rows.lock:
        chosen = _chosen(rows.cell_index(model.keys) == 0) if model.keys else slice(None)
        components = {component for column in model.columns for component in column.components}
        codes = {
            component: rows.level_codes(component.column)[chosen]
            if isinstance(component, LevelComponent)
            else _number_codes(rows, component.factor, chosen)
            for component in components
        }
        response = None
        if model.response is not None:
            whole = (
                rows.factor_codes(model.response.factor)
                if model.response.factor is not None
                else rows.level_codes(model.response.column)
            )
            response = whole[chosen]
        count = len(chosen) if isinstance(chosen, np.ndarray) else rows.counted_rows()
    return codes, response, count


def _chosen(kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64] | slice:
    """The places of the rows that are kept."""
    return slice(None) if kept.all() else np.flatnonzero(kept)


def _number_codes(rows: MemoryEngine, factor: Factor, chosen: Any) -> npt.NDArray[Any] | Unread:
    """Codes of a number column in the chosen rows: as given, where reading it again is free,
    so that no second copy is kept.
    """
    column, cells = rows.schema[factor.column], rows.cells(factor.column)
    if (
        rows.has_codes(factor)
        or not isinstance(column, (Real, Integer))
        or cells.kind != "number"
        or rows.cells(factor.column).values is not cells.values
    ):
        return np.asarray(rows.factor_codes(factor)[chosen])
    kept = rows.kept_rows()
    places = kept if isinstance(chosen, slice) else chosen if kept is None else kept[chosen]
    return Unread(cells, column, factor.encoding, places)
