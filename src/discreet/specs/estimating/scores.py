"""How good a linear predictor is, as one sum over rows: a weight for each cell of y·2**e − η, all
of it whole numbers.

A number response has the residual y − η there. For a yes/no response 2**e is beyond every η, so
that the place of y·2**e − η says both: below 2**(e−1) are the rows with no, at −η, and above it
those with yes, at 2**e − η. How much a row counts is then a table of edges and weights: clipped
squares, clipped logarithms. Right decisions are `Agreement` (networks.py).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import L1, L2, sum_sensitivity
from discreet.specs.estimating.model import Model, Point, model_from_dict, point_from_dict
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.queries.keys import Key

MOST_CELLS = 1 << 12
FURTHEST_EDGE = 1 << 51
LARGEST_WEIGHT = 1 << 20


@plain.kept()
@dataclass(frozen=True, slots=True)
class PredictionScore:
    """Σ over rows of the weight of the row's cell; `weights` has one more member than `edges`, and
    `optional` says that a row may be left out by the filters.
    """

    model: Model
    point: Point
    edges: tuple[int, ...]
    weights: tuple[int, ...]
    optional: bool
    kind: ClassVar[str] = "prediction score"
    gives: ClassVar[str] = "vector"
    size: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (
            not 1 <= len(self.edges) < MOST_CELLS
            or any(low >= high for low, high in itertools.pairwise(self.edges))
            or max(map(abs, self.edges)) > FURTHEST_EDGE
        ):
            raise _bad(f"it has no 1 to {MOST_CELLS - 1} increasing edges")
        if (
            len(self.weights) != len(self.edges) + 1
            or not 0 <= min(self.weights) < max(self.weights) <= LARGEST_WEIGHT
        ):
            raise _bad(f"its cells have no weights from 0 to {LARGEST_WEIGHT}, or all the same")
        if self.model.response is None or len(self.point.beta) != len(self.model.columns):
            raise _bad("its model has no response, or another number of columns than its point")

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        """ℓ₁ and ℓ₂ sensitivity.

        Theorem.  As `sum_sensitivity` for a sum of terms between the least and the largest weight.
        Proof.    The point is public, so a row's cell, and with it its weight, is a function of
                  that row alone.
        Checked.  tests/claims/test_prediction_scores.py::test_sensitivity_is_never_exceeded
        """
        low, high = min(self.weights), max(self.weights)
        return sum_sensitivity(neighbors, low, high, cells=1, optional=self.optional)

    def plan(self) -> ResidualPlan:
        return ResidualPlan(self.model, self.point, self.edges)

    def assemble(self, counts: npt.NDArray[Any]) -> list[int]:
        return [sum(w * int(count) for w, count in zip(self.weights, counts, strict=True))]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_dict(),
            "point": self.point.to_dict(),
            "edges": [str(edge) for edge in self.edges],
            "weights": list(self.weights),
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> PredictionScore:
        point = point_from_dict(record["point"])
        assert point is not None
        return cls(
            model_from_dict(record["model"]),
            point,
            tuple(int(edge) for edge in record["edges"]),
            tuple(record["weights"]),
            record["optional"],
        )


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a score of predictions",
        found,
        "a row counts by the one cell that it falls in",
        "ask through dp.tune",
    )
