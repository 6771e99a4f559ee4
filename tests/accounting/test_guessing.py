"""Limits of guessing games: against enumeration, and against the linear program of the theorem."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

import discreet as dp
from discreet.accounting.tradeoff.guessing import (
    amount_of,
    area_limit,
    chance_of,
    power_limit,
    right_limit,
    right_tail,
    scaled,
)

GUARANTEES = [dp.PureDP(1), dp.ApproxDP(1, 1e-3), dp.GDP(1), dp.ZCDP(0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_one_coin_has_the_limit_of_one_coin(guarantee: dp.GDP) -> None:
    """1 − min_α(α + f(α))/2, found here by trying rates."""
    tried = max(1 - (a + guarantee.tradeoff(a)) / 2 for a in np.linspace(0.2, 0.4, 21))
    assert tried <= right_limit(guarantee) <= tried + 0.02
    tail = right_tail(guarantee, 1, 1)
    assert tried <= tail <= right_limit(guarantee) * (1 + 1e-6)
    if not isinstance(guarantee, dp.ZCDP):  # whose tangents together say more than one by one
        assert tail == pytest.approx(right_limit(guarantee), rel=1e-6)
    assert right_tail(guarantee, 1, 0) == 1.0


def test_limits_of_gaussian_guarantees_have_closed_forms() -> None:
    for mu in (0.1, 1.0, 3.0):
        assert right_limit(dp.GDP(mu)) == pytest.approx(stats.norm.cdf(mu / 2), rel=1e-9)
        area = stats.norm.cdf(mu / math.sqrt(2))
        assert area <= area_limit(dp.GDP(mu)) <= area + 1e-3
        assert power_limit(dp.GDP(mu), 0.05) == pytest.approx(
            stats.norm.sf(stats.norm.isf(0.05) - mu), rel=1e-9
        )


@pytest.mark.few(2)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("coins", [1, 2, 5, 40])
def test_randomised_answers_reach_the_pure_limit_and_stay_below_all_others(
    epsilon: float, coins: int
) -> None:
    """Every coin randomised by itself and guessed by its report: the exact law is binomial."""
    share = 1 / (1 + math.exp(-epsilon))
    for right in range(coins + 1):
        exact = stats.binom.sf(right - 1, coins, share)
        assert right_tail(dp.PureDP(epsilon), coins, right) == pytest.approx(exact, rel=1e-9)
        assert right_tail(dp.ApproxDP(epsilon, 1e-9), coins, right) >= exact * (1 - 1e-9)


def test_gaussian_noise_on_every_coin_stays_below() -> None:
    for mu, coins in itertools.product((0.5, 1.0, 2.0), (1, 3, 20)):
        for right in range(1, coins + 1):
            exact = stats.binom.sf(right - 1, coins, stats.norm.cdf(mu / 2))
            assert right_tail(dp.GDP(mu), coins, right) >= exact * (1 - 1e-9)


def test_a_release_that_is_bad_for_all_coins_at_once_stays_below() -> None:
    """With probability w all coins are randomised with a large ε, else with a small one, and the
    release says which: its curve is the mixture, and its tail far above a binomial one.
    """
    weight, small, large, coins = 0.05, 0.1, 4.0, 20
    shares = [1 / (1 + math.exp(-epsilon)) for epsilon in (large, small)]
    # corners: pieces of both, steepest first
    pieces = sorted(
        (
            (part * hit, part * (1 - hit))
            for part, share in ((weight, shares[0]), (1 - weight, shares[1]))
            for hit in (share, 1 - share)
        ),
        key=lambda piece: -piece[0] / piece[1],
    )
    corners, alpha, beta = [(0.0, 1.0)], 0.0, 1.0
    for hit, alarm in pieces:
        alpha, beta = alpha + alarm, beta - hit
        corners.append((min(alpha, 1.0), max(0.0, beta)))
    curve = dp.TradeOff.through(corners)
    loose = 0
    for right in range(coins + 1):
        exact = sum(
            part * stats.binom.sf(right - 1, coins, share)
            for part, share in zip((weight, 1 - weight), shares, strict=True)
        )
        assert right_tail(curve, coins, right) >= exact * (1 - 1e-6)
        loose += exact > 2 * stats.binom.sf(right - 1, coins, right_limit(curve))
    assert loose >= 3  # a binomial tail would have been wrong


@pytest.mark.parametrize("coins", [2, 5, 12])
@pytest.mark.parametrize("guarantee", [dp.ApproxDP(1, 1e-3), dp.ApproxDP(0.3, 0.05)], ids=str)
def test_the_tail_is_the_optimum_of_the_theorem(guarantee: dp.ApproxDP, coins: int) -> None:
    """The greatest tail that the inequalities allow, by linear programming over all laws."""
    factor, delta = math.exp(guarantee.epsilon), guarantee.delta
    numbers = np.arange(coins + 1)
    rows, limits = [], []
    for cut in range(1, coins + 1):
        hits = np.where(numbers >= cut, numbers / coins, 0.0)
        misses = np.where(numbers >= cut - 1, (coins - numbers) / coins, 0.0)
        rows += [hits - factor * misses, hits - misses / factor]
        limits += [delta, 1 - (1 - delta) / factor]
    for right in range(1, coins + 1):
        best = linprog(
            -(numbers >= right).astype(float),
            A_ub=np.array(rows),
            b_ub=np.array(limits),
            A_eq=np.ones((1, coins + 1)),
            b_eq=[1.0],
            bounds=(0, 1),
        )
        assert right_tail(guarantee, coins, right) == pytest.approx(-best.fun, rel=1e-6, abs=1e-9)


def test_independent_releases_are_worth_more_than_coins_of_one() -> None:
    """Exact laws of randomised answers stay below; one release of many coins says little."""
    share = 1 / (1 + math.exp(-1))
    for releases, coins in ((1, 20), (20, 1), (10, 4)):
        for total in range(releases * coins + 1):
            right = [total // releases + (number < total % releases) for number in range(releases)]
            exact = stats.binom.sf(total - 1, releases * coins, share)
            assert chance_of(dp.PureDP(1), right, coins) >= exact * (1 - 1e-9)
    assert chance_of(dp.GDP(1), [20] * 50, 20) < 1e-6 < chance_of(dp.GDP(1), [20], 20)


@pytest.mark.slow
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_tails_fall_with_what_is_guessed_and_grow_with_what_is_told(guarantee: dp.GDP) -> None:
    tails = [right_tail(guarantee, 30, right) for right in range(31)]
    assert tails == sorted(tails, reverse=True)
    more = scaled(guarantee, 2 * amount_of(guarantee))
    assert all(right_tail(more, 30, right) >= tails[right] for right in range(31))
    assert amount_of(more) == 2 * amount_of(guarantee)


def test_a_guarantee_without_one_number_is_refused() -> None:
    with pytest.raises(dp.DiscreetError, match=r"dp\.GDP"):
        scaled(dp.TradeOff.through([(0, 1), (0.3, 0.3), (1, 0)]), 1.0)
