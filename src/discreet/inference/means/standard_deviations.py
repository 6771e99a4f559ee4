"""The result of dp.std: the square root of a variance, by cells (reference.md F2)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from discreet.inference.means.results import VarianceResult, few_rows_note
from discreet.inference.results.laws import Array
from discreet.inference.results.results import Quantity, Result
from discreet.inference.results.summary import Summary


class StdResult(Result):
    """A standard deviation (of the n−1 variance), in every cell.

    *Method*: the variance's release and interval; the ends of the interval are square roots of the
    variance's ends, which are never below 0, so it covers exactly as often. Standard errors are
    those of the variance times the slope of √v (`slope`).
    *Validity*: as the variance's: independent rows with a fourth moment; no shape is assumed. Of
    several cells, one at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private standard deviation"
    about: ClassVar[str] = (
        "Square roots of the variance's interval; the fourth moment is released jointly, so no "
        "shape is assumed. One cell at a time."
    )

    def summary(self, level: float = 0.95, *, target: str = "population") -> Summary:
        """A table to print; renders in a notebook too."""
        told = Result.summary(self, level, target=target)
        return told.with_notes(*few_rows_note(self)) if target == "population" else told

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        variance = VarianceResult(self.release).quantities(level, target=target)[0]
        squared = slope(variance) ** 2
        return (
            Quantity(
                "standard deviation",
                np.sqrt(np.maximum(variance.unprojected, 0.0)),
                np.sqrt(np.maximum(variance.low, 0.0)),
                np.sqrt(np.maximum(variance.high, 0.0)),
                variance.sampling_variance * squared,
                variance.privacy_variance * squared,
            ),
        )


def slope(variance: Quantity) -> Array:
    """1/(2√v), no steeper than one standard error of the variance above 0: nearer to it the
    estimate is lost in its error, and the slope says nothing.
    """
    least = np.maximum(variance.std_error, np.finfo(float).tiny)
    return np.asarray(0.5 / np.sqrt(np.maximum(variance.unprojected, least)))
