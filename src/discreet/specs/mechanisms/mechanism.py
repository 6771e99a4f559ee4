"""What every mechanism says of itself."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from discreet.sensitivity import Sensitivity


class Mechanism(Protocol):
    """A frozen description of what is done to a statistic;
    a sampler (noise) and a theorem (accounting) read it.

    `reads` is what the statistic must be: "vector" (integers), "matrix" (the upper triangle of a
    symmetric one, and further integers), "histogram" (counts on a grid), "keys" (counts of values
    that nobody declared) or "rows" (a reader of sampled rows).
    """

    kind: ClassVar[str]
    reads: ClassVar[str]

    @property
    def sensitivity(self) -> Sensitivity: ...

    def to_dict(self) -> dict[str, Any]: ...

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self: ...


@runtime_checkable
class OfSomeSizes(Protocol):
    """A mechanism that cannot read statistics of every size, and says which it reads."""

    def fits(self, size: int) -> bool:
        """Whether it reads a statistic of so many numbers (so many columns, for rows)."""
        ...


@runtime_checkable
class OfSomeRows(Protocol):
    """A mechanism that would not end, within reason, over some numbers of rows, and says which."""

    def ends(self, rows: int) -> bool:
        """Whether it ends over so many rows."""
        ...


def ends_over(mechanism: Mechanism, rows: int | None) -> bool:
    """Whether a mechanism ends over the public number of rows; where it is private, or the
    mechanism does not say, it is taken to.
    """
    return rows is None or not isinstance(mechanism, OfSomeRows) or mechanism.ends(rows)


def fits_in_size(mechanism: Mechanism, size: int) -> bool:
    """Whether a mechanism reads a statistic of so many numbers; one that does not say reads any."""
    return not isinstance(mechanism, OfSomeSizes) or mechanism.fits(size)
