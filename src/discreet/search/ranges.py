"""How a range is looked for with noisy counts, as two conversations:
first where the bulk lies, then how far the tails reach.

A conversation is a generator. It yields (place, budget units) and is sent the noisy number of rows
in cells before that place; what it returns is what it found. It sees answers alone, so it needs no
proof: a bad one wastes budget and does no other harm (specs/mechanisms/search.py). Searches run it
question by question; whoever reads a release replays it from the answers (`replayed`).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from discreet.search.policy import Count
from discreet.search.tails import TAIL_SHARE, Seen, Tail, best_distances, choices, ndtr, posterior

# shares of the budget, and rows aimed at, in multiples of `aim`
ROUNDS = ((1.0, 4.0), (1.0, 2.0), (1.0, 1.3), (1.5, 1.0), (2.0, 1.0), (2.0, 1.0))
# rows beyond the range that are aimed at,
# in standard deviations of a count that has all of the budget
AIM = 3.6
CENTRE_SHARE, EXTENT_SHARE = 0.6, 0.4  # of the first conversation's budget
MOST_QUESTIONS = 120  # about the centre; half as many about each extent
Found = TypeVar("Found")


Talk = Generator[tuple[int, int], Count, Found]


@dataclass(frozen=True, slots=True)
class Purse:
    """The grid and the budget of a search: `deviation` is the noise of an answer for one unit,
    by the law of the noise.
    """

    cells: int
    units: int
    deviation: float
    law: str

    def share(self, deviation: float, most: float) -> int:
        """Units for an answer with at most this noise,
        and no more than a part `most` of all units.
        """
        ratio = min(self.deviation / max(deviation, 1e-9), 1e9)
        wished = math.ceil(ratio**2 if self.law == "gaussian" else ratio)
        return max(1, min(wished, int(most * self.units)))

    @property
    def least(self) -> float:
        """The noise of one answer that has all of the budget."""
        return self.deviation / (math.sqrt(self.units) if self.law == "gaussian" else self.units)


@dataclass(frozen=True, slots=True)
class Start:
    """One side as the first conversation found it: its centre, the rows beyond it, the distance of
    the outermost rows, and all counts.
    """

    place: int
    beyond: float
    extent: float
    seen: tuple[Seen, ...] = ()


@dataclass(frozen=True, slots=True)
class Bulk:
    """Where the rows are: their number and the two sides."""

    rows: float
    left: Start
    right: Start


@dataclass(frozen=True, slots=True)
class Ends:
    """A range to clip to, as places of the grid,
    and the two tails with everything that was counted.
    """

    low: int
    high: int
    left: Tail
    right: Tail


@dataclass
class StepDensity:
    """A point that is only known by noisy comparisons: a density that is flat between the points
    asked about.
    """

    points: list[float]
    masses: list[float] = field(default_factory=lambda: [1.0])

    def quantile(self, share: float) -> float:
        below = 0.0
        for low, high, mass in zip(self.points, self.points[1:], self.masses, strict=False):
            if below + mass >= share and mass > 0:
                return low + (high - low) * min(max((share - below) / mass, 0.0), 1.0)
            below += mass
        return self.points[-1]

    def learn(self, point: float, odds: float) -> None:
        """The point lies above `point` with these odds, by one more answer."""
        at = int(np.searchsorted(self.points, point))
        if not (at < len(self.points) and self.points[at] == point):
            at = min(max(at, 1), len(self.points) - 1)
            part = (point - self.points[at - 1]) / (self.points[at] - self.points[at - 1])
            mass = self.masses[at - 1]
            self.points.insert(at, point)
            self.masses[at - 1 : at] = [mass * part, mass * (1 - part)]
        self.masses = [
            mass * (odds if low >= point else 1.0)
            for low, mass in zip(self.points, self.masses, strict=False)
        ]
        total = sum(self.masses)
        self.masses = [mass / total for mass in self.masses]


def _odds(count: float, cut: float, top: float, deviation: float) -> float:
    """How much likelier a noisy count is for counts spread evenly over cut … top than over
    0 … cut.
    """
    ends = ndtr((np.array([0.0, cut, top]) - count) / deviation)
    above, below = (ends[2] - ends[1]) / max(top - cut, 1e-9), (ends[1] - ends[0]) / max(cut, 1e-9)
    floor = 1e-4 / max(top, 1e-9)
    return float((above + floor) / (below + floor))


def find_bulk(purse: Purse, rows: float | None) -> Talk[Bulk]:
    """Where the middle of the rows lies, and roughly how far the rows reach on both sides of it;
    `rows` is their number where it is public.
    """
    if rows is None:
        answer = yield purse.cells, purse.share(0.0, 0.08)
        rows = max(answer.value, 1.0)
    rows = max(float(rows), 1.0)
    left, right, certain = yield from _centre(purse, rows)
    sides = []
    for place, sign in ((left, -1), (right, 1)):
        answer = yield place, purse.share(rows / 40, 0.05 if certain else 0.1)
        beyond = min(max(answer.value if sign < 0 else rows - answer.value, 0.5), rows)
        limit = place if sign < 0 else purse.cells - place
        empty = beyond < 2 * answer.deviation or limit < 1
        sides.append(
            _Side(
                place, sign, beyond, None if empty else StepDensity([0.0, math.log2(limit + 1.0)])
            )
        )
    yield from _extents(purse, rows, sides)
    starts = [Start(side.place, side.beyond, side.middle, tuple(side.seen)) for side in sides]
    return Bulk(rows, starts[0], starts[1])


def _centre(purse: Purse, rows: float) -> Talk[tuple[int, int, bool]]:
    """A place with a quarter of the rows or more on both sides;
    or the two ends of one cell that holds half of them.
    """
    place_of, paid, asked = StepDensity([0.0, float(purse.cells)]), 0, 0
    while paid < CENTRE_SHARE * purse.units and asked < MOST_QUESTIONS:
        asked += 1
        place = min(max(round(place_of.quantile(0.5)), 1), max(purse.cells - 1, 1))
        if place_of.quantile(0.97) - place_of.quantile(0.03) < 1.0 or purse.cells < 2:
            break
        answer = yield place, purse.share(rows / 10, CENTRE_SHARE / 40)
        paid += answer.share
        if rows / 4 < answer.value < 3 * rows / 4:
            answer = yield place, purse.share(rows / 16, 0.1)
            paid += answer.share
            if rows / 4 < answer.value < 3 * rows / 4:
                return place, place, True
        place_of.learn(float(place), 1 / _odds(answer.value, rows / 2, rows, answer.deviation))
    middle = place_of.quantile(0.5)
    if place_of.quantile(0.97) - place_of.quantile(0.03) > 1.0:
        return int(middle), int(middle), False
    cell = min(int(middle), max(purse.cells - 1, 0))
    return cell, cell + 1, False


@dataclass
class _Side:
    place: int
    sign: int
    beyond: float
    logarithm: StepDensity | None  # of the extent
    seen: list[Seen] = field(default_factory=list)
    paid: int = 0

    @property
    def middle(self) -> float:
        return 0.0 if self.logarithm is None else 2 ** self.logarithm.quantile(0.5)

    @property
    def spread(self) -> float:
        return (
            0.0
            if self.logarithm is None
            else 2 ** self.logarithm.quantile(0.9) - 2 ** self.logarithm.quantile(0.1)
        )


def _extents(purse: Purse, rows: float, sides: Sequence[_Side]) -> Talk[None]:
    """Bisects the logarithm of the distance that a small share of the rows lies beyond, until it is
    known to a third of the whole width.
    """

    def wants(side: _Side) -> bool:
        return (
            side.logarithm is not None
            and side.paid < EXTENT_SHARE / 2 * purse.units
            and len(side.seen) < MOST_QUESTIONS / 2
            and side.spread > max(0.35 * (sides[0].middle + sides[1].middle), 1.0)
        )

    while any(wants(side) for side in sides):
        for side in sides:
            if side.logarithm is None or not wants(side):
                continue
            far = float(np.clip(TAIL_SHARE * rows, 1e-3, side.beyond / 3))
            logarithm, wide = (
                side.logarithm.quantile(0.5),
                side.logarithm.quantile(0.9) - side.logarithm.quantile(0.1) > 2.5,
            )
            distance = max(1, round(2**logarithm))
            answer = yield (
                side.place + side.sign * distance,
                purse.share(
                    rows / 20 if wide else far / 3, EXTENT_SHARE / 20 if wide else EXTENT_SHARE / 8
                ),
            )
            side.paid += answer.share
            outside = answer.value if side.sign < 0 else rows - answer.value
            side.seen.append(Seen(float(distance), outside, answer.deviation))
            side.logarithm.learn(logarithm, _odds(outside, far, side.beyond, answer.deviation))


def find_ends(purse: Purse, bulk: Bulk, noise: float) -> Talk[Ends]:
    """How far the tails reach, and where a mean whose noise is `noise` times the width of its range
    (in the sum) is best clipped.
    """
    aim = min(max(AIM * purse.least, 2.0), max(bulk.rows / 40, 1.0))
    tails = [
        Tail(
            bulk.rows,
            side.beyond,
            side.extent,
            other.extent,
            max(
                min(TAIL_SHARE * bulk.rows, other.beyond / 3) if other.extent else other.beyond, 0.5
            ),
            aim,
            side.seen,
        )
        for side, other in ((bulk.left, bulk.right), (bulk.right, bulk.left))
    ]
    starts, limits = (bulk.left, bulk.right), (bulk.left.place, purse.cells - bulk.right.place)
    total = 2 * sum(share for share, _ in ROUNDS)
    for share, multiple in ROUNDS:
        for side, sign in ((0, -1), (1, 1)):
            distance = 0
            if tails[side].extent > 0:
                distance = int(
                    min(max(round(_next_distance(tails[side], multiple)), 0), limits[side])
                )
            answer = yield (
                starts[side].place + sign * distance,
                max(1, int(share / total * purse.units)),
            )
            outside = answer.value if sign < 0 else bulk.rows - answer.value
            tails[side] = replace(
                tails[side],
                seen=(*tails[side].seen, Seen(float(distance), outside, answer.deviation)),
            )
    low, high = best_distances(
        [choices(tail, float(limit)) for tail, limit in zip(tails, limits, strict=True)],
        bulk.rows,
        noise,
    )
    return Ends(int(bulk.left.place - low), int(bulk.right.place + high), tails[0], tails[1])


def _next_distance(tail: Tail, multiple: float) -> float:
    """The middle of what is still possible for the distance in question, or,
    once that is known well, a little beyond it.
    """
    fitted = posterior(tail)
    values = fitted.distances(min(tail.target * multiple, tail.far / 2))
    low, middle, high = (fitted.quantile(values, share) for share in (0.1, 0.5, 0.9))
    return middle if high - low > 0.06 * (middle + tail.offset) else fitted.quantile(values, 0.8)


def replayed(talk: Talk[Found], answers: Sequence[Count]) -> Found | None:
    """What a conversation finds with these answers;
    None where they are too few, or so wild that no arithmetic bears them.
    """
    with np.errstate(all="ignore"):
        try:
            next(talk)
            for answer in answers:
                talk.send(answer)
        except StopIteration as end:
            found: Found = end.value
            return found
        except (ArithmeticError, ValueError, IndexError):
            return None
    return None


def nothing_found(cells: int, rows: float) -> Bulk:
    """The bulk where a search came to nothing: it may be anywhere on the grid."""
    middle = cells // 2
    return Bulk(
        rows,
        Start(middle, rows / 2, float(max(middle, 1))),
        Start(middle, rows / 2, float(max(cells - middle, 1))),
    )


def all_of_it(cells: int, bulk: Bulk) -> Ends:
    """The ends where a search came to nothing: the whole grid."""
    tails = [
        Tail(bulk.rows, side.beyond, 0.0, 0.0, 0.5, 1.0, ()) for side in (bulk.left, bulk.right)
    ]
    return Ends(0, cells, tails[0], tails[1])


def start_to_dict(start: Start) -> dict[str, Any]:
    return {
        "place": start.place,
        "beyond": start.beyond,
        "reach": start.extent,
        "seen": [[seen.distance, seen.rows, seen.deviation] for seen in start.seen],
    }


def start_from_dict(record: dict[str, Any]) -> Start:
    return Start(
        record["place"],
        record["beyond"],
        record["reach"],
        tuple(Seen(*seen) for seen in record["seen"]),
    )
