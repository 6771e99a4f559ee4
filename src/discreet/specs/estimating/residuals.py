"""Counts of standardised residuals by bins, at coefficients that were released: a histogram whose
cells are computed row by row.

A row's residual (y − η)/σ is a whole number of 1/GRID, computed exactly as estimating functions
read it; `edges` are whole numbers on that grid. The first cell holds everything below the first
edge and the last everything from the last edge on, so every row falls in exactly one cell.
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
from discreet.specs.queries.keys import Key

MOST_BINS = 1000
FURTHEST_EDGE = 1 << 30


@dataclass(frozen=True, slots=True)
class ResidualPlan:
    """What an engine counts: rows whose residual lies below, between and above the edges."""

    model: Model
    point: Point
    edges: tuple[int, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.reads


@plain.kept()
@dataclass(frozen=True, slots=True)
class ResidualCounts:
    """How many rows have a residual in each of len(edges) + 1 cells;
    `optional` says that a row may be left out by the filters.
    """

    model: Model
    point: Point
    edges: tuple[int, ...]
    optional: bool
    kind: ClassVar[str] = "residual counts"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if (
            not 1 <= len(self.edges) < MOST_BINS
            or any(low >= high for low, high in itertools.pairwise(self.edges))
            or max(map(abs, self.edges)) > FURTHEST_EDGE
        ):
            raise InvalidParameter(
                "residual bins",
                f"not 1 to {MOST_BINS - 1} increasing edges",
                "each row falls in exactly one cell",
                "pass bins=20, or increasing edges in units of the scale",
            )
        if (
            self.model.response is None
            or self.model.response.factor is None
            or len(self.point.beta) != len(self.model.columns)
        ):
            raise InvalidParameter(
                "residual bins",
                "the model has no number as its response, or another number of columns than its "
                "point",
                "a residual is y − η",
                "pass a fit of dp.ols, dp.robust or dp.m_estimate",
            )

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return len(self.edges) + 1

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        """ℓ₁ and ℓ₂ sensitivity: those of a histogram.

        Theorem.  As `sum_sensitivity` for counts in `size` cells.
        Proof.    The point is public, so a row's cell is a function of that row alone; every row
                  that the filters keep is in one cell.
        Checked.  tests/claims/test_residual_counts.py::test_sensitivity_is_never_exceeded
        """
        return sum_sensitivity(neighbors, 1, 1, cells=self.size, optional=self.optional)

    def plan(self) -> ResidualPlan:
        return ResidualPlan(self.model, self.point, self.edges)

    def assemble(self, counts: npt.NDArray[Any]) -> list[int]:
        return [int(count) for count in counts]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_dict(),
            "point": self.point.to_dict(),
            "edges": list(self.edges),
            "optional": self.optional,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> ResidualCounts:
        point = point_from_dict(record["point"])
        assert point is not None
        return cls(
            model_from_dict(record["model"]), point, tuple(record["edges"]), record["optional"]
        )
