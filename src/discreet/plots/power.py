"""Pictures of planned tests: power by rows and by privacy."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from discreet.plots.style import dress, head, present, shades_of, split


def plot_power(
    result: Any, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """Power by rows and by privacy, beside the test without privacy and, where it is known,
    with randomised response.
    """
    planned, label = result.privacy_axis
    rows, values = result.rows_axis, planned * np.exp2(np.linspace(-3.0, 3.0, 19))

    def draw(axes: Any) -> None:
        left, right = split(axes, [1.0, 1.0], across=True)
        _draw_curves(left, rows, result.curves(rows), "rows", result.rows)
        head(left, result.headline if title is None else title, f"planned: {result.rows} rows")
        _draw_curves(right, values, result.privacy_curves(values), label, planned)
        head(right, "", f"planned: {label} = {planned:.3g}", legend=False)

    return present(draw, (9.0, 3.8), ax=ax, path=path)


def _draw_curves(axes: Any, across: Any, curves: Any, name: str, planned: float) -> None:
    shades = shades_of(axes)
    styles = {
        "nonprivate": ("without privacy", shades.grey, 1.2, "--"),
        "private": ("private", shades.accent, 2.0, "-"),
        "randomised": ("randomised at the source", shades.other, 1.2, ":"),
    }
    for curve, (label, color, width, dashes) in styles.items():
        if curve in curves:
            axes.plot(
                across, curves[curve], color=color, linewidth=width, linestyle=dashes, label=label
            )
    axes.axvline(planned, color=shades.grey, linewidth=0.8, zorder=1)
    axes.set_xscale("log")
    _few_ticks(axes, across)
    axes.set_ylim(0.0, 1.02)
    dress(axes, name, "power")


def _few_ticks(axes: Any, values: Any) -> None:
    """Ticks at 1, 2, 5 times powers of ten on a logarithmic axis, written as plain numbers:
    matplotlib's own run into each other over one or two decades.
    """
    low, high = float(np.min(values)), float(np.max(values))
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [
        digit * 10.0**power
        for power in powers
        for digit in (1, 2, 5)
        if low <= digit * 10.0**power <= high
    ]
    axes.set_xticks(
        ticks,
        [f"{tick:,.0f}".replace(",", "\u202f") if tick >= 1 else f"{tick:g}" for tick in ticks],
    )
    axes.minorticks_off()
