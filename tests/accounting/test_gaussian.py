"""The exact dictionary between μ-GDP, (ε, δ) and pure DP."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from tests.reference.values import ANALYTIC_SIGMA, GDP_DELTA, GDP_EPSILON, TRADE_OFF

import discreet as dp
from discreet.accounting.gaussian import delta_bounds, mu_for_approx, mu_for_pure


@pytest.mark.parametrize(("mu", "epsilon", "delta"), GDP_DELTA)
def test_delta_reference_values(mu, epsilon, delta):
    assert dp.GDP(float(mu)).delta_at(float(epsilon)) == pytest.approx(delta, rel=1e-10)


@pytest.mark.parametrize(("mu", "delta", "epsilon"), GDP_EPSILON)
def test_epsilon_reference_values(mu, delta, epsilon):
    assert dp.GDP(float(mu)).epsilon_at(float(delta)) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize(("epsilon", "delta", "sigma"), ANALYTIC_SIGMA)
def test_analytic_gaussian_reference_values(epsilon, delta, sigma):
    assert 1 / mu_for_approx(Fraction(epsilon), Fraction(delta)) == pytest.approx(sigma, rel=1e-10)


@pytest.mark.parametrize("mu", TRADE_OFF)
def test_trade_off_reference_values(mu):
    assert [dp.GDP(mu).tradeoff(alpha) for alpha in (0.01, 0.05, 0.1, 0.5)] == pytest.approx(
        TRADE_OFF[mu], abs=1e-12
    )


@pytest.mark.parametrize(("mu", "epsilon"), [(0.3, 0.2), (1.0, 1.0), (2.0, 0.3), (0.5, 2.0)])
def test_delta_matches_direct_integration(mu, epsilon):
    def excess(x):
        return max(0.0, norm.pdf(x, mu) - math.exp(epsilon) * norm.pdf(x))

    start = epsilon / mu + mu / 2
    value, _ = quad(excess, start, start + 40, epsabs=1e-13)
    assert dp.GDP(mu).delta_at(epsilon) == pytest.approx(value, rel=1e-7)


@pytest.mark.slow
@given(st.floats(0.01, 20), st.floats(0, 50))
def test_delta_is_rounded_up_and_tight(mu, epsilon):
    """The enclosure contains mpmath's value at 60 digits,
    and the float returned is its upper side.
    """
    m, e = Fraction(repr(mu)), Fraction(repr(epsilon))
    low, high = delta_bounds(m, e)
    with mpmath.workdps(400):
        mm, ee = mpmath.mpf(m.numerator) / m.denominator, mpmath.mpf(e.numerator) / e.denominator
        exact = mpmath.ncdf(-ee / mm + mm / 2) - mpmath.exp(ee) * mpmath.ncdf(-ee / mm - mm / 2)
        assert (
            mpmath.mpf(low.numerator) / low.denominator
            <= exact
            <= mpmath.mpf(high.numerator) / high.denominator
        )
        returned = mpmath.mpf(dp.GDP(mu).delta_at(epsilon))
        assert returned >= exact or returned == 1.0
        assert returned <= exact * (1 + mpmath.mpf(2) ** -50) + mpmath.mpf(5e-324)


@pytest.mark.slow
@given(st.floats(1e-3, 30))
def test_pure_curve_lies_above_its_gaussian(epsilon):
    """f_(ε,0)(α) ≥ G_μ(α) on a grid, and just below μ the kink violates it:
    the price is the least one.
    """
    mu = mu_for_pure(Fraction(repr(epsilon)))
    kink = 1 / (1 + math.exp(epsilon))
    alphas = np.unique(
        np.concatenate(
            [np.linspace(0, 1, 101), kink * np.array([0.01, 0.5, 0.999, 1.0, 1.001, 2.0])]
        )
    )
    pure = np.maximum.reduce(
        [np.zeros_like(alphas), 1 - math.exp(epsilon) * alphas, math.exp(-epsilon) * (1 - alphas)]
    )
    gaussian = norm.cdf(norm.isf(np.clip(alphas, 0, 1)) - mu)
    assert np.all(gaussian <= pure + 1e-12)
    assert norm.sf(mu * (1 - 1e-6) / 2) > kink


def test_the_naive_form_of_the_pure_price_is_too_low():
    """2Φ⁻¹(e^ε/(1+e^ε)) in floats loses the tail and is below the least valid μ for some ε;
    ours never is.
    """
    naive_fails = 0
    with mpmath.workdps(60):
        for tenths in range(1, 365, 4):
            epsilon = Fraction(tenths, 10)
            kink = 1 / (1 + mpmath.exp(mpmath.mpf(tenths) / 10))
            naive = 2 * norm.ppf(math.exp(float(epsilon)) / (1 + math.exp(float(epsilon))))
            naive_fails += mpmath.ncdf(-mpmath.mpf(float(naive)) / 2) > kink
            assert mpmath.ncdf(-mpmath.mpf(mu_for_pure(epsilon)) / 2) <= kink
    assert naive_fails > 0


@pytest.mark.slow
@given(st.floats(0.02, 5), st.floats(1e-12, 0.4))
def test_epsilon_and_delta_are_inverse_and_safe(mu, delta):
    guarantee = dp.GDP(mu)
    epsilon = guarantee.epsilon_at(delta)
    assert guarantee.delta_at(epsilon) <= delta * (1 + 1e-12)
    if epsilon > 1e-6:
        assert guarantee.delta_at(epsilon * (1 - 1e-7)) > delta


@pytest.mark.slow
@given(st.floats(0.05, 8), st.floats(1e-12, 0.3))
def test_analytic_gaussian_is_safe_and_tight(epsilon, delta):
    mu = mu_for_approx(Fraction(repr(epsilon)), Fraction(repr(delta)))
    assert delta_bounds(Fraction(mu), Fraction(repr(epsilon)))[1] <= Fraction(repr(delta))
    assert delta_bounds(Fraction(mu * (1 + 1e-9)), Fraction(repr(epsilon)))[1] > Fraction(
        repr(delta)
    )


def test_the_classical_gaussian_is_not_what_we_use():
    """√(2 ln(1.25/δ))/ε is too small a σ at ε = 10, δ = 1e-5 (reference.md B4);
    the analytic one is not.
    """
    classical = math.sqrt(2 * math.log(1.25e5)) / 10
    assert dp.GDP(1 / classical).delta_at(10.0) > 1e-5
    assert dp.GDP(mu_for_approx(Fraction(10), Fraction(1, 10**5))).delta_at(10.0) <= 1e-5
