"""The policies of searches, in one table:
a new one is one class in a module of its own and one line in `POLICIES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.search.checked_ends import CheckedEnds
from discreet.search.policy import Count, History, Policy
from discreet.search.quantile_ends import QuantileEnds
from discreet.search.range_policy import BulkSearch, EndsSearch


@plain.kept()
@dataclass(frozen=True, slots=True)
class Bisection:
    """Halves the grid `steps` times towards the sign change of the statistic;
    the last answer gets (1 − 1/growth) of the budget.

    Margins halve from question to question, so noise may start large: shares grow by `growth`
    (4 for Gaussian noise, 2 for Laplace).
    """

    steps: int
    growth: int = 4
    kind: ClassVar[str] = "bisection"

    def __post_init__(self) -> None:
        if not all(
            isinstance(number, int) and not isinstance(number, bool)
            for number in (self.steps, self.growth)
        ) or not (1 <= self.steps <= 64 and 2 <= self.growth <= 16):
            raise InvalidParameter(
                "Bisection",
                "steps or growth is not a whole number in its range",
                "shares grow geometrically",
                "use 1 to 64 steps and a growth of 2 to 16",
            )

    def next(self, history: History) -> tuple[int, int] | None:
        low, high = 0, history.cells
        for count in history.counts:
            low, high = (count.place, high) if count.value < 0 else (low, count.place)
        if len(history.counts) >= self.steps or high - low < 2:
            return None
        last = len(history.counts) + 1 == self.steps or high - low < 4
        share = (
            history.units * (self.growth - 1) // self.growth ** (self.steps - len(history.counts))
        )
        return (low + high) // 2, history.left if last else min(max(share, 1), history.left)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "steps": self.steps, "growth": self.growth}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Bisection:
        return cls(record["steps"], record["growth"])


@plain.kept()
@dataclass(frozen=True, slots=True)
class AllRows:
    """One question, about all rows: the place at the end of the grid, for all units."""

    kind: ClassVar[str] = "all rows"

    def next(self, history: History) -> tuple[int, int] | None:
        return None if history.counts else (history.cells, history.left)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> AllRows:
        return cls()


POLICIES: tuple[type[Policy], ...] = (
    AllRows,
    Bisection,
    QuantileEnds,
    CheckedEnds,
    BulkSearch,
    EndsSearch,
)


def policy_from_dict(record: dict[str, Any]) -> Policy:
    """The policy that `to_dict` wrote."""
    return {policy.kind: policy for policy in POLICIES}[record["kind"]].from_dict(record)


__all__ = ["POLICIES", "AllRows", "Bisection", "Count", "History", "Policy", "policy_from_dict"]
