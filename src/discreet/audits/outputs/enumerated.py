"""Mechanisms whose outputs are few: their laws on two neighbouring statistics, cell by cell.

A mechanism becomes independent `Part`s, each with the laws of its cells and the cell in which an
answer lies, so that what is drawn can be held against the law. Noise on numbers is cut into cells
of its grid, one part for every number that differs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from discreet.audits.outputs.laws import Laws
from discreet.audits.outputs.likelihoods import (
    cells_of,
    exponential_law,
    flipped_law,
    geometric_upto,
    noisy_max_law,
    quantile_law,
    spreads,
    threshold_law,
    top_law,
)
from discreet.inference.results.laws import Array
from discreet.specs.mechanisms.additive import (
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    LaplaceResponse,
    UnaryResponse,
)
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.mechanisms.selection import (
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise

Answer = tuple[int, ...]
MOST_OUTPUTS = 5040
CUTS = 800  # cells of a noisy number
REACH = 7.0  # spreads of normal noise beyond which outputs are one cell; of others, three times it


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an output that is independent of the others: its cells' probabilities on both
    neighbours, and the cell of an answer.
    """

    laws: Laws
    cell: Callable[[Answer], int]


def parts_of(mechanism: Any, first: Any, second: Any) -> list[Part] | None:
    """The independent parts of an output, those left out that have one law on both; None where
    outputs are too many or their law is not written out.
    """
    if isinstance(mechanism, InTurn):  # its first stage, a post-processing of the whole answer
        inner = parts_of(mechanism.stages[0], first, second)
        if inner is None:
            return None
        return [Part(one.laws, _after_its_length(one.cell)) for one in inner]
    if isinstance(mechanism, _NOISY):
        return _noisy(mechanism, first, second)
    if isinstance(mechanism, QuantileChoice):
        cells = cells_of(mechanism, first, second)
        laws = Laws(*(quantile_law(mechanism, one, cells) for one in (first, second)))
        return [Part(laws, lambda a: int(np.searchsorted(cells[0], a[0], side="right")) - 1)]
    one = _CHOICES.get(type(mechanism))
    if one is not None:
        laws = Laws(*(one(mechanism, list(scores)) for scores in (first, second)))
        return [Part(laws, lambda a: a[0])]
    listed = _sequences(mechanism, len(first)) if isinstance(mechanism, _LISTED) else None
    if listed is None:
        return None
    law = top_law if isinstance(mechanism, TopChoices) else threshold_law
    sides = [
        np.array([law(mechanism, scores, out) for out in listed]) for scores in (first, second)
    ]
    places = {out: place for place, out in enumerate(listed)}
    return [Part(Laws(*sides), lambda a: places[a])]


def _after_its_length(cell: Callable[[Answer], int]) -> Callable[[Answer], int]:
    return lambda answer: cell(answer[1 : 1 + answer[0]])


_NOISY = (
    GaussianNoise,
    SymmetricGaussianNoise,
    LaplaceNoise,
    GeometricNoise,
    TulapNoise,
    CutTulapNoise,
)
_LISTED = (TopChoices, AboveThreshold)
_CHOICES: dict[type[Any], Callable[[Any, list[int]], Array]] = {
    ExponentialChoice: lambda how, scores: exponential_law(scores, how.rate),
    PermuteAndFlip: lambda how, scores: flipped_law(scores, how.rate),
    NoisyMax: lambda how, scores: noisy_max_law(scores, float(how.spread)),
}


def _sequences(mechanism: Any, size: int) -> list[Answer] | None:
    """All outputs of a mechanism that answers several times."""
    if isinstance(mechanism, TopChoices):
        count = min(mechanism.count, size)
        if math.perm(size, count) > MOST_OUTPUTS:
            return None
        return list(itertools.permutations(range(size), count))
    if 2**size > MOST_OUTPUTS:
        return None
    ended: list[Answer] = []
    running: list[Answer] = [()]
    for _ in range(size):
        longer = [(*seen, answer) for seen in running for answer in (0, 1)]
        ended += [seen for seen in longer if sum(seen) == mechanism.positives]
        running = [seen for seen in longer if sum(seen) < mechanism.positives]
    return ended + running


# ── numbers with noise ────────────────────────────────────────────────────────────────────────────


def _noisy(mechanism: Any, first: Sequence[int], second: Sequence[int]) -> list[Part]:
    grid, widths = 1 << mechanism.refinement, spreads(mechanism, len(first))
    return [
        _number(mechanism, place, (a * grid, b * grid), float(widths[place]) * grid)
        for place, (a, b) in enumerate(zip(first, second, strict=True))
        if a != b
    ]


def _number(mechanism: Any, place: int, codes: tuple[int, int], spread: float) -> Part:
    """One number with noise; a cell is (edge, next edge] of the grid."""
    normal = isinstance(mechanism, (GaussianNoise, SymmetricGaussianNoise))
    reach = math.ceil((1 if normal else 3) * REACH * spread)
    if isinstance(mechanism, CutTulapNoise):
        reach = min(reach, mechanism.reach + 1)
    low, high = min(codes) - reach, max(codes) + reach
    step = max(1, (high - low) // CUTS)
    edges = [*range(low, high + 1, step)]
    if isinstance(mechanism, CutTulapNoise):  # both ends of each support are edges
        ends = [
            code + side for code in codes for side in (-mechanism.reach - 1, mechanism.reach - 1)
        ]
        edges = sorted({*edges, *ends})
    sides = []
    for code in codes:
        away = np.array([float(edge - code) for edge in edges])
        below, above = _below(mechanism, away, spread), _below(mechanism, -1 - away, spread)
        if isinstance(mechanism, (TulapNoise, CutTulapNoise)):
            above = 1 - below  # cells [k, k+1) are not symmetric about 0
        under, over = np.concatenate([[0.0], below, [1.0]]), np.concatenate([[1.0], above, [0.0]])
        sides.append(np.where(under[1:] < 0.5, np.diff(under), -np.diff(over)))
    places = np.array(edges, dtype=object)
    return Part(Laws(*sides), lambda a: int(np.searchsorted(places, a[place], side="left")))


def _below(mechanism: Any, steps: Array, spread: float) -> Array:
    """P(noise ≤ k) for whole numbers of grid steps."""
    if isinstance(mechanism, (GaussianNoise, SymmetricGaussianNoise)):
        return np.asarray(ndtr((steps + 0.5) / spread))
    if isinstance(mechanism, LaplaceNoise):
        places = (steps + 0.5) / spread
        half = np.exp(-np.abs(places)) / 2
        return np.asarray(np.where(places < 0, half, 1 - half))
    if isinstance(mechanism, GeometricNoise):
        return geometric_upto(steps, spread)
    noise = mechanism.noise if isinstance(mechanism, CutTulapNoise) else mechanism
    found = _tulap((steps + 1) / (1 << noise.refinement), float(noise.spread))
    if isinstance(mechanism, CutTulapNoise):
        cut = _tulap(np.array([-mechanism.reach / (1 << noise.refinement)]), float(noise.spread))
        return np.clip((found - cut) / (1 - 2 * cut), 0.0, 1.0)
    return found


def _tulap(places: Array, spread: float) -> Array:
    """The distribution function of reference.md M3, by its lower half."""
    b, lower = math.exp(-1 / spread), -np.abs(places)
    nearest = np.round(lower)
    half = b ** (-nearest) / (1 + b) * (b + (lower - nearest + 0.5) * (1 - b))
    return np.asarray(np.where(places <= 0, half, 1 - half))


# ── reports of devices ────────────────────────────────────────────────────────────────────────────

Reports = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class ReportPart:
    """An independent part of a device's report, for arrays of reports."""

    laws: Laws
    cells: Callable[[Reports], npt.NDArray[np.int64]]


def report_parts(spec: Any, codes: tuple[int, int]) -> list[ReportPart]:
    """The independent parts of a report in which two codes differ."""
    if isinstance(spec, (LaplaceResponse, GaussianResponse)):
        noisy = _noisy(spec.noise, [codes[0]], [codes[1]])
        return [ReportPart(one.laws, _one_by_one(one.cell)) for one in noisy]
    if isinstance(spec, UnaryResponse):
        ones = [[float(one) for one in spec.bit_law(code)] for code in codes]
        return [
            ReportPart(Laws(np.array([1 - a, a]), np.array([1 - b, b])), _bit(place))
            for place, (a, b) in enumerate(zip(*ones, strict=True))
            if a != b
        ]
    laws = Laws(*(np.array([float(one) for one in spec.law(code)]) for code in codes))
    return [ReportPart(laws, lambda seen: seen.astype(np.int64))]


def _one_by_one(cell: Callable[[Answer], int]) -> Callable[[Reports], npt.NDArray[np.int64]]:
    return lambda seen: np.array([cell((int(report),)) for report in seen], dtype=np.int64)


def _bit(place: int) -> Callable[[Reports], npt.NDArray[np.int64]]:
    return lambda seen: np.unpackbits(seen, axis=1)[:, place].astype(np.int64)
