"""Choosing among declared candidates by private whole-number scores,
and asking which scores are above a public threshold.

Every spec reads a vector of integer scores, greater is better, of which one neighbour moves each
coordinate by at most Δ (`LInf`). `span` is Δ where all coordinates move the same way, else 2Δ.
The output is one or several indices (0, 1, …), or zeros and ones.

    ExponentialChoice  P(j) ∝ exp(rate·score_j)
    PermuteAndFlip     a uniform one of the candidates whose coins of probability
                       exp(−rate·(best − score_j)) fell heads
    NoisyMax           the greatest score + two-sided geometric noise of scale `spread`;
                       of equal ones the first
    TopChoices         `count` choices one after another, each among the candidates that are left
    AboveThreshold     score_i + noise of `query_spread` ≥ threshold + noise of `threshold_spread`?,
                       until it was so `positives` times

The theorems are in accounting.loss_selection and docs/theory/selection.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import LARGEST_BITS, fraction_text, is_float, stored_fraction
from discreet.sensitivity import LInf, sensitivity_from_dict
from discreet.specs.mechanisms.additive import LARGEST_STEPS

LARGEST_COUNT = 1 << 12
LARGEST_THRESHOLD = 1 << 62
STEPS = ("exponential", "permute and flip")


@plain.kept()
@dataclass(frozen=True, slots=True)
class ExponentialChoice:
    """One candidate, P(j) ∝ exp(rate·score_j): the exponential mechanism (reference.md B6)."""

    sensitivity: LInf
    rate: Fraction
    kind: ClassVar[str] = "exponential choice"
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _checked_sensitivity(self, self.sensitivity)
        _checked_rate(self, self.rate)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "rate": fraction_text(self.rate),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(_scores_sensitivity(record), stored_fraction(record["rate"]))


@plain.kept()
@dataclass(frozen=True, slots=True)
class PermuteAndFlip:
    """One candidate: flip a coin of probability exp(−rate·(best − score_j)) for each, take a
    uniform one of those that fell heads.
    """

    sensitivity: LInf
    rate: Fraction
    kind: ClassVar[str] = "permute and flip"
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _checked_sensitivity(self, self.sensitivity)
        _checked_rate(self, self.rate)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "rate": fraction_text(self.rate),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(_scores_sensitivity(record), stored_fraction(record["rate"]))


@plain.kept()
@dataclass(frozen=True, slots=True)
class NoisyMax:
    """The candidate whose score plus two-sided geometric noise, P(k) ∝ exp(−|k|/spread),
    is greatest; of equal ones the first.
    """

    sensitivity: LInf
    spread: Fraction
    kind: ClassVar[str] = "noisy max"
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _checked_sensitivity(self, self.sensitivity)
        _checked_spread(self, self.spread)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "spread": fraction_text(self.spread),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(_scores_sensitivity(record), stored_fraction(record["spread"]))


@plain.kept()
@dataclass(frozen=True, slots=True)
class TopChoices:
    """`count` candidates one after another, each by an exponential choice or permute-and-flip among
    those left; the order is released.
    """

    sensitivity: LInf
    rate: Fraction
    count: int
    step: str = STEPS[0]
    kind: ClassVar[str] = "top choices"
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _checked_sensitivity(self, self.sensitivity)
        _checked_rate(self, self.rate)
        _checked_count(self, self.count)
        if self.step not in STEPS:
            raise _bad(self, f"its step is none of {', '.join(STEPS)}")

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "rate": fraction_text(self.rate),
            "count": self.count,
            "step": self.step,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        return cls(
            _scores_sensitivity(record),
            stored_fraction(record["rate"]),
            record["count"],
            record["step"],
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """Reads scores in order: 1 where score + noise ≥ threshold + noise, else 0;
    stops after the last of `positives` ones.

    `renewed` says that the noise of the threshold is drawn anew after every 1,
    else one draw serves all.
    """

    sensitivity: LInf
    threshold: int
    positives: int
    threshold_spread: Fraction
    query_spread: Fraction
    renewed: bool
    kind: ClassVar[str] = "above threshold"
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _checked_sensitivity(self, self.sensitivity)
        _checked_spread(self, self.threshold_spread)
        _checked_spread(self, self.query_spread)
        _checked_count(self, self.positives)
        if (
            isinstance(self.threshold, bool)
            or not isinstance(self.threshold, int)
            or abs(self.threshold) > LARGEST_THRESHOLD
        ):
            raise _bad(self, "its threshold is no whole number of ordinary size")
        if not isinstance(self.renewed, bool):
            raise _bad(self, "renewed is neither True nor False")

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "sensitivity": self.sensitivity.to_dict(),
            "threshold": str(self.threshold),
            "positives": self.positives,
            "threshold_spread": fraction_text(self.threshold_spread),
            "query_spread": fraction_text(self.query_spread),
            "renewed": self.renewed,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        spreads = (
            stored_fraction(record["threshold_spread"]),
            stored_fraction(record["query_spread"]),
        )
        return cls(
            _scores_sensitivity(record),
            int(record["threshold"]),
            record["positives"],
            *spreads,
            record["renewed"],
        )


Choice = ExponentialChoice | PermuteAndFlip | NoisyMax | TopChoices
SELECTION: tuple[type[Choice | AboveThreshold], ...] = (
    ExponentialChoice,
    PermuteAndFlip,
    NoisyMax,
    TopChoices,
    AboveThreshold,
)


def _scores_sensitivity(record: dict[str, Any]) -> LInf:
    sensitivity = sensitivity_from_dict(record["sensitivity"])
    assert isinstance(sensitivity, LInf), (
        "scores have the largest change of one of them as their sensitivity"
    )
    return sensitivity


def _checked_sensitivity(mechanism: object, sensitivity: object) -> None:
    if type(sensitivity) is not LInf:
        raise _bad(mechanism, "it needs an LInf sensitivity")


def _checked_rate(mechanism: object, rate: object) -> None:
    if (
        not isinstance(rate, Fraction)
        or rate <= 0
        or max(rate.numerator.bit_length(), rate.denominator.bit_length()) > LARGEST_BITS
    ):
        raise _bad(mechanism, "its rate must be a positive Fraction of ordinary size")


def _checked_spread(mechanism: object, spread: object) -> None:
    if not isinstance(spread, Fraction) or not 0 < spread <= LARGEST_STEPS or not is_float(spread):
        raise _bad(
            mechanism, "its spread must be a Fraction in (0, 2**50] that is a float64 exactly"
        )


def _checked_count(mechanism: object, count: object) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= LARGEST_COUNT:
        raise _bad(mechanism, f"it must choose a whole number from 1 to {LARGEST_COUNT}")


def _bad(mechanism: object, found: str) -> InvalidParameter:
    return InvalidParameter(
        type(mechanism).__name__,
        found,
        "the sampler and the accountant both read this object",
        "ask through dp.select, dp.mode, dp.top or dp.above_threshold",
    )
