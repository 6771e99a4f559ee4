"""Lower bounds: not above a true claim more often than they say, and near it where they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.audits import canaries, runs
from discreet.audits.bounds import (
    allowed_failures,
    chance,
    least_amount,
    least_share,
    of_guesses,
)
from discreet.audits.rules import Raised, chosen, features

LEVEL = 0.95


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "share"),
    [
        (dp.PureDP(1), 1 / (1 + math.exp(-1))),
        (dp.GDP(1), float(stats.norm.cdf(0.5))),
        (dp.ApproxDP(1, 0.01), (math.e + 0.01) / (1 + math.e)),
    ],
    ids=["pure", "gaussian", "approximate"],
)
def test_bounds_exceed_true_claims_no_more_often_than_stated(claim: dp.GDP, share: float) -> None:
    """Guesses of the best attack on a law that attains the claim, exactly: summed over the binomial
    law, the bound is above the claim with probability at most 5 %, and not much less.
    """
    guesses = 400
    claimed = least_amount(claim, share)
    assert claimed == pytest.approx(1.0, rel=1e-6)
    wrong = [
        right
        for right in range(guesses + 1)
        if least_amount(claim, least_share(right, guesses, LEVEL)) > claimed * (1 + 1e-6)
    ]
    probability = stats.binom.pmf(wrong, guesses, share).sum()
    assert 0.01 < probability <= 1 - LEVEL


def test_the_p_value_is_that_of_the_claim() -> None:
    for right in (0, 200, 292, 400):
        exact = stats.binom.sf(right - 1, 400, 1 / (1 + math.exp(-1)))
        assert chance(dp.PureDP(1), right, 400) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_bounds_of_whole_audits_are_seldom_above_the_truth() -> None:
    """120 audits of randomised response, whose law is known: the pilot's choice costs nothing."""
    truth, above = 1.0, 0
    for audit in range(120):
        draws = np.random.default_rng(audit).random(2000)
        place = iter(draws)
        found = runs.audited(
            lambda side, number, place=place: float(
                side if next(place) < 1 / (1 + math.exp(-1)) else 1 - side
            ),
            dp.PureDP(truth),
            name="response",
            runs=500,
            level=LEVEL,
            seed=audit,
        )
        above += found.lower > truth
        assert found.lower > 0.1
    assert stats.binom.sf(above - 1, 120, 1 - LEVEL) > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-3, 0.05])
def test_bounds_with_failures_are_seldom_above_the_truth(delta: float) -> None:
    """Outputs that attain (ε, δ): with probability δ the bit itself is shown, else a randomised
    one; and a rule that says nothing of half of the others. 10⁴ audits.
    """
    epsilon, runs, audits = 1.0, 400, 10_000
    draws = np.random.default_rng(int(1 / delta))
    failures = draws.binomial(runs, delta, audits)
    guesses = draws.binomial(runs - failures, 0.5)
    right = draws.binomial(guesses, 1 / (1 + math.exp(-epsilon))) + failures
    claim = dp.ApproxDP(epsilon, delta)
    found = [
        of_guesses(claim, int(r), int(g + f), runs, LEVEL)
        for r, g, f in zip(right, guesses, failures, strict=True)
    ]
    above = sum(lower > epsilon for lower, _ in found)
    assert stats.binom.sf(above - 1, audits, 1 - LEVEL) > 1e-9
    assert above > 10  # not far from the stated probability either
    for level in (0.5, 0.1, 0.01):
        low = sum(unlikely <= level for _, unlikely in found)
        assert stats.binom.sf(low - 1, audits, level) > 1e-9


def test_failures_that_are_allowed_for_are_few() -> None:
    assert allowed_failures(20_000, 1e-6, 1e-11) <= 5
    assert stats.binom.sf(allowed_failures(500, 0.1, 0.01), 500, 0.1) <= 0.01
    assert of_guesses(dp.ApproxDP(1, 1e-6), 0, 0, 400, LEVEL) == (0.0, 1.0)
    assert of_guesses(dp.ApproxDP(1, 0.5), 3, 4, 400, LEVEL) == (0.0, 1.0)


def test_constant_outputs_bound_nothing() -> None:
    for output in (1.0, "same", None, float("nan"), np.zeros(3)):
        found = dp.audit(
            lambda value, output=output: output, pair=(0, 1), claim=dp.PureDP(1), runs=300
        )
        assert found.lower == 0.0
        assert not found.violated


def test_what_raises_or_changes_its_shape_is_an_output() -> None:
    assert features(Raised("ValueError")) == {"raised ValueError": 1.0}
    assert features(np.arange(3))["length 3"] == 1.0
    assert features(float("nan")) == {"length 1": 1.0, "nan 0": 1.0}
    assert features("a text") == {"is 'a text'": 1.0}


def test_a_rule_guesses_what_the_pilot_shows_and_may_say_nothing() -> None:
    first = [{"value 0": float(number)} for number in range(100)]
    second = [{"value 0": float(number) + 50} for number in range(100)]
    always, sure = (chosen(first, second, abstaining=abstain) for abstain in (False, True))
    assert all(always.guess({"value 0": float(value)}) is not None for value in range(150))
    assert sure.guess({"value 0": 75.0}) is None
    assert [sure.guess({"value 0": value}) for value in (0.0, 149.0)] == [0, 1]


@pytest.mark.parametrize(("claim", "broken"), [(dp.PureDP(1), False), (dp.PureDP(0.7), True)])
def test_canaries_know_a_true_claim_from_a_false_one(claim: dp.PureDP, broken: bool) -> None:
    """Every coin of a release is randomised with ε = 1, all of them depending on each other."""

    def score(inside: np.ndarray, release: int) -> np.ndarray:
        kept = np.random.default_rng(release).random(len(inside)) < 1 / (1 + math.exp(-1))
        return np.where(inside == kept, 1.0, -1.0)

    found = canaries.audited(
        score, claim, name="response", coins=2000, releases=20, level=LEVEL, seed=1
    )
    assert 0.95 < found.lower <= 1.03
    assert found.violated is broken
