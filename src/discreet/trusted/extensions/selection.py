"""Samplers of mechanisms.selection: indices of candidates, and ones and zeros,
with exactly the laws of their theorems.

Scores are whole numbers of any size; a gap beyond 63 bits takes the exact path of `choices`. Two
draws of geometric noise are compared as whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.sensitivity import L1
from discreet.specs.mechanisms.additive import GeometricNoise
from discreet.specs.mechanisms.selection import (
    STEPS,
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.trusted.extensions.choices import choose
from discreet.trusted.noise.choice import bernoulli_exp, uniform_below
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source

_LARGEST_GAP = 1 << 62


def exponential_choice(
    mechanism: ExponentialChoice, scores: list[int], source: Source
) -> tuple[int, ...]:
    """(j,) with P(j) ∝ exp(rate·score_j)."""
    return (_exponential(scores, mechanism.rate, source),)


def permute_and_flip(
    mechanism: PermuteAndFlip, scores: list[int], source: Source
) -> tuple[int, ...]:
    """(j,): all coins are flipped, and a uniform one of the heads is taken; the same law as
    flipping in random order until the first head.
    """
    return (_flipped(scores, mechanism.rate, source),)


def noisy_max(mechanism: NoisyMax, scores: list[int], source: Source) -> tuple[int, ...]:
    """(j,) of the greatest score plus geometric noise, the first of equal ones."""
    noise = draw(_geometric(mechanism.spread), len(scores), source)
    noisy = [score + int(step) for score, step in zip(scores, noise, strict=True)]
    return (noisy.index(max(noisy)),)


def top_choices(mechanism: TopChoices, scores: list[int], source: Source) -> tuple[int, ...]:
    """Indices in the order in which they were chosen;
    all of them where there are no more than `count`.
    """
    left = list(range(len(scores)))
    one = _exponential if mechanism.step == STEPS[0] else _flipped
    chosen = []
    for _ in range(min(mechanism.count, len(scores))):
        chosen.append(left.pop(one([scores[place] for place in left], mechanism.rate, source)))
    return tuple(chosen)


def above_threshold(
    mechanism: AboveThreshold, scores: list[int], source: Source
) -> tuple[int, ...]:
    """1 or 0 for each score in order, up to the last of `positives` ones."""
    run = ThresholdRun(mechanism, source)
    return tuple(int(answer) for answer in run.answers(scores))


class ThresholdRun:
    """AboveThreshold one score at a time: holds the private noise of the threshold,
    which nothing but `above` reads.
    """

    __slots__ = ("_bound", "_mechanism", "left", "source")

    def __init__(self, mechanism: AboveThreshold, source: Source) -> None:
        self._mechanism, self.source = mechanism, source
        self.left = mechanism.positives  # how many ones it may still give
        self._bound = self._new_bound()

    def above(self, score: int) -> bool:
        """Whether score + noise ≥ the noisy threshold; only while `left` > 0."""
        assert self.left > 0, "the run has stopped"
        found = (
            score + int(draw(_geometric(self._mechanism.query_spread), 1, self.source)[0])
            >= self._bound
        )
        if found:
            self.left -= 1
            if self._mechanism.renewed and self.left:
                self._bound = self._new_bound()
        return found

    def answers(self, scores: list[int]) -> Iterator[bool]:
        """The answers to scores in order, until the run stops."""
        for score in scores:
            if not self.left:
                return
            yield self.above(score)

    def _new_bound(self) -> int:
        return self._mechanism.threshold + int(
            draw(_geometric(self._mechanism.threshold_spread), 1, self.source)[0]
        )


def _exponential(scores: list[int], rate: Fraction, source: Source) -> int:
    gaps = _gaps(scores)
    return choose(gaps, np.ones(len(gaps), dtype=np.int64), rate, source)[0]


def _flipped(scores: list[int], rate: Fraction, source: Source) -> int:
    heads = np.flatnonzero(bernoulli_exp(_gaps(scores), rate, source))
    return int(heads[uniform_below(len(heads), source)])


def _gaps(scores: list[int]) -> NDArray[Any]:
    """How far each score is behind the best, as int64 where all fit."""
    best = max(scores)
    gaps = [best - score for score in scores]
    return np.array(gaps, dtype=np.int64 if max(gaps) < _LARGEST_GAP else object)


def _geometric(spread: Fraction) -> GeometricNoise:
    """The law P(k) ∝ exp(−|k|/spread); the sensitivity beside it is not read by the sampler."""
    return GeometricNoise(L1(Fraction(1)), spread, 0)


SELECTORS: dict[type[Any], Callable[[Any, list[int], Source], tuple[int, ...]]] = {
    ExponentialChoice: exponential_choice,
    PermuteAndFlip: permute_and_flip,
    NoisyMax: noisy_max,
    TopChoices: top_choices,
    AboveThreshold: above_threshold,
}


def select(mechanism: Any, scores: list[int], source: Source) -> tuple[int, ...]:
    """Indices of chosen candidates, or ones and zeros."""
    return SELECTORS[type(mechanism)](mechanism, scores, source)
