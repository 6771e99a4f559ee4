"""Pictures of tests: the law of the statistic under the null hypothesis, the observed value in it,
and the p-value as shaded area; beside the estimates where a result has both.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.plots.numbers import number
from discreet.plots.results import draw_result, result_size
from discreet.plots.style import SMALL_SIZE, dress, head, present, shades_of, split

if TYPE_CHECKING:
    from discreet.inference.results.null_law import NullLaw

SIZE = (5.6, 3.6)
TALLEST = 5.5  # inches of estimates that have the null law beside them, not below
FARTHEST = 2.5  # widths of the law between it and an observed value that is drawn at its place


def plot_null(
    law: NullLaw | None,
    p_value: float,
    words: str,
    subtitle: str,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """The null law of a test with its observed value."""
    heading = words if title is None else title
    return present(
        lambda axes: draw_null(axes, law, p_value, heading, subtitle), SIZE, ax=ax, path=path
    )


def plot_tested(
    result: Any,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Two panels: the estimates with their intervals, and the null law of the test."""
    evidence = result.test()
    width, height = result_size(result, level)
    across = height <= TALLEST
    shares = [max(width, 4.6), 3.9] if across else [height, 2.6]

    def draw(axes: Any) -> None:
        first, second = split(axes, shares, across=across)
        draw_result(first, result, level, title=title)
        draw_null(
            second,
            evidence.null,
            evidence.p_value,
            f"Test: {p_words(evidence.p_value)}",
            f"H0: {evidence.hypothesis}; {evidence.alternative}",
        )

    size = (sum(shares), max(height, 3.6)) if across else (width, sum(shares))
    return present(draw, size, ax=ax, path=path)


def draw_null(axes: Any, law: NullLaw | None, p_value: float, title: str, subtitle: str) -> None:
    """Draw a null law on given axes; a test without one (one cell, one group) says so."""
    shades, p = shades_of(axes), p_words(p_value)
    if law is None:
        axes.text(
            0.5,
            0.5,
            f"{p}: nothing to compare",
            ha="center",
            va="center",
            color=shades.grey,
            transform=axes.transAxes,
        )
        axes.set_xticks([])
        axes.set_yticks([])
        dress(axes, grid="")
        head(axes, title, subtitle)
        return
    _draw_law(axes, law, p)
    _draw_observed(axes, law)
    axes.set_ylim(bottom=0)
    axes.set_yticks([])
    dress(axes, law.axis, grid="")
    axes.spines["left"].set_visible(False)
    head(axes, title, "; law: ".join(part for part in (subtitle, law.source) if part))


def p_words(p_value: float) -> str:
    """A p-value as it is said in a picture."""
    return f"p = {p_value:.3g}" if p_value >= 1e-15 else "p < 1e-15"


def _draw_law(axes: Any, law: NullLaw, p: str) -> None:
    shades, widths = shades_of(axes), np.diff(law.edges)
    outside = (law.edges[1:] <= law.low) | (law.edges[:-1] >= law.high)
    heights = law.masses / widths
    for chosen, color, label in (
        (~outside, shades.light, "if the null were true"),
        (outside, shades.other, f"at least as far: {p}"),
    ):
        axes.bar(
            law.edges[:-1],
            np.where(chosen, heights, 0.0),
            width=widths,
            align="edge",
            color=color,
            linewidth=0,
            label=label,
        )


def _draw_observed(axes: Any, law: NullLaw) -> None:
    """A line at the observed value; an arrow at the edge where it is far beyond."""
    shades = shades_of(axes)
    low, high = float(law.edges[0]), float(law.edges[-1])
    reach = FARTHEST * (high - low)
    text = f"observed {number(law.observed)}"
    if low - reach <= law.observed <= high + reach:
        axes.axvline(law.observed, color=shades.ink, linewidth=1.4, label=text)
        axes.margins(x=0.04)
        return
    right = law.observed > high
    axes.plot([], [], color=shades.ink, linewidth=1.4, label=text)
    axes.annotate(
        text,
        (1.0 if right else 0.0, 0.5),
        (0.97 if right else 0.03, 0.58),
        xycoords="axes fraction",
        ha="right" if right else "left",
        fontsize=SMALL_SIZE,
        color=shades.ink,
    )
    axes.annotate(
        "",
        (1.0 if right else 0.0, 0.5),
        (0.8 if right else 0.2, 0.5),
        xycoords="axes fraction",
        arrowprops={"arrowstyle": "->", "color": shades.ink},
    )
    axes.set_xlim(
        *((low, high + 0.6 * (high - low)) if right else (low - 0.6 * (high - low), high))
    )
