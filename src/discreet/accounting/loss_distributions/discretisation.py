"""Where to look and how finely: tilt, lattice step and tail for one question,
from a rough saddle-point estimate.

Nothing here is part of a proof. A bad choice makes the bounds wider, never wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.accounting.loss_distributions.lattice import Grading
from discreet.accounting.loss_distributions.laws import Floats, Law
from discreet.accounting.loss_distributions.pairs import Atoms

_NODES, _ROWS = 49, 48
_LARGEST_SUM = 1 << 22  # lattice points that the window of the sum may have
_LARGEST_ROW = 1 << 20
_SMALLEST_DELTA = 1e-60
_SMALLEST_STEP = 1e-10  # of the largest loss, or of 1


@dataclass(frozen=True, slots=True)
class Discretisation:
    """The tilt λ, the tilted sum's mean and standard deviation, the estimated δ there, the lattice
    step, and the tail to leave out.
    """

    tilt: float
    epsilon: float
    spread: float
    delta: float
    step: float
    tail: float
    gradings: tuple[Grading, ...]


def discretisation(
    laws: Sequence[Law],
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    accuracy: float,
) -> Discretisation:
    """One for the ε at `delta`, or for the δ at `epsilon`."""
    steps = sum(float(law.times.sum()) for law in laws)
    guess = delta if delta is not None else 1e-12
    for _ in range(2):
        tail = max(1e-9 * guess, 1e-280) / steps
        estimate = _Estimate(laws, tail)
        tilt = estimate.solve(delta=delta, epsilon=epsilon)
        mean, spread, log_delta = estimate.at(tilt)
        found = max(math.exp(max(log_delta, -600.0)), _SMALLEST_DELTA)
        if delta is not None or found >= guess:
            break
        guess = found
    where = epsilon if epsilon is not None else max(mean, 0.0)
    return Discretisation(
        tilt,
        where,
        spread,
        found,
        _step(laws, tilt, max(where, 0.05 * spread), spread, tail, accuracy),
        tail,
        estimate.gradings(tilt),
    )


def _step(
    laws: Sequence[Law], tilt: float, scale: float, spread: float, tail: float, accuracy: float
) -> float:
    """Connecting the dots moves ε by about (λ+1)·steps·h²/12:
    solve for h, keep to memory, and meet the atoms.
    """
    spacings = {law.spacing for law in laws}
    spacing = spacings.pop() if len(spacings) == 1 else None
    inexact = sum(float(law.times.sum()) for law in laws)
    step = math.sqrt(12 * accuracy * scale / ((tilt + 1) * inexact))
    ends = [_ends(law, tail) for law in laws]
    width = max(float((high - low).max()) for low, high in ends)
    farthest = max(float(np.maximum(np.abs(low), np.abs(high)).max()) for low, high in ends)
    # the rule holds for steps far below one factor's spread
    step = min(step, width / 64, spread / (16 * math.sqrt(inexact)), spread / 700)
    step = max(
        step, _SMALLEST_STEP * max(1.0, farthest), 14 * spread / _LARGEST_SUM, width / _LARGEST_ROW
    )
    if spacing is None:
        return step
    if (
        all(law.kind is Atoms for law in laws)
        and width / spacing < _LARGEST_ROW
        and 14 * spread / spacing < _LARGEST_SUM
    ):
        return spacing
    return spacing / math.ceil(spacing / step) if spacing > step else step


def _ends(law: Law, tail: float) -> tuple[Floats, Floats]:
    if not law.continuous:
        return law.atom_losses.min(1), law.atom_losses.max(1) + 1e-6
    return law.span(tail)


class _Estimate:
    """The cumulant of the sum and its derivatives, from a rough sample of each loss."""

    def __init__(self, laws: Sequence[Law], tail: float) -> None:
        self.parts: list[tuple[Floats, Floats, Floats]] = []
        self.largest = 1e-12
        for law in laws:
            some = _thinned(law)
            losses, weights = some.nodes(tail, _NODES)
            self.parts.append(
                (
                    losses,
                    weights,
                    np.asarray(
                        some.times * (float(law.times.sum()) / float(some.times.sum())),
                        dtype=np.float64,
                    ),
                )
            )
            self.largest = max(self.largest, float(np.abs(losses).max()))

    def at(self, tilt: float) -> tuple[float, float, float]:
        """(K′, √K″, ln δ at ε = K′) for a tilt, the sum taken as normal once tilted."""
        from scipy.special import erfcx

        cumulant = mean = variance = 0.0
        for losses, weights, times in self.parts:
            tilted = weights * np.exp(tilt * losses)
            total = tilted.sum(1)
            first = (tilted * losses).sum(1) / total
            cumulant += float(times @ np.log(total))
            mean += float(times @ first)
            variance += float(times @ ((tilted * (losses - first[:, None]) ** 2).sum(1) / total))
        spread = math.sqrt(max(variance, 1e-30))
        share = 0.5 * float(
            erfcx(tilt * spread / math.sqrt(2)) - erfcx((tilt + 1) * spread / math.sqrt(2))
        )
        return mean, spread, cumulant - tilt * mean + math.log(max(share, 1e-300))

    def gradings(self, tilt: float) -> tuple[Grading, ...]:
        """For each law: where points may be 2^k steps apart, so that the tilted mean of
        (points' distance)² hardly grows.
        """
        return tuple(
            Grading(
                _quantiles(losses, weights, times, tilt), _quantiles(-losses, weights, times, -tilt)
            )
            for losses, weights, times in self.parts
        )

    def solve(self, *, delta: float | None, epsilon: float | None) -> float:
        def miss(log_tilt: float) -> float:
            mean, _, log_delta = self.at(math.exp(log_tilt))
            if delta is not None:
                return log_delta - math.log(delta)
            assert epsilon is not None
            return epsilon - mean

        low, high = math.log(1e-4), math.log(min(600.0 / self.largest, 1e7))
        if high <= low or miss(low) <= 0:
            return 0.0
        if miss(high) >= 0:
            return math.exp(high)
        return math.exp(_root(miss, low, high))


def _root(miss: Callable[[float], float], low: float, high: float) -> float:
    """A rough root of a decreasing function, to 1 % of e^x."""
    at_low, at_high = miss(low), miss(high)
    for turn in range(40):
        if high - low < 0.01:
            break
        middle = (
            low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
            if turn % 2
            else (low + high) / 2
        )
        value = miss(middle)
        if abs(value) < 1e-3 * (1 + abs(at_low)) and turn > 3:
            return middle
        if value > 0:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return (low + high) / 2


def _thinned(law: Law) -> Law:
    if law.rows <= _ROWS:
        return law
    keep = np.argsort(law.parameter[:, 0], kind="stable")[:: -(-law.rows // _ROWS)]
    return Law(
        law.kind,
        law.parameter[keep],
        law.rate[keep],
        law.mode,
        law.atom_losses[keep],
        law.atom_masses[keep],
        law.infinite[keep],
        law.spacing,
        law.times[keep],
    )


def _quantiles(losses: Floats, weights: Floats, times: Floats, tilt: float) -> tuple[float, ...]:
    """The losses that the tilted law exceeds with probability 0.02·8^−k, k = 0, 1, …"""
    tilted = weights * np.exp(tilt * losses)
    tilted = (tilted / tilted.sum(1, keepdims=True) * (times / times.sum())[:, None]).ravel()
    order = np.argsort(losses.ravel())[::-1]
    tail = np.cumsum(tilted[order])
    at = np.searchsorted(tail, [0.02 * 8.0**-k for k in range(14)])
    found = np.maximum(losses.ravel()[order][np.minimum(at, tail.size - 1)], 0.0)
    return tuple(float(x) for x in np.maximum.accumulate(found))
