"""The ledger's price of any mechanism with a privacy loss distribution:
the least μ beside a given δ₀.

Theorem.  Let δ_M(ε) be the worse of both orders of the neighbours. If δ_M(ε) ≤ δ₀ + (1−δ₀)·δ_μ(ε)
          for every ε ≥ 0, then the trade-off function of M lies above G_μ⊗f_(0,δ₀) in both orders,
          so that M may be charged (μ², δ₀).
Proof.    The right side is the δ(ε) of the pair with trade-off function g = G_μ⊗f_(0,δ₀), which is
          symmetric. For one order, δ at −ε follows from the other order's δ at ε by
          δ_{P,Q}(−ε) = 1 − e^{−ε} + e^{−ε}δ_{Q,P}(ε), and the same identity holds for g; so ε ≥ 0
          in both orders is all real ε in each, and f_M ≥ g by duality (reference.md A5–A7).
On whole intervals.  As functions of y = e^ε both sides are convex. Between two points the chord of
          upper bounds of δ_M lies above δ_M, and the right side lies above each of its tangents;
          so it is enough that one tangent, slope −(1−δ₀)Φ(−ε/μ − μ/2), is above the chord at both
          ends, which is decided in ball arithmetic. Beyond the last point δ_M ≤ δ₀ already.
Checked.  tests/accounting/test_least_price.py
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.accounting.loss_distributions.curve import PLD, _evaluate
from discreet.accounting.loss_distributions.pairs import Gaussian
from discreet.enclosure import enclose, normal_tail
from discreet.errors import NoTheorem
from discreet.exact import rational, sqrt_up
from discreet.trusted.losses.loss import Loss

Floats = npt.NDArray[np.float64]
_POINTS = 30
_ROUNDS = 12
_CLOSE = 1e-5
_SMALLEST_MU = 1e-6
_ACCURACY = 1e-3  # of ε, relative: finer lattices change μ by less than 1e-4
_TARGETS = (0.2, 1e-3)  # where the loss distribution is evaluated most accurately, besides δ₀


def least_mu(pld: PLD, delta0: float) -> float:
    """The least μ (up to the numerics, which round up) such that the composition may be charged
    (μ², δ₀).
    """
    exact = _gaussian_mu_squared(pld)
    if exact is not None:
        return float(sqrt_up(exact))
    failure = rational(delta0, "delta0")
    if not 0 < failure < 1:
        raise NoTheorem(
            "a price with δ₀ outside (0, 1)",
            "a loss distribution is truncated, so it always needs a little δ₀",
            "its far tail is only known to be rare",
            "open the ledger with delta0 > 0, or charge a pure mechanism by its ε",
        )
    bound = _upper_bound(pld, (float(failure) / 2, *_TARGETS))
    last = _first_below(bound, float(failure))
    knots = np.concatenate([[0.0], last * np.geomspace(1e-3, 1, 2 * _POINTS)])
    deltas = np.array([bound(epsilon) for epsilon in knots])
    if deltas[0] >= 1:
        raise NoTheorem(
            "a price of this composition",
            "its loss distribution could not be bounded at ε = 0",
            "no μ covers a mechanism that may tell everything",
            "compose fewer steps, or account for the mechanisms without sampling",
        )
    mu = _search(knots, deltas, float(failure))
    for _ in range(_ROUNDS):  # more points where the chord binds, while that still helps
        before = mu
        worst = int(np.argmin(_slack(knots, deltas, mu, float(failure))))
        low, high = knots[max(worst - 1, 0)], knots[min(worst + 2, knots.size - 1)]
        if high - low < 1e-6 * last:
            break
        added = np.linspace(low, high, 18)[1:-1]
        added = added[np.min(np.abs(added[:, None] - knots[None, :]), axis=1) > 1e-8 * last]
        order = np.argsort(np.concatenate([knots, added]))
        knots, deltas = (
            np.concatenate([knots, added])[order],
            np.concatenate([deltas, [bound(epsilon) for epsilon in added]])[order],
        )
        mu = _search(knots, deltas, float(failure))
        if before - mu < _CLOSE * mu:
            break
    rise = 1e-8
    while not _certain(knots, deltas, mu, failure):
        mu, rise = mu * (1 + rise), 4 * rise
    return mu


def least_mu_above(knots: Floats, deltas: Floats, beyond: Callable[[Fraction], bool]) -> float:
    """The least μ with δ_μ above the chords of upper bounds of δ, and above δ beyond the last of
    them, where `beyond` has to say so: nothing of it is δ₀.
    """
    mu, rise = least_mu_near(knots, deltas), 1e-8
    while not (beyond(Fraction(mu)) and _certain(knots, deltas, mu, Fraction(0))):
        if rise > 1:
            raise NoTheorem(
                "a Gaussian price",
                "no μ within reach lies above the bound at every ε",
                "a charge has to hold at every ε, however small the δ",
                "spend dp.ApproxDP(epsilon, delta), or ask for fewer trials",
            )
        mu, rise = mu * (1 + rise), 4 * rise
    return mu


def least_mu_near(knots: Floats, deltas: Floats) -> float:
    """The same in floats, and not certain: where to look."""
    return _search(knots, deltas, 0.0)


def pld_loss(pld: PLD, *, delta0: float) -> Loss:
    """The loss of the composition: μ² alone where that is exact, else beside δ₀."""
    exact = _gaussian_mu_squared(pld)
    if exact is not None:
        return Loss(mu_squared=exact)
    return Loss(mu_squared=Fraction(least_mu(pld, delta0)) ** 2, delta=rational(delta0, "delta0"))


def _gaussian_mu_squared(pld: PLD) -> Fraction | None:
    """Σμ² where every factor is Gaussian (reference.md C4), else None."""
    total = Fraction(0)
    for factor, times in pld.factors:
        if not isinstance(factor, Gaussian):
            return None
        total += times * rational(factor.mu, "mu") ** 2
    return total


def _upper_bound(pld: PLD, targets: tuple[float, ...]) -> Callable[[float], float]:
    """A certified upper bound of δ(ε), the worse of both orders:
    the best of evaluations tuned to several δ.
    """
    orders = [
        [_evaluate(laws, "above", _ACCURACY, delta=target) for target in targets]
        for laws in pld._orders()
    ]
    return lambda epsilon: max(
        min(composed.delta(epsilon) for composed in order) for order in orders
    )


def _first_below(bound: Callable[[float], float], failure: float) -> float:
    """An ε at which the bound is at most δ₀, within a factor of 1.02 of the first."""
    high = 1e-3
    while bound(high) > failure:
        high *= 2
        if high > 1e7:
            raise NoTheorem(
                "a price with this δ₀",
                "the mechanism fails outright with a larger probability",
                "no μ covers an event that δ₀ does not",
                "choose a larger delta0",
            )
    low = high / 2 if high > 1e-3 else 0.0
    while high - low > 0.02 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if bound(middle) > failure else (low, middle)
    return high


def _search(knots: Floats, deltas: Floats, failure: float) -> float:
    """The least μ with no negative slack, by bisection in floats."""
    low, high = _SMALLEST_MU, 2 * _SMALLEST_MU
    while np.min(_slack(knots, deltas, high, failure)) < 0:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (
            (middle, high) if np.min(_slack(knots, deltas, middle, failure)) < 0 else (low, middle)
        )
    return high


def _touching(knots: Floats, deltas: Floats, mu: float, failure: float) -> tuple[Floats, Floats]:
    """For every interval, the ε nearest to where the right side is parallel to the chord,
    and the chord's height there.
    """
    from scipy.special import ndtri

    y = np.exp(knots)
    slope = np.diff(deltas) / np.diff(y)
    with np.errstate(divide="ignore"):
        parallel = -mu * (ndtri(np.clip(-slope / (1 - failure), 0.0, 1.0)) + mu / 2)
    at = np.clip(
        np.nan_to_num(parallel, nan=0.0, posinf=np.inf, neginf=-np.inf), knots[:-1], knots[1:]
    )
    return at, deltas[:-1] + slope * (np.exp(at) - y[:-1])


def _slack(knots: Floats, deltas: Floats, mu: float, failure: float) -> Floats:
    """Right side minus chord at its least, interval by interval (floats)."""
    from scipy.special import ndtr

    at, height = _touching(knots, deltas, mu, failure)
    right = failure + (1 - failure) * (
        ndtr(-at / mu + mu / 2) - np.exp(at) * ndtr(-at / mu - mu / 2)
    )
    return np.asarray(right - height)


def _certain(knots: Floats, deltas: Floats, mu: float, failure: Fraction) -> bool:
    """Whether on every interval a tangent of the right side lies above the chord at both ends,
    in ball arithmetic.
    """
    at, _ = _touching(knots, deltas, mu, float(failure))
    exact_mu = Fraction(mu)
    for position, epsilon in enumerate(at.tolist()):
        for end in (position, position + 1):
            if not _tangent_above(
                exact_mu,
                failure,
                Fraction(epsilon),
                Fraction(float(knots[end])),
                Fraction(float(deltas[end])),
            ):
                return False
    return True


def _tangent_above(
    mu: Fraction, failure: Fraction, touch: Fraction, end: Fraction, needed: Fraction
) -> bool:
    def formula(ball: Any) -> Any:
        center, half = ball(touch) / ball(mu), ball(mu) / 2
        slope = normal_tail(ball, center + half)
        value = normal_tail(ball, center - half) - ball(touch).exp() * slope
        return (
            ball(failure)
            + (1 - ball(failure)) * (value - slope * (ball(end).exp() - ball(touch).exp()))
            - ball(needed)
        )

    return enclose(formula)[0] >= 0
