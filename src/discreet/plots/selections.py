"""Pictures of selections: what was chosen, and how far its score can be behind the best, by the
probability with which that is promised. Scores themselves are not released, and not drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from discreet.inference.counts.selection import SelectionResult, ThresholdResult

LEVELS = np.concatenate([np.linspace(0.02, 0.9, 23), [0.925, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999]])
MOST_NAMED = 200
NAME_ROOM = 190.0


def plot_selection(
    result: SelectionResult,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """The chosen candidates in order, beside the curve of the utility theorem."""
    given: Any = result
    chosen = given.chosen if isinstance(given.chosen, list) else [given.chosen]
    names = _names(chosen)
    words = _title(result) if title is None else title
    lines = sum(1 + name.count("\n") for name in names)

    def draw(axes: Any) -> None:
        left, right = split(axes, [max(2.5, widest(names) / 72 + 0.6), 4.2], across=True)
        _draw_chosen(left, names, words, len(chosen), len(result.candidates))
        _draw_curve(right, result, level)

    size = (5.2 + max(2.5, widest(names) / 72 + 0.6), max(3.4, 1.2 + 0.2 * lines))
    return present(draw, size, ax=ax, path=path)


def plot_threshold(
    result: ThresholdResult,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Each question with its answer: what is known of its count with probability `level`."""
    names = _names(result.candidates)
    lines = sum(1 + name.count("\n") for name in names)
    words = _title(result) if title is None else title
    return present(
        lambda axes: _draw_answers(axes, result, level, names, words),
        (7.0, max(3.2, 1.6 + 0.24 * lines)),
        ax=ax,
        path=path,
    )


def _title(result: SelectionResult) -> str:
    asked = result.release.description
    return result.title + (f" of {asked.column}" if asked.column else "")


def _names(candidates: Any) -> list[str]:
    return [wrapped(name, NAME_ROOM, TEXT_SIZE) for name in list(candidates)[:MOST_NAMED]]


def _draw_chosen(axes: Any, names: list[str], title: str, chosen: int, candidates: int) -> None:
    """Candidates as a list, the first choice on top."""
    shades = shades_of(axes)
    lines = sum(1 + name.count("\n") for name in names)
    places = row_places(names)
    for number_of, (place, name) in enumerate(zip(places, names, strict=True), start=1):
        axes.plot([0.06], [place], "o", color=shades.accent, markersize=11, clip_on=False)
        axes.text(
            0.06, place, str(number_of), color=shades.paper, ha="center", va="center", fontsize=7
        )
        axes.text(
            0.16, place, name, color=shades.ink, va="center", fontsize=TEXT_SIZE, parse_math=False
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(-lines - max(0.0, 5 - lines), 0.2)
    axes.set_axis_off()
    hidden = f", the first {len(names)} shown" if chosen > len(names) else ""
    head(axes, title, f"{chosen} of {candidates} candidates{hidden}", legend=False)


def _draw_curve(axes: Any, result: SelectionResult, level: float) -> None:
    """P(behind the best by at most g), at least."""
    shades = shades_of(axes)
    gaps = np.array([result.score_gap(float(at)) for at in LEVELS])
    gap = result.score_gap(level)
    axes.fill_between(gaps, 0, 100 * LEVELS, step="post", color=shades.pale, linewidth=0)
    axes.step(gaps, 100 * LEVELS, where="post", color=shades.accent, linewidth=1.6)
    axes.plot([gap], [100 * level], "o", color=shades.ink, markersize=5)
    axes.hlines(100 * level, 0, gap, color=shades.grey, linewidth=0.9, linestyle="--")
    axes.vlines(gap, 0, 100 * level, color=shades.grey, linewidth=0.9, linestyle="--")
    axes.set_ylim(0, 103)
    axes.set_xlim(left=0, right=max(1.0, 1.04 * float(gaps[-1])))
    dress(axes, f"behind the best by at most ({result.unit})", "probability, at least, in %")
    unit = "rows" if result.unit == "rows" else f"({result.unit})"
    said = f"within {number(gap)} {unit} of the best with {100 * level:g} %"
    head(axes, said, str(result.guarantee), legend=False)


def _draw_answers(
    axes: Any, result: ThresholdResult, level: float, names: list[str], title: str
) -> None:
    shades, gap, at = shades_of(axes), result.score_gap(level), float(result.threshold)
    lines = sum(1 + name.count("\n") for name in names)
    places = row_places(names)
    answers = list(result.above.values())
    end = 1.6 * gap + max(1.0, 0.2 * gap)
    axes.axvspan(at - gap, at + gap, color=shades.pale, linewidth=0, label="either answer")
    axes.axvline(at, color=shades.ink, linewidth=1.0, label=f"threshold {number(at)}")
    for place, answer in zip(places, answers, strict=False):
        first, last = (at - gap, at + end) if answer else (at - end, at + gap)
        color = shades.other if answer else shades.accent
        axes.annotate(
            "",
            (last if answer else first, place),
            (first if answer else last, place),
            arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2.0},
        )
    for color, label in ((shades.other, "above"), (shades.accent, "below")):
        axes.plot([], [], color=color, linewidth=2.0, label=label)
    for place in places[len(answers) :]:
        axes.text(at, place, "not reached", ha="center", va="center", fontsize=7, color=shades.grey)
    axes.set_yticks(places, names, parse_math=False)
    axes.set_ylim(-lines - 0.3, 0.3)
    axes.set_xlim(at - 1.08 * end, at + 1.08 * end)
    dress(axes, "rows", grid="")
    axes.tick_params(axis="y", length=0)
    hidden = len(result.candidates) - len(names)
    note = f"; the first {len(names)} of {len(result.candidates)}" if hidden > 0 else ""
    head(
        axes,
        title,
        f"{result.guarantee}; where each count lies with {100 * level:g} % for all at once{note}",
        names=widest(names),
    )
    axes.tick_params(axis="y", labelsize=TEXT_SIZE if len(names) <= 40 else SMALL_SIZE)
