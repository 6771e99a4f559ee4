"""How likely an answer is for a statistic: the law of each mechanism, written out naively.

The laws are those that specifications state, computed in floats and in
other ways than samplers and prices do, so that an audit does not repeat a mistake of theirs.
Mechanisms that are not listed have none here: `log_likelihood` is None.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.inference.results.laws import Array
from discreet.specs.mechanisms.additive import (
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice, order_index
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.selection import (
    STEPS,
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise, off_diagonal
from discreet.specs.statistics import Histogram
from discreet.trusted.noise.search import folded

Answer = tuple[int, ...]
Places = npt.NDArray[Any]
WIDE = 60.0  # spreads of geometric noise that are summed over; beyond lies less than 1e-26
FINE = 4096.0  # spreads from which whole numbers are integrated over
FAR = -1e4  # the logarithm of what is impossible, as far as scores go


def log_likelihood(mechanism: Any, statistic: Any, answer: Answer) -> float | None:
    """The logarithm of an answer's probability, up to a constant that is the same for every
    statistic; None where the law is not written out.
    """
    law = LAWS.get(type(mechanism))
    if law is None or len(answer) == 0:
        return None
    return max(FAR, float(law(mechanism, statistic, answer)))


def spreads(mechanism: Any, size: int) -> Array:
    """σ, or the scale, of every number's noise."""
    if isinstance(mechanism, CutTulapNoise):
        return np.full(size, float(mechanism.noise.spread))
    found = np.full(size, float(mechanism.spread))
    if isinstance(mechanism, SymmetricGaussianNoise):
        off = np.array(off_diagonal(mechanism.order))
        found[: len(off)][off] = float(mechanism.off_spread)
    return found


# ── a statistic plus noise ────────────────────────────────────────────────────────────────────────


def _away(mechanism: Any, statistic: Sequence[int], answer: Answer) -> Array:
    """How far each number lies from the statistic, in its units; whole numbers are subtracted."""
    grid = 1 << mechanism.refinement
    return np.array([(a - s * grid) / grid for a, s in zip(answer, statistic, strict=True)])


def _normal(mechanism: Any, statistic: Sequence[int], answer: Answer) -> float:
    away = _away(mechanism, statistic, answer) / spreads(mechanism, len(answer))
    return -float(away @ away) / 2


def _laplace(mechanism: Any, statistic: Sequence[int], answer: Answer) -> float:
    return -float(np.abs(_away(mechanism, statistic, answer)).sum()) / float(mechanism.spread)


def _tulap(mechanism: Any, statistic: Sequence[int], answer: Answer) -> float:
    """b^|m|, m the whole number nearest to the middle of the cell (reference.md M3)."""
    away = _away(mechanism, statistic, answer) + 0.5 / (1 << mechanism.refinement)
    return -float(np.abs(np.round(away)).sum()) / float(mechanism.spread)


def _cut_tulap(mechanism: Any, statistic: Sequence[int], answer: Answer) -> float:
    grid = 1 << mechanism.refinement
    steps = [a - s * grid for a, s in zip(answer, statistic, strict=True)]
    if any(not -mechanism.reach <= step < mechanism.reach for step in steps):
        return FAR
    return _tulap(mechanism.noise, statistic, answer)


# ── choices ───────────────────────────────────────────────────────────────────────────────────────


def exponential_law(scores: Sequence[int], rate: Any) -> Array:
    """P(j) ∝ exp(rate·score_j) (reference.md B6)."""
    weights = np.array([math.exp(-float(rate * (max(scores) - score))) for score in scores])
    return np.asarray(weights / weights.sum())


def flipped_law(scores: Sequence[int], rate: Any) -> Array:
    """Permute-and-flip: each coin falls heads with probability exp(−rate·gap), and a uniform one
    of the heads is taken; with c_m the chance that m of the others fell heads, q·Σ c_m/(m+1).
    """
    coins = np.array([math.exp(-float(rate * (max(scores) - score))) for score in scores])
    found = []
    for place, coin in enumerate(coins):
        others: Array = np.ones(1)
        for other in np.delete(coins, place):
            others = np.convolve(others, [1 - other, other])
        found.append(coin * float((others / np.arange(1, len(others) + 1)).sum()))
    return np.array(found)


def noisy_max_law(scores: Sequence[int], spread: float) -> Array:
    """The first greatest of score + two-sided geometric noise, summed over where it lies."""
    reach = max(1, math.ceil(WIDE * spread))
    grid = np.arange(min(scores) - reach, max(scores) + reach + 1)
    found = np.zeros(len(scores))
    for place, score in enumerate(scores):
        weights = geometric(grid - score, spread)
        for other, rival in enumerate(scores):
            if other != place:
                strictly = other < place  # of equal ones the first is taken
                weights = weights * geometric_upto(grid - rival - strictly, spread)
        found[place] = weights.sum()
    return found


def top_law(mechanism: TopChoices, scores: Sequence[int], chosen: Answer) -> float:
    """The probability that these candidates are chosen in this order."""
    one = exponential_law if mechanism.step == STEPS[0] else flipped_law
    left, probability = list(range(len(scores))), 1.0
    for place in chosen:
        if place not in left:
            return 0.0
        law = one([scores[candidate] for candidate in left], mechanism.rate)
        probability *= float(law[left.index(place)])
        left.remove(place)
    return probability


def threshold_law(mechanism: AboveThreshold, scores: Sequence[int], seen: Answer) -> float:
    """The probability of these ones and zeros, summed over where the noisy threshold lies."""
    spread, bound = float(mechanism.threshold_spread), mechanism.threshold
    reach = max(1, math.ceil(WIDE * spread))
    narrowest = min(spread, float(mechanism.query_spread))
    grid, many = _whole_numbers(
        bound - reach, bound + reach, {bound, *(score + 1 for score in scores)}, narrowest
    )
    fresh = many * geometric(grid - bound, spread)
    weights, left = fresh, mechanism.positives
    for score, one in zip(scores, seen, strict=False):
        below = geometric_upto(grid - 1 - score, float(mechanism.query_spread))
        weights = weights * (1 - below if one else below)
        left -= one
        if one and mechanism.renewed and left:
            weights = weights.sum() * fresh
    return float(weights.sum())


def _whole_numbers(
    low: int, high: int, kinks: Iterable[int], spread: float
) -> tuple[Places, Array]:
    """The whole numbers from low to high, each once; where noise spreads over thousands of them,
    places with weights that add up smooth functions between kinks as well: a sum over whole numbers
    is an integral up to 1/spread² of itself (midpoint rule), and that is taken by Gauss and
    Legendre.
    """
    if spread < FINE:
        grid = np.arange(low, high + 1)
        return grid, np.ones(len(grid))
    ends = [low - 0.5, *sorted(float(kink) for kink in kinks if low < kink < high), high + 0.5]
    edges = np.concatenate(
        [
            np.linspace(one, other, 1 + math.ceil((other - one) / spread))[:-1]
            for one, other in itertools.pairwise(ends)
        ]
        + [np.array(ends[-1:])]
    )
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    places = middle[:, None] + half[:, None] * nodes
    return places.ravel(), (half[:, None] * weights).ravel()


def geometric(places: Places, spread: float) -> Array:
    """P(k) = (1−b)/(1+b)·b^|k|, b = exp(−1/spread)."""
    return np.asarray(np.tanh(0.5 / spread) * np.exp(-np.abs(places) / spread))


def geometric_upto(places: Places, spread: float) -> Array:
    """P(K ≤ k)."""
    tail = np.exp(-np.abs(places + (places >= 0)) / spread) / (1 + math.exp(-1 / spread))
    return np.asarray(np.where(places < 0, tail, 1 - tail))


# ── what reads a histogram ────────────────────────────────────────────────────────────────────────


def rank_loss(choice: QuantileChoice, histogram: Histogram, cell: int) -> int:
    """How far a cell is from being the quantile (specs/mechanisms/quantiles.py)."""
    before, upto, rows = histogram.below(cell), histogram.below(cell + 1), histogram.rows
    if choice.rule == "exponential":
        return max(0, choice.b * before - choice.a * rows, choice.a * rows - choice.b * upto)
    index = order_index(choice.a, choice.b, rows)
    return max(0, before - (index - 1), index - upto)


def cells_of(choice: QuantileChoice, *histograms: Histogram) -> tuple[list[int], list[int]]:
    """Runs of cells of one loss in every histogram: where each starts, and its size."""
    ends = {0} | {
        int(place) + more for one in histograms for place in one.places for more in (0, 1)
    }
    starts = sorted(end for end in ends if end < histograms[0].cells)
    return starts, np.diff([*starts, histograms[0].cells]).tolist()


def quantile_law(choice: QuantileChoice, histogram: Histogram, cells: Any) -> Array:
    """The probability of each run of cells, P(cell) ∝ exp(−rate·loss)."""
    starts, sizes = cells
    logs = np.array(
        [
            math.log(size) - float(choice.rate * rank_loss(choice, histogram, start))
            for start, size in zip(starts, sizes, strict=True)
        ]
    )
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _quantile(choice: QuantileChoice, histogram: Histogram, answer: Answer) -> float:
    cells = cells_of(choice, histogram)
    place = int(np.searchsorted(cells[0], answer[0], side="right")) - 1
    return _log(quantile_law(choice, histogram, cells)[place]) - math.log(cells[1][place])


def _searched(search: CountSearch, histogram: Histogram, answer: Answer) -> float:
    """Given the answers before it, each is a count plus noise for its share."""
    both, all_above, total = search.below + search.above, search.above * histogram.rows, 0.0
    for place, share, steps in zip(answer[0::3], answer[1::3], answer[2::3], strict=True):
        count = [both * histogram.below(place) - all_above]
        noise = _noise_of(search, share)
        total += LAWS[type(noise)](noise, count, (steps,))
    return total


@lru_cache(maxsize=4096)
def _noise_of(search: CountSearch, share: int) -> Any:
    return search.noise(share)


def _in_turn(mechanism: InTurn, histogram: Histogram, answer: Answer) -> float:
    parts = zip(mechanism.stages, mechanism.split(answer), strict=False)
    found = [log_likelihood(stage, histogram, given) for stage, given in parts if given]
    return math.fsum(one for one in found if one is not None)


def _about_centre(mechanism: AboutCentre, histogram: Histogram, answer: Answer) -> float:
    centre, rest = answer[1 : 1 + answer[0]], answer[1 + answer[0] :]
    first = log_likelihood(mechanism.centre, histogram, centre) or 0.0
    return first + _in_turn(mechanism.distances, folded(histogram, centre[0]), rest)


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else FAR


LAWS: dict[type[Any], Callable[[Any, Any, Answer], float]] = {
    GaussianNoise: _normal,
    SymmetricGaussianNoise: _normal,
    LaplaceNoise: _laplace,
    GeometricNoise: _laplace,
    TulapNoise: _tulap,
    CutTulapNoise: _cut_tulap,
    ExponentialChoice: lambda how, scores, seen: _log(exponential_law(scores, how.rate)[seen[0]]),
    PermuteAndFlip: lambda how, scores, seen: _log(flipped_law(scores, how.rate)[seen[0]]),
    NoisyMax: lambda how, scores, seen: _log(noisy_max_law(scores, float(how.spread))[seen[0]]),
    TopChoices: lambda how, scores, seen: _log(top_law(how, scores, seen)),
    AboveThreshold: lambda how, scores, seen: _log(threshold_law(how, scores, seen)),
    QuantileChoice: _quantile,
    CountSearch: _searched,
    InTurn: _in_turn,
    AboutCentre: _about_centre,
}
