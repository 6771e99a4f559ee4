"""The rows of a regression model in memory: two bytes a cell, built once for a model, with the weights of the latest metric."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.engines.batches import RowGradients
from discreet.model_kernels import ModelData, estimating_sums, residual_counts, row_weights
from discreet.queries.families import Family
from discreet.queries.model import EstimatingPlan, Metric, Model
from discreet.queries.pieces import LevelPiece, Piece, model_matrix
from discreet.queries.residuals import ResidualPlan

ModelCodes = tuple[Mapping[Piece, npt.NDArray[Any]], npt.NDArray[Any] | None, int]


class ModelRows:
    """Carries out estimating plans; `read` gives the codes of a model's pieces, of its response, and the number of rows."""

    def __init__(self, read: Callable[[Model], ModelCodes]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._rows: tuple[Model, npt.NDArray[np.int16], npt.NDArray[Any] | None] | None = None
        self._response: tuple[tuple[Model, Family | None], npt.NDArray[np.int32]] | None = None
        self._weights: tuple[tuple[Model, Metric], npt.NDArray[np.int32]] | None = None

    def sums(self, plan: EstimatingPlan | ResidualPlan) -> Any:
        if isinstance(plan, ResidualPlan):
            with self._lock:
                data = self._data(plan.model, None)
            return residual_counts(data, plan.point, plan.edges)
        with self._lock:
            data = self._data(plan.model, plan.family)
            if self._weights is None or self._weights[0] != (plan.model, plan.metric):
                self._weights = ((plan.model, plan.metric), row_weights(data.matrix, plan.metric))
            weights = self._weights[1]
        if plan.part == "rows" and plan.family is not None and plan.point is not None:
            return RowGradients(data, weights, plan.family, plan.point)
        return estimating_sums(data, weights, plan)

    def _data(self, model: Model, family: Family | None) -> ModelData:
        """The matrix of a model, built once, and its response as a family reads it."""
        if self._rows is None or self._rows[0] != model:
            codes, response, rows = self._read(model)
            self._rows = (model, model_matrix(model.columns, codes, rows), response)
            self._response = None
        _, matrix, response = self._rows
        read_by = (model, None if family is None or family.residual else family)
        if self._response is None or self._response[0] != read_by:
            self._response = (read_by, _response(model, family, response, len(matrix)))
        return ModelData(matrix, self._response[1])


def _response(model: Model, family: Family | None, codes: npt.NDArray[Any] | None, rows: int) -> npt.NDArray[np.int32]:
    """A response on its own grid (residual families), or rounded to units of ψ (mean families)."""
    if model.response is None or codes is None:
        return np.zeros(rows, dtype=np.int32)
    if model.response.level is not None:
        values = (codes == model.response.level[1]).astype(np.float64)
    else:
        assert model.response.factor is not None
        if family is None or family.residual:
            return model.response.steps(codes)
        grid = model.response.factor.encoding
        values = grid.center + codes.astype(np.float64) / grid.per_unit
    unit = 1.0 if family is None else family.tables().unit
    rounded: npt.NDArray[np.int32] = np.floor(np.clip(values * unit, -(2.0**30), 2.0**30) + 0.5).astype(np.int32)
    return rounded


def level_columns(model: Model) -> tuple[str, ...]:
    """The columns of which level codes are read."""
    pieces = {piece.column for column in model.columns for piece in column.pieces if isinstance(piece, LevelPiece)}
    response = {model.response.column} if model.response is not None and model.response.level is not None else set()
    return tuple(sorted(pieces | response))
