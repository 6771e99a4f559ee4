"""How many rows hold a value, from the transcript of a search of a quantile's interval.

*Method*: where the number n of rows is private, a search asks first at both ends of the grid. At
the end nothing lies before, the count is −above·n, at the other it is below·n; both answers,
weighed by what n moves in them, estimate n without bias, and several searches of one release are
averaged by their exactness. It is read off what was released: it costs nothing.
*Validity*: of the data set, privacy error alone, with the law of the searches' own noise.
"""

from __future__ import annotations

import numpy as np

from discreet.inference.results.decode import search_answers
from discreet.inference.results.laws import Array, Noise
from discreet.search.checked_ends import CheckedEnds
from discreet.search.policies import AllRows
from discreet.search.quantile_ends import QuantileEnds
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.search import CountSearch

Counted = tuple[Array, Noise]


def rows_searched(mechanism: Mechanism, integers: tuple[int, ...]) -> Counted | None:
    """The noisy number of rows that hold a value, and its noise; None where no search asked it."""
    if not isinstance(mechanism, (InTurn, AboutCentre)):
        return None
    stages = (
        (mechanism.centre, *mechanism.distances.stages)
        if isinstance(mechanism, AboutCentre)
        else mechanism.stages
    )
    found = [
        counted
        for stage, answer in zip(stages, mechanism.split(integers), strict=True)
        if isinstance(stage, CountSearch) and (counted := _of_one(stage, answer)) is not None
    ]
    if not found:
        return None
    weights = np.array([1 / noise.variance for _, noise in found])
    weights /= weights.sum()
    parts = [
        (count * weight, noise.scaled(weight))
        for (count, noise), weight in zip(found, weights, strict=True)
    ]
    total = parts[0][1]
    for _, noise in parts[1:]:
        total = total + noise
    return np.asarray(sum(count for count, _ in parts)), total


def _of_one(search: CountSearch, integers: tuple[int, ...]) -> Counted | None:
    """The count of one search: its first two answers, which are about both ends of the grid."""
    answers = search_answers(search, integers)
    if isinstance(search.policy, AllRows) and answers:
        deviation = answers[0].deviation
        return np.asarray(answers[0].value), _noise(search, deviation)
    policy = search.policy.ends if isinstance(search.policy, CheckedEnds) else search.policy
    if not isinstance(policy, QuantileEnds) or policy.rows is not None or len(answers) < 2:
        return None
    before, after = answers[:2]
    weight = search.above**2 + search.below**2
    count = (search.below * after.value - search.above * before.value) / weight
    noise = _noise(search, before.deviation).scaled(search.above / weight)
    return np.asarray(count), noise + _noise(search, after.deviation).scaled(search.below / weight)


def _noise(search: CountSearch, deviation: float) -> Noise:
    """The law of an answer's noise with this standard deviation."""
    variance = deviation**2
    return Noise(variance, 0.0 if search.law == "gaussian" else (variance / 2) ** 2)
