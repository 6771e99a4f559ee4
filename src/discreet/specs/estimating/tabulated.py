"""Estimating functions that a user defines: whole numbers at knots, joined by straight lines.

The user's own code is run once, on public arguments, before anything is spent
(discreet.models.m_estimate); what travels in a query are these numbers. A function is held at its
end values beyond the last knots, so it is bounded whatever it was.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.specs.estimating.tables import GAIN_BITS, GRID, PSI, PSI_BITS, Tables

KNOT_BITS = 6
KNOTS = 1 << KNOT_BITS  # a unit of the argument
LARGEST_REACH = 16  # units of the argument to both sides: at most 2049 knots
# values are whole numbers of 2**-19, finer than ψ itself, so that slopes are as fine as ψ
VALUE_BITS = 19
LARGEST_PSI = 10 << VALUE_BITS  # as large as Huber's at the largest c
LARGEST_SLOPE = 16 << VALUE_BITS
LARGEST_COUNT = 10_000.0


@plain.kept()
@dataclass(frozen=True, slots=True)
class TabulatedResidual:
    """ψ(r) = −table(r), r the residual in units of the scale: `values` at −reach, …, reach, KNOTS a
    unit, in units of 2**-VALUE_BITS.

    Values must not fall, so that the loss is convex and second derivatives are positive;
    beyond the knots ψ is constant.
    """

    values: tuple[int, ...]
    kind: ClassVar[str] = "tabulated residual"
    residual: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checked(self.values, LARGEST_PSI)
        if not _fine(self.values)[1].any():
            raise _bad(
                f"it is below {2.0 ** -(PSI_BITS + 1):g} in size everywhere, and rounds to 0",
                "noise is set by its largest value",
                "multiply it: the coefficients stay the same",
            )

    @property
    def c(self) -> float:
        """Where ψ stops growing, in units of the scale."""
        return _reach(self.values)

    def tables(self) -> Tables:
        return _residual_tables(self.values)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values)}


@plain.kept()
@dataclass(frozen=True, slots=True)
class TabulatedMean:
    """ψ = (mean(η) − y)/most for 0 ≤ y ≤ most: `values` of the mean at η = −reach, …, reach, KNOTS
    a unit, in units of most·2**-VALUE_BITS.

    Values lie in 0 … 2**VALUE_BITS and must not fall; beyond the knots the mean is constant.
    """

    values: tuple[int, ...]
    most: float = 1.0
    kind: ClassVar[str] = "tabulated mean"
    residual: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _checked(self.values, 1 << VALUE_BITS)
        if min(self.values) < 0 or not 1 <= self.most <= LARGEST_COUNT:
            raise _bad(
                "its means are not between 0 and the largest response",
                "responses are cut to that range",
                "give a mean function of that range",
            )

    def mean(self, eta: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean response at given predictors."""
        reach = _reach(self.values)
        return np.asarray(
            self.most
            * np.interp(
                eta,
                np.linspace(-reach, reach, len(self.values)),
                np.array(self.values) / (1 << VALUE_BITS),
            )
        )

    def tables(self) -> Tables:
        return _mean_tables(self.values, self.most)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "values": list(self.values), "most": self.most}


def _reach(values: tuple[int, ...]) -> float:
    return (len(values) - 1) / 2 / KNOTS


def _checked(values: tuple[int, ...], largest: int) -> None:
    steps = len(values) - 1
    if (
        not isinstance(values, tuple)
        or not all(type(value) is int for value in values)
        or steps % (2 * KNOTS)
        or not 2 * KNOTS <= steps <= 2 * KNOTS * LARGEST_REACH
    ):
        raise _bad(
            f"it does not have {KNOTS} knots a unit over 1 to {LARGEST_REACH} units to both sides",
            "tables travel with every question",
            "make it with dp.m_estimate",
        )
    if max(map(abs, values)) > largest:
        raise _bad(
            f"it passes {largest / (1 << VALUE_BITS):g} in size",
            "it bounds what one row can do",
            "clip it, for example with clip=4",
        )
    rises = [high - low for low, high in itertools.pairwise(values)]
    if min(rises) < 0:
        raise _bad(
            "it falls somewhere",
            "a falling function has no single solution, and its second derivative no sign",
            "use a function that never falls, such as a clipped or smoothed one",
        )
    if not 0 < max(rises) * KNOTS <= LARGEST_SLOPE:
        raise _bad(
            "it is constant, or rises too steeply",
            "its slope is the curvature that steps are taken with",
            "smooth its jumps: a slope of at most 16",
        )


@functools.lru_cache(maxsize=32)
def _fine(values: tuple[int, ...]) -> tuple[int, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(reach, table, slope) on the families' grid: straight lines between knots, rounded to the
    nearest, in whole-number arithmetic.

    The slope at a knot is the mean of those to both sides, so a symmetric function has a symmetric
    slope; it is 0 at both ends, from where on the function is constant.
    """
    finer, coarser = GRID // KNOTS, 1 << (VALUE_BITS - PSI_BITS)
    knots = np.array(values, dtype=np.int64)
    rise = np.diff(knots)
    between = (knots[:-1, None] * finer + rise[:, None] * np.arange(finer)).ravel()
    table = (np.append(between, knots[-1] * finer) + finer * coarser // 2) // (finer * coarser)
    slope = np.append(np.repeat(rise * KNOTS // coarser, finer), 0)
    slope[finer:-1:finer] = (rise[:-1] + rise[1:]) * KNOTS // (2 * coarser)
    slope[0] = 0
    return (len(table) - 1) // 2, table.astype(np.int32), slope.astype(np.int32)


@plain.remembered(32)
def _residual_tables(values: tuple[int, ...]) -> Tables:
    reach, table, slope = _fine(values)
    return Tables(
        reach, -table, slope, np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), 0, 0.0
    )


@plain.remembered(32)
def _mean_tables(values: tuple[int, ...], most: float) -> Tables:
    reach, table, slope = _fine(values)
    none = np.zeros(0, dtype=np.int32)
    return Tables(
        reach,
        none,
        slope,
        table,
        np.zeros(len(table), dtype=np.int32),
        PSI,
        PSI / most,
        PSI,
        np.full(len(table), 1 << GAIN_BITS, dtype=np.int64),
    )


def _bad(found: str, why: str, remedy: str) -> InvalidParameter:
    return InvalidParameter("an estimating function", found, why, remedy)
