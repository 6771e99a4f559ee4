"""Composition: the distribution of a sum of lattice losses, by FFT, with every error bounded.

All factors are tilted first, p_λ(ℓ) = p(ℓ)·e^(λℓ)/M(λ), with λ chosen so that the sum is centred
where the question is asked. Then δ(ε) = e^(K(λ)−λε) · Σ_(ℓ>ε) p_λ(ℓ)·e^(−λ(ℓ−ε))·(1−e^(−(ℓ−ε))),
K = Σ times·ln M, so that every absolute error of p_λ is a relative error of δ. The errors, proven
in docs/theory/pld.md, are

    wrapping    what leaves the window comes back at the other end:
                at most the Chernoff tail e^(K(λ+s)−K(λ)−s·edge)
    transform   8·log₂N unit roundoffs of Σ|input|, at every frequency, forward and back
    power       times·(transform error + 8 roundoffs) relative to |φ|^times, at every frequency
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting.loss_distributions.lattice import Lattice, Side
from discreet.accounting.loss_distributions.laws import UNIT, Floats

WINDOW_TAIL = 18.0  # −ln of the probability that may leave the window at each end
LARGEST_WINDOW = 1 << 24
_TRIALS = 5
_SCOUTS = 12  # one row in so many is transformed at all frequencies first
_NEGLIGIBLE = 1e-10  # in the sum of the spectrum, whose first entry is 1
_BATCH = 1 << 21  # numbers transformed at a time


@dataclass(frozen=True, slots=True)
class Composed:
    """A tilted composition on a window: `mass[k]` (± error) at loss start + k·step; reads δ(ε) off
    with all errors on its own side.
    """

    side: Side
    step: float
    start: float
    mass: Floats
    tilt: float
    cumulant: float
    cumulant_error: float
    error: float
    outside: float
    infinite: float
    missing: float

    @property
    def losses(self) -> Floats:
        return np.asarray(self.start + self.step * np.arange(self.mass.size), dtype=np.float64)

    def delta(self, epsilon: float) -> float:
        """The bound of δ(ε) on this side."""
        skip = max(0, math.ceil((epsilon - self.start) / self.step))
        gap = np.maximum(self.losses[skip:] - epsilon, 0.0)
        weight = np.exp(-self.tilt * gap) * -np.expm1(-gap)
        total, spread = float((self.mass[skip:] * weight).sum()), float(weight.sum())
        farthest = abs(self.start) + self.step * self.mass.size
        rounding = (
            8
            * UNIT
            * (self.mass.size + (self.tilt + 1) * (farthest + abs(epsilon)) + 8)
            * max(total, 0.0)
        )
        slack = self.error * spread + self.outside + rounding
        exponent = self.cumulant - self.tilt * epsilon
        wobble = self.cumulant_error + 8 * UNIT * (abs(exponent) + abs(self.tilt * epsilon))
        if self.side == "above":
            return _clip(
                self.infinite + _times_exp(total + slack, exponent + wobble) * (1 + 8 * UNIT)
            )
        # the masses that were kept may sum to e^missing: no lower bound follows
        if self.missing > 1e-2:
            return 0.0
        return _clip(
            self.infinite
            + min(_times_exp(max(total - slack, 0.0), exponent - wobble), 2.0) * (1 - 8 * UNIT)
            - 1.02 * self.missing
        )

    def epsilon(self, delta: float) -> float:
        """The least ε ≥ 0 with δ(ε) ≤ delta for the upper bound;
        the greatest with δ(ε) ≥ delta, or 0, for the lower bound.
        """
        if self.side == "below":
            return self._epsilon_below(delta)
        if self.delta(0.0) <= delta:
            return 0.0
        if self.infinite >= delta:
            return math.inf
        guess, slope = self._rough_epsilon(delta)
        over, under = guess, 0.0
        for _ in range(12):  # Newton steps on ln δ until the certified bound is met, barely
            miss = _log(self.delta(over) / delta)
            if miss <= 0:
                break
            under, over = over, over + max(miss / slope * (1 + 1e-6), 2e-13 * over, 1e-300)
        else:
            over = max(over, float(self.start + self.step * self.mass.size), self.step)
            while self.delta(over) > delta:
                under, over = over, 2 * over
                if over > 1e300:
                    return math.inf
        back = 4e-7 * over
        # the first guess was already enough: back in growing steps until it is not
        while under == 0.0 and over > back:
            if self.delta(over - back) > delta:
                under = over - back
            else:
                over, back = over - back, 4 * back
        while over - under > 1e-6 * over:
            middle = (under + over) / 2
            under, over = (middle, over) if self.delta(middle) > delta else (under, middle)
        return over

    def _rough_epsilon(self, delta: float) -> tuple[float, float]:
        """Where δ(ε) = delta without the error terms, and −d ln δ/dε there,
        from suffix sums at the lattice points.
        """
        losses, tilt = self.losses, self.tilt
        origin = float(losses[np.argmax(self.mass)])
        relative = losses - origin
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            plain = self.mass * np.exp(np.clip(-tilt * relative, -700, 700))
            shrunk = plain * np.exp(np.clip(-relative, -700, 700))
            tail, tail_q = np.cumsum(plain[::-1])[::-1], np.cumsum(shrunk[::-1])[::-1]
            target = (delta - self.infinite) * math.exp(min(tilt * origin - self.cumulant, 700.0))
            # δ at each lattice point, up to the factor
            curve = tail - np.exp(np.clip(relative, -700, 700)) * tail_q
            at = max(1, int(np.searchsorted(-curve, -target)))  # the curve falls
            at = min(at, losses.size - 1)
            share = float((tail[at] - target) / tail_q[at]) if tail_q[at] > 0 else 0.0
        if not share > 0:
            return max(float(losses[at]), 0.0), 1.0
        epsilon = origin + math.log(share)
        return max(epsilon, 0.0), max(
            share * float(tail_q[at]) / target, 1e-9
        ) if target > 0 else 1.0

    def _epsilon_below(self, delta: float) -> float:
        if self.infinite - self.missing > delta:
            return math.inf
        high, _ = self._rough_epsilon(delta)
        back = 1e-13
        # back from the estimate without errors, in growing steps
        while self.delta(high * (1 - back)) < delta:
            back *= 3
            if back >= 1:
                return 0.0
        low = high * (1 - back)
        high *= 1 - back / 3
        for _ in range(6):
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) >= delta else (low, middle)
        return low

    def curve(self) -> tuple[Floats, Floats]:
        """(e^ε, δ(ε)) at every point of the window, for an untilted composition."""
        weight = np.exp(-self.losses)
        masses = np.maximum(self.mass, 0.0) if self.side == "above" else self.mass
        tail = np.cumsum(masses[::-1])[::-1]
        tail_q = np.cumsum((masses * weight)[::-1])[::-1]
        above = np.append(tail[1:], 0.0) - np.append(tail_q[1:], 0.0) / weight
        return 1 / weight, above


def _clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _times_exp(value: float, exponent: float) -> float:
    if value <= 0:
        return 0.0
    total = exponent + math.log(value)
    return math.exp(total) if total < 1.0 else math.inf


def cumulants(lattices: Sequence[Lattice], tilts: Sequence[float]) -> list[float]:
    """K(λ) = Σ times·ln Σ p·e^(λℓ), from the lattice masses themselves, for each λ."""
    totals = [0.0] * len(tilts)
    for part in lattices:
        losses = part.losses
        moments = part.mass @ np.exp(np.outer(losses, tilts))
        logs = np.log(moments) + part.offset[:, None] * np.asarray(tilts)
        totals = [total + float(part.times @ logs[:, k]) for k, total in enumerate(totals)]
    return totals


def compose(lattices: Sequence[Lattice], *, tilt: float, spread: float, side: Side) -> Composed:
    """The sum of all rows of all lattices, each `times` fold, tilted by `tilt`; `spread` is the
    rough standard deviation of the tilted sum.
    """
    window = _window(lattices, tilt, spread)
    if window.size > LARGEST_WINDOW:
        raise OverflowError("window")
    tilted = [_tilted(lattice, tilt) for lattice in lattices]
    cumulant = sum(
        float(lattice.times @ (scale + tilt * lattice.offset))
        for lattice, (_, scale) in zip(lattices, tilted, strict=True)
    )
    masses = [mass for mass, _ in tilted]
    steps = sum(float(lattice.times.sum()) for lattice in lattices)
    if steps == 1:
        first, outside = window.bottom, 0.0
        mass, error = np.zeros(window.top - window.bottom + 1), 0.0
        mass[lattices[0].points - window.bottom] = masses[0][0]
    else:
        first, outside = window.first, _outside(lattices, window, steps, side)
        wrapped, error = _convolved(lattices, masses, tilt, window.size)
        mass = np.roll(wrapped, -((first - window.bottom) % window.size))
    wobble = UNIT * steps * (64 + 4 * _largest_exponent(lattices, tilt))
    return Composed(
        side,
        lattices[0].step,
        first * lattices[0].step + window.offset,
        mass,
        tilt,
        cumulant,
        wobble + 16 * UNIT * abs(cumulant),
        error,
        outside,
        _infinite(lattices, side),
        sum(float(lattice.times @ lattice.missing) for lattice in lattices),
    )


@dataclass(frozen=True, slots=True)
class _Window:
    """Lattice points first … last of the sum, of all that it can take (bottom … top), and how many
    points its transform has.
    """

    offset: float
    bottom: int
    top: int
    first: int
    last: int
    size: int


def _window(lattices: Sequence[Lattice], tilt: float, spread: float) -> _Window:
    """The points outside of which the tilted sum has probability e^−WINDOW_TAIL at each end, by
    the best of a few Chernoff bounds; all points where they are few.
    """
    step = lattices[0].step
    offset = sum(float(lattice.times @ lattice.offset) for lattice in lattices)
    bottom = sum(int(lattice.times.sum()) * int(lattice.points[0]) for lattice in lattices)
    top = sum(int(lattice.times.sum()) * int(lattice.points[-1]) for lattice in lattices)
    if top - bottom < 1 << 14:
        low, high = bottom * step + offset, top * step + offset
    else:
        low, high = _chernoff_ends(lattices, tilt, spread)
        high, low = min(high, top * step + offset), max(low, bottom * step + offset)
    first = max(bottom, math.floor((low - offset) / step) - 1)
    last = min(top, math.ceil((high - offset) / step) + 1)
    return _Window(offset, bottom, top, first, last, _fast_length(last - first + 1))


def _chernoff_ends(lattices: Sequence[Lattice], tilt: float, spread: float) -> tuple[float, float]:
    usual = math.sqrt(2 * WINDOW_TAIL) / max(spread, lattices[0].step)
    farthest = (abs(float(one.losses[end])) for one in lattices for end in (0, -1))
    limit = 690 / max(1e-9, *farthest)
    trials = [min(usual * 1.6 ** (0.5 - k), limit - tilt) for k in range(_TRIALS)]
    tilts = (tilt, *(tilt + s for s in trials), *(tilt - s for s in trials))
    center, *around = cumulants(lattices, tilts)
    above = zip(trials, around[:_TRIALS], strict=True)
    below = zip(trials, around[_TRIALS:], strict=True)
    high = min((after - center + WINDOW_TAIL) / s for s, after in above)
    low = max(-(before - center + WINDOW_TAIL) / s for s, before in below)
    return low, high


def _outside(lattices: Sequence[Lattice], window: _Window, steps: float, side: Side) -> float:
    """What may have left the window, at the ends where it counts on this side."""
    points = max(lattice.points.size for lattice in lattices)
    tail = math.exp(min(0.0, 8 * UNIT * steps * points - WINDOW_TAIL)) * 1.01
    above = 0.0 if window.last == window.top else tail
    below = 0.0 if window.first == window.bottom or side == "above" else tail
    return above + below


def _infinite(lattices: Sequence[Lattice], side: Side) -> float:
    """The probability that some loss is infinite, rounded to a side."""
    largest = max(float(lattice.infinite.max()) for lattice in lattices)
    if largest > 0.5:
        return 1.0 if side == "above" else largest
    log_finite = sum(
        float(lattice.times @ np.log1p(-np.minimum(lattice.infinite, 0.5))) for lattice in lattices
    )
    infinite = -math.expm1(log_finite)
    return infinite * (1 + 16 * UNIT) if side == "above" else infinite * (1 - 16 * UNIT)


def _largest_exponent(lattices: Sequence[Lattice], tilt: float) -> float:
    return max(abs(tilt * float(one.losses[end])) for one in lattices for end in (0, -1))


def _tilted(part: Lattice, tilt: float) -> tuple[Floats, Floats]:
    """(p·e^(λℓ)/M, ln M) a row, offsets left out;
    whatever M is rounded to, it is the same in both.
    """
    middle = 0.5 * float(part.losses[0] + part.losses[-1])
    mass = part.mass * np.exp(tilt * (part.losses - middle))
    total = mass.sum(axis=1)
    return mass / total[:, None], np.log(total) + tilt * middle


def _convolved(
    lattices: Sequence[Lattice], masses: Sequence[Floats], tilt: float, size: int
) -> tuple[Floats, float]:
    """The tilted sum, wrapped on `size` points, and a bound of the error at each point.

    The characteristic functions of some rows, at all frequencies, show where the product is
    negligible; the other rows are transformed at the remaining frequencies only, by FFT or, where
    those are few, by a matrix product.
    """
    from scipy import fft

    steps = sum(float(part.times.sum()) for part in lattices)
    transform = 8 * UNIT * math.log2(max(size, 2))
    points = max(part.points.size for part in lattices)
    tilting = UNIT * (64 + 4 * _largest_exponent(lattices, tilt))
    each = max(transform, UNIT * (2 * points + 16)) + tilting
    total = _Product(
        np.ones(size // 2 + 1, dtype=complex), np.ones(size // 2 + 1), np.zeros(size // 2 + 1), each
    )
    rest: list[tuple[Lattice, Floats, Floats]] = []
    for part, tilted in zip(lattices, masses, strict=True):
        first = (
            np.arange(part.times.size) % _SCOUTS == 0
            if part.times.size > _SCOUTS
            else np.ones(part.times.size, dtype=bool)
        )
        rows = max(1, _BATCH // size)
        chosen, counts = tilted[first], part.times[first]
        for start in range(0, counts.size, rows):
            total.include(
                fft.rfft(_wrapped(part.points, chosen[start : start + rows], size), axis=1),
                counts[start : start + rows],
            )
        if not first.all():
            rest.append((part, tilted[~first], part.times[~first]))
    left_out = 0.0
    if rest:
        beyond = np.append(np.cumsum(2 * total.bound[::-1])[::-1][1:], 0.0)
        most = int(np.searchsorted(-beyond, -_NEGLIGIBLE)) + 1
        growth = math.exp(each * steps)  # the other rows may exceed 1 by their error
        if most * 12 < size:
            left_out = float(beyond[most - 1]) * growth
            total = _Product(total.product[:most], total.bound[:most], total.relative[:most], each)
        for part, tilted, counts in rest:
            rows = max(1, _BATCH // size)
            if left_out or most * 12 < size:
                even, odd = _waves(part.points, most, size)
                total.include(tilted @ even - 1j * (tilted @ odd), counts)
                continue
            for start in range(0, counts.size, rows):
                total.include(
                    fft.rfft(_wrapped(part.points, tilted[start : start + rows], size), axis=1),
                    counts[start : start + rows],
                )
    weights = np.full(total.bound.size, 2.0)
    weights[0] = 1.0
    if size % 2 == 0 and weights.size == size // 2 + 1:
        weights[-1] = 1.0
    relative = 2 * (total.relative + 16 * UNIT * (steps + 1) + transform)
    error = (
        float((weights * total.bound * np.minimum(relative * 1.01, 2.0)).sum()) + left_out
    ) / size + math.exp(-200.0)
    spectrum = np.zeros(size // 2 + 1, dtype=complex)
    spectrum[: total.product.size] = total.product
    return fft.irfft(spectrum, size), error


class _Product:
    """Π φ^times at each frequency, Π (|φ|+e)^times, and Σ times·e/(|φ|+e),
    which bounds the product's relative error.
    """

    def __init__(self, product: Any, bound: Floats, relative: Floats, each: float) -> None:
        self.product, self.bound, self.relative, self.each = product, bound, relative, each

    def include(self, spectra: Any, times: Floats) -> None:
        larger = np.abs(spectra) + self.each
        if np.all(times == 1):
            self.relative += (self.each / larger).sum(0)
            self.product *= np.multiply.reduce(spectra, axis=0)
            self.bound *= np.multiply.reduce(larger, axis=0)
            return
        counts = times[:, None]
        self.relative += (counts * (self.each / larger)).sum(0)
        exponent = (counts * np.log(larger)).sum(0)
        self.bound *= np.exp(np.maximum(exponent, -600.0))
        alive = exponent > -200.0  # elsewhere the bound, e^−200, takes the product's place
        powers = np.zeros(alive.size, dtype=complex)
        some = spectra[:, alive]
        powers[alive] = np.exp((counts * np.log(np.where(some == 0, 1e-300, some))).sum(0))
        self.product *= powers


def _waves(points: Any, most: int, size: int) -> tuple[Floats, Floats]:
    """cos and sin of 2π·jk/size for the given points j and frequencies k < most,
    from exact residues.
    """
    offset = points - points[0]
    turns = (np.outer(offset % size, np.arange(most)) % size) * (2 * np.pi / size)
    return np.cos(turns), np.sin(turns)


def _wrapped(points: Any, mass: Floats, size: int) -> Floats:
    result = np.zeros((mass.shape[0], size))
    offset = points - points[0]
    if offset[-1] < size:
        result[:, offset] = mass
        return result
    for start in range(0, int(offset[-1]) + 1, size):
        inside = (offset >= start) & (offset < start + size)
        result[:, offset[inside] - start] += mass[:, inside]
    return result


def _fast_length(least: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(max(int(least), 2), real=True))
