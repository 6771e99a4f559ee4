"""Lower bounds: not above a true claim more often than they say, and near it where they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.audits import canaries, runs
from discreet.audits.bounds import chance, least_amount, least_share
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
    """400 audits of randomised response, whose law is known: the pilot's choice costs nothing."""
    truth, above = 1.0, 0
    for audit in range(400):
        draws = np.random.default_rng(audit).random(5000)
        place = iter(draws)
        found = runs.audited(
            lambda side, number, place=place: float(
                side if next(place) < 1 / (1 + math.exp(-1)) else 1 - side
            ),
            dp.PureDP(truth),
            name="response",
            runs=1000,
            level=LEVEL,
            seed=audit,
        )
        above += found.lower > truth
        assert found.lower > 0.3
    assert stats.binom.sf(above - 1, 400, 1 - LEVEL) > 1e-9


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
