"""The rows of a regression as a stochastic gradient method reads them: whichever rows are asked
for, the exact sum of what they add.

The statistic is not a number but a trusted reader: `gradient(chosen, beta)` gives Σ wψ(η, y)x over
the chosen rows as whole numbers, `count` is the number of rows. Only a mechanism that samples rows
in secret and adds noise to every sum may read it (specs/mechanisms/sgd.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter, NoTheorem
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import OneRow
from discreet.specs.estimating.components import RESPONSE_BITS, UNIT_BITS
from discreet.specs.estimating.families import Family, psi_bound
from discreet.specs.estimating.metric import WEIGHT_BITS, Metric
from discreet.specs.estimating.model import (
    EstimatingPlan,
    Model,
    Point,
    at_point_from_dict,
    at_point_to_dict,
)
from discreet.specs.estimating.tables import PSI_BITS
from discreet.specs.queries.keys import Key

BETA_BITS = 24  # coefficients are whole numbers of 2**-24
LARGEST_BETA = 1 << (12 + BETA_BITS)  # Σ|β| stays below 4096
# of a mean family's predictor; a residual family's has RESPONSE_BITS fewer
ETA_BITS = BETA_BITS + UNIT_BITS
SUM_BITS = WEIGHT_BITS + UNIT_BITS  # a sum is in units of 2**-29


class RowReader(Protocol):
    """What an engine gives for this query."""

    count: int

    def gradient(
        self, chosen: npt.NDArray[np.int64], beta: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]: ...


def plain_metric(columns: int, radius: float) -> Metric:
    """z = x: the columns as they are scaled by their public ranges,
    with weights min(1, R²/‖x‖²).
    """
    if not 2.0**-6 <= radius <= 64:
        raise InvalidParameter(
            "radius=",
            "it is outside 1/64 … 64",
            "it bounds what one row adds, in half-ranges of the columns",
            "leave it out, or use about the square root of the number of columns",
        )
    rows = tuple(tuple(int(i == j) for j in range(columns)) for i in range(columns))
    return Metric(rows, 0, max(1, int(Fraction(radius) ** 2 * (1 << (2 * UNIT_BITS)))))


def require_sampled(neighbors: Neighbors, rows: int | None) -> None:
    """Refuses relations under which sampling has no theorem, and a number of rows that does not
    belong to the relation.
    """
    if neighbors.unit is not None or neighbors.rows != 1:
        raise NoTheorem(
            "sampled gradients of units with several rows",
            f"the relation is {neighbors}",
            "rows are sampled one by one, and a unit's rows would be in a batch more often "
            "than one row is",
            "use Algorithm A (solver=None), solver='gradient' or solver='newton'",
        )
    if isinstance(neighbors, Replace) and rows is None:
        raise NoTheorem(
            "sampled gradients under Replace",
            "they do not say the public number of rows",
            "batches of a fixed size are drawn from it",
            "build them with discreet.models",
        )
    if not isinstance(neighbors, Replace) and rows is not None:
        raise NoTheorem(
            "sampled gradients under AddRemove",
            "they say a public number of rows",
            "that number is private",
            "build them with discreet.models",
        )


def checked_reader(reader: RowReader, rows: int | None, *, optional: bool) -> RowReader:
    """A reader of rows; refused where it has other rows than the declared number."""
    known = reader.count if rows is None else rows
    if reader.count > known or (reader.count < known and not optional):
        raise InvalidParameter(
            "sampled gradients",
            "their number of rows is another",
            "the rate of sampling is computed from it",
            "take it from session.public.rows",
        )
    return reader


def absolute_radius(metric: Metric) -> int:
    """R of ℓ₁ weights, in whole numbers of x: √radius_squared, rounded down."""
    return math.isqrt(metric.radius_squared)


@plain.kept()
@dataclass(frozen=True, slots=True)
class SampledGradients:
    """Sums of wψx over any rows, at any coefficients on the grid of BETA_BITS;
    `point` gives the start and the scale.

    `rows` is the number of rows where it is public (row-level Replace), else None. A row that a
    filter drops adds nothing to a sum, and is drawn like any other. `norm` 2 weighs rows by
    min(1, R²/‖x‖₂²), `norm` 1 by min(1, R/‖x‖₁).
    """

    model: Model
    metric: Metric
    family: Family
    point: Point
    optional: bool
    rows: int | None
    norm: int = 2
    kind: ClassVar[str] = "sampled gradients"
    gives: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        width = len(self.model.columns)
        plain = self.metric.shift == 0 and self.metric.rows == tuple(
            tuple(int(i == j) for j in range(width)) for i in range(width)
        )
        bits = ETA_BITS - (RESPONSE_BITS if self.family.residual else 0)
        if (
            not plain
            or len(self.point.beta) != width
            or self.point.eta_bits != bits
            or self.model.response is None
            or not (type(self.norm) is int and self.norm in (1, 2))
        ):
            raise InvalidParameter(
                "sampled gradients",
                "their metric, their point and their model do not fit together",
                "every sum is taken over columns as they are scaled, at coefficients of a fixed "
                "grid",
                "build them with discreet.models",
            )

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return len(self.model.columns)

    def sensitivity(self, neighbors: Neighbors) -> OneRow:
        """What one row adds to a sum.

        Theorem.  ‖wψx‖ ≤ b·R in whole numbers, in the norm of the weights, b the bound of ψ, for
                  every row, at all coefficients; neighbours differ in one row.
        Proof.    |m| ≤ v|ψ|·2**-PSI_BITS (cut toward zero), v‖x‖ ≤ 2**WEIGHT_BITS·R
                  (`row_weights` of kernels, z = x; `absolute_weights` for ℓ₁). A filter keeps or
                  drops each row on its own, so that under AddRemove what it keeps differs in at
                  most one row; under Replace a dropped row's vector is 0, which is no longer than
                  any other, and the rows that are sampled from stay all rows. Units
                  of several rows have no theorem here.
        Checked.  tests/claims/test_sgd.py::test_a_batch_gradient_never_moves_further_than_stated
        """
        require_sampled(neighbors, self.rows)
        radius = self.metric.bound if self.norm == 2 else Fraction(absolute_radius(self.metric))
        largest = Fraction(psi_bound(self.family) << (WEIGHT_BITS - PSI_BITS)) * radius
        return OneRow(
            largest**2,
            "replaced" if isinstance(neighbors, Replace) else "added or removed",
            self.rows,
            self.norm,
        )

    def plan(self) -> EstimatingPlan:
        part = "rows" if self.norm == 2 else "absolute rows"
        return EstimatingPlan(self.model, self.metric, part, self.family, self.point)

    def assemble(self, reader: RowReader) -> RowReader:
        """The reader itself; refused where it has other rows than the declared number."""
        return checked_reader(reader, self.rows, optional=self.optional)

    def to_dict(self) -> dict[str, Any]:
        return (
            at_point_to_dict(self)
            | {"rows": self.rows}
            | ({"norm": self.norm} if self.norm == 1 else {})
        )

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> SampledGradients:
        return cls(*at_point_from_dict(record), record["rows"], record.get("norm", 2))
