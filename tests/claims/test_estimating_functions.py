"""Claim: ψ and ψ′ of every family stay within their bounds for every argument,
and are what their formulas say.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dp
from discreet.specs.estimating.families import (
    Huber,
    Logistic,
    Poisson,
    SmoothHuber,
    family_from_dict,
    psi_bound,
    slope_bound,
)
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import GRID, PSI
from discreet.trusted.extensions.estimating.kernels import psi_and_slope

FAMILIES = [Huber(1.345), Huber(4.0), SmoothHuber(1.345), Logistic(), Poisson(20.0), Poisson(500.0)]


def evaluated(family, etas, responses):
    """ψ and ψ′ at predictors η (one model column of 1/2**14 steps) and responses in the family's
    own whole numbers.
    """
    point = Point((1,), 0, 1.0 if family.residual else GRID / 2**14)
    return psi_and_slope(
        family,
        point,
        np.asarray(etas, dtype=np.float64)[:, None],
        np.asarray(responses, dtype=np.int32),
    )


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_bounds_hold_for_every_argument(family):
    rng = np.random.default_rng(1)
    etas = np.concatenate(
        [
            rng.integers(-12 * 2**14, 12 * 2**14, 4000),
            rng.integers(-(2**40), 2**40, 4000),
            [0, 2**52, -(2**52)],
        ]
    )
    responses = np.concatenate(
        [
            rng.integers(-1, 2, 4001) * 2**30,
            rng.integers(-PSI, max(PSI, 2 * family.tables().top), 4002),
        ]
    )
    psi, slope = evaluated(family, etas, responses)
    assert 0.99 * psi_bound(family) <= np.abs(psi).max() <= psi_bound(family)
    assert slope.min() >= 0
    assert slope.max() <= slope_bound(family)
    assert family_from_dict(family.to_dict()) == family


def test_tables_are_their_formulas():
    r = np.linspace(-3, 3, 301)
    psi, slope = evaluated(Huber(1.345), np.zeros(301), np.round(r * GRID))
    np.testing.assert_allclose(psi / PSI, -np.clip(r, -1.345, 1.345), atol=1e-3)
    assert np.all(slope[np.abs(r) < 1.34] == PSI)
    assert np.all(slope[np.abs(r) > 1.35] == 0)
    eta = np.linspace(-6, 6, 301)
    mean = 1 / (1 + np.exp(-eta))
    psi, slope = evaluated(Logistic(), np.round(eta * 2**14), np.full(301, PSI))
    np.testing.assert_allclose(psi / PSI, mean - 1, atol=4e-4)
    np.testing.assert_allclose(slope / PSI, mean * (1 - mean), atol=4e-4)
    psi, _ = evaluated(SmoothHuber(2.0), np.zeros(301), np.round(r * GRID))
    np.testing.assert_allclose(psi / PSI, -2 * np.tanh(r / 2), atol=1e-3)


@pytest.mark.parametrize("mean", [0.5, 2.0, 8.0])
def test_poisson_scores_have_mean_zero_and_the_stated_slope(mean):
    """E ψ = 0 under Poisson(m), and ψ′ is the derivative of −E ψ in η."""
    family = Poisson(20.0)
    counts = np.arange(200)
    mass = np.exp(counts * math.log(mean) - mean - np.array([math.lgamma(k + 1) for k in counts]))
    units = np.floor(np.minimum(counts, 2**20) * family.tables().unit + 0.5)
    psi, slope = evaluated(family, np.full(200, round(math.log(mean) * 2**14)), units)
    assert abs((mass * psi).sum()) / PSI < 2e-3  # half a step of η moves it by √m/2048
    numeric = (mass * psi * (counts - mean)).sum() / PSI  # E[ψ·score] = −slope
    assert -numeric == pytest.approx(slope[0] / PSI, abs=2e-3)


def test_other_constants_are_refused():
    for wrong in (
        lambda: Huber(0.0),
        lambda: Huber(math.nan),
        lambda: SmoothHuber(99.0),
        lambda: Poisson(0.5),
        lambda: Poisson(math.inf),
    ):
        with pytest.raises(dp.DiscreetError):
            wrong()
