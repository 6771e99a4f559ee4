"""Pictures of results: estimates with their intervals, drawn from releases alone (post-processing).

One number is drawn with the parts of its interval (single.py), several as cells (cells.py), a
histogram as bars.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.cells import Cells, draw_cells, widest
from discreet.plots.numbers import number
from discreet.plots.single import Single, draw_single, from_quantities, single_of
from discreet.plots.style import (
    ON_LIGHT,
    TEXT_SIZE,
    dress,
    figure,
    head,
    present,
    save,
    shades_of,
    wrapped,
)

if TYPE_CHECKING:
    from discreet.inference.results.results import Result
    from discreet.inference.tables.groups import AllPairs
    from discreet.local.differences import Difference
    from discreet.local.results import LocalResult

__all__ = ["draw_result", "figure", "save"]
MOST_BARS = 60
MOST_WRITTEN = 12  # columns of a matrix whose numbers are written into it


def plot_result(
    result: Result,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """One number with the parts of its interval, bars for histograms, points with intervals for
    everything else.
    """
    return present(
        lambda axes: draw_result(axes, result, level, title=title),
        result_size(result, level),
        ax=ax,
        path=path,
    )


def _promise(result: Result) -> Any:
    """The guarantee of all releases that a result is made of."""
    return getattr(result, "guarantee", result.release.guarantee)


def result_size(result: Result, level: float) -> tuple[float, float]:
    """Inches of a figure of its own."""
    if _is_histogram(result) and result.release.description.edges:
        return 6.5, 4.0
    if len(result.labels) == 1:
        return single_of(result, level).size
    return cells_of(result, level).size


def draw_result(
    axes: Any, result: Result, level: float = 0.95, *, title: str | None = None
) -> None:
    """Draw a result on given axes."""
    words, promise = title_of(result) if title is None else title, str(_promise(result))
    if _is_histogram(result) and result.release.description.edges:
        _draw_histogram(axes, result, level, words, promise)
    elif len(result.labels) == 1:
        draw_single(axes, single_of(result, level), level, words, promise)
    else:
        draw_cells(axes, cells_of(result, level), level, words, promise)


def title_of(result: Result) -> str:
    """What was asked, in the words of the summary."""
    asked = result.release.description
    what = f" of {asked.column}" if asked.column else ""
    by = f" by {', '.join(asked.by)}" if asked.by and asked.by != (asked.column,) else ""
    return f"{result.title}{what}{by}"


def cells_of(result: Result, level: float) -> Cells:
    """The main quantity of a result, by its cells."""
    both, private = result.quantities(level)[-1], result.quantities(level, target="data")[-1]
    return Cells(
        both.name,
        tuple(" / ".join(label) for label in result.labels),
        both.estimate,
        np.stack([both.low, both.high], axis=1),
        np.stack([private.low, private.high], axis=1),
        ", ".join(result.release.description.by),
        getattr(result, "expected", None),
    )


def _is_histogram(result: Result) -> bool:
    return result.release.description.estimator == "histogram"


def _draw_histogram(axes: Any, result: Result, level: float, title: str, promise: str) -> None:
    shades, share = shades_of(axes), result.quantities(level)[-1]
    edges = np.array(result.release.description.edges)
    middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
    if len(middle) > MOST_BARS:
        _draw_many_bins(axes, share, edges, level)
        dress(axes, result.release.description.column or "", "density")
        head(axes, title, promise)
        return
    axes.bar(
        middle,
        np.maximum(share.estimate / width, 0),
        width=width,
        color=shades.light,
        edgecolor=shades.paper,
        linewidth=0.5,
        label="estimate",
    )
    axes.vlines(
        middle,
        share.low / width,
        share.high / width,
        color=shades.ink,
        linewidth=1.0,
        label=f"{100 * level:g}% interval",
    )
    axes.axhline(0, color=shades.grey, linewidth=0.8)
    dress(axes, result.release.description.column or "", "density")
    head(axes, title, promise)


def _draw_many_bins(axes: Any, share: Any, edges: Any, level: float) -> None:
    """A line within its band: bars of many bins would hide each other's intervals."""
    shades, width = shades_of(axes), np.diff(edges)
    low, high = (np.append(side / width, side[-1] / width[-1]) for side in (share.low, share.high))
    label = f"{100 * level:g}% interval of each"
    axes.fill_between(edges, low, high, step="post", color=shades.light, linewidth=0, label=label)
    height = np.maximum(share.estimate / width, 0)
    axes.stairs(height, edges, color=shades.ink, linewidth=0.9, label="estimate")


def plot_pairs(
    pairs: AllPairs, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """The differences of all pairs of groups, with intervals that hold at once."""
    found, alone = pairs.quantity, pairs.private
    cells = Cells(
        found.name,
        pairs.names,
        found.estimate,
        np.stack([found.low, found.high], axis=1),
        np.stack([alone.low, alone.high], axis=1),
    )
    words = pairs.title if title is None else title
    promise = f"{pairs.result.release.guarantee}; all at once"
    return present(
        lambda axes: draw_cells(axes, cells, pairs.level, words, promise),
        cells.size,
        ax=ax,
        path=path,
    )


def plot_local(
    result: LocalResult,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Estimates from randomised reports with their intervals."""
    both, private = result.quantity(level), result.quantity(level, target="data")
    words, promise = result.title if title is None else title, f"{result.guarantee} a report"
    if len(result.labels) == 1:
        single = from_quantities(both, private, level, getattr(result, "bounds", None))
        return _present_single(single, level, words, promise, ax=ax, path=path)
    cells = Cells(
        both.name,
        tuple(result.labels),
        both.estimate,
        np.stack([both.low, both.high], axis=1),
        np.stack([private.low, private.high], axis=1),
    )
    return present(
        lambda axes: draw_cells(axes, cells, level, words, promise), cells.size, ax=ax, path=path
    )


def plot_local_difference(
    result: Difference,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Both shares from randomised reports, and their difference."""
    shares = [
        group.quantity(level, target=target)
        for target in ("population", "data")
        for group in (result.first, result.second)
    ]
    places = [group.labels.index(result.label) for group in (result.first, result.second)]
    rows = [
        [float(values[place]) for values in (share.estimate, share.low, share.high)]
        for share, place in zip(shares, [*places, *places], strict=True)
    ]
    low, high = result.confidence_interval(level)
    both = np.array([rows[0][1:], rows[1][1:], [low, high]])
    private = np.array([rows[2][1:], rows[3][1:], [np.nan, np.nan]])
    cells = Cells(
        "share, difference",
        (f"{result.label}: first", f"{result.label}: second", "difference"),
        np.array([rows[0][0], rows[1][0], result.estimate]),
        both,
        private,
    )
    words = "Two shares from randomised reports" if title is None else title
    promise = f"{result.first.guarantee} and {result.second.guarantee} a report"

    def draw(axes: Any) -> None:
        axes.axhline(0.0, color=shades_of(axes).grey, linewidth=0.9, linestyle="--", zorder=1)
        draw_cells(axes, cells, level, words, promise)

    return present(draw, (5.4, 3.8), ax=ax, path=path)


def _present_single(
    single: Single, level: float, title: str, promise: str, *, ax: Any, path: str | Path | None
) -> Any:
    return present(
        lambda axes: draw_single(axes, single, level, title, promise), single.size, ax=ax, path=path
    )


def plot_matrix(
    result: Any, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """A heat map of a symmetric matrix of estimates: colours are correlations, numbers are what
    was asked for.
    """
    names = [wrapped(name, 110.0, TEXT_SIZE) for name in result.names]
    side = max(3.4, min(12.0, 1.6 + 0.5 * len(names)))
    words = f"{result.title} of {len(names)} columns" if title is None else title
    return present(
        lambda axes: _draw_matrix(axes, result, names, words),
        (side + 1.0 + widest(names) / 72, side + 0.4),
        ax=ax,
        path=path,
    )


def _draw_matrix(axes: Any, result: Any, names: list[str], title: str) -> None:
    matrix = result.matrix
    # covariances in parts of the columns' own spreads: one large unit would make all others pale
    spread = np.sqrt(np.maximum(np.abs(np.diag(matrix)), 1e-300))
    colors = np.clip(matrix / np.outer(spread, spread), -1.0, 1.0)
    image = axes.imshow(colors, cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", parse_math=False)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    if len(names) <= MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(matrix):
            axes.text(
                column,
                row,
                number(value),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if abs(colors[row, column]) > 0.6 else ON_LIGHT.ink,
            )
    dress(axes, grid="")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
    is_correlation = result.release.description.estimator == "correlation"
    dress(bar.ax, vertical="" if is_correlation else "in parts of both columns' spreads", grid="")
    bar.outline.set_visible(False)
    head(axes, title, str(result.release.guarantee), names=widest(names) + 60.0)
