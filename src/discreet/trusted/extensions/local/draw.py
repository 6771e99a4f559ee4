"""Reports of local privacy, drawn with exactly the law of specs/mechanisms/local.py;
whole numbers decide, no float does.

Random words are cut into halves of 32 bits. One half tosses the coin `kept`,
another chooses uniformly among all reports.

    coins      P(True) = a `Chance`: the half h says that U lies in [h, h+1]·2**-32
    uniforms   a uniform whole number below a bound

Time.     The work a report takes does not depend on the value,
          but for a coin of a half that lies on the edge (2**-32 of them).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq
from numpy.typing import NDArray

from discreet import plain
from discreet.enclosure import precision
from discreet.specs.mechanisms.local import (
    Chance,
    GaussianResponse,
    HadamardResponse,
    LaplaceResponse,
    OneBitResponse,
    RandomizedResponse,
    TwoCoinResponse,
    UnaryResponse,
)
from discreet.trusted.noise.choice import uniform_below
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source, Words

Codes = NDArray[np.int64]
Halves = NDArray[np.uint32]

_HALF, _MASK = np.uint64(32), np.uint64(2**32 - 1)
_CHUNK = 1 << 14  # reports at a time: they stay in the processor's cache
_GUARD_BITS = 128


def randomize(spec: Any, codes: Codes, source: Source) -> NDArray[Any]:
    """One report for each code: whole numbers, or rows of packed bits (uint8) for `UnaryResponse`.

    Theorem.  Given ideal bits the reports are independent, and each has exactly its spec's law.
    Proof.    `coins`, `uniforms`; the mixture of kept and uniform reports is the law
              (specs/mechanisms/local.py); trusted/noise/sampling.py.
    Checked.  tests/claims/test_local_sampling.py
    """
    sampler = _RANDOMIZERS[type(spec)]
    if isinstance(spec, UnaryResponse):
        return sampler(spec, codes, source)
    out = np.empty(
        len(codes),
        dtype=np.int64 if isinstance(spec, (LaplaceResponse, GaussianResponse)) else np.int32,
    )
    for start in range(0, len(codes), _CHUNK):
        out[start : start + _CHUNK] = sampler(spec, codes[start : start + _CHUNK], source)
    return out


def coins(chance: Chance, halves: Halves, source: Source) -> NDArray[np.bool_]:
    """Independent coins with P(True) = `chance`, one for each half.

    Theorem.  Given ideal bits, a coin is True exactly if its U < chance.
    Proof.    With T = ⌊chance·2**32⌋, a half below T puts all of [h, h+1]·2**-32 below the chance,
              one above T puts it at or above. At T the cell is refined by fresh bits until balls
              decide.
    Checked.  tests/claims/test_local_sampling.py::test_a_coin_is_decided_by_its_exact_threshold
    """
    level = threshold(chance)
    out: NDArray[np.bool_] = halves < np.uint32(level)
    for place in np.flatnonzero(halves == np.uint32(level)):
        out[place] = _falls(chance, level, source)
    return out


def uniforms(bound: int, halves: Halves, source: Source) -> Words:
    """Uniform whole numbers in 0 … bound−1, for 1 ≤ bound < 2**32; one for each half.

    Theorem.  Given ideal bits they are exactly uniform.
    Proof.    h·bound = r·2**32 + rest. For every r exactly ⌊2**32/bound⌋ halves have rest ≥ 2**32
              mod bound (Lemire 2019); the others are replaced by fresh uniform numbers.
    Checked.
        tests/claims/test_local_sampling.py::test_every_number_below_a_bound_has_equally_many_halves
    """
    product = halves.astype(np.uint64)
    product *= np.uint64(bound)
    out: Words = product >> _HALF
    refused = np.uint64(2**32 % bound)
    if refused:
        product &= _MASK
        for place in np.flatnonzero(product < refused):
            out[place] = uniform_below(bound, source)
    return out


@plain.remembered(256)
def threshold(chance: Chance) -> int:
    """⌊chance·2**32⌋, exactly."""
    fixed = _fixed(chance)
    if fixed is not None:
        return int(fixed * 2**32)
    bits = 256
    while True:
        with precision(bits):
            level = _ball(chance) * 2**32
            whole = level.floor().unique_fmpz()
            if whole is not None:
                return int(whole)
            if level > 2**32 - 1:  # and below 2**32, for no chance is 1
                return 2**32 - 1
        bits *= 2


def _falls(chance: Chance, word: int, source: Source) -> bool:
    """Whether U < chance, U in [word, word+1]·2**-32 refined with fresh bits while it is open;
    ends with probability 1.
    """
    length = 32
    while True:
        with precision(length + _GUARD_BITS):
            level = _ball(chance) * arb(2) ** length
            if word + 1 <= level:
                return True
            if word >= level:
                return False
        word = (word << 64) | source.bits(64)
        length += 64


def _fixed(chance: Chance) -> Fraction | None:
    """The chance where it is rational (no exponential in it)."""
    (a, b), (c, d) = chance.above, chance.below
    return Fraction(a, c) if b == d == 0 else None


def _ball(chance: Chance) -> arb:
    """The chance as a ball, at the precision in force; divided by e^x where that is the greater."""
    fixed = _fixed(chance)
    if fixed is not None:
        return arb(fmpq(fixed.numerator, fixed.denominator))
    (a, b), (c, d) = chance.above, chance.below
    shrunk = (-arb(fmpq(chance.exponent.numerator, chance.exponent.denominator))).exp()
    return (a * shrunk + b) / (c * shrunk + d)


def _answers(spec: RandomizedResponse | TwoCoinResponse, codes: Codes, source: Source) -> Codes:
    """The code where its coin keeps it, else a uniform level; a code below 0 is never kept."""
    return _mixed(spec.kept, spec.size, codes, source)


def _mixed(kept: Chance, size: int, codes: Codes, source: Source) -> Codes:
    first, second = _halves(len(codes), source)
    keep = coins(kept, first, source)
    keep &= codes >= 0
    return np.where(keep, codes, uniforms(size, second, source).view(np.int64))


def _halves(count: int, source: Source) -> tuple[Halves, Halves]:
    """Twice `count` independent halves."""
    halves: Halves = source.uint64(count).view(np.uint32)
    return halves[:count], halves[count:]


def _cells(spec: HadamardResponse, codes: Codes, source: Source) -> Codes:
    """A uniform output; where the coin keeps it, moved into the own block,
    and into a cell where the own row is +1.

    Proof.  Moving a uniform cell of the wrong sign by one binary digit of the row maps it one to
            one to a cell of the right sign, so that kept outputs are uniform over the width/2 own
            cells.
    """
    width, (first, second) = spec.width, _halves(len(codes), source)
    keep = coins(spec.kept, first, source) & (codes >= 0)
    drawn = uniforms(spec.outputs, second, source).view(np.int64)
    block, row = np.divmod(codes, width - 1)
    row += 1
    cell = drawn & (width - 1)
    cell = np.where(np.bitwise_count(cell & row) & 1, cell ^ (row & -row), cell)
    return np.where(keep, block * width + cell, drawn)


def _bits(spec: UnaryResponse, codes: Codes, source: Source) -> NDArray[np.uint8]:
    """Rows of K bits, packed eight to a byte, the first level in the highest."""
    size = spec.size
    out = np.empty((len(codes), -(-size // 8)), dtype=np.uint8)
    step = max(1, _CHUNK // size)
    for start in range(0, len(codes), step):
        own = codes[start : start + step]
        halves = (
            source.uint64(-(-len(own) * (size + 1) // 2))
            .view(np.uint32)[: len(own) * (size + 1)]
            .reshape(len(own), size + 1)
        )
        ones = coins(spec.other, halves[:, :size].ravel(), source).reshape(len(own), size)
        known = np.flatnonzero(own >= 0)
        ones[known, own[known]] = coins(spec.own, halves[known, size], source)
        out[start : start + step] = np.packbits(ones, axis=1)
    return out


def _one_bit(spec: OneBitResponse, codes: Codes, source: Source) -> Codes:
    """The code rounded at random to an end of its range, then randomised response."""
    grid = spec.column.encoding()
    place = uniforms(grid.high - grid.low, _halves(len(codes), source)[0], source).view(np.int64)
    return _mixed(spec.kept, 2, (place < codes - grid.low).astype(np.int64), source)


def _noisy(spec: LaplaceResponse | GaussianResponse, codes: Codes, source: Source) -> Codes:
    noise = draw(spec.noise, len(codes), source)
    return (codes << spec.noise.refinement) + noise


_RANDOMIZERS: dict[type[Any], Callable[[Any, Codes, Source], NDArray[Any]]] = {
    RandomizedResponse: _answers,
    TwoCoinResponse: _answers,
    UnaryResponse: _bits,
    HadamardResponse: _cells,
    OneBitResponse: _one_bit,
    LaplaceResponse: _noisy,
    GaussianResponse: _noisy,
}
