"""Answers of the quantile mechanisms to a histogram (specs/mechanisms/quantiles.py), and the noise
in proportion to a smooth sensitivity that one of them adds.

Smooth noise is sign·⌊s·|Z| + ½⌋ with s = 2**r·multiplier·width·exp(−β·steps), drawn exactly.
|Z| is a function of one or more uniform numbers of which 64 bits are known at first. Ball
arithmetic encloses s·|Z| + ½ over all numbers with these bits; while the enclosure holds more than
one whole part, every number gets 64 more bits.

Theorem.  Given ideal bits `drawn` returns the rounded noise with exactly the law of
          specs/mechanisms/quantiles.py, and ends with probability 1.
Proof.    |Z| = −ln U, √2·erfc⁻¹(U), cot(πU/2) for the laws of Laplace, Gauss and Cauchy,
          as P(|Z| > z) = e^−z, erfc(z/√2), 1 − (2/π)·atan z. Student's t is |N|/√(χ²/d), where χ²
          of d degrees is a sum of d//2 numbers −2·ln U and, for odd d, a squared normal. 1/(1+z⁴)
          is cut out of Cauchy's density: a draw stays if V·(1+√2)/2·(1+z⁴) < 1 + z², and
          (1+z²)/(1+z⁴) ≤ (1+√2)/2. A decision holds for all numbers with the known bits, so that
          the others stay uniform. The set of numbers for which s·|Z| + ½ is whole has measure 0.
Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_noise_follows_its_law
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from flint import arb, fmpq

from discreet.enclosure import precision
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.statistics import Histogram
from discreet.trusted.extensions.choices import choose, choose_among
from discreet.trusted.extensions.data_dependent.order_statistics import (
    Smooth,
    loss_pieces,
    near_ends,
    rank_losses,
    smooth_reach,
    smooth_sensitivity,
    stability_distance,
)
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source

_GUARD_BITS = 128


def quantile(mechanism: Any, histogram: Histogram, source: Source) -> tuple[int, ...]:
    """The answer of a quantile mechanism."""
    if type(mechanism) is QuantileChoice:
        return choose_cell(mechanism, histogram, source)
    if type(mechanism) is SmoothNoise:
        return add_smooth_noise(mechanism, histogram, source)
    assert type(mechanism) is ProposeTestRelease
    return propose_test_release(mechanism, histogram, source)


def choose_cell(choice: QuantileChoice, histogram: Histogram, source: Source) -> tuple[int, ...]:
    """(cell,): the run of equal losses first, then a cell in it."""
    if not isinstance(histogram, Histogram):  # one on disk
        return _choose_on_disk(choice, histogram, source)
    runs = rank_losses(choice, histogram)
    run, offset = choose(runs.losses, runs.sizes, choice.rate, source)
    return (int(runs.starts[run]) + offset,)


def _choose_on_disk(choice: QuantileChoice, histogram: Any, source: Source) -> tuple[int, ...]:
    number, run, offset = choose_among(
        lambda: ((runs.losses, runs.sizes) for runs in loss_pieces(choice, histogram)),
        choice.rate,
        source,
    )
    piece = next(itertools.islice(loss_pieces(choice, histogram), number, None))
    return (int(piece.starts[run]) + offset,)


def add_smooth_noise(noise: SmoothNoise, histogram: Histogram, source: Source) -> tuple[int, ...]:
    """(steps,): the quantile and its noise, in steps of 2**−refinement of a cell."""
    around = near_ends(histogram, noise.a, noise.b, lambda around: smooth_reach(around, noise.beta))
    return (
        (around.value << noise.refinement)
        + drawn(noise, smooth_sensitivity(around, noise.beta), source),
    )


def propose_test_release(
    proposal: ProposeTestRelease, histogram: Histogram, source: Source
) -> tuple[int, ...]:
    """(1, value) or (0, 0); all noise is drawn in either case.

    A proposal as wide as the grid is right for all data: it needs no test.
    """
    around = near_ends(
        histogram,
        proposal.a,
        proposal.b,
        lambda around: stability_distance(around, proposal.eta) + 1,
    )
    distance = stability_distance(around, proposal.eta) + int(draw(proposal.test(), 1, source)[0])
    noise = int(draw(proposal.noise(), 1, source)[0]) if proposal.eta else 0
    passed = distance >= proposal.threshold or proposal.eta >= histogram.cells - 1
    return (1, (around.value << proposal.refinement) + noise) if passed else (0, 0)


class Uniform:
    """A uniform number of which `length` bits are known: it lies in [bits, bits + 1]·2**-length."""

    __slots__ = ("bits", "length")

    def __init__(self, source: Source) -> None:
        self.bits, self.length = source.bits(64), 64

    def refine(self, source: Source) -> None:
        self.bits, self.length = (self.bits << 64) | source.bits(64), self.length + 64

    def image(self, falling: Callable[[arb], arb]) -> arb:
        """A ball around the values of a monotone function over all numbers with the known bits;
        not finite while they may be 0.
        """
        if self.bits == 0:
            return arb("nan")
        unit = arb(2) ** -self.length
        return falling(self.bits * unit).union(falling((self.bits + 1) * unit))

    def ball(self) -> arb:
        return self.image(lambda u: u)


def drawn(noise: SmoothNoise, smooth: Smooth, source: Source) -> int:
    """One draw of the rounded noise, in steps of 2**−refinement of a cell."""
    negative = bool(source.bits(1))
    rounded = _rounded_magnitude(noise, smooth, source)
    return -rounded if negative else rounded


def _rounded_magnitude(noise: SmoothNoise, smooth: Smooth, source: Source) -> int:
    size, uniforms = _magnitude(noise, source)
    while True:
        with precision(max(number.length for number in uniforms) + _GUARD_BITS):
            whole = (_steps(noise, smooth) * size() + arb(0.5)).floor().unique_fmpz()
        if whole is not None:
            return int(whole)
        for number in uniforms:
            number.refine(source)


def _steps(noise: SmoothNoise, smooth: Smooth) -> arb:
    """s, at the precision in force."""
    scale = noise.multiplier * smooth.width * (1 << noise.refinement)
    return (
        _rational(scale.numerator, scale.denominator)
        * _rational(-noise.beta.numerator * smooth.steps, noise.beta.denominator).exp()
    )


def _rational(numerator: int, denominator: int) -> arb:
    return arb(fmpq(numerator, denominator))


def _magnitude(noise: SmoothNoise, source: Source) -> tuple[Callable[[], arb], list[Uniform]]:
    """|Z| as a ball at the precision in force, and the uniform numbers that it is a function of."""
    if noise.law == "cauchy" and noise.shape == 4:
        first = _quartic(source)
        return lambda: first.image(_cauchy), [first]
    first = Uniform(source)
    if noise.law in _INVERSE:
        return lambda: first.image(_INVERSE[noise.law]), [first]
    if noise.law == "lln":
        second, sign = Uniform(source), 1 - 2 * source.bits(1)
        slope = noise.shape
        return (
            lambda: (
                first.image(_exponential)
                * (
                    _rational(sign * slope.numerator, slope.denominator) * second.image(_normal)
                ).exp()
            ),
            [first, second],
        )
    degrees = int(noise.shape)
    others = [Uniform(source) for _ in range(degrees // 2 + degrees % 2)]

    def student() -> arb:
        squares = [2 * number.image(_exponential) for number in others[: degrees // 2]] + [
            number.image(_normal) ** 2 for number in others[degrees // 2 :]
        ]
        return first.image(_normal) / (sum(squares, arb(0)) / degrees).sqrt()

    return student, [first, *others]


def _exponential(u: arb) -> arb:
    return -u.log()


def _normal(u: arb) -> arb:
    return arb(2).sqrt() * u.erfcinv()


def _cauchy(u: arb) -> arb:
    return (u / 2).cot_pi()


_INVERSE: dict[str, Callable[[arb], arb]] = {
    "laplace": _exponential,
    "gaussian": _normal,
    "cauchy": _cauchy,
}


def _quartic(source: Source) -> Uniform:
    """The uniform number behind a Cauchy draw that is kept with probability proportional to
    (1 + z²)/(1 + z⁴).
    """
    while True:
        proposal, coin = Uniform(source), Uniform(source)
        while True:
            with precision(proposal.length + _GUARD_BITS):
                square = proposal.image(_cauchy) ** 2
                level = (1 + square) / (1 + square**2)
                height = coin.ball() * (1 + arb(2).sqrt()) / 2
                if height < level:
                    return proposal
                if height > level:
                    break
            proposal.refine(source)
            coin.refine(source)
