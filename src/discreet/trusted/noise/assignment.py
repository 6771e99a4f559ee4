"""Parts of the data that are drawn at random, data unseen: from bits and a public number of rows,
or for each unit by itself.

Theorem.  Given ideal bits, `balanced_parts` is a uniformly random assignment among those whose
          sizes differ by at most one, but for ties of 64-bit words (probability below
          rows²/2**65), and `independent_parts` puts every unit into a part on its own, uniformly
          but for parts/2**64.
Proof.    The order of independent uniform words is a uniformly random permutation where no two are
          equal. A word modulo m takes each value ⌊2**64/m⌋ or ⌈2**64/m⌉ times. Neither sees data,
          so the claim of specs/queries/parts.py, which holds for every assignment, holds for
          both whatever the ties.
Checked.  tests/claims/test_parts.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.trusted.noise.source import Source

Parts = NDArray[np.int64]


def balanced_parts(source: Source, rows: int, parts: int) -> Parts:
    """A part for each of a public number of rows, sizes as equal as possible: row r gets the place,
    modulo the number of parts, of its word among all words.
    """
    order = np.argsort(source.uint64(rows), kind="stable")
    assigned = np.empty(rows, dtype=np.int64)
    assigned[order] = np.arange(rows, dtype=np.int64) % parts
    return assigned


def independent_parts(source: Source, units: int, parts: int) -> Parts:
    """A part for each unit, drawn for itself,
    so that units which come or go leave all others where they are.

    The number of units may be private: nothing but the assignment is made from it.
    """
    return np.asarray(source.uint64(units) % np.uint64(parts), dtype=np.int64)
