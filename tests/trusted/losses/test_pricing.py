"""What a spend and a budget open as a box, what fits in which, and what no theorem prices."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import stats

import discreet as dp
from discreet.accounting.renyi.conversions import pure_rho
from discreet.trusted.losses import pricing
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.pricing import (
    Price,
    guarantee_of,
    loss_fits,
    open_box,
    price_of_spend,
    spend_box,
)

KNOWN_BY_RHO = Loss(rho=Fraction(1, 8))
ZCDP_BOX, PURE_BOX = Price(rho=Fraction(1)), Price(epsilon=Fraction(1))
GAUSSIAN_BOX = Price(mu_squared=Fraction(1))


def test_a_price_says_its_coordinates() -> None:
    assert str(Price()) == "nothing"
    assert str(Price(Fraction(1, 2), delta=Fraction(1, 4))) == "ε = 0.5, δ₀ = 0.25"


def test_a_spend_opens_its_coordinate() -> None:
    tenth = Fraction(1, 10**7)
    assert spend_box(dp.PureDP(0.5), tenth) == Price(epsilon=Fraction(1, 2), delta=tenth)
    assert spend_box(dp.ZCDP(0.25), tenth) == Price(rho=Fraction(1, 4), delta=tenth)
    assert spend_box(dp.GDP(0.5)) == Price(mu_squared=Fraction(1, 4))
    whole, split = spend_box(dp.ApproxDP(1, 1e-6)), spend_box(dp.ApproxDP(1, 1e-6), tenth)
    assert 0 < split.mu_squared < whole.mu_squared
    assert split.delta == tenth


@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 2)])
def test_no_spend_sets_aside_all_of_its_delta(delta: Fraction) -> None:
    with pytest.raises(dp.InvalidParameter, match="below the spend's own delta"):
        spend_box(dp.ApproxDP(1, 1e-6), delta)


def test_what_is_set_aside_is_counted_as_the_box_counts() -> None:
    pure, gaussian, zcdp = dp.PureDP(0.5), dp.GDP(0.5), dp.ZCDP(0.25)
    assert price_of_spend(pure, box=ZCDP_BOX).rho == Fraction(pure_rho(0.5))
    assert price_of_spend(gaussian, box=ZCDP_BOX) == Price(rho=Fraction(1, 8))
    assert price_of_spend(zcdp, box=ZCDP_BOX) == Price(rho=Fraction(1, 4))
    assert price_of_spend(pure, box=PURE_BOX) == Price(epsilon=Fraction(1, 2))
    aside = price_of_spend(pure, box=GAUSSIAN_BOX)
    assert aside.epsilon == 0
    mu = 2 * stats.norm.ppf(1 / (1 + math.exp(-0.5)))  # of randomised response
    assert float(aside.mu_squared) == pytest.approx(mu**2, rel=1e-9)


def test_each_coordinate_of_a_box_is_a_limit_of_its_own() -> None:
    loss = Loss(pure=(Fraction(1, 2),), mu_squared=Fraction(1, 4), delta=Fraction(1, 8))
    box = Price(Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))
    assert loss_fits(loss, box)
    assert not loss_fits(loss, Price(Fraction(1, 3), box.mu_squared, box.delta))
    assert not loss_fits(loss, Price(box.epsilon, Fraction(1, 5), box.delta))
    assert not loss_fits(loss, Price(box.epsilon, box.mu_squared, Fraction(1, 9)))
    assert loss_fits(KNOWN_BY_RHO, Price(rho=Fraction(1, 8)))
    assert not loss_fits(KNOWN_BY_RHO, Price(rho=Fraction(1, 9)))


@pytest.mark.parametrize("box", [PURE_BOX, GAUSSIAN_BOX])
def test_what_is_known_by_its_zcdp_has_no_price_elsewhere(box: Price) -> None:
    with pytest.raises(dp.NoTheorem, match="zCDP alone"):
        loss_fits(KNOWN_BY_RHO, box)


def test_guarantees_of_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    def of(loss: Loss) -> object:
        monkeypatch.setattr(pricing, "loss_of", lambda mechanism: loss)
        return guarantee_of(None)  # type: ignore[arg-type]

    half, little = Fraction(1, 2), Fraction(1, 2**20)
    assert of(KNOWN_BY_RHO) == dp.ZCDP(0.125)
    assert of(Loss(pure=(half,))) == dp.PureDP(0.5)
    assert of(Loss(bounded_range=(half,), delta=little)) == dp.ApproxDP(0.5, 2.0**-20)
    assert of(Loss(mu_squared=Fraction(1, 4))) == dp.GDP(0.5)
    both = of(Loss(mu_squared=Fraction(1, 4), delta=little))
    assert isinstance(both, dp.ApproxDP)
    assert both.delta == 2.0**-19
    with pytest.raises(dp.NoTheorem, match="zCDP but for"):
        of(Loss(rho=half, delta=little))


@pytest.mark.parametrize(
    ("budget", "split"),
    [
        (dp.ApproxDP(1, 1e-6), {"pure": 1.0}),
        (dp.ApproxDP(1, 1e-6), {"pure": -0.5}),
        (dp.ApproxDP(1, 1e-6), {"delta0": 1e-6}),
        (dp.ZCDP(1), {"delta0": 1.0}),
        (dp.ZCDP(1), {"pure": 0.5}),
        (dp.GDP(1), {"pure": 0.5}),
        (dp.PureDP(1), {"delta0": 1e-7}),
    ],
)
def test_a_box_that_its_budget_does_not_hold_is_refused(
    budget: object, split: dict[str, float]
) -> None:
    with pytest.raises(dp.InvalidParameter):
        open_box(budget, **split)  # type: ignore[arg-type]
