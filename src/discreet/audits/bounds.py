"""From right guesses to lower bounds (docs/theory/audits.md).

least_share     of a binomial variate
least_amount    the least claim that allows a chance of a right guess
of_guesses      both, of runs in which a rule may say nothing
"""

from __future__ import annotations

import math

from scipy.special import bdtrc
from scipy.stats import beta

from discreet.accounting.guarantees import EPSILON_CEILING, GDP, MU_CEILING, ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import amount_of, right_limit, scaled

LEAST = 1e-6
FAILED = 1e-11  # of a p-value, for failures of (ε, δ) beyond those that are allowed for
FAILED_SHARE = 0.05  # of a bound's own level, for the same
BISECTIONS = 50


def least_share(right: int, guesses: int, level: float) -> float:
    """Clopper and Pearson's lower limit of the chance of a right guess: exceeds it with
    probability at most 1 − level.
    """
    return 0.0 if right == 0 else float(beta.ppf(1 - level, right, guesses - right + 1))


def least_amount(claim: PrivacyProfile, share: float) -> float:
    """The least ε, μ or ρ, of the claim's kind, that allows this chance of a right guess; 0 where
    every one does.
    """
    if share <= 0.5:
        return 0.0
    if isinstance(claim, PureDP):
        return min(float(EPSILON_CEILING), math.log(share / (1 - share)) if share < 1 else math.inf)
    low, high = 0.0, max(4 * amount_of(claim), 1.0)
    most = float(MU_CEILING if isinstance(claim, GDP) else EPSILON_CEILING)
    while right_limit(scaled(claim, high)) < share and high < most:
        low, high = high, min(2 * high, most)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle <= LEAST or right_limit(scaled(claim, middle)) < share:
            low = middle
        else:
            high = middle
    return 0.0 if low <= LEAST else low


def chance(claim: PrivacyProfile, right: int, guesses: int) -> float:
    """The probability of as many right guesses of independent runs, if the claim is true."""
    if right == 0:
        return 1.0
    return min(1.0, float(bdtrc(right - 1, guesses, right_limit(claim))))


def of_guesses(
    claim: PrivacyProfile, right: int, guesses: int, runs: int, level: float
) -> tuple[float, float]:
    """(lower bound, p-value) of so many right guesses in independent runs.

    Theorem.  Under ε-DP right guesses are dominated by Bin(guesses, q), q = e^ε/(1+e^ε), and under
              (ε, δ)-DP by N + Bin(guesses − N, q), N ~ Bin(runs, δ): the rule may say nothing.
    Proof.    docs/theory/audits.md.
    Checked.  tests/audits/test_bounds.py::test_bounds_with_failures_are_seldom_above_the_truth
    """
    if not guesses:
        return 0.0, 1.0
    if not isinstance(claim, ApproxDP):
        share = least_share(right, guesses, level)
        return least_amount(claim, share), chance(claim, right, guesses)
    failures = allowed_failures(runs, claim.delta, FAILED_SHARE * (1 - level))
    kept, found = right - failures, 0.0
    if kept > 0:
        share = least_share(kept, guesses - failures, 1 - (1 - FAILED_SHARE) * (1 - level))
        found = max(0.0, math.log(share / (1 - share))) if share < 1 else math.inf
    failures = allowed_failures(runs, claim.delta, FAILED)
    if right <= failures:
        return min(float(EPSILON_CEILING), found), 1.0
    odds = 1 / (1 + math.exp(-claim.epsilon))
    unlikely = float(bdtrc(right - failures - 1, guesses - failures, odds))
    return min(float(EPSILON_CEILING), found), min(1.0, FAILED + unlikely)


def allowed_failures(runs: int, delta: float, level: float) -> int:
    """The least k that Bin(runs, δ) exceeds with probability at most `level`."""
    low, high = -1, runs
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bdtrc(middle, runs, delta) <= level else (middle, high)
    return high
