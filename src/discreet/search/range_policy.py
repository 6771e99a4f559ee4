"""The two policies of a search for a range: the bulk of the rows, then the ends of its tails
(ranges.py holds the conversations).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.search.policy import Count, History
from discreet.search.ranges import (
    Bulk,
    Purse,
    Start,
    Talk,
    find_bulk,
    find_ends,
    start_from_dict,
    start_to_dict,
)


class _Memory(threading.local):
    """The conversation that was last gone on with in this thread,
    so that a search does not replay it for every question.

    What a policy answers does not depend on it: a history that does not continue the remembered one
    is replayed from its beginning.
    """

    policy: Any = None
    answers: tuple[Count, ...] = ()
    talk: Any = None


_MEMORY = _Memory()


def _go_on(
    policy: Any, history: History, begin: Callable[[Purse], Talk[Any]]
) -> tuple[int, int] | None:
    purse = Purse(history.cells, history.units, history.deviation, history.law)
    known = (
        _MEMORY.talk is not None
        and _MEMORY.policy == (policy, purse)
        and _MEMORY.answers == history.counts[: len(_MEMORY.answers)]
        and history.counts
    )
    if not known:
        _MEMORY.policy, _MEMORY.answers, _MEMORY.talk = (policy, purse), (), begin(purse)
    talk, _MEMORY.talk = _MEMORY.talk, None
    with np.errstate(all="ignore"):
        try:
            question: tuple[int, int] | None = None if known else next(talk)
            for answer in history.counts[len(_MEMORY.answers) :]:
                question = talk.send(answer)
        except (StopIteration, ArithmeticError, ValueError, IndexError):
            # it is over, or the answers are so wild that no arithmetic bears them
            return None
    if question is None:  # asked twice with the same history
        return _go_on(policy, history, begin)
    _MEMORY.answers, _MEMORY.talk = history.counts, talk
    return question[0], min(question[1], history.left)


def _finite(*numbers: object) -> bool:
    return all(
        isinstance(number, (int, float))
        and not isinstance(number, bool)
        and math.isfinite(number)
        and number >= 0
        for number in numbers
    )


@plain.kept()
@dataclass(frozen=True, slots=True)
class BulkSearch:
    """Looks for the middle of the rows and for how far they reach;
    `rows` is their number where it is public, else None.
    """

    rows: int | None
    kind: ClassVar[str] = "bulk"

    def __post_init__(self) -> None:
        if self.rows is not None and (
            isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 0
        ):
            raise _bad("BulkSearch", "its number of rows is no whole number")

    def talk(self, purse: Purse) -> Talk[Bulk]:
        return find_bulk(purse, self.rows)

    def next(self, history: History) -> tuple[int, int] | None:
        return _go_on(self, history, self.talk)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "rows": self.rows}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> BulkSearch:
        return cls(record["rows"])


@plain.kept()
@dataclass(frozen=True, slots=True)
class EndsSearch:
    """Looks for the ends of a range to clip to, from where the bulk was found; `noise` is what the
    mean's noise will be, in rows, for a range of width 1.
    """

    rows: float
    noise: float
    left: Start
    right: Start
    kind: ClassVar[str] = "ends"

    def __post_init__(self) -> None:
        sides = (self.left, self.right)
        if (
            not _finite(
                self.rows,
                self.noise,
                *(number for side in sides for number in (side.place, side.beyond, side.extent)),
            )
            or not self.rows
            or not self.noise
        ):
            raise _bad("EndsSearch", "its numbers are not finite")
        if any(
            not math.isfinite(number) or seen.deviation <= 0
            for side in sides
            for seen in side.seen
            for number in (seen.distance, seen.rows, seen.deviation)
        ):
            raise _bad("EndsSearch", "the counts it starts from are not finite")

    def talk(self, purse: Purse) -> Talk[Any]:
        return find_ends(purse, Bulk(self.rows, self.left, self.right), self.noise)

    def next(self, history: History) -> tuple[int, int] | None:
        return _go_on(self, history, self.talk)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "rows": self.rows,
            "noise": self.noise,
            "left": start_to_dict(self.left),
            "right": start_to_dict(self.right),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> EndsSearch:
        return cls(
            record["rows"],
            record["noise"],
            start_from_dict(record["left"]),
            start_from_dict(record["right"]),
        )


def _bad(what: str, found: str) -> InvalidParameter:
    return InvalidParameter(
        what,
        found,
        "a search chooses its places by them",
        "build it with dp.unbounded_mean or dp.location",
    )
