"""The ends of a quantile's interval, from an estimate that may be far off or missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.search.policy import Count, History
from discreet.search.quantile_ends import QuantileEnds

# The reasons for these numbers are in docs/theory/quantile-intervals.md.
FIRST, AGAIN = (
    64,
    16,
)  # a place is asked with one unit in so many, and once more where it is unclear
CLEAR, SURE = 2.5, 1.5  # deviations from 0 at which the first answer, and both together, are clear
LARGEST_REFINEMENT = 1 << 16


@dataclass(frozen=True, slots=True)
class _Way:
    """The place that answers have led to or lead to next, and how many were used for that; whether
    they have `led` there, or left it `unclear` whether they have.
    """

    place: int
    used: int
    led: bool = False
    unclear: bool = False


@plain.kept()
@dataclass(frozen=True, slots=True)
class CheckedEnds:
    """Looks first whether the released estimate is near the quantile, halves its way there where it
    is not, and then does as `ends`.

    Noise in proportion to a smooth sensitivity has heavy tails, and propose-test-release may answer
    nothing. The estimate before the search is the last of the known integers, in steps of
    2**−refinement of a cell; with `tested` the integer before it says whether there is one.
    """

    ends: QuantileEnds
    refinement: int = 0
    tested: bool = False
    kind: ClassVar[str] = "checked quantile ends"

    def __post_init__(self) -> None:
        if (
            type(self.ends) is not QuantileEnds
            or self.ends.rows is None
            or type(self.refinement) is not int
            or not 0 <= self.refinement <= LARGEST_REFINEMENT
            or type(self.tested) is not bool
        ):
            raise InvalidParameter(
                "CheckedEnds",
                "its ends, their public number of rows, or refinement outside their range",
                "they say where the search starts",
                "build it with dp.quantile",
            )

    def next(self, history: History) -> tuple[int, int] | None:
        way = self._way(history.counts, history.cells, history.known)
        if way.led:
            rest = history.counts[way.used :]
            return self.ends.next(replace(history, counts=rest, known=(way.place,)))
        share = history.units // (AGAIN if way.unclear else FIRST)
        return way.place, min(max(1, share), history.left)

    def found(
        self, counts: tuple[Count, ...], cells: int, known: tuple[int, ...]
    ) -> tuple[Sequence[Count], int | None]:
        """The answers about the ends, without those that led to them (places were chosen until
        these looked well, so that they test nothing), and the place that they led to; none where
        the way took all.
        """
        way = self._way(counts, cells, known)
        return (counts[way.used :], way.place) if way.led else ((), None)

    def _way(self, counts: tuple[Count, ...], cells: int, known: tuple[int, ...]) -> _Way:
        low, high, place = 0, cells, self._start(cells, known)
        asked: list[Count] = []
        for used, count in enumerate(counts, start=1):
            asked.append(count)
            value, deviation = _together(asked)
            if abs(value) <= (CLEAR if len(asked) == 1 else SURE) * deviation:
                if len(asked) == 1:
                    continue
                return _Way(place, used, led=True)
            low, high = (place, high) if value < 0 else (low, place)
            if high - low <= 1:
                return _Way(low, used, led=True)
            place, asked = (low + high) // 2, []
        return _Way(place, len(counts), unclear=bool(asked))

    def _start(self, cells: int, known: tuple[int, ...]) -> int:
        """The cell of the estimate, within the grid; the middle where there is none."""
        if not known or (self.tested and (len(known) < 2 or not known[-2])):
            return cells // 2
        return min(max(known[-1] >> self.refinement, 0), cells - 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "ends": self.ends.to_dict(),
            "refinement": self.refinement,
            "tested": self.tested,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CheckedEnds:
        return cls(QuantileEnds.from_dict(record["ends"]), record["refinement"], record["tested"])


def _together(counts: list[Count]) -> tuple[float, float]:
    """Answers at one place averaged, and the deviation of their mean."""
    weights = [count.deviation**-2 for count in counts]
    value = sum(weight * count.value for weight, count in zip(weights, counts, strict=True))
    return value / sum(weights), sum(weights) ** -0.5
