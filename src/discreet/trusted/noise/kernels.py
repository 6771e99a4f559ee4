"""The fast path in float64: a constant amount of work a word, and an honest "undecided".

Both kernels (`in_numpy`, and `_each_word` compiled by numba) write the signed noise of every word
that their enclosure decides and `UNDECIDED` otherwise. They may differ in which words they leave
open (fused multiply-add), never in a decided value.

Theorem.  A decided word gets the value ⌊s·z(t) + c⌋ that all t of its cell share.
Proof.    tables.py: low and high enclose s·z(t) + c for every t of the cell;
          both have the same floor.
Checked.  tests/claims/test_noise_uniforms.py, tests/claims/test_noise_enclosure.py

Theorem.  The compiled loop reads and writes inside its arrays, whatever the words.
Proof.    `out` is as long as `words`, and the table has all ROWS rows (checked before the call).
          63 bits T round to a float of at most 2**63, whose exponent and leading bits give the
          row ROWS − 1 at most (tables.py); rows below 0 are cut to 0.
Checked.  tests/claims/test_compiled_bounds.py

No step depends on the value: the word selects a row, the rest is arithmetic
(tests/claims/test_noise_constant_work.py). What remains visible in time is the number of undecided
words (about 2**-49·s of them), see docs/theory/exact-noise.md.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.compiled import compiled
from discreet.trusted.noise.source import Words
from discreet.trusted.noise.tables import (
    COLUMNS,
    CONSTANT,
    CUBIC,
    FIRST_EXPONENT,
    FRACTION_BITS,
    LINEAR,
    MARGIN,
    QUADRATIC,
    QUARTIC,
    QUINTIC,
    ROWS,
    SEXTIC,
)

Steps = NDArray[np.int64]
Table = NDArray[np.float64]

UNDECIDED = -(2**63)
LARGEST_DECIDED = 2.0**52
TAIL_MASK = 2**63 - 1
LOCAL_BITS = 52 - FRACTION_BITS
LOCAL_MASK = 2**LOCAL_BITS - 1
ONE = 1023 << 52  # the bits of 1.0
CENTRE = 1.0 + 2.0 ** -(FRACTION_BITS + 1)
ROW_SHIFT = ((1023 + FIRST_EXPONENT) << FRACTION_BITS) - 1
_COMPILED_FROM = 1 << 14  # words; below, importing numba costs more than it saves


class Kernel(Protocol):
    """Fills `out` and returns how many words are undecided; `table` is one table of tables.py."""

    def __call__(
        self, words: Words, table: Table, steps: float, offset: float, slack: float, out: Steps
    ) -> int: ...


def in_numpy(
    words: Words, table: Table, steps: float, offset: float, slack: float, out: Steps
) -> int:
    """The kernel in array operations."""
    nearest = (words & np.uint64(TAIL_MASK)).astype(np.int64).astype(np.float64)
    pattern = nearest.view(np.int64)
    rows = np.maximum((pattern >> LOCAL_BITS) - ROW_SHIFT, 0)
    local = ((pattern & LOCAL_MASK) | ONE).view(np.float64) - CENTRE
    picked = table[rows]
    z = picked[:, SEXTIC].copy()
    for power in (QUINTIC, QUARTIC, CUBIC, QUADRATIC, LINEAR, CONSTANT):
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


def _each_word(words: Any, table: Any, steps: float, offset: float, slack: float, out: Any) -> int:
    """`in_numpy` word by word; compiled, never called as it is."""
    undecided = 0
    for i in range(words.size):
        nearest = np.float64(np.int64(words[i] & np.uint64(TAIL_MASK)))
        pattern = nearest.view(np.int64)
        row: Any = max((pattern >> LOCAL_BITS) - ROW_SHIFT, 0)
        local = np.int64((pattern & LOCAL_MASK) | ONE).view(np.float64) - CENTRE
        z = table[row, SEXTIC]
        z = z * local + table[row, QUINTIC]
        z = z * local + table[row, QUARTIC]
        z = z * local + table[row, CUBIC]
        z = z * local + table[row, QUADRATIC]
        z = z * local + table[row, LINEAR]
        z = z * local + table[row, CONSTANT]
        centre = steps * z + offset
        radius = steps * table[row, MARGIN] + slack
        low = np.floor(centre - radius)
        high = np.floor(centre + radius)
        decided = (low == high) & (high < LARGEST_DECIDED)
        sign = 1 - 2 * np.int64(words[i] >> np.uint64(63))
        out[i] = sign * np.int64(low) if decided else UNDECIDED
        undecided += not decided
    return undecided


@cache
def compiled_kernel() -> Kernel | None:
    """The compiled kernel, or None where numba cannot be loaded."""
    loop = compiled(_each_word, nogil=True, fastmath={"contract"}, boundscheck=False)
    if loop is None:
        return None

    def kernel(
        words: Words, table: Table, steps: float, offset: float, slack: float, out: Steps
    ) -> int:
        types = words.dtype == np.uint64 and out.dtype == np.int64 and table.dtype == np.float64
        sizes = words.ndim == 1 and out.shape == words.shape and table.shape == (ROWS, COLUMNS)
        if not (types and sizes):
            raise IndexError("the sizes of a compiled draw do not fit together")
        return int(loop(words, table, steps, offset, slack, out))

    return kernel


def kernel_for(size: int) -> Kernel:
    """The faster kernel for so many words (the compiled one for any number once it is loaded);
    the choice cannot change a result.
    """
    if size >= _COMPILED_FROM or compiled_kernel.cache_info().currsize:
        return compiled_kernel() or in_numpy
    return in_numpy
