"""Exact coins of probability exp(−rate·gap), and uniform integers.

    bernoulli_exp   independent coins, P(True) = exp(−rate·gaps[j])
    uniform_below   a uniform whole number in 0 … m−1

A draw is a real U, uniform on [0, 1], of which 64 bits are known at first: a word w says that
U lies in [w, w+1]·2**-64. The fast path encloses all weights in float64 and answers only where
every U of that cell, with all weights the enclosure allows, gives the same answer. Else
`discreet.enclosure` encloses them more and more sharply while 64 further bits of U are drawn, until
the answer is certain. `extensions/choices.py` chooses among groups in the same way.

Lemma.    For whole gaps g ≥ 0, x = rate·g ≤ 600 and sizes m < 2**63 the float64 of `weights_of` is
          m·exp(−x)·(1 + η), |η| < 2**-40. For x > 600.1 it is 0 and the truth is below 2**-800;
          between 600 and 600.1 it is one of the two.
Proof.    u = 2**-53. Rate and g are rounded once each and their product once: x̂ = x(1 + 3.01u),
          off by less than 600.1·3.01u < 2**-42.1 (a rate beyond 2**900 counts as 2**900,
          a subnormal one is off by 2**-1074·2**63: both change nothing that is kept).
          x̂ = k·ln2/64 + ρ with k < 2**16 and ln2/64 = H + L, H of 37 bits, so k·H is exact;
          ρ is off by less than 2**-58 and |ρ| < 0.0055. Taylor's polynomial of degree 6 of exp(−ρ)
          is off by 0.0055⁷/5040 < 2**-64, Horner's rule by less than 2**-50. The table of
          2**(−i/64), the size, and three products add at most 6u; the power of two is exact.
          Together less than 2**-42.1 + 2**-49 < 2**-40.
Checked.  tests/trusted/noise/test_choice.py::test_weights_stay_within_their_proven_error
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from discreet.enclosure import precision
from discreet.trusted.noise.source import Source

Integers = NDArray[np.int64]  # Python integers (dtype object) where they do not fit
Floats = NDArray[np.float64]

_LARGEST_EXPONENT = 600.0  # beyond it a weight is below 2**-800 of the largest
_LARGEST_RATE = 2.0**900  # with it any gap ≥ 1 lies beyond the largest exponent
_CHUNK = 1 << 13  # weights at a time: they stay in the processor's cache
GUARD_BITS = 128  # separates the edge of a cell from the ends of U's interval


def bernoulli_exp(
    gaps: Integers, rate: Fraction, source: Source, *, force_exact: bool = False
) -> NDArray[np.bool_]:
    """Independent coins with P(True) = exp(−rate·gaps[j]), for whole gaps ≥ 0 and rate ≥ 0;
    exact.

    Theorem.  Given ideal bits, coin j is True exactly if U_j < exp(−rate·gaps[j]),
              U_j uniform and independent.
    Proof.    With p̂ = p(1 + η) a coin is decided where the float of the word, which is within
              2**-53 of it, puts all of [w, w+1]·2**-64 on one side of p̂(1 ± 2**-39). A cut p is
              below 2**-800 < 2**-64, so that every word w ≥ 1 is above it.
    Checked.  tests/trusted/noise/test_choice.py::test_coins_follow_their_law
    """
    words = source.uint64(len(gaps))
    out = np.zeros(len(gaps), dtype=np.bool_)
    undecided = np.ones(len(gaps), dtype=np.bool_)
    if not force_exact and gaps.dtype == np.int64:
        level = weights_of(gaps, None, rate) * 2.0**64
        low = words.astype(np.float64)
        out = (low + 1) * (1 + 2.0**-50) <= level * (1 - 2.0**-39)
        above = low * (1 - 2.0**-50) >= np.maximum(level * (1 + 2.0**-39), 2.0**-700)
        undecided = ~(out | above)
    for place in np.flatnonzero(undecided):
        out[place] = _falls_exactly(int(gaps[place]), rate, int(words[place]), source)
    return out


def uniform_below(bound: int, source: Source) -> int:
    """A uniform whole number in 0 … bound−1, for bound ≥ 1: the first of fresh equally long binary
    numbers that is below the bound.
    """
    length = (bound - 1).bit_length()
    while length:
        number = source.bits(length)
        if number < bound:
            return number
    return 0


def weights_of(gaps: Integers, sizes: Integers | None, rate: Fraction) -> Floats:
    """size·exp(−rate·gap) in float64, 0 beyond the largest exponent; its error is the lemma's.

    Sizes are 1 where None.
    """
    slope = _LARGEST_RATE if rate > _LARGEST_RATE else float(rate)
    weights = np.empty(len(gaps))
    for start in range(0, len(gaps), _CHUNK):
        part = weights[start : start + _CHUNK]
        _fill(gaps[start : start + _CHUNK].astype(np.float64) * slope, part)
        if sizes is not None:
            part *= sizes[start : start + _CHUNK]
    return weights


def _fill(exponents: Floats, out: Floats) -> None:
    """out = exp(−exponents), 0 beyond the largest exponent."""
    high, low, powers = _constants()
    kept = exponents <= _LARGEST_EXPONENT
    np.minimum(exponents, _LARGEST_EXPONENT, out=exponents)
    steps = np.rint(exponents * (1 / (high + low)))
    rest = exponents
    rest -= steps * high
    rest -= steps * low
    np.multiply(rest, 1 / 720, out=out)
    for coefficient in (-1 / 120, 1 / 24, -1 / 6, 1 / 2, -1.0):
        out += coefficient
        out *= rest
    out += 1.0
    whole = steps.astype(np.int64)
    out *= powers[whole & 63]
    out *= ((1023 - (whole >> 6)) << 52).view(np.float64)
    out *= kept


@cache
def _constants() -> tuple[float, float, Floats]:
    """ln2/64 = H + L with H of 37 bits, and 2**(−i/64) for i = 0 … 63."""
    with precision(256):
        step = arb(2).log() / 64
        whole = (step * arb(2) ** 43).floor().unique_fmpz()
        high = int(whole) / 2.0**43
        low = float((step - high).mid())
        powers = np.array([float((arb(2) ** arb(fmpq(-i, 64))).mid()) for i in range(64)])
    powers.flags.writeable = False
    return high, low, powers


def _falls_exactly(gap: int, rate: Fraction, word: int, source: Source) -> bool:
    """Whether U < exp(−rate·gap), U in [word, word+1]·2**-64 refined with fresh bits while it is
    open.
    """
    length = 64
    while True:
        with precision(length + GUARD_BITS):
            level = exact_exp(gap, rate) * arb(2) ** length
            if word + 1 <= level:
                return True
            if word >= level:
                return False
        word = (word << 64) | source.bits(64)
        length += 64


def exact_exp(gap: int, rate: Fraction) -> arb:
    """exp(−rate·gap) as a ball, at the precision in force."""
    return arb(fmpq(-gap * rate.numerator, rate.denominator)).exp()
