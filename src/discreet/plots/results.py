"""Pictures of results: estimates with their intervals, drawn from releases alone (post-processing).

Two shades tell the parts of an interval: the dark bar is privacy error alone (this data set), the
light one adds sampling error (the population).
"""

from __future__ import annotations

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import MissingExtra

if TYPE_CHECKING:
    from discreet.inference.results.results import Result
    from discreet.local.results import LocalResult

INK, ACCENT, LIGHT = "#1f2933", "#0b6e99", "#9cc9dd"
MOST_BARS = 60
# where groups are alike, for a line across a picture
EQUAL = {"difference": 0.0, "common difference": 0.0, "difference of means": 0.0, "mean rank": 0.5}


def figure(width: float, height: float) -> Any:
    """An empty matplotlib figure that belongs to no global state."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plots", "a plot") from None
    canvas = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def plot_result(result: Result, level: float = 0.95, *, path: str | Path | None = None) -> Any:
    """One panel: bars for histograms, points with intervals for everything else."""
    cells = min(len(result.labels), MOST_BARS)
    canvas = figure(max(4.5, min(12.0, 2.5 + 0.42 * cells)), 4.0)
    draw_result(canvas.add_subplot(), result, level)
    return save(canvas, path)


def save(canvas: Any, path: str | Path | None) -> Any:
    """Write the figure where a path is given; return it either way."""
    if path is not None:
        canvas.savefig(path, dpi=150)
    return canvas


def draw_result(axes: Any, result: Result, level: float = 0.95) -> None:
    """Draw a result on given axes."""
    asked = result.release.description
    if asked.estimator == "histogram":
        _draw_histogram(axes, result, level)
    else:
        _draw_points(axes, result, level)
    what = f" of {asked.column}" if asked.column else ""
    by = f" by {', '.join(asked.by)}" if asked.by and asked.by != (asked.column,) else ""
    draw_title(axes, f"{result.title}{what}{by}", str(result.release.guarantee))
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.6)
    axes.set_axisbelow(True)


def draw_title(axes: Any, title: str, promise: str) -> None:
    """A title, broken into lines where it is longer than the panel is wide,
    and the guarantee below it.
    """
    place = axes.get_subplotspec()
    width = axes.figure.get_size_inches()[0] / (
        place.get_gridspec().ncols if place is not None else 1
    )
    lines = "\n".join(textwrap.wrap(title, max(30, int(11 * width))))
    axes.set_title(lines, loc="left", fontsize=10, color=INK, pad=16, parse_math=False)
    axes.text(
        0.0,
        1.01,
        promise,
        transform=axes.transAxes,
        ha="left",
        va="bottom",
        fontsize=7,
        color="#616e7c",
    )


def _draw_histogram(axes: Any, result: Result, level: float) -> None:
    share = result.quantities(level)[-1]
    edges = np.array(result.release.description.edges)
    if edges.size:
        middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        height, scale = share.estimate / width, 1 / width
        axes.bar(
            middle,
            np.maximum(height, 0),
            width=width * 0.98,
            color=LIGHT,
            edgecolor="white",
            linewidth=0.5,
        )
        axes.set_xlabel(result.release.description.column, fontsize=8)
        axes.set_ylabel("density", fontsize=8)
    else:
        middle, height, scale = (
            np.arange(share.estimate.size),
            share.estimate,
            np.ones(share.estimate.size),
        )
        axes.bar(middle, np.maximum(height, 0), width=0.8, color=LIGHT)
        _label_cells(axes, result)
        axes.set_ylabel("share", fontsize=8)
    _bars(axes, middle, share.low * scale, share.high * scale, INK, 1.0)


def _draw_points(axes: Any, result: Result, level: float) -> None:
    both, private = result.quantities(level)[-1], result.quantities(level, target="data")[-1]
    shown = min(both.estimate.size, MOST_BARS)
    places = np.arange(shown)
    _bars(axes, places, both.low[:shown], both.high[:shown], LIGHT, 5.0, "with sampling error")
    _bars(
        axes, places, private.low[:shown], private.high[:shown], ACCENT, 2.0, "privacy error alone"
    )
    axes.plot(places, both.estimate[:shown], "o", color=INK, markersize=4)
    equal = EQUAL.get(both.name)
    if equal is not None:
        axes.axhline(equal, color="#616e7c", linewidth=0.9, linestyle="--", zorder=1)
    axes.set_ylabel(both.name, fontsize=8)
    axes.set_xlim(-0.6, shown - 0.4)
    axes.set_xlabel(", ".join(result.release.description.by), fontsize=8)
    _label_cells(axes, result)
    axes.legend(fontsize=7, frameon=False, title=f"{100 * level:g}% interval", title_fontsize=7)


def _bars(
    axes: Any, places: Any, low: Any, high: Any, color: str, width: float, label: str | None = None
) -> None:
    axes.vlines(places, low, high, color=color, linewidth=width, label=label)


def _label_cells(axes: Any, result: Result) -> None:
    names = [" / ".join(label) for label in result.labels[:MOST_BARS]]
    long = sum(len(name) for name in names) > 60
    axes.set_xticks(
        range(len(names)),
        names,
        rotation=45 if long else 0,
        ha="right" if long else "center",
        parse_math=False,
    )


def plot_local(result: LocalResult, level: float = 0.95, *, path: str | Path | None = None) -> Any:
    """Points with intervals, one for each estimate from randomised reports."""
    both, alone = (
        result.confidence_interval(level)[:MOST_BARS],
        result.confidence_interval(level, target="data")[:MOST_BARS],
    )
    names = result.labels[:MOST_BARS]
    places = np.arange(len(names))
    canvas = figure(max(4.5, min(12.0, 2.5 + 0.42 * len(names))), 4.0)
    axes = canvas.add_subplot()
    axes.vlines(
        places, both[:, 0], both[:, 1], color=LIGHT, linewidth=5.0, label="with sampling error"
    )
    axes.vlines(
        places, alone[:, 0], alone[:, 1], color=ACCENT, linewidth=2.0, label="privacy error alone"
    )
    axes.plot(places, result.params[:MOST_BARS], "o", color=INK, markersize=4)
    long = sum(map(len, names)) > 60
    axes.set_xticks(
        places,
        names,
        rotation=45 if long else 0,
        ha="right" if long else "center",
        parse_math=False,
    )
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylabel(result.what, fontsize=8)
    draw_title(axes, result.title, f"{result.guarantee} a report")
    axes.legend(fontsize=7, frameon=False, title=f"{100 * level:g}% interval", title_fontsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    return save(canvas, path)


def plot_matrix(result: Any, *, path: str | Path | None = None) -> Any:
    """A heat map of a symmetric matrix of estimates: colours run from −r to r, r the largest
    magnitude (1 for correlations).
    """
    matrix, names = result.matrix, list(result.names)
    side = max(3.6, min(12.0, 1.6 + 0.55 * len(names)))
    canvas = figure(side + 0.8, side)
    axes = canvas.add_subplot()
    largest = (
        1.0
        if result.release.description.estimator == "correlation"
        else float(np.max(np.abs(matrix))) or 1.0
    )
    image = axes.imshow(matrix, cmap="RdBu_r", vmin=-largest, vmax=largest)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    if len(names) <= 12:
        for (row, column), value in np.ndenumerate(matrix):
            axes.text(
                column,
                row,
                f"{value:.2g}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if abs(value) > 0.6 * largest else INK,
            )
    axes.set_title(result.title, loc="left", fontsize=10, color=INK)
    axes.tick_params(labelsize=8, colors=INK)
    canvas.colorbar(image, ax=axes, shrink=0.8).ax.tick_params(labelsize=7)
    return save(canvas, path)


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


def plot_power(result: Any, *, path: str | Path | None = None) -> Any:
    """Power by rows and by privacy, beside the test without privacy and, where it is known,
    with randomised response.
    """
    planned, label = result.privacy_axis
    rows, values = result.rows_axis, planned * np.exp2(np.linspace(-3.0, 3.0, 19))
    canvas = figure(9.0, 3.6)
    styles = {
        "nonprivate": ("without privacy", "#616e7c", 1.2, "--"),
        "private": ("private", ACCENT, 2.0, "-"),
        "randomised": ("randomised at the source", "#b44d12", 1.2, ":"),
    }
    for place, (across, curves, name) in enumerate(
        ((rows, result.curves(rows), "rows"), (values, result.privacy_curves(values), label))
    ):
        axes = canvas.add_subplot(1, 2, place + 1)
        for curve, (legend, color, width, dashes) in styles.items():
            if curve in curves:
                axes.plot(
                    across,
                    curves[curve],
                    color=color,
                    linewidth=width,
                    linestyle=dashes,
                    label=legend,
                )
        axes.axvline(result.rows if place == 0 else planned, color="#cbd2d9", linewidth=0.8)
        axes.set_xscale("log")
        _few_ticks(axes, across)
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel(name, fontsize=8)
        axes.set_ylabel("power", fontsize=8)
        axes.tick_params(labelsize=8, colors=INK)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if place == 0:
            axes.legend(fontsize=7, frameon=False)
            axes.set_title(result.headline, loc="left", fontsize=10, color=INK)
    return save(canvas, path)
