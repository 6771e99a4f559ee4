"""What quantile mechanisms read off a histogram: rank losses, the distance to instability, and the
smooth sensitivity of an order statistic.

Indices: x_(1) ≤ … ≤ x_(n) are the values in order, x_(0) = 0 and x_(n+1) = cells − 1 the ends of
the grid; m is the quantile's index. Of the pairs i ≤ m ≤ j that occur below, those with the
greatest i and the least j for their values suffice; they are kept in `Ends`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.specs.mechanisms.quantiles import QuantileChoice, order_index
from discreet.specs.statistics import Histogram, Integers

WINDOW = 1 << 12  # entries on each side of a quantile that are looked at first


@dataclass(frozen=True, slots=True)
class Runs:
    """Cells of the grid in runs of equal loss:
    where each run starts, how many cells it has, and their loss.
    """

    starts: Integers
    sizes: Integers
    losses: Integers


def rank_losses(
    choice: QuantileChoice, histogram: Histogram, *, before_it: int = 0, rows: int | None = None
) -> Runs:
    """The losses of all cells: an occupied cell is a run of its own,
    and so are the empty cells between two occupied ones.

    A histogram may be a stretch of one of `rows` rows, of which `before_it` lie before it.
    """
    rows = histogram.rows if rows is None else rows
    occupied = len(histogram.places)
    starts, sizes = np.empty((2, 2 * occupied + 1), dtype=np.int64)
    starts[0], starts[1::2] = 0, histogram.places
    starts[2::2] = histogram.places + 1
    sizes[:-1], sizes[-1] = np.diff(starts), histogram.cells - starts[-1]
    # rows before a run; the next entry counts those in it too
    before = np.repeat(histogram.upto + before_it, 2)[:-1]
    upto = np.repeat(histogram.upto + before_it, 2)[1:]
    if choice.rule == "exponential":
        target = choice.a * rows
        losses = np.maximum(choice.b * before - target, target - choice.b * upto)
    else:
        index = order_index(choice.a, choice.b, rows)
        losses = np.maximum(before - (index - 1), index - upto)
    np.maximum(losses, 0, out=losses)
    if occupied and not sizes.all():
        kept = sizes > 0
        return Runs(starts[kept], sizes[kept], losses[kept])
    return Runs(starts, sizes, losses)


def loss_pieces(choice: QuantileChoice, histogram: Any) -> Iterator[Runs]:
    """`rank_losses` of a histogram that comes in pieces, stretch by stretch."""
    start, before = 0, 0
    for places, counts in histogram.pieces():
        stretch = Histogram(int(places[-1]) + 1 - start, places - start, counts)
        runs = rank_losses(choice, stretch, before_it=before, rows=histogram.rows)
        yield Runs(runs.starts + start, runs.sizes, runs.losses)
        start, before = int(places[-1]) + 1, before + stretch.rows
    if start < histogram.cells:
        none = np.zeros(0, dtype=np.int64)
        rest = Histogram(histogram.cells - start, none, none)
        runs = rank_losses(choice, rest, before_it=before, rows=histogram.rows)
        yield Runs(runs.starts + start, runs.sizes, runs.losses)


@dataclass(frozen=True, slots=True)
class Ends:
    """The values at or below x_(m) with their last index up to m, and those at or above it with
    their first index from m on; both in order.
    """

    low: Integers
    low_index: Integers
    high: Integers
    high_index: Integers
    index: int
    rows: int

    @property
    def value(self) -> int:
        """x_(m)."""
        return int(self.low[-1])


def ends(histogram: Histogram, a: int, b: int) -> Ends:
    rows, last = histogram.rows, histogram.cells - 1
    index = order_index(a, b, rows)
    if rows == 0:
        low = low_index = np.zeros(1, dtype=np.int64)
        return Ends(low, low_index, np.array([last]), np.array([1]), index, rows)
    here = int(np.searchsorted(histogram.upto[1:], index, side="left"))
    return _ends(histogram.places, histogram.upto, here, index, histogram)


def _ends(places: Integers, upto: Integers, here: int, index: int, whole: Any) -> Ends:
    """The ends among some places around number `here`, and those of the grid."""
    rows, last = whole.rows, whole.cells - 1
    low, low_index = places[: here + 1], upto[1 : here + 2].copy()
    high, high_index = places[here:], upto[here:-1] + 1
    low_index[-1] = high_index[0] = index
    if low[0] != 0:
        low, low_index = np.concatenate([[0], low]), np.concatenate([[0], low_index])
    if high[-1] != last:
        high, high_index = np.concatenate([high, [last]]), np.concatenate([high_index, [rows + 1]])
    return Ends(low, low_index, high, high_index, index, rows)


def near_ends(histogram: Any, a: int, b: int, reach: Callable[[Ends], int]) -> Ends:
    """The ends that `reach` needs, of a histogram that may be on disk.

    Theorem.  What is left out changes nothing that lies within `reach(ends)` rows of the quantile.
    Proof.    Pairs of the window and of the grid's ends are pairs of the whole. One that is left
              out has an end at least `beyond` rows away, and the window grows until that is more
              than `reach` of what it holds, which further pairs can only make less.
    Checked.  tests/trusted/scale/test_tallies.py::test_quantile_mechanisms_answer_as_in_memory
    """
    if isinstance(histogram, Histogram):
        return ends(histogram, a, b)
    index, entries = order_index(a, b, histogram.rows), WINDOW
    while True:
        places, upto, here, beyond = histogram.window(index, entries)
        around = _ends(places, upto, here, index, histogram)
        if reach(around) < beyond:
            return around
        entries *= 4


def stability_distance(around: Ends, eta: int) -> int:
    """γ = min{j − i − 1 : i ≤ m ≤ j, x_(j) − x_(i) > η},
    n + 1 where no pair is that far apart (reference.md B9).

    Theorem.  Between data sets that differ in one value γ moves by at most 1; if their x_(m) differ
              by more than η, both have γ = 0.
    Proof.    Let one value of x rise, which gives x′ (else exchange them). Then
              x_(l) ≤ x′_(l) ≤ x_(l+1) for all l. A pair (i, j) that is far apart in x is so in x′
              as (i−1, j), and one of x′ is so in x as (i, j+1) (where an index leaves 0 … n+1 the
              end itself serves), at a cost of one more. If x′_(m) − x_(m) > η, then
              x_(m+1) − x_(m) > η and x′_(m) − x′_(m−1) > η: γ = 0 for both.
    Checked.
    tests/claims/test_quantile_mechanisms.py::test_stability_is_brute_force_and_moves_by_one
    """
    first = np.searchsorted(around.high, around.low + eta, side="right")
    reached = first < len(around.high)
    if not reached.any():
        return around.rows + 1
    return int((around.high_index[first[reached]] - around.low_index[reached]).min()) - 1


@dataclass(frozen=True, slots=True)
class Smooth:
    """A smooth sensitivity of width·exp(−beta·steps) cells."""

    width: int
    steps: int


def smooth_sensitivity(around: Ends, beta: Fraction) -> Smooth:
    """S = max{(x_(j) − x_(i))·exp(−β(j − i − 1)) : i ≤ m ≤ j}, or a pair whose value is at least
    exp(−2**-40)·S (reference.md B8).

    Theorem.  |x_(m) − x′_(m)| ≤ min(S, S′) and S ≤ e^β·S′ between data sets that differ in one
              value.
    Proof.    Let one value of x rise: x_(l) ≤ x′_(l) ≤ x_(l+1). x′_(m) − x_(m) is at most
              x_(m+1) − x_(m) and at most x′_(m) − x′_(m−1), which are pairs of x and x′ with
              exponent 0. A pair (i, j) of x is no farther apart than (i−1, j) of x′, one of x′ no
              farther than (i, j+1) of x: one step more.
    Method.   log(v − u) is supermodular, so the best i rises with j (up to what float64 cannot tell
              apart: φ(s, t′) − φ(s′, t′) ≥ φ(s, t) − φ(s′, t) for s ≥ s′, t′ ≥ t, so that an error
              of one row costs no more in others): one pass a level of halving rows. Exponents count
              from the least one that occurs, so βk < 24 for all pairs that matter, and float64 is
              off by less than 2**-42.
    Checked.  tests/claims/test_quantile_mechanisms.py::test_smooth_sensitivity_is_brute_force
    """
    rate = float(beta)
    down, up, least = _rows_away(around)
    apart = _most_rows_apart(around, down, up, least, rate)
    low = slice(int(np.searchsorted(-down, -apart, side="left")), None)
    high = slice(None, int(np.searchsorted(up, apart, side="right")))
    row, column = _best_pair(around.low[low], down[low], around.high[high], up[high] - least, rate)
    width = int(around.high[high][row] - around.low[low][column])
    return Smooth(width, int(up[high][row] + down[low][column]) - 1)


def smooth_reach(around: Ends, beta: Fraction) -> int:
    """How many rows apart the pair of `smooth_sensitivity` can be at most."""
    return _most_rows_apart(around, *_rows_away(around), float(beta))


def _rows_away(around: Ends) -> tuple[Integers, Integers, int]:
    """How far each end is from m, in rows, and the least number of steps of a pair."""
    down, up = around.index - around.low_index, around.high_index - around.index
    least = min(
        int(up[1]) if len(up) > 1 else around.rows + 2,
        int(down[-2]) if len(down) > 1 else around.rows + 2,
        int(up[0]) if up[0] > 0 else around.rows + 2,
    )
    return down, up, least


def _most_rows_apart(around: Ends, down: Integers, up: Integers, least: int, rate: float) -> int:
    """How many rows apart the best pair can be at most:
    beyond it even the whole grid falls below a pair that exists.
    """
    hops = np.append(0, 1 << np.arange(around.rows.bit_length() + 1))
    column = np.minimum(np.searchsorted(-down, -hops, side="left"), len(down) - 1)
    row = np.maximum(np.searchsorted(up, hops, side="right") - 1, 0)
    row, column = (
        np.append(row, [min(1, len(up) - 1), 0, len(up) - 1]),
        np.append(column, [len(down) - 1, max(len(down) - 2, 0), 0]),
    )
    width = (around.high[row] - around.low[column]).astype(np.float64)
    some = width > 0
    found = (np.log(width[some]) - rate * (up[row[some]] + down[column[some]] - least)).max()
    widest = math.log(float(around.high[-1] - around.low[0]))
    beyond = (widest - float(found) + 1) / rate
    return around.rows + 2 if beyond >= around.rows else least + math.ceil(beyond)


def _best_pair(
    low: Integers, low_steps: Integers, high: Integers, high_steps: Integers, rate: float
) -> tuple[int, int]:
    """(row, column) of the greatest log(high − low) − rate·(steps of both); steps are added as
    whole numbers, before they are rounded.
    """
    rows, columns = len(high), len(low)
    # best[r+1]: the best column of row r; the ends bound all of them
    best = np.zeros(rows + 2, dtype=np.int64)
    best[-1] = columns - 1
    value = np.full(rows, -np.inf)
    stride = 1 << rows.bit_length()
    with np.errstate(divide="ignore"):
        while stride:
            row = np.arange(stride, rows + 1, 2 * stride)
            if len(row):
                first, last = best[row - stride], best[np.minimum(row + stride, rows + 1)]
                length = last - first + 1
                start = np.concatenate([[0], np.cumsum(length)[:-1]])
                column = np.arange(int(start[-1] + length[-1])) - np.repeat(start - first, length)
                scores = np.log(np.repeat(high[row - 1], length) - low[column])
                scores -= rate * (np.repeat(high_steps[row - 1], length) + low_steps[column])
                peak = np.maximum.reduceat(scores, start)
                hits = np.flatnonzero(scores >= np.repeat(peak, length))
                best[row] = column[hits[np.searchsorted(hits, start, side="left")]]
                value[row - 1] = peak
            stride >>= 1
    winner = int(np.argmax(value))
    return winner, int(best[winner + 1])
