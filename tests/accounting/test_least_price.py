"""The ledger's price: M is at least as private as (μ, δ₀), on whole intervals,
and μ is the least.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

import discreet as dp
from discreet.accounting.gaussian import mu_for_pure
from discreet.accounting.least_price import _certain, least_mu, pld_loss
from discreet.accounting.loss_distributions.build import (
    approx_pld,
    fixed_size_subsampled,
    gaussian_pld,
    laplace_pld,
    poisson_subsampled,
    randomized_response_pld,
)


def right_side(mu, delta0, epsilon):
    return delta0 + (1 - delta0) * (
        norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
    )


def test_gaussians_cost_their_own_mu():
    assert least_mu(gaussian_pld(0.3).self_compose(4), 1e-9) == pytest.approx(0.6, rel=1e-12)
    assert pld_loss(gaussian_pld(0.5), delta0=1e-9).delta == 0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_randomised_response_costs_the_closed_form(epsilon):
    """Pure ε: −2Φ⁻¹(1/(1+e^ε)); a small δ₀ may save its share and no more."""
    mu = least_mu(randomized_response_pld(epsilon), 1e-10)
    assert mu == pytest.approx(mu_for_pure(Fraction(repr(epsilon))), rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pld", "delta0"),
    [
        (poisson_subsampled(gaussian_pld(1.0), 0.01).self_compose(1000), 1e-7),
        (laplace_pld(0.1).self_compose(100), 1e-7),
        (approx_pld(0.5, 1e-8), 1e-7),
    ],
    ids=["sampled", "laplace", "approx"],
)
def test_price_covers_the_mechanism_between_all_points_and_is_tight(pld, delta0):
    mu = least_mu(pld, delta0)
    last = pld.epsilon_at(delta0)
    grid = np.linspace(0, last, 14)
    # certified, at other points than the price's own
    upper = np.array([pld.delta_at(float(epsilon), accuracy=1e-5) for epsilon in grid])
    assert np.all(upper <= right_side(mu, delta0, grid) * (1 + 1e-9))
    # 2 % less would not cover what is known
    assert np.any(upper > right_side(mu * 0.98, delta0, grid))


def test_fixed_size_sampling_has_a_price_above_its_loss():
    pld = fixed_size_subsampled(gaussian_pld(0.5), 0.01).self_compose(100)
    mu = least_mu(pld, 1e-7)
    for delta in (1e-6, 1e-5, 1e-3):
        assert pld.epsilon_at(delta) <= dp.GDP(mu).epsilon_at(delta - 1e-7) * 1.01
    assert mu < 0.5  # far below what the unsampled steps would cost, 0.5·√100 = 5


def test_a_price_needs_room_for_outright_failure():
    with pytest.raises(dp.NoTheorem, match="fails outright"):
        least_mu(approx_pld(0.5, 1e-6), 1e-7)
    with pytest.raises(dp.NoTheorem):
        least_mu(laplace_pld(0.5), 0.0)


@pytest.mark.slow
def test_composition_of_prices_is_safe():
    """Two halves priced apart cost at least the whole priced at once:
    the ledger only ever loses by charging early.
    """
    whole = least_mu(laplace_pld(0.1).self_compose(60), 1e-7)
    half = least_mu(laplace_pld(0.1).self_compose(30), 5e-8)
    assert math.sqrt(2) * half >= whole * (1 - 1e-3)


@pytest.mark.parametrize(
    ("epsilon", "times", "delta0"), [(0.3, 10, 1e-9), (0.1, 100, 1e-6), (1.0, 3, 1e-4)]
)
def test_price_of_composed_randomised_response_is_the_dual_one(epsilon, times, delta0):
    """By duality the least μ is the greatest Φ⁻¹(1−α/(1−δ₀)) − Φ⁻¹(β/(1−δ₀)) over the corners
    (α, β) of the exact trade-off curve.
    """
    truth = 1 / (1 + math.exp(-epsilon))
    wins = np.arange(times + 1)
    alpha, beta = (
        binom.sf(wins, times, 1 - truth) / (1 - delta0),
        binom.cdf(wins, times, truth) / (1 - delta0),
    )
    inside = (alpha > 0) & (alpha < 1) & (beta > 0) & (beta < 1)
    dual = float(np.max(norm.isf(alpha[inside]) - norm.ppf(beta[inside])))
    priced = least_mu(randomized_response_pld(epsilon).self_compose(times), delta0)
    assert dual * (1 - 1e-9) <= priced <= dual * (1 + 1e-3)


def test_certification_refuses_what_the_ends_of_an_interval_alone_would_accept():
    """Chords of the price's own curve touch it at both ends and lie above it between: the same
    μ must be refused, a larger one not.
    """
    knots = np.array([0.0, 0.4, 0.9, 1.6])
    touching = right_side(0.5, 1e-7, knots) * (1 - 1e-9)
    assert not _certain(knots, touching, 0.5, Fraction(1, 10**7))
    assert not _certain(knots, touching, 0.49, Fraction(1, 10**7))
    assert _certain(knots, touching, 0.8, Fraction(1, 10**7))
    fine = np.linspace(0, 1.6, 400)
    assert _certain(fine, right_side(0.5, 1e-7, fine), 0.5 * (1 + 1e-4), Fraction(1, 10**7))
    assert not _certain(fine, right_side(0.5, 1e-7, fine), 0.5 * (1 - 1e-4), Fraction(1, 10**7))
