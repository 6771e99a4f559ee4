"""The fast path compiled by numba: `kernels.in_numpy` word by word.

Imported only when a draw is long enough to pay for it.

Theorem.  The compiled loop reads and writes inside its arrays, whatever the words.
Proof.    `out` is as long as `words`, and the table has all ROWS rows (checked before the call).
          63 bits T round to a float of at most 2**63, whose exponent and leading bits give the
          row ROWS − 1 at most (tables.py); rows below 0 are cut to 0.
Checked.  tests/claims/test_compiled_bounds.py
"""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
from numpy.typing import NDArray

from discreet.trusted.noise.kernels import (
    CENTRE,
    LARGEST_DECIDED,
    LOCAL_BITS,
    LOCAL_MASK,
    ONE,
    ROW_SHIFT,
    TAIL_MASK,
    UNDECIDED,
    Kernel,
    Steps,
)
from discreet.trusted.noise.source import Words
from discreet.trusted.noise.tables import MARGIN, ROWS


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


_loop = cast(Kernel, _compile())


def kernel(
    words: Words, table: NDArray[np.float64], steps: float, offset: float, slack: float, out: Steps
) -> int:
    """The compiled loop, called only with arrays that fit it."""
    types = words.dtype == np.uint64 and out.dtype == np.int64 and table.dtype == np.float64
    sizes = words.ndim == 1 and out.shape == words.shape and table.shape == (ROWS, MARGIN + 1)
    if not (types and sizes):
        raise IndexError("the sizes of a compiled draw do not fit together")
    return _loop(words, table, steps, offset, slack, out)
