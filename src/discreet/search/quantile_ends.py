"""Where to ask for the two ends of a quantile's interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, stored_fraction
from discreet.search.policy import Count, History

# The reasons for these numbers are in docs/theory/quantile-intervals.md.
# an answer so many deviations from the target says on which side its place lies:
# a final one, a cheap one
SURE, CLEAR = 1.2, 2.5
# answers with a deviation up to so many times the least are final ones,
# the others were meant to find the place
FINE = 2.5
# of the noise variance of a final answer in the test, where noise is small against sampling
WEIGHT = 0.12
# of Laplace noise: its 2.5 % tail is 1.08 times as far as that of a normal law of the same variance
LAPLACE_WEIGHT = 1.2
# what the test adds to the normal quantile for answers that were meant to find the place (twice
# that for Laplace noise, whose tails are longer)
COARSE = 1.0
FIRST = 2.5  # a new place is asked with a deviation of the bracket's rows over this
# new places are aimed so many of their deviations beyond the target, so that most pass the test
AIM = 0.75
FINAL = 0.5  # the share of a side's budget that the final answer is meant to get
# a place that passes the test is good enough if its answer is no further beyond the target,
# in deviations of the final answer
ENOUGH = 0.3
NEAR = 0.02  # or no further than this share of the sampling error's half-width
LEAST = 0.02  # with less than this share of a side's budget left nothing is asked
# no question gets less than one part in so many of a side's budget:
# nearly free, and most answers are then clear at once
SMALLEST = 128
MOST = 80  # questions
LARGEST = 1 << 20  # of weights and of the rows of a unit


@dataclass(frozen=True, slots=True)
class Block:
    """All answers at one place."""

    place: int
    value: float
    variance: float


def pooled(counts: Iterable[Count], cells: int = 0) -> list[Block]:
    """The answers at one place averaged (inverse variances as weights), in the order of places;
    with `cells` mirrored: place → cells − place, value → −value.
    """
    sums: dict[int, tuple[float, float]] = {}
    for count in counts:
        weight = count.deviation**-2
        value, total = sums.get(count.place, (0.0, 0.0))
        sums[count.place] = (value + weight * count.value, total + weight)
    ordered = sorted(sums.items(), reverse=cells > 0)
    if cells:
        return [
            Block(cells - place, -value / total, 1 / total) for place, (value, total) in ordered
        ]
    return [Block(place, value / total, 1 / total) for place, (value, total) in ordered]


def _sure(block: Block, final: float) -> float:
    """How far from the target an answer must lie to be taken for it:
    cheap answers are asked again until they are clear.
    """
    deviation = math.sqrt(block.variance)
    return deviation * min(SURE + math.log(max(deviation / final, 1.0)), CLEAR)


def _tidy(share: int) -> int:
    """Four leading bits of a share: few different ones occur,
    so that their noise is worked out once.
    """
    spare = max(share.bit_length() - 4, 0)
    return share >> spare << spare


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two places with the end of the interval between them, and the statistic there; `closed` once
    an answer lies beyond the target.
    """

    low: int
    low_value: float
    high: int
    high_value: float
    closed: bool


@dataclass(frozen=True, slots=True)
class _Aim:
    """What an end is found by: the sampling variance, the deviation of a final answer, and the
    value that it should have.
    """

    sampling: float
    final: float
    target: float


def _asked_again(unclear: list[Block], final: float) -> tuple[int, float]:
    """The best known of the places that are on neither side, and the deviation that another answer
    must have to halve what is unclear.
    """
    best = min(unclear, key=lambda block: block.variance)
    wanted = max(final, math.sqrt(best.variance) / 2)
    return best.place, 1 / math.sqrt(max(wanted**-2 - 1 / best.variance, 0.1 * wanted**-2))


def _new_place(bracket: Bracket, anchor: int, target: float, final: float) -> tuple[int, float]:
    """A place within the bracket, by interpolation between its ends, and the deviation to ask
    it with.
    """
    low, high = bracket.low, bracket.high
    deviation = max(final, (target - bracket.low_value) / FIRST)
    aim = target - AIM * deviation
    if bracket.closed:
        width = max(bracket.high_value - bracket.low_value, 1e-9)
        place = low + round((high - low) * min(max((aim - bracket.low_value) / width, 0.2), 0.8))
    else:
        place = anchor - round((anchor - low) * min(max(aim / bracket.low_value, 0.25), 0.8))
    return min(max(place, low + 1), high - 1), deviation


@plain.kept()
@dataclass(frozen=True, slots=True)
class QuantileEnds:
    """Finds the places where the centred count leaves the range that chance explains at `level`,
    first below the estimate, then above it.

    `rows` is the number of rows where it is public, else None and asked for first; `cluster` the
    most rows of one unit, `law` that of the search's noise. Before the search the estimate was
    released: it is the last of the known integers.
    """

    below: int
    above: int
    level: Fraction
    rows: int | None
    cluster: int = 1
    law: str = "gaussian"
    kind: ClassVar[str] = "quantile ends"

    def __post_init__(self) -> None:
        whole = all(
            type(number) is int
            for number in (
                self.below,
                self.above,
                self.cluster,
                0 if self.rows is None else self.rows,
            )
        )
        if (
            not whole
            or not isinstance(self.level, Fraction)
            or not (
                0 <= self.below <= LARGEST
                and 0 <= self.above <= LARGEST
                and self.below + self.above
                and 0 < self.level < 1
                and 1 <= self.cluster <= LARGEST
                and self.law in ("gaussian", "laplace")
                and (self.rows is None or 0 <= self.rows < 1 << 62)
            )
        ):
            raise InvalidParameter(
                "QuantileEnds",
                "weights, level, rows, cluster or law outside their range",
                "they say where the ends of the interval lie",
                "build it with dp.quantile",
            )

    def next(self, history: History) -> tuple[int, int] | None:
        counts, rows, reserved = history.counts, self.rows, 0
        if rows is None:
            first = max(1, history.units // 50)
            if len(counts) < 2:
                return (0 if not counts else history.cells), min(first, history.left)
            rows = max(round(counts[1].value - counts[0].value) // (self.below + self.above), 0)
            reserved = 2 * first
        half = (history.units - reserved) // 2
        if len(counts) >= MOST or half < 1:
            return None
        anchor = history.known[-1] if history.known else history.cells // 2
        if history.left - half > LEAST * half:
            lower = self._side(history, pooled(counts), anchor, rows, half, history.left - half)
            if lower is not None:
                return lower
        mirrored = QuantileEnds(
            self.above, self.below, self.level, self.rows, self.cluster, self.law
        )
        upper = mirrored._side(
            history,
            pooled(counts, history.cells),
            history.cells - anchor - 1,
            rows,
            half,
            history.left,
        )
        return None if upper is None else (history.cells - upper[0], upper[1])

    def _side(
        self,
        history: History,
        blocks: list[Block],
        anchor: int,
        rows: int,
        half: int,
        available: int,
    ) -> tuple[int, int] | None:
        """The next question about the lower end, with at most `available` units;
        None where there is nothing left to ask.
        """
        sampling = float(self.cluster * rows * self.below * self.above)
        final = history.deviation / (
            math.sqrt(FINAL * half) if history.law == "gaussian" else FINAL * half
        )
        target = -self._z * self._deviation(sampling, final**2)
        if available <= LEAST * half or target <= -self.above * rows:
            return None
        bracket = self._bracket(
            [block for block in blocks if block.place <= anchor],
            Bracket(0, -float(self.above * rows), anchor + 1, 0.0, False),
            _Aim(sampling, final, target),
        )
        if bracket is None:
            return None
        unclear = [block for block in blocks if bracket.low < block.place < bracket.high]
        if unclear:
            place, deviation = _asked_again(unclear, final)
        elif bracket.high - bracket.low <= 1:
            return None
        else:
            place, deviation = _new_place(bracket, anchor, target, final)
        return place, _tidy(min(available, max(history.share_for(deviation), half // SMALLEST)))

    @property
    def _z(self) -> float:
        return NormalDist().inv_cdf(0.5 + float(self.level) / 2)

    def _bracket(self, blocks: list[Block], whole: Bracket, aim: _Aim) -> Bracket | None:
        """Where the end lies by the answers so far; None where one of them is good enough."""
        passing = [
            block
            for block in blocks
            if block.variance <= (FINE * aim.final) ** 2
            and block.value <= -self._z * self._deviation(aim.sampling, block.variance)
        ]
        if passing and passing[-1].value >= aim.target - max(
            ENOUGH * aim.final, NEAR * self._z * math.sqrt(aim.sampling)
        ):
            return None
        found = whole
        for block in blocks:
            if aim.target - block.value > _sure(block, aim.final) or block in passing:
                found = replace(found, low=block.place, low_value=block.value)
        for block in blocks:
            if block.place > found.low and (
                block.value - aim.target > _sure(block, aim.final)
                or block.variance <= (1.05 * aim.final) ** 2
            ):
                return replace(
                    found, high=block.place, high_value=min(block.value, 0.0), closed=True
                )
        return found

    def ends(
        self, counts: Iterable[Count], cells: int, rows: float, level: float
    ) -> tuple[int, int]:
        """The greatest place that lies below the quantile at `level`, and the least one that lies
        above it; 0 and `cells` where there is none.

        `rows` is the number of rows; 0 asks about the data set itself, without sampling error.
        """
        z = NormalDist().inv_cdf(0.5 + level / 2)
        sampling = float(self.cluster * rows * self.below * self.above)
        answers = list(counts)
        finest = min((count.deviation for count in answers), default=1.0)
        found = []
        for size in (0, cells):
            passing = [
                block.place
                for block in pooled(answers, size)
                if block.value
                <= -self._limit(
                    z, sampling, block.variance, fine=block.variance <= (FINE * finest) ** 2
                )
            ]
            found.append(max(passing, default=0))
        return found[0], cells - found[1]

    def _limit(self, z: float, sampling: float, variance: float, *, fine: bool) -> float:
        """How far from zero an answer must lie for its place to be outside the interval."""
        return (
            z * self._deviation(sampling, variance)
            if fine
            else (z + COARSE * (2 if self.law == "laplace" else 1)) * math.sqrt(sampling + variance)
        )

    def _deviation(self, sampling: float, variance: float) -> float:
        """The deviation that the test of a final answer allows for: Gaussian noise counts in full
        where it is large against sampling, else less.
        """
        weight = (
            LAPLACE_WEIGHT
            if self.law == "laplace"
            else WEIGHT + (1 - WEIGHT) * variance / (variance + 4 * sampling)
        )
        return math.sqrt(sampling + weight * variance)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "below": self.below,
            "above": self.above,
            "level": fraction_text(self.level),
            "rows": self.rows,
            "cluster": self.cluster,
            "law": self.law,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> QuantileEnds:
        return cls(
            record["below"],
            record["above"],
            stored_fraction(record["level"]),
            record["rows"],
            record["cluster"],
            record["law"],
        )
