"""The fiducial law of one proportion given a noisy count (DP-JIMI; reference.md M5, M6): its exact
distribution function, and draws from it.

A draw takes fresh noise off the released count, x* = y − N*, and answers what a count of x* says
about the share: 0 for x* < 0, 1 for x* > n, else Beta(x* + ½, n − x* + ½), the law of the matching
equation's solution. The count is never clamped before noise is taken off.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import betainc

from discreet.inference.counts.binomial import NoisyCount
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

REACH = 37.0  # spreads: noise beyond them has probability below 1e-16
MOST_POINTS = 1 << 15
_AT_ONCE = 1 << 13  # small arrays stay in the cache
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def _counts(count: NoisyCount) -> tuple[Array, Array]:
    """(x*, probabilities) of y − N* within [0, n]: the lattice itself for geometric noise, else
    Gauss–Legendre nodes between the kinks of the law.

    A grid as fine as a 1024th of the noise is taken as continuous here,
    which moves probabilities by less than 1e-6.
    """
    noise, value, rows = count.noise, count.value, count.rows
    wide = min(REACH * noise.spread + 2, noise.end)
    low, high = max(0.0, value - wide), min(float(rows), value + wide)
    if low > high or (low == high and noise.kind != "geometric"):
        return np.zeros(0), np.zeros(0)
    if noise.kind == "geometric" and high - low <= MOST_POINTS:
        x = np.arange(math.ceil(low), math.floor(high) + 1.0)
        return x, noise.above(value - x) - noise.above(value - x + 1)
    panels = int(min(max(math.ceil(high - low), 16), 4096)) if noise.kind == "tulap" else 64
    edges = np.linspace(low, high, panels + 1)
    if noise.kind == "tulap" and high - low <= 4096:  # its density jumps at y ± ½, y ± 1½, …
        edges = np.concatenate(
            [
                [low],
                np.arange(math.ceil(low - value + 0.5), math.floor(high - value + 0.5) + 1)
                + value
                - 0.5,
                [high],
            ]
        )
    elif low < value < high:
        edges = np.union1d(edges, [value])
    middle, half = (edges[1:] + edges[:-1])[:, None] / 2, np.diff(edges)[:, None] / 2
    x = (middle + half * _NODES).ravel()
    return x, (half * _WEIGHTS).ravel() * _density(noise, value - x)


def _density(noise: ReleasedNoise, t: Array) -> Array:
    if noise.kind == "gaussian":
        return np.asarray(
            np.exp(-0.5 * (t / noise.spread) ** 2) / (noise.spread * math.sqrt(2 * math.pi))
        )
    if noise.kind == "laplace":
        return np.asarray(0.5 * np.exp(-np.abs(t) / noise.spread) / noise.spread)
    return np.asarray(
        np.power(noise.b, np.abs(np.rint(t)))
        * (-math.expm1(-1 / noise.spread))
        / (1 + noise.b)
        / (1 - noise.cut)
    )


class FiducialShare:
    """The fiducial distribution of a share, computed without simulation.

    Validity. Approximate: coverage of 0.95 is within 0.01 of nominal for smooth noise on the
              published grid (reference.md M6: slightly below, by at most 0.006 there). On whole
              counts (geometric noise) it moves with the lattice as every deterministic interval
              does.
    """

    def __init__(self, count: NoisyCount) -> None:
        self.count = count
        self._x, self._weights = _counts(count)
        self._below = float(
            count.noise.above(
                np.nextafter(count.value, math.inf)
                if count.noise.kind != "geometric"
                else count.value + 1
            )
        )
        self._above = float(
            count.noise.below(
                count.value - count.rows - (1 if count.noise.kind == "geometric" else 0)
            )
        )

    def cdf(self, theta: float) -> float:
        """P(share ≤ θ); jumps at 0 and at 1 where the count may lie outside [0, n]."""
        if theta >= 1:
            return 1.0
        inside = (
            float(
                self._weights
                @ betainc(self._x + 0.5, self.count.rows - self._x + 0.5, max(theta, 0.0))
            )
            if self._x.size
            else 0.0
        )
        return min(1.0, self._below + inside)

    def quantile(self, probability: float) -> float:
        """The least θ with P(share ≤ θ) ≥ probability."""
        if self._below >= probability:
            return 0.0
        if 1 - self._above <= probability:
            return 1.0
        return (
            float(
                brentq(
                    lambda theta: self.cdf(theta) - probability,
                    0.0,
                    1.0 - 1e-16,
                    xtol=1e-14,
                    rtol=1e-14,
                )
            )
            if self.cdf(1 - 1e-16) > probability
            else 1.0
        )

    def interval(self, level: float) -> tuple[float, float]:
        """The middle part of probability `level`; [0, 1] without rows."""
        if self.count.rows == 0:
            return 0.0, 1.0
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def p_value(self, null: float, alternative: str) -> float:
        """How much of the law lies on the null's side;
        twice the smaller side for two-sided alternatives.
        """
        low = self.cdf(null)
        if alternative == "greater":
            return low
        return 1 - low if alternative == "less" else min(1.0, 2 * min(low, 1 - low))


def share_draws(count: NoisyCount, draws: int, *, seed: int | str = 0) -> Array:
    """`draws` draws of the fiducial law, a fixed function of a public seed."""
    found = np.empty(draws)
    for start in range(0, draws, _AT_ONCE):
        size = min(_AT_ONCE, draws - start)
        stream = Stream(f"{seed}/{start}")
        star = count.value - count.noise.quantile(stream.uniforms((size,), "noise"))
        inside = np.clip(star, 0.0, float(count.rows))
        share = stream.betas(inside + 0.5, count.rows - inside + 0.5)
        found[start : start + size] = np.where(
            star < 0, 0.0, np.where(star > count.rows, 1.0, share)
        )
    return found
