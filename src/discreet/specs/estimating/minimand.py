"""The rows of a model as a mechanism reads them that minimises a loss over them: exact gradients of
Σ wℓ(η, y) at any coefficients.

Rows are seen in a released metric, in units of its radius: z = A·x/R, η = θᵀz, so that w‖z‖ ≤ 1 and
w‖z‖² ≤ 1 for every row. ℓ is the loss whose derivative ψ = ∂ℓ/∂η is the family's table joined by
straight lines: continuous, bounded and never falling, or the family is refused. The statistic is a
trusted reader and not a number; only `PerturbedMinimiser` may read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

import numpy as np

from discreet import plain
from discreet.errors import InvalidParameter, NoTheorem
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import RowLoss
from discreet.specs.estimating.components import RESPONSE_BITS
from discreet.specs.estimating.families import Family, psi_bound
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.model import (
    EstimatingPlan,
    Model,
    Point,
    at_point_from_dict,
    at_point_to_dict,
)
from discreet.specs.estimating.tables import GAIN_BITS, GRID, PSI, clipped_rest
from discreet.specs.queries.keys import Key


class LossReader(Protocol):
    """What an engine gives for this query (trusted/learning/minimiser/rows.py)."""

    count: int

    def gradient(self, theta: list[Fraction], *, curved: bool = False) -> Any: ...


@plain.remembered(64)
def rises(family: Family, binary: bool) -> tuple[int, bool] | None:
    """(the largest step of ψ between two neighbouring table entries, whether ψ has one sign for
    each response); None where ψ falls somewhere.

    Theorem.  The joined ψ rises by at most that step over 1/GRID, whatever the response is.
    Proof.    Residual families have one table. A mean family's is a[i] − clip((y − m[i])·g[i]);
              where g is constant and nothing is clipped, differences do not depend on y; otherwise
              only y = 0 and y = top occur (`binary`), and both are looked at.
    Checked.  tests/claims/test_perturbed_minimisers.py::test_losses_are_convex_within_their_bounds
    """
    tables = family.tables()
    if family.residual:
        found = [-np.diff(tables.psi.astype(np.int64))]
        return _steps(found, one_signed=False)
    plain_gain = bool(np.all(tables.gain == 1 << GAIN_BITS)) and tables.clip >= tables.top
    if not (binary or plain_gain):
        return None
    ends = [
        tables.shift - clipped_rest(tables, np.int64(end), slice(None)) for end in (0, tables.top)
    ]
    one_signed = binary and bool(ends[0].min() >= 0 and ends[1].max() <= 0)
    return _steps([np.diff(end) for end in ends], one_signed=one_signed)


def _steps(found: list[Any], *, one_signed: bool) -> tuple[int, bool] | None:
    if min(int(steps.min()) for steps in found) < 0:
        return None
    return max(1, max(int(steps.max()) for steps in found)), one_signed


def steps_a_unit(family: Family, point: Point) -> Fraction:
    """How many table entries a unit of η is: GRID, or GRID/σ for residual families."""
    if not family.residual:
        return Fraction(GRID)
    return Fraction(point.per_scale) * (1 << (point.eta_bits + RESPONSE_BITS))


@plain.kept()
@dataclass(frozen=True, slots=True)
class Minimand:
    """The loss of a model's rows in a metric; `point` gives the scale of residuals.

    `optional` says that a row may be left out by the filters.
    """

    model: Model
    metric: Metric
    family: Family
    point: Point
    optional: bool
    kind: ClassVar[str] = "minimand"
    gives: ClassVar[str] = "minimand"

    def __post_init__(self) -> None:
        width = len(self.model.columns)
        response = self.model.response
        if (
            response is None
            or (self.family.residual and response.factor is None)
            or len(self.point.beta) != width
            or any(len(row) != width for row in self.metric.rows)
        ):
            raise InvalidParameter(
                "a minimand",
                "its metric, its point, its family and its model do not fit together",
                "one loss is minimised over all rows",
                "build it with discreet.models",
            )
        if rises(self.family, self.binary) is None:
            raise NoTheorem(
                "a perturbed minimiser",
                f"the loss of the family {self.family.kind!r} is not convex",
                "what one row can do to a minimiser is known for convex losses alone",
                "use logistic, huber-hinge or huber, or a psi or mean function that never falls",
            )

    @property
    def binary(self) -> bool:
        """Whether the response is yes/no."""
        return self.model.response is not None and self.model.response.level is not None

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return len(self.metric.rows)

    def sensitivity(self, neighbors: Neighbors) -> RowLoss:
        """What one row adds to the gradient and to the curvature, in units of the radius.

        Theorem.  ‖wψz‖ ≤ L and wψ′‖z‖² ≤ s, L the bound of |ψ| and s its largest slope in η.
        Proof.    w‖z‖ ≤ 1 and w‖z‖² ≤ 1 (`row_weights` of the kernels, in units of R), |ψ| ≤ L at
                  the table's entries and so between them, and ψ′ is a step of the table times
                  the entries a unit of η. A filter keeps or drops each row on its own; a unit has
                  at most `rows` rows.
        Checked.
            tests/claims/test_perturbed_minimisers.py::test_losses_are_convex_within_their_bounds
        """
        found = rises(self.family, self.binary)
        assert found is not None
        return RowLoss(
            Fraction(psi_bound(self.family), PSI),
            Fraction(found[0], PSI) * steps_a_unit(self.family, self.point),
            found[1],
            neighbors.rows,
            "replaced" if isinstance(neighbors, Replace) else "added or removed",
        )

    def plan(self) -> EstimatingPlan:
        return EstimatingPlan(self.model, self.metric, "minimand", self.family, self.point)

    def assemble(self, reader: LossReader) -> LossReader:
        """The reader itself."""
        return reader

    def to_dict(self) -> dict[str, Any]:
        return at_point_to_dict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Minimand:
        return cls(*at_point_from_dict(record))
