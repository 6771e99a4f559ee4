"""Noisy stochastic gradient descent as one mechanism: secret batches, noisy sums, and the descent
that they are used for (reference.md E3, E8).

With θ⁰ = start, for t = 1 … steps:

    batch   Poisson: every row is in it with probability 1 − exp(−1/gap), independently;
            or one of all subsets of `size` rows, each as likely
    noisy   Σ over the batch of the row's vector at θᵗ⁻¹, plus N(0, spread²) (law "laplace":
            Laplace noise of scale `spread`) rounded to whole numbers, on each coordinate
    vᵗ      momentum·vᵗ⁻¹ + noisy, v⁰ = 0
    θᵗ      θᵗ⁻¹ − rate·vᵗ, rounded to whole numbers; shrunk to Σ|θ| ≤ limit where it is longer

The answer's integers are θ after every `every` steps (the last of them after all steps), then the
mean of the last `averaged` iterates, rounded. A sum is divided by nothing that depends on the data:
`rate` holds the public denominator. Batches and their sizes are never shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import fraction_text, is_float, stored_fraction
from discreet.sensitivity import OneRow, sensitivity_from_dict
from discreet.specs.mechanisms.additive import LARGEST_STEPS, SMALLEST_STEPS

LAWS = {"gaussian": 2, "laplace": 1}  # and the norm of a row's vector that each is measured by
LARGEST_DESCENT = 1_000_000  # steps
LARGEST_PURE = 20_000  # steps that are charged one by one
LARGEST_GAP = Fraction(1 << 40)
LARGEST_SHOWN = 1 << 20  # numbers


@plain.kept()
@dataclass(frozen=True, slots=True)
class NoisySGD:
    """The descent above; `gap` is for Poisson batches (rows come and go), `size` for batches of a
    fixed size (a row is replaced).

    `delta` is δ₀: the descent is charged (μ, δ₀) with the least μ that its privacy loss
    distribution allows. With Laplace noise it is charged as `steps` pure parts, and δ₀ is 0.
    """

    sensitivity: OneRow
    spread: Fraction
    gap: Fraction | None
    size: int | None
    steps: int
    rate: float
    start: tuple[int, ...]
    limit: int
    every: int
    averaged: int
    delta: Fraction
    law: str = "gaussian"
    momentum: float = 0.0
    kind: ClassVar[str] = "noisy sgd"
    reads: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        if type(self.sensitivity) is not OneRow:
            raise _bad("it needs to know what one row adds")
        if type(self.law) is not str or LAWS.get(self.law) != self.sensitivity.norm:
            raise _bad("its law is none that hides a row of this norm")
        if (
            not isinstance(self.spread, Fraction)
            or not is_float(self.spread)
            or not SMALLEST_STEPS <= self.spread <= LARGEST_STEPS
        ):
            raise _bad("its spread is not a float64 between 2**10 and 2**50 whole numbers")
        if self.sensitivity.rows is None:
            if (
                self.size is not None
                or not isinstance(self.gap, Fraction)
                or not is_float(self.gap)
                or not Fraction(1, 64) <= self.gap <= LARGEST_GAP
            ):
                raise _bad(
                    "rows come and go, so that batches are Poisson samples with a gap of 1/64 … "
                    "2**40"
                )
        elif self.gap is not None or not _whole(self.size, 1, self.sensitivity.rows):
            raise _bad("a row is replaced, so that batches have a fixed size of at most all rows")
        if (
            not _whole(self.steps, 1, LARGEST_DESCENT)
            or not _whole(self.every, 1, self.steps)
            or not _whole(self.averaged, 1, self.steps)
        ):
            raise _bad(
                f"it has no steps from 1 to {LARGEST_DESCENT} of which some are shown and averaged"
            )
        if (
            not self.start
            or self.shown * len(self.start) > LARGEST_SHOWN
            or not _whole(self.limit, 1, 1 << 36)
            or sum(abs(value) for value in self.start) > self.limit
        ):
            raise _bad("its start is empty or beyond its limit, or too many numbers are shown")
        if type(self.rate) is not float or not 0 < self.rate < math.inf:
            raise _bad("its rate is not a positive number")
        if type(self.momentum) is not float or not 0 <= self.momentum < 1:
            raise _bad("its momentum is not at least 0 and below 1")
        if not isinstance(self.delta, Fraction) or not (
            self.delta == 0 if self.pure else 0 < self.delta < 1
        ):
            raise _bad("its delta is not between 0 and 1, or not 0 where its parts are pure")
        if self.pure and self.steps > LARGEST_PURE:
            raise _bad(f"it has more than {LARGEST_PURE} pure parts")

    @property
    def pure(self) -> bool:
        """Whether every step is pure: Laplace noise against the ℓ₁ norm of a row's vector."""
        return self.law == "laplace"

    @property
    def step_mu_squared(self) -> Fraction:
        """μ² of one noisy sum over a batch that holds the row that differs: Δ²/σ²."""
        return self.sensitivity.moved_squared / self.spread**2

    @property
    def shown(self) -> int:
        """How many vectors the answer holds."""
        return -(-self.steps // self.every) + 1

    @property
    def variance(self) -> float:
        """Variance of the noise of a coordinate of a sum."""
        return float((2 if self.pure else 1) * self.spread**2 + Fraction(1, 12))

    def fits(self, size: int) -> bool:
        """Whether it descends in as many coordinates as a row has columns: no more are there."""
        return len(self.start) == size

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "spread": fraction_text(self.spread),
            "gap": None if self.gap is None else fraction_text(self.gap),
            "size": self.size,
            "steps": self.steps,
            "rate": self.rate,
            "start": [str(value) for value in self.start],
            "limit": self.limit,
            "every": self.every,
            "averaged": self.averaged,
            "delta": fraction_text(self.delta),
            # what was not there in earlier versions is written where it says something
            **({"law": self.law} if self.pure else {}),
            **({"momentum": self.momentum} if self.momentum else {}),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        sensitivity = sensitivity_from_dict(record["sensitivity"])
        if not isinstance(sensitivity, OneRow):
            raise _bad("it needs to know what one row adds")
        return cls(
            sensitivity,
            stored_fraction(record["spread"]),
            None if record["gap"] is None else stored_fraction(record["gap"]),
            record["size"],
            record["steps"],
            record["rate"],
            tuple(int(value) for value in record["start"]),
            record["limit"],
            record["every"],
            record["averaged"],
            stored_fraction(record["delta"]),
            record.get("law", "gaussian"),
            record.get("momentum", 0.0),
        )


def _whole(value: object, low: int, high: int | None) -> bool:
    return type(value) is int and high is not None and low <= value <= high


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "NoisySGD",
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.models",
    )
