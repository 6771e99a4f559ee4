"""Where mean families start, and weights that fade:
strong signals, rare outcomes and large samples.
"""

import math

import numpy as np
import pytest

import discreet as dp
from discreet.inference.regression.decode import Reading
from discreet.models.m_estimate import tabulated_mean
from discreet.models.starts import NOISY_SPREAD, flat_start, slopes_from
from discreet.models.tuning import (
    LEVERAGE_NOISE,
    gradient_room,
    least_squares_cut,
    room_for,
    tuning_for,
)
from discreet.specs.estimating.families import Logistic, Poisson
from discreet.testing import seeded_session


def probit(eta):
    return math.erfc(-eta / math.sqrt(2)) / 2


FAMILIES = {
    "logistic": (Logistic(), lambda eta: 1 / (1 + np.exp(-eta))),
    "Poisson": (Poisson(40.0), lambda eta: np.minimum(np.exp(eta), 40.0)),
    "probit": (tabulated_mean(probit), np.vectorize(probit)),
}
CONSTANT = np.array([1.0, 0.0, 0.0])


def covariance_of(mean, beta):
    """Cov(z, y) for two standard normal columns, and the mean response: Gauss–Hermite, so exact."""
    nodes, mass = np.polynomial.hermite_e.hermegauss(80)
    first, second = np.meshgrid(nodes, nodes)
    weight = np.outer(mass, mass).ravel() / mass.sum() ** 2
    z = np.column_stack([np.ones(first.size), first.ravel(), second.ravel()])
    expected = mean(z @ beta)
    return (weight * expected) @ z, float(weight @ expected)


def gradient_at(family, covariance, mean, noise):
    """The reading of a gradient at the constant predictor,
    as data with that covariance would give it without clipping.
    """
    center = flat_start(family, mean).center
    gain = {"logistic": 1.0, "poisson": math.exp(-center / 2), "tabulated mean": 1.0}[family.kind]
    return Reading(-gain * (covariance - np.array([mean, 0, 0])), gain * noise)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("beta", [(0.2, 0.3, -0.5), (-1.5, 0.8, 0.3), (0.0, 0.0, 0.0)])
def test_a_normal_predictor_is_found_from_its_gradient(name, beta):
    family, mean = FAMILIES[name]
    covariance, average = covariance_of(mean, np.array(beta))
    slopes, start = slopes_from(
        family, average, gradient_at(family, covariance, average, 0.0), CONSTANT
    )
    np.testing.assert_allclose([start.center, *slopes[1:]], beta, atol=0.02)
    assert start.level > 0


def test_strong_signals_are_found_too():
    covariance, average = covariance_of(FAMILIES["logistic"][1], np.array([0.5, 3.0, -2.0]))
    slopes, start = slopes_from(
        Logistic(), average, gradient_at(Logistic(), covariance, average, 0.0), CONSTANT
    )
    np.testing.assert_allclose([start.center, *slopes[1:]], [0.5, 3.0, -2.0], rtol=0.05)


@pytest.mark.parametrize("mean", [0.005, 0.5, 0.995])
def test_hopeless_gradients_give_a_finite_start(mean):
    """Covariances that no data could have, as noise makes them: the predictor's spread stays below
    its cap; what is below its noise counts as nothing.
    """
    for length in (0.0, 0.1, 5.0, 1e6):
        slopes, start = slopes_from(
            Logistic(), mean, Reading(np.array([0.3, length, -length]), 0.2), CONSTANT, NOISY_SPREAD
        )
        assert np.isfinite(slopes).all()
        assert np.linalg.norm(slopes) <= NOISY_SPREAD * (1 + 1e-9)
        assert start.level > 0
        assert slopes.any() == (length > 0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "rows"), [((-3.0, 1.0, -1.0), 3000), ((0.0, 3.0, -3.0), 3000)])
def test_rare_outcomes_and_strong_signals_are_covered(beta, rows):
    """A start at 0 covered as little as 0.2 here.

    60 fits of 3 coefficients: fewer than 154 of 180 hits have a probability below 1e-5 at 0.95.
    """
    hits = 0
    for run in range(60):
        rng = np.random.default_rng(run)
        x = rng.normal(size=(rows, 2))
        y = rng.random(rows) < 1 / (1 + np.exp(-(beta[0] + x @ np.array(beta[1:]))))
        data = dp.from_arrays(
            {"a": x[:, 0], "b": x[:, 1], "y": y},
            schema={"a": dp.Real(-4, 4), "b": dp.Real(-4, 4), "y": dp.Boolean()},
            neighbors=dp.Replace(),
        )
        interval = dp.logistic(
            seeded_session(data, dp.GDP(1), f"rare/{run}"), "y ~ a + b", spend=dp.GDP(1)
        ).confidence_interval()
        hits += int(((interval[:, 0] <= beta) & (np.array(beta) <= interval[:, 1])).sum())
    assert hits >= 154


def test_weights_fade_in_large_samples_and_only_there():
    small, large = (
        tuning_for(
            4,
            0.03 if rows < 5000 else 0.0003,
            residual=True,
            counts=False,
            private_rows=False,
            room=room_for(rows, 1.0, dp.Replace(), 0.39, LEVERAGE_NOISE[True]),
        )
        for rows in (1000, 100_000)
    )
    assert small.radius**2 == pytest.approx(4 + 2 * 2)
    assert large.radius**2 > 60
    assert large.metric_radius <= large.radius
    assert gradient_room(1000, 1.0, dp.AddRemove()) == pytest.approx(
        4 * gradient_room(1000, 1.0, dp.Replace())
    )
    assert [
        least_squares_cut(4, gradient_room(rows, 1.0, dp.Replace()))
        for rows in (1000, 15_000, 30_000)
    ] == [4.0, 4.0, 6.0]


def test_a_constant_alone_has_no_slopes():
    """What is left of its gradient beside the constant is rounding, which a mean function that
    hardly rises would blow up to a slope.
    """
    family = tabulated_mean(lambda eta: 0.3 if eta < 1 else 0.31)
    for gradient, constant in ((0.3, 0.7), (1 / 3, 1.1), (-7e5, 1e-3)):
        slopes, start = slopes_from(
            family, 0.5, Reading(np.array([gradient]), 0.01), np.array([constant])
        )
        assert slopes.tolist() == [0.0]
        assert start == flat_start(family, 0.5)
