"""Where a fit of a mean family (logistic, Poisson, tabulated) starts: a constant predictor, then
what its first gradient says of a normal one.

At a constant predictor the gradient is, but for sign and a factor, the covariance of y with the
whitened columns. For a normal predictor η = a + tZ, Stein's identity makes that covariance
proportional to the slopes, whatever the mean function m; its length and the mean of y give a and t
by

    E[m(a + tZ)] = mean of y,      E[Z·m(a + tZ)] = length of the covariance.

A plain gradient step instead leaves strong signals and rare outcomes too far from their solution
for the few steps that a budget pays for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.inference.regression.decode import Reading
from discreet.inference.results.laws import Array
from discreet.specs.estimating.families import Family, slope_bound
from discreet.specs.estimating.tables import GAIN_BITS, GRID, PSI

# of η, in its own units: beyond, outcomes are all but separated,
# or a start would be far out in noise
LARGEST_SPREAD, NOISY_SPREAD = 8.0, 5.0
LEAST_LEVEL = 0.01  # of the largest slope: the least curvature that the first steps are taken with
_SPREADS = LARGEST_SPREAD * (np.arange(49) / 48) ** 1.5
_NODES = np.linspace(-5.0, 5.0, 101)
_MASS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()


@dataclass(frozen=True)
class Start:
    """A predictor's mean and standard deviation, and the mean slope of ψ there."""

    center: float
    spread: float
    level: float


def flat_start(family: Family, mean: float) -> Start:
    """The constant predictor with a given mean response."""
    places = _Places(family)
    center = float(places.centers(mean, np.zeros(1))[0])
    return Start(center, 0.0, places.level(center, 0.0))


def normal_start(
    family: Family, mean: float, covariance: float, widest: float = LARGEST_SPREAD
) -> Start:
    """The normal predictor with a given mean response and covariance of the response with the
    standardised predictor; the widest where none has as much.
    """
    places = _Places(family)
    centers = places.centers(mean, _SPREADS)
    explained = np.maximum.accumulate(
        (places.mean(centers[:, None] + _SPREADS[:, None] * _NODES) * _NODES) @ _MASS
    )
    spread = min(float(np.interp(covariance, explained, _SPREADS)), widest)
    center = float(np.interp(spread, _SPREADS, centers))
    return Start(center, spread, places.level(center, spread))


def slopes_from(
    family: Family, mean: float, gradient: Reading, constant: Array, widest: float = LARGEST_SPREAD
) -> tuple[Array, Start]:
    """(slopes θ of the whitened columns, start) from the gradient at the constant predictor;
    `constant` are the whitened coefficients of a predictor of 1.

    Noise is taken off the covariance's length, and the slopes shrink by what share of it is left.
    """
    flat = flat_start(family, mean)
    gain = _Places(family).gain(flat.center)
    covariance, noise = -gradient.value / gain, gradient.noise / gain
    covariance = covariance - constant * float(constant @ covariance) / float(constant @ constant)
    whole = float(covariance @ covariance)
    left = max(whole - (len(constant) - 1) * noise**2, 0.0)
    if left == 0.0 or len(constant) == 1:  # beside a constant alone only rounding is left
        return np.zeros(len(constant)), flat
    start = normal_start(family, mean, math.sqrt(left), widest)
    return np.asarray(covariance * (start.spread * math.sqrt(left) / whole)), start


class _Places:
    """A mean family's tables, read at real predictors."""

    def __init__(self, family: Family) -> None:
        self.tables = family.tables()
        self.least = LEAST_LEVEL * slope_bound(family) / PSI

    def mean(self, predictor: Array) -> Array:
        return np.asarray(self.tables.mean[self._at(predictor)] / self.tables.unit)

    def gain(self, predictor: float) -> float:
        """What ψ changes by for each unit of the response."""
        return (
            float(self.tables.gain[self._at(np.array(predictor))])
            * self.tables.unit
            / (1 << GAIN_BITS)
            / PSI
        )

    def level(self, center: float, spread: float) -> float:
        """The mean slope of ψ over a normal predictor."""
        return max(
            float(self.tables.slope[self._at(center + spread * _NODES)] @ _MASS) / PSI, self.least
        )

    def centers(self, mean: float, spreads: Array) -> Array:
        """a with E[m(a + tZ)] = mean for every t of `spreads`, by bisection."""
        low, high = (np.full(len(spreads), side * self.tables.reach / GRID) for side in (-1.0, 1.0))
        for _ in range(30):
            middle = (low + high) / 2
            short = self.mean(middle[:, None] + spreads[:, None] * _NODES) @ _MASS < mean
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray((low + high) / 2)

    def _at(self, predictor: Array) -> npt.NDArray[np.int64]:
        return np.asarray(
            np.clip(np.floor(predictor * GRID + 0.5), -self.tables.reach, self.tables.reach).astype(
                np.int64
            )
            + self.tables.reach
        )
