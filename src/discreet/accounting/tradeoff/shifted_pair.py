"""The price of a normal law that is shifted and stretched along one line: what one row can do to a
perturbed minimiser with Gaussian noise (docs/theory/perturbed-minimisers.md, Theorem B).

One row turns N(0, 1) into the law of density φ(t + s(t))(1 + s′(t)), where 0 ≤ s ≤ μ and
0 ≤ s′ ≤ κ. `shifted_mu` is a μ′ such that every such pair is μ′-GDP:

    V(γ) = sup over s of ∫ (φ(t+s)(1+s′) − γφ(t))₊ dt  ≤  δ_μ′(ln γ)   for all γ ≥ 1.

Theorem.  Let U be continuous and linear on each triangle of the grid (t_i, s_j) = (t_0 + ih, jκh),
          cut along its ramps (i, j) → (i+1, j+1). If on each triangle −U_t is at least
          F₀ = (φ(t+s) − γφ(t))₊ and −U_t − κU_s at least F₁ = ((1+κ)φ(t+s) − γφ(t))₊, and U bounds
          what can be gained after the last t, then V ≤ max U(t_0, ·) + Φ(t_0 + μ).
Proof.    Along a path dU/dt = (1−v)U_t + v(U_t + κU_s) with v = s′/κ, so −dU/dt is at least
          (1−v)F₀ + vF₁, which is at least the integrand, because that is convex in s′. Before t_0
          the integrand is at most the derivative of Φ(t+s).
          On a triangle U_t is the slope of its flat edge and U_t + κU_s that of its ramp: going
          back over t, each node is the larger of two neighbours plus h times the supremum.
Checked.  tests/claims/test_perturbed_minimisers.py::test_the_programme_is_never_below_a_search
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtr

from discreet import plain
from discreet.errors import NoTheorem
from discreet.exact import float_up

Array = npt.NDArray[np.float64]

SMALLEST_MU, LARGEST_MU = 1e-4, 8.0
STEP = 0.0125  # of t; half of it where φ(t+s) bends most beside its price
FINE_MU = (1.0, 2.5)
LEAST_STATES, MOST_STATES = 8, 4000  # of s
BEFORE = 56.0  # e^(−BEFORE/2): how much less likely than the last gain is what lies before t_0
AFTER = 7.0
LEAST_RAMP = 0.25  # of κ/μ: below it the price is that of a quarter
# ε/μ at which V is computed; beyond the last one the closed bound V(γ) ≤ δ_μ(ε − ln(1+κ)) serves
PLACES = np.arange(0, 24.01, 0.15)
ROUNDING = 1 + 1e-9
LARGEST_RATIO = 16.0


@plain.remembered(256)
def shifted_mu(mu: Fraction, kappa: Fraction) -> float:
    """A μ′, rounded up, such that every pair above is μ′-GDP."""
    if not SMALLEST_MU <= mu <= LARGEST_MU or not 0 < kappa <= 1:
        raise NoTheorem(
            "a perturbed minimiser with Gaussian noise",
            "its price is computed for one row's μ from 0.0001 to 8 and κ up to 1 alone",
            "the programme's grid is made for these",
            "spend less or more, or use a larger penalty",
        )
    # the supremum grows with both, so larger floats are safe; slight ramps take long to compute
    shift, slope = float_up(mu), max(float_up(kappa), LEAST_RAMP * float_up(mu))
    values = worst_hockey_sticks(shift, slope)
    low, high = 1.0, LARGEST_RATIO
    if not _covers(shift * high, shift, slope, values):
        raise NoTheorem(
            "a perturbed minimiser with Gaussian noise",
            f"its price would be more than {LARGEST_RATIO:g} times that of its noise",
            "with a penalty so small beside the noise one row can bend the objective too far",
            "use a larger penalty, or leave it out",
        )
    while high - low > 2.0**-12:
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if _covers(shift * middle, shift, slope, values)
            else (
                middle,
                high,
            )
        )
    return math.nextafter(shift * high, math.inf)


def worst_hockey_sticks(mu: float, kappa: float) -> Array:
    """Upper bounds of V at the γ = exp(μ·PLACES)."""
    near = mu * PLACES < math.log1p(kappa)
    values = np.empty(len(PLACES))
    for chosen in (one for one in (near, ~near) if one.any()):
        values[chosen] = _programme(mu, kappa, mu * PLACES[chosen])
    return values


def _programme(mu: float, kappa: float, epsilon: Array) -> Array:
    """max U(t_0, ·) and what lies before, by going back over t; one column an ε."""
    step = STEP / 2 if FINE_MU[0] < mu <= FINE_MU[1] else STEP
    states = int(min(MOST_STATES, max(LEAST_STATES, math.ceil(mu / (kappa * step)))))
    h = mu / (kappa * states)
    s: Array = np.arange(states + 1, dtype=np.float64)[:, None] * (kappa * h)
    gamma, needed = np.exp(epsilon), epsilon - math.log1p(kappa)
    center = epsilon / mu + mu / 2
    first = center - np.sqrt(center**2 + BEFORE) - center
    # where `needed` is positive nothing is gained after −needed/μ, since then −ts ≤ needed
    last = np.where(needed > 0, -needed / mu, AFTER)
    steps = math.ceil(float((last - first).max()) / h)
    value = np.where(needed > 0, 0.0, (1 + kappa) * ndtr(-AFTER)) + 0 * s
    ground, held = _densities(first + steps * h, s, gamma)
    for place in range(steps - 1, -1, -1):
        t = first + place * h
        later, (ground, held) = (ground, held), _densities(t, s, gamma)
        curved = _curved(t, s, h, kappa, held)
        flat = _suprema((ground, held), later, 0.0, curved, h, t)
        ramp = _suprema((ground, held), later, kappa, curved, h, t)
        # a flat edge lies between two boxes, a ramp inside one
        stays = value + h * np.maximum(
            np.append(flat, flat[-1:], axis=0), np.append(flat[:1], flat, axis=0)
        )
        moved = value[1:] + h * ramp
        value = stays
        value[:-1] = np.maximum(stays[:-1], moved)
    return np.asarray((value.max(axis=0) + ndtr(first + mu)) * ROUNDING)


def _densities(t: Array, s: Array, gamma: Array) -> tuple[Array, Array]:
    """γφ(t) and φ(t+s)."""
    return gamma * _density(t), _density(t + s)


def _density(x: Array) -> Array:
    return np.asarray(np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def _curved(t: Array, s: Array, h: float, kappa: float, held: Array) -> Array:
    """Half the second variation over a box [t, t+h] × [s, s+κh] of a(t, s) = (1+v)φ(t+s) − γφ(t),
    v ≤ κ, without its part a·(1+t²)h²/2 (`_suprema` has that).

    d²a = (1+v)φ(u)(u²−1)(2δtδs + δs²) + δt²[(1+v)φ(u)(u² − t²) + a(t²−1)], u = t+s.
    """
    u = t + s
    far, wide = np.maximum(np.abs(u), np.abs(t)) + h * (1 + kappa), (s + kappa * h)
    largest = held * np.exp(h * (1 + kappa) * far)
    bound = (1 + kappa) * largest * (2 * wide * far + (2 * kappa + kappa**2) * (1 + far**2))
    return np.asarray(np.maximum(bound[:-1], bound[1:]) * (h * h / 2))


def _suprema(
    now: tuple[Array, Array],
    later: tuple[Array, Array],
    slope: float,
    curved: Array,
    h: float,
    t: Array,
) -> Array:
    """Upper bounds of ((1+slope)φ(t+s) − γφ(t))₊ on each box: its largest corner, and what the
    function can rise between the corners.

    A smooth function is at most its largest corner plus half its second variation.
    """
    ends = [(1 + slope) * held - ground for ground, held in (now, later)]
    corner = np.maximum(ends[0], ends[1])
    corner = np.maximum(corner[:-1], corner[1:]) + curved
    own = h * h / 2 * (1 + (np.abs(t) + h) ** 2)
    return np.asarray(np.maximum(corner, 0.0) / (1 - own))


# ── the least μ′ ──────────────────────────────────────────────────────────────────────────────────


def _covers(wide: float, mu: float, kappa: float, values: Array) -> bool:
    """Whether δ_μ′ lies above the chords of V, and above the closed bound beyond them.

    V is convex in γ, so chords bound it; δ_μ′ is convex too, so tangents bound it.
    """
    epsilon = mu * PLACES
    gamma, delta = np.exp(epsilon), _deltas(wide, epsilon)
    if np.any(delta < values):
        return False
    slope = -np.exp(log_ndtr(-epsilon / wide - wide / 2))
    between = (delta[1:] - delta[:-1] + slope[:-1] * gamma[:-1] - slope[1:] * gamma[1:]) / (
        slope[:-1] - slope[1:]
    )
    between = np.clip(between, gamma[:-1], gamma[1:])
    tangent = delta[:-1] + slope[:-1] * (between - gamma[:-1])
    chord = values[:-1] + (values[1:] - values[:-1]) * (between - gamma[:-1]) / np.diff(gamma)
    last = float(epsilon[-1])
    tail = last / wide - wide / 2 <= (last - math.log1p(kappa)) / mu - mu / 2
    return bool(np.all(tangent >= chord)) and tail


def _deltas(mu: float, epsilon: Array) -> Array:
    """δ_μ(ε), lowered by more than its rounding."""
    first, second = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
    return np.asarray(np.exp(first) * -np.expm1(second - first) * (1 - 1e-9))
