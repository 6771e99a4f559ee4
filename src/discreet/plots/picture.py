"""What needs matplotlib to be defined: a figure that shows itself in notebooks, and plain ticks."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter

from discreet.plots.numbers import tick_texts

DOTS_PER_INCH = 144  # twice what a screen shows, so that letters are sharp
SHOWN_PER_INCH = 96


class Picture(Figure):
    """A figure without pyplot; a notebook shows it where it is the value of a cell."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        FigureCanvasAgg(self)
        self.heads: list[Callable[[], None]] = []  # to be placed once the panels have their size

    def settle(self) -> None:
        """Find the panels' sizes, and break their titles and legends into lines by them."""
        heads, self.heads = self.heads, []
        if heads:
            self.draw_without_rendering()
            for place in heads:
                place()

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture as PNG, with the size in which it is shown."""
        self.settle()
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=DOTS_PER_INCH)
        width, height = (round(SHOWN_PER_INCH * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}


class PlainTicks(Formatter):
    """Ticks as plain texts, 25 000 or −0.05, divided by a power of ten that the axis's label names:
    nothing is left to an offset in a corner.
    """

    def __init__(self, power: int = 0) -> None:
        self.power = power

    def __call__(self, value: float, position: int | None = None) -> str:
        return self.format_ticks([value])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return tick_texts(values, self.power)
