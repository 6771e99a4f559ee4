"""Several mechanisms on one histogram, one after another, in one release.

InTurn reads the same histogram again: a choice, then a search that starts from it. AboutCentre
chooses a centre first, and reads how far the values lie from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.sensitivity import Sensitivity
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch

_KINDS: dict[str, type[Mechanism]] = {
    kind.kind: kind for kind in (QuantileChoice, SmoothNoise, ProposeTestRelease, CountSearch)
}


@plain.kept()
@dataclass(frozen=True, slots=True)
class InTurn:
    """Runs its stages in turn on the same statistic;
    a search among them sees the integers of the stages before it.

    The answer's integers are, for every stage,
    their number and then they themselves (`split` takes them apart).
    """

    stages: tuple[Mechanism, ...]
    kind: ClassVar[str] = "in turn"
    reads: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        if not self.stages or any(
            type(stage) is not _KINDS.get(stage.kind)
            or stage.sensitivity != self.stages[0].sensitivity
            for stage in self.stages
        ):
            raise InvalidParameter(
                "InTurn",
                "its parts do not read one histogram under one relation",
                "the sampler and the accountant both read this object",
                "build it with the public functions",
            )

    @property
    def sensitivity(self) -> Sensitivity:
        return self.stages[0].sensitivity

    def split(self, integers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The integers of each stage."""
        stages, start = [], 0
        while start < len(integers):
            stages.append(tuple(integers[start + 1 : start + 1 + integers[start]]))
            start += 1 + integers[start]
        return stages

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [stage.to_dict() for stage in self.stages]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> InTurn:
        return cls(tuple(_KINDS[stage["kind"]].from_dict(stage) for stage in record["parts"]))


@plain.kept()
@dataclass(frozen=True, slots=True)
class AboutCentre:
    """Chooses a cell of the grid as centre, folds the histogram there (a value in cell v counts in
    cell |v − centre|), and runs `distances` on that.

    The answer's integers are 1, the centre, and those of `distances`.
    """

    centre: QuantileChoice
    distances: InTurn
    kind: ClassVar[str] = "about a centre"
    reads: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        if (
            type(self.centre) is not QuantileChoice
            or type(self.distances) is not InTurn
            or self.centre.sensitivity != self.distances.sensitivity
        ):
            raise InvalidParameter(
                "AboutCentre",
                "its parts do not read one histogram under one relation",
                "the sampler and the accountant both read this object",
                "build it with dp.mad",
            )

    @property
    def sensitivity(self) -> Sensitivity:
        return self.centre.sensitivity

    def split(self, integers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The integers of the centre and of each stage of `distances`."""
        return [tuple(integers[1:2]), *self.distances.split(integers[2:])]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "centre": self.centre.to_dict(),
            "distances": self.distances.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> AboutCentre:
        return cls(
            QuantileChoice.from_dict(record["centre"]), InTurn.from_dict(record["distances"])
        )
