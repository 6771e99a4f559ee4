"""What a policy of a search is: the protocol, and what it is told.

A policy is a frozen spec. `next(history)` names the next place and how many budget units to pay for
it, or None to stop. It sees the answers alone, never the data, so every policy is private
(specs/mechanisms/search.py): a bad one wastes budget and does no other harm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self


@dataclass(frozen=True, slots=True)
class Count:
    """One answer: at `place`, for `share` budget units, the noisy statistic `value` with standard
    deviation `deviation` of its noise.
    """

    place: int
    share: int
    value: float
    deviation: float


@dataclass(frozen=True, slots=True)
class History:
    """What is known when the next question is chosen: the grid's size, the units left, the answers
    so far, integers released before (`known`).

    `deviation` is the noise's standard deviation of an answer for one unit; with `share` units it
    is smaller by √share (law "gaussian") or by share (law "laplace").
    """

    cells: int
    left: int
    deviation: float
    law: str = "gaussian"
    counts: tuple[Count, ...] = ()
    known: tuple[int, ...] = ()

    @property
    def units(self) -> int:
        """All units, spent and left."""
        return self.left + sum(count.share for count in self.counts)

    def share_for(self, deviation: float) -> int:
        """The units that an answer with at most this noise costs, never less than one."""
        ratio = min(self.deviation / max(deviation, 1e-300), 1e9)  # more units than any search has
        return max(1, math.ceil(ratio**2 if self.law == "gaussian" else ratio))


class Policy(Protocol):
    """Chooses places to ask; `next` gives (place from 0 to cells, units to pay) or None to stop."""

    kind: ClassVar[str]

    def next(self, history: History) -> tuple[int, int] | None: ...

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self: ...
