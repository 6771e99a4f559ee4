"""Differencing: one person's secret from two counts, or from one that is narrow enough.

*Method.* The attacker knows enough of a person to ask about nobody else: first how many people like
that have the secret (a narrow filter), and where that is refused, how many of all have it, and how
many of all but this person. Each target is attacked on a release of its own.

*Limit.* The secret is a fair coin, guessed with probability at most 1 − min_α(α + f(α))/2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet import plain
from discreet.accounting.tradeoff.guessing import right_limit
from discreet.attacks.publishers import Publisher, Raw, Survey, publishers, whole
from discreet.attacks.results import AttackResult, guessed
from discreet.inference.simulation.streams import Stream

SECRET = "secret"
TARGET = "target"


@plain.called
def differencing(
    people: int = 1000,
    *,
    targets: int = 200,
    against: Sequence[Publisher] = (Raw(),),
    seed: int = 1,
) -> AttackResult:
    """The share of targets whose secret is found from a narrow count, or from the difference of
    two broad ones.
    """
    people, targets = whole(people, "people", 2), whole(targets, "targets", 1)
    outcomes = []
    for publisher in publishers(against):
        right = [
            int(_found(publisher, people, Stream(f"differencing/{seed}/{number}")))
            for number in range(targets)
        ]
        limit = None if publisher.guarantee is None else right_limit(publisher.guarantee)
        outcomes.append(guessed(publisher, publisher.guarantee, limit, right=right, coins=1))
    about = (
        f"{people} people, every second with a secret; {targets} targets, each on a release of its "
        "own.",
        "Three counts a target: of people like the target, of all, of all but the target.",
    )
    return AttackResult("Differencing", "share of secrets found", 0.5, tuple(outcomes), about)


def _found(publisher: Publisher, people: int, stream: Stream) -> bool:
    bits, target = stream.uniforms((people,), "bits") < 0.5, np.zeros(people, dtype=bool)
    target[0] = True
    survey = Survey(
        {SECRET: bits, TARGET: target},
        [{TARGET: True, SECRET: True}, {SECRET: True}, {TARGET: False, SECRET: True}],
    )
    answers = publisher.publish(survey, SECRET, stream)
    narrow, everybody, others = answers.values
    both = everybody - others
    known = [value for value in (narrow, both) if np.isfinite(value)]
    # the narrow count has one error and the difference two: weigh them so
    weights = [2.0, 1.0] if len(known) == 2 and answers.spread > 0 else [1.0] * len(known)
    guess = float(np.average(known, weights=weights)) > 0.5 if known else False
    return bool(guess == bits[0])
