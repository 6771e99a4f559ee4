"""Several mechanisms on one statistic, one after another, in one release: a choice, then a search that starts from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.sensitivity import Sensitivity
from discreet.specs.mechanisms.mechanism import Mechanism


@plain.kept()
@dataclass(frozen=True, slots=True)
class InTurn:
    """Runs its parts in turn on the same statistic; a search among them sees the integers of the parts before it.

    The answer's integers are, for every part, their number and then they themselves (`split` takes them apart).
    """

    parts: tuple[Mechanism, ...]
    kind: ClassVar[str] = "in turn"
    reads: ClassVar[str] = "tally"

    def __post_init__(self) -> None:
        if not self.parts or any(part.reads != self.reads or isinstance(part, InTurn) or part.sensitivity != self.parts[0].sensitivity for part in self.parts):
            raise InvalidParameter("InTurn", "its parts do not read one tally under one relation", "the sampler and the accountant both read this object", "build it with the public functions")

    @property
    def sensitivity(self) -> Sensitivity:
        return self.parts[0].sensitivity

    def split(self, integers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """The integers of each part."""
        parts, start = [], 0
        while start < len(integers):
            parts.append(tuple(integers[start + 1 : start + 1 + integers[start]]))
            start += 1 + integers[start]
        return parts

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [part.to_dict() for part in self.parts]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> InTurn:
        from discreet.specs.mechanisms import mechanism_from_dict

        return cls(tuple(mechanism_from_dict(part) for part in record["parts"]))
