"""Pictures of guarantees: trade-off curves, ε(δ) curves, and what a ledger has spent.

The curves are the certified ones: trade-off curves are never drawn above the proven bound,
ε(δ) curves never below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.explain import guess_bound, percent_up, power_bound
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.tradeoff.curve import tradeoff_of
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text
from discreet.plots.numbers import number
from discreet.plots.style import (
    CURVES,
    DASHES,
    SMALL_SIZE,
    dress,
    head,
    present,
    shades_of,
    stroke,
)

if TYPE_CHECKING:
    from discreet.trusted.ledger.core import Ledger

MOST_CURVES = len(CURVES) * len(DASHES)
_COORDINATES = (
    ("epsilon", "ε (pure)"),
    ("mu_squared", "μ² (Gaussian)"),
    ("rho", "ρ (zCDP)"),
    ("delta", "δ₀"),
)


def plot_tradeoff(
    *guarantees: Any,
    labels: Sequence[str] | None = None,
    ax: Any = None,
    title: str = "What an attacker can tell",
    path: str | Path | None = None,
) -> Any:
    """Trade-off curves: the least probability of missing a person against the false-alarm rate.

    The diagonal is blind guessing. The region below the first curve is shaded:
    under that guarantee no attacker gets there.
    """
    names = _names(guarantees, labels)

    def draw(axes: Any) -> None:
        shades = shades_of(axes)
        axes.plot(
            [0, 1],
            [1, 0],
            color=shades.grey,
            linewidth=0.9,
            linestyle=(0, (4, 3)),
            label="blind guessing",
        )
        for index, (guarantee, name) in enumerate(zip(guarantees, names, strict=True)):
            alphas, betas = tradeoff_points(guarantee)
            if index == 0:
                axes.fill_between(
                    alphas,
                    0,
                    betas,
                    color=shades.pale,
                    linewidth=0,
                    label="out of any attacker's reach",
                )
            axes.plot(alphas, betas, label=name, **stroke(index))
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_aspect("equal")
        dress(axes, "false-alarm rate α", "least probability of missing a person β")
        head(axes, title, names=40.0)

    return present(draw, (5.2, 5.4 + 0.15 * len(guarantees)), ax=ax, path=path)


def plot_ten_fold(path: str | Path | None = None, *, ax: Any = None) -> Any:
    """Ten releases of (1/√10)-DP together, exactly,
    against G_1 and against what basic composition says (reference.md C5).

    The exact curve is within 0.0123 of G_1, as the central limit theorem of f-DP foresees;
    √10-DP is far below it.
    """
    each = PureDP(1 / math.sqrt(10))
    exact = tradeoff_of(each).repeat(10)
    labels = (
        "10 × (1/√10)-DP, exactly",
        "G₁ (Gaussian, μ = 1)",
        f"basic composition: ε = {decimal_text(math.sqrt(10), 3)}",
    )
    return plot_tradeoff(
        exact,
        GDP(1),
        PureDP(math.sqrt(10)),
        labels=labels,
        ax=ax,
        path=path,
        title="Ten releases together",
    )


def plot_epsilon_delta(
    *guarantees: Any,
    labels: Sequence[str] | None = None,
    path: str | Path | None = None,
    smallest: float = 1e-12,
    largest: float = 1e-1,
    points: int = 60,
    ax: Any = None,
    title: str = "The (ε, δ) statements that hold",
) -> Any:
    """ε(δ): the least ε that holds at each δ between `smallest` and `largest`,
    on a logarithmic axis; gaps where none does.
    """
    names = _names(guarantees, labels)
    if not 0 < smallest < largest < 1 or not 2 <= points <= 10_000:
        raise InvalidParameter(
            "plot_epsilon_delta",
            "it needs 0 < smallest < largest < 1 and 2 to 10000 points",
            "δ is a probability on a logarithmic axis",
            "leave them out for 1e-12 … 0.1",
        )
    deltas = np.geomspace(smallest, largest, points)

    def draw(axes: Any) -> None:
        top = max(
            _draw_epsilons(axes, index, guarantee, name, deltas)
            for index, (guarantee, name) in enumerate(zip(guarantees, names, strict=True))
        )
        axes.set_xscale("log")
        axes.set_xlim(smallest, largest)
        axes.set_ylim(0, 1.05 * top if top > 0 else 1)
        dress(axes, "δ", "least ε", grid="both")
        head(axes, title)

    return present(draw, (6.0, 4.2), ax=ax, path=path)


def _draw_epsilons(axes: Any, index: int, guarantee: Any, name: str, deltas: Any) -> float:
    """One curve, and the point that an (ε, δ) guarantee names; the greatest ε of the curve."""
    epsilons = np.array([guarantee.epsilon_at(float(delta)) for delta in deltas])
    epsilons[~np.isfinite(epsilons)] = np.nan
    axes.plot(deltas, epsilons, label=name, **stroke(index))
    if isinstance(guarantee, ApproxDP):
        color = stroke(index)["color"]
        axes.plot([guarantee.delta], [guarantee.epsilon], "o", color=color, markersize=4)
    return float(np.nanmax(epsilons, initial=0.0))


def plot_explained(
    *guarantees: Any,
    labels: Sequence[str] | None = None,
    false_alarm: float = 0.05,
    ax: Any = None,
    title: str = "The most that an attacker can achieve",
    path: str | Path | None = None,
) -> Any:
    """What `dp.explain` says, for several guarantees beside each other: how often a fair coin about
    one person is guessed at most, and how often a person is detected at most where `false_alarm` of
    others are accused too. Dashed: blind guesses.
    """
    names = _names(guarantees, labels)
    games = [
        ("a fair coin about a person, guessed", 0.5, [guess_bound(g, 0.5) for g in guarantees]),
        (
            f"a person detected, at {100 * false_alarm:g} % false alarms",
            false_alarm,
            [power_bound(g, false_alarm) for g in guarantees],
        ),
    ]

    def draw(axes: Any) -> None:
        shades = shades_of(axes)
        colors = (shades.light, shades.accent)
        for (game, blind, limits), color, lift in zip(games, colors, (0.19, -0.19), strict=True):
            places = np.arange(len(names))[::-1] + lift
            axes.barh(places, [100 * one for one in limits], height=0.34, color=color, label=game)
            axes.axvline(100 * blind, color=shades.grey, linewidth=0.9, linestyle=(0, (4, 3)))
            for place, limit in zip(places, limits, strict=True):
                axes.annotate(
                    percent_up(limit),
                    (100 * limit, place),
                    (4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=SMALL_SIZE,
                    color=shades.ink,
                )
        axes.set_yticks(range(len(names))[::-1], names)
        axes.set_xlim(0, 112)
        axes.set_xticks(range(0, 101, 25))
        dress(axes, "at most, in percent (dashed: blind guesses)", grid="x")
        head(axes, title, names=5.0 * max(map(len, names)))

    return present(draw, (6.6, 1.6 + 0.5 * len(guarantees)), ax=ax, path=path)


def plot_budget(
    ledger: Ledger,
    path: str | Path | None = None,
    *,
    over: str = "entries",
    ax: Any = None,
    title: str = "Budget spent",
) -> Any:
    """How much of each coordinate of the ledger's box is spent, debit by debit (`over="entries"`)
    or by the clock (`over="time"`).
    """
    if over not in ("entries", "time"):
        raise InvalidParameter(
            "over=",
            f"{over!r} is neither 'entries' nor 'time'",
            "it is the horizontal axis",
            "pass over='entries' or over='time'",
        )
    entries = ledger.entries()
    debits = [entry for entry in entries if entry.kind == "debit"]
    places: list[Any] = (
        list(range(len(debits) + 1))
        if over == "entries"
        else [datetime.fromisoformat(entry.timestamp) for entry in (entries[0], *debits)]
    )

    def draw(axes: Any) -> None:
        for index, (field, name) in enumerate(_COORDINATES):
            whole = getattr(ledger.box, field, 0)
            if whole:
                amounts = [getattr(entry.amounts.exact(), field) for entry in debits]
                _draw_spent(axes, index, name, whole, amounts, places)
        axes.axhline(
            100, color=shades_of(axes).grey, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1
        )
        axes.set_ylim(0, 105)
        if over == "entries":
            axes.set_xlim(0, 1.02 * max(1, len(debits)))
            axes.xaxis.get_major_locator().set_params(integer=True)
        else:
            _clock(axes, places)
        dress(axes, "debits" if over == "entries" else "time (UTC)", "percent of the budget's box")
        head(axes, title, f"promised: {ledger.budget} (the dashed line)")

    return present(draw, (6.4, 4.0), ax=ax, path=path)


def _draw_spent(
    axes: Any, index: int, name: str, whole: Any, amounts: Sequence[Any], places: Sequence[Any]
) -> None:
    """One coordinate of the box: percents after each debit."""
    shares = np.cumsum([0.0] + [100 * float(amount / whole) for amount in amounts])
    line = stroke(index)
    axes.step(
        places,
        shares,
        where="post",
        label=f"{name}: {shares[-1]:.3g} % of {number(float(whole))}",
        **line,
    )
    axes.plot(places[-1:], shares[-1:], "o", color=line["color"], markersize=4, clip_on=False)
    if len(places) <= 40:
        axes.plot(places[1:-1], shares[1:-1], "o", color=line["color"], markersize=2.5)


_LINES = 97  # supporting lines of each sign for a curve that is not piecewise linear itself
_ALPHAS = np.unique(
    np.concatenate(
        [np.geomspace(1e-6, 0.02, 60), np.linspace(0, 1, 201), 1 - np.geomspace(1e-4, 0.02, 20)]
    )
)


def tradeoff_points(guarantee: Any) -> tuple[Any, Any]:
    """(α, β) to draw: G_μ on a grid, the corners of every other curve (`tradeoff_of`)."""
    if isinstance(guarantee, GDP):
        return _ALPHAS, np.array([guarantee.tradeoff(float(alpha)) for alpha in _ALPHAS])
    corners = np.array(tradeoff_of(guarantee, points=_LINES).vertices)
    return corners[:, 0], corners[:, 1]


def _clock(axes: Any, moments: Sequence[datetime]) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    width = max(moments[-1] - moments[0], timedelta(minutes=1))
    axes.set_xlim(moments[0], moments[0] + 1.02 * width)
    locator = AutoDateLocator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.xaxis.get_offset_text().set_fontsize(SMALL_SIZE)


def _names(guarantees: Sequence[Any], labels: Sequence[str] | None) -> list[str]:
    if not 1 <= len(guarantees) <= MOST_CURVES:
        raise InvalidParameter(
            "guarantees",
            f"{len(guarantees)} were given",
            f"a picture tells 1 to {MOST_CURVES} curves apart",
            "pass some guarantees, for example dp.GDP(1)",
        )
    if labels is not None and len(labels) != len(guarantees):
        raise InvalidParameter(
            "labels",
            f"{len(labels)} for {len(guarantees)} guarantees",
            "each curve has one name",
            "pass one label for each guarantee",
        )
    return (
        [str(label) for label in labels]
        if labels is not None
        else [str(guarantee) for guarantee in guarantees]
    )
