"""Pictures of distributions: a distribution function or a density with its pointwise and its
simultaneous band.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.results import ACCENT, INK, LIGHT, figure, save

if TYPE_CHECKING:
    from discreet.inference.quantiles.cdf import EcdfResult
    from discreet.inference.quantiles.densities import DensityResult

PALE = "#d9ebf3"
MARGIN = 0.25  # of the range where the estimate rises, on both sides of it
HEADROOM = 1.3  # above a density, for the legend


def plot_ecdf(result: EcdfResult, level: float = 0.95, *, path: str | Path | None = None) -> Any:
    """F̂ as a line within two shades: the dark band holds for one point at a time,
    the light one for all at once.
    """
    canvas = figure(6.5, 4.0)
    axes = canvas.add_subplot()
    draw_ecdf(axes, result, level)
    return save(canvas, path)


def plot_density(
    result: DensityResult, level: float = 0.95, *, path: str | Path | None = None
) -> Any:
    """f̂ as steps within two shades: the dark band holds for one bin at a time,
    the light one for all at once.
    """
    canvas = figure(6.5, 4.0)
    axes = canvas.add_subplot()
    draw_density(axes, result, level)
    return save(canvas, path)


def draw_ecdf(axes: Any, result: EcdfResult, level: float = 0.95) -> None:
    """Draw a distribution function on given axes,
    where the consistent estimate rises and a little beyond.
    """
    edges = result.edges
    for kind, color, label in (
        ("simultaneous", PALE, "at all points at once"),
        ("pointwise", LIGHT, "at one point at a time"),
    ):
        bounds = result.band(level, kind=kind)
        low, high = (np.concatenate([[0.0], side, [1.0]]) for side in (bounds[:, 0], bounds[:, 1]))
        axes.fill_between(edges, low, high, step="post", color=color, linewidth=0, label=label)
    whole = np.concatenate([[0.0], result.params, [1.0]])
    smooth = result.cdf(edges, consistent=True)
    axes.step(edges, whole, where="post", color=ACCENT, linewidth=0.8, label="unbiased estimate")
    axes.step(edges, smooth, where="post", color=INK, linewidth=1.2, label="consistent estimate")
    first, last = int(np.argmax(smooth > 0.02)), int(np.argmax(smooth >= 0.98))
    room = MARGIN * float(edges[last] - edges[max(first - 1, 0)])
    axes.set_xlim(
        max(edges[max(first - 1, 0)] - room, edges[0]), min(edges[last] + room, edges[-1])
    )
    axes.set_ylim(-0.03, 1.03)
    _dress(axes, result, level, "share of rows at or below", "lower right")


def draw_density(axes: Any, result: DensityResult, level: float = 0.95) -> None:
    """Draw a histogram density on given axes."""
    edges, everywhere = result.edges, result.band(level)
    for bounds, color, label in (
        (everywhere, PALE, "for all bins at once"),
        (result.band(level, kind="pointwise"), LIGHT, "for one bin at a time"),
    ):
        low, high = (np.append(side, side[-1]) for side in (bounds[:, 0], bounds[:, 1]))
        axes.fill_between(edges, low, high, step="post", color=color, linewidth=0, label=label)
    axes.stairs(result.unprojected, edges, color=ACCENT, linewidth=0.8, label="unbiased estimate")
    axes.stairs(
        result.shares(consistent=True) / np.diff(edges),
        edges,
        color=INK,
        linewidth=1.2,
        label="consistent estimate",
    )
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.set_ylim(top=HEADROOM * float(everywhere[:, 1].max()))
    _dress(axes, result, level, "density", "upper right")


def _dress(axes: Any, result: Any, level: float, what: str, corner: str) -> None:
    asked = result.release.description
    axes.set_title(f"{result.title} of {asked.column}", loc="left", fontsize=10, color=INK)
    axes.text(
        1.0,
        1.01,
        str(result.release.guarantee),
        transform=axes.transAxes,
        ha="right",
        va="bottom",
        fontsize=7,
        color="#616e7c",
    )
    axes.set_xlabel(asked.column, fontsize=8)
    axes.set_ylabel(what, fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(
        fontsize=7, frameon=False, loc=corner, title=f"{100 * level:g}% bands", title_fontsize=7
    )
