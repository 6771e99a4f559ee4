"""What guessing games can win against a guarantee: the limits that attacks are shown beside, and
the tail that audits test with (docs/theory/attacks.md).

A game has independent fair coins. Each coin decides about one unit which of two neighbouring data
sets is true, the release is made once, and every coin is guessed from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, expit, ndtr, ndtri

from discreet.accounting.explain import guess_bound
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import NoTheorem

Array = npt.NDArray[np.float64]
MARGIN = 1e-12  # relative; more than floats lose in one reading of a curve
STEPS = 1024  # of the area under a curve
BISECTIONS = 60
TANGENTS, LARGEST = 64, 30.0
SMALLEST = -600.0


def right_limit(guarantee: PrivacyProfile) -> float:
    """The greatest probability that one fair coin is guessed, 1 − min_α(α + f(α))/2."""
    return guess_bound(guarantee, 0.5)


def area_limit(guarantee: PrivacyProfile) -> float:
    """The greatest area under the curve of hits by false alarms, ∫(1 − f(α))dα, rounded up.

    Method.  1 − f increases, so that each of 1024 steps is at most its right end.
    """
    ends = (guarantee.tradeoff((step + 1) / STEPS) for step in range(STEPS))
    return min(1.0, math.fsum(1 - end for end in ends) / STEPS)


def power_limit(guarantee: PrivacyProfile, alarms: float) -> float:
    """The greatest rate of hits at a rate of false alarms, 1 − f(α)."""
    return 1 - guarantee.tradeoff(alarms)


def right_tail(guarantee: PrivacyProfile, coins: int, right: int) -> float:
    """The greatest probability that `right` or more of `coins` are guessed, rounded up.

    Theorem 1. Under ε-DP it is that of a binomial variate with share e^ε/(1+e^ε) (Steinke, Nasr
              and Jagielski 2023); coins that are not guessed may be left out of `coins`.
    Proof.    Given the release and any of the other coins, the odds of a coin are at most e^ε. So
              is each guess right, given the earlier ones, with at most that probability, and a sum
              of such is dominated by independent ones.
    Theorem 2. Under f-DP let p_j be the probability that j coins are guessed. Then for every c
              Σ_{j≥c} (j/n)p_j ≤ 1 − f(Σ_{j≥c−1} ((n−j)/n)p_j).
    Proof.    Fix a coin i and all others. "i is guessed, and c or more in all" is an event of the
              release for each value of i; with the other value of i the same event says that i is
              missed and that c − 1 or more are guessed. So by f-DP its probability is at most
              1 − f of the other's; average over the coins, f being convex. (Mahloujifar, Melis and
              Chaudhuri 2024 state it for every set of numbers.) It allows for releases that are bad
              for all coins at once, so that it is far above a binomial tail.
    Method.   The least total probability that a tail of weight τ forces is found from the top
              down; τ is possible only if it is at most 1. The largest such τ, by bisection.
    Checked.  tests/accounting/test_guessing.py
    """
    if right <= 0:
        return 1.0
    if isinstance(guarantee, PureDP):
        share = float(expit(guarantee.epsilon)) * (1 + MARGIN)
        return min(1.0, float(bdtrc(right - 1, coins, share)) * (1 + MARGIN))
    least = _least_alarms(guarantee)
    if _possible(least, coins, right, 1.0):
        return 1.0
    low, high = SMALLEST, 0.0  # logarithms, since tails are compared with levels such as 1e-9
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _possible(least, coins, right, math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(high)


def chance_of(guarantee: PrivacyProfile, right: Sequence[int], coins: int) -> float:
    """A bound of the probability that independent releases of `coins` coins each are guessed as
    often as `right` says, one number a release.

    Theorem.  With one coin a release, the tail of a binomial variate of share `right_limit`.
              With several, twice the lesser of `right_tail` of all coins and e^(−R·KL(x‖limit)),
              x the mean share of the R releases.
    Proof.    Shares are independent, in [0, 1] and of mean at most the limit: Hoeffding's (1963)
              first inequality. All coins together are coins of one release, the joint one. Twice
              the lesser of two bounds is Bonferroni's.
    Checked.  tests/accounting/test_guessing.py
    """
    releases, limit, total = len(right), right_limit(guarantee), sum(right)
    if coins == 1:
        return min(1.0, float(bdtrc(total - 1, releases, limit))) if total else 1.0
    share = total / (releases * coins)
    if share <= limit:
        return 1.0
    rest = (1 - share) * math.log((1 - share) / (1 - limit)) if share < 1 else 0.0
    hoeffding = math.exp(-releases * (share * math.log(share / limit) + rest))
    return min(1.0, 2 * min(hoeffding, right_tail(guarantee, releases * coins, total)))


def _possible(least: Callable[[float], float], coins: int, right: int, tail: float) -> bool:
    """Whether a tail of this weight leaves a total probability of at most 1.

    `hits` and `misses` are Σ(j/n)p_j and Σ((n−j)/n)p_j over what is placed so far; all of the
    tail at `right` asks for least.
    """
    hits, misses = tail * right / coins, tail * (coins - right) / coins
    for number in range(right - 1, -1, -1):
        needed = least(hits)
        if needed <= misses:  # and so at every lower number, where nothing more is asked for
            break
        hits += number / (coins - number) * (needed - misses)
        misses = needed
        if hits + misses > 1 + MARGIN:
            return False
    return hits + misses <= 1 + MARGIN


def _least_alarms(guarantee: PrivacyProfile) -> Callable[[float], float]:
    """x ↦ the least rate of false alarms at a rate of hits x: f(1 − x), as f holds in both
    orders; rounded down.
    """
    if isinstance(guarantee, GDP):
        return partial(_gaussian_alarms, guarantee.mu)
    if isinstance(guarantee, ApproxDP):
        return partial(_alarms, np.exp([guarantee.epsilon]), np.array([guarantee.delta]))
    epsilons = np.linspace(0.0, min(LARGEST, guarantee.epsilon_at(1e-15)), TANGENTS)
    deltas = np.array([guarantee.delta_at(float(epsilon)) for epsilon in epsilons])
    return partial(_alarms, np.exp(epsilons), deltas)


def _gaussian_alarms(mu: float, hits: float) -> float:
    if hits >= 1:
        return 1.0
    return max(0.0, float(ndtr(ndtri(hits) - mu)) * (1 - MARGIN))


def _alarms(factors: Array, deltas: Array, hits: float) -> float:
    """By the lines of slopes e^ε and e^−ε that every (ε, δ(ε)) puts below the curve."""
    steep, flat = (hits - deltas) / factors, 1 - factors * (1 - hits) - deltas
    return max(0.0, float(steep.max()), float(flat.max())) * (1 - MARGIN)


def scaled(guarantee: PrivacyProfile, amount: float) -> PrivacyProfile:
    """The guarantee of the same kind with another ε, μ or ρ; δ stays."""
    if isinstance(guarantee, GDP):
        return GDP(amount)
    if isinstance(guarantee, (PureDP, ApproxDP)):
        return replace(guarantee, epsilon=amount)
    if isinstance(guarantee, ZCDP):
        return ZCDP(amount)
    raise NoTheorem(
        f"a lower bound of {type(guarantee).__name__}",
        "it has no one number that grows with what is told",
        "a bound is found by the least number that explains the guesses",
        "claim dp.PureDP, dp.ApproxDP, dp.GDP or dp.ZCDP",
    )


def amount_of(guarantee: PrivacyProfile) -> float:
    """The number that `scaled` changes."""
    if isinstance(guarantee, GDP):
        return guarantee.mu
    if isinstance(guarantee, (PureDP, ApproxDP)):
        return guarantee.epsilon
    if isinstance(guarantee, ZCDP):
        return guarantee.rho
    return amount_of(scaled(guarantee, 1.0))
