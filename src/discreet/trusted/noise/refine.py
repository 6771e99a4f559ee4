"""The exact path: decide a cell in ball arithmetic, drawing more bits while it is open.

Theorem.  `magnitude` returns ⌊s·z(t) + c⌋ for a t that is uniform on the cell of the word,
          and ends with probability 1.
Proof.    z falls with t, so over the cell [T, T+1]·2**-n the value s·z + c runs between its values
          at the two ends. Each end is enclosed by a ball; if both balls lie in [k, k+1), so does
          the whole cell. Otherwise 64 fresh bits choose one of 2**64 equal parts of the cell,
          uniformly. Of those at most a handful (the ones that meet a ball around an integer) stay
          open.
Checked.  tests/claims/test_noise_uniforms.py
"""

from __future__ import annotations

from flint import arb

from discreet.enclosure import precision
from discreet.trusted.noise.laws import Law
from discreet.trusted.noise.source import Source
from discreet.trusted.noise.tables import Tail

# |s·z + c| < 2**64 needs 64; the rest separates the ends of a cell from an integer
_GUARD_BITS = 128


def magnitude(law: Law, tail_bits: int, source: Source) -> int:
    """⌊s·z(t) + c⌋ for t in the cell [tail_bits, tail_bits + 1]·2**-64,
    refined with bits of `source` while open.
    """
    length = 64
    while True:
        with precision(length + _GUARD_BITS):
            decided = _decide(law, tail_bits, length)
        if decided is not None:
            return decided
        tail_bits = (tail_bits << 64) | source.bits(64)
        length += 64


def _decide(law: Law, tail_bits: int, length: int) -> int | None:
    """The magnitude shared by the whole cell, or None."""
    if tail_bits == 0:
        return None
    offset = law.exact_offset()
    largest = _floor(law, tail_bits, length, offset)
    if largest is None or largest != _floor(law, tail_bits + 1, length, offset):
        return None
    return largest


def _floor(law: Law, numerator: int, length: int, offset: arb) -> int | None:
    """⌊s·z + c⌋ at t = numerator·2**-length, or None where the ball meets an integer."""
    doubled = arb(numerator) * arb(2) ** (1 - length)
    z = arb(2).sqrt() * doubled.erfcinv() if law.tail is Tail.NORMAL else -doubled.log()
    whole = (law.steps * z + offset).floor().unique_fmpz()
    return None if whole is None else int(whole)
