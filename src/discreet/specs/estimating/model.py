"""A regression's columns, response and filters, and the point at which its equations are taken.

A row has model columns x (whole numbers, |x_j| ≤ UNIT stands for 1) and a response y.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any, Protocol

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.specs.estimating.components import (
    UNIT_BITS,
    ModelColumn,
    Response,
    column_from_record,
    constant,
    response_from_dict,
)
from discreet.specs.estimating.families import Family, family_from_dict
from discreet.specs.estimating.metric import LARGEST_COLUMNS, Metric, metric_from_dict
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import FLOAT_BITS, columns_read

RESPONSE_LIMIT = 31  # responses are int32
LARGEST_PRODUCT, SMALLEST_PER_SCALE = 2.0**1000, 2.0**-1000  # inside float64's ordinary numbers


@plain.kept()
@dataclass(frozen=True, slots=True)
class Point:
    """Where an estimating function is taken:
    β and, for residual families, the scale, as whole numbers.

    Σ_j x_j·beta[j] is η·2**eta_bits for x in units of 2**-UNIT_BITS; residual families read y − η
    in units of y's grid (eta_bits says how far it is refined) and multiply by `per_scale` = GRID/(σ
    in those units); mean families multiply η by `per_scale` = GRID/2**eta_bits.

    Theorem.  Every product (y − η)·per_scale or η·per_scale that a row can lead to is 0 or an
              ordinary float64: none overflows or underflows, so no floating-point flag says
              anything of a row, and every row's place in a table is a whole number.
    Proof.    |y| ≤ 2**31 steps and |Σ x·beta| ≤ 2**52, so the whole number y·2**eta_bits − Σ x·beta
              is 0 or between 1 and 2**(31 + eta_bits) + 2**52 in size; per_scale is at least
              2**-1000, and at most 2**1000 times that bound's inverse.
    Checked.  tests/claims/test_nothing_is_seen.py::test_points_keep_every_product_finite
    """

    beta: tuple[int, ...]
    eta_bits: int
    per_scale: float

    def __post_init__(self) -> None:
        longest = (sum(abs(entry) for entry in self.beta) << UNIT_BITS).bit_length()
        if longest > FLOAT_BITS or not (type(self.eta_bits) is int and 0 <= self.eta_bits <= 64):
            raise InvalidParameter(
                "a point of a fit",
                "its numbers have too many bits",
                "linear predictors must be exact",
                "bound the coefficients first",
            )
        scale, largest = self.per_scale, LARGEST_PRODUCT / self.furthest
        if not isinstance(scale, float) or not SMALLEST_PER_SCALE <= scale <= largest:
            raise InvalidParameter(
                "a point of a fit",
                "its scale is no number of ordinary size",
                "a product that overflows for some rows only would tell which",
                "take the scale from a fit, or from the declared range",
            )

    @property
    def furthest(self) -> float:
        """A public bound on |y·2**eta_bits − Σ x·beta| and on |Σ x·beta|."""
        return 2.0 ** (RESPONSE_LIMIT + self.eta_bits) + 2.0**FLOAT_BITS

    def to_dict(self) -> dict[str, Any]:
        return {
            "beta": [str(entry) for entry in self.beta],
            "eta_bits": self.eta_bits,
            "per_scale": self.per_scale,
        }


def point_from_dict(record: dict[str, Any] | None) -> Point | None:
    return (
        None
        if record is None
        else Point(
            tuple(int(entry) for entry in record["beta"]), record["eta_bits"], record["per_scale"]
        )
    )


@plain.kept()
@dataclass(frozen=True, slots=True)
class Model:
    """The columns of a regression, its response (None where no equation needs one) and the filters
    of its rows.
    """

    columns: tuple[ModelColumn, ...]
    response: Response | None
    keys: tuple[Key, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= LARGEST_COLUMNS or cell_count(self.keys) != 1:
            raise InvalidParameter(
                "a model",
                f"it must have 1 to {LARGEST_COLUMNS} columns and one set of rows",
                "its second moments are released as one matrix",
                "use fewer terms",
            )
        if not all(type(column) is ModelColumn for column in self.columns) or (
            type(self.response) not in (Response, type(None))
        ):
            raise InvalidParameter(
                "a model",
                "a column of it or its response is none",
                "rows are read by them",
                "build it from a formula",
            )

    @property
    def constant(self) -> tuple[int, ...]:
        """Coefficients that make the predictor 1 in every row; all 0 where none do."""
        return constant(self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        """The data columns that it reads."""
        components = [component for column in self.columns for component in column.components]
        return tuple(
            sorted(
                {
                    *(component.column for component in components),
                    *([self.response.column] if self.response else []),
                    *columns_read((), self.keys),
                }
            )
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "columns": [column.to_dict() for column in self.columns],
            "response": None if self.response is None else self.response.to_dict(),
            "keys": [key.to_dict() for key in self.keys],
        }


def model_from_dict(record: dict[str, Any]) -> Model:
    """The model of a record; one that was read before is copied,
    as a fit asks about one model many times.
    """
    return plain.twin(_read_model(json.dumps(record)))


@functools.lru_cache(maxsize=8)
def _read_model(text: str) -> Model:
    record = json.loads(text)
    response = None if record["response"] is None else response_from_dict(record["response"])
    return Model(
        tuple(column_from_record(column) for column in record["columns"]),
        response,
        tuple(key_from_dict(key) for key in record["keys"]),
    )


@dataclass(frozen=True, slots=True)
class EstimatingPlan:
    """What an engine sums: part "gradient" Σ m·x and Σ ψ²; the others Σ m·x xᵀ, with the
    whole-number multiplier m of that part.
    """

    model: Model
    metric: Metric
    part: str
    family: Family | None
    point: Point | None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.reads


class AtPoint(Protocol):
    """A query about the rows of a model in a metric, with a loss's family at a point."""

    @property
    def kind(self) -> str: ...
    @property
    def model(self) -> Model: ...
    @property
    def metric(self) -> Metric: ...
    @property
    def family(self) -> Family: ...
    @property
    def point(self) -> Point: ...
    @property
    def optional(self) -> bool: ...


def at_point_to_dict(query: AtPoint) -> dict[str, Any]:
    """What these queries write of themselves; some have more to say."""
    return {
        "kind": query.kind,
        "model": query.model.to_dict(),
        "metric": query.metric.to_dict(),
        "family": query.family.to_dict(),
        "point": query.point.to_dict(),
        "optional": query.optional,
    }


def at_point_from_dict(record: dict[str, Any]) -> tuple[Model, Metric, Family, Point, bool]:
    """What `at_point_to_dict` wrote, in the order of these queries' fields."""
    point = point_from_dict(record["point"])
    assert point is not None
    return (
        model_from_dict(record["model"]),
        metric_from_dict(record["metric"]),
        family_from_dict(record["family"]),
        point,
        record["optional"],
    )
