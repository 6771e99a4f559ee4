"""The summed privacy loss of independent randomised responses:
the worst case of composed pure guarantees.

Randomised response with odds e^ε has loss +ε with probability e^ε/(1+e^ε) if the person is in,
1/(1+e^ε) if not, else −ε. The sum of k_j of them with ε_j has finitely many values s; its
probabilities are N(s) e^{(s+E)/2}/Π(1+e^{ε_j})^{k_j}, and e^{−s} times that, where E = Σk_jε_j and
N(s) counts the ways to make s.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from discreet import plain
from discreet.errors import InvalidParameter

MOST_VALUES = 1 << 12


class Losses(Protocol):
    """The non-negative values of a summed loss, in increasing order,
    and the probabilities of reaching them.
    """

    @property
    def count(self) -> int: ...

    def value(self, index: int) -> Fraction: ...

    def first_above(self, epsilon: Fraction) -> int | None:
        """The index of the least value above ε; None where there is none."""

    def tails(self, ball: Any, index: int) -> tuple[Any, Any]:
        """(P(loss ≥ value), P′(loss ≥ value)): with the person in, and without."""

    def near(self, alpha: float) -> list[Fraction]:
        """Values of the loss, of either sign, around the threshold of the level-α test."""


@dataclass(frozen=True)
class EqualLosses:
    """k responses with the same ε: a binomial law, its tails by the incomplete beta function."""

    epsilon: Fraction
    times: int

    @property
    def _least(self) -> int:
        return (self.times + 1) // 2

    @property
    def count(self) -> int:
        return self.times - self._least + 1

    def value(self, index: int) -> Fraction:
        return (2 * (index + self._least) - self.times) * self.epsilon

    def first_above(self, epsilon: Fraction) -> int | None:
        successes = math.floor((epsilon / self.epsilon + self.times) / 2) + 1
        return None if successes > self.times else max(0, successes - self._least)

    def tails(self, ball: Any, index: int) -> tuple[Any, Any]:
        successes = index + self._least
        if successes == 0:
            return ball(1), ball(1)
        failures = self.times - successes
        rare = 1 / (1 + ball(self.epsilon).exp())
        without = rare.beta_lower(ball(successes), ball(failures + 1), True)
        if self.epsilon > 8:  # then 1 − rare would round to 1
            return 1 - rare.beta_lower(ball(failures + 1), ball(successes), True), without
        return (1 - rare).beta_lower(ball(successes), ball(failures + 1), True), without

    def near(self, alpha: float) -> list[Fraction]:
        from scipy.special import betainc

        chance, low, high = 1 / (1 + math.exp(min(700.0, float(self.epsilon)))), 0, self.times
        # P′(at least `middle` successes), in floats: it only proposes where to look
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle)
                if betainc(middle, self.times - middle + 1, chance) < alpha
                else (middle, high)
            )
        return [
            (2 * i - self.times) * self.epsilon
            for i in range(max(0, low - 2), min(self.times, low + 2) + 1)
        ]


@dataclass(frozen=True)
class MixedLosses:
    """Responses with different ε: all values of the sum, with the number of ways to make each."""

    groups: tuple[tuple[Fraction, int], ...]
    values: tuple[Fraction, ...]  # increasing, of either sign
    ways: tuple[int, ...]

    @property
    def _least(self) -> int:
        return bisect.bisect_left(self.values, 0)

    @property
    def count(self) -> int:
        return len(self.values) - self._least

    def value(self, index: int) -> Fraction:
        return self.values[index + self._least]

    def first_above(self, epsilon: Fraction) -> int | None:
        place = bisect.bisect_right(self.values, epsilon)
        return None if place == len(self.values) else max(0, place - self._least)

    def tails(self, ball: Any, index: int) -> tuple[Any, Any]:
        total = sum((times * epsilon for epsilon, times in self.groups), Fraction(0))
        scale = ball(1)
        for epsilon, times in self.groups:
            scale *= (1 + (-ball(epsilon)).exp()) ** times  # e^{−E} is taken out of each term below
        high = low = ball(0)
        for s, ways in zip(
            self.values[index + self._least :], self.ways[index + self._least :], strict=True
        ):
            high += ways * ball((s - total) / 2).exp()
            low += ways * ball((-s - total) / 2).exp()
        return high / scale, low / scale

    def near(self, alpha: float) -> list[Fraction]:
        total = float(sum((times * epsilon for epsilon, times in self.groups), Fraction(0)))
        log_scale = sum(
            times * math.log1p(math.exp(-float(epsilon))) for epsilon, times in self.groups
        )
        reached = 0.0
        for place in range(len(self.values) - 1, -1, -1):
            reached += math.exp(
                math.log(self.ways[place]) - (float(self.values[place]) + total) / 2 - log_scale
            )
            if reached >= alpha:
                break
        return list(self.values[max(0, place - 2) : place + 3])


@plain.remembered(64, copied=False)
def losses_of(groups: tuple[tuple[Fraction, int], ...]) -> Losses:
    """The law of the summed loss; refuses different ε whose sum takes more than `MOST_VALUES`
    values.
    """
    if len(groups) == 1:
        return EqualLosses(*groups[0])
    sums: dict[Fraction, int] = {Fraction(0): 1}
    for epsilon, times in groups:
        if times >= MOST_VALUES:
            raise _too_many()
        longer: dict[Fraction, int] = {}
        for i in range(times + 1):
            for s, ways in sums.items():
                key = s + (2 * i - times) * epsilon
                longer[key] = longer.get(key, 0) + ways * math.comb(times, i)
            if len(longer) > MOST_VALUES:
                raise _too_many()
        sums = longer
    values = sorted(sums)
    return MixedLosses(groups, tuple(values), tuple(sums[s] for s in values))


def _too_many() -> InvalidParameter:
    return InvalidParameter(
        "optimal",
        f"the summed loss takes more than {MOST_VALUES} values",
        "exact composition of many different ε is #P-hard",
        "round the ε up to a common grid, or use a PLD, zCDP or GDP accountant",
    )
