"""The results of dp.median and dp.quantile by cells: one search a cell, several releases."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from discreet.inference.means.unbounded import Procedure
from discreet.inference.quantiles.quantiles import MedianResult, QuantileResult
from discreet.inference.results.held import cells_note, data_notes
from discreet.inference.results.results import Quantity
from discreet.inference.results.summary import Summary

MEDIAN_BY_CELLS, QUANTILE_BY_CELLS = "median by cells", "quantile by cells"


class CellQuantilesResult(Procedure):
    """A quantile in every cell, each from a release of its own.

    *Method*, *Validity*: as `QuantileResult` of each cell: independent rows, no shape is assumed,
    one cell at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private quantile"
    quantity: ClassVar[str] = "quantile"
    about: ClassVar[str] = QuantileResult.about + " One cell at a time."

    @property
    def labels(self) -> list[tuple[str, ...]]:
        return [
            tuple(labels[0] for labels in release.description.labels) for release in self.releases
        ]

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        cells = [
            QuantileResult(release).quantities(level, target=target)[0] for release in self.releases
        ]
        columns = (
            [getattr(cell, name) for cell in cells]
            for name in ("unprojected", "low", "high", "sampling_variance", "privacy_variance")
        )
        estimate, low, high, sampling, privacy = (np.concatenate(column) for column in columns)
        return (Quantity(self.quantity, estimate, low, high, sampling, privacy),)

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        told = Procedure.summary(self, level, target=target)
        ours, all_cells = data_notes(self.release), cells_note(self.releases)
        if all_cells is None:
            return told
        notes = (all_cells if note == ours[0] else note for note in told.notes)
        return Summary(told.title, told.header, told.rows, tuple(notes))


class CellMediansResult(CellQuantilesResult):
    """The median in every cell, each from a release of its own."""

    __slots__ = ()
    title: ClassVar[str] = MedianResult.title
    quantity: ClassVar[str] = "median"
