"""The result of dp.residuals: shares of rows by bins of their standardised residual."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from discreet.inference.counts.results import HistogramResult
from discreet.inference.results.laws import Array
from discreet.inference.results.results import checked_level


class ResidualsResult(HistogramResult):
    """Counts and shares of residuals by bins.

    *Validity*: at the released coefficients, taken as given; one cell at a time.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private residuals"
    about: ClassVar[str] = (
        "Residuals (y − η)/σ at the released coefficients and scale. count: of this data set. "
        "share: of the population. One cell at a time."
    )

    def normal_shares(self) -> Array:
        """The shares that standard normal errors would have, for comparison."""
        return np.asarray(np.diff(ndtr([-np.inf, *self.release.description.edges, np.inf])))

    def plot(self, level: float = 0.95, *, path: str | None = None) -> Any:
        """Bars with intervals, the normal law beside them; saved if a path is given."""
        from discreet.plots.regression import plot_residuals

        return plot_residuals(self, checked_level(level), path=path)
