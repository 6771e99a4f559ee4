"""From right guesses to lower bounds (docs/theory/audits.md)."""

from __future__ import annotations

import math

from scipy.special import bdtrc
from scipy.stats import beta

from discreet.accounting.guarantees import EPSILON_CEILING, GDP, MU_CEILING, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import amount_of, right_limit, scaled

LEAST = 1e-6
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
