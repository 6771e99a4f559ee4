"""The rows of a regression model: two bytes a cell, built once for a model,
with the weights of the latest metric.

Number columns are encoded a block of rows at a time, so that beside what was given and the model's
own cells there are only blocks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.encoding import Encoding
from discreet.schema import Integer, Real
from discreet.specs.estimating.components import (
    Component,
    ModelColumn,
    NumberComponent,
    model_matrix,
    number_table,
)
from discreet.specs.estimating.families import Family
from discreet.specs.estimating.metric import WEIGHT_BITS, Metric
from discreet.specs.estimating.model import EstimatingPlan, Model
from discreet.specs.estimating.networks import NetworkPlan
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.trusted.engines import kernels
from discreet.trusted.engines.cells import Cells, numbers
from discreet.trusted.extensions.estimating.kernels import (
    ModelData,
    absolute_weights,
    estimating_sums,
    residual_counts,
    room_beside,
    row_weights,
    where_it_pays,
)
from discreet.trusted.extensions.estimating.loops import encode_loop
from discreet.trusted.extensions.sgd.batches import RowGradients
from discreet.trusted.later import later
from discreet.trusted.learning.minimiser.rows import LossRows

_OF_NETWORK = later("discreet.trusted.learning.network.rows", "of_network")
RESPONSE_ROWS = 1 << 16  # of a block of responses
# of a block: what is kept beside the cells is small, and columns are not taken up anew too often
ENCODED_ROWS = 1 << 14


@dataclass(frozen=True, eq=False)
class Unread:
    """A number column as it was given, of which codes are made a block of rows at a time; `chosen`
    are the rows that count (None: all).
    """

    cells: Cells
    column: Real | Integer
    encoding: Encoding
    chosen: npt.NDArray[np.int64] | None

    def numbers(self, rows: slice) -> npt.NDArray[np.float64]:
        """Numbers of some rows, as given (NaN where missing), in an array of their own."""
        places: Any = rows if self.chosen is None else self.chosen[rows]
        missing = None if self.cells.missing is None else self.cells.missing[places]
        values = self.cells.values[places]
        if missing is None and values.dtype == np.float64:  # as `numbers` reads them
            return np.array(values)
        return np.array(numbers(Cells(self.cells.kind, values, missing, len(values))))

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        return kernels.clamp_and_encode(self.numbers(rows), self.column, self.encoding)

    @property
    def limits(self) -> tuple[float, ...]:
        """What the compiled pass encodes with."""
        return kernels.encoding_limits(self.column, self.encoding)


ModelCodes = tuple[Mapping[Component, npt.NDArray[Any] | Unread], npt.NDArray[Any] | None, int]


def encoded_matrix(
    columns: tuple[ModelColumn, ...],
    codes: Mapping[Component, npt.NDArray[Any] | Unread],
    rows: int,
) -> npt.NDArray[np.int16]:
    """`model_matrix` of all rows, in blocks on several threads.

    Checked.
    tests/claims/test_model_blocks.py::test_columns_are_encoded_alike_in_blocks_and_compiled
    """
    matrix = np.empty((rows, len(columns)), dtype=np.int16)
    loop = where_it_pays(encode_loop, rows)
    parts = [
        (column, [(component, codes[component]) for component in column.components])
        for column in columns
    ]
    ready_parts = [None if loop is None else _plain(given) for _, given in parts]

    def encode(start: int) -> None:
        block = slice(start, min(start + ENCODED_ROWS, rows))
        for place, (column, given) in enumerate(parts):
            ready = ready_parts[place]
            if loop is not None and ready is not None:
                loop(ready[0].numbers(block), ready[1], ready[2], matrix, start, place)
            else:
                matrix[block, place] = model_matrix(
                    (column,),
                    {component: code[block] for component, code in given},
                    block.stop - block.start,
                )[:, 0]

    kernels.in_threads(encode, range(0, rows, ENCODED_ROWS))
    return matrix


def _plain(
    given: list[tuple[Component, npt.NDArray[Any] | Unread]],
) -> tuple[Unread, tuple[float, ...], npt.NDArray[np.int16]] | None:
    """What the compiled pass reads of a column that is one number component: the numbers, how they
    are encoded, the component's table.
    """
    if len(given) != 1:
        return None
    component, code = given[0]
    return (
        (code, code.limits, number_table(component))
        if isinstance(code, Unread) and isinstance(component, NumberComponent)
        else None
    )


UnitLabels = tuple[slice, npt.NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows of a model: its matrix, the codes of its response, and the labels of units of rows
    that hold whole units, slice after slice. Arrays are in memory, or on disk and read like one.
    """

    matrix: Any
    response: Any
    units: Callable[[], Iterator[UnitLabels]]


class ModelRows:
    """Carries out estimating plans; `read` gives the rows of a model.

    What is kept is compared with copies of models, metrics and families, which nobody else holds;
    what is kept of a model goes with it.
    """

    def __init__(self, read: Callable[[Model], KeptRows]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._rows: tuple[Model, KeptRows] | None = None
        self._response: tuple[Family | None, Any] | None = None
        self._weights: tuple[Metric, Any] | None = None
        # second moments with all weights 1
        self._plain: tuple[npt.NDArray[np.int16], npt.NDArray[np.object_]] | None = None

    def sums(self, plan: EstimatingPlan | ResidualPlan | NetworkPlan) -> Any:
        if isinstance(plan, NetworkPlan):
            with self._lock:
                data = self._data(plan.model, None)
                kept = self._rows[1].response if self._rows else None
                codes = kept if plan.network.outcome == "classes" else None
            return _OF_NETWORK(plan, data, codes)
        if isinstance(plan, ResidualPlan):
            with self._lock:
                data = self._data(plan.model, None)
            return residual_counts(data, plan.point, plan.edges)
        with self._lock:
            data = self._data(plan.model, plan.family, response=plan.part != "metric")
            if plan.part == "absolute rows" and plan.family is not None and plan.point is not None:
                weights = absolute_weights(data.matrix, plan.metric)
                return RowGradients(data, weights, plan.family, plan.point)
            if self._weights is None or self._weights[0] != plan.metric:
                key = plain.twin(plan.metric)
                self._weights = (key, row_weights(data.matrix, plan.metric))
            weights, kept = self._weights[1], self._rows
        if plan.part == "unit scores":
            from discreet.trusted.extensions.estimating.unit_scores import unit_score_sums

            assert kept is not None
            return unit_score_sums(data, weights, plan, kept[1].units())
        if plan.part == "rows" and plan.family is not None and plan.point is not None:
            return RowGradients(data, weights, plan.family, plan.point)
        if plan.part == "minimand":
            return LossRows(data, weights, plan)
        if plan.part == "metric" and len(weights) and int(weights.min()) == 1 << WEIGHT_BITS:
            with self._lock:
                if self._plain is None or self._plain[0] is not data.matrix:
                    self._plain = (data.matrix, estimating_sums(data, weights, plan))
                return self._plain[1].copy()
        return estimating_sums(data, weights, plan)

    def _data(self, model: Model, family: Family | None, *, response: bool = True) -> ModelData:
        """The matrix of a model, built once, and (where it is needed) its response as a family
        reads it.
        """
        if self._rows is None or self._rows[0] != model:
            # the old model's cells go before the new one's come
            self._rows = self._response = self._weights = self._plain = None
            self._rows = (plain.twin(model), self._read(model))
        matrix, given = self._rows[1].matrix, self._rows[1].response
        if not response:
            return ModelData(matrix, np.zeros(0, dtype=np.int32))
        read_by = None if family is None or family.residual else family
        if self._response is None or self._response[0] != read_by:
            self._response = (plain.twin(read_by), _response(model, family, given, len(matrix)))
        return ModelData(matrix, self._response[1])


def _response(model: Model, family: Family | None, codes: Any, rows: int) -> Any:
    """A response on its own grid (residual families), or rounded to units of ψ (mean families)."""
    if model.response is None or codes is None:
        return np.zeros(rows, dtype=np.int32)
    factor, level = model.response.factor, model.response.level
    own_grid = level is None and (family is None or family.residual)
    if own_grid and isinstance(codes, np.ndarray):
        return model.response.steps(codes)
    unit, rounded = 1.0 if family is None else family.tables().unit, room_beside(codes)
    for start in range(0, rows, RESPONSE_ROWS):
        part = codes[start : start + RESPONSE_ROWS]
        if own_grid:
            rounded[start : start + RESPONSE_ROWS] = model.response.steps(part)
            continue
        if factor is None:
            values = (part == (level or ("", 0))[1]).astype(np.float64)
        else:
            values = factor.encoding.center + part.astype(np.float64) / factor.encoding.per_unit
        rounded[start : start + RESPONSE_ROWS] = np.floor(
            np.clip(values * unit, -(2.0**30), 2.0**30) + 0.5
        )
    return rounded
