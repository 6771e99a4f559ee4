"""What a function of the caller's own gives on each of m secret parts of the data, asked about as
if it were a table of m rows (reference.md K1, K2; docs/theory/aggregation.md).

The function runs beside the data, with the caller's rights, in a process of its own for each part.
It must be trusted to depend on nothing but its arguments and not to write them anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace
from discreet.schema import Boolean, Category, Column, Integer, Real, Schema, column_from_dict
from discreet.sensitivity import Sensitivity
from discreet.specs.aggregation.friends import ClippedSum, Friends
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.parts import MOST_PARTS
from discreet.specs.queries.query import Query
from discreet.specs.queries.scores import CandidateScores
from discreet.specs.queries.sums import Sum

MOST_OUTPUTS = 1 << 12
_ABOUT: dict[str, type[Query]] = {
    kind.kind: kind for kind in (GridCounts, Moments, CandidateScores, Sum, Friends, ClippedSum)
}


@dataclass(frozen=True, slots=True)
class OutputsPlan:
    """Run `function` on the columns of each of `parts` disjoint random parts; `about` is the plan
    for the table of what it gave, with the columns `outputs`.
    """

    keys: tuple[Key, ...]
    columns: tuple[str, ...]
    parts: int
    outputs: Schema
    function: Callable[..., Any]
    about: Any


@plain.kept(functions=("function",))
@dataclass(frozen=True, slots=True)
class PartOutputs:
    """A question `about` the table of what a function gives on m random parts: a row for each part,
    a column for each declared output.

    Theorem.  Under every relation, and for every function of its arguments alone, it has the
              sensitivity of `about` under row-level Replace with m rows.
    Proof.    Units are put into parts without looking at data. Couple the assignments of neighbours
              so that all other units sit in the same parts. One part differs, and each row of the
              table is a function of its part: a failure, a number that is none, a wrong number of
              them gives the row of declared missing values. So the tables differ in one row, and
              each has m. For every assignment the mechanism keeps its guarantee; hockey-stick
              divergences and trade-off functions are jointly convex, so that the mixture over
              assignments keeps it too.
    Checked.  tests/claims/test_part_outputs.py
    """

    keys: tuple[Key, ...]
    columns: tuple[str, ...]
    parts: int
    names: tuple[str, ...]
    declared: tuple[Column, ...]
    about: Query
    name: str
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[str] = "part outputs"

    def __post_init__(self) -> None:
        if type(self.parts) is not int or not 1 <= self.parts <= MOST_PARTS:
            raise InvalidParameter(
                "parts=",
                f"it is no whole number from 1 to {MOST_PARTS}",
                "each part is one run of the function",
                "pass for example parts=100, or leave it out",
            )
        if not self.columns or cell_count(self.keys) != 1:
            raise InvalidParameter(
                "columns=",
                "no column, or more than one cell",
                "the function is run on the columns of one set of rows",
                "name the columns that the function reads",
            )
        if (
            not 1 <= len(self.names) == len(self.declared) <= MOST_OUTPUTS
            or len(set(self.names)) != len(self.names)
            or not all(
                isinstance(one, Real | Integer | Boolean | Category) for one in self.declared
            )
        ):
            raise _bad_output("it declares no numbers, no levels, or too many")
        if any(
            getattr(one, "missing", 0) is None for one in self.declared if one.kind != "category"
        ):
            raise _bad_output("a number does not say what counts where the function gives none")
        if not plain.among(type(self.about), _ABOUT.values()):
            raise _bad_output("no proven question is asked about it")

    if TYPE_CHECKING:
        gives: ClassVar[str]  # of every other query it is one for the class
    else:

        @property
        def gives(self) -> str:
            """What the question about the table gives."""
            return self.about.gives

    @property
    def size(self) -> int:
        return self.about.size

    @property
    def optional(self) -> bool:
        return bool(self.keys)

    @property
    def outputs(self) -> Schema:
        """The columns of the table."""
        return Schema(dict(zip(self.names, self.declared, strict=True)))

    def sensitivity(self, neighbors: Neighbors) -> Sensitivity | tuple[Sensitivity, ...]:
        return self.about.sensitivity(Replace())

    def plan(self) -> OutputsPlan:
        if self.function is None:
            raise InvalidParameter(
                "a function on parts",
                "it is not here",
                "a stored question keeps the name of its function, not the function",
                "ask again with the function",
            )
        return OutputsPlan(
            self.keys, self.columns, self.parts, self.outputs, self.function, self.about.plan()
        )

    def assemble(self, result: Any) -> Any:
        return self.about.assemble(result)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "keys": [key.to_dict() for key in self.keys],
            "columns": list(self.columns),
            "parts": self.parts,
            "outputs": [[name, one.to_dict()] for name, one in self.outputs.items()],
            "about": self.about.to_dict(),
            "name": self.name,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PartOutputs:
        about = record["about"]
        return cls(
            tuple(key_from_dict(key) for key in record["keys"]),
            tuple(record["columns"]),
            record["parts"],
            tuple(name for name, _ in record["outputs"]),
            tuple(column_from_dict(one) for _, one in record["outputs"]),
            _ABOUT[about["kind"]].from_dict(about),
            record["name"],
        )


def _bad_output(found: str) -> InvalidParameter:
    return InvalidParameter(
        "output=",
        found,
        "bounds set the noise, and a part whose function fails must count as some public value",
        "pass for example output=dp.Real(0, 5), dp.Category(['a', 'b']), or a mapping from names "
        "to numbers",
    )
