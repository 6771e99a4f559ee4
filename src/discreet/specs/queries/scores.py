"""One whole-number score for each declared candidate:
how many rows satisfy it, or the sum of a column over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import LInf, score_sensitivity
from discreet.specs.queries.keys import LARGEST_CELLS, Key, cell_count, key_from_dict
from discreet.specs.queries.plans import Factor, SumsPlan, factor_from_dict

LARGEST_GROUPS = 1 << 12


@dataclass(frozen=True, slots=True)
class ScoresPlan:
    """Several plans, one after another: an engine's answers to each, in order."""

    plans: tuple[SumsPlan, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted({name for plan in self.plans for name in plan.columns}))


@plain.kept()
@dataclass(frozen=True, slots=True)
class CandidateGroup:
    """One candidate for each cell of `keys` (a filter has one):
    the number of its rows, or the sum of `factor` over them.

    A row adds code + offset to a sum, the column's value on its grid in steps
    (offset = centre/step, rounded: at most half a step a row).
    """

    keys: tuple[Key, ...]
    factor: Factor | None = None

    @property
    def size(self) -> int:
        return cell_count(self.keys)

    @property
    def optional(self) -> bool:
        """Whether a row may add nothing here; a count of all rows is one too:
        it is compared with counts of some.
        """
        return bool(self.keys) or self.factor is None

    @property
    def offset(self) -> int:
        return (
            0
            if self.factor is None
            else round(
                Fraction(self.factor.encoding.center) * Fraction(self.factor.encoding.per_unit)
            )
        )

    @property
    def bounds(self) -> tuple[int, int]:
        """The range of what one counted row adds."""
        return (
            (1, 1)
            if self.factor is None
            else (self.factor.encoding.low + self.offset, self.factor.encoding.high + self.offset)
        )

    @property
    def plan(self) -> SumsPlan:
        return SumsPlan(self.keys, ((),) if self.factor is None else ((), (self.factor,)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "keys": [key.to_dict() for key in self.keys],
            "factor": None if self.factor is None else self.factor.to_dict(),
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class CandidateScores:
    """The scores of all candidates of all `groups`, in order.

    Candidates may overlap; all are counts, or all are sums in the same unit.
    """

    groups: tuple[CandidateGroup, ...]
    kind: ClassVar[str] = "scores"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if not 1 <= len(self.groups) <= LARGEST_GROUPS or not all(
            type(group) is CandidateGroup for group in self.groups
        ):
            raise InvalidParameter(
                "candidates",
                f"there must be 1 to {LARGEST_GROUPS} of them",
                "each is one pass over the data",
                "declare fewer, or name a Category column: its levels take one pass",
            )
        if (
            len(
                {
                    None if group.factor is None else group.factor.encoding.per_unit
                    for group in self.groups
                }
            )
            > 1
        ):
            raise InvalidParameter(
                "candidates",
                "their scores are in different units",
                "scores are compared with each other",
                "count rows for all, or sum columns on one grid",
            )
        if self.size > LARGEST_CELLS:
            raise InvalidParameter(
                "candidates",
                f"{self.size} of them",
                f"at most {LARGEST_CELLS} scores fit in one release",
                "declare fewer",
            )

    @property
    def size(self) -> int:
        return sum(group.size for group in self.groups)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(key for group in self.groups for key in group.keys)

    @property
    def optional(self) -> bool:
        """Whether a row may count for one candidate and not for another:
        only sums over all rows have none such.
        """
        return any(group.optional for group in self.groups)

    @property
    def unit(self) -> Fraction:
        """What one step of a score is worth: a row, or a step of the column's grid."""
        factor = self.groups[0].factor
        return Fraction(1) if factor is None else factor.encoding.step

    @property
    def counts(self) -> bool:
        """Whether scores are numbers of rows."""
        return self.groups[0].factor is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are summed, in order, each once."""
        return tuple(
            dict.fromkeys(group.factor.column for group in self.groups if group.factor is not None)
        )

    def sensitivity(self, neighbors: Neighbors) -> LInf:
        """The largest `score_sensitivity` of any group;
        one way where what rows add has the same sign in all of them.
        """
        each = [
            score_sensitivity(neighbors, *group.bounds, optional=group.optional).value
            for group in self.groups
        ]
        low, high = (
            min(group.bounds[0] for group in self.groups),
            max(group.bounds[1] for group in self.groups),
        )
        return LInf(max(each), score_sensitivity(neighbors, low, high, optional=True).one_way)

    def plan(self) -> ScoresPlan:
        return ScoresPlan(tuple(group.plan for group in self.groups))

    def assemble(self, answers: Sequence[npt.NDArray[Any]]) -> list[int]:
        """The scores from the engine's answers, one array (cells × terms) a group."""
        scores: list[int] = []
        for group, sums in zip(self.groups, answers, strict=True):
            scores += [int(row[-1]) + group.offset * int(row[0]) for row in sums]
        return scores

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parts": [group.to_dict() for group in self.groups]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CandidateScores:
        return cls(
            tuple(
                CandidateGroup(
                    tuple(key_from_dict(key) for key in group["keys"]),
                    None if group["factor"] is None else factor_from_dict(group["factor"]),
                )
                for group in record["parts"]
            )
        )
