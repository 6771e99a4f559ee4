"""Plans of estimating equations over an engine: the model's rows are read once, batch by batch,
and kept as whole numbers, two bytes a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from discreet.trusted.extensions.estimating.rows import ModelCodes, ModelRows, Unread


def model_sums(engine: Engine, plan: EstimatingPlan | ResidualPlan | NetworkPlan) -> Any:
    """The sums of an estimating equation, or counts of residuals, exact."""
    if not engine.unchanged():
        raise SourceChanged()
    fresh = ModelRows(
        lambda model: _codes_of(engine, model), lambda model: _units_of(engine, model)
    )
    rows: ModelRows = engine.remembered.setdefault(ModelRows, fresh)
    return rows.sums(plan)


def _codes_of(engine: Engine, model: Model) -> ModelCodes:
    """The codes of all rows, batch after batch in the order of the file."""
    found: list[tuple[int, ModelCodes]] = []
    engine.fold(
        model.reads,
        lambda: found,
        lambda codes, number, batch: codes.append((number, model_codes(batch, model))),
    )
    ordered = [codes for _, codes in sorted(found, key=lambda entry: entry[0])]
    return _joined(ordered) if ordered else model_codes(_no_rows(engine), model)


def _units_of(engine: Engine, model: Model) -> npt.NDArray[np.int64]:
    """A label of the unit of each of these rows, in the same order; batches share no unit."""
    found: list[tuple[int, npt.NDArray[np.int64]]] = []
    engine.fold(
        model.reads,
        lambda: found,
        lambda labels, number, batch: labels.append((number, _unit_labels(batch, model))),
    )
    ordered, before = [np.zeros(0, dtype=np.int64)], 0
    for _, labels in sorted(found, key=lambda entry: entry[0]):
        ordered.append(labels + before)
        before += int(labels.max(initial=-1)) + 1
    return np.concatenate(ordered)


def _unit_labels(rows: MemoryEngine, model: Model) -> npt.NDArray[np.int64]:
    """A label of the unit of each row that the model's filters keep."""
    with rows.lock:
        labels = rows.select(rows.units()[0])
        return np.asarray(labels[rows.cell_index(model.keys) == 0] if model.keys else labels)


def _no_rows(engine: Engine) -> MemoryEngine:
    columns = {
        name: lambda: Cells("nothing", None, None, 0)
        for name in needed_columns(engine.schema, engine.neighbors)
    }
    return MemoryEngine(columns, engine.schema, engine.neighbors, rows=0, source="no rows")


def _joined(batches: Sequence[ModelCodes]) -> ModelCodes:
    if len(batches) == 1:
        return batches[0]
    components = {
        component: np.concatenate([codes[component][:] for codes, _, _ in batches])
        for component in batches[0][0]
    }
    responses = [np.asarray(response) for _, response, _ in batches if response is not None]
    return (
        components,
        np.concatenate(responses) if responses else None,
        sum(rows for _, _, rows in batches),
    )


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
