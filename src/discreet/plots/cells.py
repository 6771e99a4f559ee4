"""Estimates of several cells with their intervals: upright where their names fit below, lying
where they are many or have long names.

Two shades tell the parts of an interval: the dark bar is privacy error alone (this data set), the
light one adds sampling error (the population).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.plots.style import (
    SMALL_SIZE,
    TEXT_SIZE,
    dress,
    head,
    room_of,
    shades_of,
    text_width,
    wrapped,
)

MOST_CELLS = 200
MOST_UPRIGHT = 16
NAME_ROOM, SLOT_ROOM = 190.0, 62.0  # points for a name beside and below a panel
# where groups are alike, for a line across a picture
EQUAL = {"difference": 0.0, "common difference": 0.0, "difference of means": 0.0, "mean rank": 0.5}


@dataclass(frozen=True, slots=True)
class Cells:
    """Named estimates with two intervals each (cells × 2):
    with sampling error, and of privacy error alone.
    """

    what: str
    names: tuple[str, ...]
    estimates: Any
    both: Any
    private: Any
    by: str = ""
    expected: Any = None  # what a hypothesis says of each

    @property
    def shown(self) -> int:
        """How many are drawn."""
        return min(len(self.names), MOST_CELLS)

    @property
    def beside(self) -> tuple[str, ...]:
        """The names that are drawn, broken into lines, for the side of a panel."""
        return tuple(wrapped(name, NAME_ROOM, TEXT_SIZE) for name in self.names[: self.shown])

    @property
    def below(self) -> tuple[str, ...]:
        """The same, for below a panel."""
        return tuple(wrapped(name, SLOT_ROOM, TEXT_SIZE) for name in self.names[: self.shown])

    def fits_upright(self, room: float) -> bool:
        """Whether all names fit below a panel of so many points."""
        slot = widest(self.below) + 8.0
        few = (
            self.shown <= MOST_UPRIGHT
            and max((name.count("\n") for name in self.below), default=0) <= 1
        )
        return few and slot * self.shown <= room

    @property
    def size(self) -> tuple[float, float]:
        """Inches of a figure of its own."""
        if self.fits_upright(620.0):
            slot = max(30.0, widest(self.below) + 8.0)
            return min(10.0, max(4.8, 1.2 + slot * self.shown / 72)), 4.0
        lines = sum(1 + name.count("\n") for name in self.beside)
        each = 0.23 if lines <= 40 else 0.185
        return 7.2, 1.5 + each * lines


def widest(names: Sequence[str]) -> float:
    """The width of the widest line of some names, in points."""
    return max(
        (text_width(line, TEXT_SIZE) for name in names for line in name.splitlines() if line),
        default=0.0,
    )


def draw_cells(axes: Any, cells: Cells, level: float, title: str, promise: str) -> None:
    """Draw cells on given axes, with what is not shown said in the picture."""
    upright = cells.fits_upright(room_of(axes))
    shown = cells.shown
    hidden = len(cells.names) - shown
    note = f"the first {shown} of {len(cells.names)}, to_frame() has all" if hidden else ""
    places = np.arange(shown) if upright else row_places(cells.beside)
    _draw_intervals(axes, cells, places, upright=upright)
    if upright:
        axes.set_xticks(places, cells.below, parse_math=False)
        axes.set_xlim(-0.6, shown - 0.4)
        dress(axes, cells.by, cells.what)
    else:
        axes.set_yticks(places, cells.beside, parse_math=False)
        lines = sum(1 + name.count("\n") for name in cells.beside)
        axes.set_ylim(-lines - 0.2, 0.2)
        dress(axes, cells.what, cells.by, grid="x")
    if shown > 40:
        axes.tick_params(axis="y", labelsize=SMALL_SIZE)
    axes.margins(**{"y" if upright else "x": 0.06})
    words = "; ".join(part for part in (promise, f"{100 * level:g}% intervals", note) if part)
    head(axes, title, words, names=0.0 if upright else widest(cells.beside))


def row_places(names: Sequence[str]) -> Any:
    """Heights of rows of names, first on top; names of two lines take two rows' room."""
    lines = np.array([1 + name.count("\n") for name in names], dtype=float)
    ends = np.cumsum(lines)
    return -(ends - lines / 2)


def _draw_intervals(axes: Any, cells: Cells, places: Any, *, upright: bool) -> None:
    shades, shown = shades_of(axes), len(places)
    lines = axes.vlines if upright else axes.hlines
    thick = 5.0 if shown <= 60 else 4.0
    both, private = np.asarray(cells.both)[:shown], np.asarray(cells.private)[:shown]
    lines(
        places,
        both[:, 0],
        both[:, 1],
        color=shades.light,
        linewidth=thick,
        label="with sampling error",
    )
    lines(
        places,
        private[:, 0],
        private[:, 1],
        color=shades.accent,
        linewidth=2.0,
        label="privacy error alone",
    )
    estimates = np.asarray(cells.estimates)[:shown]
    across = (places, estimates) if upright else (estimates, places)
    axes.plot(*across, "o", color=shades.ink, markersize=4 if shown <= 60 else 3)
    if cells.expected is not None:
        wanted = np.asarray(cells.expected)[:shown]
        across = (places, wanted) if upright else (wanted, places)
        axes.plot(
            *across, "D", color=shades.other, markersize=5, markerfacecolor="none", label="expected"
        )
    equal = EQUAL.get(cells.what)
    if equal is not None:
        mark = axes.axhline if upright else axes.axvline
        mark(equal, color=shades.grey, linewidth=0.9, linestyle="--", zorder=1, label="alike")
