"""What is protected: the two neighbour relations, at the level of rows or of units.

`Replace`    one row (or one unit's rows) is exchanged for another. At row level the number of rows
             is public; with ``unit=`` only the number of *units* is, that is of the different ids
             in the data: a unit has at least one row before and after (under another id, perhaps),
             of which 0 … max_rows count for a question.
`AddRemove`  one row (or one unit with all its rows) is added or taken away. No count is public.

A unit is what its id says: rows with the same id are one unit; whoever shares an id with others is
protected with them as one unit, not alone. Rows without an id count nowhere.

There is no default: a guarantee says nothing until it names its relation (reference.md A1, A2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter, NeighborsMissing

LARGEST_MAX_ROWS = 1 << 20


@plain.kept()
@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Common part of the two relations; use `Replace` or `AddRemove`."""

    unit: str | None = None
    max_rows: int | None = None
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if type(self) is Relation:
            raise NeighborsMissing()
        if self.unit is None:
            if self.max_rows is not None:
                raise InvalidParameter(
                    "max_rows=",
                    "given without unit=",
                    "it bounds how many rows one unit may contribute",
                    "name the column that identifies a unit, unit=..., or leave max_rows out",
                )
            return
        if not isinstance(self.unit, str) or not self.unit:
            raise InvalidParameter(
                "unit=",
                "not a column name",
                "a unit is identified by one column",
                "pass the column's name",
            )
        if (
            isinstance(self.max_rows, bool)
            or not isinstance(self.max_rows, int)
            or not 1 <= self.max_rows <= LARGEST_MAX_ROWS
        ):
            raise InvalidParameter(
                "max_rows=",
                f"it must be a whole number from 1 to {LARGEST_MAX_ROWS} when unit= is given",
                "noise is proportional to the number of rows that one unit may contribute",
                "pass the largest number of rows of one unit that should count, for example "
                "max_rows=3",
            )

    @property
    def rows(self) -> int:
        """How many rows one protected unit can contribute."""
        return self.max_rows or 1

    @property
    def row_count_is_public(self) -> bool:
        return False

    @property
    def unit_count_is_public(self) -> bool:
        return False

    def to_dict(self) -> dict[str, Any]:
        return {"relation": self.name, "unit": self.unit, "max_rows": self.max_rows}

    def __str__(self) -> str:
        inner = f"unit={self.unit!r}, max_rows={self.max_rows}" if self.unit else ""
        return f"{type(self).__name__}({inner})"


@plain.kept()
@dataclass(frozen=True, slots=True, kw_only=True)
class Replace(Relation):
    """One row, or one unit's rows, exchanged for another.

    Formula.
            two tables are neighbours where one row (or all rows of one unit) differs

            unit      the column that says whose row it is
            max_rows  of one unit that count; which of them is chosen at random

    Validity. The number of rows (of units) is public.
    Example.
            print(dp.Replace(), dp.Replace(unit="person", max_rows=4))
    See also. `dp.AddRemove`; docs/deciding/choosing.md.
    """

    name: ClassVar[str] = "replace"

    @property
    def row_count_is_public(self) -> bool:
        return self.unit is None

    @property
    def unit_count_is_public(self) -> bool:
        return True


@plain.kept()
@dataclass(frozen=True, slots=True, kw_only=True)
class AddRemove(Relation):
    """One row, or one unit with all its rows, added or taken away.

    Formula.
            two tables are neighbours where one has one row (or one unit's rows) more

            unit      the column that says whose row it is
            max_rows  of one unit that count; which of them is chosen at random

    Validity. Nothing is public, not even the number of rows.
    Example.
            print(dp.AddRemove(), dp.AddRemove(unit="person", max_rows=4))
    See also. `dp.Replace`; docs/deciding/choosing.md.
    """

    name: ClassVar[str] = "add_remove"


Neighbors = Replace | AddRemove


def require_neighbors(value: object) -> Neighbors:
    """A new relation like `value` if it is one, else the error that says how to give one."""
    # a subclass could change what the proofs read
    if type(value) is Replace or type(value) is AddRemove:
        return plain.rebuilt(value)
    raise _no_relation(value)


def _no_relation(value: object) -> NeighborsMissing:
    """The refusal of what is no relation; a text or a class may name one."""
    if value is None:
        return NeighborsMissing()
    if plain.derives(type(value), str):
        word = "".join(filter(str.isalpha, str.__str__(value))).casefold()
        meant = next(
            (one.__name__ for one in (Replace, AddRemove) if word == one.__name__.casefold()), ""
        )
        return NeighborsMissing("it is text, and not a relation", meant)
    if value is Replace or value is AddRemove:
        meant = "Replace" if value is Replace else "AddRemove"
        return NeighborsMissing(f"it is the class {meant} itself, which has to be called", meant)
    return NeighborsMissing(f"a {plain.kind_name(value)} is not a neighbour relation")


def neighbors_from_dict(record: dict[str, Any]) -> Neighbors:
    kinds: dict[str, type[Replace] | type[AddRemove]] = {
        "replace": Replace,
        "add_remove": AddRemove,
    }
    return kinds[record["relation"]](unit=record["unit"], max_rows=record["max_rows"])
