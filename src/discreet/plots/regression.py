"""Pictures of regressions: coefficients, joint regions, iterates and residuals,
drawn from releases alone (post-processing).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from discreet.errors import InvalidParameter
from discreet.plots.cells import widest
from discreet.plots.style import (
    TEXT_SIZE,
    dress,
    head,
    present,
    shades_of,
    split,
    stroke,
    wrapped,
)

NAME_ROOM = 170.0
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
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Intervals of a regression's coefficients, one line each; those of one order of magnitude
    share an axis, and the intercept has one of its own.

    `reference` is drawn beside them: (estimate, low, high) for each coefficient in order, or a
    mapping from names to such triples.
    """
    names, both = list(fit.names), fit.confidence_interval(level)
    others = _reference(reference, names)
    reach = np.abs(both).max(axis=1)
    for place, other in others.items():
        reach[place] = max(reach[place], float(np.abs(other).max()))
    groups = panels(names, reach, intercept=intercept)
    shown = [wrapped(name, NAME_ROOM, TEXT_SIZE) for name in names]
    lines = [sum(1 + 0.8 * shown[row].count("\n") for row in group) for group in groups]

    def draw(axes: Any) -> None:
        drawn = split(axes, [0.6 + many for many in lines])
        for panel, group in zip(drawn, groups, strict=True):
            _draw_group(panel, fit, level, [(row, shown[row]) for row in group], others)
        if others and "reference" not in drawn[0].get_legend_handles_labels()[1]:
            drawn[0].plot([], [], color=shades_of(drawn[0]).other, linewidth=2.0, label="reference")
        words = f"Coefficients of {_response(fit)}" if title is None else title
        said = f"{fit.facts.spend}; {100 * level:g}% intervals"
        head(drawn[0], words, said, names=widest(shown))

    height = 1.15 + sum(0.42 + 0.3 * many for many in lines)
    return present(draw, (7.0, height), ax=ax, path=path)


def _draw_group(
    axes: Any, fit: Any, level: float, rows: list[tuple[int, str]], others: dict[int, Any]
) -> None:
    """Coefficients that share an axis."""
    shades, group = shades_of(axes), [row for row, _ in rows]
    places, lift = np.arange(len(group))[::-1], 0.15 if others else 0.0
    # how far an intercept is from 0 says little, and would flatten it
    if fit.names[group[0]] != "intercept" or len(fit.names) == 1:
        axes.axvline(0.0, color=shades.grey, linewidth=0.8, zorder=1)
    both = fit.confidence_interval(level)[group]
    private = fit.confidence_interval(level, target="data")[group]
    for ends, color, thick, label in (
        (both, shades.light, 5.0, "private, with sampling error"),
        (private, shades.accent, 2.0, "privacy error alone"),
    ):
        axes.hlines(places + lift, *ends.T, color=color, linewidth=thick, label=label)
    axes.plot(fit.params[group], places + lift, "o", color=shades.ink, markersize=4)
    _reference_intervals(
        axes,
        [
            (place - lift, others[row])
            for place, row in zip(places, group, strict=True)
            if row in others
        ],
    )
    axes.set_yticks(places, [name for _, name in rows], parse_math=False)
    axes.set_ylim(-0.6, len(group) - 0.4)
    dress(axes, grid="x")


def _reference_intervals(axes: Any, beside: list[tuple[float, Any]]) -> None:
    """(place, (estimate, low, high)) of what stands beside the private fit."""
    if not beside:
        return
    other, places = shades_of(axes).other, [place for place, _ in beside]
    estimates, lows, highs = zip(*(numbers for _, numbers in beside), strict=True)
    axes.hlines(places, lows, highs, color=other, linewidth=2.0, label="reference")
    axes.plot(estimates, places, "|", color=other, markersize=9)


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
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """The joint confidence region of two coefficients, with their single intervals;
    a reference (two numbers) is marked.
    """
    border = fit.ellipse(first, second, level)
    places = [fit.names.index(name) for name in (first, second)]
    mark = None if reference is None else np.asarray(reference, dtype=float)
    if mark is not None and mark.shape != (2,):
        raise InvalidParameter(
            "reference=",
            "it is not two numbers",
            "it is a point in the plane of two coefficients",
            "pass (value of the first, value of the second)",
        )

    def draw(axes: Any) -> None:
        shades = shades_of(axes)
        axes.fill(*border.T, color=shades.pale, linewidth=0, label="joint region")
        axes.plot(*border.T, color=shades.accent, linewidth=1.2)
        ends = fit.confidence_interval(level)[places]
        dashes = {"color": shades.grey, "linewidth": 0.8, "linestyle": "--", "zorder": 1}
        for end in ends[0]:
            axes.axvline(end, **dashes)
        for end in ends[1]:
            axes.axhline(end, **dashes, label="single intervals" if end == ends[1][0] else None)
        axes.plot(*fit.params[places], "o", color=shades.ink, markersize=4, label="estimate")
        if mark is not None:
            axes.plot(*mark, "+", color=shades.other, markersize=9, label="reference")
        axes.margins(0.12)
        dress(axes, first, second)
        words = f"{100 * level:g}% region, {_response(fit)}" if title is None else title
        head(axes, words, str(fit.facts.spend))

    return present(draw, (5.2, 4.8), ax=ax, path=path)


def plot_trajectory(
    fit: Any, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """The released iterates of a regression, in standard errors from its estimate."""
    moves = (fit.trajectory - fit.params) / fit.std_errors

    def draw(axes: Any) -> None:
        axes.axhspan(-1, 1, color=shades_of(axes).grid, zorder=0)
        named = len(fit.names) <= MOST_NAMED
        for column, name in enumerate(fit.names):
            axes.plot(
                np.arange(len(moves)),
                moves[:, column],
                marker="o" if len(moves) <= MOST_MARKED else "",
                markersize=3,
                label=name if named else None,
                **(stroke(column) | {"linewidth": 1.0}),
            )
        if float(np.abs(moves).max()) > 50:
            axes.set_yscale("symlog", linthresh=2.0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        dress(
            axes,
            "released iterate (the last is the estimate)",
            "standard errors from the estimate",
        )
        words = f"Iterates of {_response(fit)}" if title is None else title
        hidden = "" if named else f"; {len(fit.names)} coefficients, not named"
        head(axes, words, f"{fit.facts.spend}{hidden}")

    return present(draw, (6.8, 4.0), ax=ax, path=path)


def plot_residuals(
    result: Any,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """A histogram of standardised residuals as densities with intervals;
    dots are the standard normal law.
    """
    share, edges = result.quantities(level)[-1], np.array(result.release.description.edges)
    step = float(np.median(np.diff(edges))) if edges.size > 1 else 1.0
    # the open cells are drawn one step wide
    ends = np.concatenate([[edges[0] - step], edges, [edges[-1] + step]])
    middle, width = (ends[:-1] + ends[1:]) / 2, np.diff(ends)

    def draw(axes: Any) -> None:
        shades = shades_of(axes)
        axes.bar(
            middle,
            np.maximum(share.estimate / width, 0),
            width=width,
            color=shades.light,
            edgecolor=shades.paper,
            linewidth=0.5,
            label="estimate",
        )
        axes.vlines(
            middle,
            share.low / width,
            share.high / width,
            color=shades.ink,
            linewidth=1.0,
            label=f"{100 * level:g}% interval",
        )
        normal = result.normal_shares() / width
        axes.plot(middle, normal, "o", color=shades.other, markersize=3, label="normal errors")
        dress(axes, "residual / scale (the outer bars hold everything beyond)", "density")
        asked = result.release.description
        words = f"{result.title} of {asked.column}" if title is None else title
        head(axes, words, str(result.release.guarantee))

    return present(draw, (6.5, 3.9), ax=ax, path=path)


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


def _response(fit: Any) -> str:
    return str(fit.releases[-1].description.column)
