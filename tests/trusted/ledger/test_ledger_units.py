"""Units: prices round up, boxes round down, decimals are exact."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.calibration.additive import gaussian_noise
from discreet.accounting.guarantees import EPSILON_CEILING, GDP, MU_CEILING, MU_FLOOR, PureDP
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.sensitivity import L2
from discreet.trusted.ledger.units import LARGEST_AMOUNT, Amounts, capacity, charge
from discreet.trusted.losses.pricing import Price, open_box, price_of

amounts = st.fractions(min_value=0, max_value=10**6)
prices = st.builds(Price, amounts, amounts, st.fractions(min_value=0, max_value=1), amounts).filter(
    lambda price: price != Price()
)


@given(prices)
def test_a_price_is_rounded_up_by_less_than_one_unit(price: Price) -> None:
    charged = charge(price).exact()
    for name, unit in (("epsilon", 12), ("mu_squared", 12), ("delta", 18), ("rho", 12)):
        assert 0 <= getattr(charged, name) - getattr(price, name) < Fraction(1, 10**unit)


@pytest.mark.slow
@given(prices)
def test_a_box_is_rounded_down_by_less_than_one_unit(box: Price) -> None:
    try:
        held = capacity(box).exact()
    except InvalidParameter:
        assert max(box.epsilon, box.mu_squared, box.delta * 10**6, box.rho) < Fraction(1, 10**12)
        return
    for name, unit in (("epsilon", 12), ("mu_squared", 12), ("delta", 18), ("rho", 12)):
        assert 0 <= getattr(box, name) - getattr(held, name) < Fraction(1, 10**unit)


@given(
    st.integers(min_value=1, max_value=400),
    st.sampled_from([0.1, 0.01, 0.3, 1.7, 1e-9, 0.123456789]),
)
def test_equal_decimal_spends_fill_their_box_exactly(count: int, spend: float) -> None:
    price = Price(epsilon=rational(spend, "spend"))
    box = capacity(Price(epsilon=count * rational(spend, "spend")))
    assert charge(price).times_in(box) == count


def test_ten_gaussian_mechanisms_of_a_tenth_fill_one() -> None:
    box = open_box(GDP(1))
    mechanism = gaussian_noise(L2(Fraction(7)), Fraction(1, 10))
    assert charge(price_of([mechanism], box=box)).times_in(capacity(box)) == 10


def test_a_float_square_root_is_what_it_is() -> None:
    """math.sqrt(0.1) is a little above √0.1, and ten of its squares are a little above 1:
    the tenth does not fit.
    """
    exact = rational(math.sqrt(0.1), "mu") ** 2
    assert 10 * exact > 1
    assert charge(Price(mu_squared=exact)).times_in(capacity(open_box(GDP(1)))) == 9


def test_the_largest_and_smallest_guarantees_are_whole_units_in_64_bits() -> None:
    largest = (
        capacity(open_box(PureDP(float(EPSILON_CEILING))))
        + capacity(open_box(GDP(float(MU_CEILING))))
        + capacity(open_box(ZCDP(1e6)))
        + Amounts(delta=10**18)
    )
    assert max((largest + largest).as_tuple()) <= LARGEST_AMOUNT
    assert capacity(open_box(GDP(float(MU_FLOOR)))) == Amounts(mu_squared=1)


def test_amounts_print_every_digit() -> None:
    assert (
        str(Amounts(epsilon=100_000_000_001, mu_squared=5 * 10**11, delta=10**11))
        == "ε = 0.100000000001, μ² = 0.5, δ₀ = 1e-7"
    )
    assert str(Amounts(rho=5)) == "ρ = 5e-12"
    assert str(Amounts()) == "nothing"


def test_a_box_must_hold_something() -> None:
    with pytest.raises(InvalidParameter):
        capacity(Price())
    with pytest.raises(InvalidParameter):
        capacity(Price(epsilon=Fraction(10**8)))
