"""The method of runs: a fair coin picks one of two neighbours, a rule guesses which.

Theorem.   Under f-DP a guess is right with probability at most 1 − min_α(α + f(α))/2; under ε-DP
           each guess that is made is right with probability at most e^ε/(1+e^ε), where the rule may
           say nothing; under (ε, δ)-DP too, but for a share δ of the runs. Runs are independent, so
           right guesses are dominated by a binomial variate.
Proof.     docs/theory/audits.md.
Checked.   tests/audits/test_bounds.py::test_bounds_exceed_true_claims_no_more_often_than_stated
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.accounting.guarantees import ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.audits.bounds import FAILED_SHARE, allowed_failures, of_guesses
from discreet.audits.results import AuditResult
from discreet.audits.rules import chosen, seen_by
from discreet.inference.simulation.streams import Stream

Run = Callable[[int, int], Any]  # (which of the two, number of the run) to an output
PILOT = 10  # one in so many runs chooses the rule


def audited(
    run: Run, claim: PrivacyProfile, *, name: str, runs: int, level: float, seed: int | str
) -> AuditResult:
    """Guesses of `runs` fresh runs, after a pilot of a tenth as many on each side."""
    pilot = max(100, runs // PILOT // 2)
    abstaining = isinstance(claim, (PureDP, ApproxDP))
    lost = 0.0  # right guesses of the pilot that say nothing, as δ explains as many
    if isinstance(claim, ApproxDP):
        lost = allowed_failures(runs, claim.delta, FAILED_SHARE * (1 - level)) * 2 * pilot / runs
    sides = [[seen_by(run, side, -1 - number) for number in range(pilot)] for side in (0, 1)]
    rule = chosen(*sides, abstaining=abstaining, lost=lost)
    coins = Stream(f"audit/{seed}").uniforms((runs,), "coins") < 0.5
    right = guesses = 0
    for number, coin in enumerate(coins.tolist()):
        guess = rule.guess(seen_by(run, int(coin), number))
        guesses += guess is not None
        right += guess == int(coin)
    lower, unlikely = of_guesses(claim, right, guesses, runs, level)
    return AuditResult(
        name,
        claim,
        lower,
        level,
        unlikely,
        "runs",
        runs,
        (f"Guessed by {rule.feature!r}: right in {right} of {guesses} guesses.",),
    )
