"""Simulation-based calibration in small: noise-aware posteriors are accepted, naive ones, the
positive control, are rejected by the same test. benchmarks/bayes_calibration.py is the large one.
"""

from __future__ import annotations

import numpy as np
import pytest
from simulated import CASES, simulated, uniform_p

LEAST_P = 1e-6
BY_NAME = {case.name: case for case in CASES}
QUICK = {"beta_n20": 800}
SLOW = {
    "beta_n1000": 800,
    "dirichlet": 120,
    "poisson": 120,
    "poisson_private_n": 100,
    "normal": 70,
    "line": 60,
}


def assert_calibrated(name, runs):
    ranks = simulated(BY_NAME[name], runs, 11)
    (covers, naive), (p, naive_p) = ranks.coverage(), ranks.p_values()
    error = np.sqrt(0.95 * 0.05 / runs)
    assert p > LEAST_P
    assert abs(covers - 0.95) < 5 * error
    assert naive_p < LEAST_P  # the control
    assert naive < 0.95 - 5 * error


@pytest.mark.parametrize(("name", "runs"), QUICK.items())
def test_shares_are_calibrated_and_naive_ones_are_not(name, runs):
    assert_calibrated(name, runs)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "runs"), SLOW.items())
def test_every_family_is_calibrated_and_its_naive_posterior_is_not(name, runs):
    assert_calibrated(name, runs)


def test_the_test_of_ranks_accepts_uniform_ones_and_rejects_narrow_posteriors():
    rng = np.random.default_rng(1)
    assert uniform_p(rng.random(2000)) > LEAST_P
    assert uniform_p(rng.beta(0.7, 0.7, 2000)) < LEAST_P
