"""A centre first, then mechanisms that read how far the values lie from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.sensitivity import Sensitivity
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice


@plain.kept()
@dataclass(frozen=True, slots=True)
class AboutCentre:
    """Chooses a cell of the grid as centre, folds the tally there (a value in cell v counts in cell |v − centre|), and runs `distances` on that.

    The answer's integers are 1, the centre, and those of `distances`.
    """

    centre: QuantileChoice
    distances: InTurn
    kind: ClassVar[str] = "about a centre"
    reads: ClassVar[str] = "tally"

    def __post_init__(self) -> None:
        if type(self.centre) is not QuantileChoice or type(self.distances) is not InTurn or self.centre.sensitivity != self.distances.sensitivity:
            raise InvalidParameter("AboutCentre", "its parts do not read one tally under one relation", "the sampler and the accountant both read this object", "build it with dp.mad")

    @property
    def sensitivity(self) -> Sensitivity:
        return self.centre.sensitivity

    def split(self, integers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The integers of the centre and of each part of `distances`."""
        return [tuple(integers[1:2]), *self.distances.split(integers[2:])]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "centre": self.centre.to_dict(), "distances": self.distances.to_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> AboutCentre:
        return cls(QuantileChoice.from_dict(record["centre"]), InTurn.from_dict(record["distances"]))
