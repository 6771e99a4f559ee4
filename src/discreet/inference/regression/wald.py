"""Joint tests of linear hypotheses about coefficients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.inference.results.evidence import freedom_text
from discreet.inference.results.laws import Array
from discreet.inference.results.null_law import NullLaw, chi_square_law
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told


@dataclass(frozen=True, repr=False)
class WaldTest(Told):
    """A joint test of linear hypotheses: the Wald statistic,
    its degrees of freedom and its p-value.
    """

    statistic: float
    degrees: int
    p_value: float
    scales: Array = field(default_factory=lambda: np.ones(1), repr=False, compare=False)

    def null_law(self) -> NullLaw | None:
        """The law of the statistic under the hypotheses."""
        return chi_square_law(self.statistic, self.degrees, self.scales)

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """The null law with the observed value; the p-value is shaded."""
        from discreet.plots.nulls import plot_null

        words = (self.p_value, "Wald test", freedom_text(self.degrees))
        return plot_null(self.null_law(), *words, ax=ax, title=title, path=path)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        row = (f"{self.statistic:.4g}", str(self.degrees), f"{self.p_value:.3g}")
        header = ("chi-square", "degrees of freedom", "p-value")
        return Summary("Wald test", header, (row,))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows."""
        free = "Post-processing of the fit's releases: it costs nothing."
        return str(self), free, "Asked: that linear combinations of the coefficients vanish."

    def __str__(self) -> str:
        return (
            f"Wald test: chi-square = {self.statistic:.4g} on {self.degrees} "
            f"degree{'s' if self.degrees != 1 else ''} of freedom, "
            f"p {'< 1e-15' if self.p_value < 1e-15 else f'= {self.p_value:.3g}'}"
        )
