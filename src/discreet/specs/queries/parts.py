"""How many of m secret parts of the data a test rejects in:
any test becomes private (reference.md K1, K2).

The test is the caller's own function. It runs beside the data, with the caller's rights: it must be
trusted not to write its data anywhere and to depend on nothing but its arguments. Nothing but the
number of rejections leaves, and that with noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import stored_fraction
from discreet.neighbors import Neighbors
from discreet.sensitivity import L1, L2
from discreet.specs.queries.keys import Key, cell_count, key_from_dict

MOST_PARTS = 1 << 16
PValue = Callable[..., float]


@dataclass(frozen=True, slots=True)
class PartsPlan:
    """Run `test` on the columns of each of `parts` disjoint random parts;
    the number of p-values ≤ `level`.
    """

    keys: tuple[Key, ...]
    columns: tuple[str, ...]
    parts: int
    level: Fraction
    test: PValue


@plain.kept(functions=("test",))
@dataclass(frozen=True, slots=True)
class PartRejections:
    """The number of parts in which a test rejects at `level`.

    Theorem.  One unit moves the number by at most 1, under every relation, for every test that is a
              function of its arguments alone; ℓ₁ = ℓ₂ = 1.
    Proof.    Units are put into parts at random, without looking at data: under row-level Replace
              by a random permutation of the row numbers, else every unit on its own. Couple the
              assignments of neighbours so that all other units sit in the same parts. Then one part
              differs, hence one outcome. For every assignment the count with noise satisfies the
              guarantee, and so does the mixture over assignments, because hockey-stick divergences
              and trade-off functions are jointly convex. A test that fails or gives no number
              counts as no rejection.
    Checked.  tests/claims/test_parts.py
    """

    keys: tuple[Key, ...]
    columns: tuple[str, ...]
    parts: int
    level: Fraction
    name: str
    test: PValue | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[str] = "part rejections"
    gives: ClassVar[str] = "vector"
    size: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (
            isinstance(self.parts, bool)
            or not isinstance(self.parts, int)
            or not 1 <= self.parts <= MOST_PARTS
        ):
            raise InvalidParameter(
                "parts=",
                f"it is no whole number from 1 to {MOST_PARTS}",
                "each part is one run of the test",
                "pass for example parts=20",
            )
        if not isinstance(self.level, Fraction) or not 0 < self.level < 1:
            raise InvalidParameter(
                "inner=",
                "it is not between 0 and 1",
                "a part counts where its p-value is at most this",
                "pass for example inner=0.2",
            )
        if not self.columns or cell_count(self.keys) != 1:
            raise InvalidParameter(
                "columns=",
                "no column, or more than one cell",
                "the test is run on the columns of one set of rows",
                "name the columns that the test reads",
            )

    @property
    def optional(self) -> bool:
        return bool(self.keys)

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        return L1(Fraction(1)), L2(Fraction(1))

    def plan(self) -> PartsPlan:
        if self.test is None:
            raise InvalidParameter(
                "a test of parts",
                "its function is not here",
                "a stored question keeps the name of its function, not the function",
                "ask again with the function",
            )
        return PartsPlan(self.keys, self.columns, self.parts, self.level, self.test)

    def assemble(self, rejections: int) -> list[int]:
        return [int(rejections)]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "columns": list(self.columns),
            "parts": self.parts,
            "level": str(self.level),
            "name": self.name,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PartRejections:
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(record["columns"]),
            record["parts"],
            stored_fraction(record["level"]),
            record["name"],
        )
