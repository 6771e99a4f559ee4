"""The fast path in float64: a constant amount of work a word, and an honest "undecided".

Both kernels (`in_numpy` here, `compiled.py` with numba) write the signed noise of every word that
their enclosure decides and `UNDECIDED` otherwise. They may differ in which words they leave open
(fused multiply-add), never in a decided value.

Theorem.  A decided word gets the value ⌊s·z(t) + c⌋ that all t of its cell share.
Proof.    tables.py: low and high enclose s·z(t) + c for every t of the cell;
          both have the same floor.
Checked.  tests/claims/test_noise_uniforms.py, tests/claims/test_noise_enclosure.py

No step depends on the value: the word selects a row, the rest is arithmetic
(tests/claims/test_noise_constant_work.py). What remains visible in time is the number of undecided
words (about 2**-49·s of them), see docs/theory/exact-noise.md.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.noise.source import Words
from discreet.trusted.noise.tables import DEGREE, FIRST_EXPONENT, FRACTION_BITS, MARGIN

Steps = NDArray[np.int64]

# numba keeps compiled code by the date of compiled.py:
# touch that file when a constant below changes
UNDECIDED = -(2**63)
LARGEST_DECIDED = 2.0**52
TAIL_MASK = 2**63 - 1
LOCAL_BITS = 52 - FRACTION_BITS
LOCAL_MASK = 2**LOCAL_BITS - 1
ONE = 1023 << 52  # the bits of 1.0
CENTRE = 1.0 + 2.0 ** -(FRACTION_BITS + 1)
ROW_SHIFT = ((1023 + FIRST_EXPONENT) << FRACTION_BITS) - 1
_WORTH_COMPILING = 1 << 14  # below this, importing numba costs more than it saves


class Kernel(Protocol):
    """Fills `out` and returns how many words are undecided."""

    def __call__(
        self,
        words: Words,
        table: NDArray[np.float64],
        steps: float,
        offset: float,
        slack: float,
        out: Steps,
    ) -> int: ...


def in_numpy(
    words: Words, table: NDArray[np.float64], steps: float, offset: float, slack: float, out: Steps
) -> int:
    """The kernel in array operations; `table` is one table of tables.py."""
    nearest = (words & np.uint64(TAIL_MASK)).astype(np.int64).astype(np.float64)
    pattern = nearest.view(np.int64)
    rows = np.maximum((pattern >> LOCAL_BITS) - ROW_SHIFT, 0)
    local = ((pattern & LOCAL_MASK) | ONE).view(np.float64) - CENTRE
    picked = table[rows]
    z = picked[:, DEGREE].copy()
    for power in range(DEGREE - 1, -1, -1):
        z *= local
        z += picked[:, power]
    centre = steps * z + offset
    radius = steps * picked[:, MARGIN] + slack
    low, high = np.floor(centre - radius), np.floor(centre + radius)
    decided = (low == high) & (high < LARGEST_DECIDED)
    size = np.where(decided, low, 0.0).astype(np.int64)
    negative = (words >> np.uint64(63)).astype(np.bool_)
    out[:] = np.where(decided, np.where(negative, -size, size), UNDECIDED)
    return int(len(words) - np.count_nonzero(decided))


@cache
def compiled_kernel() -> Kernel | None:
    """The numba kernel, or None where numba is not installed."""
    if importlib.util.find_spec("numba") is None:
        return None
    from discreet.trusted.noise.compiled import kernel

    return kernel


def kernel_for(size: int) -> Kernel:
    """The faster kernel for so many words (the compiled one for any number once it is loaded);
    the choice cannot change a result.
    """
    fast = (
        compiled_kernel()
        if size >= _WORTH_COMPILING or "discreet.trusted.noise.compiled" in sys.modules
        else None
    )
    return fast if fast is not None else in_numpy
