"""Pictures of estimates from reports: dark bars are privacy error alone,
light ones add sampling error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.results import ACCENT, INK, LIGHT, MOST_BARS, draw_title, figure, save

if TYPE_CHECKING:
    from discreet.local.results import LocalResult


def plot_local(result: LocalResult, level: float = 0.95, *, path: str | Path | None = None) -> Any:
    """Points with intervals, one for each estimate."""
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
