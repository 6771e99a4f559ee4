"""What a residual family's ψ² averages to at the right scale:
the number that a fit's scale is set by (reference.md H1).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from discreet.errors import InvalidParameter
from discreet.inference.results.laws import Array
from discreet.specs.estimating.families import Family, Huber, SmoothHuber
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tables import GRID, PSI
from discreet.specs.estimating.tabulated import TabulatedResidual

# of d log E[ψ²(Z/s)] / d log(1/s) at s = 1: below it the scale would be lost in noise
LEAST_RESPONSE = 0.25
_NODES = np.linspace(-9.0, 9.0, 4001)
_MASS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


@functools.lru_cache(maxsize=32)
def tabulated_second_moment(family: TabulatedResidual | SmoothHuber) -> float:
    """E[ψ²(Z − t)] for a standard normal Z, with t such that E[ψ(Z − t)] = 0:
    the scale is 1 for standard normal errors.
    """
    location = _location(family)
    return float(_MASS @ psi_at(family, _NODES - location) ** 2)


def second_moment(family: Family) -> float:
    """The mean of ψ² at the right scale, for a residual family."""
    if isinstance(family, Huber):
        return huber_second_moment(family.c)
    assert isinstance(family, (SmoothHuber, TabulatedResidual))
    return tabulated_second_moment(family)


def huber_second_moment(c: float) -> float:
    """κ₀ = E[min(Z², c²)] for a standard normal Z (reference.md H1)."""
    density, tail = math.exp(-c * c / 2) / math.sqrt(2 * math.pi), math.erfc(c / math.sqrt(2)) / 2
    return 1 - 2 * tail - 2 * c * density + 2 * c * c * tail


@functools.lru_cache(maxsize=32)
def mean_slope(family: Family) -> float:
    """E[ψ′(Z)] of a residual family for standard normal errors, which is E[Zψ(Z)]."""
    return float(_MASS @ (_NODES * psi_at(family, _NODES - _location(family))))


def scale_elasticity(
    family: Family, before: tuple[float, float] | None, seen: tuple[float, float]
) -> float:
    """−d log E[ψ²]/d log σ: from two readings of (σ, mean of ψ²) where they are apart,
    else that for normal errors.
    """
    if before is not None and abs(math.log(seen[0] / before[0])) > 0.05:
        return min(max(math.log(before[1] / seen[1]) / math.log(seen[0] / before[0]), 0.7), 2.0)
    return _normal_elasticity(family)


@functools.lru_cache(maxsize=32)
def _normal_elasticity(family: Family) -> float:
    """The elasticity for normal errors at the right scale."""
    location = _location(family)
    small, large = (
        float(_MASS @ psi_at(family, _NODES * stretch - location) ** 2) for stretch in (0.98, 1.02)
    )
    return min(max(math.log(large / small) / math.log(1.02 / 0.98), 0.7), 2.0)


def shifted_start(family: Family, model: Model, beta: Array, sigma: float) -> Array:
    """The start of a fit, its intercept moved to where an asymmetric ψ has mean 0 under normal
    errors; unchanged for symmetric ones.
    """
    if not isinstance(family, TabulatedResidual):
        return beta
    intercept = np.array([not column.components for column in model.columns], dtype=float)
    return np.asarray(beta + sigma * _location(family) * intercept)


def require_scale(family: TabulatedResidual) -> None:
    """Refuses a ψ that has no solution, or that says too little about the scale;
    decided from the table alone.
    """
    psi = np.array(family.values)
    if not psi[0] < 0 < psi[-1]:
        raise _refused(
            "it does not change its sign",
            "its mean could not be 0 anywhere, so that nothing would solve the equation",
            "use a function with values below and above 0",
        )
    location = _location(family)
    here, wider = (
        float(_MASS @ psi_at(family, (_NODES - location) * stretch) ** 2) for stretch in (1.0, 1.01)
    )
    if math.log(wider / here) / math.log(1.01) < LEAST_RESPONSE:
        raise _refused(
            "its square hardly changes with the size of a residual",
            "the residuals' scale is found from it",
            "let it rise over a wider range, for example over ±1 scale, or add a slope",
        )


def _location(family: Family) -> float:
    """t with E[ψ(Z − t)] = 0, by bisection: the mean falls as t grows."""
    low, high = -family.c - 9.0, family.c + 9.0  # type: ignore[union-attr]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if float(_MASS @ psi_at(family, _NODES - middle)) > 0 else (low, middle)
        )
    return (low + high) / 2


def psi_at(family: Family, residuals: Array) -> Array:
    """ψ at given residuals, as tabulated."""
    tables = family.tables()
    place = (
        np.clip(np.floor(residuals * GRID + 0.5), -tables.reach, tables.reach).astype(np.int64)
        + tables.reach
    )
    return np.asarray(-tables.psi[place] / PSI)


def _refused(found: str, why: str, remedy: str) -> InvalidParameter:
    return InvalidParameter("psi=", found, why, remedy)
