"""Inference for one proportion: sums over all counts, linear programs and quadrature.

Everything here is summed or integrated in floats, good to about 1e-14. Linear programs search over
all private tests and know nothing of Tulap noise; HiGHS solves them to 1e-9 or so.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import betainc, comb, ndtri

from tests.reference.stored import crossing

LEVEL = 0.05

Array = NDArray[np.float64]


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes 0."""
    return float(crossing(lambda x: function(float(x)), low, high, 60))


# ── Tulap noise ───────────────────────────────────────────────────────────────────────────────────


def tulap_cdf(t: Array | float, epsilon: float, q: float = 0.0) -> Array:
    """P(G + U ≤ t), G two-sided geometric and U uniform on (−½, ½), summed over the values of G;
    restricted to the quantiles from q/2 to 1 − q/2 (reference.md B2, M3).
    """
    far, b = math.ceil(45 / epsilon), math.exp(-epsilon)
    k = np.arange(-far, far + 1)
    mass = (1 - b) / (1 + b) * b ** np.abs(k)
    whole = np.clip(np.atleast_1d(t)[:, None] - k + 0.5, 0, 1) @ mass
    return np.clip((whole - q / 2) / (1 - q), 0, 1)


def tulap_probability(t: float, epsilon: float, q: float | str = 0.0) -> float:
    """F(t); q may be given as the δ that it is for, "δ = 0.01" (reference.md M3)."""
    return float(tulap_cdf(t, epsilon, cut_of(q, epsilon))[0])


def cut_of(q: float | str, epsilon: float) -> float:
    return tulap_cut(epsilon, float(q.split()[-1])) if isinstance(q, str) else q


def tulap_cut(epsilon: float, delta: float) -> float:
    """The q after which the noise, cut at ±R, has P(N ≥ R − 1) = δ, which is what a count needs
    (reference.md M3).
    """

    def short(q: float) -> float:
        end = root(lambda t: 1 - q / 2 - float(tulap_cdf(t, epsilon)[0]), 0, 60 / epsilon)
        return delta - 1 + float(tulap_cdf(end - 1, epsilon, q)[0])

    return root(short, 1e-6, 0.5)


def tulap_variance(epsilon: float) -> float:
    """Σk²P(G = k) + 1/12 (reference.md B2, M3)."""
    k, b = np.arange(1, math.ceil(60 / epsilon)), math.exp(-epsilon)
    return float(2 * (1 - b) / (1 + b) * np.sum(k**2 * b**k)) + 1 / 12


# ── tests of a proportion ─────────────────────────────────────────────────────────────────────────


def binomial_law(n: int, share: float) -> Array:
    x = np.arange(n + 1)
    return np.asarray(comb(n, x) * share**x * (1 - share) ** (n - x))


def at_least(y: float, n: int, share: float, epsilon: float, q: float | str = 0.0) -> float:
    """p(y) = P(X + N ≥ y) = Σ P(X = x)·(1 − F(y − x)) (reference.md M3)."""
    cut = cut_of(q, epsilon)
    return float(binomial_law(n, share) @ (1 - tulap_cdf(y - np.arange(n + 1), epsilon, cut)))


def power(n: int, null: float, share: float, epsilon: float, q: float | str = 0.0) -> float:
    """P(X + N ≥ y) at the share for the y that the null reaches with probability 5 %
    (reference.md M3).
    """
    cut, far = cut_of(q, epsilon), 50 / epsilon
    y = root(lambda y: at_least(y, n, null, epsilon, cut) - LEVEL, -far, n + far)
    return at_least(y, n, share, epsilon, cut)


def most_power(n: int, null: float, share: float, epsilon: float, delta: float = 0.0) -> float:
    """The largest Σ P(X = x)φ(x) over all tests φ of size 5 % that are (ε, δ)-DP: φ and 1 − φ of
    neighbouring counts keep within φ(x) ≤ e^ε φ(x ± 1) + δ (reference.md A1, M3).
    """
    return _best_test(n, share, epsilon, delta, binomial_law(n, null)[None, :], [LEVEL])


def most_unbiased_power(n: int, null: float, share: float, epsilon: float, level: float) -> float:
    """The same among tests with E φ = α and E[(X − nθ₀)φ] = 0 (reference.md M3)."""
    law = binomial_law(n, null)
    moments = np.stack([law, law * (np.arange(n + 1) - n * null)])
    return _best_test(n, share, epsilon, 0.0, moments, [level, 0.0])


def _best_test(
    n: int, share: float, epsilon: float, delta: float, moments: Array, targets: list[float]
) -> float:
    rows, limits, growth = [], [], math.exp(epsilon)
    for x in range(n + 1):
        for beside in (x - 1, x + 1):
            if 0 <= beside <= n:
                row = np.zeros(n + 1)
                row[x], row[beside] = 1, -growth
                rows += [row, -row]
                limits += [delta, growth - 1 + delta]
    found = linprog(
        -binomial_law(n, share),
        A_ub=np.array(rows),
        b_ub=limits,
        A_eq=moments,
        b_eq=targets,
        bounds=(0, 1),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return -float(found.fun)


def symmetric_p_value(y: float, n: int, null: float, epsilon: float, q: float = 0.0) -> float:
    """P(|X + N − nθ₀| ≥ |y − nθ₀|) (reference.md M3)."""
    distance = abs(y - n * null)
    above = at_least(n * null + distance, n, null, epsilon, q)
    return above + 1 - at_least(n * null - distance, n, null, epsilon, q)


def limit(y: float, n: int, epsilon: float, q: float | str, side: str) -> float:
    """The share at which the one-sided test of level 5 % just rejects (reference.md M3)."""
    cut = cut_of(q, epsilon)
    if side == "low":
        return root(lambda share: LEVEL - at_least(y, n, share, epsilon, cut), 0, 1)
    return root(lambda share: 1 - at_least(y, n, share, epsilon, cut) - LEVEL, 0, 1)


def symmetric_limit(y: float, n: int, epsilon: float, q: float, side: str) -> float:
    """The share at which the symmetric test of level 5 % just rejects (reference.md M3)."""
    if side == "low":
        return root(lambda share: LEVEL - symmetric_p_value(y, n, share, epsilon, q), 0, y / n)
    return root(lambda share: symmetric_p_value(y, n, share, epsilon, q) - LEVEL, y / n, 1)


def arms(n: int, epsilon: float, k: float, m: float) -> Array:
    """φ(x) = F(|x − k| − m) (reference.md M3)."""
    return tulap_cdf(np.abs(np.arange(n + 1) - k) - m, epsilon)


def offset(n: int, null: float, epsilon: float, level: float, k: float) -> float:
    """The m that gives the test around k its size."""
    law, far = binomial_law(n, null), n + 50 / epsilon
    return root(lambda m: float(law @ arms(n, epsilon, k, m)) - level, -far, far)


def unbiased_centre(n: int, null: float, epsilon: float, level: float) -> float:
    """The k with E[(X − nθ₀)φ] = 0 (reference.md M3)."""
    weight = binomial_law(n, null) * (np.arange(n + 1) - n * null)

    def slope(k: float) -> float:
        return float(weight @ arms(n, epsilon, k, offset(n, null, epsilon, level, k)))

    return root(slope, 0, n)


def unbiased_offset(n: int, null: float, epsilon: float, level: float) -> float:
    """The m that belongs to the k of the unbiased test."""
    return offset(n, null, epsilon, level, unbiased_centre(n, null, epsilon, level))


def centred_power(n: int, null: float, share: float, epsilon: float, level: float) -> float:
    """The power of the test around k = nθ₀, which is nearly unbiased."""
    k = n * null
    test = arms(n, epsilon, k, offset(n, null, epsilon, level, k))
    return float(binomial_law(n, share) @ test)


# ── Laplace noise: the normal approximation and the fiducial law ──────────────────────────────────


def laplace_above(t: Array | float, epsilon: float) -> Array:
    """P(Lap(1/ε) ≥ t) (reference.md B1)."""
    half = np.exp(-epsilon * np.abs(t)) / 2
    return np.where(np.asarray(t) > 0, half, 1 - half)


def reaches(y: float, n: int, share: float, epsilon: float) -> float:
    """P(X + Lap(1/ε) ≥ y)."""
    return float(binomial_law(n, share) @ laplace_above(y - np.arange(n + 1), epsilon))


def normal_rejects(n: int, null: float, share: float, epsilon: float) -> float:
    """How often the count exceeds nθ₀ by the 95 % point of N(0, nθ₀(1 − θ₀) + 2/ε²)
    (reference.md M2).
    """
    spread = math.sqrt(n * null * (1 - null) + 2 / epsilon**2)
    return reaches(n * null + float(ndtri(0.95)) * spread, n, share, epsilon)


def fiducial_cdf(theta: float, y: float, n: int, epsilon: float) -> float:
    """P(θ* < 0) + ∫ P(Beta(nu + ½, n(1 − u) + ½) ≤ θ) dP(θ* = u) over 0 ≤ u ≤ 1, where
    nθ* = y − Lap(1/ε): Gauss's rule on short intervals that end at y/n (reference.md M6).
    """
    middle = min(1.0, max(0.0, y / n))
    panels = np.unique(np.concatenate([np.linspace(0, middle, 41), np.linspace(middle, 1, 41)]))
    node, weight = np.polynomial.legendre.leggauss(16)
    half, centre = np.diff(panels)[:, None] / 2, (panels[1:] + panels[:-1])[:, None] / 2
    u = centre + half * node
    density = n * epsilon / 2 * np.exp(-epsilon * np.abs(y - n * u))
    inside = np.sum(half * weight * density * betainc(n * u + 0.5, n * (1 - u) + 0.5, theta))
    return float(laplace_above(y, epsilon) + inside)


def fiducial_quantile(share: float, n: int, epsilon: float, probability: float) -> float:
    """The θ below which the fiducial law of a release n·share puts `probability`."""
    return root(lambda t: probability - fiducial_cdf(t, n * share, n, epsilon), 1e-9, 1 - 1e-9)


def fiducial_limit(theta: float, n: int, epsilon: float, probability: float) -> float:
    """The release at which the fiducial law puts `probability` below θ."""
    far = n + 100 / epsilon
    return root(lambda y: fiducial_cdf(theta, y, n, epsilon) - probability, -far, far)


def fiducial_share_limit(theta: float, n: int, epsilon: float, probability: float) -> float:
    """The same as a share."""
    return fiducial_limit(theta, n, epsilon, probability) / n


def fiducial_coverage(theta: float, n: int, epsilon: float) -> float:
    """How often a release at θ has θ between its 2.5 % and 97.5 % points (reference.md M6)."""
    low, high = (fiducial_limit(theta, n, epsilon, p) for p in (0.975, 0.025))
    return reaches(low, n, theta, epsilon) - reaches(high, n, theta, epsilon)


def fiducial_power(null: float, theta: float, n: int, epsilon: float) -> float:
    """How often a release at θ has the null below its 5 % point."""
    return reaches(fiducial_limit(null, n, epsilon, 0.05), n, theta, epsilon)
