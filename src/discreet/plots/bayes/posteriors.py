"""Pictures of posteriors: densities with their credible intervals beside the naive ones, or many
intervals below each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.inference.posteriors.laws import DrawnLaw, SharesLaw
from discreet.plots.style import dress, head, present, shades_of, split

if TYPE_CHECKING:
    from discreet.inference.posteriors.results import PosteriorResult
    from discreet.inference.posteriors.samples import PosteriorSampleResult

POINTS = 240
MOST_PANELS = 3
MOST_ROWS = 40
WIDTH, HEIGHT, PANEL, ROW = 6.6, 3.4, 1.9, 0.32


def plot_posterior(
    result: PosteriorResult,
    level: float,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """One panel a parameter; more than three parameters as intervals."""
    many = len(result.names) > MOST_PANELS
    rows = min(len(result.names), MOST_ROWS)
    size = (WIDTH, 1.6 + ROW * rows) if many else (WIDTH, HEIGHT + PANEL * (rows - 1))
    draw = _draw_intervals if many else _draw_densities
    words = result.summary().title if title is None else title
    return present(lambda axes: draw(axes, result, level, words), size, ax=ax, path=path)


def _draw_densities(axes: Any, result: PosteriorResult, level: float, title: str) -> None:
    names = result.names
    shades, naive = shades_of(axes), result.as_if_exact
    panels = [axes] if len(names) == 1 else split(axes, [1.0] * len(names))
    ends = result.credible_interval(level)
    subtitle = str(result.release.guarantee)
    for place, (panel, name) in enumerate(zip(panels, names, strict=True)):
        at, density = _density(result, place)
        inside = (at >= ends[place, 0]) & (at <= ends[place, 1])
        label = f"{100 * level:g}% credible"
        panel.fill_between(at, density, where=inside, color=shades.light, linewidth=0, label=label)
        own = "naive posterior (not valid)" if result.naive else "posterior"
        panel.plot(at, density, color=shades.ink, linewidth=1.3, label=own)
        if not result.naive:
            values = _density(naive, place, (float(at[0]), float(at[-1])))[1]
            top = 2.2 * float(np.max(density))
            panel.plot(
                at,
                values,
                color=shades.other,
                linewidth=1.0,
                linestyle="--",
                label="as if exact (not valid)",
            )
            panel.set_ylim(0, 1.05 * min(max(float(values.max()), float(density.max())), top))
        dress(panel, name, "density")
        panel.set_yticks([])
        head(panel, title if place == 0 else "", subtitle if place == 0 else "", legend=place == 0)


def _draw_intervals(axes: Any, result: PosteriorResult, level: float, title: str) -> None:
    names, shades = result.names[:MOST_ROWS], shades_of(axes)
    places = np.arange(len(names))[::-1]
    ends, means = result.credible_interval(level), result.means
    if not result.naive:
        naive = result.as_if_exact.credible_interval(level)
        axes.hlines(
            places - 0.18,
            naive[: len(names), 0],
            naive[: len(names), 1],
            color=shades.other,
            linewidth=1.2,
            linestyle="--",
            label="as if exact (not valid)",
        )
    own = "naive (not valid)" if result.naive else f"{100 * level:g}% credible"
    axes.hlines(
        places,
        ends[: len(names), 0],
        ends[: len(names), 1],
        color=shades.accent,
        linewidth=3,
        label=own,
    )
    axes.plot(np.asarray(means)[: len(names)], places, "o", color=shades.ink, markersize=4)
    dress(axes, "", "", grid="x")
    axes.set_yticks(places, names)
    head(axes, title, f"{result.release.guarantee}")


def plot_samples(
    result: PosteriorSampleResult,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """The grid with its prior weights, and where the draws fell."""
    words = result.summary().title if title is None else title
    return present(
        lambda axes: _draw_samples(axes, result, words), (WIDTH, HEIGHT), ax=ax, path=path
    )


def _draw_samples(axes: Any, result: PosteriorSampleResult, title: str) -> None:
    shades = shades_of(axes)
    grid, prior = result.grid[:, 0], result.prior
    counts = np.bincount(result.places, minlength=len(grid)) / len(result.places)
    axes.vlines(grid, 0, prior, color=shades.grey, linewidth=1.0, label="prior on the grid")
    drawn = np.flatnonzero(counts)
    axes.plot(
        grid[drawn], counts[drawn], "o", color=shades.accent, markersize=6, label="share of draws"
    )
    dress(axes, result.names[0], "probability")
    axes.set_ylim(0, None)
    words = f"{result.guarantee}; each draw from prior × likelihood^{result.temper:.3g}"
    head(axes, title, words)


def _density(
    result: PosteriorResult, place: int, ends: tuple[float, float] | None = None
) -> tuple[Any, Any]:
    """The density of one parameter, from differences of its distribution function."""
    law = result._posterior.law
    if ends is None:
        low, high = (float(end) for end in law.quantiles(place, np.array([0.002, 0.998])))
        room = max(0.08 * (high - low), 1e-9 * max(abs(low), abs(high), 1e-9))
        ends = low - room, high + room
    edges = np.linspace(*ends, POINTS + 1)
    heights = np.diff(law.cdf(place, edges)) / np.diff(edges)
    if not isinstance(law, SharesLaw):  # of draws, or of the cells of a grid: smoothed
        width = POINTS // (12 if isinstance(law, DrawnLaw) else 24)
        kernel = np.hanning(2 * width + 1)
        heights = np.convolve(heights, kernel / kernel.sum(), mode="same")
    return (edges[1:] + edges[:-1]) / 2, heights
