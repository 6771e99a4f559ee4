"""Pictures of previews: how wide intervals will be beside those without privacy, and what another
spend would change. From public facts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from discreet.plots.cells import row_places, widest
from discreet.plots.numbers import number
from discreet.plots.style import (
    SMALL_SIZE,
    TEXT_SIZE,
    dress,
    head,
    present,
    shades_of,
    split,
    wrapped,
)

MOST_ROWS = 60
NAME_ROOM = 170.0
FACTORS = np.exp2(np.linspace(-3.0, 3.0, 49))
TICKS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
MOST_RATIO = 100.0  # times the width without privacy; beyond it an interval is noise alone


def plot_forecasts(
    shown: Any,
    words: str,
    spend: str,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Of each quantity the expected width beside the one without privacy;
    and that of the main one by how much is spent.
    """
    items = list(shown.forecasts)[:MOST_ROWS]
    heading = words if title is None else title

    def draw(axes: Any) -> None:
        left, right = split(axes, [5.0, 3.6], across=True)
        _draw_widths(left, items, shown, heading)
        _draw_spends(right, shown.forecasts[-1], spend)

    lines = sum(1 + wrapped(item.quantity, NAME_ROOM, TEXT_SIZE).count("\n") for item in items)
    return present(draw, (10.0, max(3.4, 1.6 + 0.3 * lines)), ax=ax, path=path)


def _draw_widths(axes: Any, items: Sequence[Any], shown: Any, title: str) -> None:
    """Bars in widths without privacy, with the widths in the data's units beside them."""
    shades = shades_of(axes)
    names = [wrapped(item.quantity, NAME_ROOM, TEXT_SIZE) for item in items]
    shares = [min(max(item.noise_share, 0.0), 1.0) for item in items]
    ratios = np.array([1 / np.sqrt(max(1 - share, 1e-12)) for share in shares])
    alone = ratios > MOST_RATIO
    top = float(max(ratios[~alone], default=1.0)) * 1.05
    places, ends = row_places(names), np.where(alone, top, ratios)
    axes.barh(places, ends, height=0.62, color=shades.accent, label="what privacy adds")
    axes.barh(
        places,
        np.where(alone, 0.0, 1.0),
        height=0.62,
        color=shades.light,
        label="without privacy",
    )
    for place, item, ratio, end in zip(places, items, ratios, ends, strict=True):
        beside = (
            "noise alone" if ratio > MOST_RATIO else f"{number(item.width / ratio)} without privacy"
        )
        axes.text(
            end + 0.02 * top,
            place,
            f"{number(item.width)}  ({beside})",
            va="center",
            fontsize=SMALL_SIZE,
            color=shades.ink,
        )
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(places[-1] - 0.8, 0.2)
    axes.set_xlim(0, 1.9 * top)
    dress(axes, "expected width, in widths without privacy", grid="x")
    axes.tick_params(axis="y", length=0)
    hidden = len(shown.forecasts) - len(items)
    note = f"; {hidden} more in summary()" if hidden else ""
    words = f"{100 * shown.level:g}% intervals; {shown.assumed}{note}"
    head(axes, title, words, names=widest(names))


def _draw_spends(axes: Any, item: Any, spend: str) -> None:
    """The expected width where noise shrinks with the spend: √(sampling + noise/f²)."""
    shades, share = shades_of(axes), min(max(item.noise_share, 0.0), 1.0)
    widths = item.width * np.sqrt((1 - share) + share / FACTORS**2)
    axes.plot(FACTORS, widths, color=shades.accent, linewidth=2.0, label="expected width")
    if share < 0.9999:
        axes.axhline(
            item.width * np.sqrt(1 - share),
            color=shades.grey,
            linewidth=1.2,
            linestyle="--",
            label="without privacy",
        )
    axes.plot([1.0], [item.width], "o", color=shades.ink, markersize=6, label="as planned")
    axes.set_xscale("log", base=2)
    axes.set_xticks(TICKS, ["⅛", "¼", "½", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    dress(axes, "times the planned μ or ε, about", f"width of {item.quantity}")
    head(axes, "At another spend", f"planned: {spend}")


def plot_bars(
    names: Sequence[str],
    values: Sequence[float],
    axis: str,
    subtitle: str,
    heading: str,
    *,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """Some numbers ≥ 0 side by side, the first of them as asked: gaps of a selection,
    expected errors by method.
    """
    labels = [wrapped(name, NAME_ROOM, TEXT_SIZE) for name in names]

    def draw(axes: Any) -> None:
        shades, places = shades_of(axes), np.arange(len(values))[::-1]
        colors = [shades.accent, *[shades.light] * (len(values) - 1)]
        axes.barh(places, values, height=0.6, color=colors)
        for place, value in zip(places, values, strict=True):
            axes.text(
                value + 0.015 * max(values),
                place,
                number(value),
                va="center",
                fontsize=SMALL_SIZE,
                color=shades.ink,
            )
        axes.set_yticks(places, labels, parse_math=False)
        axes.set_ylim(-0.7, len(values) - 0.3)
        axes.set_xlim(0, 1.2 * max(max(values), 1e-300))
        dress(axes, axis, grid="x")
        axes.tick_params(axis="y", length=0)
        head(axes, heading, subtitle, names=widest(labels), legend=False)

    return present(draw, (6.4, 1.7 + 0.36 * len(values)), ax=ax, path=path)
