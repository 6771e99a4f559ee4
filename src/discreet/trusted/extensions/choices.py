"""Exact choices among groups, with probabilities proportional to size·exp(−rate·gap).

The lemma about weights, and how bits of a uniform number are drawn until an answer is certain,
stand in `noise/choice.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from discreet.enclosure import precision
from discreet.trusted.noise.choice import (
    GUARD_BITS,
    Integers,
    exact_exp,
    uniform_below,
    weights_of,
)
from discreet.trusted.noise.source import Source

_ERROR_BITS = 40  # |η| < 2**-40
_TOTAL_BITS = 61  # whole weights add up to less than 2**62


def choose(
    gaps: Integers, sizes: Integers, rate: Fraction, source: Source, *, force_exact: bool = False
) -> tuple[int, int]:
    """(j, o): a group with P(j) ∝ sizes[j]·exp(−rate·gaps[j]),
    and a uniform place o in range(sizes[j]) within it.

    `gaps` ≥ 0 and `sizes` ≥ 1 are whole numbers below 2**63, at least one of each; `rate` ≥ 0.
    Greater gaps (Python integers, dtype object) take the exact path, and `force_exact` sends all
    there (the same answer for the same words, some hundred times slower).

    Theorem.  Given ideal bits, (j, o) has exactly this law.
    Proof.    Let S_j be the sums of the true weights, relative to the least gap, so that S_n ≥ 1.
              j is the cell [S_(j−1), S_j) that holds U·S_n. Whole weights a_j = ⌊κ·ŵ_j⌋ have exact
              sums C_j with |C_j − κ·S_j| ≤ E = 2 + n + (C_n + n)·2**-39 for all j (lemma; a floor
              loses less than 1, a weight that was cut less than 2**-700).
              If C_(j−1) + E ≤ U·(C_n − E) and U·(C_n + E) ≤ C_j − E for the whole interval of U,
              then κ·S_(j−1) ≤ U·κ·S_n ≤ κ·S_j. The exact path says the same with balls. o is drawn
              from fresh bits.
    Checked.  tests/trusted/noise/test_choice.py
    """
    if len(gaps) == 1:
        return 0, uniform_below(int(sizes[0]), source)
    gaps = gaps - gaps.min()
    word = int(source.uint64(1)[0])
    chosen = None if force_exact or gaps.dtype != np.int64 else _decided(gaps, sizes, rate, word)
    if chosen is None:
        chosen = _chosen_exactly(gaps.tolist(), sizes.tolist(), rate, word, source)
    return chosen, uniform_below(int(sizes[chosen]), source)


def _decided(gaps: Integers, sizes: Integers, rate: Fraction, word: int) -> int | None:
    """The group that every U of the word's cell chooses,
    or None where the enclosure leaves it open.
    """
    weights = weights_of(gaps, sizes, rate)
    exponent = _TOTAL_BITS - math.frexp(float(weights.sum()))[1]
    np.multiply(weights, 2.0**exponent, out=weights)
    sums = np.cumsum(weights.astype(np.int64))
    groups, total = len(sums), int(sums[-1])
    error = 2 + groups + ((total + groups) >> (_ERROR_BITS - 1))
    chosen = int(np.searchsorted(sums, (word * total) >> 64, side="right"))
    before = int(sums[chosen - 1]) + error if chosen else 0
    after = int(sums[chosen]) - error
    if before << 64 <= word * (total - error) and (word + 1) * (total + error) <= after << 64:
        return chosen
    return None


def _chosen_exactly(
    gaps: Sequence[int], sizes: Sequence[int], rate: Fraction, word: int, source: Source
) -> int:
    """The group that U chooses, U in [word, word+1]·2**-64 refined with fresh bits while it is
    open; ends with probability 1.
    """
    length = 64
    while True:
        with precision(length + GUARD_BITS):
            chosen = _certain(gaps, sizes, rate, word, length)
        if chosen is not None:
            return chosen
        word = (word << 64) | source.bits(64)
        length += 64


def _certain(
    gaps: Sequence[int], sizes: Sequence[int], rate: Fraction, word: int, length: int
) -> int | None:
    known: dict[int, arb] = {}
    sums, total = [], arb(0)
    for gap, size in zip(gaps, sizes, strict=True):
        if gap not in known:
            known[gap] = exact_exp(gap, rate)
        total += size * known[gap]
        sums.append(total)
    unit = total * arb(2) ** -length
    first, last = word * unit, (word + 1) * unit
    low, high = 0, len(sums) - 1
    while low < high:  # the first cell that is not certainly before the whole interval of U
        middle = (low + high) // 2
        low, high = (middle + 1, high) if sums[middle] <= first else (low, middle)
    return low if low == len(sums) - 1 or last <= sums[low] else None
