"""The fast path does the same work whatever the value:
words deep in the tail cost what words near ½ cost.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from discreet.testing import SeededSource
from discreet.trusted.noise.kernels import compiled_kernel, in_numpy
from discreet.trusted.noise.tables import Tail, tables

REPEATS = 150
TOLERANCE = 1.5
COUNT = 1 << 13


def word_sets() -> dict[str, np.ndarray]:
    random = SeededSource("work").uint64(COUNT)
    sign, tail = random & np.uint64(1 << 63), random & np.uint64(2**63 - 1)
    return {
        "random": random,
        "near a half": sign | (tail | np.uint64(0x7FFF << 48)),
        "near 2**-40": sign | (tail >> np.uint64(39)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("tail", list(Tail))
@pytest.mark.parametrize("kernel", [in_numpy, compiled_kernel()], ids=["numpy", "numba"])
def test_time_does_not_depend_on_the_value(kernel, tail):
    """Best of many short interleaved runs, in this thread's own time:
    what the code needs, free of other processes.
    """
    sets, out = word_sets(), np.empty(COUNT, np.int64)
    best = dict.fromkeys(sets, float("inf"))
    for _ in range(REPEATS):
        for name, words in sets.items():
            start = time.thread_time()
            kernel(words, tables()[tail], 1234.5, 0.5, 2.0**-51, out)
            best[name] = min(best[name], time.thread_time() - start)
    assert max(best.values()) < TOLERANCE * min(best.values()), best
