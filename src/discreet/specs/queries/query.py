"""What every statistic says of itself."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from discreet.neighbors import Neighbors
from discreet.sensitivity import Sensitivity
from discreet.specs.queries.keys import Key


class Query(Protocol):
    """A statistic: its sensitivity under a relation, the plan that an engine carries out, and how
    the answer becomes the statistic.

    `gives` is what the statistic is: "vector" (integers), "matrix" (the upper triangle of a
    symmetric one, and further integers), "histogram" (counts on a grid), "keys" or "rows" (a reader
    of sampled rows); a mechanism must read the same.
    """

    kind: ClassVar[str]
    gives: ClassVar[str]

    @property
    def keys(self) -> tuple[Key, ...]: ...

    @property
    def optional(self) -> bool:
        """Whether a row may count nowhere."""
        ...

    @property
    def size(self) -> int: ...

    def sensitivity(self, neighbors: Neighbors) -> Sensitivity | tuple[Sensitivity, ...]:
        """The sensitivities that a mechanism may be calibrated to."""
        ...

    def plan(self) -> Any: ...

    def assemble(self, result: Any) -> Any: ...

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self: ...
