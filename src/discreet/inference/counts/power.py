"""How often a test will reject, from public facts alone: exact power of the test of one proportion,
and the rows that it needs (reference.md M3, L1).

Beside it stand the best test without privacy and the best test when every row is randomised at the
source with the same guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet.errors import InvalidParameter
from discreet.inference.counts.most_powerful import NOISELESS, power_at, randomised_power
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Array
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told

MOST_ROWS = 10**9


@dataclass(frozen=True, slots=True)
class ProportionPlan:
    """A planned test of one proportion: the null, the share that is thought true, the side, the
    level and the noise of the spend (sensitivity 1).
    """

    null: float
    share: float
    alternative: str
    alpha: float
    noise: ReleasedNoise

    def power(self, rows: int) -> float:
        """P(reject) at the assumed share: the UMP private test, two-sided by equal tails.

        Never falls with rows for one-sided tests.
        """
        return power_at(rows, self.null, self.share, self.noise, self.alpha, self.alternative)

    def nonprivate(self, rows: int) -> float:
        """The same without noise: the classical (randomised) exact test."""
        return power_at(rows, self.null, self.share, NOISELESS, self.alpha, self.alternative)

    def randomised(self, rows: int) -> float:
        """The same when every row is randomised at the source."""
        return randomised_power(
            rows, self.null, self.share, self.noise, self.alpha, self.alternative
        )

    def rows_for(self, power: float) -> int:
        """The least number of rows with at least this power, by doubling and bisection.

        Validity. One-sided: exact, because power never falls with rows (a test of n rows is one of
                  n + 1 rows that ignores one). Two-sided equal-tailed power can dip by far less
                  than a thousandth between neighbouring numbers; the answer itself has the power
                  asked for.
        """
        if (
            self.null == self.share
            or (self.alternative == "greater" and self.share < self.null)
            or (self.alternative == "less" and self.share > self.null)
        ):
            raise InvalidParameter(
                "share=",
                "it is no case of the alternative",
                "no number of rows tells it from the null",
                "pass a share on the alternative's side of the null",
            )
        z = float(ndtri(power)) - float(
            ndtri(self.alpha / (2 if self.alternative == "two-sided" else 1))
        )
        guess = (
            z
            * z
            * max(share * (1 - share) for share in (self.null, self.share))
            / (self.null - self.share) ** 2
        )
        low, high = 0, max(1, math.ceil(min(guess, 4.0 * MOST_ROWS)))
        while high > MOST_ROWS or self.power(high) < power:
            low, high = high, 2 * high
            if high > MOST_ROWS:
                raise InvalidParameter(
                    "sample_size",
                    f"about {guess:.2g} rows or more are needed",
                    f"at most {MOST_ROWS} are searched",
                    "assume a larger difference, accept less power, or spend more",
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.power(middle) < power else (low, middle)
        return high

    def with_privacy(self, epsilon: float) -> ProportionPlan:
        """The same plan with another ε (Tulap noise) or μ (Gaussian noise)."""
        return replace(self, noise=self.noise.at_privacy(epsilon))

    @property
    def privacy(self) -> float:
        """ε of Tulap noise, μ of Gaussian noise."""
        return 1 / self.noise.spread


@dataclass(frozen=True, slots=True, repr=False)
class PowerResult(Told):
    """The power of a planned test at a number of rows: `power`, beside `nonprivate` and
    `randomised` (randomised response).
    """

    plan: ProportionPlan
    rows: int
    spend: str

    @property
    def power(self) -> float:
        return self.plan.power(self.rows)

    @property
    def nonprivate(self) -> float:
        return self.plan.nonprivate(self.rows)

    @property
    def randomised(self) -> float:
        return self.plan.randomised(self.rows)

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        plan = self.plan
        rows = tuple(
            (name, f"{value:.4f}")
            for name, value in (
                ("private", self.power),
                ("without privacy", self.nonprivate),
                ("randomised at the source", self.randomised),
            )
        )
        notes = (
            (
                f"{self.rows} rows, null {plan.null:g}, true share {plan.share:g}, "
                f"{plan.alternative}, α = {plan.alpha:g}, spend {self.spend}."
            ),
            "Exact, from public facts: no data was read and nothing was spent.",
        )
        return Summary(
            f"Power of the test of a proportion with {self.rows} rows",
            ("test", "power"),
            rows,
            notes,
        )

    def curves(self, rows: Array) -> dict[str, Array]:
        """Power by number of rows: private, nonprivate, randomised."""
        plan = self.plan
        return {
            name: np.array([compute(int(many)) for many in rows])
            for name, compute in (
                ("private", plan.power),
                ("nonprivate", plan.nonprivate),
                ("randomised", plan.randomised),
            )
        }

    def privacy_curves(self, values: Array) -> dict[str, Array]:
        """Power at these rows by ε (or μ)."""
        plans = [self.plan.with_privacy(float(value)) for value in values]
        flat = self.nonprivate
        return {
            "private": np.array([plan.power(self.rows) for plan in plans]),
            "nonprivate": np.full(len(plans), flat),
            "randomised": np.array([plan.randomised(self.rows) for plan in plans]),
        }

    @property
    def rows_axis(self) -> Array:
        """Numbers of rows about the planned one for a picture: a quarter of it to four times
        it.
        """
        spread = np.exp(np.linspace(-math.log(4), math.log(4), 21))
        return np.unique(np.round(self.rows * spread).clip(1, MOST_ROWS))

    @property
    def privacy_axis(self) -> tuple[float, str]:
        """The planned place on the axis of `privacy_curves`, and the axis's name."""
        return self.plan.privacy, "μ" if self.plan.noise.kind == "gaussian" else "ε"

    @property
    def headline(self) -> str:
        """What a picture of it is called."""
        return f"Power: {self.plan.null:g} against {self.plan.share:g}, {self.plan.alternative}"

    def plot(self, *, ax: Any = None, title: str | None = None, path: str | None = None) -> Any:
        """Two panels: power by rows and power by ε (or μ), beside the test without privacy and,
        where it is known, with randomised response; saved if a path is given.
        """
        from discreet.plots.power import plot_power

        return plot_power(self, ax=ax, title=title, path=path)


def checked_rows(rows: object) -> int:
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_ROWS:
        raise InvalidParameter(
            "rows=",
            f"it is not a whole number from 1 to {MOST_ROWS}",
            "power depends on the number of rows",
            "pass the planned number of rows",
        )
    return rows
