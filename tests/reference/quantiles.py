"""Quantile mechanisms from their definitions: every data set of a small grid is looked at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement

from mpmath import exp, inf, log, mpf, quad

from tests.reference.stored import stored

HERE = "tests/reference/test_quantile_values.py"
CELLS = 11

Values = tuple[int, ...]


def median(values: Values) -> int:
    """The lower median, the order statistic of index ⌊(n + 1)/2⌋ (reference.md B8)."""
    return sorted(values)[(len(values) + 1) // 2 - 1]


@cache
def all_data(cells: int, rows: int) -> tuple[Values, ...]:
    """All data sets of so many rows, in cells 0, 1, …, without their order."""
    return tuple(combinations_with_replacement(range(cells), rows))


def replaced(first: Values, second: Values) -> int:
    """How many rows of the first to replace until it is the second."""
    return sum(max(0, first.count(one) - second.count(one)) for one in set(first))


def neighbours(values: Values, cells: int) -> Iterator[Values]:
    """All data sets with one row replaced."""
    for place in range(len(values)):
        for cell in range(cells):
            yield (*values[:place], cell, *values[place + 1 :])


@cache
def local_sensitivities(cells: int, rows: int) -> dict[Values, int]:
    """max |median(x) − median(x′)| over the neighbours x′ of each x."""
    return {
        one: max(abs(median(one) - median(other)) for other in neighbours(one, cells))
        for one in all_data(cells, rows)
    }


def smooth_sensitivity(values: Values, beta: str) -> mpf:
    """S(x) = max over all y of LS(y)·e^(−β·distance(x, y)), the least smooth bound
    (reference.md B7, B8).
    """
    local = local_sensitivities(CELLS, len(values)).items()
    return max(width * exp(-mpf(beta) * replaced(values, other)) for other, width in local)


def smooth_sensitivity_of_sorted(values: list[str], lowest: int, highest: int, beta: mpf) -> mpf:
    """The same on a line: max over k of e^(−kβ)·max over t of x_(m+t) − x_(m+t−k−1), values beyond
    the first and the last at the ends of the range (reference.md B8).
    """
    x, n = sorted(map(mpf, values)), len(values)
    m = (n + 1) // 2

    def order(index: int) -> mpf:
        if index < 1:
            return mpf(lowest)
        return mpf(highest) if index > n else x[index - 1]

    return max(
        exp(-k * beta) * (order(m + t) - order(m + t - k - 1))
        for k in range(n + 1)
        for t in range(k + 2)
    )


X21 = [
    "0.3",
    "0.9",
    "1.1",
    "1.6",
    "2.0",
    "2.2",
    "2.7",
    "3.1",
    "3.3",
    "3.8",
    "4.0",
    "4.1",
    "4.7",
    "5.2",
    "5.9",
    "6.0",
    "6.6",
    "7.5",
    "8.1",
    "8.8",
    "9.7",
]


def smooth_beta(law: str, delta: str) -> mpf:
    """β at ε = 1: ε/(4(p + ln(2/δ))) as printed for normal noise, p = 1, and ε/(2 ln(2/δ)) for
    Laplace noise (reference.md B7).
    """
    tail = log(2 / mpf(delta))
    return 1 / (4 * (1 + tail)) if law == "normal" else 1 / (2 * tail)


def smooth_sensitivity_of_21(law: str, delta: str) -> mpf:
    """S of 21 values in [0, 10]."""
    return smooth_sensitivity_of_sorted(X21, 0, 10, smooth_beta(law, delta))


def inverse_probability(values: Values, cell: int) -> mpf:
    """exp(−(ε/2)·len(x, t)) at ε = 1, len the fewest rows to replace until the median is t, found
    among all data sets (reference.md B10).
    """

    def weight(target: int) -> mpf:
        others = (one for one in all_data(CELLS, len(values)) if median(one) == target)
        return exp(-mpf(min(replaced(values, one) for one in others)) / 2)

    return weight(cell) / sum(weight(target) for target in range(CELLS))


def interval_probability(points: tuple[str, ...], gap: int) -> mpf:
    """An interval between points of [0, 1] weighs its length times exp(−loss/4), the loss
    |2·#{x ≤ t} − n| (reference.md B6).
    """
    ends = [mpf(0), *map(mpf, points), mpf(1)]
    weights = [
        (ends[k + 1] - ends[k]) * exp(-mpf(abs(2 * k - len(points))) / 4)
        for k in range(len(points) + 1)
    ]
    return weights[gap] / sum(weights)


def refused(distance: int, delta: str) -> mpf:
    """P(distance + Lap(1) ≤ 1 + ln(2/δ)), by integration (reference.md B1, B9)."""
    short = 1 + log(2 / mpf(delta)) - distance
    return quad(lambda z: exp(-abs(z)) / 2, [-inf, 0, short])


FIVE = (2, 3, 5, 6, 9)
POINTS = ("0.1", "0.2", "0.4", "0.8", "0.9")

VALUES = [
    stored(0.04628101175185853, HERE, interval_probability, POINTS, 0),
    stored(0.07630448850481177, HERE, interval_probability, POINTS, 1),
    stored(0.25160966649555316, HERE, interval_probability, POINTS, 2),
    stored(0.5032193329911063, HERE, interval_probability, POINTS, 3),
    stored(0.07630448850481177, HERE, interval_probability, POINTS, 4),
    stored(0.04628101175185853, HERE, interval_probability, POINTS, 5),
    stored(0.04498138293730509, HERE, inverse_probability, FIVE, 0),
    stored(0.07416176283424271, HERE, inverse_probability, FIVE, 2),
    stored(0.12227207585743417, HERE, inverse_probability, FIVE, 3),
    stored(0.20159257227881133, HERE, inverse_probability, FIVE, 5),
    stored(0.12227207585743417, HERE, inverse_probability, FIVE, 6),
    stored(0.07416176283424271, HERE, inverse_probability, FIVE, 9),
    stored(0.04498138293730509, HERE, inverse_probability, FIVE, 10),
    stored(6.065306597126334, HERE, smooth_sensitivity, FIVE, "0.1"),
    stored(2.0, HERE, smooth_sensitivity, FIVE, "1"),
    stored(7.4081822068171785, HERE, smooth_sensitivity, (0, 0, 5, 10, 10), "0.3"),
    stored(0.018930684898558155, HERE, smooth_beta, "normal", "1e-5"),
    stored(0.04096321679546111, HERE, smooth_beta, "Laplace", "1e-5"),
    stored(6.719681181123016, HERE, smooth_sensitivity_of_21, "normal", "1e-5"),
    stored(4.316343233906663, HERE, smooth_sensitivity_of_21, "Laplace", "1e-5"),
    stored(0.986350462491714, HERE, refused, 5, "1e-3"),
]
