"""The fast path compiled by numba: `kernels.in_numpy` word by word. Imported only when a draw is long enough to pay for it."""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np

from discreet.noise.kernels import CENTRE, LARGEST_DECIDED, LOCAL_BITS, LOCAL_MASK, ONE, ROW_SHIFT, TAIL_MASK, UNDECIDED, Kernel


def _each_word(words: Any, table: Any, steps: float, offset: float, slack: float, out: Any) -> int:
    undecided = 0
    for i in range(words.size):
        nearest = np.float64(np.int64(words[i] & np.uint64(TAIL_MASK)))
        pattern = nearest.view(np.int64)
        row: Any = max((pattern >> LOCAL_BITS) - ROW_SHIFT, 0)
        u = np.int64((pattern & LOCAL_MASK) | ONE).view(np.float64) - CENTRE
        z = table[row, 6]
        z = z * u + table[row, 5]
        z = z * u + table[row, 4]
        z = z * u + table[row, 3]
        z = z * u + table[row, 2]
        z = z * u + table[row, 1]
        z = z * u + table[row, 0]
        centre = steps * z + offset
        radius = steps * table[row, 7] + slack
        low = np.floor(centre - radius)
        high = np.floor(centre + radius)
        decided = (low == high) & (high < LARGEST_DECIDED)
        sign = 1 - 2 * np.int64(words[i] >> np.uint64(63))
        out[i] = sign * np.int64(low) if decided else UNDECIDED
        undecided += not decided
    return undecided


def _compile() -> Any:
    options = {"nogil": True, "fastmath": {"contract"}, "boundscheck": False}
    try:
        return numba.njit(cache=True, **options)(_each_word)
    except RuntimeError:  # no folder to keep the compiled code in
        return numba.njit(**options)(_each_word)


kernel = cast(Kernel, _compile())
