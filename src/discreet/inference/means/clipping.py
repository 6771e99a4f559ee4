"""Rows outside a range that was found privately, and what leaving them there takes from a mean:
their share by released counts, their distance by fitted tails (reference.md F4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from discreet.search.tails import Tail, posterior

# standard deviations of what is left out that a population's interval allows for beside the
# expected loss
CAUTION = 1.5
MISFIT = 0.25  # a fitted loss may be wrong by this part of itself
HEAVIER = 4.0  # rows beyond all counted places scatter more than the fitted tails say
DISTRUST = 0.35  # from this share of possibly clipped rows on no tail is fitted


@dataclass(frozen=True)
class LeftOut:
    """Rows outside the range on one side, in rows and in what they take from the mean:
    (estimate, low, high) and (mean, variance).
    """

    rows: tuple[float, float, float]
    deviation: float
    loss: float
    variance: float
    scatter: float  # variance of what a sample loses about its expectation
    worst: float  # added where no tail can be fitted


def left_out(tail: Tail, distance: float, step: float, limit: float, level: float) -> LeftOut:
    """What lies beyond a distance; `step` is the size of one unit of distance and `limit` how far
    beyond it values can be.

    *Method*: rows by the fitted tails, within the bounds that single counts give whatever the tail
    (further in at most, further out at least).
    """
    rows = max(tail.rows, 1.0)
    low, high = _counted(tail, distance, rows, float(ndtri(0.5 + level / 2)) + 0.5)
    known = _fitted(tail, distance) if tail.extent > 0 and tail.seen else _averaged(tail, distance)
    possible = min(known.rows + known.deviation if tail.seen else high, high)
    worst = high / rows * max(limit, 0.0) if possible > DISTRUST * rows else 0.0
    # nor where nearly all rows are one value, so that no spread is there that a tail continues,
    # or where the counts contradict the fit; another sample may have more such rows
    if tail.extent <= 0 or low > known.rows + 2 * known.deviation:
        worst = min((high + 2 * high**0.5) / rows, 1.0) * max(limit, 0.0)
    return LeftOut(
        (min(max(known.rows, low), high), low, high),
        known.deviation,
        known.loss * step,
        (known.variance + (MISFIT * known.loss) ** 2) * step**2,
        HEAVIER * known.square * step**2 / rows,
        worst,
    )


def _counted(tail: Tail, distance: float, rows: float, quantile: float) -> tuple[float, float]:
    """The fewest and the most rows beyond a distance that single counts allow."""
    highest = min(
        (seen.rows + quantile * seen.deviation for seen in tail.seen if seen.distance <= distance),
        default=tail.beyond + quantile * rows / 20,
    )
    lowest = max(
        (seen.rows - quantile * seen.deviation for seen in tail.seen if seen.distance >= distance),
        default=0.0,
    )
    high = min(max(highest, 0.0), rows)
    return min(max(lowest, 0.0), high), high


@dataclass(frozen=True)
class _Beyond:
    """Rows beyond a distance and their standard deviation; the mean that they lose, its variance,
    and the mean square of a row's loss, in units of the grid.
    """

    rows: float
    deviation: float
    loss: float = 0.0
    variance: float = 0.0
    square: float = 0.0


def _fitted(tail: Tail, distance: float) -> _Beyond:
    """By the tails that fit the counts, each with its weight."""
    fitted = posterior(tail)
    beyond = fitted.beyond(distance)
    lost, squares = (each[0] for each in fitted.excess(np.array([distance])))
    rows, mean = float(beyond @ fitted.weight), float(lost @ fitted.weight)
    return _Beyond(
        rows,
        max(float(beyond**2 @ fitted.weight) - rows**2, 0.0) ** 0.5,
        mean,
        max(float(lost**2 @ fitted.weight) - mean**2, 0.0),
        float(squares @ fitted.weight),
    )


def _averaged(tail: Tail, distance: float) -> _Beyond:
    """By the counts further in alone, where there is no tail to fit."""
    inner = [seen for seen in tail.seen if seen.distance <= distance]
    if not inner:
        return _Beyond(0.0, 0.0)
    weights = np.array([seen.deviation**-2.0 for seen in inner])
    rows = float(np.average([seen.rows for seen in inner], weights=weights))
    return _Beyond(rows, float(weights.sum() ** -0.5))


def widened(below: LeftOut, above: LeftOut, level: float, target: str) -> tuple[float, float]:
    """What is added to the lower and to the upper end of the clipped mean's interval,
    so that it holds for the mean itself.

    *Method*: the expected loss of both sides, and for its own uncertainty 1.5 standard deviations
    where sampling error is in the interval as well (the two are independent, and the sum of
    half-widths is more than their combination). For the data set itself as many as the level asks
    for, of the loss of this sample, which scatters about the expected one.
    """
    shift, variance = above.loss - below.loss, above.variance + below.variance
    own = target == "data"
    spread = (
        float(ndtri(0.5 + level / 2)) * np.sqrt(variance + above.scatter + below.scatter)
        if own
        else CAUTION * np.sqrt(variance)
    )
    return float(min(shift - spread, 0.0) - below.worst), float(
        max(shift + spread, 0.0) + above.worst
    )
