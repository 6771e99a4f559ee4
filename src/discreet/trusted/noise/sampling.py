"""From a mechanism to integer noise: words, the fast path (kernels.py),
and the exact path for what it leaves open.
"""

from __future__ import annotations

import numpy as np
from flint import arb

from discreet.enclosure import precision
from discreet.errors.noise import bad_size
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.trusted.noise.kernels import TAIL_MASK, UNDECIDED, Kernel, Steps, kernel_for
from discreet.trusted.noise.laws import Law, law_of
from discreet.trusted.noise.source import Source, Words
from discreet.trusted.noise.tables import Tail, tables

_CHUNK = 1 << 14  # words at a time: they stay in the processor's cache
# |s·z + c| < 2**64 needs 64; the rest separates the ends of a cell from an integer
_GUARD_BITS = 128


def draw(
    mechanism: AdditiveNoise, size: int, source: Source, *, force_exact: bool = False
) -> Steps:
    """`size` independent draws of a mechanism's noise, as whole numbers of its grid steps.

    `force_exact` sends every word through the exact path;
    the result is the same, some thousand times slower.

    Theorem.  Given ideal bits the draws have exactly the law of specs/mechanisms/additive.py:
              normal and Laplace noise rounded to the grid, two-sided geometric noise, or, for Tulap
              noise, ⌊2**r·(G + U)⌋ with G geometric and U uniform on (−½, ½). Since the statistic
              lies on the grid, releasing it with this noise is a post-processing of the real-valued
              mechanism: μ-GDP (reference.md B5) and ε-DP (B2, M3) hold exactly.
    Proof.    laws.py, kernels.py, `magnitude`. Tulap: 2**r·G is whole and ⌊2**r·U⌋ is uniform on
              −2**(r−1) … 2**(r−1)−1. The cell that k steps stand for is [k, k+1), so a reader of
              the continuous law adds half a step. Noise beyond 64 bits would be 2**13 spreads away
              (probability < exp(−2**13)).
    Checked.  tests/claims/test_noise_law.py, tests/claims/test_noise_uniforms.py,
              tests/claims/test_reachable_outputs.py
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise bad_size()
    law = law_of(mechanism)
    kernel = None if force_exact else kernel_for(size)
    noise: Steps = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = noise[start : start + _CHUNK]
        _fill(law, source.uint64(len(part)), source, kernel, part)
        if law.uniform_bits:
            _add_uniform(part, law.uniform_bits, source.uint64(len(part)))
    return noise


def from_words(law: Law, words: Words, source: Source, *, kernel: Kernel | None) -> Steps:
    """The noise that given 64-bit words lead to, without Tulap's uniform part;
    `kernel` None is the exact path.

    `source` gives the further bits of words whose cell is open. For tests:
    a word is a sign bit and 63 bits of tail.
    """
    noise: Steps = np.empty(len(words), dtype=np.int64)
    _fill(law, words, source, kernel, noise)
    return noise


def _fill(law: Law, words: Words, source: Source, kernel: Kernel | None, out: Steps) -> None:
    if kernel is None:
        out[:] = UNDECIDED
    elif kernel(words, tables()[law.tail], law.steps, law.offset, law.slack, out) == 0:
        return
    for position in np.flatnonzero(out == UNDECIDED):
        word = int(words[position])
        size = magnitude(law, word & TAIL_MASK, source)
        out[position] = -size if word >> 63 else size


def _add_uniform(part: Steps, bits: int, words: Words) -> None:
    """part·2**bits + a uniform integer in [−2**(bits−1), 2**(bits−1)),
    from the top `bits` bits of each word.
    """
    part <<= bits
    part += (words >> np.uint64(64 - bits)).astype(np.int64) - (1 << (bits - 1))


def magnitude(law: Law, tail_bits: int, source: Source) -> int:
    """⌊s·z(t) + c⌋ for t in the cell [tail_bits, tail_bits + 1]·2**-64,
    refined with bits of `source` while open.

    Theorem.  t is uniform on the cell of the word, and the loop ends with probability 1.
    Proof.    z falls with t, so over the cell [T, T+1]·2**-n the value s·z + c runs between its
              values at the two ends. Each end is enclosed by a ball; if both balls lie in [k, k+1),
              so does the whole cell. Otherwise 64 fresh bits choose one of 2**64 equal parts of the
              cell, uniformly. Of those at most a handful (the ones that meet a ball around an
              integer) stay open.
    Checked.  tests/claims/test_noise_uniforms.py
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
