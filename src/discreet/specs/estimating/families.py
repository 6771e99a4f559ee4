"""Estimating functions as integer tables: what one row adds to a gradient, and its slope,
bounded for every row there can be.

A family reads a row's response y and linear predictor η as whole numbers and gives ψ and ψ′ in
units of 2**-PSI_BITS:

    residual families  ψ = table[round(grid·(y − η)/σ)]
                       Huber, smoothed Huber, …
    mean families      ψ = a[i] − clip((y − m[i])·g[i], ±C),  i = round(grid·η)
                       logistic, Poisson; y clipped to 0 … its largest value

Tables are built once, from public numbers, and are the same on every engine;
library exponentials are not used per row.
*Theorem.*  |ψ| ≤ `psi_bound` and 0 ≤ ψ′ ≤ `slope_bound` for every row (both whole numbers).
*Proof.*  Every value comes from a finite table, or from a table and a clipped difference, and the
bounds are the largest of those. *Checked.*
tests/claims/test_estimating_functions.py::test_bounds_hold_for_every_argument
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.specs.estimating.tables import GAIN_BITS, GRID, PSI, Table, Tables, clipped_rest
from discreet.specs.estimating.tabulated import TabulatedMean, TabulatedResidual

HINGE_WIDTH = 0.5  # h
LOGIT_REACH = 32.0  # |η| beyond which a logistic mean is 0 or 1 to 14 digits
COUNT_UNIT = 1 << 10  # whole numbers a count


@plain.kept()
@dataclass(frozen=True, slots=True)
class Huber:
    """ψ(r) = −clip(r, ±c), ψ′ = 1 inside (reference.md H1, H2);
    r is the residual in units of the scale σ.
    """

    c: float
    kind: ClassVar[str] = "huber"
    residual: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _cut(self.c)

    def tables(self) -> Tables:
        return _huber(self.c)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "c": self.c}


@plain.kept()
@dataclass(frozen=True, slots=True)
class SmoothHuber:
    """ψ(r) = −c·tanh(r/c), ψ′ = 1 − tanh²(r/c): a smooth Huber function;
    bounds are those of its table, not of H2's proof.
    """

    c: float
    kind: ClassVar[str] = "smooth huber"
    residual: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _cut(self.c)

    def tables(self) -> Tables:
        return _smooth_huber(self.c)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "c": self.c}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Logistic:
    """ψ = s(η) − y, ψ′ = s(1 − s), y is 0 or 1 (reference.md H2)."""

    kind: ClassVar[str] = "logistic"
    residual: ClassVar[bool] = False

    def tables(self) -> Tables:
        return _logistic()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@plain.kept()
@dataclass(frozen=True, slots=True)
class HuberHinge:
    """The hinge loss of a support vector machine with its corner rounded over 2·HINGE_WIDTH: for
    y = 1 ψ = −clip((1 + h − η)/(2h), 0, 1), for y = 0 the mirror image (Chapelle 2007).

    `slope` is the larger of the two responses' slopes.
    """

    kind: ClassVar[str] = "huber hinge"
    residual: ClassVar[bool] = False

    def tables(self) -> Tables:
        return _huber_hinge()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@plain.kept()
@dataclass(frozen=True, slots=True)
class Poisson:
    """ψ = a(m) − clip((min(y, most) − m)/√m, ±c), m = min(e^η, most),
    a(m) the mean of the clipped part under Poisson(m).

    Residuals are standardised, so that one row adds at most about c whatever `most` is, where a
    clipped raw residual adds 2√most. The score's own weight √m is given up: the loss of efficiency
    is 1 − (E√m)²/E m of the variance (5 % where log m has a standard deviation of 0.47). ψ has mean
    0 under Poisson for every c, and under no other law: overdispersed counts are clipped more often
    above than a(m) expects, which biases the coefficients downwards
    (tests/models/test_poisson_validity.py measures it); for them a mean function of the user's own
    is not clipped.
    """

    most: float
    c: float = 2.5
    kind: ClassVar[str] = "poisson"
    residual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 10_000:
            raise InvalidParameter(
                "a Poisson family",
                "its largest count is outside 1 … 10000",
                "counts above it are cut off, and tables are built up to it",
                "declare the response as dp.Integer(0, most)",
            )
        _cut(self.c)

    def tables(self) -> Tables:
        return _poisson(self.most, self.c)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "most": self.most, "c": self.c}


Family = Huber | SmoothHuber | Logistic | HuberHinge | Poisson | TabulatedResidual | TabulatedMean
_KINDS: dict[str, Any] = {
    kind.kind: kind
    for kind in (
        Huber,
        SmoothHuber,
        Logistic,
        HuberHinge,
        Poisson,
        TabulatedResidual,
        TabulatedMean,
    )
}


def family_from_dict(record: dict[str, Any]) -> Family:
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }
    family: Family = _KINDS[str(fields.pop("kind"))](**fields)
    return family


@plain.remembered(1024)
def psi_bound(family: Family) -> int:
    """The largest |ψ| that the tables can give."""
    tables = family.tables()
    if family.residual:
        return int(np.abs(tables.psi).max())
    # ψ falls with y
    ends = [
        tables.shift - clipped_rest(tables, np.int64(end), slice(None)) for end in (0, tables.top)
    ]
    return int(max(np.abs(end).max() for end in ends))


@plain.remembered(1024)
def slope_bound(family: Family) -> int:
    """The largest ψ′ that the tables can give."""
    return int(family.tables().slope.max())


def _cut(c: float) -> None:
    if not (isinstance(c, (int, float)) and 0.1 <= c <= 10):
        raise InvalidParameter(
            "a robust loss",
            "its tuning constant is outside 0.1 … 10",
            "it bounds what one row can do",
            "use c=1.345, or 4 for nearly least squares",
        )


def _rounded(values: npt.NDArray[Any]) -> Table:
    return np.floor(values * PSI + 0.5).astype(np.int32)


_NONE: Table = np.zeros(0, dtype=np.int32)


@plain.remembered(32)
def _huber(c: float) -> Tables:
    reach = math.ceil(c * GRID)
    r = np.arange(-reach, reach + 1) / GRID
    return Tables(
        reach, _rounded(-np.clip(r, -c, c)), _rounded((np.abs(r) < c) * 1.0), _NONE, _NONE, 0, 0.0
    )


@plain.remembered(32)
def _smooth_huber(c: float) -> Tables:
    reach = math.ceil(8 * c * GRID)
    r = np.arange(-reach, reach + 1) / GRID
    return Tables(
        reach,
        _rounded(-c * np.tanh(r / c)),
        _rounded(1 - np.tanh(r / c) ** 2),
        _NONE,
        _NONE,
        0,
        0.0,
    )


@plain.remembered(32)
def _logistic() -> Tables:
    reach = int(LOGIT_REACH * GRID)
    mean = 1 / (1 + np.exp(-np.arange(-reach, reach + 1) / GRID))
    return Tables(
        reach,
        _NONE,
        _rounded(mean * (1 - mean)),
        _rounded(mean),
        np.zeros(2 * reach + 1, dtype=np.int32),
        PSI,
        float(PSI),
        PSI,
        np.full(2 * reach + 1, 1 << GAIN_BITS, dtype=np.int64),
    )


@plain.remembered(32)
def _huber_hinge() -> Tables:
    """ψ = a[i] − y·g[i]: a that of y = 0, g what y = 1 takes away."""
    reach = int(2 * GRID)
    eta, h = np.arange(-reach, reach + 1) / GRID, HINGE_WIDTH
    away, towards = (np.clip((1 + h + side * eta) / (2 * h), 0, 1) for side in (1, -1))
    steep = sum((np.abs(1 + side * eta) < h) / (2 * h) for side in (1, -1))
    return Tables(
        reach,
        _NONE,
        _rounded(np.asarray(steep)),
        np.zeros(2 * reach + 1, dtype=np.int32),
        _rounded(away),
        2 * PSI,
        float(PSI),
        PSI,
        np.floor((away + towards) * (1 << GAIN_BITS) + 0.5).astype(np.int64),
    )


@plain.remembered(32)
def _poisson(most: float, c: float) -> Tables:
    reach = 12 * GRID
    mean = np.minimum(np.exp(np.arange(-reach, reach + 1) / GRID), most)
    gain = np.floor(PSI / COUNT_UNIT * (1 << GAIN_BITS) / np.sqrt(mean) + 0.5).astype(np.int64)
    whole = np.floor(mean * COUNT_UNIT + 0.5).astype(np.int32)
    top, clip = int(most * COUNT_UNIT), int(c * PSI)
    bare = Tables(reach, _NONE, _NONE, whole, _NONE, clip, float(COUNT_UNIT), top, gain)
    shift, slope = np.empty(len(mean)), np.empty(len(mean))
    log_factorial = np.array(
        [math.lgamma(count + 1) for count in range(int(most + 12 * math.sqrt(most) + 40))]
    )
    last = int(np.searchsorted(mean, most)) + 1  # from here on the mean is `most`
    for first in range(0, last, 128):
        places = np.arange(first, min(first + 128, last))
        low, high = mean[places[0]], mean[places[-1]]
        counts = np.arange(
            max(0, int(low - 12 * math.sqrt(low) - 30)),
            min(len(log_factorial), int(high + 12 * math.sqrt(high) + 30)),
        )
        m = mean[places, None]
        mass = np.exp(counts * np.log(m) - m - log_factorial[counts])
        rest = (
            clipped_rest(bare, np.minimum(counts * COUNT_UNIT, top)[None, :], places[:, None]) / PSI
        )
        shift[places] = (mass * rest).sum(axis=1)
        slope[places] = (mass * (rest - shift[places, None]) * (counts - m)).sum(axis=1)
    shift[last:], slope[last:] = shift[last - 1], slope[last - 1]
    return Tables(
        reach,
        _NONE,
        _rounded(np.maximum(slope, 0)),
        whole,
        _rounded(shift),
        clip,
        float(COUNT_UNIT),
        top,
        gain,
    )
