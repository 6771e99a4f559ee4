"""The columns of a model matrix, from declared columns alone: products of scaled numbers, tabulated
transforms and level contrasts.

Every model column is a whole number from −UNIT to UNIT; UNIT stands for 1. A component maps one
data column's code to such a number by a public table; a product of components is cut back to UNIT
(toward zero), so every bound holds on the grid. No component has columns: the intercept.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter
from discreet.specs.estimating.tables import fixed
from discreet.specs.queries.plans import Factor, factor_from_dict

UNIT_BITS = 14
UNIT = 1 << UNIT_BITS
RESPONSE_BITS = 23  # responses of residual families are read on a grid of 2**23 steps a half-range
LOG_RESPONSE_BITS = 19  # those whose log is taken, on 2**20 steps, by a table
# of one table: a component's grid of 16 bits, a log response's of 20
LARGEST_TABLE, LARGEST_LOG_TABLE = 1 << 17, 1 << 21
TRANSFORMS = ("linear", "square", "log", "spline")
MOST_KNOTS = 256  # of a spline, with those at its ends
LARGEST_KNOT, SMALLEST_GAP = 1e150, 1e-100  # quotients of differences stay finite
Codes = npt.NDArray[Any]


@plain.kept()
@dataclass(frozen=True, slots=True)
class NumberComponent:
    """A number column on a 16-bit grid, then `transform`: (x − middle)/half for "linear";
    else a table over the grid.

    `low` and `high` are the ends of the transform's range, which is scaled to −1 … 1; `knots` and
    `index` choose a spline's function.

    Theorem.  The table of a component that passes its checks can be built, and holds numbers alone.
    Proof.    Its grid is short and its values are finite (their squares too), positive where a log
              is taken; a spline's knots do not fall, are equal or far enough apart for every
              quotient, and have the function that is asked for; the range that is scaled has a
              positive, finite width.
    Checked.  tests/claims/test_rows_say_nothing.py::test_a_component_without_a_table_is_refused
    """

    factor: Factor
    transform: str = "linear"
    low: float = -1.0
    high: float = 1.0
    knots: tuple[float, ...] = ()
    index: int = 0
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        if type(self.factor) is not Factor or self.transform not in TRANSFORMS:
            raise _no_table("its factor or its transform is not known")
        _require_grid(self.factor.encoding, self.transform, LARGEST_TABLE)
        if not 0 < self.half < math.inf or not math.isfinite(self.middle):
            raise _no_table("its range has no width")
        if not _has_function(self.knots, self.index, spline=self.transform == "spline"):
            raise _no_table("its knots do not give the function that it names")

    @property
    def column(self) -> str:
        return self.factor.column

    @property
    def middle(self) -> float:
        """The transformed value that 0 stands for."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """The distance in transformed values that UNIT stands for."""
        return self.high / 2 - self.low / 2

    def values(self, codes: Codes) -> npt.NDArray[np.int16]:
        grid = self.factor.encoding
        return number_table(self)[codes.astype(np.int64) - grid.low]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "factor": self.factor.to_dict(),
            "transform": self.transform,
            "low": self.low,
            "high": self.high,
            "knots": list(self.knots),
            "index": self.index,
        }


@plain.kept()
@dataclass(frozen=True, slots=True)
class LevelComponent:
    """A level's contrast: `values[code]` in units of UNIT (−1, 0 or 1) for each declared level;
    a row without a level counts 0.
    """

    column: str
    contrast: tuple[int, ...]
    kind: ClassVar[str] = "level"

    def __post_init__(self) -> None:
        if any(value not in (-1, 0, 1) for value in self.contrast):
            raise InvalidParameter(
                "a contrast",
                "it has values beyond -1, 0 and 1",
                "model columns are bounded by 1",
                "use treatment or sum coding",
            )

    def values(self, codes: Codes) -> npt.NDArray[np.int16]:
        # the last entry is for code −1, and for codes beyond the contrast
        table = np.array([*self.contrast, 0], dtype=np.int16) << UNIT_BITS
        return table[np.where(codes < len(self.contrast), codes, -1)]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "contrast": list(self.contrast)}


Component = NumberComponent | LevelComponent


@plain.kept()
@dataclass(frozen=True, slots=True)
class ModelColumn:
    """A named product of components."""

    name: str
    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        if not all(
            type(component) in (NumberComponent, LevelComponent) for component in self.components
        ):
            raise _no_table("a component of it is none")

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "pieces": [component.to_dict() for component in self.components]}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Response:
    """The response: a number column's factor, its log, or (`level` given) whether a Category or
    Boolean column has that level.

    `centred` says that 0 stands for the middle of its range, which a constant among the columns
    makes up for; without one, 0 stands for 0.
    """

    factor: Factor | None = None
    level: tuple[str, int] | None = None
    transform: str = "linear"
    centred: bool = True

    def __post_init__(self) -> None:
        if (
            (self.factor is None) == (self.level is None)
            or self.transform not in ("linear", "log")
            or (self.factor is None and self.transform == "log")
            or type(self.factor) not in (Factor, type(None))
            or (self.level is not None and tuple(map(type, self.level)) != (str, int))
        ):
            raise InvalidParameter(
                "a response",
                "it is neither a number nor a level",
                "an equation needs one of the two",
                "name a number column, or a level",
            )
        if self.factor is not None:
            grid, is_log = self.factor.encoding, self.transform == "log"
            _require_grid(grid, self.transform, LARGEST_LOG_TABLE if is_log else None)
            if grid.low != -grid.high or not 0 < self.half < math.inf:
                raise _no_table("its range is not symmetric on its grid, or has no width")

    @property
    def column(self) -> str:
        return (
            self.factor.column
            if self.factor is not None
            else self.level[0]
            if self.level is not None
            else ""
        )

    @property
    def middle(self) -> float:
        """The (transformed) value that 0 stands for, on the grid of residual families."""
        low, high = self._ends
        return low / 2 + high / 2

    @property
    def half(self) -> float:
        """The (transformed) distance that 2**RESPONSE_BITS steps stand for."""
        low, high = self._ends
        return high / 2 - low / 2

    @property
    def _ends(self) -> tuple[float, float]:
        assert self.factor is not None
        grid = self.factor.encoding
        ends = (float(grid.value(grid.low)), float(grid.value(grid.high)))
        low, high = (math.log(ends[0]), math.log(ends[1])) if self.transform == "log" else ends
        largest = max(abs(low), abs(high))
        return (low, high) if self.centred else (-largest, largest)

    def steps(self, codes: Codes) -> npt.NDArray[np.int32]:
        """Codes as whole steps of 2**-RESPONSE_BITS half-ranges."""
        assert self.factor is not None
        if self.transform == "log":
            return log_table(self)[codes.astype(np.int64) - self.factor.encoding.low]
        if not self.centred:
            grid = self.factor.encoding
            whole = np.floor(
                (grid.center + codes.astype(np.float64) / grid.per_unit)
                / self.half
                * (1 << RESPONSE_BITS)
                + 0.5
            )
            return np.clip(whole, -(1 << RESPONSE_BITS), 1 << RESPONSE_BITS).astype(np.int32)
        if self.factor.encoding.high == 1 << RESPONSE_BITS:
            return np.asarray(codes.astype(np.int32))
        return np.floor(
            codes.astype(np.float64) * ((1 << RESPONSE_BITS) / self.factor.encoding.high) + 0.5
        ).astype(np.int32)

    def to_dict(self) -> dict[str, Any]:
        return {
            "factor": None if self.factor is None else self.factor.to_dict(),
            "level": None if self.level is None else list(self.level),
            "transform": self.transform,
            "centred": self.centred,
        }


def _require_grid(grid: Encoding, transform: str, longest: int | None) -> None:
    """Refuses a grid on which a transform has a value that is no number, or too many of them."""
    found = _grid_fault(grid.center, grid.per_unit, grid.low, grid.high, transform, longest)
    if found:
        raise _no_table(found)


@functools.lru_cache(maxsize=256)
def _grid_fault(
    center: float, per_unit: float, low: int, high: int, transform: str, longest: int | None
) -> str:
    ends = [center + code / per_unit for code in (low, high)]
    if not all(math.isfinite(end * end) for end in ends):
        return "its grid leaves the range of float64"
    if transform == "log" and ends[0] <= 0:
        return "a log is taken of a grid that is not above 0"
    if longest is not None and high - low > longest:
        return f"its grid has more than {longest} steps"
    return ""


def _has_function(knots: tuple[float, ...], index: int, *, spline: bool) -> bool:
    """Whether knots have a B-spline of this number; other transforms have neither."""
    if not spline:
        return not knots and index == 0
    if not 2 <= len(knots) <= MOST_KNOTS or not all(abs(knot) <= LARGEST_KNOT for knot in knots):
        return False
    rises = all(
        left == right or right - left >= SMALLEST_GAP for left, right in itertools.pairwise(knots)
    )
    order = sum(knot == knots[0] for knot in knots)
    return rises and knots[0] < knots[-1] and 0 <= index < len(knots) - order


def _no_table(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a model's columns",
        found,
        "tables are built from them when rows are read, and a table that fails would tell that "
        "there are rows",
        "build the model from a formula, with dp.ols, dp.robust, …",
    )


def response_from_dict(record: dict[str, Any]) -> Response:
    return Response(
        None if record["factor"] is None else factor_from_dict(record["factor"]),
        None if record["level"] is None else tuple(record["level"]),
        record["transform"],
        record.get("centred", True),
    )


def column_from_record(record: dict[str, Any]) -> ModelColumn:
    return ModelColumn(
        record["name"], tuple(_component(component) for component in record["pieces"])
    )


def _component(record: dict[str, Any]) -> Component:
    if record["kind"] == "level":
        return LevelComponent(record["column"], tuple(record["contrast"]))
    return NumberComponent(
        factor_from_dict(record["factor"]),
        record["transform"],
        record["low"],
        record["high"],
        tuple(record["knots"]),
        record["index"],
    )


def constant(columns: Sequence[ModelColumn]) -> tuple[int, ...]:
    """Coefficients, 0 or 1, that make the predictor 1 in every row (that has a level):
    the intercept, or all levels of one category; 0 where there is neither.
    """
    for place, column in enumerate(columns):
        if not column.components:
            return tuple(int(other == place) for other in range(len(columns)))
    levels: dict[str, set[int]] = {}
    for place, column in enumerate(columns):
        component = column.components[0]
        if (
            len(column.components) == 1
            and isinstance(component, LevelComponent)
            and sorted(component.contrast) == [0] * (len(component.contrast) - 1) + [1]
        ):
            levels.setdefault(component.column, set()).add(place)
            if len(levels[component.column]) == len(component.contrast):
                return tuple(
                    int(other in levels[component.column]) for other in range(len(columns))
                )
    return (0,) * len(columns)


def model_matrix(
    columns: tuple[ModelColumn, ...], codes: Mapping[Component, Codes], rows: int
) -> npt.NDArray[np.int16]:
    """The int16 matrix (rows × columns) of a block; `codes` holds each component's data codes."""
    matrix = np.empty((rows, len(columns)), dtype=np.int16)
    for place, column in enumerate(columns):
        if len(column.components) == 1:
            matrix[:, place] = column.components[0].values(codes[column.components[0]])
            continue
        product = np.full(rows, UNIT, dtype=np.int32)
        for component in column.components:
            product *= component.values(codes[component])
            product = np.where(
                product < 0, -((-product) >> UNIT_BITS), product >> UNIT_BITS
            ).astype(np.int32)
        matrix[:, place] = product
    return matrix


def number_table(component: NumberComponent) -> npt.NDArray[np.int16]:
    """round(UNIT·(t(x) − middle)/half) for every grid value x, clipped to ±UNIT;
    columns on one grid share it.
    """
    return _number_table(
        component.factor.encoding,
        component.transform,
        component.low,
        component.high,
        component.knots,
        component.index,
    )


@plain.remembered(64)
def _number_table(
    grid: Encoding, transform: str, low: float, high: float, knots: tuple[float, ...], index: int
) -> npt.NDArray[np.int16]:
    component = NumberComponent(Factor("", grid), transform, low, high, knots, index)
    codes = np.arange(grid.low, grid.high + 1, dtype=np.float64)
    x = grid.center + codes / grid.per_unit
    moved = transformed(component, x)
    scaled = np.floor((moved - component.middle) / component.half * UNIT + 0.5)
    return fixed(np.clip(scaled, -UNIT, UNIT).astype(np.int16))


@plain.remembered(4)
def log_table(response: Response) -> npt.NDArray[np.int32]:
    """round(2**RESPONSE_BITS·(log y − middle)/half) for every grid value y."""
    assert response.factor is not None
    grid = response.factor.encoding
    y = grid.center + np.arange(grid.low, grid.high + 1, dtype=np.float64) / grid.per_unit
    scaled = np.floor((np.log(y) - response.middle) / response.half * (1 << RESPONSE_BITS) + 0.5)
    return fixed(np.clip(scaled, -(1 << RESPONSE_BITS), 1 << RESPONSE_BITS).astype(np.int32))


def transformed(component: NumberComponent, x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """t(x) for grid values x."""
    if component.transform == "linear":
        return x
    if component.transform == "square":
        return x * x
    if component.transform == "log":
        return np.array([math.log(value) for value in x])
    if component.transform == "spline":
        return _spline(component.knots, component.index, x)
    raise _no_table("its transform is not known")


def _spline(
    knots: tuple[float, ...], index: int, x: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """The B-spline of the given place by its recursion; the order follows from the repeated first
    knot. Values lie between 0 and 1.
    """
    order = sum(knot == knots[0] for knot in knots)
    inside = np.minimum(x, math.nextafter(knots[-1], -math.inf))  # the last interval is closed
    basis = [
        ((knots[j] <= inside) & (inside < knots[j + 1])).astype(np.float64)
        for j in range(len(knots) - 1)
    ]
    for degree in range(1, order):
        for j in range(len(knots) - 1 - degree):
            rising, falling = knots[j + degree] - knots[j], knots[j + degree + 1] - knots[j + 1]
            left = (inside - knots[j]) / rising * basis[j] if rising > 0 else 0.0
            right = (
                (knots[j + degree + 1] - inside) / falling * basis[j + 1] if falling > 0 else 0.0
            )
            basis[j] = np.asarray(left + right)
    return basis[index]
