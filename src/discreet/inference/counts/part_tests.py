"""The test of tests: from a noisy number of parts in which some test rejects to one p-value
(reference.md K1, M3).
"""

from __future__ import annotations

import functools
import math
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.inference.counts.binomial import NoisyCount
from discreet.inference.counts.most_powerful import power_at
from discreet.inference.counts.tulap import (
    ReleasedNoise,
    public_uniform,
    released_noise,
    released_value,
)
from discreet.inference.results.decode import as_kind
from discreet.inference.results.evidence import Evidence, TestedResult
from discreet.inference.results.results import Quantity
from discreet.specs.queries.parts import PartRejections

CANDIDATE_PARTS = (4, 6, 9, 13, 20, 30, 45, 67, 100, 150, 225, 340, 500)
CANDIDATE_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4)


class PartsResult(TestedResult):
    """The share of parts in which a test rejects, and whether that is more than chance.

    *Validity*: rows are independent, and the test keeps its level in a part.
    """

    __slots__ = ()
    title: ClassVar[str] = "Private test of tests"
    about: ClassVar[str] = (
        "The share of parts that reject would be the inner level under the null; its interval "
        "is exact (binomial, with the released noise)."
    )

    def _count(self, *, uniform: bool) -> NoisyCount:
        release = self.release
        noise, value = (
            released_noise(release.mechanism),
            released_value(release.mechanism, release.integers[0]),
        )
        if uniform and noise.kind == "geometric":
            noise, value = noise.smoothed(), value + public_uniform(release)
        return NoisyCount(value, self._query.parts, noise)

    @property
    def inner(self) -> float:
        """The level at which the test was run in every part."""
        return float(self._query.level)

    @property
    def _query(self) -> PartRejections:
        return as_kind(self.release.query, PartRejections)

    def quantities(
        self, level: float = 0.95, *, target: str = "population"
    ) -> tuple[Quantity, ...]:
        count = self._count(uniform=False)
        parts, noise = count.rows, count.noise.variance
        low, high = count.interval(level)
        share = count.value / parts
        p = min(1.0, max(0.0, share))
        return (
            Quantity(
                "share of parts",
                np.array([share]),
                np.array([low]),
                np.array([high]),
                np.array([p * (1 - p) / parts if target == "population" else 0.0]),
                np.array([noise / parts**2]),
            ),
        )

    def test(self) -> Evidence:
        """Whether the test rejects in more parts than its level explains:
        the most powerful private test of a binomial share.

        Method.    Under the null every part rejects with probability at most `inner`,
                   independently; p = P(noisy count ≥ the one seen) at exactly `inner`.
        Validity.  Exact for every number of parts and every noise,
                   where the test keeps its level in parts of this size.
        Reference. Kazan, Shi, Groce, Bray (2023), *The test of tests*; Awan and Slavković (2018).
        """
        count = self._count(uniform=True)
        asked = self.release.description
        return Evidence(
            f"the null of {asked.column}",
            f"it rejects in more than {self.inner:g} of the parts",
            count.value,
            count.at_least(self.inner),
            f"{count.rows} parts, exact binomial law with the released noise",
            law=functools.partial(
                count.null_law, self.inner, "greater", "noisy number of parts that reject"
            ),
        )


def planned_power(
    parts: int, inner: float, noise: ReleasedNoise, signal: float, alpha: float = 0.05
) -> float:
    """Power where the test on all rows would have a normal statistic of mean `signal` (two-sided):
    on a part its mean is signal/√parts.
    """
    z, shift = float(ndtri(1 - inner / 2)), signal / math.sqrt(parts)
    return float(
        power_at(parts, inner, float(ndtr(shift - z) + ndtr(-shift - z)), noise, alpha, "greater")
    )


@functools.lru_cache(maxsize=64)
def best_split(noise: ReleasedNoise, most: int) -> tuple[int, float]:
    """(parts, inner level) that find the weakest signal with power 0.8 at α = 0.05, among at most
    `most` parts; from the noise alone.
    """
    best = (math.inf, 1, 0.05)
    for parts in (
        candidate for candidate in CANDIDATE_PARTS if candidate <= max(most, CANDIDATE_PARTS[0])
    ):
        for inner in CANDIDATE_LEVELS:
            low, high = 0.0, best[0] if math.isfinite(best[0]) else 400.0
            if planned_power(parts, inner, noise, high) < 0.8:
                continue
            for _ in range(9):
                middle = (low + high) / 2
                low, high = (
                    (low, middle)
                    if planned_power(parts, inner, noise, middle) >= 0.8
                    else (middle, high)
                )
            best = min(best, (high, parts, inner))
    return min(best[1], max(most, 1)), best[2]
