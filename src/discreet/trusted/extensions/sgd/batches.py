"""Sums of a gradient over chosen rows of a model in memory: what a stochastic gradient method reads
(specs/estimating/batches.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.estimating.families import Family
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import NO_GAIN
from discreet.trusted.extensions.estimating.kernels import LOOP_ROWS, ModelData, numpy_gradient
from discreet.trusted.extensions.estimating.loops import Loop, gradient_loop

LOOP_FROM = 1 << 14  # rows of the data set from which on compiling pays


class RowGradients:
    """Σ m·x over chosen rows; the numbers are those of estimating.kernels.gradient_sums on
    these rows alone.
    """

    def __init__(
        self, data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point
    ) -> None:
        self.count = len(data.matrix)
        self._data, self._weights, self._family, self._point = data, weights, family, point
        self._loop: Loop | None = gradient_loop() if self.count >= LOOP_FROM else None
        tables = family.tables()
        self._numbers = (
            2.0**point.eta_bits if family.residual else 0.0,
            point.per_scale,
            float(tables.reach),
            tables.clip,
            tables.top,
        )
        self._tables: Any = (
            (tables.psi, tables.slope, tables.slope, NO_GAIN)
            if family.residual
            else (tables.slope, tables.mean, tables.shift, tables.gain)
        )

    def gradient(
        self, chosen: npt.NDArray[np.int64], beta: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """Exact whole numbers in any order of `chosen`; `beta` holds whole numbers, one a column.

        Rows beyond the last one are refused where they are taken, by numpy.
        """
        if beta.shape != self._data.matrix.shape[1:] or (len(chosen) and chosen.min() < 0):
            raise IndexError("coefficients or rows that the model does not have")
        if self._loop is None:
            return self._in_numpy(chosen, beta)
        total = np.zeros(len(beta), dtype=np.int64)
        for start in range(0, len(chosen), LOOP_ROWS):
            rows, sums = chosen[start : start + LOOP_ROWS], np.zeros(len(beta))
            self._loop(
                self._data.matrix.take(rows, axis=0),
                self._data.response.take(rows),
                self._weights.take(rows),
                beta,
                self._numbers,
                self._tables,
                sums,
            )
            total += sums.astype(np.int64)
        return total

    def _in_numpy(
        self, chosen: npt.NDArray[np.int64], beta: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        part = ModelData(self._data.matrix.take(chosen, axis=0), self._data.response.take(chosen))
        point = Point(
            tuple(int(value) for value in beta), self._point.eta_bits, self._point.per_scale
        )
        return numpy_gradient(part, self._weights.take(chosen), self._family, point)[0].astype(
            np.int64
        )

    def __reduce__(self) -> Any:
        raise TypeError("rows are not copied")
