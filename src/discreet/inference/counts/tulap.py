"""The exact laws of a released count's noise: two-sided geometric, Tulap, and rounded Gaussian or
Laplace noise (reference.md M3).

Tulap noise is two-sided geometric noise plus a uniform on (−½, ½). It is the canonical noise of
ε-DP: P(N ≥ t+1) = e^(−ε)·P(N ≥ t) or P(N < t) = e^(−ε)·P(N < t+1) for every real t, so that tests
made of it meet the privacy constraint with equality. Gaussian noise is the canonical noise of μ-GDP
in the same way. What is released lies on a grid, and these are the laws on that grid.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import rational
from discreet.inference.results.decode import additive
from discreet.inference.results.laws import Array
from discreet.specs.mechanisms.additive import AdditiveNoise, TulapNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.trusted.release import Release

SLACK = 1e-9  # of a grid step: a number this close to a grid point is that grid point


def truncation(epsilon: float, delta: float) -> float:
    """q = 2δb/(1 − b + 2δb), b = e^(−ε): Tulap noise cut to its [q/2, 1 − q/2] quantiles is
    (ε, δ)-DP on counts (reference.md M3).
    """
    b = math.exp(-epsilon)
    return 2 * delta * b / (-math.expm1(-epsilon) + 2 * delta * b)


def tulap_cdf(t: Any, b: float, q: float = 0.0) -> Array:
    """P(N ≤ t) of Tulap(0, b, q) noise.

    Method. For t ≤ 0 and [t] the nearest whole number, b^(−[t])/(1+b)·(b + (t − [t] + ½)(1 − b));
            by symmetry above 0; cut and rescaled for q > 0.
    """
    t = np.asarray(t, dtype=float)
    lower = _tulap_lower(-np.abs(t), b)
    plain = np.where(t > 0, 1 - lower, lower)
    return np.asarray(plain if q == 0 else np.clip((plain - q / 2) / (1 - q), 0.0, 1.0))


def _tulap_lower(t: Array, b: float) -> Array:
    """P(N ≤ t) for t ≤ 0, without cancellation."""
    nearest = np.rint(t)
    return np.asarray(np.power(b, -nearest) / (1 + b) * (b + (t - nearest + 0.5) * (1 - b)))


def tulap_quantile(u: Any, b: float, q: float = 0.0) -> Array:
    """t with P(N ≤ t) = u: P(N ≤ j − ½) = b^(1−j)/(1+b) for whole j ≤ 0,
    and linear between (0 < u < 1).
    """
    u = q / 2 + (1 - q) * np.asarray(u, dtype=float)
    folded = np.minimum(u, 1 - u) * (1 + b)
    if b == 0:
        return np.asarray(u - 0.5)
    # b^(1−j) ≥ folded > b^(2−j), up to rounding
    j = np.minimum(np.ceil(1 - np.log(folded) / math.log(b)), 0.0)
    j = np.where(np.power(b, 1 - j) > folded, j - 1, j)
    start = np.power(b, 1 - j)
    t = j - 0.5 + (folded - start) / (np.power(b, -j) * (1 - b))
    return np.asarray(np.where(u > 0.5, -t, t))


@dataclass(frozen=True, slots=True)
class ReleasedNoise:
    """The law of additive noise as it was released: `kind`, its spread, its grid `step`
    (0: the continuous law) and, for Tulap, the cut q.

    Tulap noise is on the middles of its grid cells, (k + ½)·step, all others on k·step;
    every law is symmetric about 0.
    """

    kind: str
    spread: float
    step: float = 0.0
    cut: float = 0.0

    @property
    def b(self) -> float:
        """e^(−1/spread) of geometric and Tulap noise."""
        return math.exp(-1 / self.spread)

    @property
    def variance(self) -> float:
        """Variance, with the part due to the grid."""
        if self.cut:  # the mean square of its quantiles
            u = (np.arange(4096) + 0.5) / 4096
            return float(np.mean(tulap_quantile(u, self.b, self.cut) ** 2))
        grid = self.step**2 / 12
        if self.kind == "gaussian":
            return self.spread**2 + grid
        if self.kind == "laplace":
            return 2 * self.spread**2 + grid
        return (
            2 * (0.5 / math.sinh(0.5 / self.spread)) ** 2 if self.spread > 1 / 1400 else 0.0
        ) + (1 / 12 if self.kind == "tulap" else 0.0)

    def above(self, t: Any) -> Array:
        """P(noise ≥ t) for any real t."""
        t = np.asarray(t, dtype=float)
        if self.kind == "geometric":
            j = np.ceil(t - SLACK)
            tail = np.power(self.b, np.where(j > 0, j, 1 - j)) / (1 + self.b)
            return np.asarray(np.where(j > 0, tail, 1 - tail))
        # the lower edge of the first cell at or above t: cells are k ± ½ steps, Tulap's k … k + 1
        if self.step:
            t = (
                np.ceil(t / self.step - 0.5 - SLACK) * self.step
                if self.kind == "tulap"
                else (np.ceil(t / self.step - SLACK) - 0.5) * self.step
            )
        if self.kind == "gaussian":
            return np.asarray(ndtr(-t / self.spread))
        if self.kind == "laplace":
            tail = 0.5 * np.exp(-np.abs(t) / self.spread)
            return np.asarray(np.where(t > 0, tail, 1 - tail))
        return tulap_cdf(-t, self.b, self.cut)

    def below(self, t: Any) -> Array:
        """P(noise ≤ t)."""
        return self.above(-np.asarray(t, dtype=float))

    def quantile(self, u: Any) -> Array:
        """The noise that a uniform number u in (0, 1) leads to:
        of the released law, grid and all.
        """
        u = np.asarray(u, dtype=float)
        if self.kind == "gaussian":
            t = ndtri(u) * self.spread
        elif self.kind == "geometric":  # P(noise ≤ −k) = b^k/(1 + b)
            size = np.floor(np.log(np.minimum(u, 1 - u) * (1 + self.b)) * -self.spread)
            return np.asarray(np.copysign(size, u - 0.5))
        elif self.kind == "laplace":
            t = np.where(u < 0.5, 1.0, -1.0) * np.log(2 * np.minimum(u, 1 - u)) * self.spread
        else:
            t = tulap_quantile(u, self.b, self.cut)
            return np.asarray((np.floor(t / self.step) + 0.5) * self.step if self.step else t)
        return np.asarray(np.rint(t / self.step) * self.step if self.step else t)

    @property
    def end(self) -> float:
        """Where cut noise ends; infinity for all other noise."""
        return float(-tulap_quantile(0.0, self.b, self.cut)) if self.cut else math.inf

    def at_privacy(self, amount: float) -> ReleasedNoise:
        """The continuous law of another ε (or μ); cut noise keeps its δ = q(1 − b)/(2b(1 − q))."""
        delta = (
            self.cut * -math.expm1(-1 / self.spread) / (2 * self.b * (1 - self.cut))
            if self.cut
            else 0.0
        )
        return ReleasedNoise(
            self.kind, 1 / amount, 0.0, truncation(amount, delta) if delta else 0.0
        )

    def smoothed(self) -> ReleasedNoise:
        """The law after a uniform on (−½, ½) was added to geometric noise: Tulap.

        Other laws stay.
        """
        return ReleasedNoise("tulap", self.spread) if self.kind == "geometric" else self


def released_noise(mechanism: Mechanism) -> ReleasedNoise:
    """The law of a mechanism's noise, in units of the statistic."""
    if isinstance(mechanism, CutTulapNoise):
        spread = float(mechanism.spread)
        return ReleasedNoise(
            "tulap",
            spread,
            float(mechanism.step),
            2
            * float(
                _tulap_lower(
                    np.asarray(-float(mechanism.reach * mechanism.step)), math.exp(-1 / spread)
                )
            ),
        )
    if not isinstance(mechanism, AdditiveNoise):
        raise NoTheorem(
            "an exact law",
            f"{mechanism.kind} noise is not one number's additive noise",
            "the law of the released number is needed",
            "use the result's own intervals",
        )
    return ReleasedNoise(
        mechanism.kind,
        float(mechanism.spread),
        0.0 if mechanism.kind == "geometric" else float(mechanism.step),
    )


def released_value(mechanism: Mechanism, integer: int) -> float:
    """A released whole number of grid steps, in units of the statistic;
    a Tulap cell stands at its middle.
    """
    middle = 0.5 if isinstance(mechanism, (TulapNoise, CutTulapNoise)) else 0
    return float((integer + middle) * additive(mechanism).step)


def public_uniform(release: Release) -> float:
    """A number in (−½, ½) that belongs to a release:
    public, fixed, and drawn without looking at the answer.

    Method.   53 bits of SHA-256 of the release's key, entry number and entry hash. The entry is
              written before the noise is drawn, so the number does not depend on the answer.
    Validity. With it a geometric count becomes a Tulap count. Size and power hold on average over
              this number; it is public randomness, so whoever chooses keys after seeing answers
              could choose it. Ask `proportion_test` to have it drawn secretly with the noise.
    """
    text = f"discreet.inference/uniform/{release.key}/{release.entry}/{release.entry_hash}"
    word = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 11
    return (word + 0.5) * 2.0**-53 - 0.5


def checked_share(value: object, name: str) -> float:
    """A number in [0, 1]."""
    number = rational(value, name)
    if not 0 <= number <= 1:
        raise InvalidParameter(
            name, "it is not between 0 and 1", "it is a proportion", "pass for example 0.5"
        )
    return float(number)
