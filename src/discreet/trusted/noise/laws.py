"""Every law as one kernel: magnitude = ⌊s·z(t) + c⌋ with a fair sign, t uniform on [0, ½].

    law         z(t)          s        c
    Gaussian    Φ⁻¹(1 − t)    steps    ½
    Laplace     −ln(2t)       steps    ½
    geometric   −ln(2t)       spread   s·ln(2/(1+b)), b = exp(−1/s)

Theorem.  With t uniform on [0, ½] and an independent fair sign: Gaussian and Laplace give the
          real-valued noise rounded to the nearest step (halves away from zero); geometric gives
          P(k) = (1−b)/(1+b)·b^|k| (reference.md B2, M3, M4).
Proof.    z(t) has the law of |Z|, |Z| normal or exponential, as P(|Z| > z(t)) = 2t. Geometric:
          K ≥ k ⟺ −ln(2t) ≥ k/s + ln((1+b)/2) ⟺ t ≤ b^k/(1+b), so P(K ≥ k) = 2b^k/(1+b) for k ≥ 1,
          which is P(|N| ≥ k); a fair sign gives each side half.
Checked.  tests/claims/test_noise_law.py, tests/claims/test_noise_uniforms.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from flint import arb

from discreet import plain
from discreet.enclosure import precision
from discreet.errors.noise import no_sampler, too_wide
from discreet.specs.mechanisms.additive import (
    LARGEST_STEPS,
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.trusted.noise.tables import OFFSET_SLACK, Tail

# below it float products underflow: every word takes the exact path
SMALLEST_FAST_STEPS = 2.0**-900


class Offset(Enum):
    """What c is."""

    HALF = "rounds to the nearest step"
    GEOMETRIC = "s·ln(2/(1+b))"


@dataclass(frozen=True, slots=True)
class Law:
    """One row of the table above, as the samplers read it.

    `offset` is c within 2**-51 of itself, `slack` what the kernels add to s·margin (see tables.py);
    `uniform_bits` is 0, or the refinement r of Tulap noise.
    """

    tail: Tail
    steps: float
    offset: float
    slack: float
    kind_of_offset: Offset
    uniform_bits: int = 0

    def exact_offset(self) -> arb:
        """c in ball arithmetic, at the precision in force."""
        if self.kind_of_offset is Offset.HALF:
            return arb(0.5)
        steps = arb(self.steps)
        return steps * (2 / (1 + (-1 / steps).exp())).log()


@plain.remembered(256, copied=False)
def law_of(mechanism: AdditiveNoise) -> Law:
    """The law of a mechanism's noise; refuses what does not fit 64-bit integers."""
    steps = float(mechanism.steps)
    if isinstance(mechanism, GaussianNoise):
        return Law(Tail.NORMAL, steps, 0.5, OFFSET_SLACK / 2, Offset.HALF)
    if isinstance(mechanism, LaplaceNoise):
        return Law(Tail.EXPONENTIAL, steps, 0.5, OFFSET_SLACK / 2, Offset.HALF)
    if isinstance(mechanism, GeometricNoise):
        return _geometric(steps, 0)
    if isinstance(mechanism, TulapNoise):
        if mechanism.spread * (1 << mechanism.refinement) > LARGEST_STEPS:
            raise too_wide()
        return _geometric(steps, mechanism.refinement)
    raise no_sampler(type(mechanism).__name__)


def _geometric(steps: float, uniform_bits: int) -> Law:
    always_exact = Law(Tail.EXPONENTIAL, steps, 0.0, math.inf, Offset.GEOMETRIC, uniform_bits)
    if steps < SMALLEST_FAST_STEPS:
        return always_exact
    with precision(256):
        exact = always_exact.exact_offset()
        offset = float(exact.mid())
        if not abs(exact - offset) <= offset * 2.0**-51:
            raise ArithmeticError("the offset of the geometric law is not known well enough")
    return replace(always_exact, offset=offset, slack=OFFSET_SLACK * offset)
