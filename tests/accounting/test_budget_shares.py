"""Shares of a budget fill its box: every one is granted, and nothing but rounding is left."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.accounting.shares import UNITS
from discreet.errors import InvalidParameter, NoTheorem
from discreet.trusted.ledger.units import capacity, charge
from discreet.trusted.losses.pricing import Price, open_box, price_of_spend

BUDGETS = [
    dp.PureDP(1),
    dp.PureDP(0.7),
    dp.ApproxDP(1, 1e-6),
    dp.ApproxDP(0.3, 1e-9),
    dp.GDP(0.5),
    dp.ZCDP(0.1),
    dp.ZCDP(1 / 3),
]
positive = st.floats(0.01, 30)


def left_after(budget, spends, **opened):
    """What a new ledger has left after setting every spend aside, which it must grant."""
    ledger = dp.Ledger.open(budget, **opened)
    for spend in spends:
        ledger.reserve(price_of_spend(spend, box=ledger.box))
    return ledger.remaining()


def lost_at_most(budget, parts):
    """Two units a part, and the last digit of each float (relative 2⁻⁵², doubled in a square)."""
    box = capacity(open_box(budget))
    return 2 * parts + 2**-50 * max(box.epsilon, box.mu_squared, box.rho)


@pytest.mark.few(3)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("parts", [1, 2, 7, 12, 365])
def test_equal_parts_fill_the_box(budget, parts) -> None:
    spends = budget.split(parts)
    left = left_after(budget, spends)
    assert len(spends) == parts
    assert set(spends) == {budget / parts}
    assert 0 <= max(left.epsilon, left.mu_squared, left.rho) <= lost_at_most(budget, parts)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    budget=st.one_of(
        positive.map(dp.PureDP),
        positive.map(dp.GDP),
        positive.map(dp.ZCDP),
        st.builds(dp.ApproxDP, st.sampled_from([0.1, 1.0, 3.7]), st.sampled_from([1e-9, 1e-6])),
    ),
    weights=st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 20), min_size=1),
)
def test_weighted_parts_fill_the_box(budget, weights) -> None:
    spends = budget.split(weights)
    left = left_after(budget, spends.values())
    assert list(spends) == list(weights)
    assert 0 <= max(left.epsilon, left.mu_squared, left.rho) <= lost_at_most(budget, len(weights))
    box = open_box(budget)
    prices = {name: price_of_spend(spend, box=box) for name, spend in spends.items()}
    for name, price in prices.items():
        share = Fraction(weights[name], sum(weights.values()))
        whole, mine = (x.epsilon + x.mu_squared + x.rho for x in (box, price))
        assert abs(mine - share * whole) <= Fraction(3, UNITS) + whole * Fraction(1, 2**50)


def test_one_digit_more_is_refused() -> None:
    """The spends are the greatest: a control that would pass if they were merely small."""
    for budget in BUDGETS:
        more = {
            field: math.nextafter(value, math.inf) * (1 + 1e-9)
            for field, value in (budget / 12).to_dict().items()
            if field != "kind"
        }
        with pytest.raises(dp.BudgetExceeded):
            left_after(budget, [type(budget / 12)(**more)] * 12)


def test_a_split_follows_how_the_ledger_is_opened() -> None:
    budget, opened = dp.ApproxDP(1, 1e-6), {"pure": 0.25, "delta0": 5e-7}
    left = left_after(budget, budget.split(12, **opened), **opened)
    assert left.mu_squared <= 24
    with pytest.raises(dp.BudgetExceeded):
        left_after(budget, budget.split(12), **opened)
    with pytest.raises(InvalidParameter, match="nothing of"):
        budget.split(12, pure=1)


def test_a_naive_twelfth_leaves_most_of_the_box() -> None:
    budget, naive = dp.ApproxDP(1, 1e-6), dp.ApproxDP(1 / 12, 1e-6 / 12)
    ledger = dp.Ledger.open(budget)
    assert ledger.how_many(naive) > 100
    assert ledger.how_many(budget / 12) == 12


def test_units_are_those_of_a_ledger() -> None:
    unit = Fraction(1, UNITS)
    for name in ("epsilon", "mu_squared", "rho"):
        assert getattr(charge(Price(**{name: unit})), name) == 1


@pytest.mark.parametrize(
    "parts", [0, -1, 1.5, True, "12", None, {}, {"a": 0}, {"a": -1}, {1: 2}, []]
)
def test_what_is_no_split_is_refused(parts) -> None:
    with pytest.raises(InvalidParameter):
        dp.GDP(1).split(parts)


def test_what_no_ledger_counts_in_is_not_split() -> None:
    with pytest.raises(NoTheorem, match="RDP"):
        dp.RDP((2.0, 4.0), (0.1, 0.2)).split(3)
    with pytest.raises(InvalidParameter):
        dp.GDP(1e-6).split(100)
