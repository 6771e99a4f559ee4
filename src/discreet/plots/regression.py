"""Pictures of regressions: coefficients, joint regions, iterates and residuals,
drawn from releases alone (post-processing).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.plots.results import ACCENT, INK, LIGHT, figure, save

GREY, PALE = "#616e7c", "#cbd2d9"
OTHER = "#b44d12"  # what stands beside the private fit
# coefficients whose intervals reach at most this many times further than others share an axis
ALIKE = 8.0
MOST_MARKED = 40  # iterates that are marked by dots
MOST_NAMED = 12


def plot_coefficients(
    fit: Any,
    level: float = 0.95,
    *,
    reference: Any = None,
    intercept: bool = True,
    path: str | Path | None = None,
) -> Any:
    """Intervals of a regression's coefficients, one line each; those of one order of magnitude
    share an axis, and the intercept has one of its own.

    `reference` is drawn beside them: (estimate, low, high) for each coefficient in order, or a
    mapping from names to such triples.
    """
    names, both = list(fit.names), fit.confidence_interval(level)
    private = fit.confidence_interval(level, target="data")
    others = _reference(reference, names)
    reach = np.abs(both).max(axis=1)
    for place, other in others.items():
        reach[place] = max(reach[place], float(np.abs(other).max()))
    groups = panels(names, reach, intercept=intercept)
    canvas = figure(6.8, 0.75 + sum(0.42 + 0.34 * len(group) for group in groups))
    drawn = np.atleast_1d(
        canvas.subplots(
            len(groups), 1, gridspec_kw={"height_ratios": [0.6 + len(group) for group in groups]}
        )
    )
    for axes, group in zip(drawn, groups, strict=True):
        places = np.arange(len(group))[::-1]
        lift = 0.15 if others else 0.0
        # how far an intercept is from 0 says little, and would flatten it
        if names[group[0]] != "intercept" or len(names) == 1:
            axes.axvline(0.0, color=PALE, linewidth=0.8)
        _private_intervals(axes, places + lift, fit.params[group], both[group], private[group])
        _reference_intervals(
            axes,
            [
                (place - lift, others[row])
                for place, row in zip(places, group, strict=True)
                if row in others
            ],
        )
        axes.set_yticks(places, [names[row] for row in group], parse_math=False)
        axes.set_ylim(-0.6, len(group) - 0.4)
        axes.tick_params(labelsize=8, colors=INK)
        _frame(axes)
    drawn[0].set_title(
        f"Coefficients of {_of(fit)}", loc="left", fontsize=10, color=INK, parse_math=False
    )
    _legend(canvas, drawn, f"{100 * level:g}% intervals")
    return save(canvas, path)


def _private_intervals(axes: Any, places: Any, estimates: Any, both: Any, private: Any) -> None:
    """Each estimate with its two intervals: with sampling error, and of the privacy error alone."""
    axes.hlines(
        places,
        both[:, 0],
        both[:, 1],
        color=LIGHT,
        linewidth=5.0,
        label="private, with sampling error",
    )
    axes.hlines(
        places,
        private[:, 0],
        private[:, 1],
        color=ACCENT,
        linewidth=2.0,
        label="privacy error alone",
    )
    axes.plot(estimates, places, "o", color=INK, markersize=4)


def _reference_intervals(axes: Any, beside: list[tuple[float, Any]]) -> None:
    """(place, (estimate, low, high)) of what stands beside the private fit."""
    if not beside:
        return
    places = [place for place, _ in beside]
    estimates, lows, highs = zip(*(other for _, other in beside), strict=True)
    axes.hlines(places, lows, highs, color=OTHER, linewidth=2.0, label="reference")
    axes.plot(estimates, places, "|", color=OTHER, markersize=9)


def _legend(canvas: Any, drawn: Any, title: str) -> None:
    """One legend below all axes."""
    marks = {
        label: mark
        for axes in drawn
        for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    canvas.legend(
        marks.values(),
        marks.keys(),
        loc="outside lower center",
        ncols=3,
        fontsize=7,
        frameon=False,
        title=title,
        title_fontsize=7,
    )


def panels(names: list[str], reach: Any, *, intercept: bool = True) -> list[list[int]]:
    """Which coefficients share an axis: the intercept alone, then groups whose intervals reach
    equally far (within a factor), in order of appearance.
    """
    alone = [place for place, name in enumerate(names) if name == "intercept" and len(names) > 1]
    rest = sorted(
        (place for place in range(len(names)) if place not in alone),
        key=lambda place: -reach[place],
    )
    groups: list[list[int]] = []
    for place in rest:
        if groups and reach[place] * ALIKE >= reach[groups[-1][0]]:
            groups[-1].append(place)
        else:
            groups.append([place])
    return ([alone] if alone and intercept else []) + sorted(
        (sorted(group) for group in groups), key=lambda group: group[0]
    )


def plot_ellipse(
    fit: Any,
    first: str,
    second: str,
    level: float = 0.95,
    *,
    reference: Any = None,
    path: str | Path | None = None,
) -> Any:
    """The joint confidence region of two coefficients, with their single intervals;
    a reference (two numbers) is marked.
    """
    border, places = (
        fit.ellipse(first, second, level),
        [fit.names.index(name) for name in (first, second)],
    )
    canvas = figure(4.8, 4.4)
    axes = canvas.add_subplot()
    axes.fill(border[:, 0], border[:, 1], color=LIGHT, alpha=0.6, linewidth=0, label="joint region")
    axes.plot(border[:, 0], border[:, 1], color=ACCENT, linewidth=1.2)
    ends = fit.confidence_interval(level)[places]
    for end in ends[0]:
        axes.axvline(end, color=PALE, linewidth=0.8, linestyle="--")
    for end in ends[1]:
        axes.axhline(
            end,
            color=PALE,
            linewidth=0.8,
            linestyle="--",
            label="single intervals" if end == ends[1][0] else None,
        )
    axes.plot(*fit.params[places], "o", color=INK, markersize=4)
    if reference is not None:
        mark = np.asarray(reference, dtype=float)
        if mark.shape != (2,):
            raise InvalidParameter(
                "reference=",
                "it is not two numbers",
                "it is a point in the plane of two coefficients",
                "pass (value of the first, value of the second)",
            )
        axes.plot(*mark, "+", color=OTHER, markersize=9, label="reference")
    axes.set_xlabel(first, fontsize=8, parse_math=False)
    axes.set_ylabel(second, fontsize=8, parse_math=False)
    axes.set_title(
        f"{100 * level:g}% region, {_of(fit)}", loc="left", fontsize=10, color=INK, parse_math=False
    )
    axes.tick_params(labelsize=8, colors=INK)
    axes.legend(fontsize=7, frameon=False)
    _frame(axes)
    return save(canvas, path)


def plot_trajectory(fit: Any, *, path: str | Path | None = None) -> Any:
    """The released iterates of a regression, in standard errors from its estimate."""
    moves = (fit.trajectory - fit.params) / fit.std_errors
    canvas = figure(6.4, 3.4)
    axes = canvas.add_subplot()
    axes.axhspan(-1, 1, color="#e4e7eb", zorder=0)
    for column, name in enumerate(fit.names):
        axes.plot(
            np.arange(len(moves)),
            moves[:, column],
            "o-" if len(moves) <= MOST_MARKED else "-",
            linewidth=1.0,
            markersize=3,
            label=name,
        )
    far = float(np.abs(moves).max())
    if far > 50:
        axes.set_yscale("symlog", linthresh=2.0)
    axes.set_xlabel("released iterate (the last is the estimate)", fontsize=8)
    axes.set_ylabel("standard errors from the estimate", fontsize=8)
    axes.set_title(f"Iterates of {_of(fit)}", loc="left", fontsize=10, color=INK, parse_math=False)
    axes.tick_params(labelsize=8, colors=INK)
    if len(fit.names) <= MOST_NAMED:
        canvas.legend(loc="outside right upper", fontsize=7, frameon=False)
    _frame(axes)
    return save(canvas, path)


def plot_residuals(result: Any, level: float = 0.95, *, path: str | Path | None = None) -> Any:
    """A histogram of standardised residuals as densities with intervals;
    dots are the standard normal law.
    """
    share, edges = result.quantities(level)[-1], np.array(result.release.description.edges)
    step = float(np.median(np.diff(edges))) if edges.size > 1 else 1.0
    # the open cells are drawn one step wide
    ends = np.concatenate([[edges[0] - step], edges, [edges[-1] + step]])
    middle, width = (ends[:-1] + ends[1:]) / 2, np.diff(ends)
    canvas = figure(6.5, 3.6)
    axes = canvas.add_subplot()
    axes.bar(
        middle,
        np.maximum(share.estimate / width, 0),
        width=width * 0.98,
        color=LIGHT,
        edgecolor="white",
        linewidth=0.5,
    )
    axes.vlines(middle, share.low / width, share.high / width, color=INK, linewidth=1.0)
    axes.plot(
        middle,
        result.normal_shares() / width,
        "o",
        color=OTHER,
        markersize=3,
        label="normal errors",
    )
    axes.set_xlabel("residual / scale (the outer bars hold everything beyond)", fontsize=8)
    axes.set_ylabel("density", fontsize=8)
    axes.set_title(
        f"{result.title} of {result.release.description.column}",
        loc="left",
        fontsize=10,
        color=INK,
        parse_math=False,
    )
    axes.tick_params(labelsize=8, colors=INK)
    axes.legend(fontsize=7, frameon=False)
    _frame(axes)
    return save(canvas, path)


def _reference(reference: Any, names: list[str]) -> dict[int, Any]:
    """(estimate, low, high) by the coefficient's place."""
    if reference is None:
        return {}
    try:
        if isinstance(reference, Mapping):
            return {
                names.index(name): np.asarray(triple, dtype=float).reshape(3)
                for name, triple in reference.items()
            }
        return dict(enumerate(np.asarray(reference, dtype=float).reshape(len(names), 3)))
    except (TypeError, ValueError):
        raise InvalidParameter(
            "reference=",
            f"it does not have three numbers for each of {', '.join(names)}",
            "it is drawn beside the private intervals",
            "pass rows of (estimate, low, high) in that order, or a mapping from names to them",
        ) from None


def _of(fit: Any) -> str:
    return f"{fit.releases[-1].description.column}: {fit.facts.spend}"


def _frame(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
