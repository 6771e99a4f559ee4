"""Tulap noise cut at both ends: the canonical noise of (ε, δ)-DP for counts (reference.md M3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.sensitivity import L1
from discreet.specs.mechanisms.additive import TulapNoise

# with at least 32 bits for the uniform part, outputs stay within 64 bits
LARGEST_CUT_SPREAD = 1 << 18
_FAR = 40.0  # spreads: a cut beyond them moves the variance by less than a float can say
_NODES = 20_000


@plain.kept()
@dataclass(frozen=True, slots=True)
class CutTulapNoise:
    """Tulap noise given that it lies in [−reach, reach) grid steps: drawn again until it does.

    A step k stands for the cell [k, k+1), as in Tulap noise, so that the law is symmetric about 0.
    The theorem, with the δ of the cut, is in trusted/losses/theorems.py.
    """

    noise: TulapNoise
    reach: int
    kind: ClassVar[str] = "cut tulap"
    reads: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if (
            type(self.noise) is not TulapNoise
            or self.noise.spread > LARGEST_CUT_SPREAD
            or self.noise.spread * (1 << self.noise.refinement) > 1 << 50
        ):
            raise _bad(
                "it needs Tulap noise of a spread of at most 2**18 counts and 2**50 grid steps"
            )
        if (
            not isinstance(self.noise.sensitivity, L1)
            or self.noise.sensitivity.value.denominator != 1
        ):
            raise _bad("it needs a whole ℓ₁ sensitivity")
        if (
            isinstance(self.reach, bool)
            or not isinstance(self.reach, int)
            or not self.moved <= self.reach <= 1 << 61
        ):
            raise _bad(
                "its reach must be a whole number of grid steps, no less than the sensitivity and "
                "at most 2**61"
            )

    @property
    def sensitivity(self) -> L1:
        assert isinstance(self.noise.sensitivity, L1)
        return self.noise.sensitivity

    @property
    def moved(self) -> int:
        """How far one unit moves the statistic, in grid steps."""
        return int(self.sensitivity.value) << self.noise.refinement

    @property
    def spread(self) -> Fraction:
        """The scale 1/ε of the uncut law, in counts."""
        return self.noise.spread

    @property
    def refinement(self) -> int:
        return self.noise.refinement

    @property
    def step(self) -> Fraction:
        """One grid step, in counts."""
        return self.noise.step

    @property
    def variance(self) -> float:
        """Variance of the cut law, in squared counts."""
        spread, end = float(self.spread), float(self.reach * self.step)
        if end >= _FAR * spread:
            return self.noise.variance
        # the density's steps are then too fine to matter: Laplace's law between the cuts
        if spread > 64:
            t = (np.arange(_NODES) + 0.5) * (end / _NODES)
            weights = np.exp(-t / spread)
            return float(weights @ (t * t) / weights.sum())
        # cells of constant density, cut at the end
        low = np.concatenate([[0.0], np.arange(0.5, end)])
        high = np.append(low[1:], end)
        weights = np.exp(-np.rint((low + high) / 2) / spread)
        return float(weights @ (high**3 - low**3) / (3 * (weights @ (high - low))))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "noise": self.noise.to_dict(), "reach": self.reach}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> CutTulapNoise:
        return cls(TulapNoise.from_dict(record["noise"]), record["reach"])


def accepted_share(mechanism: CutTulapNoise) -> float:
    """About how often uncut noise lies within the reach."""
    return -math.expm1(-float(mechanism.reach * mechanism.step) / float(mechanism.spread))


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "CutTulapNoise",
        found,
        "the sampler and the accountant both read this object",
        "build it with discreet.accounting.calibration.additive.cut_tulap_noise",
    )
