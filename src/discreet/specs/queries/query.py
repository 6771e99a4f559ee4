"""What every statistic says of itself, and the table of those with a sensitivity theorem."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from discreet.neighbors import Neighbors
from discreet.sensitivity import Sensitivity
from discreet.specs.estimating.batches import SampledGradients
from discreet.specs.estimating.model import WeightedGradient, WeightedGram
from discreet.specs.estimating.residuals import ResidualCounts
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.keys import Key
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.open_keys import OpenCounts
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.parts import PartRejections
from discreet.specs.queries.scores import CandidateScores
from discreet.specs.queries.sums import GramMatrix, Sum
from discreet.specs.queries.tallies import GridCounts
from discreet.specs.queries.trees import TreeCounts


class Query(Protocol):
    """A statistic: its sensitivity under a relation, the plan that an engine carries out, and how the answer becomes the statistic.

    `gives` is what the statistic is: "vector" (integers), "matrix" (the upper triangle of a symmetric one, and further integers), "tally" (counts on a grid), "keys" or "rows" (a reader of sampled rows); a mechanism must read the same.
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


PROVEN_QUERIES: tuple[type[Query], ...] = (Sum, GramMatrix, Moments, GridCounts, CandidateScores, OpenCounts, PairMoments, TreeCounts, WeightedGradient, WeightedGram, ResidualCounts, SampledGradients, DifferenceMoments, PartRejections)  # each has a sensitivity theorem; subclasses do not
_KINDS: dict[str, type[Query]] = {kind.kind: kind for kind in PROVEN_QUERIES}


def query_from_dict(record: dict[str, Any]) -> Query:
    """The query that `to_dict` wrote."""
    return _KINDS[record["kind"]].from_dict(record)
