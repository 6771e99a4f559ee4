"""Segments of trade-off curves: what `TradeOff` computes with,
each step rounded so that no curve rises.

A segment (hit, alarm) is a piece of a test's rejection region: it adds `hit` to the power and
`alarm` to the false-alarm rate. The curve of a list of segments is the Neyman–Pearson curve:
steepest hit/alarm first. Hits are rounded up and alarms down, and `certain` is the power that costs
no alarm, rounded up; so every rounded curve lies on or below the exact one.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from discreet.exact import float_down, float_up, readings

MOST_SEGMENTS = 640
_TAIL = 1e-20  # mass at either end that a thinned curve may move to the outside
_GAP = 2.0**-38  # neighbouring slopes closer than this are taken as one (they differ by rounding) …
_SPREAD = 2.0**-36  # … while the whole cluster is no wider than this
_FLOAT = 1 + Fraction(1, 2**52)  # more than the error of a computed slope
_BIN_SLACK = 1 + Fraction(1, 2**48)

Point = tuple[Fraction, Fraction]


class Segments(NamedTuple):
    """Power at no alarm (the lower reading of its float),
    and the segments (floats, as the binary numbers that they are).
    """

    certain: float
    hits: tuple[float, ...]
    alarms: tuple[float, ...]


def rounded(certain: Fraction, pieces: Iterable[tuple[Fraction, Fraction]]) -> Segments:
    """Exact pieces as floats: hits up, alarms down;
    a piece whose alarm is 0 joins what is certain.
    """
    hits, alarms = [], []
    for hit, alarm in pieces:
        if hit > 0:
            low = max(0.0, float_down(alarm))
            if low > 0:
                hits.append(float_up(hit))
                alarms.append(low)
            else:
                certain += hit
    return thinned(
        Segments(min(1.0, float_up(certain)) if certain > 0 else 0.0, tuple(hits), tuple(alarms))
    )


def through(points: Sequence[Point]) -> Segments:
    """The segments of the convex curve through exact points that start at α = 0 and end at
    β = 0.
    """
    return rounded(1 - points[0][1], [(b - d, c - a) for (a, b), (c, d) in pairwise(points)])


def vertices(segments: Segments) -> list[Point]:
    """The exact corners (α, β) from α = 0 to α = 1 of the curve of sorted segments,
    cut off at β = 0.
    """
    alpha, beta = Fraction(0), 1 - readings(segments.certain)[0]
    corners = [(alpha, beta)]
    for hit, alarm in zip(
        map(Fraction, segments.hits), map(Fraction, segments.alarms), strict=True
    ):
        if beta <= 0:
            break
        share = min(Fraction(1), beta / hit)
        alpha, beta = alpha + share * alarm, beta - share * hit
        corners.append((alpha, beta))
    if alpha < 1:
        corners.append((Fraction(1), Fraction(0)))
    return corners


def height(corners: Sequence[Point], alpha: Fraction, *, places: Sequence[Fraction]) -> Fraction:
    """The curve's exact value at α; `places` are the corners' α."""
    right = bisect_right(places, alpha)
    if right == len(corners):
        return corners[-1][1]
    (a, b), (c, d) = corners[right - 1], corners[right]
    return b + (d - b) * (alpha - a) / (c - a)


def lower_hull(points: Iterable[Point]) -> list[Point]:
    """The corners of the greatest convex function on or below the points, by α."""
    best: dict[Fraction, Fraction] = {}
    for alpha, beta in points:
        best[alpha] = min(beta, best.get(alpha, beta))
    hull: list[Point] = []
    for point in sorted(best.items()):
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_down(a: Point, b: Point, c: Point) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def upper_envelope(lines: Iterable[tuple[Fraction, Fraction]]) -> list[Point]:
    """The corners on [0, 1] of max(0, max over (height, slope) of height − slope·α);
    the lines must reach 0 by α = 1.
    """
    best: dict[Fraction, Fraction] = {Fraction(0): Fraction(0)}
    for level, slope in lines:
        best[slope] = max(level, best.get(slope, level))
    stack: list[tuple[Fraction, Fraction]] = []  # (slope, level), steepest first
    crossings: list[Fraction] = []
    for slope, level in sorted(best.items(), reverse=True):
        while stack and (
            level >= stack[-1][1]
            or (crossings and _crossing(stack[-1], (slope, level)) <= crossings[-1])
        ):
            stack.pop()
            if crossings:
                crossings.pop()
        if stack:
            crossings.append(_crossing(stack[-1], (slope, level)))
        stack.append((slope, level))
    corners = [(Fraction(0), stack[0][1])]
    corners += [
        (x, level - slope * x) for x, (slope, level) in zip(crossings, stack[1:], strict=True)
    ]
    return corners


def _crossing(steep: tuple[Fraction, Fraction], flat: tuple[Fraction, Fraction]) -> Fraction:
    return (steep[1] - flat[1]) / (steep[0] - flat[0])


def product(first: Segments, second: Segments) -> Segments:
    """The segments of the product pair: every hit times every hit, every alarm times every alarm.

    Theorem.  The curve is on or below f ⊗ g, and equal to it up to rounding while it has at most
              MOST_SEGMENTS slopes.
    Proof.    f ⊗ g is the trade-off curve of the product of two pairs that have curves f and g
              (Dong–Roth–Su 2022, Definition 3.1, which does not depend on the pairs). Each product
              is correctly rounded, then moved one float outward; `gathered`.
    Checked.  tests/accounting/test_tradeoff.py::test_tensor_products_are_the_enumeration
    """
    one, other = Fraction(first.certain), Fraction(second.certain)
    hits = np.multiply.outer(np.array(first.hits), np.array(second.hits)).ravel()
    alarms = np.multiply.outer(np.array(first.alarms), np.array(second.alarms)).ravel()
    return gathered(
        one + other - one * other,
        np.nextafter(hits, np.inf),
        np.maximum(np.nextafter(alarms, -np.inf), 0.0),
    )


def thinned(segments: Segments) -> Segments:
    """The same curve where it has at most MOST_SEGMENTS segments, else one below it that has."""
    if len(segments.hits) <= MOST_SEGMENTS:
        return segments
    return gathered(Fraction(segments.certain), np.array(segments.hits), np.array(segments.alarms))


def gathered(certain: Fraction, hits: Any, alarms: Any) -> Segments:
    """Many segments as few: those of one slope are added up;
    if too many slopes remain, they are split onto a grid of slopes.

    Theorem.  The curve of the result is on or below the curve of the segments.
    Proof.    A curve is below another iff Σ(hit − t·alarm)₊ + certain is at least as large at every
              t ≥ 0. (i) In a cluster of nearly equal slopes every hit is raised to the steepest
              slope. (ii) A group with slopes in [r, R] becomes two segments of slopes R and r with
              the same totals: these are the supporting lines at the group's ends, extended until
              they meet, and a convex curve lies above its supporting lines. A computed slope is off
              by 2⁻⁵³ at most: clipping the hits to [r, R] changes them by that share, and raising
              the totals before and after by `_BIN_SLACK` outweighs it.
    Checked.  tests/accounting/test_tradeoff.py::test_thinning_never_raises_a_curve
    """
    with np.errstate(over="ignore", divide="ignore"):
        slopes = hits / alarms
    endless = ~np.isfinite(slopes)
    if endless.any():
        certain += Fraction(_sum_up(hits[endless]))
        hits, alarms, slopes = hits[~endless], alarms[~endless], slopes[~endless]
    if not hits.size:
        return Segments(min(1.0, float_up(certain)), (), ())
    order = np.argsort(-slopes, kind="stable")
    hits, alarms, slopes = hits[order], alarms[order], slopes[order]
    starts = np.flatnonzero(np.concatenate(([True], slopes[1:] < slopes[:-1] * (1 - _GAP))))
    ends = np.append(starts[1:], slopes.size)
    if starts.size <= MOST_SEGMENTS and bool(
        (slopes[starts] <= slopes[ends - 1] * (1 + _SPREAD)).all()
    ):
        pieces = []
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            hit, alarm = _sum_up(hits[start:end]), _sum_down(alarms[start:end])
            if end - start > 1:
                hit = max(
                    hit,
                    float_up(
                        _FLOAT * Fraction(slopes[start]) * Fraction(_sum_up(alarms[start:end]))
                    ),
                )
            pieces.append((Fraction(hit), Fraction(alarm)))
        return rounded(certain, pieces)
    extra, pieces = _on_a_grid(hits, alarms, slopes)
    return rounded(certain + extra, pieces)


def _on_a_grid(
    hits: Any, alarms: Any, slopes: Any
) -> tuple[Fraction, list[tuple[Fraction, Fraction]]]:
    """(what becomes certain, pieces on the grid): part (ii) of `gathered`; the slopes fall."""
    top = slopes[min(int(np.searchsorted(np.cumsum(hits), _TAIL)), slopes.size - 1)]
    bottom = slopes[::-1][
        min(int(np.searchsorted(np.cumsum(alarms[::-1]), _TAIL)), slopes.size - 1)
    ]
    high, low = max(math.log(top), math.log(bottom)), min(math.log(top), math.log(bottom))
    grid = np.unique(np.exp(np.linspace(high, low, MOST_SEGMENTS)))[::-1]
    # the group before cut j has slopes above grid[j]
    cuts = np.searchsorted(-slopes, -grid, side="left")
    bounds = [0, *cuts.tolist(), slopes.size]
    rates = [Fraction(slope) for slope in grid.tolist()]
    held = [[Fraction(0), Fraction(0)] for _ in rates]
    certain = Fraction(0)
    for group, (start, end) in enumerate(pairwise(bounds)):
        if start == end:
            continue
        hit, alarm = (
            _BIN_SLACK * Fraction(_sum_up(hits[start:end])),
            Fraction(_sum_down(alarms[start:end])),
        )
        if group == 0:
            certain += max(Fraction(0), hit - rates[0] * alarm)
            _add(held[0], rates[0] * alarm, alarm)
        elif group == len(rates):
            _add(held[-1], hit, min(alarm, hit / rates[-1]))
        else:
            upper, lower = rates[group - 1], rates[group]
            hit = max(hit, lower * alarm)
            steep = (hit - lower * alarm) / (upper - lower)
            if steep >= alarm:
                _add(held[group - 1], hit, alarm)
            else:
                _add(held[group - 1], upper * steep, steep)
                _add(held[group], lower * (alarm - steep), alarm - steep)
    return certain, [(_BIN_SLACK * hit, alarm) for hit, alarm in held]


def _add(slot: list[Fraction], hit: Fraction, alarm: Fraction) -> None:
    slot[0] += hit
    slot[1] += alarm


def _sum_up(values: Any) -> float:
    """The sum, correctly rounded and then moved one float up (one value: itself)."""
    return (
        float(values[0])
        if values.size == 1
        else math.nextafter(math.fsum(values.tolist()), math.inf)
    )


def _sum_down(values: Any) -> float:
    return (
        float(values[0])
        if values.size == 1
        else max(0.0, math.nextafter(math.fsum(values.tolist()), 0.0))
    )
