"""Pictures of a reusable holdout: every claim beside its answer, in the order in which they were
asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.plots.style import dress, head, present, shades_of

if TYPE_CHECKING:
    from discreet.inference.holdout.answers import HoldoutAnswer, HoldoutFacts

MOST_NAMED = 25
SIZE = (6.4, 3.8)


def plot_answers(
    answers: tuple[HoldoutAnswer, ...],
    facts: HoldoutFacts,
    level: float = 0.95,
    *,
    ax: Any = None,
    title: str | None = None,
    path: str | Path | None = None,
) -> Any:
    """Claims and answers as places in their ranges; a claim that stood has the band in which it was
    not noticed, a surprise the interval of its answer.
    """
    words = "Answers of a reusable holdout" if title is None else title
    return present(
        lambda axes: _draw(axes, answers, facts, level, words),
        (SIZE[0], max(SIZE[1], 1.8 + 0.26 * min(len(answers), MOST_NAMED))),
        ax=ax,
        path=path,
    )


def _draw(
    axes: Any, answers: tuple[HoldoutAnswer, ...], facts: HoldoutFacts, level: float, words: str
) -> None:
    shades = shades_of(axes)
    shown = answers[-400:]
    places = list(range(len(shown), 0, -1))
    for place, answer in zip(places, shown, strict=True):
        low, high = (_share(answer, end) for end in answer.confidence_interval(level))
        stood = answer.source == "training"
        color = shades.light if stood else shades.accent
        axes.plot([low, high], [place, place], color=color, linewidth=5 if stood else 2, zorder=2)
    for source, color, label in (
        ("training", shades.grey, "claimed, and it stood"),
        ("holdout", shades.accent, "answered by the holdout, with noise"),
    ):
        chosen = [(p, a) for p, a in zip(places, shown, strict=True) if a.source == source]
        if chosen:
            axes.scatter(
                [_share(answer, answer.value) for _, answer in chosen],
                [place for place, _ in chosen],
                color=color,
                s=22,
                zorder=4,
                label=label,
            )
    surprised = [(p, a) for p, a in zip(places, shown, strict=True) if a.source == "holdout"]
    if surprised:
        axes.scatter(
            [answer.claim.place for _, answer in surprised],
            [place for place, _ in surprised],
            facecolors="none",
            edgecolors=shades.other,
            s=26,
            zorder=3,
            label="claimed, and a surprise",
        )
    if len(shown) <= MOST_NAMED:
        axes.set_yticks(places, [answer.claim.asked for answer in shown])
    else:
        axes.set_yticks([])
    axes.set_ylim(0.3, len(shown) + 0.7)
    left = answers[-1].left if answers else facts.mechanism.above.positives
    dress(axes, "mean, as a place in its range", grid="x")
    head(
        axes,
        words,
        f"{len(answers)} questions, {left} of {facts.mechanism.above.positives} surprises left; "
        f"bands and lines: {100 * level:g}% about its own rows",
    )


def _share(answer: HoldoutAnswer, value: float) -> float:
    return (value - float(answer.claim.low)) / answer.claim.width
