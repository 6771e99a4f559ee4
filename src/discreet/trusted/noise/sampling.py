"""From a mechanism to integer noise: words, the fast path, the exact path for what is left open."""

from __future__ import annotations

import numpy as np

from discreet.errors import InvalidParameter
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.trusted.noise.kernels import TAIL_MASK, UNDECIDED, Kernel, Steps, kernel_for
from discreet.trusted.noise.laws import Law, law_of
from discreet.trusted.noise.refine import magnitude
from discreet.trusted.noise.source import Source, Words
from discreet.trusted.noise.tables import tables

_CHUNK = 1 << 14  # words at a time: they stay in the processor's cache


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
    Proof.    laws.py, kernels.py, refine.py. Tulap: 2**r·G is whole and ⌊2**r·U⌋ is uniform on
              −2**(r−1) … 2**(r−1)−1. The cell that k steps stand for is [k, k+1), so a reader of
              the continuous law adds half a step. Noise beyond 64 bits would be 2**13 spreads away
              (probability < exp(−2**13)).
    Checked.  tests/claims/test_noise_law.py, tests/claims/test_noise_uniforms.py,
              tests/claims/test_reachable_outputs.py
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise InvalidParameter(
            "size=",
            "it is not a whole number ≥ 0",
            "it is the number of draws",
            "pass the length of the statistic",
        )
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
