"""All guarantees speak one language: explain, covers, group, compose."""

import pytest

import discreet as dp
from discreet.accounting.loss_distributions.build import (
    gaussian_pld,
    laplace_pld,
    poisson_subsampled,
)
from discreet.accounting.renyi.rdp import rdp_of
from discreet.accounting.tradeoff.curve import tradeoff_of

SAMPLED = poisson_subsampled(gaussian_pld(1.0), 0.01).self_compose(100)
ALL = [
    dp.PureDP(0.5),
    dp.ApproxDP(0.5, 1e-6),
    dp.GDP(0.5),
    dp.ZCDP(0.1),
    rdp_of(dp.GDP(0.5)),
    tradeoff_of(dp.GDP(0.5)),
    SAMPLED,
]


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ALL, ids=lambda one: type(one).__name__)
def test_every_guarantee_explains_itself_and_its_numbers_agree(guarantee):
    words = guarantee.explain(false_alarm=0.05)
    assert "5 % false alarms" in words
    assert 0 <= guarantee.tradeoff(0.05) <= 0.95
    assert guarantee.delta_at(guarantee.epsilon_at(1e-4)) <= 1e-4 * (1 + 1e-3)
    shown = float(words.split("probability at most ")[1].split(" %")[0]) / 100
    assert shown >= 1 - guarantee.tradeoff(0.05) - 1e-9  # rounded against us


@pytest.mark.slow
def test_loss_distributions_compose_with_pure_approximate_and_gaussian_parts():
    whole = dp.compose(laplace_pld(0.5), dp.GDP(0.3), dp.PureDP(0.1), dp.ApproxDP(0.2, 1e-8))
    assert isinstance(whole, dp.PLD)
    alone = laplace_pld(0.5).epsilon_at(1e-5)
    assert (
        alone
        < whole.epsilon_at(1e-5)
        <= 0.5 + 0.1 + 0.2 + dp.GDP(0.3).epsilon_at(9.9e-6) * (1 + 1e-6)
    )
    with pytest.raises(dp.NoTheorem, match="Rényi"):
        dp.compose(laplace_pld(0.5), dp.ZCDP(0.1))


@pytest.mark.slow
def test_trade_off_functions_compose_with_every_kind():
    whole = dp.compose(dp.GDP(0.4), tradeoff_of(dp.GDP(0.3)))
    assert isinstance(whole, dp.TradeOff)
    assert whole.tradeoff(0.1) == pytest.approx(dp.GDP(0.5).tradeoff(0.1), abs=2e-3)
    assert whole.tradeoff(0.1) <= dp.GDP(0.5).tradeoff(0.1)


@pytest.mark.slow
def test_loss_distributions_cover_and_group():
    assert gaussian_pld(1.0).covers(dp.GDP(0.5))
    assert not gaussian_pld(0.5).covers(dp.GDP(1.0))
    grouped = gaussian_pld(0.25).group(2)
    assert grouped.tradeoff(0.1) <= dp.GDP(0.5).tradeoff(0.1) + 1e-9
    assert grouped.tradeoff(0.1) == pytest.approx(dp.GDP(0.5).tradeoff(0.1), abs=0.01)
