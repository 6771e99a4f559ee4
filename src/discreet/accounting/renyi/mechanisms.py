"""Rényi curves of additive noise, on all rows or on a sample of them (reference.md D1, E2, E7)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.accounting.parameters import Number, order_above_one, positive, whole_number
from discreet.accounting.renyi.curves import USUAL_ORDERS, laplace_renyi
from discreet.accounting.renyi.rdp import RDP, rdp_from, rdp_of
from discreet.accounting.renyi.sampled import sampled_gaussian_renyi, sampled_symmetric_renyi
from discreet.accounting.sampling import PoissonSampling, Sampling, matched_rate
from discreet.accounting.subsampling import SAMPLED_ORDERS, amplify_renyi, checked_orders
from discreet.neighbors import Neighbors
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise, LaplaceNoise
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.losses.theorems import gaussian_mu_squared, pure_epsilon


def rdp_of_mechanism(
    mechanism: AdditiveNoise, orders: Sequence[Fraction | float] = USUAL_ORDERS
) -> RDP:
    """The Rényi curve of additive noise: exact for Gaussian and Laplace noise,
    the pure bound for integer laws.
    """
    if isinstance(mechanism, LaplaceNoise):
        return rdp_from(
            [
                (order, Fraction(laplace_renyi(order, pure_epsilon(mechanism))))
                for order in map(order_above_one, orders)
            ]
        )
    return rdp_of(guarantee_of(mechanism), orders)


def amplify_mechanism(
    mechanism: AdditiveNoise,
    sampling: Sampling,
    neighbors: Neighbors,
    *,
    orders: Sequence[Fraction | float] = SAMPLED_ORDERS,
) -> RDP:
    """The Rényi curve of additive noise on a sample; Laplace noise under Poisson sampling keeps its
    own curve (a symmetric pair).
    """
    if isinstance(sampling, PoissonSampling) and isinstance(mechanism, LaplaceNoise):
        rate, epsilon = matched_rate(sampling, neighbors), pure_epsilon(mechanism)
        whole = sorted({math.ceil(order) for order in checked_orders(orders)})
        bounds = [
            Fraction(0),
            Fraction(0),
            *(Fraction(laplace_renyi(order, epsilon)) for order in range(2, whole[-1] + 1)),
        ]
        return rdp_from(
            [
                (Fraction(order), Fraction(sampled_symmetric_renyi(order, rate, bounds)))
                for order in whole
            ]
        )
    if isinstance(sampling, PoissonSampling) and isinstance(mechanism, GaussianNoise):
        rate, mu_squared = matched_rate(sampling, neighbors), gaussian_mu_squared(mechanism)
        return rdp_from(
            [
                (order, Fraction(sampled_gaussian_renyi(order, rate, mu_squared)))
                for order in checked_orders(orders)
            ]
        )
    return amplify_renyi(guarantee_of(mechanism), sampling, neighbors, orders=orders)


def sampled_gaussian_rdp(
    *,
    noise_multiplier: Number,
    sampling: PoissonSampling,
    neighbors: Neighbors,
    steps: int = 1,
    orders: Sequence[Fraction | float] = SAMPLED_ORDERS,
) -> RDP:
    """DP-SGD: T sums over Poisson samples with noise N(0, (zB)²), rows clipped to ℓ₂ norm B,
    under AddRemove (reference.md E7).

    A mean must divide by a fixed m; dividing by the realised size of the sample is not covered
    (reference.md E3).
    """
    rate, mu_squared, count = (
        matched_rate(sampling, neighbors),
        1 / positive(noise_multiplier, "noise multiplier") ** 2,
        whole_number(steps, "steps"),
    )
    return rdp_from(
        [
            (order, count * Fraction(sampled_gaussian_renyi(order, rate, mu_squared)))
            for order in checked_orders(orders)
        ]
    )
