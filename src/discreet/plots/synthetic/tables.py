"""Pictures of synthetic data: released shares beside the model's, the expected error of every pair,
and answers with their intervals. From releases alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.cells import Cells, draw_cells
from discreet.plots.style import SMALL_SIZE, TEXT_SIZE, dress, head, present, shades_of, split

if TYPE_CHECKING:
    from discreet.inference.synthesis.answers import TablesAnswer
    from discreet.inference.synthesis.results import Synthesis

MOST_POINTS = 20_000
MOST_WRITTEN = 12  # columns of a matrix whose numbers are written into it
TICKS = (0.01, 0.1, 0.2, 0.4, 0.7, 1.0)


def plot_answer(
    answer: TablesAnswer,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """The estimates of one question with both parts of their intervals."""
    cells = Cells(
        "coefficient" if answer.head == ("coefficient",) else answer.title.split(" by ")[0].lower(),
        tuple(name if isinstance(name, str) else ", ".join(name) for name in answer.names),
        np.asarray(answer.params),
        answer.confidence_interval(level),
        answer.confidence_interval(level, target="data"),
    )
    promise = "under the model" if answer.under_model else "from released tables"
    heading = answer.title if title is None else title

    def draw(axes: Any) -> None:
        draw_cells(axes, cells, level, heading, promise)

    return present(draw, cells.size, ax=ax, path=path)


def plot_synthesis(
    synthesis: Synthesis,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Every measured cell beside the model's, and the expected error of every pair of columns."""
    heading = "Synthetic data" if title is None else title

    def draw(axes: Any) -> None:
        left, right = split(axes, [1.0, 1.15], across=True)
        _draw_cells(left, synthesis, heading)
        _draw_pairs(right, synthesis)

    return present(draw, (10.0, 4.8), ax=ax, path=path)


def _draw_cells(axes: Any, synthesis: Synthesis, title: str) -> None:
    """Released shares against the model's, tables of one column and of several told apart."""
    shades, tables = shades_of(axes), synthesis.tables
    groups: dict[bool, list[Any]] = {True: [], False: []}
    for columns, noisy in tables.measured.items():
        law = synthesis.model.table(columns).ravel()
        groups[len(columns) == 1].append([noisy.values.ravel() / tables.rows, law])
    for alone, color, label in (
        (False, shades.accent, "cells of several columns"),
        (True, shades.other, "cells of one column"),
    ):
        if groups[alone]:
            released, law = np.concatenate(groups[alone], axis=1)[:, :MOST_POINTS]
            axes.plot(released, law, ".", color=color, markersize=3.5, alpha=0.6, label=label)
    least = -3 * max(noisy.sigma for noisy in tables.measured.values()) / tables.rows
    alike = np.linspace(0, 1, 200) ** 2
    axes.plot(alike, alike, color=shades.grey, linewidth=0.8, zorder=1)
    axes.set_xscale("function", functions=(_root, _square))
    axes.set_yscale("function", functions=(_root, _square))
    axes.set_xlim(least, 1.0)
    axes.set_ylim(0.0, 1.0)
    axes.set_xticks([0.0, *TICKS], [f"{share:g}" for share in (0.0, *TICKS)])
    axes.set_yticks([0.0, *TICKS], [f"{share:g}" for share in (0.0, *TICKS)])
    dress(axes, "share as released", "share of the model")
    head(axes, title, "axes by the root of the share; noise is also below 0")


def _root(values: Any) -> Any:
    """The root of a share, with its sign."""
    return np.sign(values) * np.sqrt(np.abs(values))


def _square(values: Any) -> Any:
    return np.sign(values) * np.square(values)


def _draw_pairs(axes: Any, synthesis: Synthesis) -> None:
    """The expected error of the model's table of every pair, as a matrix."""
    shades, names = shades_of(axes), synthesis.columns
    size = len(names)
    errors = np.full((size, size), np.nan)
    places = {name: place for place, name in enumerate(names)}
    for (one, other), found in synthesis.pair_errors.items():
        errors[places[one], places[other]] = errors[places[other], places[one]] = found
    measured = {pair for one in synthesis.measured for pair in _pairs(one)}
    top = float(np.nanmax(errors, initial=1e-6))
    from matplotlib.colors import LinearSegmentedColormap

    shade = LinearSegmentedColormap.from_list("error", [shades.paper, shades.accent])
    axes.imshow(errors, cmap=shade, vmin=0.0, vmax=1.15 * top, aspect="auto")
    words = "half the ℓ₁ distance of shares; bold: measured, others: the model alone"
    if size > MOST_WRITTEN:
        words = f"half the ℓ₁ distance of shares, darkest {top:.3f}; dots: measured"
        dots = [(places[a], places[b]) for a, b in measured]
        axes.plot(
            *np.array(dots, dtype=float).reshape(-1, 2).T, ".", color=shades.ink, markersize=3
        )
    else:
        for first in range(size):
            for second in range(size):
                if first != second:
                    error = errors[first, second]
                    dark = error > 0.75 * top
                    axes.text(
                        second,
                        first,
                        f"{error:.3f}",
                        ha="center",
                        va="center",
                        fontsize=SMALL_SIZE,
                        color=shades.paper if dark else shades.ink,
                        weight="bold" if (names[first], names[second]) in measured else "normal",
                    )
    axes.set_xticks(range(size), names, rotation=60, ha="right", parse_math=False)
    axes.set_yticks(range(size), names, parse_math=False)
    dress(axes, grid="")
    axes.tick_params(labelsize=TEXT_SIZE, length=0)
    head(axes, "Expected error of every pair", words, legend=False)


def _pairs(names: tuple[str, ...]) -> set[tuple[str, str]]:
    return {(first, second) for first in names for second in names if first != second}
