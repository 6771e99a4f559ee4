"""Statistic plus noise: plain, cut at both ends, or symmetric on a matrix; in steps of the
mechanism's grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.sensitivity import L2
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise, accepted_share
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise, off_diagonal
from discreet.trusted.noise.choice import bernoulli_exp, uniform_below
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source


def add_noise(
    mechanism: AdditiveNoise | CutTulapNoise | SymmetricGaussianNoise,
    statistic: list[int],
    source: Source,
) -> tuple[int, ...]:
    """Every number of the statistic on the mechanism's grid, plus its own noise."""
    noise: Iterable[int] | npt.NDArray[Any]
    if isinstance(mechanism, CutTulapNoise):
        noise = draw_cut(mechanism, len(statistic), source)
    elif isinstance(mechanism, SymmetricGaussianNoise):
        noise = draw_symmetric(mechanism, len(statistic), source)
    else:
        noise = draw(mechanism, len(statistic), source)
    steps = noise.tolist() if isinstance(noise, np.ndarray) else map(int, noise)
    grid = 1 << mechanism.refinement
    return tuple([value * grid + step for value, step in zip(statistic, steps, strict=True)])


def draw_cut(mechanism: CutTulapNoise, size: int, source: Source) -> list[int]:
    """`size` independent draws of noise that is cut at both ends, in grid steps.

    Theorem.  Given ideal bits, P(k) ∝ b^|m(k)| on −reach ≤ k < reach, m(k) the whole number nearest
              to the cell [k, k+1) of step 2**-r, b = e^(−1/spread).
    Proof.    Uncut noise has these weights on all k (trusted/noise/sampling.py), and repeated draws
              until one is accepted have the conditional law. Where the reach is short against the
              spread, k is drawn uniformly and accepted with probability b^|m(k)| instead: the same
              law. How often either repeats depends on no data.
    Checked.  tests/claims/test_cut_tulap.py
    """
    kept: list[int] = []
    while len(kept) < size:
        kept += (
            _flat(mechanism, size - len(kept), source)
            if accepted_share(mechanism) < 0.5
            else _uncut(mechanism, size - len(kept), source)
        )
    return kept


def _uncut(mechanism: CutTulapNoise, size: int, source: Source) -> list[int]:
    return [
        step
        for step in draw(mechanism.noise, size, source).tolist()
        if -mechanism.reach <= step < mechanism.reach
    ]


def _flat(mechanism: CutTulapNoise, size: int, source: Source) -> list[int]:
    bits = mechanism.refinement
    steps = [uniform_below(2 * mechanism.reach, source) - mechanism.reach for _ in range(size)]
    nearest = np.array([abs((step + (1 << (bits - 1))) >> bits) for step in steps], dtype=np.int64)
    return [
        step
        for step, keep in zip(
            steps, bernoulli_exp(nearest, 1 / mechanism.spread, source), strict=True
        )
        if keep
    ]


def draw_symmetric(
    mechanism: SymmetricGaussianNoise, size: int, source: Source
) -> npt.NDArray[np.int64]:
    """Symmetric normal noise of a statistic of `size` numbers, in grid steps:
    first all entries off the diagonal are drawn, then the others.

    Theorem.  Given ideal bits, entries are independent; those off the diagonal are rounded
              N(0, off_spread²), all others N(0, spread²).
    Proof.    `sampling.draw`, once for each of the two laws;
              which entries lie off the diagonal is fixed by the order.
    Checked.  tests/claims/test_symmetric_noise.py::test_draws_follow_the_two_laws
    """
    triangle = off_diagonal(mechanism.order)
    assert size >= len(triangle)
    off = np.zeros(size, dtype=bool)
    off[: len(triangle)] = triangle
    noise = np.empty(size, dtype=np.int64)
    for here, spread in ((off, mechanism.off_spread), (~off, mechanism.spread)):
        law = GaussianNoise(L2(Fraction(1)), spread, mechanism.refinement)
        noise[here] = draw(law, int(here.sum()), source)
    return noise
