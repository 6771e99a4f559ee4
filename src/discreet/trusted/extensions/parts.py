"""Random disjoint parts of the data, and a caller's test run on each of them."""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.seclusion import Failed, Secluded, aside, seclude_worker
from discreet.specs.queries.parts import PartsPlan


def balanced_parts(rows: int, parts: int) -> npt.NDArray[np.int64]:
    """A part for each of a public number of rows, sizes as equal as possible: a random permutation
    from the system's generator, data unseen.
    """
    order = np.argsort(_words(rows), kind="stable")
    assigned = np.empty(rows, dtype=np.int64)
    assigned[order] = np.arange(rows, dtype=np.int64) % parts
    return assigned


def independent_parts(units: int, parts: int) -> npt.NDArray[np.int64]:
    """A part for each unit, drawn for itself,
    so that units which come or go leave all others where they are.
    """
    return np.asarray(_words(units) % np.uint64(parts), dtype=np.int64)


def _words(count: int) -> npt.NDArray[np.uint64]:
    return (
        np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
        if count
        else np.zeros(0, dtype=np.uint64)
    )


def rejections(
    plan: PartsPlan, columns: Sequence[npt.NDArray[Any]], assigned: npt.NDArray[np.int64]
) -> int:
    """The number of parts whose p-value is a number of at most the plan's level.

    Every part gets copies of its own. What the test prints or warns is dropped, and its failures
    count as no rejection: the outcome of a part depends on that part alone. There is no time limit,
    because a clock would let one part's rows decide another's outcome. The test runs in a thread of
    its own: an interrupt from the keyboard reaches the main thread, so that one in here is the
    test's own failure.
    """
    order = np.argsort(assigned, kind="stable")
    ends = np.searchsorted(assigned[order], np.arange(plan.parts + 1))

    def count() -> int:
        return sum(
            _rejects(plan, [column[order[low:high]].copy() for column in columns])
            for low, high in itertools.pairwise(ends)
        )

    with Secluded(), ThreadPoolExecutor(1, initializer=seclude_worker) as pool:
        return pool.submit(count).result()


def _rejects(plan: PartsPlan, columns: list[npt.NDArray[Any]]) -> bool:
    try:
        p = aside(lambda: float(plan.test(*columns)))
    except KeyboardInterrupt:
        return False
    return not isinstance(p, Failed) and math.isfinite(p) and p <= plan.level
