"""Averaging: the same question asked until the noise is gone.

*Method.* One count is asked many times, and its answers are averaged.

*Limit.* An exact release of one count with the whole budget has a normal error of 1/μ (Gaussian
noise). Asking k times divides the budget, so that the average has the same error and no smaller
one: what is shown is the error over that of one answer. A budget ends questions; it does not merely
count them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from discreet import plain
from discreet.attacks.publishers import FreshNoise, Publisher, Survey, publishers, whole
from discreet.attacks.results import AttackResult, Outcome
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

SECRET = "secret"
ENDS = (0.025, 0.975)


@plain.called
def averaging(
    people: int = 100,
    *,
    times: int = 20,
    against: Sequence[Publisher] = (FreshNoise(5),),
    releases: int = 100,
    seed: int = 1,
) -> AttackResult:
    """The error of the average of many answers, over the error of the one answer that would have
    been given for the same budget.
    """
    people, times = whole(people, "people", 1), whole(times, "times", 1)
    releases = whole(releases, "releases", 2)
    outcomes = []
    for publisher in publishers(against):
        errors = [
            _errors(publisher, people, times, Stream(f"averaging/{seed}/{number}"))
            for number in range(releases)
        ]
        single = _root_mean_square([once for once, _ in errors])
        many = _root_mean_square([average for _, average in errors])
        ratio = many / single if single > 0 else 0.0
        low, high = _interval(ratio, releases)
        limit = None if publisher.guarantee is None else 1.0
        outcomes.append(Outcome(str(publisher), ratio, low, high, limit, False))
    about = (
        f"A count of {people} people, asked {times} times; {releases} releases.",
        "1 is the error of one answer for the whole budget: the least that noise added to a count "
        "leaves.",
    )
    return AttackResult("Averaging", "error left", None, tuple(outcomes), about)


def _errors(publisher: Publisher, people: int, times: int, stream: Stream) -> tuple[float, float]:
    """The error of one answer for everything, and of the average of many."""
    bits = stream.uniforms((people,), "bits") < 0.5
    truth = float(bits.sum())
    once, many = (
        publisher.publish(
            Survey({SECRET: bits}, [{SECRET: True}] * count),
            SECRET,
            Stream(f"{stream.seed}/{count}"),
        ).values
        for count in (1, times)
    )
    return float(once[0]) - truth, float(np.mean(many)) - truth


def _root_mean_square(errors: list[float]) -> float:
    values: Array = np.asarray(errors)
    return float(np.sqrt(np.mean(values[np.isfinite(values)] ** 2))) if len(errors) else math.nan


def _interval(ratio: float, releases: int) -> tuple[float, float]:
    """Of a ratio of two root mean squares of independent normal errors: Fisher's F."""
    from scipy.stats import f

    low, high = (float(f.ppf(level, releases, releases)) for level in ENDS)
    return ratio / math.sqrt(high), ratio / math.sqrt(low)
