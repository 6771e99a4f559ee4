"""Rényi divergences of a mechanism run on a random sample:
the formulas, as functions of numbers (reference.md E2).

Poisson sampling with rate γ, one row added or removed: M on the sample is Q without the row and
(1−γ)Q + γP with it. With r = P/Q and w = 1−γ+γr the two directions are

    forward   D_α(mixture‖Q) = ln E_Q[w^α] / (α−1)
    reverse   D_α(Q‖mixture) = ln E_Q[w^{1−α}] / (α−1)

(the other rows only average such pairs, and E_Q[w^α] is jointly convex in (P, Q)).

Theorem (symmetric pairs).  If some map of the outputs onto themselves, its own inverse, exchanges
    P and Q, then forward ≥ reverse for every α ≥ 1, so the forward formula is the exact answer.
Proof.  E_Q[f(r)] = ½E_Q[f(r) + r f(1/r)], so it is enough that h(a) ≥ −r h(b) for r ≥ 1, a = w(r),
    b = w(1/r), h(x) = x^α − x^{1−α}. With H(x, y) = y h(x/y), which is antisymmetric,
    −r h(b) = H(r, rb), and (r, rb) = (a, 1) + (rb−1)·(1, 1), rb ≥ 1. Along (1, 1) the derivative of
    H is h(u) + (1−u)h′(u) ≤ h(1) = 0, u = x/y ≥ 1, since h is convex there. Hence
    H(r, rb) ≤ H(a, 1) = h(a). ∎
Gaussian noise, Laplace noise (reflect about the midpoint) and randomised response are such pairs;
by post-processing so is the worst case of every μ-GDP and of every ε-DP mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from discreet.enclosure import enclose, normal_tail, upper_float

_MOST_TERMS = 400


def sampled_gaussian_renyi(order: Fraction, rate: Fraction, mu_squared: Fraction) -> float:
    """D_α of Gaussian noise with Δ²/σ² = μ² on a Poisson sample, add/remove, at any real α > 1;
    rounded up (reference.md E2).

    Theorem.  For a whole α = k it is ln(1 + Σ_{i=2}^k C(k,i) γ^i (1−γ)^{k−i}
              (e^{i(i−1)μ²/2} − 1)) / (k−1), exactly.
    Proof.    Expand w^k under Q: E_Q[r^i] = e^{i(i−1)μ²/2};
              the coefficients sum to 1. Symmetric pair: forward dominates.
    Checked.
    tests/accounting/test_subsampling.py::test_sampled_gaussian_is_the_integral_in_both_directions
    """
    if rate == 1:
        return upper_float((order * mu_squared / 2,) * 2)
    if order.denominator == 1:
        return _whole_order(
            int(order), rate, lambda ball, i: (ball(i * (i - 1) * mu_squared / 2)).expm1()
        )
    return _fractional_gaussian(order, rate, mu_squared)


def sampled_symmetric_renyi(order: int, rate: Fraction, divergences: Sequence[Fraction]) -> float:
    """D_k on a Poisson sample for pairs that an involution exchanges, from bounds of D_i, i = 2 … k
    (`divergences[i]`); rounded up.
    """
    return _whole_order(order, rate, lambda ball, i: ball((i - 1) * divergences[i]).expm1())


def sampled_pure_renyi(order: Fraction, rate: Fraction, epsilon: Fraction) -> float:
    """D_α of any ε-DP mechanism on a Poisson sample, add/remove: the two outcomes of randomised
    response, exactly; rounded up.
    """

    def formula(ball: Any) -> Any:
        grown, g, a = ball(epsilon).exp(), ball(rate), ball(order)
        high, low = 1 + g * (grown - 1), 1 - g * (1 - 1 / grown)
        return ((high**a + grown * low**a) / (1 + grown)).log() / ball(order - 1)

    return max(0.0, upper_float(enclose(formula)))


def sampled_general_renyi(order: int, rate: Fraction, divergences: Sequence[Fraction]) -> float:
    """D_k of any mechanism on a Poisson sample, add/remove, from bounds of D_i in both orders:
    the terms i ≥ 3 count threefold.

    Theorem.  (k−1)D_k ≤ ln[(1−γ)^{k−1}(1+(k−1)γ) + C(k,2)γ²(1−γ)^{k−2}e^{ε(2)} + 3Σ_{i≥3}
              C(k,i)γ^i(1−γ)^{k−i}e^{(i−1)ε(i)}].
    Proof.    Zhu–Wang 2019, Theorem 5 [cited]; for k = 2 it is the symmetric formula
              (reference.md E2).
    Checked.  tests/accounting/test_subsampling.py::test_general_bound_on_random_discrete_pairs
    """

    def term(ball: Any, i: int) -> Any:
        exponential = ball((i - 1) * divergences[i]).expm1()
        return exponential if i == 2 else 3 * exponential + 2

    return min(_whole_order(order, rate, term), upper_float((divergences[order],) * 2))


def drawn_general_renyi(
    order: int, rate: Fraction, divergences: Sequence[Fraction], epsilon: Fraction | None
) -> float:
    """D_k of any mechanism on a fixed-size sample without replacement, replace-one;
    `epsilon` is its pure ε where it has one.

    Theorem.  (k−1)D_k ≤ ln(1 + C(k,2)γ²·min{4(e^{ε(2)}−1), e^{ε(2)}·min{2, c²}} + Σ_{j≥3} C(k,j)γ^j
              e^{(j−1)ε(j)}·min{2, c^j}), γ = m/n and c = e^ε−1; and D_k ≤ ε(k)
              (Wang–Balle–Kasiviswanathan 2019).
    Proof.    With R the output without the row, P and Q with its two values, p = (1−γ)R+γP,
              q = (1−γ)R+γQ: E_q[(p/q)^k] = 1 + Σ_{j≥2} C(k,j)γ^j E_q[((P−Q)/q)^j]. By joint
              convexity each expectation is at most the greatest of E_S|(P−Q)/S|^j over S ∈ {R, Q}
              and over samples that differ in one row (swap the row for one outside the sample).
              |P−Q| ≤ max(P,Q) gives 2e^{(j−1)ε(j)}; |P−Q| ≤ c·Q gives c^j e^{(j−1)ε(j)};
              (a−b)² ≤ 2(a−1)²+2(b−1)² gives 4(e^{ε(2)}−1).
    Checked.  tests/accounting/test_subsampling.py::test_without_replacement_on_exact_examples
    """
    # in floats: it only chooses between two true bounds
    c = math.inf if epsilon is None or epsilon > 1 else math.expm1(float(epsilon))
    first = math.exp(min(float(divergences[2]), 700.0))
    squared_form = 4 * (first - 1) < first * min(2.0, c**2)

    def bound(ball: Any, j: int) -> Any:
        size = ball((j - 1) * divergences[j])
        if j == 2 and squared_form:
            return 4 * size.expm1()
        return size.exp() * (ball(2) if epsilon is None or c > 1 else ball(epsilon).expm1() ** j)

    def formula(ball: Any) -> Any:
        total, choose, power = ball(0), order, ball(rate)
        for j in range(2, order + 1):
            choose, power = choose * (order - j + 1) // j, power * ball(rate)
            total += ball(choose) * power * bound(ball, j)
        return total.log1p() / ball(order - 1)

    return min(upper_float(enclose(formula)), upper_float((divergences[order],) * 2))


def _whole_order(order: int, rate: Fraction, excess: Callable[[Any, int], Any]) -> float:
    """ln(1 + Σ_{i=2}^k C(k,i) γ^i (1−γ)^{k−i} excess(i)) / (k−1), rounded up."""

    def formula(ball: Any) -> Any:
        inside, outside = ball(rate), ball(1 - rate)
        if rate == 1:
            return excess(ball, order).log1p() / ball(order - 1)
        total, weight, odds = ball(0), outside**order * order * inside / outside, inside / outside
        for i in range(2, order + 1):
            weight = weight * (order - i + 1) / i * odds
            total += weight * excess(ball, i)
        return total.log1p() / ball(order - 1)

    return upper_float(enclose(formula))


def _fractional_gaussian(order: Fraction, rate: Fraction, mu_squared: Fraction) -> float:
    """The sampled Gaussian at an order that is not whole.

    Theorem.  Split at z, where γr = 1−γ. Below it w^α = Σ_i C(α,i)(1−γ)^{α−i}(γr)^i, above it the
              same with the roles exchanged; E_Q[r^s; x<z] = e^{s(s−1)μ²/2}Φ(z−sμ), and Φ(sμ−z)
              above. After i > α the terms alternate and shrink, at every x, so stopping before term
              N and adding its absolute value gives an upper bound.
    """

    def formula(ball: Any) -> Any:
        mu, a = ball(mu_squared).sqrt(), ball(order)
        log_in, log_out = ball(rate).log(), ball(1 - rate).log()
        z = (log_out - log_in) / mu + mu / 2

        def moment(s: Fraction, side: int) -> Any:
            return (ball(s * (s - 1) * mu_squared / 2)).exp() * normal_tail(
                ball, side * (ball(s) * mu - z)
            )

        total, choose = ball(-1), Fraction(1)
        for i in range(_MOST_TERMS):
            count = ball(i)
            below = ((a - count) * log_out + count * log_in).exp() * moment(Fraction(i), +1)
            above = ((a - count) * log_in + count * log_out).exp() * moment(order - i, -1)
            pair = ball(choose) * (below + above)
            if i > order and (
                i == _MOST_TERMS - 1 or float(abs(pair).mid()) < 1e-11 * float(total.mid())
            ):
                return (total + abs(pair)).log1p() / ball(order - 1)
            total += pair
            choose = choose * (order - i) / (i + 1)
        raise AssertionError("the order is far below the number of terms")

    return upper_float(enclose(formula))
