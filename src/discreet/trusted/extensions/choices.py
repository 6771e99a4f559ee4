"""Exact choices among groups, with probabilities proportional to size·exp(−rate·gap).

The lemma about weights, and how bits of a uniform number are drawn until an answer is certain,
stand in `noise/choice.py`.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterator
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
_KNOWN = 1 << 16  # gaps of which the exact weights are remembered from piece to piece
Groups = tuple[Integers, Integers]  # gaps and sizes


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
        _, chosen = _chosen_exactly(lambda: iter([(gaps, sizes)]), rate, word, source)
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
    error = _slack(groups, total)
    chosen = int(np.searchsorted(sums, (word * total) >> 64, side="right"))
    before = int(sums[chosen - 1]) + error if chosen else 0
    after = int(sums[chosen]) - error
    return chosen if _certain_between(before, after, word, total, error) else None


def _slack(groups: int, total: int) -> int:
    """E of the proof."""
    return 2 + groups + ((total + groups) >> (_ERROR_BITS - 1))


def _certain_between(before: int, after: int, word: int, total: int, error: int) -> bool:
    return before << 64 <= word * (total - error) and (word + 1) * (total + error) <= after << 64


def choose_among(
    pieces: Callable[[], Iterator[Groups]], rate: Fraction, source: Source
) -> tuple[int, int, int]:
    """`choose` where (gaps, sizes) come in pieces, each time anew: the piece's number, the group in
    it, and the place; the same answer for the same words.
    """
    least = min(int(gaps.min()) for gaps, _ in pieces())
    word = int(source.uint64(1)[0])

    def shifted() -> Iterator[Groups]:
        return ((gaps - least, sizes) for gaps, sizes in pieces())

    found = _decided_among(shifted, rate, word)
    number, group = found or _chosen_exactly(shifted, rate, word, source)
    sizes = next(itertools.islice(pieces(), number, None))[1]
    return number, group, uniform_below(int(sizes[group]), source)


def _decided_among(
    pieces: Callable[[], Iterator[Groups]], rate: Fraction, word: int
) -> tuple[int, int] | None:
    """`_decided`: whole weights of pieces add up to those of all groups."""
    groups, weight = 0, 0.0
    for gaps, sizes in pieces():
        groups, weight = groups + len(gaps), weight + float(weights_of(gaps, sizes, rate).sum())
    scale = 2.0 ** (_TOTAL_BITS - math.frexp(weight)[1])

    def sums(piece: Groups) -> Integers:
        return np.cumsum((weights_of(*piece, rate) * scale).astype(np.int64))

    upto = list(itertools.accumulate((int(sums(piece)[-1]) for piece in pieces()), initial=0))
    total = upto[-1]
    error = _slack(groups, total)
    number = bisect.bisect_right(upto, (word * total) >> 64) - 1
    here = upto[number] + sums(next(itertools.islice(pieces(), number, None)))
    chosen = int(np.searchsorted(here, (word * total) >> 64, side="right"))
    first = not chosen and not number
    before = 0 if first else int(here[chosen - 1] if chosen else upto[number]) + error
    after = int(here[chosen]) - error
    return (number, chosen) if _certain_between(before, after, word, total, error) else None


def _chosen_exactly(
    pieces: Callable[[], Iterator[Groups]], rate: Fraction, word: int, source: Source
) -> tuple[int, int]:
    """The piece and the group that U chooses, U in [word, word+1]·2**-64 refined with fresh bits
    while it is open; ends with probability 1.
    """
    length = 64
    while True:
        with precision(length + GUARD_BITS):
            chosen = _certain(pieces, rate, word, length)
        if chosen is not None:
            return chosen
        word = (word << 64) | source.bits(64)
        length += 64


def _certain(
    pieces: Callable[[], Iterator[Groups]], rate: Fraction, word: int, length: int
) -> tuple[int, int] | None:
    total, groups = arb(0), 0
    for _, _, weight in _balls(pieces, rate):
        total, groups = total + weight, groups + 1
    unit = total * arb(2) ** -length
    first, last, upto = word * unit, (word + 1) * unit, arb(0)
    for number, group, weight in _balls(pieces, rate):
        upto, groups = upto + weight, groups - 1
        if not groups or not upto <= first:  # not certainly before the whole interval of U
            return (number, group) if not groups or last <= upto else None
    raise AssertionError("there is a last group")


def _balls(
    pieces: Callable[[], Iterator[Groups]], rate: Fraction
) -> Iterator[tuple[int, int, arb]]:
    """The piece, the group and the weight of each group, at the precision in force."""
    known: dict[int, arb] = {}
    for number, (gaps, sizes) in enumerate(pieces()):
        if len(known) > _KNOWN:
            known.clear()
        for group, (gap, size) in enumerate(zip(gaps.tolist(), sizes.tolist(), strict=True)):
            if gap not in known:
                known[gap] = exact_exp(gap, rate)
            yield number, group, size * known[gap]
