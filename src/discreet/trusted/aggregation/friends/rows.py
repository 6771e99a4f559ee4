"""Who is whose friend, and sums of clipped points, in exact whole numbers.

A squared distance is |x|² + |y|² − 2x·y, with the products of many rows at once. All codes are
whole and 4·Σ(largest code)² < 2**52 (specs/aggregation/friends.py), so that every partial sum is a
whole number that float64 holds, whatever the order in which a product adds (docs/theory/rows.md):
the friends of a row do not depend on where it stands.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.aggregation.friends import (
    FINE_BITS,
    MOST_POINTS,
    ClippedPlan,
    FriendlyCore,
    FriendsPlan,
)
from discreet.specs.mechanisms.friendly import WEIGHT_BITS
from discreet.trusted.engines.engine import Engine

Integers = npt.NDArray[np.int64]
BLOCK = 1 << 21  # distances that are held at once
SHRINK_BITS = 20


def friendly_core(engine: Engine, plan: FriendsPlan) -> FriendlyCore:
    """The total weight and the weighted sum of the rows that hold values."""
    points, rows = _points(engine, plan)
    shape = len(points), plan.centres, len(plan.factors) // plan.centres
    return core_of(points.reshape(shape), rows, plan.radius)


def _points(engine: Engine, plan: FriendsPlan | ClippedPlan) -> tuple[Integers, int]:
    """The codes of the rows that hold values, and the number of all rows."""
    held = engine.whole()
    with held.lock:
        codes = [held.factor_codes(factor).astype(np.int64) for factor in plan.factors]
        chosen = held.cell_index(plan.keys) == 0
    return np.column_stack(codes)[chosen], len(chosen)


def core_of(points: Integers, rows: int, radius: int) -> FriendlyCore:
    """Of points of shape (rows that hold values, centres, coordinates)."""
    if rows > MOST_POINTS:  # a public number; sums of 2**16 · 2**25 · 2**16 fit in 64 bits
        raise ValueError("more rows than distances of all pairs are looked at")
    weights = whole_weights(friend_counts(points, radius), rows)
    kept = weights > 0
    total, sums = int(weights.sum()), weights[kept] @ labelled(points[kept])
    return FriendlyCore(
        (total << WEIGHT_BITS) // max(rows - 1, 1), total, tuple(int(value) for value in sums)
    )


def whole_weights(friends: Integers, rows: int) -> Integers:
    """v = clip(2c − n − 1, 0, n − 1) of c friends among n rows.

    Theorem.  A row that goes and another that comes change Σv by at most 3(n − 1); whichever rows
              have weight in either data set share a friend that stands in both.
    Proof.    docs/theory/aggregation.md, Theorem 2.
    Checked.  tests/claims/test_friendly.py::test_weights_move_by_three_and_survivors_are_friendly
    """
    weights: Integers = np.clip(2 * friends - rows - 1, 0, max(rows - 1, 0))
    return weights


def friend_counts(points: Integers, radius: int) -> Integers:
    """How many rows each row is a friend of, itself included where it is one."""
    rows, centres, width = points.shape
    flat = points.reshape(rows * centres, width).astype(np.float64)
    lengths = (flat * flat).sum(axis=1)
    apart = separated(points, radius)
    counts, step = np.zeros(rows, dtype=np.int64), max(1, BLOCK // max(rows * centres**2, 1))
    for first in range(0, rows, step):
        some = slice(first * centres, (first + step) * centres)
        near = lengths[some, None] + lengths - 2 * (flat[some] @ flat.T) <= radius**2
        friends = near.reshape(-1, centres, rows, centres).any(axis=3).all(axis=1)
        counts[first : first + step] = np.count_nonzero(friends & apart, axis=1)
    return counts * apart


def separated(points: Integers, radius: int) -> npt.NDArray[np.bool_]:
    """Whether all centres of a row lie more than 6·radius apart; yes for one centre."""
    apart = np.ones(len(points), dtype=bool)
    for one in range(points.shape[1]):
        for other in range(one):
            gap = points[:, one] - points[:, other]
            apart &= (gap * gap).sum(axis=1) > 36 * radius**2
    return apart


def labelled(points: Integers) -> Integers:
    """The rows with weight, flat, their centres in the order of those of the first row that they
    lie nearest to: within twice the radius, as all others lie further than four radii away.
    """
    if not len(points):
        return points.reshape(0, math.prod(points.shape[1:]))
    rows = np.arange(len(points))
    nearest = (((points - centre) ** 2).sum(axis=2).argmin(axis=1) for centre in points[0])
    return np.concatenate([points[rows, place] for place in nearest], axis=1)


def clipped_sums(engine: Engine, plan: ClippedPlan) -> list[int]:
    """Σy, Σ⌊y²/2ρ⌋ in units of 2**-FINE_BITS, and the number of rows that hold values."""
    points, _ = _points(engine, plan)
    clipped = clip(points - np.array(plan.centre, dtype=np.int64), plan.radius)
    whole, rest = np.divmod(clipped * clipped, 2 * plan.radius)  # below 2**52
    squares = (whole << FINE_BITS) + (rest << FINE_BITS) // (2 * plan.radius)
    sums = (*(clipped << FINE_BITS).sum(axis=0), *squares.sum(axis=0), len(points))
    return [int(value) for value in sums]


def clip(points: Integers, radius: int) -> Integers:
    """Every row shortened to a length of at most `radius`, towards 0, by itself.

    Theorem.  Each row is at most `radius` long, and does not depend on the others.
    Proof.    A row of squared length N > ρ² is multiplied by t/2**20, t = ⌊√(ρ²·2**40/N)⌋ in whole
              numbers, so that its length is at most √N·t/2**20 ≤ ρ, and cut towards 0.
    Checked.  tests/claims/test_friendly.py::test_clipped_rows_are_short_and_alone
    """
    lengths = (points * points).sum(axis=1)
    clipped, square = points.copy(), radius**2
    for row in np.flatnonzero(lengths > square):
        shrink = math.isqrt((square << 2 * SHRINK_BITS) // int(lengths[row]))
        one: Any = points[row]
        clipped[row] = np.sign(one) * (np.abs(one) * shrink >> SHRINK_BITS)
    return clipped
