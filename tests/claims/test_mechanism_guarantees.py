"""The law that runs against the guarantee that is charged: exact cell probabilities, both orders, with controls."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

import discreet as dp
from discreet.accounting import gaussian_noise, geometric_noise, guarantee_of, laplace_noise
from discreet.mechanisms import GaussianNoise, GeometricNoise, LaplaceNoise
from discreet.sensitivity import L1, L2


def log_cells_laplace(steps, shift, places):
    """log P(round(Laplace(steps) + shift) = k) at integer cells, computed on the side where it does not cancel."""
    distance = np.abs(places - shift)
    edge = np.log(np.sinh(0.5 / steps)) - distance / steps
    return np.where(distance == 0, math.log(-math.expm1(-0.5 / steps)), edge)


def laplace_worst(scale, sensitivity, refinement):
    steps, shift = float(scale) * 2**refinement, sensitivity * 2**refinement
    places = np.arange(-20 * int(steps) - 2 * shift, 20 * int(steps) + 2 * shift + 1)
    return np.max(np.abs(log_cells_laplace(steps, 0, places) - log_cells_laplace(steps, shift, places)))


@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 0.1), (1, 1.0), (3, 0.5), (7, 2.0)])
def test_rounded_laplace_keeps_epsilon_in_every_cell(sensitivity, epsilon):
    mechanism = laplace_noise(L1(Fraction(sensitivity)), Fraction(repr(epsilon)))
    worst = laplace_worst(mechanism.spread, sensitivity, mechanism.refinement)
    claimed = guarantee_of(mechanism).epsilon
    assert worst <= claimed * (1 + 1e-9)
    assert worst >= 0.999 * claimed
    assert laplace_worst(mechanism.spread * Fraction(8, 10), sensitivity, mechanism.refinement) > claimed * 1.2


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
    true_delta, claimed = gaussian_hockey_stick(steps, shift, epsilon), guarantee_of(mechanism).delta_at(epsilon)
    assert true_delta <= claimed * (1 + 1e-9)
    assert true_delta >= 0.99 * claimed
    assert gaussian_hockey_stick(0.8 * steps, shift, epsilon) > 1.1 * claimed


def test_specs_refuse_what_no_proof_covers():
    for bad in (
        lambda: GaussianNoise(L1(Fraction(1)), Fraction(1), 10), lambda: LaplaceNoise(L2(Fraction(1)), Fraction(1), 10), lambda: GaussianNoise(L2(Fraction(1)), Fraction(1), 9),
        lambda: GeometricNoise(L1(Fraction(1)), Fraction(1), 1), lambda: GaussianNoise(L2(Fraction(1)), Fraction(1, 3), 20), lambda: GaussianNoise(L2(Fraction(1)), Fraction(-1), 20),
        lambda: GaussianNoise(L2(Fraction(1)), 1.0, 20), lambda: LaplaceNoise(L1(Fraction(1)), Fraction(2**60), 0),
    ):
        with pytest.raises(dp.InvalidParameter):
            bad()
