"""Simulation-based inference from a released statistic: solve the matching equation for many draws
(JIMI; reference.md M5, M6, M8).

Given a released number, the law of its noise and a simulator of the statistic as a function of the
parameter and of fixed uniform numbers, each draw asks which parameter makes a simulated release
equal to the one seen. The simulator clamps as the release did, so clamping does no harm.

    # theta: (draws,), uniform: (draws, rows) → the statistic before noise, (draws,)
    def simulate(theta, uniform):
        return np.clip(theta[:, None] + ndtri(uniform), -2, 2).sum(axis=1)

    found = matched_draws(release_value, simulate, noise, size=rows, low=-5, high=5)
    found.interval(0.95), found.error(0.95)

`discreet.inference.simulation.released` gives the released number and its noise;
docs/how-to/simulation.md is an example from data to interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.errors import InvalidParameter
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

Simulator = Callable[[Array, Array], Array]
Progress = Callable[[int, int], None]
MOST_AT_ONCE = 1 << 20  # uniform numbers held at one time
BISECTIONS = 52
NEWTON_STEPS = 25


@dataclass(frozen=True)
class Draws:
    """Draws of a parameter, (draws,) or (draws, parameters), with the ends of each draw's solution
    set where the statistic is discrete.
    """

    values: Array
    lower: Array
    upper: Array

    def interval(self, level: float = 0.95) -> Array:
        """The middle part: (low, high), or one such row for each parameter."""
        return np.asarray(
            np.moveaxis(np.quantile(self.values, [(1 - level) / 2, (1 + level) / 2], axis=0), 0, -1)
        )

    def error(self, level: float = 0.95) -> Array:
        """Monte-Carlo standard errors of the interval's ends: half the spread of the quantiles one
        binomial standard error to each side.
        """
        size = len(self.values)
        ends = []
        for probability in ((1 - level) / 2, (1 + level) / 2):
            off = np.sqrt(probability * (1 - probability) / size)
            around = np.quantile(
                self.values, np.clip([probability - off, probability + off], 0.0, 1.0), axis=0
            )
            ends.append((around[1] - around[0]) / 2)
        return np.asarray(np.stack(ends, axis=-1))

    def covering_interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval with finite-sample coverage ≥ level,
        the draws of the simulation included (one parameter).

        Method.    The k-th smallest lower and k-th largest upper solution,
                   k = ⌊(1 − level)/2·(draws + 1)⌋; the whole range for k = 0.
        Validity.  For a statistic that never decreases with θ: #{simulated releases at θ ≥ the one
                   seen} and the rank of the release seen among draws + 1 exchangeable ones decide,
                   so each side misses with probability ≤ k/(draws + 1). On average over the seed,
                   which must not be chosen after.
        Reference. Repro samples (Xie and Wang 2022; Awan and Wang 2024).
        """
        size = len(self.values)
        k = int(np.floor((1 - level) / 2 * (size + 1) * (1 + 1e-12)))
        if k == 0:
            return -np.inf, np.inf
        return float(np.sort(self.lower)[k - 1]), float(np.sort(self.upper)[size - k])

    def p_value(self, null: float, alternative: str = "two-sided") -> tuple[float, float]:
        """(p-value, its Monte-Carlo standard error): the part of the draws on the null's side."""
        size = len(self.values)
        less, more = (
            (1 + np.sum(self.values <= null)) / (size + 1),
            (1 + np.sum(self.values >= null)) / (size + 1),
        )
        p = {"greater": less, "less": more}.get(alternative, min(1.0, 2 * min(less, more)))
        side = p / 2 if alternative == "two-sided" else p
        return float(p), float(
            np.sqrt(side * (1 - side) / size) * (2 if alternative == "two-sided" else 1)
        )


def checked_draws(draws: object) -> int:
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise InvalidParameter(
            "draws=",
            "it is not a whole number ≥ 1",
            "it is the number of simulated releases",
            "pass for example 2000",
        )
    return draws


def simulated(
    simulate: Simulator,
    theta: Array,
    stream: Stream,
    *,
    size: int,
    progress: Progress | None = None,
) -> Array:
    """The statistics of one simulated data set for each row of `theta`, some at a time; the same
    numbers for the same stream, whatever `theta` is.
    """
    total, rows = len(theta), max(1, MOST_AT_ONCE // max(size, 1))
    parts = []
    for start in range(0, total, rows):
        many = min(rows, total - start)
        parts.append(
            np.asarray(
                simulate(
                    theta[start : start + many], stream.uniforms((many, size), f"data/{start}")
                ),
                dtype=float,
            )
        )
        if progress is not None:
            progress(start + many, total)
    return np.concatenate(parts)


def matched_draws(
    observed: float,
    simulate: Simulator,
    noise: ReleasedNoise,
    *,
    size: int,
    low: float,
    high: float,
    draws: int = 2000,
    seed: int | str = 0,
    progress: Progress | None = None,
) -> Draws:
    """Solutions θ of simulate(θ, U) + noise = observed for `draws` draws of (U, noise):
    the fiducial (JIMI) law of one parameter in [low, high].

    Method.    Vectorised bisection for the least θ with statistic ≥ target and the greatest with
               statistic ≤ target, target = observed − noise; between them (a discrete statistic) a
               Beta(½, ½) point. Targets out of reach give `low` or `high`. `size` uniforms a draw.
    Validity.  The statistic never decreases with θ for fixed U. `interval` is approximate,
               `covering_interval` has finite-sample coverage.
    Reference. Boulaguiem and others (JIMI), reference.md M5, M6.
    """
    total = checked_draws(draws)
    stream = Stream(seed)
    rows = max(1, MOST_AT_ONCE // max(size, 1))
    parts: list[tuple[Array, Array]] = []
    for start in range(0, total, rows):
        many = min(rows, total - start)
        uniform = stream.uniforms((many, size), f"data/{start}")
        target = observed - noise.quantile(stream.uniforms((many,), f"noise/{start}"))
        slack = 1e-9 * (1 + np.abs(target))
        parts.append(
            (
                _edge(simulate, uniform, target - slack, low, high, strict=False),
                _edge(simulate, uniform, target + slack, low, high, strict=True),
            )
        )
        if progress is not None:
            progress(start + many, total)
    lower, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
    point = np.sin(0.5 * np.pi * stream.uniforms((total,), "between")) ** 2
    upper = np.maximum(lower, upper)
    return Draws(lower + (upper - lower) * point, lower, upper)


def _edge(
    simulate: Simulator, uniform: Array, target: Array, low: float, high: float, *, strict: bool
) -> Array:
    """The least θ with statistic ≥ target (strict: > target), within [low, high]."""
    inner, outer = np.full(target.shape, float(low)), np.full(target.shape, float(high))

    def reached(theta: Array) -> Array:
        value = simulate(theta, uniform)
        return np.asarray(value > target if strict else value >= target)

    at_low = reached(inner)
    for _ in range(BISECTIONS):
        middle = (inner + outer) / 2
        hit = reached(middle)
        inner, outer = np.where(hit, inner, middle), np.where(hit, middle, outer)
    return np.asarray(np.where(at_low, low, outer))


def matched_vectors(
    observed: Array,
    simulate: Simulator,
    noises: tuple[ReleasedNoise, ...],
    *,
    size: int,
    start: Array,
    bounds: tuple[Array, Array],
    draws: int = 1000,
    seed: int | str = 0,
    progress: Progress | None = None,
) -> Draws:
    """The same for several parameters and as many statistics: θ with the least
    |simulate(θ, U) + noise − observed| for each draw.

    Method.   Damped Newton steps with numerical derivatives at fixed U, many draws at once, kept
              within `bounds`; the best iterate of each draw is its answer. `start` (parameters,) is
              public, for example a moment estimate from the release. theta:
              (draws, parameters) → statistics (draws, statistics).
    Validity. Approximate. Statistics that are smooth in θ for fixed U; discrete ones should be
              scaled so that a step is small against the noise.
    """
    total, stream = checked_draws(draws), Stream(seed)
    low, high = (np.asarray(side, dtype=float) for side in bounds)
    noise = np.stack(
        [
            law.quantile(stream.uniforms((total,), f"noise/{place}"))
            for place, law in enumerate(noises)
        ],
        axis=1,
    )
    target = np.asarray(observed, dtype=float) - noise
    scale = np.array([max(float(np.sqrt(law.variance)), 1e-300) for law in noises])
    rows = max(1, MOST_AT_ONCE // max(size, 1))
    found = []
    for first in range(0, total, rows):
        many = min(rows, total - first)
        uniform, part = stream.uniforms((many, size), f"data/{first}"), target[first : first + many]

        def gap(theta: Array, uniform: Array = uniform, part: Array = part) -> Array:
            return np.asarray((simulate(theta, uniform) - part) / scale)

        found.append(
            _nearest(
                gap,
                np.broadcast_to(np.asarray(start, dtype=float), (many, len(low))).copy(),
                low,
                high,
            )
        )
        if progress is not None:
            progress(first + many, total)
    theta = np.concatenate(found)
    return Draws(theta, theta, theta)


def _nearest(gap_at: Callable[[Array], Array], theta: Array, low: Array, high: Array) -> Array:
    """θ of each row with the least |gap|, by damped Gauss–Newton steps within the bounds."""
    gap = gap_at(theta)
    step = 1e-5 * (high - low)
    for _ in range(NEWTON_STEPS):
        slopes = np.empty((*gap.shape, len(low)))
        for place in range(len(low)):
            moved = theta.copy()
            moved[:, place] = np.where(
                theta[:, place] + step[place] <= high[place],
                theta[:, place] + step[place],
                theta[:, place] - step[place],
            )
            slopes[:, :, place] = (gap_at(moved) - gap) / (moved[:, place] - theta[:, place])[
                :, None
            ]
        normal = np.swapaxes(slopes, 1, 2) @ slopes
        normal += (1e-10 * np.trace(normal, axis1=1, axis2=2)[:, None, None] + 1e-12) * np.eye(
            len(low)
        )
        move = -np.linalg.solve(normal, np.swapaxes(slopes, 1, 2) @ gap[:, :, None])[:, :, 0]
        better = np.zeros(len(theta), dtype=bool)
        for length in (1.0, 0.3, 0.05):
            trial = np.clip(theta + length * move, low, high)
            found = gap_at(trial)
            take = ~better & ((found**2).sum(axis=1) < (gap**2).sum(axis=1))
            theta[take], gap[take], better = trial[take], found[take], better | take
        if not np.any(better):
            break
    return theta
