"""The most powerful private tests of one proportion, and the exact power of every test that reads a
noisy count (reference.md M3, L1).

A private test is a map from the count x to a rejection probability φ(x); privacy bounds how fast
φ may change from x to x + 1. With canonical noise N (Tulap for ε-DP and, cut, for (ε, δ)-DP;
Gaussian for μ-GDP) φ(x) = P(x + N ≥ m) meets that bound with equality on the way up, which makes it
uniformly most powerful for one-sided hypotheses. See docs/theory/binomial.md for the proofs;
a linear program over all private tests checks them.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import ndtr

from discreet.inference.counts.binomial import binomial_law
from discreet.inference.counts.tulap import ReleasedNoise

# a uniform on (−½, ½) alone: the classical randomised test
NOISELESS = ReleasedNoise("tulap", 1e-4)


def rejection(rows: int, theta: float, noise: ReleasedNoise, low: float, high: float) -> float:
    """P(Y ≤ low or Y ≥ high) at share θ."""
    x, weights = binomial_law(rows, theta)
    chance = (noise.below(low - x) if math.isfinite(low) else 0.0) + (
        noise.above(high - x) if math.isfinite(high) else 0.0
    )
    return min(1.0, float((weights * chance).sum()))


def critical_value(rows: int, null: float, noise: ReleasedNoise, alpha: float) -> float:
    """The least m with P(Y ≥ m) ≤ α at the null: reject where Y ≥ m.

    For continuous canonical noise it is the UMP test against greater shares.
    """
    centre, reach = rows * null, 1.0 + math.sqrt(rows + noise.variance)

    def excess(m: float) -> float:
        return rejection(rows, null, noise, -math.inf, m) - alpha

    low, high = centre - reach, centre + reach
    while excess(low) <= 0:
        low -= 2 * reach
        reach *= 2
    while excess(high) >= 0:
        high += 2 * reach
        reach *= 2
    found = float(brentq(excess, low, high, xtol=1e-13, rtol=1e-15))
    spacing = 1.0 if noise.kind == "geometric" else noise.step
    if not spacing:
        return found
    # on a grid: the first release whose tail is small enough
    offset = 0.5 if noise.kind == "tulap" else 0.0
    place = math.floor(found / spacing - offset) - 1
    while excess((place + offset) * spacing) > 0:
        place += 1
    return (place + offset) * spacing


def critical_values(
    rows: int,
    null: float,
    noise: ReleasedNoise,
    alpha: float,
    alternative: str = "two-sided",
    *,
    symmetric: bool = False,
) -> tuple[float, float]:
    """(low, high): reject where Y ≤ low or Y ≥ high.

    One-sided tests are UMP; two-sided are equal-tailed or symmetric about n·null.
    """
    if alternative == "greater":
        return -math.inf, critical_value(rows, null, noise, alpha)
    if alternative == "less":
        return rows - critical_value(rows, 1 - null, noise, alpha), math.inf
    low, high = (
        rows - critical_value(rows, 1 - null, noise, alpha / 2),
        critical_value(rows, null, noise, alpha / 2),
    )
    if not symmetric:
        return low, high
    centre = rows * null

    def excess(distance: float) -> float:
        return rejection(rows, null, noise, centre - distance, centre + distance) - alpha

    nearest, farthest = sorted((abs(high - centre), abs(centre - low)))
    distance = float(brentq(excess, min(nearest, 0.0), farthest + 1e-9, xtol=1e-13, rtol=1e-15))
    return centre - distance, centre + distance


def power_at(
    rows: int,
    null: float,
    theta: float,
    noise: ReleasedNoise,
    alpha: float,
    alternative: str = "two-sided",
) -> float:
    """The exact probability that the test of `null` rejects when the share is θ: UMP for one-sided
    alternatives, equal-tailed for two-sided ones.
    """
    return rejection(rows, theta, noise, *critical_values(rows, null, noise, alpha, alternative))


def unbiased_test(
    rows: int, null: float, noise: ReleasedNoise, alpha: float
) -> tuple[float, float]:
    """(k, m) of the most powerful unbiased private test: φ(x) = P(N ≥ m − |x − k|), with E φ = α
    and E[(X − n·null)·φ] = 0 at the null.

    Validity.  UMP among unbiased ε-DP and (ε, δ)-DP tests, 0 < null < 1. Near k it changes from
               falling to rising faster than any post-processing of one noisy count can
               (docs/theory/binomial.md): a released count cannot give it; it is the yardstick of
               those tests.
    Reference. Awan and Slavković (2020).
    """
    x, weights = binomial_law(rows, null)
    centre, deviation = rows * null, math.sqrt(rows * null * (1 - null) + noise.variance)

    def tilt(k: float) -> float:
        return float(
            (weights * (x - centre))
            @ noise.above(centred_offset(rows, null, noise, alpha, k) - abs(x - k))
        )

    low, high = centre - deviation, centre + deviation
    while tilt(low) < 0:
        low -= 2 * deviation
    while tilt(high) > 0:
        high += 2 * deviation
    k = float(brentq(tilt, low, high, xtol=1e-12, rtol=1e-14))
    return k, centred_offset(rows, null, noise, alpha, k)


def centred_offset(rows: int, null: float, noise: ReleasedNoise, alpha: float, k: float) -> float:
    """m with E P(N ≥ m − |X − k|) = α at the null;
    with k = n·null the test is unbiased in the limit of many rows.
    """
    x, weights = binomial_law(rows, null)
    reach = abs(k - rows * null) + 10 * math.sqrt(rows * null * (1 - null) + noise.variance) + 10

    def excess(m: float) -> float:
        return float(weights @ noise.above(m - abs(x - k))) - alpha

    while excess(reach) > 0:
        reach *= 2
    return float(brentq(excess, -reach, reach, xtol=1e-13, rtol=1e-15))


def two_armed_power(rows: int, theta: float, noise: ReleasedNoise, k: float, m: float) -> float:
    """The probability that φ(x) = P(N ≥ m − |x − k|) rejects at share θ."""
    x, weights = binomial_law(rows, theta)
    return float(weights @ noise.above(m - abs(x - k)))


def randomised_share(theta: float, noise: ReleasedNoise) -> float:
    """The share of "yes" after binary randomised response with the same guarantee as `noise` on a
    count of sensitivity 1.

    Method. Each row lies with probability 1/(1 + e^ε) (ε-DP, reference.md L1), or Φ(−μ/2) (μ-GDP:
            where its trade-off curve meets G_μ).
    """
    lie = (
        float(ndtr(-0.5 / noise.spread))
        if noise.kind == "gaussian"
        else 1 / (1 + math.exp(min(1 / noise.spread, 700.0)))
    )
    return theta + lie * (1 - 2 * theta)


def randomised_power(
    rows: int,
    null: float,
    theta: float,
    noise: ReleasedNoise,
    alpha: float,
    alternative: str = "two-sided",
) -> float:
    """The power of the best test when every row is randomised at the source instead."""
    return power_at(
        rows,
        randomised_share(null, noise),
        randomised_share(theta, noise),
        NOISELESS,
        alpha,
        alternative,
    )
