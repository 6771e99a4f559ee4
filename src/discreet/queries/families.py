"""Estimating functions as integer tables: what one row adds to a gradient, and its slope, bounded for every row there can be.

A family reads a row's response y and linear predictor η as whole numbers and gives ψ and ψ′ in units of 2**-PSI_BITS:

    residual families   ψ = table[round(grid·(y − η)/σ)]                           Huber, smoothed Huber, …
    mean families       ψ = a[i] − clip(y − m[i], ±C),  i = round(grid·η)          logistic, Poisson; y clipped to 0 … 1 (its largest value)

Tables are built once, from public numbers, and are the same on every engine; library exponentials are not used per row.
*Theorem.*  |ψ| ≤ `psi_bound` and 0 ≤ ψ′ ≤ `slope_bound` for every row (both whole numbers). *Proof.*  Every value comes from a finite table, or from a
table and a clipped difference, and the bounds are the largest of those. *Checked.*  tests/claims/test_estimating_functions.py::test_bounds_hold_for_every_argument
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter

PSI_BITS = 13
PSI = 1 << PSI_BITS
GRID = 1 << 10  # table entries a unit of η or of a standardised residual
LOGIT_REACH = 32.0  # |η| beyond which a logistic mean is 0 or 1 to 14 digits
Table = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Tables:
    """A family as arrays; a residual family has empty `mean` and `shift`."""

    reach: int  # indices run from −reach to reach
    psi: Table
    slope: Table
    mean: Table
    shift: Table
    clip: int
    unit: float  # what one unit of y is worth, in units of ψ (mean families)


@dataclass(frozen=True, slots=True)
class Huber:
    """ψ(r) = −clip(r, ±c), ψ′ = 1 inside (math.md H1, H2); r is the residual in units of the scale σ."""

    c: float
    kind: ClassVar[str] = "huber"
    residual: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _cut(self.c)

    def tables(self) -> Tables:
        return _huber(self.c)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "c": self.c}


@dataclass(frozen=True, slots=True)
class SmoothHuber:
    """ψ(r) = −c·tanh(r/c), ψ′ = 1 − tanh²(r/c): a smooth Huber function; bounds are those of its table, not of H2's proof."""

    c: float
    kind: ClassVar[str] = "smooth huber"
    residual: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _cut(self.c)

    def tables(self) -> Tables:
        return _smooth_huber(self.c)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "c": self.c}


@dataclass(frozen=True, slots=True)
class Logistic:
    """ψ = s(η) − y, ψ′ = s(1 − s), y is 0 or 1 (math.md H2)."""

    kind: ClassVar[str] = "logistic"
    residual: ClassVar[bool] = False

    def tables(self) -> Tables:
        return _logistic()

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True, slots=True)
class Poisson:
    """ψ = a(m) − clip(min(y, most) − m, ±C), C = 2√most, m = min(e^η, most): consistent for Poisson counts (regression.md §4)."""

    most: float
    kind: ClassVar[str] = "poisson"
    residual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 10_000:
            raise InvalidParameter("a Poisson family", "its largest count is outside 1 … 10000", "residuals are clipped in proportion to its root", "declare the response as dp.Integer(0, most)")

    def tables(self) -> Tables:
        return _poisson(self.most)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "most": self.most}


Family = Huber | SmoothHuber | Logistic | Poisson
_KINDS: dict[str, Any] = {kind.kind: kind for kind in (Huber, SmoothHuber, Logistic, Poisson)}


def family_from_dict(record: dict[str, Any]) -> Family:
    fields = dict(record)
    family: Family = _KINDS[fields.pop("kind")](**fields)
    return family


def psi_bound(family: Family) -> int:
    """The largest |ψ| that the tables can give."""
    tables = family.tables()
    if family.residual:
        return int(np.abs(tables.psi).max())
    up, down = tables.shift + np.minimum(tables.clip, tables.mean), tables.shift - np.minimum(tables.clip, PSI - tables.mean)
    return int(max(np.abs(up).max(), np.abs(down).max()))


def slope_bound(family: Family) -> int:
    """The largest ψ′ that the tables can give."""
    return int(family.tables().slope.max())


def _cut(c: float) -> None:
    if not (isinstance(c, (int, float)) and 0.1 <= c <= 10):
        raise InvalidParameter("a robust loss", "its tuning constant is outside 0.1 … 10", "it bounds what one row can do", "use c=1.345, or 4 for nearly least squares")


def _rounded(values: npt.NDArray[Any]) -> Table:
    return np.floor(values * PSI + 0.5).astype(np.int32)


_NONE: Table = np.zeros(0, dtype=np.int32)


@functools.cache
def _huber(c: float) -> Tables:
    reach = math.ceil(c * GRID)
    r = np.arange(-reach, reach + 1) / GRID
    return Tables(reach, _rounded(-np.clip(r, -c, c)), _rounded((np.abs(r) < c) * 1.0), _NONE, _NONE, 0, 0.0)


@functools.cache
def _smooth_huber(c: float) -> Tables:
    reach = math.ceil(8 * c * GRID)
    r = np.arange(-reach, reach + 1) / GRID
    return Tables(reach, _rounded(-c * np.tanh(r / c)), _rounded(1 - np.tanh(r / c) ** 2), _NONE, _NONE, 0, 0.0)


@functools.cache
def _logistic() -> Tables:
    reach = int(LOGIT_REACH * GRID)
    mean = 1 / (1 + np.exp(-np.arange(-reach, reach + 1) / GRID))
    return Tables(reach, _NONE, _rounded(mean * (1 - mean)), _rounded(mean), np.zeros(2 * reach + 1, dtype=np.int32), PSI, float(PSI))


@functools.cache
def _poisson(most: float) -> Tables:
    """ψ in units of the largest count: y, m and C are divided by `most`, so that every family's ψ is of order 1."""
    reach = int(12 * GRID)
    mean = np.minimum(np.exp(np.arange(-reach, reach + 1) / GRID), most)
    clip = 2 * math.sqrt(most)
    counts = np.arange(int(most + 12 * math.sqrt(most) + 30))
    shift, slope = np.empty_like(mean), np.empty_like(mean)
    log_factorial = np.array([math.lgamma(count + 1) for count in counts])
    for first in range(0, len(mean), 256):
        m = mean[first : first + 256, None]
        mass = np.exp(counts * np.log(m) - m - log_factorial)
        psi = np.clip(np.minimum(counts, most) - m, -clip, clip)
        a = (mass * psi).sum(axis=1)
        shift[first : first + 256] = a
        slope[first : first + 256] = (mass * (psi - a[:, None]) * (counts - m)).sum(axis=1)
    return Tables(reach, _NONE, _rounded(np.maximum(slope, 0) / most), _rounded(mean / most), _rounded(shift / most), int(clip / most * PSI), PSI / most)
