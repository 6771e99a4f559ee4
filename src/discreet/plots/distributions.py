"""Pictures of distributions: a distribution function or a density with its pointwise and its
simultaneous band.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.style import dress, head, present, shades_of

if TYPE_CHECKING:
    from discreet.inference.quantiles.cdf import EcdfResult
    from discreet.inference.quantiles.densities import DensityResult

MARGIN = 0.25  # of the range where the estimate rises, on both sides of it
SIZE = (6.5, 4.0)


def plot_ecdf(
    result: EcdfResult,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """F̂ as a line within two shades: the dark band holds for one point at a time,
    the light one for all at once.
    """
    return present(lambda axes: draw_ecdf(axes, result, level, title=title), SIZE, ax=ax, path=path)


def plot_density(
    result: DensityResult,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """f̂ as steps within two shades: the dark band holds for one bin at a time,
    the light one for all at once.
    """
    return present(
        lambda axes: draw_density(axes, result, level, title=title), SIZE, ax=ax, path=path
    )


def draw_ecdf(
    axes: Any, result: EcdfResult, level: float = 0.95, *, title: str | None = None
) -> None:
    """Draw a distribution function on given axes,
    where the consistent estimate rises and a little beyond.
    """
    edges, shades = result.edges, shades_of(axes)
    for kind, color, label in (
        ("simultaneous", shades.pale, "at all points at once"),
        ("pointwise", shades.light, "at one point at a time"),
    ):
        bounds = result.band(level, kind=kind)
        low, high = (np.concatenate([[0.0], side, [1.0]]) for side in (bounds[:, 0], bounds[:, 1]))
        axes.fill_between(edges, low, high, step="post", color=color, linewidth=0, label=label)
    whole = np.concatenate([[0.0], result.params, [1.0]])
    smooth = result.cdf(edges, consistent=True)
    axes.step(
        edges, whole, where="post", color=shades.accent, linewidth=0.8, label="unbiased estimate"
    )
    axes.step(
        edges, smooth, where="post", color=shades.ink, linewidth=1.2, label="consistent estimate"
    )
    first, last = int(np.argmax(smooth > 0.02)), int(np.argmax(smooth >= 0.98))
    # where one bin holds nearly all, the bins beside it are the room
    wide = float(np.max(np.diff(edges)))
    room = max(MARGIN * float(edges[last] - edges[max(first - 1, 0)]), 4 * wide)
    axes.set_xlim(
        max(edges[max(first - 1, 0)] - room, edges[0]), min(edges[last] + room, edges[-1])
    )
    axes.set_ylim(-0.03, 1.03)
    _finish(axes, result, level, "share of rows at or below", title)


def draw_density(
    axes: Any, result: DensityResult, level: float = 0.95, *, title: str | None = None
) -> None:
    """Draw a histogram density on given axes."""
    edges, shades = result.edges, shades_of(axes)
    for bounds, color, label in (
        (result.band(level), shades.pale, "for all bins at once"),
        (result.band(level, kind="pointwise"), shades.light, "for one bin at a time"),
    ):
        low, high = (np.append(side, side[-1]) for side in (bounds[:, 0], bounds[:, 1]))
        axes.fill_between(edges, low, high, step="post", color=color, linewidth=0, label=label)
    axes.stairs(
        result.unprojected, edges, color=shades.accent, linewidth=0.8, label="unbiased estimate"
    )
    axes.stairs(
        result.shares(consistent=True) / np.diff(edges),
        edges,
        color=shades.ink,
        linewidth=1.2,
        label="consistent estimate",
    )
    axes.axhline(0, color=shades.grey, linewidth=0.6)
    _finish(axes, result, level, "density", title)


def _finish(axes: Any, result: Any, level: float, what: str, title: str | None) -> None:
    asked = result.release.description
    dress(axes, asked.column, what)
    words = f"{result.title} of {asked.column}" if title is None else title
    head(axes, words, f"{result.release.guarantee}; {100 * level:g}% bands")
