"""The reachable-output attack: tell two neighbouring data sets apart by the low bits of a released
float.

A float sum x + noise can only reach some floats, and which ones depends on x (Mironov 2012).
The attack looks at the lowest set bit of an output: 0.01 drawn about 0 has bits far below 2**-53,
0.01 drawn about 1 has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Release = Callable[[float, int], NDArray[np.float64]]

CONFIDENCE = 1 - 1e-9


def lowest_bit(outputs: NDArray[np.float64]) -> NDArray[np.int64]:
    """The exponent of the lowest set bit of each float; 2000 for zero."""
    mantissa, exponent = np.frexp(outputs)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(whole == 0, 2000, exponent.astype(np.int64) - 53 + lowest)


def epsilon_seen_in_low_bits(release: Release, x: float, neighbor: float, count: int) -> float:
    """A lower bound on ε, at confidence 1 − 10⁻⁹, that low bits alone prove against `release`;
    0 if they prove nothing.

    `release(x, count)` gives `count` independent releases of the statistic x. The first half of the
    outputs chooses an event {lowest bit ≤ j} or {lowest bit ≥ j} and its direction, the second half
    counts it.

    Validity.  If `release` is ε-DP with x and `neighbor` adjacent, the result exceeds ε with
               probability at most 10⁻⁹: two exact binomial limits, each at half that level, on
               outputs that did not choose the event.
    """
    bits = [lowest_bit(release(value, count)) for value in (x, neighbor)]
    first, second = ([b[: count // 2] for b in bits], [b[count // 2 :] for b in bits])
    best = max(_events(first), key=lambda event: _limit(*_counts(first, event), count // 2))
    return max(0.0, _limit(*_counts(second, best), count - count // 2))


# threshold, whether it means "at most", whether the neighbour is the more likely one
Event = tuple[int, bool, bool]


def _events(bits: list[NDArray[np.int64]]) -> list[Event]:
    return [
        (int(j), below, swapped)
        for j in np.unique(np.concatenate(bits))
        for below in (True, False)
        for swapped in (True, False)
    ]


def _counts(bits: list[NDArray[np.int64]], event: Event) -> tuple[int, int]:
    threshold, below, swapped = event
    seen = [int(np.count_nonzero(b <= threshold if below else b >= threshold)) for b in bits]
    return (seen[1], seen[0]) if swapped else (seen[0], seen[1])


def _limit(often: int, seldom: int, trials: int) -> float:
    """ln(lower limit of one probability / upper limit of the other), Clopper–Pearson."""
    if often == 0 or seldom == trials:
        return -math.inf
    level = (1 - CONFIDENCE) / 2
    lower = stats.beta.ppf(level, often, trials - often + 1)
    upper = stats.beta.isf(level, seldom + 1, trials - seldom)
    return math.log(lower / upper) if lower > 0 else -math.inf
