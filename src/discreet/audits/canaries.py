"""The method of canaries: thousands of fair coins in each of some releases.

Theorem.   Given a release and all other coins, the odds of a coin are at most e^ε under ε-DP, so
           right guesses of all coins together are dominated by a binomial variate, however they
           depend on each other; coins may be left out (Steinke, Nasr and Jagielski 2023).
           Under f-DP: `accounting.tradeoff.guessing.chance_of`.
Proof.     docs/theory/attacks.md.
Checked.   tests/audits/test_bounds.py
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from discreet.accounting.guarantees import PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import amount_of, chance_of, scaled
from discreet.audits.bounds import chance, least_amount, least_share
from discreet.audits.results import AuditResult
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

# (which rows are in, number of the release) to a score of each: positive where it looks in
Coins = npt.NDArray[np.bool_]
Score = Callable[[Coins, int], Array]
BISECTIONS = 20


def audited(
    score: Score,
    claim: PrivacyProfile,
    *,
    name: str,
    coins: int,
    releases: int,
    level: float,
    seed: int | str,
) -> AuditResult:
    """Guesses of every coin of every release by the sign of its score; 0 guesses nothing."""
    stream, right, guesses = Stream(f"canaries/{seed}"), [], 0
    for release in range(releases):
        inside = stream.uniforms((coins,), f"release {release}") < 0.5
        scores = score(inside, release)
        right.append(int((((scores > 0) == inside) & (scores != 0)).sum()))
        guesses += int((scores != 0).sum())
    found = (f"Right in {sum(right)} of {guesses} guesses, out of {releases} releases.",)
    if isinstance(claim, PureDP):
        share = least_share(sum(right), guesses, level) if guesses else 0.0
        lower, unlikely = least_amount(claim, share), chance(claim, sum(right), guesses)
    else:
        lower, unlikely = _least(claim, right, coins, 1 - level), chance_of(claim, right, coins)
    return AuditResult(name, claim, lower, level, unlikely, "canaries", releases * coins, found)


def _least(claim: PrivacyProfile, right: list[int], coins: int, allowed: float) -> float:
    """The least amount under which the guesses are not too unlikely."""
    low, high = 0.0, 4 * amount_of(claim)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if chance_of(scaled(claim, middle), right, coins) < allowed:
            low = middle
        else:
            high = middle
    return low
