"""Claim: prices are right, rounded against us and quick over the whole domain of guarantees, and
prices in a ledger only round up.
"""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import mpmath
import pytest

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise, laplace_noise
from discreet.accounting.gaussian import gdp_delta, gdp_epsilon, mu_for_approx, mu_for_pure
from discreet.accounting.guarantees import spend_mu_squared
from discreet.sensitivity import L1, L2
from discreet.trusted.ledger.units import charge
from discreet.trusted.losses.pricing import Price, guarantee_of, open_box, price_of, within_spend

EPSILONS = ["1e-9", "1e-6", "0.001", "0.1", "1", "10", "1000", "1e6"]
DELTAS = ["1e-17", "1e-9", "0.01", "0.5", "0.999"]
SECONDS = 1.0


def quick(function, *arguments):
    """The function's value, computed anew, within a second of this process's own time;
    the slowest takes a sixtieth.
    """
    function.cache_clear()
    begin = time.process_time()
    value = function(*arguments)
    assert time.process_time() - begin < SECONDS
    assert math.isfinite(value)
    return value


def tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def delta_of(mu, epsilon):
    """δ_μ(ε) at 300 digits, written naively."""
    mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * tail(epsilon / mu + mu / 2)


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_mu_of_an_approximate_guarantee_is_the_largest_that_holds(epsilon, delta):
    mu = quick(mu_for_approx, Fraction(epsilon), Fraction(delta))
    with mpmath.workdps(300):
        assert delta_of(mu, epsilon) <= mpmath.mpf(delta)
        assert delta_of(mpmath.mpf(mu) * (1 + mpmath.mpf(10) ** -12), epsilon) > mpmath.mpf(delta)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_mu_of_a_pure_guarantee_is_the_least_that_holds(epsilon):
    mu = quick(mu_for_pure, Fraction(epsilon))
    with mpmath.workdps(300):
        kink = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert tail(mpmath.mpf(mu) / 2) <= kink
        assert tail(mpmath.mpf(mu) * (1 - mpmath.mpf(10) ** -14) / 2) > kink


@pytest.mark.few(2)
@pytest.mark.parametrize("mu", ["1e-6", "0.001", "1", "30", "1000"])
def test_epsilon_and_delta_of_a_gaussian_guarantee_are_rounded_up(mu):
    with mpmath.workdps(300):
        for delta in DELTAS:
            epsilon = quick(gdp_epsilon, Fraction(mu), Fraction(delta))
            assert delta_of(mu, epsilon) <= mpmath.mpf(delta)
        for epsilon in ["0", *EPSILONS]:
            delta = quick(gdp_delta, Fraction(mu), Fraction(epsilon))
            assert mpmath.mpf(delta) >= min(delta_of(mu, epsilon), 1) > 0


@pytest.mark.parametrize(
    "sensitivity", [Fraction(1), Fraction(2), Fraction(3), Fraction(7, 5), Fraction(10**12 + 1)]
)
def test_no_mechanism_is_charged_more_than_its_spend_or_less_than_it_costs(sensitivity):
    for epsilon in ("0.001", "0.1", "0.3", "1", "7", "1e6"):
        spend = dp.PureDP(float(epsilon))
        for make in (laplace_noise, geometric_noise):
            mechanism = make(L1(sensitivity), Fraction(epsilon))
            price = price_of((mechanism,), box=Price(epsilon=Fraction(1)))
            assert price.epsilon == sensitivity / mechanism.spread <= Fraction(epsilon)
            assert within_spend(mechanism, spend)
            assert not within_spend(mechanism, dp.PureDP(0.999 * float(epsilon)))
            assert charge(price).exact().epsilon >= price.epsilon
            assert Fraction(guarantee_of(mechanism).epsilon) >= price.epsilon
    for spend in (
        dp.GDP(0.001),
        dp.GDP(0.1),
        dp.GDP(0.3),
        dp.GDP(1000),
        dp.ApproxDP(0.1, 1e-9),
        dp.ApproxDP(1000, 0.5),
    ):
        mechanism = gaussian_noise(L2(sensitivity), spend_mu_squared(spend))
        price = price_of((mechanism,), box=Price())
        assert price.mu_squared == sensitivity / mechanism.spread**2 <= spend_mu_squared(spend)
        assert within_spend(mechanism, spend)
        assert charge(price).exact().mu_squared >= price.mu_squared
        assert Fraction(guarantee_of(mechanism).mu) ** 2 >= price.mu_squared


def test_numbers_that_differ_in_the_last_place_have_prices_of_their_own():
    """Prices are remembered; no two arguments may be confused."""
    for function, one in (
        (mu_for_pure, (Fraction(1),)),
        (mu_for_approx, (Fraction(1), Fraction(1, 10**6))),
    ):
        near = (one[0] * (1 + Fraction(1, 10**12)), *one[1:])
        first, second = function(*one), function(*near)
        assert first < second
        assert (function(*one), function(*near)) == (first, second)
        assert function(Fraction(2, 2), *one[1:]) == first


def test_the_box_of_a_budget_keeps_its_promise():
    for epsilon, delta, pure, delta0 in (
        (1, 1e-6, None, None),
        (1, 1e-6, 0.4, 0),
        (0.01, 1e-9, None, 9e-10),
        (1e6, 0.999, 999_999, 0.5),
        (1e-9, 1e-17, None, None),
    ):
        box = open_box(dp.ApproxDP(epsilon, delta), pure=pure, delta0=delta0)
        with mpmath.workdps(300):
            mu = mpmath.sqrt(mpmath.mpf(box.mu_squared.numerator) / box.mu_squared.denominator)
            rest = (
                mpmath.mpf(repr(float(epsilon)))
                - mpmath.mpf(box.epsilon.numerator) / box.epsilon.denominator
            )
            assert delta_of(mu, rest) + mpmath.mpf(
                box.delta.numerator
            ) / box.delta.denominator <= mpmath.mpf(repr(delta))
