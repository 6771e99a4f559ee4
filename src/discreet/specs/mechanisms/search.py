"""A search by noisy counts: where on the grid does a weighted count change sign?

At a place t the statistic is  below·#{values in cells before t} − above·#{values in cells from
t on}.  For the a/b quantile the weights are b−a and a: the statistic is centred there, so that the
number of rows need not be public. Which place is asked next, and for how much of the budget,
is chosen from the noisy answers so far (search/policies.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import float_up, fraction_text, sqrt_up, stored_fraction
from discreet.search.policies import POLICIES, Policy, policy_from_dict
from discreet.sensitivity import L1, L2, Rows, sensitivity_from_dict
from discreet.specs.mechanisms.additive import (
    LARGEST_STEPS,
    SMALLEST_STEPS,
    AdditiveNoise,
    GaussianNoise,
    LaplaceNoise,
)

LAWS = ("gaussian", "laplace")
LARGEST_UNITS = 1 << 20
LARGEST_WEIGHT = 1 << 20


@plain.kept()
@dataclass(frozen=True, slots=True)
class CountSearch:
    """Asks weighted counts one after another, each with noise for its share of the budget, until
    the policy stops or the units are spent.

    `budget` is μ² (law "gaussian") or ε (law "laplace"), cut into `units`; an answer for `share`
    units has the noise `noise(share)`. The answer's integers are (place, share, steps) of every
    question in turn.
    """

    sensitivity: Rows
    below: int
    above: int
    law: str
    budget: Fraction
    units: int
    policy: Policy
    kind: ClassVar[str] = "count search"
    reads: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        if (
            not isinstance(self.sensitivity, Rows)
            or self.law not in LAWS
            or type(self.policy) not in POLICIES
        ):
            raise _bad(
                "it needs a number of changed rows, a law 'gaussian' or 'laplace', and a policy "
                "of discreet.search.policies"
            )
        if (
            not all(
                _is_whole(weight) and 0 <= weight <= LARGEST_WEIGHT
                for weight in (self.below, self.above)
            )
            or self.below + self.above == 0
        ):
            raise _bad(f"its weights must be whole numbers from 0 to {LARGEST_WEIGHT}, not both 0")
        if (
            not _is_whole(self.units)
            or not 1 <= self.units <= LARGEST_UNITS
            or not isinstance(self.budget, Fraction)
            or self.budget <= 0
        ):
            raise _bad(f"its budget must be a positive Fraction in 1 to {LARGEST_UNITS} units")
        if self._spread(1) > LARGEST_STEPS:
            raise InvalidParameter(
                "spend=",
                "it is so small that the noise would span more than 2**50 grid steps",
                "such an answer would be noise alone",
                "spend more",
            )

    def noise(self, share: int) -> AdditiveNoise:
        """The noise of an answer that is paid with `share` of the units.

        Theorem.  Gaussian: μ_i² = Δ²/σ² ≤ budget·share/units. Laplace:
                  ε_i = Δ/b ≤ budget·share/units. Δ = sensitivity.weighted(below, above).
        Proof.    The statistic at any one place moves by at most Δ (Rows.weighted);
                  σ and b are rounded up.
        Checked.  tests/claims/test_search.py::test_every_answer_pays_for_its_noise
        """
        return _noise(
            self.law,
            self.sensitivity.weighted(self.below, self.above),
            *self.budget.as_integer_ratio(),
            self.units,
            share,
        )

    def deviation(self, share: int) -> float:
        """The standard deviation of `noise(share)`, for policies and inference."""
        return _deviation(
            self.law,
            self.sensitivity.weighted(self.below, self.above),
            *self.budget.as_integer_ratio(),
            self.units,
            share,
        )

    def _spread(self, share: int) -> Fraction:
        moved, part = (
            self.sensitivity.weighted(self.below, self.above),
            self.budget * share / self.units,
        )
        return (
            sqrt_up(moved**2 / part) if self.law == "gaussian" else Fraction(float_up(moved / part))
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "below": self.below,
            "above": self.above,
            "law": self.law,
            "budget": fraction_text(self.budget),
            "units": self.units,
            "policy": self.policy.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CountSearch:
        rows = sensitivity_from_dict(record["sensitivity"])
        assert isinstance(rows, Rows)
        return cls(
            rows,
            record["below"],
            record["above"],
            record["law"],
            stored_fraction(record["budget"]),
            record["units"],
            policy_from_dict(record["policy"]),
        )


@plain.remembered(4096)
def _noise(
    law: str, moved: int, numerator: int, denominator: int, units: int, share: int
) -> AdditiveNoise:
    part = Fraction(numerator * share, denominator * units)
    if law == "gaussian":
        sigma = sqrt_up(moved**2 / part)
        return GaussianNoise(L2(Fraction(moved**2)), sigma, _refinement(sigma))
    scale = Fraction(float_up(moved / part))
    return LaplaceNoise(L1(Fraction(moved)), scale, _refinement(scale))


@plain.remembered(4096)
def _deviation(
    law: str, moved: int, numerator: int, denominator: int, units: int, share: int
) -> float:
    return math.sqrt(_noise(law, moved, numerator, denominator, units, share).variance)


def _refinement(spread: Fraction) -> int:
    """The least refinement whose grid is at most a 1024th of the spread."""
    return max(0, math.ceil(math.log2(SMALLEST_STEPS / spread))) if spread < SMALLEST_STEPS else 0


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "CountSearch",
        found,
        "the sampler and the accountant both read this object",
        "build it with the public functions",
    )
