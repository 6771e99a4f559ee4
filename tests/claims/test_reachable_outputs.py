"""The reachable-output attack proves nothing against our releases and breaks the naive ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.testing import epsilon_seen_in_low_bits
from discreet.testing.reachable import lowest_bit
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import secure_source

COUNT = 1_000_000
ONE = Fraction(1)
MECHANISMS = {
    "laplace": LaplaceNoise(L1(ONE), ONE, 10),
    "laplace on a fine grid": LaplaceNoise(L1(ONE), ONE, 30),
    "gaussian": GaussianNoise(L2(ONE), ONE, 10),
    "gaussian on a fine grid": GaussianNoise(L2(ONE), Fraction(1.7), 26),
    "geometric": GeometricNoise(L1(ONE), ONE, 0),
    "tulap": TulapNoise(L1(ONE), ONE, 32),
}


def ours(mechanism: AdditiveNoise):
    def release(x: float, count: int) -> np.ndarray:
        steps = int(x) * 2**mechanism.refinement + draw(mechanism, count, secure_source())
        assert np.abs(steps).max() < 2**53  # so that the floats below are exact
        return steps * float(mechanism.step)

    return release


def naive_laplace(x: float, count: int) -> np.ndarray:
    return x + np.random.default_rng().laplace(0.0, 1.0, count)


def naive_gaussian(x: float, count: int) -> np.ndarray:
    return x + np.random.default_rng().normal(0.0, 1.0, count)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_low_bits_of_our_releases_tell_nothing(name):
    """ε = 1 is promised, and a proof of more would happen once in 10⁹ runs.

    Low bits may tell what the value itself tells (the event "the output is 0" has a ratio of e,
    or √e for the normal law, whose multiples of 2**j have no larger one), and nothing else.
    """
    assert epsilon_seen_in_low_bits(ours(MECHANISMS[name]), 0.0, 1.0, COUNT) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_output_is_attainable_from_the_neighbour(name):
    """The noise has every whole number of steps as a possible value,
    so it is enough that outputs lie on the common grid.
    """
    mechanism = MECHANISMS[name]
    for x in (0.0, 1.0):
        assert lowest_bit(ours(mechanism)(x, COUNT)).min() >= -mechanism.refinement
    naive = (lowest_bit(naive_laplace(x, COUNT)).min() for x in (0.0, 1.0))
    assert next(naive) < -60 < next(naive)  # the same look at naive floats: another grid for each x


@pytest.mark.parametrize("release", [naive_laplace, naive_gaussian])
def test_the_same_attack_breaks_naive_floats(release):
    assert epsilon_seen_in_low_bits(release, 0.0, 1.0, COUNT) > 4.0


def test_lowest_bit():
    assert lowest_bit(
        np.array([1.0, 3.0, 0.75, -0.75, 0.0, 6.0, 2.0**-1074, 1 + 2.0**-52])
    ).tolist() == [0, 0, -2, -2, 2000, 1, -1074, -52]
