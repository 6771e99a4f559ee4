"""Power of the tests of tables, means, ranks and parts, from public facts and what is assumed:
private beside non-private.

The statistic of the expected data is the non-centrality of its χ² law: the tests here are
standardised distances, so that one number says how far the assumed population lies from the null in
standard errors, noise included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import chndtr, ndtr, ndtri
from scipy.stats import chi2

from discreet.errors import InvalidParameter
from discreet.inference.counts.power import MOST_ROWS, PowerResult
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Array
from discreet.inference.results.summary import Summary

# (rows, noise relative to the planned spend's) → squared distance from the null, in standard errors
Distance = Callable[[int, float], float]


@dataclass(frozen=True, slots=True)
class TestPlan:
    """A planned test: how far the assumed population lies from the null at a number of rows, its
    degrees of freedom, its level and side.

    `distance(rows, scale)` takes the noise's spread times `scale`: 1 as planned, 0 without privacy.
    `chance`, where given, is the power itself.
    """

    __test__ = False
    name: str
    assumed: str
    distance: Distance = field(repr=False, compare=False)
    freedom: int
    alternative: str
    alpha: float
    noise: ReleasedNoise
    scale: float = 1.0
    chance: Distance | None = field(default=None, repr=False, compare=False)

    def power(self, rows: int) -> float:
        """P(reject), by the normal approximation of the statistic.

        Validity. Where noise is as large as the counts it is some points too high: 0.54 for 0.48 in
                  a comparison of two shares with 50 rows and ε = 0.5 (docs/theory/tests.md).
        """
        return self._power(rows, self.scale)

    def nonprivate(self, rows: int) -> float:
        """The same without noise."""
        return self._power(rows, 0.0)

    def _power(self, rows: int, scale: float) -> float:
        if self.chance is not None:
            return self.chance(rows, scale)
        squared = max(self.distance(rows, scale), 0.0)
        if self.freedom == 1 and self.alternative != "two-sided":
            return float(ndtr(np.sqrt(squared) - ndtri(1 - self.alpha)))
        return float(1 - chndtr(chi2.isf(self.alpha, self.freedom), self.freedom, squared))

    def rows_for(self, power: float) -> int:
        """The least number of rows with at least this power,
        by doubling and bisection (power rises with rows).
        """
        high = 1
        while self.power(high) < power:
            high *= 2
            if high > MOST_ROWS:
                raise InvalidParameter(
                    "sample_size",
                    f"more than {MOST_ROWS} rows are needed",
                    "the assumed population is the null, or too close to it for this spend",
                    "assume a larger difference, accept less power, or spend more",
                )
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.power(middle) < power else (low, middle)
        return high

    @property
    def privacy(self) -> float:
        """The planned ε or μ over the noise's scale, for pictures: 1/spread of a count's noise."""
        return 1 / (self.noise.spread * self.scale)

    def with_privacy(self, value: float) -> TestPlan:
        """The same plan with other noise: 1/spread = `value`."""
        return replace(self, scale=1 / (self.noise.spread * value))


class PlannedPower(PowerResult):
    """The power of a planned test of tables, means, ranks or parts at a number of rows:
    `power`, beside `nonprivate`.
    """

    __slots__ = ()

    @property
    def randomised(self) -> float:
        """Not known for these tests."""
        return float("nan")

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        plan: Any = self.plan
        rows = (("private", f"{self.power:.4f}"), ("without privacy", f"{self.nonprivate:.4f}"))
        notes = (
            (
                f"{self.rows} rows, {plan.assumed}, {plan.alternative}, α = {plan.alpha:g}, spend "
                f"{self.spend}."
            ),
            "From public facts and what is assumed: no data was read and nothing was spent.",
        )
        return Summary(
            f"Power of {plan.name} with {self.rows} rows", ("test", "power"), rows, notes
        )

    def curves(self, rows: Array) -> dict[str, Array]:
        """Power by number of rows: private, nonprivate."""
        return {
            name: np.array([compute(int(many)) for many in rows])
            for name, compute in (
                ("private", self.plan.power),
                ("nonprivate", self.plan.nonprivate),
            )
        }

    def privacy_curves(self, values: Array) -> dict[str, Array]:
        """Power at these rows by ε or μ, given as multiples of the planned one."""
        plan: Any = self.plan
        plans = [replace(plan, scale=plan.scale / float(value)) for value in values]
        return {
            "private": np.array([one.power(self.rows) for one in plans]),
            "nonprivate": np.full(len(plans), self.nonprivate),
        }

    @property
    def privacy_axis(self) -> tuple[float, str]:
        """Multiples of the planned ε or μ."""
        return 1.0, "ε or μ, times the planned one"

    @property
    def headline(self) -> str:
        """What a picture of it is called."""
        plan: Any = self.plan
        return f"Power of {plan.name}"
