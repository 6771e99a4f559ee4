"""Thresholdout: a threshold that answers with a noisy number each time that it is exceeded.

It reads three whole numbers a question (specs/holdout/surprises.py): a score, a number to answer
with, and a size. `above` decides on the score; where it says 1, the number is answered with the
noise of `answer`. `count`, where there is one, is the noise of the size, which is answered once.

    above    AboveThreshold, for so many surprises
    answer   GeometricNoise or GaussianNoise, the price of one answer
    count    the same of the number of rows, where that is private
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.sensitivity import L1, L2, LInf
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.selection import AboveThreshold

Noise = GeometricNoise | GaussianNoise
_LAWS: dict[str, type[Noise]] = {law.kind: law for law in (GeometricNoise, GaussianNoise)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Thresholdout:
    """At most `above.positives` noisy numbers, and a 0 for every other question.

    All three numbers move by at most the one Δ of `above`.
    """

    above: AboveThreshold
    answer: Noise
    count: Noise | None = None
    kind: ClassVar[str] = "thresholdout"
    reads: ClassVar[str] = "surprise"

    def __post_init__(self) -> None:
        if type(self.above) is not AboveThreshold:
            raise _bad("it has no noisy threshold")
        for noise in (self.answer, *(() if self.count is None else (self.count,))):
            if type(noise) not in _LAWS.values():
                raise _bad("its answers have neither geometric nor Gaussian noise")
            if noise.sensitivity != _norm(type(noise), self.above.sensitivity):
                raise _bad("its noises are calibrated to different sensitivities")

    @property
    def sensitivity(self) -> LInf:
        return self.above.sensitivity

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "above": self.above.to_dict(),
            "answer": self.answer.to_dict(),
            "count": None if self.count is None else self.count.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        count = record["count"]
        return cls(
            AboveThreshold.from_dict(record["above"]),
            _LAWS[record["answer"]["kind"]].from_dict(record["answer"]),
            None if count is None else _LAWS[count["kind"]].from_dict(count),
        )


def _norm(law: type, sensitivity: LInf) -> L1 | L2:
    """What one number that moves so far says in the norm of a law."""
    moved: Fraction = sensitivity.value
    return L1(moved) if law is GeometricNoise else L2(moved**2)


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "Thresholdout",
        found,
        "the sampler and the accountant both read this object",
        "open it with dp.holdout",
    )
