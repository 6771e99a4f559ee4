"""Noisy stochastic gradient descent, as specs/mechanisms/sgd.py describes it:
exact batches, exact sums, exact noise.

Theorem.  Given ideal bits, batches are independent over the steps and have exactly the law of the
          spec, noise is `sampling.draw`'s, and the answer is a function of the noisy sums and of
          public numbers alone.
Proof.    Poisson: for N two-sided geometric, P(N = k) ∝ b^|k| with b = exp(−1/gap), G = N (N ≥ 0)
          or −N−1 (N < 0) has P(G = k) = (1−b)/(1+b)·(b^k + b^(k+1)) = (1−b)b^k: the number of rows
          left out before the next one that is in, where each is in with probability 1−b. One such
          sequence runs through the rows again and again, a pass a step. Fixed size: the first
          m different numbers of independent uniform ones on 0 … n−1 are, by symmetry, any m-subset
          with the same probability; so is the complement of n−m such. Which number a row has does
          not matter then, so rows that add nothing have the last ones. θ is updated from the noisy
          sums alone, whose exact sums see no earlier secret but through θ.
Checked.  tests/claims/test_sgd.py
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
)
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source

Places = npt.NDArray[np.int64]
_CHUNK = 1 << 15  # draws at a time


class RowReader(Protocol):
    """The rows: how many there are, and the exact sum of the vectors of some of them."""

    count: int

    def gradient(self, chosen: Places, beta: npt.NDArray[np.float64]) -> Places: ...


def descend(mechanism: NoisySGD, rows: RowReader, source: Source) -> tuple[int, ...]:
    """The shown iterates and the mean of the last ones."""
    # rows that a filter drops are drawn too, and add nothing: say they are the last ones
    count = rows.count if mechanism.sensitivity.rows is None else mechanism.sensitivity.rows
    batch, noise = batches(mechanism, count, source), _noise(mechanism, source)
    theta, limit = np.array(mechanism.start, dtype=np.float64), float(mechanism.limit)
    total, velocity, shown = np.zeros(len(theta)), np.zeros(len(theta)), []
    for step in range(1, mechanism.steps + 1):
        drawn = batch()
        noisy = rows.gradient(drawn[: np.searchsorted(drawn, rows.count)], theta) + noise()
        velocity = mechanism.momentum * velocity + noisy
        theta = np.rint(theta - mechanism.rate * velocity)
        length = float(np.abs(theta).sum())
        if not length <= limit:
            theta = (
                np.trunc(theta * (limit / length)) if np.isfinite(length) else np.zeros(len(theta))
            )
        if step > mechanism.steps - mechanism.averaged:
            total += theta
        if step % mechanism.every == 0 or step == mechanism.steps:
            shown.append(theta)
    shown.append(np.rint(total / mechanism.averaged))
    return tuple(int(value) for one in shown for value in one)


def batches(mechanism: NoisySGD, count: int, source: Source) -> Callable[[], Places]:
    """A function that gives the next batch, as places of rows in order."""
    if mechanism.gap is not None:
        return PoissonBatches(mechanism.gap, count, source)
    size = mechanism.size
    assert size is not None
    if 2 * size <= count:
        return lambda: subset(count, size, source)
    return lambda: np.setdiff1d(
        np.arange(count, dtype=np.int64), subset(count, count - size, source), assume_unique=True
    )


class PoissonBatches:
    """Batches that hold every row with probability 1 − exp(−1/gap), independently."""

    def __init__(self, gap: Fraction, count: int, source: Source) -> None:
        self._law, self._count, self._source = (
            GeometricNoise(L1(Fraction(1)), gap, 0),
            count,
            source,
        )
        self._chunk = int(min(_CHUNK, max(64.0, 4 * count / max(float(gap), 1.0))))
        self._start, self._first = 0, 0  # of this pass over the rows; of the places not yet used
        self._places: Places = np.empty(0, dtype=np.int64)
        self._last = -1  # the place drawn last

    def __call__(self) -> Places:
        end = self._start + self._count
        while self._last < end:
            noise = draw(self._law, self._chunk, self._source)
            places = self._last + np.cumsum(np.where(noise < 0, -noise - 1, noise) + 1)
            self._last = int(places[-1])
            self._places, self._first = np.concatenate([self._places[self._first :], places]), 0
        until = int(np.searchsorted(self._places, end))
        batch = self._places[self._first : until] - self._start
        self._start, self._first = end, until
        return batch


def subset(count: int, size: int, source: Source) -> Places:
    """A uniformly random subset of `size` of the numbers 0 … count−1, by rejection: the first
    different ones of a uniform sequence.
    """
    if size == 0:
        return np.empty(0, dtype=np.int64)
    bits = max(1, (count - 1).bit_length())
    found: Places = np.empty(0, dtype=np.int64)
    while len(found) < size:  # as many as are missing, so that all of them may stay
        missing = size - len(found)
        words = source.uint64(int(missing * ((1 << bits) / count) * 1.1) + 16)
        fresh = (words >> np.uint64(64 - bits)).astype(np.int64)
        found = np.sort(np.concatenate([found, fresh[fresh < count][:missing]]))
        found = found[np.concatenate([[True], found[1:] != found[:-1]])]
    return found


def _noise(mechanism: NoisySGD, source: Source) -> Callable[[], Places]:
    """A function that gives the noise of the next sum; it is drawn for many steps at a time."""
    law: AdditiveNoise = (
        LaplaceNoise(L1(Fraction(1)), mechanism.spread, 0)
        if mechanism.pure
        else GaussianNoise(L2(Fraction(1)), mechanism.spread, 0)
    )
    width = len(mechanism.start)
    ahead = max(1, min(mechanism.steps, _CHUNK // width))
    pool: list[Places] = []

    def following() -> Places:
        if not pool:
            pool.extend(draw(law, ahead * width, source).reshape(ahead, width)[::-1])
        return pool.pop()

    return following
