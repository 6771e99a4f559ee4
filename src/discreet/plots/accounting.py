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

from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.tradeoff.curve import tradeoff_of
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text
from discreet.plots.results import ACCENT, INK, LIGHT, figure, save

if TYPE_CHECKING:
    from discreet.trusted.ledger.core import Ledger

COLORS = (ACCENT, "#c2410c", "#4d7c0f", "#7c3aed", "#b45309", "#be185d", "#0f766e")
STYLES = ("-", "--", "-.", ":")
GREY, PALE = "#616e7c", "#e4e7eb"
MOST_CURVES = len(COLORS) * len(STYLES)
_COORDINATES = (
    ("epsilon", "ε (pure)"),
    ("mu_squared", "μ² (Gaussian)"),
    ("rho", "ρ (zCDP)"),
    ("delta", "δ₀"),
)


def plot_tradeoff(
    *guarantees: Any,
    labels: Sequence[str] | None = None,
    path: str | Path | None = None,
    title: str = "What an attacker can tell",
) -> Any:
    """Trade-off curves: the least probability of missing a person against the false-alarm rate.

    The diagonal is blind guessing. The region below the first curve is shaded:
    under that guarantee no attacker gets there.
    """
    names = _names(guarantees, labels)
    canvas = figure(5.2, 5.0)
    axes = canvas.add_subplot()
    axes.plot([0, 1], [1, 0], color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.text(
        0.62,
        0.395,
        "blind guessing",
        rotation=-45,
        rotation_mode="anchor",
        fontsize=7,
        color=GREY,
        ha="left",
        va="bottom",
        transform_rotates_text=True,
    )
    for index, (guarantee, name) in enumerate(zip(guarantees, names, strict=True)):
        alphas, betas = tradeoff_points(guarantee)
        axes.plot(alphas, betas, label=name, **_stroke(index))
        if index == 0:
            axes.fill_between(alphas, 0, betas, color=LIGHT, alpha=0.35, linewidth=0)
            balanced = float(np.min(np.maximum(alphas, betas)))  # about where both errors are equal
            if balanced > 0.2:
                axes.text(
                    0.36 * balanced,
                    0.36 * balanced,
                    "out of any attacker's reach",
                    fontsize=7,
                    color=ACCENT,
                    ha="left",
                    va="center",
                )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    _dress(axes, title, "false-alarm rate α", "least probability of missing a person β")
    return save(canvas, path)


def plot_ten_fold(path: str | Path | None = None) -> Any:
    """Ten releases of (1/√10)-DP together, exactly,
    against G_1 and against what basic composition says (reference.md C5).

    The exact curve is within 0.0123 of G_1, as the central limit theorem of f-DP foresees;
    √10-DP is far below it.
    """
    each = PureDP(1 / math.sqrt(10))
    exact = tradeoff_of(each).repeat(10)
    labels = (
        "10 × (1/√10)-DP, exactly",
        "$G_1$ (Gaussian, μ = 1)",
        f"basic composition: ε = {decimal_text(math.sqrt(10), 3)}",
    )
    return plot_tradeoff(
        exact,
        GDP(1),
        PureDP(math.sqrt(10)),
        labels=labels,
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
    canvas = figure(6.0, 4.0)
    axes = canvas.add_subplot()
    deltas = np.geomspace(smallest, largest, points)
    top = 0.0
    for index, (guarantee, name) in enumerate(zip(guarantees, names, strict=True)):
        epsilons = np.array([guarantee.epsilon_at(float(delta)) for delta in deltas])
        epsilons[~np.isfinite(epsilons)] = np.nan
        top = max(top, float(np.nanmax(epsilons, initial=0.0)))
        axes.plot(deltas, epsilons, label=name, **_stroke(index))
        if isinstance(guarantee, ApproxDP):
            axes.plot(
                [guarantee.delta],
                [guarantee.epsilon],
                "o",
                color=_stroke(index)["color"],
                markersize=4,
            )
    axes.set_xscale("log")
    axes.set_xlim(smallest, largest)
    axes.set_ylim(0, 1.05 * top if top > 0 else 1)
    _dress(axes, "The (ε, δ) statements that hold", "δ", "least ε", both=True)
    return save(canvas, path)


def plot_budget(ledger: Ledger, path: str | Path | None = None, *, over: str = "entries") -> Any:
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
    canvas = figure(6.4, 3.8)
    axes = canvas.add_subplot()
    for index, (field, name) in enumerate(_COORDINATES):
        whole = getattr(ledger.box, field, 0)
        if whole:
            shares = np.cumsum(
                [0.0]
                + [100 * float(getattr(entry.amounts.exact(), field) / whole) for entry in debits]
            )
            stroke = _stroke(index)
            axes.step(
                places,
                shares,
                where="post",
                label=f"{name}: {shares[-1]:.3g} % of {decimal_text(whole)}",
                **stroke,
            )
            axes.plot(
                places[-1:], shares[-1:], "o", color=stroke["color"], markersize=4, clip_on=False
            )
            if len(places) <= 40:
                axes.plot(places[1:-1], shares[1:-1], "o", color=stroke["color"], markersize=2.5)
    axes.axhline(100, color=GREY, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.text(
        0.995,
        99,
        "the budget",
        transform=axes.get_yaxis_transform(),
        fontsize=7,
        color=GREY,
        ha="right",
        va="top",
    )
    axes.set_ylim(0, 105)
    if over == "entries":
        axes.set_xlim(0, 1.02 * max(1, len(debits)))
        axes.xaxis.get_major_locator().set_params(integer=True)
    else:
        _clock(axes, places)
    _dress(
        axes, "Budget spent", "debits" if over == "entries" else "time (UTC)", "percent of the box"
    )
    axes.text(
        1.0,
        1.01,
        f"promised: {ledger.budget}",
        transform=axes.transAxes,
        ha="right",
        va="bottom",
        fontsize=7,
        color=GREY,
    )
    return save(canvas, path)


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
    axes.xaxis.get_offset_text().set_fontsize(7)


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


def _stroke(index: int) -> dict[str, Any]:
    return {
        "color": COLORS[index % len(COLORS)],
        "linewidth": 1.6,
        "linestyle": STYLES[index % len(STYLES)],
    }


def _dress(axes: Any, title: str, horizontal: str, vertical: str, *, both: bool = False) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xlabel(horizontal, fontsize=8, color=INK)
    axes.set_ylabel(vertical, fontsize=8, color=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8, colors=INK)
    axes.grid(axis="both" if both else "y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7.5, frameon=False)
