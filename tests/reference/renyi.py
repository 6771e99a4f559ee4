"""Rényi divergences by integration, and their conversions by search over the order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mpmath import exp, inf, log, mpf, pi, quad, sqrt

from tests.reference.stored import crossing, stored

HERE = "tests/accounting/test_renyi.py"
SAMPLED = "tests/accounting/test_subsampling.py"
MNIST = "0.004266666666666667"  # 256 rows of 60 000
USUAL_ORDERS = [*(1 + k / 10 for k in range(1, 100)), *range(11, 64), 128, 256, 512, 1024]


def least(function: Callable[[mpf], mpf], low: float, high: float) -> mpf:
    """The smallest value of a function with one valley: ever smaller thirds."""
    left, right = mpf(low), mpf(high)
    for _ in range(240):
        third = (right - left) / 3
        if function(left + third) < function(right - third):
            right -= third
        else:
            left += third
    return function((left + right) / 2)


def zcdp_epsilon(rho: str, delta: str) -> mpf:
    """inf over α > 1 of αρ + ln(1 − 1/α) + (L − ln α)/(α − 1) (reference.md D2)."""
    return least(lambda order: tight(order, order * mpf(rho), mpf(delta)), 1.001, 1000)


def tight(order: mpf, divergence: mpf, delta: mpf) -> mpf:
    """ε = r + ln(1 − 1/α) − (ln δ + ln α)/(α − 1) (reference.md D4)."""
    return divergence + log(1 - 1 / order) - (log(delta) + log(order)) / (order - 1)


def zcdp_epsilon_basic(rho: str, delta: str) -> mpf:
    """inf over α > 1 of αρ + L/(α − 1), Mironov's form; it is ρ + 2√(ρL) (reference.md D2)."""
    return least(lambda order: order * mpf(rho) - log(mpf(delta)) / (order - 1), 1.001, 1000)


def zcdp_rho(epsilon: str, delta: str) -> mpf:
    """The ρ with ρ + 2√(ρL) = ε (reference.md D3)."""
    tail = -log(mpf(delta))
    return crossing(lambda rho: mpf(epsilon) - rho - 2 * sqrt(rho * tail), 0, 10)


def laplace_divergence(order: int, distance: int) -> mpf:
    """ln ∫ p^α q^(1−α)/(α − 1) of Lap(1) at 0 and at a distance (reference.md A8, B1)."""

    def weight(x: mpf) -> mpf:
        return exp(-order * abs(x) - (1 - order) * abs(x - distance)) / 2

    return log(quad(weight, [-inf, 0, distance, inf])) / (order - 1)


def response_divergence(order: int, truth: str) -> mpf:
    """ln Σ p^α q^(1−α)/(α − 1) of yes with probability `truth` or 1 − truth (reference.md A8)."""
    p = mpf(truth)
    return log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (
        order - 1
    )


def sampled_gaussian_divergence(rate: str, sigma: str, order: int) -> mpf:
    """ln ∫ φ(x)·(1 − γ + γe^(x/σ − 1/(2σ²)))^α dx/(α − 1) (reference.md E2)."""
    q, s = mpf(rate), mpf(sigma)
    ends = [-20, -5, 0, 5, *(k / s for k in range(1, order + 1) if k % 4 == 0), order / s + 20]

    def weight(x: mpf) -> mpf:
        return exp(-x * x / 2) * (1 - q + q * exp(x / s - 1 / (2 * s * s))) ** order

    total = quad(weight, sorted({mpf(end) for end in ends}))
    return log(total / sqrt(2 * pi)) / (order - 1)


def sampled_log_moment(rate: float, sigma: float, order: float) -> float:
    """(α − 1)·D_α of the sampled Gaussian: the trapezoidal rule, whose error on such integrands
    falls faster than any power of the step (reference.md E2).
    """
    x = np.arange(-20, order / sigma + 20, 1 / 64)
    log_weight = order * np.logaddexp(
        np.log1p(-rate), np.log(rate) + x / sigma - 1 / (2 * sigma**2)
    )
    return float(np.logaddexp.reduce(log_weight - x * x / 2 - np.log(64 * np.sqrt(2 * np.pi))))


def sgd_epsilon(
    rate: float, sigma: float, steps: int, delta: float, conversion: str = "tight"
) -> float:
    """The least ε at δ over the orders of T Poisson-sampled Gaussian steps (reference.md E7):
    by D4 at the usual orders, or at whole orders from 2 to 256 alone.
    """
    orders = USUAL_ORDERS if conversion == "tight" else range(2, 257)
    found = []
    for order in orders:
        divergence = steps * sampled_log_moment(rate, sigma, order) / (order - 1)
        if conversion == "whole orders, Mironov":
            found.append(divergence - np.log(delta) / (order - 1))
        else:
            correction = np.log1p(-1 / order) - (np.log(delta) + np.log(order)) / (order - 1)
            found.append(divergence + correction)
    return float(min(found))


def amplified(epsilon: str, rate: str) -> mpf:
    """ln(1 + γ(e^ε − 1)) (reference.md E1)."""
    return log(1 + mpf(rate) * (exp(mpf(epsilon)) - 1))


def laplace_scale_of_steps(epsilon: str, steps: int, size: int, rows: int, distance: str) -> mpf:
    """The σ whose step on a sample, B₁/(mσ)-DP, is amplified to ε/T (reference.md E5)."""

    def excess(scale: mpf) -> mpf:
        step = amplified(str(mpf(distance) / (size * scale)), str(mpf(size) / rows))
        return step - mpf(epsilon) / steps

    return crossing(excess, 0.0001, 1)


EARLY = (
    "the series that was stored stopped early at an order that is not whole, up to 2e-4 too high"
)
WHOLE, MIRONOV = "whole orders", "whole orders, Mironov"

VALUES = [
    stored(0.6216926545596025, HERE, zcdp_epsilon, "0.01", "1e-6"),
    stored(5.221534444530169, HERE, zcdp_epsilon, "0.5", "1e-6"),
    stored(0.7533844377699677, HERE, zcdp_epsilon_basic, "0.01", "1e-6"),
    stored(5.756521769756932, HERE, zcdp_epsilon_basic, "0.5", "1e-6"),
    stored(0.020819938339535462, HERE, zcdp_rho, "1", "1e-5"),
    stored(0.17348321192510013, HERE, zcdp_rho, "3", "1e-5"),
    stored(0.6191236299985928, HERE, laplace_divergence, 2, 1),
    stored(1.9101987629396724, HERE, laplace_divergence, 8, 2),
    stored(1.0028706454725507, HERE, response_divergence, 4, "0.75"),
    stored(0.01703686323617655, SAMPLED, amplified, "1", "0.01"),
    stored(0.01437499545006971, SAMPLED, laplace_scale_of_steps, "1", 100, 100, 10000, "1"),
    stored(0.00017181342207454794, SAMPLED, sampled_gaussian_divergence, "0.01", "1", 2),
    stored(0.00010526360659081726, SAMPLED, sampled_gaussian_divergence, "0.01", "4", 32),
    stored(2.5203712113391714, SAMPLED, sampled_gaussian_divergence, MNIST, "1.1", 20),
    stored(0.0586726, SAMPLED, sampled_gaussian_divergence, "0.1", "1", 4, within=1e-6),
    stored(4.195303, SAMPLED, sampled_gaussian_divergence, "0.3", "0.5", 3, within=1e-6),
    stored(0.4237483, SAMPLED, sampled_gaussian_divergence, "0.5", "2", 8, within=1e-6),
    stored(1.0354900660362967, SAMPLED, sgd_epsilon, 0.01, 4.0, 10000, 1e-5, WHOLE, within=1e-10),
    stored(2.436693803022143, SAMPLED, sgd_epsilon, 0.01, 1.0, 1000, 1e-6, WHOLE, within=1e-10),
    stored(1.2585747412527875, SAMPLED, sgd_epsilon, 0.01, 4.0, 10000, 1e-5, MIRONOV, within=1e-10),
    stored(2.8672882730294997, SAMPLED, sgd_epsilon, 0.01, 1.0, 1000, 1e-6, MIRONOV, within=1e-10),
    stored(1.0354900660362436, SAMPLED, sgd_epsilon, 0.01, 4.0, 10000, 1e-5, within=1e-10),
    stored(0.9545639531461374, SAMPLED, sgd_epsilon, float(MNIST), 1.3, 3516, 1e-5, within=1e-10),
    stored(2.4366938030221523, SAMPLED, sgd_epsilon, 0.01, 1.0, 1000, 1e-6, within=1e-10),
    stored(
        6.31974800597639,
        SAMPLED,
        sgd_epsilon,
        float(MNIST),
        0.7,
        10547,
        1e-5,
        within=3e-4,
        why=EARLY,
    ),
    stored(3.2761985287977535, SAMPLED, sgd_epsilon, 0.02, 0.8, 100, 1e-5, within=3e-4, why=EARLY),
]
