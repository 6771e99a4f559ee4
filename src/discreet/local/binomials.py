"""Counts whose law is binomial with a known link: X ~ Binomial(n, base + gain·π), π in [0, 1].

Each level of randomised response, each bit of unary encoding, each row of Hadamard response with
one block, and the ones of one-bit means are of this kind, exactly: devices draw independently, and
each contributes one Bernoulli variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc, betaincinv, ndtri

from discreet.inference.results.null_law import NullLaw, from_survival

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LinkedCounts:
    """Counts X of n reports, with the probability `base` at π = 0 and `base` + `gain` at π = 1."""

    counts: Array
    reports: int
    base: float
    gain: float

    @property
    def unbiased(self) -> Array:
        """(X/n − base)/gain (reference.md L2, L3); NaN without reports.

        It may lie outside [0, 1].
        """
        if self.reports == 0:
            return np.full(self.counts.shape, np.nan)
        return np.asarray((self.counts / self.reports - self.base) / self.gain)

    @property
    def estimate(self) -> Array:
        """The nearest share in [0, 1]."""
        return np.clip(self.unbiased, 0.0, 1.0)

    def probability(self, share: Any) -> Array:
        return np.asarray(np.clip(self.base + self.gain * np.asarray(share, dtype=float), 0.0, 1.0))

    def variances(self) -> tuple[Array, Array]:
        """(sampling, privacy) variance of the estimate at itself;
        they add up to θ(1−θ)/(n·gain²), θ = base + gain·π.

        Given the data, a level's own reports have variance p(1−p) and all others q(1−q),
        p = base + gain, q = base.
        """
        if self.reports == 0:
            return np.full(self.counts.shape, np.inf), np.full(self.counts.shape, np.inf)
        share, p, q = self.estimate, self.base + self.gain, self.base
        privacy = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (self.reports * self.gain**2)
        return np.asarray(share * (1 - share) / self.reports), np.asarray(privacy)

    def exact_interval(self, level: float) -> tuple[Array, Array]:
        """The shares that an equal-tailed exact binomial test does not reject, cut to [0, 1]
        (an empty set gives the nearest end).

        Method.    Clopper and Pearson's interval for θ, mapped by the link.
        Validity.  Coverage is at least `level` for every n and share.
        Reference. Clopper and Pearson (1934).
        """
        n, x, tail = self.reports, self.counts, (1 - level) / 2
        if n == 0:
            return np.zeros(x.shape), np.ones(x.shape)
        low = np.where(x > 0, betaincinv(np.maximum(x, 1), n - np.maximum(x, 1) + 1, tail), 0.0)
        high = np.where(
            x < n, betaincinv(np.minimum(x, n - 1) + 1, n - np.minimum(x, n - 1), 1 - tail), 1.0
        )
        return self._shares(low), self._shares(high)

    def score_interval(self, level: float) -> tuple[Array, Array]:
        """Wilson's interval for θ, mapped by the link:
        narrower, and right on average over shares rather than at each.

        Validity.  n·θ(1−θ) of 5 or more.
        Reference. Wilson (1927).
        """
        if self.reports == 0:
            return np.zeros(self.counts.shape), np.ones(self.counts.shape)
        low, high = self.wilson(level)
        return self._shares(low), self._shares(high)

    def null_law(self, place: int, null: float, alternative: str, axis: str) -> NullLaw:
        """The law of the unbiased estimate at the share `null`: binomial, with its link."""
        n, theta = self.reports, float(self.probability(null))

        def survival(t: Array) -> Array:
            counts = np.ceil(n * (self.base + self.gain * t) - 1e-6) - 1
            return np.asarray(np.where(counts < 0, 1.0, bdtrc(np.clip(counts, 0, n), n, theta)))

        reach = 8 * float(np.sqrt(theta * (1 - theta) / n)) / self.gain + 2 / (n * self.gain)
        return from_survival(
            survival,
            (null - reach, null + reach),
            float(self.unbiased[place]),
            alternative,
            axis,
            step=1 / (n * self.gain),
            source="the exact law of reports",
        )

    def wilson(self, level: float) -> tuple[Array, Array]:
        """Wilson's interval for θ itself."""
        n, z = self.reports, float(ndtri(0.5 + level / 2))
        f = self.counts / n
        middle = (f + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(f * (1 - f) / n + z**2 / (4 * n**2))
        return np.asarray(middle - half), np.asarray(middle + half)

    def data_interval(self, level: float) -> tuple[Array, Array]:
        """For the share in the data itself: |X/n − θ| ≤ z·√(v(π)/n) + 1/(2n) at every candidate π,
        v(π) the variance that privacy adds.

        Method.    A score interval, with a continuity correction; v(π) = π·p(1−p) + (1−π)·q(1−q) is
                   linear, so its ends solve quadratics.
        Validity.  n·v of 5 or more.
        """
        n, z = self.reports, float(ndtri(0.5 + level / 2))
        if n == 0:
            return np.zeros(self.counts.shape), np.ones(self.counts.shape)
        p, q, g = self.base + self.gain, self.base, self.gain
        v0, v1 = q * (1 - q), p * (1 - p) - q * (1 - q)
        ends = []
        for shift, side in ((-0.5 / n, -1), (0.5 / n, 1)):
            c = self.counts / n - q + shift
            b = 2 * g * c + z**2 * v1 / n
            disc = np.maximum(b**2 - 4 * g**2 * (c**2 - z**2 * v0 / n), 0.0)
            ends.append(np.clip((b + side * np.sqrt(disc)) / (2 * g**2), 0.0, 1.0))
        return np.asarray(ends[0]), np.asarray(ends[1])

    def p_values(self, share: Any, alternative: str) -> Array:
        """Exact binomial p-values of π = share: the tail on the alternative's side; two-sided,
        twice the smaller tail (at most 1).
        """
        theta, n, x = self.probability(share), self.reports, self.counts
        if n == 0:
            return np.ones(x.shape)
        above = np.where(x > 0, bdtrc(np.maximum(x - 1, 0), n, theta), 1.0)
        below = np.asarray(bdtr(x, n, theta))
        if alternative == "greater":
            return np.asarray(above)
        return (
            below
            if alternative == "less"
            else np.asarray(np.minimum(2 * np.minimum(above, below), 1.0))
        )

    def _shares(self, theta: Array) -> Array:
        return np.asarray(np.clip((theta - self.base) / self.gain, 0.0, 1.0))
