"""Pictures of attacks: what was achieved against each publisher, and the limit of its guarantee."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.plots.style import dress, head, present, shades_of


def plot_attack(
    result: Any, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """One line a publisher: a dot with its interval, a bar at the limit, a dashed line at what
    blind guesses achieve.
    """
    outcomes = result.outcomes

    def draw(axes: Any) -> None:
        shades = shades_of(axes)
        places = range(len(outcomes))[::-1]
        limits = [
            (one.limit, place)
            for one, place in zip(outcomes, places, strict=True)
            if one.limit is not None
        ]
        for one, place in zip(outcomes, places, strict=True):
            axes.plot([one.low, one.high], [place, place], color=shades.accent, linewidth=2.0)
        axes.plot(
            [one.achieved for one in outcomes],
            list(places),
            "o",
            color=shades.ink,
            label="achieved, 95 %",
        )
        if limits:
            axes.plot(
                [limit for limit, _ in limits],
                [place for _, place in limits],
                linestyle="none",
                marker="|",
                markersize=12,
                markeredgewidth=2.5,
                color=shades.other,
                label="limit of the guarantee",
            )
        if result.chance is not None:
            axes.axvline(
                result.chance, color=shades.grey, linestyle="--", linewidth=1.0, label="blind guess"
            )
        axes.set_yticks(list(places), [one.publisher for one in outcomes])
        axes.set_ylim(-0.6, len(outcomes) - 0.4)
        dress(axes, result.measure, grid="x")
        names = 5.0 * max(len(one.publisher) for one in outcomes)
        head(axes, result.name if title is None else title, names=names)

    return present(draw, (6.6, 1.3 + 0.42 * len(outcomes)), ax=ax, path=path)


def plot_audit(
    result: Any, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
) -> Any:
    """What was measured, as a bar from 0, and what is claimed, as a line."""

    def draw(axes: Any) -> None:
        shades = shades_of(axes)
        color = shades.other if result.violated else shades.accent
        axes.barh([0], [result.lower], height=0.4, color=color, label="at least")
        axes.axvline(result.claimed, color=shades.ink, linewidth=2.0, label="claimed")
        axes.set_yticks([0], [result.name])
        axes.set_ylim(-0.6, 0.6)
        axes.set_xlim(0, 1.1 * max(result.claimed, result.lower))
        dress(axes, str(result.claim).partition(" ")[0], grid="x")
        verdict = "refuted" if result.violated else f"{100 * result.share:.0f} % of the claim"
        heading = f"Audit of {result.name}" if title is None else title
        head(axes, heading, f"{result.method}: {verdict}", names=40.0)

    return present(draw, (6.0, 1.9), ax=ax, path=path)
