"""Pictures of multiplicative weights: measured counts beside the model's. From releases alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.style import dress, head, present, shades_of

if TYPE_CHECKING:
    from discreet.inference.mwem.results import Mwem


def plot_weights(
    result: Mwem, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """Every measured count with two standard deviations of its noise, beside what the model says;
    on the line they agree.
    """
    words = "Multiplicative weights" if title is None else title
    return present(lambda axes: _draw(axes, result, words), (5.2, 4.6), ax=ax, path=path)


def _draw(axes: Any, result: Mwem, words: str) -> None:
    shades = shades_of(axes)
    measured, of_model = result.measured_and_model()
    ends = np.array([min(0.0, measured.min()), max(measured.max(), of_model.max(), 1.0)])
    axes.plot(ends, ends, color=shades.grey, linewidth=1, label="the same")
    axes.errorbar(
        measured,
        of_model,
        xerr=2 * result.noise,
        fmt="o",
        markersize=4.5,
        color=shades.accent,
        ecolor=shades.light,
        label="a measured query, ± 2 s.d. of its noise",
    )
    dress(axes, "rows, as measured with noise", "rows, in the model", grid="both")
    head(axes, words, f"{len(measured)} queries of {', '.join(result.columns)}")
