"""The rows of a regression model in memory: two bytes a cell, built once for a model, with the weights of the latest metric."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.model_kernels import ModelData, estimating_sums, row_weights
from discreet.queries.families import Family
from discreet.queries.model import EstimatingPlan, Metric, Model
from discreet.queries.pieces import LevelPiece, Piece, model_matrix

ModelCodes = tuple[Mapping[Piece, npt.NDArray[Any]], npt.NDArray[Any] | None, int]


class ModelRows:
    """Carries out estimating plans; `read` gives the codes of a model's pieces, of its response, and the number of rows."""

    def __init__(self, read: Callable[[Model], ModelCodes]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._data: tuple[tuple[Model, Any], ModelData] | None = None
        self._weights: tuple[tuple[Model, Metric], npt.NDArray[np.int32]] | None = None

    def sums(self, plan: EstimatingPlan) -> Any:
        with self._lock:
            data = self._rows(plan.model, plan.family)
            if self._weights is None or self._weights[0] != (plan.model, plan.metric):
                self._weights = ((plan.model, plan.metric), row_weights(data.matrix, plan.metric))
            weights = self._weights[1]
        return estimating_sums(data, weights, plan)

    def _rows(self, model: Model, family: Family | None) -> ModelData:
        asked = (model, None if family is None or family.residual else family)
        if self._data is not None and self._data[0][0] == model and (family is None or self._data[0][1] == asked[1]):
            return self._data[1]
        codes, response, rows = self._read(model)
        data = ModelData(model_matrix(model.columns, codes, rows), _response(model, family, response, rows))
        self._data = (asked, data)
        return data


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
