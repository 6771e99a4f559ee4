"""Pictures of descriptions: a box a column, each on its own scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.plots.style import dress, head, present, shades_of, split

MOST_BOXES = 20


def plot_described(
    result: Any,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Quartiles, medians and means of columns, with their intervals."""
    shown = result.columns[:MOST_BOXES]
    found = {one.name: one for one in result.quantities(level)}
    hidden = len(result.columns) - len(shown)
    note = f"; the first {len(shown)} of {len(result.columns)}" if hidden else ""
    words = result.summary(level).title if title is None else title

    def draw(axes: Any) -> None:
        panels = split(axes, [1.0] * len(shown))
        for place, (panel, column) in enumerate(zip(panels, shown, strict=True)):
            _draw_box(panel, found, place, level)
            dress(panel, column, grid="x")
            panel.set_yticks([])
            if place == 0:
                head(panel, words, f"{result.guarantee}; {100 * level:g}% intervals{note}")

    return present(draw, (7.2, 1.3 + 1.05 * len(shown)), ax=ax, path=path)


def _draw_box(axes: Any, found: dict[str, Any], place: int, level: float) -> None:
    """One column: the box between the quartiles, and the intervals of all four numbers."""
    shades = shades_of(axes)
    low, high = (float(found[f"{side} quartile"].estimate[place]) for side in ("lower", "upper"))
    axes.barh(
        [0.0],
        [high - low],
        left=[low],
        height=0.5,
        color=shades.light,
        edgecolor=shades.accent,
        label="between the quartiles",
    )
    for name in ("lower quartile", "median", "upper quartile"):
        one = found[name]
        estimate = float(one.estimate[place])
        label = "median" if name == "median" else None
        width = 2.4 if name == "median" else 1.2
        axes.plot([estimate] * 2, [-0.25, 0.25], color=shades.accent, linewidth=width, label=label)
        ends = [float(one.low[place]), float(one.high[place])]
        label = f"{100 * level:g}% interval of each" if name == "median" else None
        axes.plot(ends, [-0.42] * 2, color=shades.ink, linewidth=1.6, label=label)
    mean = found["mean"]
    axes.plot(
        [float(mean.low[place]), float(mean.high[place])],
        [0.0] * 2,
        color=shades.ink,
        linewidth=1.6,
    )
    axes.plot([float(mean.estimate[place])], [0.0], "o", color=shades.ink, label="mean")
    axes.set_ylim(-0.6, 0.5)
