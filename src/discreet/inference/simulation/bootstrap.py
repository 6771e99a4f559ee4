"""The parametric bootstrap of a released statistic, and confidence sets with finite-sample coverage
by inverting simulated tests (reference.md M6, M8).

Both take a simulator of the statistic before noise (see `discreet.inference.simulation.fiducial`)
and the law of the noise as it was released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Array
from discreet.inference.simulation.fiducial import (
    Draws,
    Progress,
    Simulator,
    checked_draws,
    simulated,
)
from discreet.inference.simulation.streams import Stream


@dataclass(frozen=True)
class Bootstrap:
    """An estimate and what it would have been in simulated releases at that estimate."""

    estimate: float
    draws: Array

    def _draws(self) -> Draws:
        return Draws(self.draws, self.draws, self.draws)

    @property
    def std_error(self) -> float:
        """The standard deviation of the simulated estimates."""
        return float(np.std(self.draws, ddof=1))

    @property
    def std_error_error(self) -> float:
        """The Monte-Carlo standard error of `std_error` (of a normal law; it shrinks with the root
        of the draws).
        """
        return self.std_error / float(np.sqrt(2 * (len(self.draws) - 1)))

    @property
    def bias(self) -> float:
        """How far simulated estimates lie from the parameter that made them, on average."""
        return float(np.mean(self.draws) - self.estimate)

    def interval(self, level: float = 0.95, *, method: str = "basic") -> tuple[float, float]:
        """ "percentile": the middle of the simulated estimates; "basic":
        that, reflected about the estimate, which removes bias.
        """
        low, high = (float(end) for end in self._draws().interval(level))
        if method == "percentile":
            return low, high
        if method == "basic":
            return 2 * self.estimate - high, 2 * self.estimate - low
        raise InvalidParameter(
            "method=",
            "neither 'basic' nor 'percentile'",
            "these are the bootstrap intervals",
            "pass one of them",
        )

    def error(self, level: float = 0.95) -> Array:
        """Monte-Carlo standard errors of the ends."""
        return self._draws().error(level)


def parametric_bootstrap(
    observed: float,
    simulate: Simulator,
    noise: ReleasedNoise,
    estimator: Callable[[Array], Array],
    *,
    size: int,
    draws: int = 2000,
    seed: int | str = 0,
    progress: Progress | None = None,
) -> Bootstrap:
    """The law of an estimator of a released statistic, simulated at its own estimate.

    Method.   θ̂ = estimator(observed); releases simulate(θ̂, U) + noise; their estimates.
              `estimator` maps an array of releases to estimates.
    Validity. First-order right where the law of the error changes slowly with θ; not near a bound
              of the parameter. Use `covering_interval` of `matched_draws`, or `reproduced_set`,
              where coverage must hold at every size.
    """
    total, stream = checked_draws(draws), Stream(seed)
    estimate = float(np.asarray(estimator(np.array([float(observed)])))[0])
    statistics = simulated(simulate, np.full(total, estimate), stream, size=size, progress=progress)
    return Bootstrap(
        estimate,
        np.asarray(estimator(statistics + noise.quantile(stream.uniforms((total,), "noise")))),
    )


@dataclass(frozen=True)
class ReproducedSet:
    """Candidate parameters with the p-value of each;
    the confidence set is those with p > 1 − level.
    """

    candidates: Array
    p_values: Array
    draws: int

    @property
    def errors(self) -> Array:
        """Monte-Carlo standard errors of the p-values.

        Coverage does not depend on them: it holds with the draws as they are.
        """
        return np.asarray(np.sqrt(self.p_values * (1 - self.p_values) / self.draws))

    def accepted(self, level: float = 0.95) -> npt.NDArray[np.bool_]:
        return np.asarray(self.p_values > 1 - level + 1e-12)

    def interval(self, coordinate: int = 0, level: float = 0.95) -> tuple[float, float]:
        """From the smallest to the largest accepted candidate of a coordinate, widened to the next
        candidates; the likeliest candidate where none is.
        """
        values = np.unique(self.candidates[:, coordinate])
        kept = self.candidates[self.accepted(level), coordinate]
        if kept.size == 0:
            best = float(self.candidates[int(np.argmax(self.p_values)), coordinate])
            return best, best
        low, high = np.searchsorted(values, [kept.min(), kept.max()])
        return float(values[max(low - 1, 0)]), float(values[min(high + 1, values.size - 1)])


def reproduced_set(
    observed: Array,
    simulate: Simulator,
    noises: tuple[ReleasedNoise, ...],
    candidates: Array,
    *,
    size: int,
    draws: int = 999,
    seed: int | str = 0,
    progress: Progress | None = None,
) -> ReproducedSet:
    """p-values of candidate parameters, one or several, by the rank of the release seen among
    simulated ones: no smoothness or monotony is needed.

    Method.    At each candidate, draws + 1 releases (the one seen among them) are ranked by their
               Mahalanobis distance from their common centre; p = the part that lies at least as far
               as the one seen. The same uniform numbers serve every candidate.
    Validity.  At the true parameter all draws + 1 are exchangeable, so P(p ≤ α) ≤ α for every
               sample size, on average over the seed. Between candidates nothing is tested:
               `interval` widens to the next ones, which is right where the set changes slowly
               against their distance.
    Reference. Xie and Wang (2022); Awan and Wang (2024).
    """
    total, stream = checked_draws(draws), Stream(seed)
    seen = np.atleast_1d(np.asarray(observed, dtype=float))
    table = np.asarray(candidates, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    noise = np.stack(
        [
            law.quantile(stream.uniforms((total,), f"noise/{place}"))
            for place, law in enumerate(noises)
        ],
        axis=1,
    )
    p_values = np.empty(len(table))
    for place, theta in enumerate(table):
        at = np.broadcast_to(theta, (total, theta.size))
        statistics = simulated(simulate, at[:, 0] if theta.size == 1 else at, stream, size=size)
        everything = np.vstack([seen, statistics.reshape(total, -1) + noise])
        distance = _distances(everything)
        p_values[place] = np.mean(distance >= distance[0] * (1 - 1e-12))
        if progress is not None:
            progress(place + 1, len(table))
    return ReproducedSet(table, p_values, total)


def _distances(releases: Array) -> Array:
    """Squared Mahalanobis distances from the mean of all: a symmetric function of the releases."""
    off = releases - releases.mean(axis=0)
    spread = off.T @ off / len(off)
    spread += 1e-12 * np.trace(spread) * np.eye(len(spread)) + 1e-300 * np.eye(len(spread))
    return np.asarray(np.einsum("ij,ij->i", off, np.linalg.solve(spread, off.T).T))
