"""How every picture looks: colours, letters, titles, legends above the panel, plain ticks, and the
one way from a drawing to a figure or to axes of the caller's own.

A legend stands between title and panel, where no data are. Colours are told apart without red and
green (tests/plots/test_style.py).
"""

from __future__ import annotations

import contextlib
import functools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter, MissingExtra, shown
from discreet.plots.numbers import power_of, times_text

TITLE_SIZE, TEXT_SIZE, SMALL_SIZE = 10.0, 8.0, 7.5
LINE = 1.35  # height of a line of text, in letters
MARGINS = 62.0  # points of a figure's width that are not its panel's, without its names
# after Okabe and Ito: each pair differs by 15 or more in CIE Lab, whichever cones an eye has
CURVES = ("#0b6e99", "#d55e00", "#00a878", "#d884b4", "#e69f00", "#6cc5f5", "#374151")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True, slots=True)
class Shades:
    """The colours of a picture on light or on dark paper."""

    paper: str
    ink: str  # estimates and words
    accent: str  # privacy error alone
    light: str  # with sampling error
    pale: str  # a second, wider band; the declared range
    grey: str  # what stands beside: subtitles, what would be without privacy
    grid: str
    other: str  # what is compared: a reference, an observed value


ON_LIGHT = Shades(
    "#ffffff", "#1f2933", "#0b6e99", "#9cc9dd", "#d9ebf3", "#616e7c", "#e4e7eb", "#c2410c"
)
ON_DARK = Shades(
    "#111827", "#f3f4f6", "#5bc0eb", "#2f6f8f", "#1d3f52", "#9ca3af", "#374151", "#fb923c"
)


def shades_of(axes: Any) -> Shades:
    """Light or dark, by what the axes are drawn on."""
    from matplotlib.colors import to_rgba

    paper = next(
        (
            color
            for color in (to_rgba(axes.get_facecolor()), to_rgba(axes.figure.get_facecolor()))
            if color[3] > 0.5
        ),
        (1.0, 1.0, 1.0, 1.0),
    )
    bright = 0.2126 * paper[0] + 0.7152 * paper[1] + 0.0722 * paper[2]
    return ON_LIGHT if bright > 0.5 else ON_DARK


def figure(width: float, height: float) -> Any:
    """An empty matplotlib figure that belongs to no global state and shows itself in notebooks."""
    try:
        from discreet.plots.picture import Picture
    except ImportError:
        raise MissingExtra("matplotlib", "plots", "a plot") from None
    return Picture(figsize=(width, height), layout="constrained", facecolor=ON_LIGHT.paper)


def save(canvas: Any, path: str | Path | None) -> Any:
    """Write the figure where a path is given; return it either way."""
    if isinstance(getattr(canvas, "heads", None), list):
        canvas.settle()
    if path is not None:
        try:
            canvas.savefig(path, dpi=150)
        except (OSError, ValueError, TypeError):
            raise InvalidParameter(
                "path=",
                f"no picture can be written to {shown(str(path))}",
                "the folder must exist, and the name's ending says in which format",
                "pass for example path='mean.png' (or .pdf, .svg)",
            ) from None
    return canvas


def present(
    draw: Callable[[Any], None],
    size: tuple[float, float],
    *,
    ax: Any = None,
    path: str | Path | None = None,
) -> Any:
    """A new figure with what `draw` draws on axes; or, where the caller gives axes, these."""
    if ax is not None:
        if not hasattr(ax, "get_subplotspec"):
            raise InvalidParameter(
                "ax=",
                f"a {type(ax).__name__} is no pair of axes",
                "the picture is drawn on one",
                "pass one pair of axes of matplotlib: fig, ax = plt.subplots(); …plot(ax=ax)",
            )
        draw(ax)
        save(ax.figure, path)
        return ax
    canvas = figure(*size)
    with _own_letters():
        draw(canvas.add_subplot())
        return save(canvas, path)


@contextlib.contextmanager
def _own_letters() -> Iterator[None]:
    """The same picture whatever style the caller has set for others."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        yield


def split(axes: Any, ratios: Sequence[float], *, across: bool = False) -> list[Any]:
    """The room of axes divided into panels, below each other or (`across`) side by side."""
    place, canvas = axes.get_subplotspec(), axes.figure
    if place is None:
        axes.set_axis_off()
        panels = _insets(axes, ratios, across=across)
    else:
        if is_own(axes):
            axes.remove()
        else:
            axes.set_axis_off()
        shape = (1, len(ratios)) if across else (len(ratios), 1)
        sizes: dict[str, Any] = {"width_ratios" if across else "height_ratios": list(ratios)}
        if canvas.get_layout_engine() is None:  # nobody else keeps room for ticks and titles
            sizes |= {"wspace": 0.35} if across else {"hspace": 0.9}
        inner = place.subgridspec(*shape, **sizes)
        panels = [canvas.add_subplot(inner[number]) for number in range(len(ratios))]
    for panel in panels:
        panel.set_facecolor(axes.get_facecolor())
    return panels


def _insets(axes: Any, ratios: Sequence[float], *, across: bool) -> list[Any]:
    shares = np.asarray(ratios, dtype=float) / np.sum(ratios)
    ends = np.cumsum(shares)
    used = 0.8  # of each part; the rest is for its ticks and title
    return [
        axes.inset_axes(
            [end - share, 0.0, used * share, 1.0] if across else [0.0, 1.0 - end, 1.0, used * share]
        )
        for end, share in zip(ends, shares, strict=True)
    ]


def is_own(axes: Any) -> bool:
    """Whether the axes are on a figure of ours, whose layout keeps room for what they need."""
    return hasattr(axes.figure, "_repr_png_")


@functools.lru_cache(maxsize=4096)
def text_width(text: str, size: float) -> float:
    """The width of a line of text in points."""
    try:
        from matplotlib.textpath import TextPath
    except ImportError:
        raise MissingExtra("matplotlib", "plots", "a plot") from None
    return float(TextPath((0, 0), text.replace("$", "S") + ".", size=size).get_extents().x1)


def wrapped(text: str, room: float, size: float) -> str:
    """A text broken into lines that are at most `room` points wide, inside words if need be."""
    letters = max(8, int(room / max(text_width("nature", size) / 6, 1e-9)))
    return "\n".join(textwrap.wrap(text, letters)) or text


def room_of(axes: Any, names: float = 0.0) -> float:
    """About the width of a panel in points; `names` is what stands left of it."""
    width = 72.0 * float(axes.figure.get_size_inches()[0])
    if not is_own(axes):  # a layout of the caller's will make room for the names
        width = _measured(axes)
        laid_out = axes.figure.get_layout_engine() is not None
        return max(0.5 * width, width - names) if laid_out else width
    place = axes.get_subplotspec()
    share = 1.0 if place is None else float(place.get_position(axes.figure).width) / 0.775
    return max(60.0, width * min(share, 1.0) - MARGINS - names)


def _measured(axes: Any) -> float:
    width = float(axes.get_window_extent().width) / float(axes.figure.dpi)
    return max(60.0, 72.0 * width)


def head(
    axes: Any,
    title: str,
    subtitle: str = "",
    *,
    names: float = 0.0,
    legend: bool = True,
) -> None:
    """Above a panel, from below: the legend of what it shows, a grey line, the title. In figures
    of ours they are broken into lines once more when the panel's width is known.
    """
    drawn = _head(axes, title, subtitle, room_of(axes, names), legend=legend)
    if is_own(axes):

        def place() -> None:
            for artist in drawn:
                artist.remove()
            _head(axes, title, subtitle, _measured(axes), legend=legend)

        axes.figure.heads.append(place)


def _head(axes: Any, title: str, subtitle: str, room: float, *, legend: bool) -> list[Any]:
    shades, lift, drawn = shades_of(axes), 4.0, []
    marks, labels = axes.get_legend_handles_labels()
    if legend and marks:
        drawn.append(_legend(axes, marks, labels, room, lift))
        rows = -(-len(labels) // drawn[0]._ncols)
        lift += rows * LINE * SMALL_SIZE + 3.0
    if subtitle:
        lines = wrapped(subtitle, room, SMALL_SIZE)
        drawn.append(
            axes.annotate(
                lines,
                (0.0, 1.0),
                (0.0, lift),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="left",
                va="bottom",
                fontsize=SMALL_SIZE,
                color=shades.grey,
                parse_math=False,
                annotation_clip=False,
            )
        )
        lift += LINE * SMALL_SIZE * (1 + lines.count("\n")) + 1.0
    axes.set_title(
        wrapped(title, room, TITLE_SIZE),
        loc="left",
        fontsize=TITLE_SIZE,
        color=shades.ink,
        pad=lift + 1.0,
        parse_math=False,
    )
    return drawn


def _legend(axes: Any, marks: Any, labels: Sequence[str], room: float, lift: float) -> Any:
    """The legend on as few lines as the panel's width allows."""
    from matplotlib.transforms import ScaledTranslation

    widest = max(text_width(label, SMALL_SIZE) for label in labels) + 2.8 * SMALL_SIZE
    between = 1.4 * SMALL_SIZE
    columns = min(len(labels), max(1, int((room + between) // (widest + between))))
    above = axes.transAxes + ScaledTranslation(0, lift / 72, axes.figure.dpi_scale_trans)
    legend = axes.legend(
        marks,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        bbox_transform=above,
        ncols=columns,
        fontsize=SMALL_SIZE,
        frameon=False,
        borderaxespad=0.0,
        borderpad=0.0,
        handlelength=1.8,
        handletextpad=0.6,
        columnspacing=1.4,
        labelspacing=0.25,
        labelcolor=shades_of(axes).ink,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def dress(axes: Any, horizontal: str = "", vertical: str = "", *, grid: str = "y") -> None:
    """Labels, letters, two spines, a faint grid, and ticks as plain numbers."""
    from matplotlib.ticker import AutoLocator, MaxNLocator

    from discreet.plots.picture import PlainTicks

    shades = shades_of(axes)
    for axis, label, ends in (
        (axes.xaxis, horizontal, axes.get_xlim()),
        (axes.yaxis, vertical, axes.get_ylim()),
    ):
        if type(axis.get_major_formatter()).__name__ == "ScalarFormatter":
            power = power_of(max(map(abs, ends)))
            axis.set_major_formatter(PlainTicks(power))
            label = ", ".join(part for part in (label, times_text(power)) if part)
        if axis is axes.xaxis and isinstance(axis.get_major_locator(), AutoLocator):
            most = int(np.clip(room_of(axes) / 45, 2, 8))
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
        axis.set_label_text(label, fontsize=TEXT_SIZE, color=shades.ink, parse_math=False)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(shades.grey)
    axes.tick_params(labelsize=TEXT_SIZE, colors=shades.ink)
    if grid:
        axes.grid(axis=grid, color=shades.grid, linewidth=0.6)
    axes.set_axisbelow(True)


def stroke(number: int) -> dict[str, Any]:
    """The line of the curve of this number: no two of the first 28 look alike."""
    return {
        "color": CURVES[number % len(CURVES)],
        "linewidth": 1.6,
        "linestyle": DASHES[number % len(DASHES)],
    }
