"""What is known of a procedure as a whole: the best of a random number of hidden runs, and a
guarantee that is stated for what was done elsewhere.

`BestOf` draws K, makes K runs that are private each by itself, and answers with the run of the
greatest score; of equal ones with the first. K has a truncated negative binomial law:

    P(K = k) ∝ (1−γ)^k·Π_{l<k} (l+η)/(l+1)   for k = 1, 2, …      (η > 0)
    P(K = k) ∝ (1−γ)^k/k                                          (η = 0: the logarithmic law)

and K = 1 where γ = 1. Nothing of the other runs is answered, nor how many there were.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import LARGEST_BITS, fraction_text, stored_fraction
from discreet.sensitivity import PrivateRuns, sensitivity_from_dict

LARGEST_ETA = 8
SMALLEST_GAMMA = Fraction(1, 1 << 20)


@plain.kept()
@dataclass(frozen=True, slots=True)
class BestOf:
    """The best of K runs; `delta` > 0 says that it is charged as (ε, δ), else by its μ or its ε."""

    sensitivity: PrivateRuns
    eta: Fraction
    gamma: Fraction
    delta: Fraction = Fraction(0)
    kind: ClassVar[str] = "best of"
    reads: ClassVar[str] = "runs"

    def __post_init__(self) -> None:
        if type(self.sensitivity) is not PrivateRuns:
            raise _bad(self, "it needs to know what one run tells")
        for name in ("eta", "gamma", "delta"):
            number = getattr(self, name)
            size = max(number.numerator.bit_length(), number.denominator.bit_length())
            if not isinstance(number, Fraction) or size > LARGEST_BITS:
                raise _bad(self, f"its {name} is no Fraction of ordinary size")
        if not 0 <= self.eta <= LARGEST_ETA or not SMALLEST_GAMMA <= self.gamma <= 1:
            raise _bad(self, f"η is not from 0 to {LARGEST_ETA}, or γ not from 2**-20 to 1")
        if not 0 <= self.delta < 1 or (self.delta and self.sensitivity.epsilon):
            raise _bad(self, "its delta is no probability, or stands beside pure runs")

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "eta": fraction_text(self.eta),
            "gamma": fraction_text(self.gamma),
            "delta": fraction_text(self.delta),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        sensitivity = sensitivity_from_dict(record["sensitivity"])
        assert isinstance(sensitivity, PrivateRuns), "runs are private each by itself"
        numbers = (stored_fraction(record[name]) for name in ("eta", "gamma", "delta"))
        return cls(sensitivity, *numbers)


@plain.kept()
@dataclass(frozen=True, slots=True)
class StatedGuarantee:
    """Something that was made of the data elsewhere, by what it is said to satisfy: it draws
    nothing, and no query gives what it reads.
    """

    epsilon: Fraction = Fraction(0)
    mu_squared: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    kind: ClassVar[str] = "stated guarantee"
    reads: ClassVar[str] = "nothing"

    def __post_init__(self) -> None:
        known = [self.epsilon, self.mu_squared, self.rho]
        if not all(isinstance(number, Fraction) and number >= 0 for number in known):
            raise _bad(self, "one of its numbers is no Fraction of 0 or more")
        if sum(number > 0 for number in known) != 1 or not 0 <= self.delta < 1:
            raise _bad(self, "it does not state one of ε, μ² and ρ, with a δ below 1")

    @property
    def sensitivity(self) -> NoReturn:
        raise _bad(self, "it reads no statistic")

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: fraction_text(getattr(self, name)) for name in type(self).__slots__}
        return {"kind": self.kind, **numbers}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(*(stored_fraction(record[name]) for name in cls.__slots__))


PROCEDURES: tuple[type[BestOf | StatedGuarantee], ...] = (BestOf, StatedGuarantee)


def _bad(mechanism: object, found: str) -> InvalidParameter:
    return InvalidParameter(
        type(mechanism).__name__,
        found,
        "the sampler and the accountant both read this object",
        "ask through dp.tune or session.book",
    )
