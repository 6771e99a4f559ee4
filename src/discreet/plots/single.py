"""One number: its interval, the part of it that privacy costs, what sampling alone would leave, and
where it lies in the declared range.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.plots.cells import EQUAL, widest
from discreet.plots.numbers import interval, number
from discreet.plots.style import SMALL_SIZE, TEXT_SIZE, dress, head, shades_of, split

SIZE = (6.6, 2.9)
SIZE_WITH_RANGE = (6.6, 3.5)
# estimates of these lie in the range of their column
IN_RANGE = ("mean", "mean test", "paired test", "median", "quantile")


@dataclass(frozen=True, slots=True)
class Single:
    """An estimate with its interval, that of privacy error alone, about that of sampling alone,
    the range it was known to lie in, and the share of the variance that privacy cost.
    """

    what: str
    estimate: float
    both: tuple[float, float]
    private: tuple[float, float] | None
    sampling: tuple[float, float] | None
    known: tuple[float, float] | None = None
    noise_share: float | None = None
    equal: float | None = None  # where groups are alike
    label: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Inches of a figure of its own."""
        return SIZE if self.known is None else SIZE_WITH_RANGE


def single_of(result: Any, level: float) -> Single:
    """The picture's numbers of a result with one cell."""
    both = result.quantities(level)[-1]
    private = result.quantities(level, target="data")[-1]
    single = from_quantities(both, private, level, known_range(result, both.name))
    return replace(single, label=" / ".join(result.labels[0]), equal=EQUAL.get(both.name))


def from_quantities(
    both: Any, private: Any, level: float, known: tuple[float, float] | None
) -> Single:
    """From a quantity with sampling error and the same of this data set alone."""
    estimate, sampling = float(both.estimate[0]), float(both.sampling_variance[0])
    privacy = float(both.privacy_variance[0])
    ends, alone = _ends(both), _ends(private)
    total = sampling + privacy
    told = np.isfinite(total) and total > 0
    return Single(
        both.name,
        estimate,
        ends,
        alone if all(np.isfinite(alone)) else None,
        _shrunk(estimate, ends, float(np.sqrt(sampling / total))) if told and sampling else None,
        known,
        privacy / total if told else None,
    )


def _ends(quantity: Any) -> tuple[float, float]:
    return float(quantity.low[0]), float(quantity.high[0])


def _shrunk(estimate: float, ends: tuple[float, float], factor: float) -> tuple[float, float]:
    """The interval about its estimate, with the standard error that sampling alone leaves."""
    return estimate - factor * (estimate - ends[0]), estimate + factor * (ends[1] - estimate)


def known_range(result: Any, what: str) -> tuple[float, float] | None:
    """What was public about the number before anything was asked."""
    release = result.release
    if what in ("share", "proportion"):
        return 0.0, 1.0
    if what == "count" and release.public_rows is not None:
        return 0.0, float(release.public_rows)
    grid = getattr(getattr(release.query, "factor", None), "encoding", None)
    if release.description.estimator not in IN_RANGE or grid is None:
        return None
    return float(grid.value(grid.low)), float(grid.value(grid.high))


def draw_single(axes: Any, single: Single, level: float, title: str, promise: str) -> None:
    """Draw one number on given axes, with its range below where there is one."""
    if single.known is not None:
        axes, below = split(axes, [4.2, 0.5])
        _draw_range(below, single)
    rows = _rows(axes, single)
    shades = shades_of(axes)
    for place, (_, ends, color, thick) in enumerate(reversed(rows)):
        axes.hlines(place, *ends, color=color, linewidth=thick)
        axes.plot(ends, [place, place], "|", color=color, markersize=9, markeredgewidth=1.4)
    top = len(rows) - 1
    if np.isfinite(single.estimate):
        axes.axvline(single.estimate, color=shades.grid, linewidth=1.0, zorder=0)
        axes.plot([single.estimate], [top], "o", color=shades.ink, markersize=6)
        axes.annotate(
            number(single.estimate, single.both[1] - single.both[0]),
            (single.estimate, top),
            (0.0, 8.0),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=TEXT_SIZE,
            fontweight="bold",
            color=shades.ink,
        )
    if single.equal is not None:
        axes.axvline(single.equal, color=shades.grey, linewidth=0.9, linestyle="--", zorder=1)
    names = [_row_name(name, ends) for name, ends, _, _ in reversed(rows)]
    axes.set_yticks(range(len(rows)), names, parse_math=False)
    axes.set_ylim(-0.6, top + 0.85)
    axes.margins(x=0.08)
    dress(axes, f"{single.what}, {single.label}" if single.label else single.what, grid="x")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    head(axes, title, f"{promise}; {_words(single, level)}", names=widest(names))


def _rows(axes: Any, single: Single) -> list[tuple[str, tuple[float, float], str, float]]:
    shades = shades_of(axes)
    rows = [("with sampling error", single.both, shades.light, 9.0)]
    if single.private is not None:
        rows.append(("privacy error alone", single.private, shades.accent, 4.0))
    if single.sampling is not None:
        rows.append(("about, without privacy", single.sampling, shades.grey, 4.0))
    return rows


def _row_name(name: str, ends: tuple[float, float]) -> str:
    return f"{name}\n{interval(*ends)}"


def _words(single: Single, level: float) -> str:
    said = f"{100 * level:g}% intervals"
    if single.equal is not None:
        said += f"; dashed: {number(single.equal)}, alike"
    if single.noise_share is None:
        return said
    return f"{said}; privacy is {100 * single.noise_share:.0f} % of the variance"


def _draw_range(axes: Any, single: Single) -> None:
    assert single.known is not None
    shades, (low, high) = shades_of(axes), single.known
    axes.hlines(0, low, high, color=shades.pale, linewidth=9.0)
    axes.hlines(0, *np.clip(single.both, low, high), color=shades.accent, linewidth=9.0)
    if np.isfinite(single.estimate):
        axes.plot([np.clip(single.estimate, low, high)], [0], "o", color=shades.ink, markersize=4)
    axes.set_yticks([0], ["in the range\nknown before"])
    axes.set_ylim(-0.5, 0.5)
    axes.margins(x=0.02)
    dress(axes, grid="")
    axes.tick_params(axis="both", length=0, labelsize=SMALL_SIZE)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_xticks([low, high])
