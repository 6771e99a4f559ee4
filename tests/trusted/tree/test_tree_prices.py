"""What a carved box costs its parent, and a question each box of its path."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting.gaussian import mu_for_pure
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.renyi.conversions import pure_rho
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import DiscreetError, NoTheorem
from discreet.trusted.losses.pricing import Price, open_box
from discreet.trusted.tree.prices import carried_over, carved_box

EPSILONS = st.floats(1e-4, 20)


@given(st.lists(EPSILONS, min_size=1, max_size=8))
def test_parts_cost_no_more_than_the_whole(parts: list[float]) -> None:
    whole = sum(map(Fraction, parts))
    squares = sum(Fraction(mu_for_pure(Fraction(part))) ** 2 for part in parts)
    assert squares <= Fraction(mu_for_pure(whole)) ** 2 * (1 + Fraction(1, 10**9))
    rhos = sum(Fraction(pure_rho(Fraction(part))) for part in parts)
    assert rhos <= Fraction(pure_rho(whole)) * (1 + Fraction(1, 10**9))


def test_a_child_is_carved_in_its_parents_coordinates() -> None:
    gaussian, zcdp = open_box(GDP(1)), open_box(ZCDP(1))
    box, promise = carved_box(PureDP(0.1), within=gaussian, pure=None, delta0=None)
    assert box == Price(mu_squared=Fraction(mu_for_pure(Fraction(1, 10))) ** 2)
    assert isinstance(promise, GDP)
    assert Fraction(promise.mu) ** 2 >= box.mu_squared
    box, promise = carved_box(GDP(0.5), within=zcdp, pure=None, delta0=None)
    assert (box, promise) == (Price(rho=Fraction(1, 8)), ZCDP(0.125))
    box, promise = carved_box(ApproxDP(0.5, 1e-6), within=gaussian, pure=None, delta0=None)
    assert box.delta == 0
    assert promise == ApproxDP(0.5, 1e-6)
    with pytest.raises(NoTheorem, match="ρ"):
        carved_box(ZCDP(0.1), within=gaussian, pure=None, delta0=None)
    approx = open_box(ApproxDP(1, 1e-6))
    with pytest.raises(DiscreetError, match="pure"):
        carved_box(ApproxDP(0.5, 1e-7), within=approx, pure=0.1, delta0=None)


def test_a_price_is_carried_over_where_a_theorem_gives_one() -> None:
    both = Price(epsilon=Fraction(1, 10), mu_squared=Fraction(1, 4), delta=Fraction(1, 10**9))
    pure, gaussian, zcdp = open_box(PureDP(1)), open_box(GDP(1)), open_box(ZCDP(1))
    assert carried_over(both, pure) == both
    assert carried_over(both, gaussian) == Price(
        mu_squared=both.mu_squared + Fraction(mu_for_pure(both.epsilon)) ** 2, delta=both.delta
    )
    assert carried_over(both, zcdp) == Price(
        rho=Fraction(1, 8) + Fraction(pure_rho(both.epsilon)), delta=both.delta
    )
    with pytest.raises(NoTheorem):
        carried_over(Price(rho=Fraction(1, 10)), gaussian)
