"""What a planned test needs for the power that is wanted: the smallest effect that it finds, or the
least spend. From public facts and what is assumed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.inference.counts.power import PowerResult
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told


@dataclass(frozen=True, slots=True, repr=False)
class SolvedPower(Told):
    """A plan that has the power that was asked for: `planned`, and its `rows`, `power` and
    `nonprivate`.
    """

    planned: PowerResult

    @property
    def rows(self) -> int:
        return self.planned.rows

    @property
    def power(self) -> float:
        return self.planned.power

    @property
    def nonprivate(self) -> float:
        """The power of the same plan without privacy."""
        return self.planned.nonprivate

    @property
    def answer(self) -> str:
        """What was found, in words."""
        raise NotImplementedError

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        told = self.planned.summary()
        return replace(told, title=f"{self.answer}. {told.title}")

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Power by rows and by ε (or μ) about the plan; saved if a path is given."""
        words = self.answer if title is None else title
        return self.planned.plot(ax=ax, title=words, path=path)


@dataclass(frozen=True, slots=True, repr=False)
class SmallestEffect(SolvedPower):
    """The smallest `effect` that a test finds with the power that was asked for: a value of the
    assumption `name`.
    """

    name: str
    effect: float

    @property
    def answer(self) -> str:
        return f"Smallest {self.name} that is found: {self.effect:g}"


@dataclass(frozen=True, slots=True, repr=False)
class LeastSpend(SolvedPower):
    """The least `spend` at which a test has the power that was asked for."""

    spend: Guarantee

    @property
    def answer(self) -> str:
        return f"Least spend: {self.spend}"
