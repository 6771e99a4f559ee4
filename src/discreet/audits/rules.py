"""The rule that guesses which of two data sets was run on: chosen from a pilot, then fixed.

An output is read as numbers (`features`): whatever it is, so that what raises, is no number or
changes its shape is an output like any other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.inference.results.laws import Array
from discreet.testing.reachable import lowest_bit

CUTS = 48
RARE = np.array([0.002, 0.005, 0.01])  # shares of outputs that are cut off at both ends too
MOST_PARTS = 64  # of an array, that are looked at one by one
TAIL = 4.0  # standard errors: the best of many cuts looks better than it is
TOGETHER = "all numbers together"


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as an output; its type is what is seen."""

    kind: str


def features(output: object) -> dict[str, float]:
    """An output as numbers by name; a text of its own kind where it is not numeric."""
    if isinstance(output, Mapping):
        return {str(name): float(value) for name, value in output.items()}
    if isinstance(output, Raised):
        return {f"raised {output.kind}": 1.0}
    try:
        values = np.atleast_1d(np.asarray(output, dtype=float)).ravel()
    except (TypeError, ValueError):
        return {f"is {output!r}"[:80]: 1.0}
    found = {f"length {len(values)}": 1.0}
    for place, value in enumerate(values[:MOST_PARTS].tolist()):
        if math.isnan(value):
            found[f"nan {place}"] = 1.0
            continue
        found[f"value {place}"] = value
        if math.isfinite(value):
            found[f"low bits {place}"] = float(lowest_bit(np.array([value]))[0])
    if len(values) > 1:
        found["sum"] = float(np.nansum(values))
    return found


@dataclass(frozen=True, slots=True)
class Rule:
    """Guess the second data set where `sign`·feature is above `high`, the first where it is at
    most `low`, and neither between.
    """

    feature: str
    sign: float
    low: float
    high: float
    weights: tuple[tuple[str, float], ...] = ()  # of what is added up; none for a feature itself

    def guess(self, seen: Mapping[str, float]) -> int | None:
        value = self.sign * value_of(seen, self.feature, self.weights)
        return 1 if value > self.high else 0 if value <= self.low else None


def value_of(
    seen: Mapping[str, float], feature: str, weights: Sequence[tuple[str, float]] = ()
) -> float:
    """A feature, 0 where an output does not have it, or a weighted sum of several."""
    if not weights:
        return seen.get(feature, 0.0)
    return math.fsum(weight * seen.get(name, 0.0) for name, weight in weights)


def chosen(
    first: Sequence[Mapping[str, float]],
    second: Sequence[Mapping[str, float]],
    *,
    abstaining: bool,
    lost: float = 0.0,
) -> Rule:
    """The rule whose lower limit is best in the pilot.

    `abstaining`: it may say nothing, which the limits of ε-DP and (ε, δ)-DP allow and others do
    not; `lost` right guesses of the pilot are taken off, as many as δ explains.
    """
    names = sorted({name for seen in (*first, *second) for name in seen})
    together = _weights(first, second, names)
    best: tuple[float, Rule] | None = None
    for name, weights in [*((name, ()) for name in names), (TOGETHER, together)]:
        sides = [
            np.array([value_of(seen, name, weights) for seen in side]) for side in (first, second)
        ]
        sign = 1.0 if sides[1].mean() >= sides[0].mean() else -1.0
        for direction in (sign, -sign):
            found = _best_cuts([direction * side for side in sides], abstaining, lost)
            if best is None or found[0] > best[0]:
                best = found[0], Rule(name, direction, *found[1:], weights)
    if best is None:
        return Rule("nothing", 1.0, 0.0, 0.0)
    return best[1]


def _weights(
    first: Sequence[Mapping[str, float]], second: Sequence[Mapping[str, float]], names: list[str]
) -> tuple[tuple[str, float], ...]:
    """Each number's difference of means over its variance: what tells two normal laws with
    independent numbers apart.
    """
    found = []
    for name in names:
        if name.startswith(("value", "answer")):
            sides = [np.array([seen.get(name, 0.0) for seen in side]) for side in (first, second)]
            spread = float(sides[0].var() + sides[1].var())
            if 0 < spread < math.inf:
                found.append((name, float(sides[1].mean() - sides[0].mean()) / spread))
    return tuple(found) if len(found) > 1 else ((names[0], 0.0),) if names else ()


def _best_cuts(sides: list[Array], abstaining: bool, lost: float) -> tuple[float, float, float]:
    """(lower limit, low cut, high cut) that are best."""
    both = np.unique(np.concatenate(sides))
    shares = np.concatenate([RARE, np.linspace(0, 1, CUTS), 1 - RARE])
    # the lowest cut guesses nothing below it
    cuts = np.append(-np.inf, both[np.unique((shares * (len(both) - 1)).astype(int))])
    below = [np.searchsorted(np.sort(side), cuts, side="right").astype(float) for side in sides]
    above = [len(side) - under for side, under in zip(sides, below, strict=True)]
    right = below[0][:, None] + above[1]
    guesses = right + below[1][:, None] + above[0]
    allowed = np.triu(np.ones((len(cuts), len(cuts)), dtype=bool)) if abstaining else None
    allowed = np.eye(len(cuts), dtype=bool) if allowed is None else allowed
    right, guesses = np.maximum(right - lost, 0.0), np.maximum(guesses - lost, 0.0)
    share = (right + 1) / (guesses + 2)
    # Wilson's lower limit: about what the same rule would prove on fresh runs
    room = TAIL**2 / (guesses + 2)
    spread = TAIL * np.sqrt(share * (1 - share) / (guesses + 2) + room**2 / (4 * TAIL**2))
    worth = np.where(allowed, (share + room / 2 - spread) / (1 + room), -1.0)
    low, high = np.unravel_index(int(np.argmax(worth)), worth.shape)
    return float(worth[low, high]), float(cuts[low]), float(cuts[high])


def seen_by(run: Any, *given: Any) -> dict[str, float]:
    """The features of what a run gives, an exception counting as an output."""
    try:
        return features(run(*given))
    except Exception as error:
        return features(Raised(type(error).__name__))
