"""The law that runs against the guarantee that is charged:
exact cell probabilities, both orders, with controls.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import discreet as dp
from discreet.accounting.calibration.additive import (
    bounded_range_within,
    gaussian_noise,
    geometric_noise,
    laplace_noise,
    pure_within,
)
from discreet.accounting.gaussian import gdp_delta, mu_for_pure
from discreet.errors import NoTheorem
from discreet.exact import sqrt_up
from discreet.sensitivity import L1, L2, Rows
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise, LaplaceNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts, key_count_sensitivity
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import (
    Price,
    _price,
    guarantee_of,
    loss_fits,
    mu_for_bounded_range,
    spend_box,
)


def log_cells_laplace(steps, shift, places):
    """log P(round(Laplace(steps) + shift) = k) at integer cells,
    computed on the side where it does not cancel.
    """
    distance = np.abs(places - shift)
    edge = np.log(np.sinh(0.5 / steps)) - distance / steps
    return np.where(distance == 0, math.log(-math.expm1(-0.5 / steps)), edge)


def laplace_worst(scale, sensitivity, refinement):
    steps, shift = float(scale) * 2**refinement, sensitivity * 2**refinement
    places = np.arange(-20 * int(steps) - 2 * shift, 20 * int(steps) + 2 * shift + 1)
    return np.max(
        np.abs(log_cells_laplace(steps, 0, places) - log_cells_laplace(steps, shift, places))
    )


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.1), (1, 1.0), (3, 0.5), (7, 2.0)])
def test_rounded_laplace_keeps_epsilon_in_every_cell(sensitivity, epsilon):
    mechanism = laplace_noise(L1(Fraction(sensitivity)), Fraction(repr(epsilon)))
    worst = laplace_worst(mechanism.spread, sensitivity, mechanism.refinement)
    claimed = guarantee_of(mechanism).epsilon
    assert worst <= claimed * (1 + 1e-9)
    assert worst >= 0.999 * claimed
    assert (
        laplace_worst(mechanism.spread * Fraction(8, 10), sensitivity, mechanism.refinement)
        > claimed * 1.2
    )


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.1), (1, 1.0), (2, 0.5), (5, 3.0)])
def test_geometric_keeps_epsilon_in_every_cell(sensitivity, epsilon):
    mechanism = geometric_noise(L1(Fraction(sensitivity)), Fraction(repr(epsilon)))
    places = np.arange(-50, 51)
    worst = np.max(np.abs(np.abs(places) - np.abs(places - sensitivity))) / float(mechanism.spread)
    assert worst <= guarantee_of(mechanism).epsilon * (1 + 1e-12)
    assert worst >= 0.999 * epsilon


def gaussian_hockey_stick(steps, shift, epsilon):
    """Σ (P(k) − e^ε Q(k))₊ over cells, P = rounded N(shift, steps²), Q = rounded N(0, steps²)."""
    k = np.arange(int(-12 * steps), int(12 * steps + shift) + 1)

    def cells(center):
        high, low = (k + 0.5 - center) / steps, (k - 0.5 - center) / steps
        flip = low > 0
        return np.where(flip, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))

    return float(np.maximum(cells(shift) - math.exp(epsilon) * cells(0.0), 0).sum())


@pytest.mark.parametrize(("mu", "epsilon"), [(0.5, 0.5), (1.0, 1.0), (1.0, 3.0), (2.0, 2.0)])
def test_rounded_gaussian_is_mu_gdp(mu, epsilon):
    mechanism = gaussian_noise(L2(Fraction(1)), Fraction(repr(mu)) ** 2)
    steps, shift = float(mechanism.steps), float(2**mechanism.refinement)
    true_delta, claimed = (
        gaussian_hockey_stick(steps, shift, epsilon),
        guarantee_of(mechanism).delta_at(epsilon),
    )
    assert true_delta <= claimed * (1 + 1e-9)
    assert true_delta >= 0.99 * claimed
    assert gaussian_hockey_stick(0.8 * steps, shift, epsilon) > 1.1 * claimed


def test_specs_refuse_what_no_proof_covers():
    for bad in (
        lambda: GaussianNoise(L1(Fraction(1)), Fraction(1), 10),
        lambda: LaplaceNoise(L2(Fraction(1)), Fraction(1), 10),
        lambda: GaussianNoise(L2(Fraction(1)), Fraction(1), 9),
        lambda: GeometricNoise(L1(Fraction(1)), Fraction(1), 1),
        lambda: GaussianNoise(L2(Fraction(1)), Fraction(1, 3), 20),
        lambda: GaussianNoise(L2(Fraction(1)), Fraction(-1), 20),
        lambda: GaussianNoise(L2(Fraction(1)), 1.0, 20),
        lambda: LaplaceNoise(L1(Fraction(1)), Fraction(2**60), 0),
    ):
        with pytest.raises(dp.InvalidParameter):
            bad()


def binary_pair(epsilon, top):
    """The extreme pair of bounded range: log-ratios top and top − epsilon."""
    q = (1 - math.exp(top - epsilon)) / (math.exp(top) - math.exp(top - epsilon))
    return math.exp(top) * q, q


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 2.5, 8.0, 20.0])
def test_bounded_range_curves_lie_above_their_gaussian(epsilon):
    """The kink (q, 1 − p) of every extreme pair lies on or above G_mu: Φ⁻¹(p) − Φ⁻¹(q) ≤ mu;
    1 % less is too little.
    """
    mu = mu_for_bounded_range(Fraction(repr(epsilon)))
    pairs = [binary_pair(epsilon, top) for top in np.linspace(0, epsilon, 2001)[1:-1]]
    needed = max(-ndtri(1 - p) - ndtri(q) if p > 0.5 else ndtri(p) - ndtri(q) for p, q in pairs)
    assert needed <= mu * (1 + 1e-9)
    assert needed > 0.99 * mu
    assert mu < 0.8 * mu_for_pure(Fraction(repr(epsilon)))


def test_losses_become_prices_in_every_box():
    """A mechanism of two pure parts, one of bounded range and a delta:
    charged part by part, in every kind of box.
    """
    loss = Loss(
        mu_squared=Fraction(1, 4),
        pure=(Fraction(1, 2), Fraction(1, 3)),
        bounded_range=(Fraction(1),),
        delta=Fraction(1, 10**6),
    )
    in_mu, in_epsilon, in_rho = (
        _price(loss, box)
        for box in (
            Price(mu_squared=Fraction(1)),
            Price(epsilon=Fraction(1)),
            Price(rho=Fraction(1)),
        )
    )
    squares = [
        Fraction(mu) ** 2
        for mu in (
            mu_for_pure(Fraction(1, 2)),
            mu_for_pure(Fraction(1, 3)),
            mu_for_bounded_range(Fraction(1)),
        )
    ]
    assert in_mu == Price(mu_squared=Fraction(1, 4) + sum(squares), delta=loss.delta)
    assert in_epsilon == Price(Fraction(11, 6), Fraction(1, 4), loss.delta)
    assert in_rho.rho == pytest.approx(1 / 8 + 0.5 * math.tanh(0.25) + math.tanh(1 / 6) / 3 + 1 / 8)
    assert in_rho.delta == loss.delta
    with pytest.raises(NoTheorem, match="zCDP alone"):
        _price(Loss(rho=Fraction(1)), Price(mu_squared=Fraction(1)))
    assert loss_fits(loss, in_mu)
    assert not loss_fits(loss, Price(mu_squared=in_mu.mu_squared))  # no delta


@pytest.mark.parametrize(
    "spend", [dp.GDP(0.3), dp.PureDP(0.7), dp.ZCDP(0.02), dp.ApproxDP(1.0, 1e-6)], ids=repr
)
@pytest.mark.parametrize("times", [1, 5])
def test_the_greatest_epsilon_of_a_spend_fits_and_a_greater_one_does_not(spend, times):
    delta = Fraction(1, 10**7)
    for greatest, loss in (
        (pure_within, lambda e: Loss(pure=(e,) * times)),
        (bounded_range_within, lambda e: Loss(bounded_range=(e,) * times)),
    ):
        epsilon = greatest(spend, delta, times=times)
        assert loss_fits(loss(epsilon), spend_box(spend, delta))
        assert not loss_fits(loss(epsilon * (1 + Fraction(1, 10**6))), spend_box(spend, delta))


def test_a_gaussian_loss_that_may_fail_states_both_deltas():
    """δ of the event and δ_μ(ε) of the rest: with less, the stated guarantee would not hold."""
    rows = Rows(1, "added or removed")
    noise = gaussian_noise(key_count_sensitivity(rows)[1], Fraction(1, 2))
    mechanism = ThresholdedCounts(rows, noise, 12 << noise.refinement)
    loss, stated = loss_of(mechanism), guarantee_of(mechanism)
    rest = gdp_delta(sqrt_up(loss.mu_squared), Fraction(stated.epsilon))
    assert 0 < loss.delta < Fraction(stated.delta)
    assert Fraction(stated.delta) >= loss.delta + Fraction(rest) * (1 - Fraction(1, 10**6))
    assert float(loss.delta + Fraction(rest)) == pytest.approx(stated.delta, rel=1e-6)
