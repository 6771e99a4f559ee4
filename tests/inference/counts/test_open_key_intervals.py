"""Intervals of counts that were shown because they passed a threshold: coverage given that they are
shown, computed from the law itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.accounting.calibration.thresholds import thresholded_counts
from discreet.inference.counts.open_keys import (
    count_interval,
    log_tail,
    share_limits,
    show_probability,
)
from discreet.inference.results.laws import Noise, half_width
from discreet.sensitivity import Rows
from discreet.trusted.extensions.open_keys.loss import show_bounds

MECHANISMS = {
    f"{spend} {rows.rows} {rows.change}": thresholded_counts(rows, spend, Fraction(1, 10**7))
    for spend in (dp.GDP(0.5), dp.PureDP(0.5), dp.PureDP(4.0))
    for rows in (Rows(1, "changed"), Rows(3, "added or removed"))
}


def shown_law(mechanism, count):
    """(noisy counts in rows, their probabilities given that the key is shown),
    for true count `count`.
    """
    cut = 1 << mechanism.noise.refinement
    steps = np.arange(
        mechanism.threshold,
        max(mechanism.threshold, count * cut) + math.ceil(45 * float(mechanism.noise.steps)) + 2,
        dtype=float,
    )
    beyond = np.exp(
        log_tail(mechanism.noise, steps - count * cut)
        - log_tail(mechanism.noise, np.array([mechanism.threshold - count * cut], dtype=float))
    )
    law, values = beyond[:-1] - beyond[1:], steps[:-1] / cut
    kept = law > 1e-13
    return values[kept], law[kept]


def counts_near(mechanism):
    """True counts from two spreads below the threshold to five above, and the smallest one."""
    least, spread = float(mechanism.least_shown), math.sqrt(mechanism.variance)
    return sorted(
        {
            1,
            *(
                max(1, round(least + distance * spread))
                for distance in (-5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 5)
            ),
        }
    )


def conditional_coverage(mechanism, count, level, interval):
    values, law = shown_law(mechanism, count)
    low, high = interval(mechanism, values, level)
    return float(law[(low <= count) & (count <= high)].sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_counts_are_covered_given_that_they_are_shown(name, level):
    mechanism = MECHANISMS[name]
    for count in counts_near(mechanism):
        covered = conditional_coverage(mechanism, count, level, count_interval)
        assert covered >= level - 1e-6
    far = round(float(mechanism.least_shown) + 30 * math.sqrt(mechanism.variance))
    most = (1 + level) / 2 if mechanism.noise.spread >= 2 else 1.0  # nominal, but for whole numbers
    assert level - 1e-6 <= conditional_coverage(mechanism, far, level, count_interval) <= most


def test_intervals_that_ignore_the_threshold_miss_near_it():
    """The positive control: the usual interval covers a count two spreads below the threshold far
    too seldom.
    """

    def usual(mechanism, values, level):
        half = half_width(level, 0.0 * values, Noise(mechanism.variance))
        return values - half, values + half

    mechanism = MECHANISMS[next(iter(MECHANISMS))]
    count = round(float(mechanism.least_shown) - 2 * math.sqrt(mechanism.variance))
    assert conditional_coverage(mechanism, count, 0.95, usual) < 0.3
    assert conditional_coverage(mechanism, count, 0.95, count_interval) >= 0.95 - 1e-6


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_interval_is_whole_holds_the_noisy_count_and_starts_at_one(name):
    mechanism = MECHANISMS[name]
    least, spread = float(mechanism.least_shown), math.sqrt(mechanism.variance)
    shown = least + spread * np.array([0.0, 0.1, 1.0, 3.0, 8.0, 100.0])
    shown = np.round(shown * (1 << mechanism.noise.refinement)) / (1 << mechanism.noise.refinement)
    low, high = count_interval(mechanism, shown, 0.95)
    assert np.array_equal(low, np.round(low))
    assert np.array_equal(high, np.round(high))
    assert np.all((low >= 1) & (low <= np.ceil(shown)) & (high >= np.floor(shown)))
    assert low[0] == 1  # a count that just passes may be any count below
    assert low[-1] > shown[-1] - 8 * spread
    wide, wider = (count_interval(mechanism, shown, level) for level in (0.9, 0.999))
    assert np.all((wider[0] <= wide[0]) & (wide[1] <= wider[1]))


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_float_tail_agrees_with_ball_arithmetic(name):
    mechanism = MECHANISMS[name]
    for rows in (
        1,
        2,
        round(float(mechanism.least_shown)),
        round(float(mechanism.least_shown)) + 50,
    ):
        low, high = show_bounds(mechanism.noise, mechanism.threshold, rows)
        assert float(show_probability(mechanism, rows)) == pytest.approx(
            float((low + high) / 2), rel=1e-10
        )


@pytest.mark.slow
@pytest.mark.parametrize("spend", [dp.GDP(0.5), dp.PureDP(0.5)], ids=str)
@pytest.mark.parametrize("expected", [-1.0, 0.0, 2.0, 20.0])
def test_shares_are_covered_given_that_the_key_is_shown(spend, expected):
    """Binomial counts plus noise, 20 000 seeded draws of which those above the threshold count;
    at least 0.94 of 0.95 (five standard errors allowed).
    """
    mechanism = thresholded_counts(Rows(1, "changed"), spend, Fraction(1, 10**7))
    rng, rows = np.random.default_rng(17), 5000
    p = (float(mechanism.least_shown) + expected * math.sqrt(mechanism.variance)) / rows
    noise = (
        rng.normal(0, math.sqrt(mechanism.variance), 20_000)
        if mechanism.noise.kind == "gaussian"
        else rng.geometric(1 - math.exp(-0.25), 20_000) - rng.geometric(1 - math.exp(-0.25), 20_000)
    )
    shown = rng.binomial(rows, p, 20_000) + noise
    shown = shown[shown >= float(mechanism.least_shown)]
    low, high = share_limits(mechanism, shown, rows, 0.95)
    covered = np.mean((low <= p) & (p <= high))
    assert covered >= 0.94 - 5 * math.sqrt(0.05 / len(shown))
    assert covered <= 0.99


def test_shares_far_above_the_threshold_match_the_usual_interval():
    mechanism = thresholded_counts(Rows(1, "changed"), dp.GDP(0.5), Fraction(1, 10**7))
    low, high = share_limits(mechanism, np.array([3000.0]), 10_000.0, 0.95)
    usual = stats.norm.ppf(0.975) * math.sqrt(0.21 / 10_000 + mechanism.variance / 1e8)
    assert low[0] == pytest.approx(0.3 - usual, abs=2e-4)
    assert high[0] == pytest.approx(0.3 + usual, abs=2e-4)
