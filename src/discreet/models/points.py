"""Released numbers put on the grids of metrics and points:
clipped by public limits first, so that nothing can overflow.

Numbers are rounded to a fixed number of digits before they meet a grid, so that another
linear-algebra library gives the same question for the same releases (but for numbers at the edge of
a cell).
"""

from __future__ import annotations

import math

import numpy as np

from discreet.dates import units_of
from discreet.encoding import Encoding
from discreet.inference.results.laws import Array
from discreet.schema import Category, Date, Schema, level_text
from discreet.specs.estimating.components import (
    RESPONSE_BITS,
    UNIT_BITS,
    ModelColumn,
    NumberComponent,
)
from discreet.specs.estimating.families import Family
from discreet.specs.estimating.metric import Metric, metric_of
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.queries.plans import Factor

POINT_BITS = 50  # Σ|x·β| and the response stay below 2**50
LARGEST_BETA = 4096.0  # Σ|β|, in half-ranges of the response or on the link's scale
DIGITS = 30  # bits of a metric's and a point's numbers
COLUMN_CODES = (1 << 15) - 1


def metric_on_grid(matrix: Array, radius: float) -> Metric:
    """The metric of a real matrix, its entries cut to DIGITS bits of the largest one."""
    return metric_of(_digits(matrix), radius)


def point_at(beta: Array, sigma: float, family: Family) -> Point:
    """β (x in units of 1; half-ranges of the response, or the link's scale) and σ as a Point.

    Coefficients whose sizes sum to more than LARGEST_BETA are shrunk to it: a public limit,
    no reasonable model reaches it.
    """
    size = float(np.abs(beta).sum())
    beta = _digits(beta * min(1.0, LARGEST_BETA / size) if size > 0 else beta)
    reach = 2.0**RESPONSE_BITS if family.residual else 1.0
    largest = max(float(np.abs(beta).sum()), 1.0) * reach
    bits = POINT_BITS - math.ceil(math.log2(largest))
    whole = tuple(int(value) for value in np.floor(np.ldexp(beta * reach, bits - UNIT_BITS) + 0.5))
    return Point(
        whole, bits, GRID / (sigma * reach * 2.0**bits) if family.residual else GRID / 2.0**bits
    )


def response_column(model: Model) -> ModelColumn:
    """The response as a model column: its declared (transformed) range on −1 … 1."""
    response = model.response
    assert response is not None
    assert response.factor is not None
    grid = response.factor.encoding
    half = float(grid.high * grid.step)
    coarse = (
        grid
        if grid.high <= COLUMN_CODES
        else Encoding(grid.center, COLUMN_CODES / half, -COLUMN_CODES, COLUMN_CODES)
    )
    return ModelColumn(
        "response",
        (
            NumberComponent(
                Factor(response.column, coarse),
                response.transform,
                response.middle - response.half,
                response.middle + response.half,
            ),
        ),
    )


def response_text(model: Model, schema: Schema) -> str | None:
    """The response as a reader of results knows it:
    `income`, `log(income)`, or for one level of several `region[N]`.
    """
    response = model.response
    dated = None if response is None else schema[response.column]
    if isinstance(dated, Date) and response is not None:
        return f"{response.column}[{units_of(dated.origin or '')}]"
    if response is None or response.level is None:
        return (
            None
            if response is None
            else f"log({response.column})"
            if response.transform == "log"
            else response.column
        )
    name, code = response.level
    column = schema[name]
    return f"{name}[{level_text(column.levels[code])}]" if isinstance(column, Category) else name


def _digits(values: Array) -> Array:
    """Numbers cut to DIGITS bits below the largest of them."""
    largest = float(np.abs(values).max()) if values.size else 0.0
    if largest == 0.0:
        return values
    bits = DIGITS - math.ceil(math.log2(largest))
    return np.asarray(np.ldexp(np.floor(np.ldexp(values, bits) + 0.5), -bits))
