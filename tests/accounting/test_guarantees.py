"""Guarantees: bad parameters, composition, comparison, groups, printing, JSON."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise, laplace_noise
from discreet.accounting.guarantees import guarantee_from_dict, spend_mu_squared
from discreet.accounting.renyi.conversions import pure_rho
from discreet.exact import float_up
from discreet.sensitivity import L1, L2
from discreet.trusted.losses.pricing import (
    Price,
    guarantee_of,
    open_box,
    price_of,
    price_of_spend,
    within_spend,
)

EPSILONS = st.floats(1e-4, 20)
MUS = st.floats(1e-3, 10)


@pytest.mark.parametrize(
    "bad", [0, 0.0, -1, math.nan, math.inf, -math.inf, True, "1", None, 5e-324, 1e-12, 1e7, [1]]
)
def test_bad_parameters_are_refused(bad):
    """Cases 1–6 of the reliability list."""
    for make in (dp.PureDP, dp.GDP, lambda value: dp.ApproxDP(value, 1e-6)):
        with pytest.raises(dp.InvalidParameter, match="What to do"):
            make(bad)


@pytest.mark.parametrize("bad", [0, -1e-6, 1, 1.5, math.nan, math.inf, None, "0.1", True, 1e-30])
def test_bad_deltas_are_refused(bad):
    """Case 7: δ < 0, ≥ 1, NaN, or 0 where one is needed."""
    with pytest.raises(dp.InvalidParameter):
        dp.ApproxDP(1, bad)


def test_a_wrong_number_of_parameters_is_refused():
    with pytest.raises(dp.InvalidParameter, match="delta was not given"):
        dp.ApproxDP(1)


def test_ten_tenths_make_one():
    assert dp.compose(*[dp.PureDP(0.1)] * 10) == dp.PureDP(1.0)


@pytest.mark.slow
@given(st.lists(MUS, min_size=2, max_size=6))
def test_gdp_composition_is_exact_associative_and_commutative(mus):
    parts = [dp.GDP(mu) for mu in mus]
    total = dp.compose(*parts).mu
    assert Fraction(total) ** 2 >= sum(Fraction(repr(mu)) ** 2 for mu in mus)
    assert total == pytest.approx(math.sqrt(sum(mu * mu for mu in mus)), rel=1e-12)
    assert dp.compose(*reversed(parts)) == dp.compose(*parts)
    assert dp.compose(dp.compose(*parts[:-1]), parts[-1]).mu == pytest.approx(total, rel=1e-12)


def test_mixed_composition():
    assert dp.compose(dp.PureDP(0.1), dp.GDP(0.1)).mu == pytest.approx(
        math.hypot(0.1, 2 * norm.isf(1 / (1 + math.exp(0.1)))), rel=1e-12
    )
    total = dp.compose(dp.ApproxDP(0.5, 1e-6), dp.PureDP(0.25), dp.ApproxDP(0.25, 1e-6))
    assert total.epsilon == 1.0
    assert 2e-6 <= total.delta <= math.nextafter(2e-6, 1)
    with pytest.raises(dp.NoTheorem, match="epsilon_at"):
        dp.compose(dp.GDP(1), dp.ApproxDP(1, 1e-6))
    with pytest.raises(dp.InvalidParameter):
        dp.compose()


def test_composition_in_rho_and_at_renyi_orders():
    total = dp.compose(dp.ZCDP(0.1), dp.GDP(0.4), dp.PureDP(0.5), dp.ZCDP(0.02))
    assert isinstance(total, dp.ZCDP)
    assert total.rho == pytest.approx(0.1 + 0.08 + 0.5 * math.tanh(0.25) + 0.02, rel=1e-14)
    assert dp.compose(dp.ZCDP(0.1), dp.ZCDP(0.2)).rho in (0.3, math.nextafter(0.3, 1))
    curve = dp.compose(dp.RDP((2, 8), (0.1, 0.4)), dp.ZCDP(0.01), dp.GDP(0.2), dp.PureDP(0.1))
    assert curve.orders == (2, 8)
    exact = [
        math.log(
            (math.exp(0.1 * (a - 1)) * math.exp(0.1) + math.exp(-0.1 * (a - 1)))
            / (1 + math.exp(0.1))
        )
        / (a - 1)
        for a in (2, 8)
    ]
    assert curve.epsilons == pytest.approx(
        [0.1 + 0.02 + 0.04 + exact[0], 0.4 + 0.08 + 0.16 + exact[1]], rel=1e-12
    )
    for part in (dp.ZCDP(0.1), dp.RDP((2,), (0.1,))):
        assert dp.compose(part) == part
        with pytest.raises(dp.NoTheorem, match="epsilon_at"):
            dp.compose(part, dp.ApproxDP(1, 1e-6))
        with pytest.raises(dp.NoTheorem):
            dp.compose(part, dp.PureDP(1), dp.ApproxDP(1, 1e-6))


@given(EPSILONS, st.floats(0, 25))
def test_pure_delta_is_that_of_randomised_response(epsilon, asked):
    truth, lie = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    exact = max(0.0, truth - math.exp(asked) * lie)
    assert dp.PureDP(epsilon).delta_at(asked) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.slow
@given(EPSILONS, st.floats(1e-9, 0.2), st.floats(1e-9, 0.2))
def test_epsilon_at_inverts_delta_at(epsilon, delta, more):
    for guarantee in (dp.PureDP(epsilon), dp.ApproxDP(epsilon, delta)):
        at = guarantee.epsilon_at(delta + more)
        assert guarantee.delta_at(at) <= (delta + more) * (1 + 1e-12)
        assert at <= guarantee.epsilon
    assert dp.ApproxDP(epsilon, delta).epsilon_at(delta / 2) == math.inf


@pytest.mark.slow
@given(EPSILONS, MUS, st.floats(0.001, 0.999))
def test_covers_agrees_with_the_trade_off_curves(epsilon, mu, alpha):
    for strong, weak in (
        (dp.GDP(mu), dp.GDP(mu * 1.1)),
        (dp.PureDP(epsilon), dp.PureDP(epsilon * 1.1)),
    ):
        assert weak.covers(strong)
        assert not strong.covers(weak)
        assert weak.tradeoff(alpha) <= strong.tradeoff(alpha)
    gdp, pure = dp.GDP(mu), dp.PureDP(epsilon)
    if gdp.covers(pure):
        assert gdp.tradeoff(alpha) <= pure.tradeoff(alpha) + 1e-14
    assert not pure.covers(gdp)
    approx = dp.ApproxDP(1.0, 1e-6)
    assert approx.covers(dp.GDP(mu)) == (dp.GDP(mu).delta_at(1.0) <= 1e-6)


def test_group_privacy():
    assert 0.3 <= dp.PureDP(0.1).group(3).epsilon <= math.nextafter(0.3, 1)
    assert dp.GDP(0.5).group(4).mu == 2.0
    grouped = dp.ApproxDP(0.5, 1e-6).group(3)
    assert grouped.delta == pytest.approx(1e-6 * (math.exp(1.5) - 1) / (math.exp(0.5) - 1))
    with pytest.raises(dp.InvalidParameter):
        dp.GDP(1).group(0)


def test_guarantees_print_significant_digits_and_round_trip():
    for guarantee in (
        dp.PureDP(0.1),
        dp.ApproxDP(1, 1e-6),
        dp.GDP(0.236),
        dp.ZCDP(0.1),
        dp.RDP((2, 3.5), (0.1, 0.2)),
    ):
        assert guarantee_from_dict(guarantee.to_dict()) == guarantee
    assert str(dp.ApproxDP(1, 1e-6)) == "ε = 1, δ = 1e-06"
    assert "0.236" in str(dp.GDP(0.236))


def test_the_default_box_of_an_approximate_budget():
    """Design §3: ε = 1, δ = 1e-6 opens δ₀ = δ/10 and μ ≈ 0.236."""
    box = open_box(dp.ApproxDP(1, 1e-6))
    assert box.epsilon == 0
    assert box.delta == Fraction(1, 10**7)
    assert float(box.mu_squared) ** 0.5 == pytest.approx(0.2355, abs=1e-4)
    mu = dp.GDP(float(box.mu_squared) ** 0.5)
    assert mu.delta_at(1.0) + 1e-7 <= 1e-6 * (1 + 1e-9)


def test_a_split_box_keeps_its_promise():
    box = open_box(dp.ApproxDP(1, 1e-6), pure=0.4, delta0=2e-7)
    assert (box.epsilon, box.delta) == (Fraction(2, 5), Fraction(2, 10**7))
    assert dp.GDP(float(box.mu_squared) ** 0.5).delta_at(0.6) + 2e-7 <= 1e-6 * (1 + 1e-9)
    for bad in ({"pure": 1}, {"pure": -0.1}, {"delta0": 1e-6}, {"delta0": -1e-9}):
        with pytest.raises(dp.InvalidParameter):
            open_box(dp.ApproxDP(1, 1e-6), **bad)
    with pytest.raises(dp.InvalidParameter):
        open_box(dp.GDP(1), pure=0.1)


@given(MUS, st.integers(1, 10**9))
def test_calibrated_gaussian_never_promises_too_little_noise(mu, squared):
    mechanism = gaussian_noise(L2(Fraction(squared)), spend_mu_squared(dp.GDP(mu)))
    # rounded up from the exact value checked next
    assert guarantee_of(mechanism).mu <= mu * (1 + 1e-15)
    assert Fraction(squared) / mechanism.spread**2 <= Fraction(repr(mu)) ** 2
    assert float(mechanism.spread) * mu == pytest.approx(math.sqrt(squared), rel=1e-12)
    assert mechanism.steps >= 1024


@given(EPSILONS, st.integers(1, 10**9))
def test_calibrated_pure_noise_never_promises_too_little(epsilon, value):
    for make in (laplace_noise, geometric_noise):
        mechanism = make(L1(Fraction(value)), Fraction(repr(epsilon)))
        assert Fraction(value) / mechanism.spread <= Fraction(repr(epsilon))
        assert float(mechanism.spread) * epsilon == pytest.approx(value, rel=1e-12)


def test_prices_depend_on_the_box():
    pure = laplace_noise(L1(Fraction(1)), Fraction(1, 2))
    opened, closed = Price(epsilon=Fraction(1)), Price(mu_squared=Fraction(1))
    assert price_of([pure], box=opened) == Price(epsilon=Fraction(1, 2))
    converted = price_of([pure], box=closed)
    assert converted.epsilon == 0
    assert float(converted.mu_squared) ** 0.5 == pytest.approx(0.6238925920985082, rel=1e-12)
    gaussian = gaussian_noise(L2(Fraction(1)), Fraction(1, 4))
    assert price_of([gaussian, gaussian], box=opened).mu_squared <= Fraction(1, 2)
    assert price_of_spend(dp.PureDP(0.5), box=opened) == Price(epsilon=Fraction(1, 2))
    assert price_of_spend(dp.GDP(0.5), box=opened) == Price(mu_squared=Fraction(1, 4))


def test_prices_in_a_zcdp_box():
    box = open_box(dp.ZCDP(0.5))
    assert box == Price(rho=Fraction(1, 2))
    assert open_box(dp.ZCDP(0.5), delta0=1e-7) == Price(
        rho=Fraction(1, 2), delta=Fraction(1, 10**7)
    )
    assert price_of_spend(dp.ZCDP(0.1), box=box) == Price(rho=Fraction(1, 10))
    assert price_of_spend(dp.GDP(0.5), box=box) == Price(rho=Fraction(1, 8))
    assert price_of_spend(dp.PureDP(0.5), box=box) == Price(rho=Fraction(pure_rho(0.5)))
    approx = dp.ApproxDP(1, 1e-6)
    assert price_of_spend(approx, box=box) == Price(rho=spend_mu_squared(approx) / 2)
    for other in (open_box(dp.GDP(1)), open_box(dp.ApproxDP(1, 1e-6), pure=0.5)):
        assert price_of_spend(dp.ZCDP(0.1), box=other) == Price(mu_squared=Fraction(1, 5))
    with pytest.raises(dp.NoTheorem):
        open_box(dp.RDP((2,), (0.1,)))
    with pytest.raises(dp.NoTheorem):
        spend_mu_squared(dp.RDP((2,), (0.1,)))


@given(st.floats(1e-6, 100), st.integers(1, 10**9))
def test_a_rho_spend_buys_gaussian_noise_within_it(rho, squared):
    mechanism = gaussian_noise(L2(Fraction(squared)), spend_mu_squared(dp.ZCDP(rho)))
    price = price_of([mechanism], box=open_box(dp.ZCDP(1)))
    assert price.rho <= Fraction(repr(rho))
    assert float(price.rho) == pytest.approx(rho, rel=1e-12)
    assert within_spend(mechanism, dp.ZCDP(rho))
    assert not within_spend(mechanism, dp.ZCDP(rho * 0.999))


@pytest.mark.parametrize("rho", [1e-19, 4e-13, 600_000])
def test_a_rho_spend_of_no_ordinary_size_is_refused(rho):
    with pytest.raises(dp.InvalidParameter, match="typical values of rho"):
        spend_mu_squared(dp.ZCDP(rho))


@given(EPSILONS)
def test_a_pure_mechanism_within_a_rho_spend(epsilon):
    mechanism = laplace_noise(L1(Fraction(1)), Fraction(repr(epsilon)))
    assert within_spend(mechanism, dp.ZCDP(float_up(Fraction(pure_rho(epsilon)))))
    assert not within_spend(mechanism, dp.ZCDP(pure_rho(epsilon) * 0.99))
