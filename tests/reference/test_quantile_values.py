"""Quantile mechanisms against values computed independently (mpmath, brute force),
with their tolerances; ids in each test.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet.accounting.gaussian import gdp_delta
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.statistics import histogram_of_cells
from discreet.trusted.extensions.data_dependent.order_statistics import (
    ends,
    rank_losses,
    smooth_sensitivity,
    stability_distance,
)
from tests.claims.quantile_laws import (
    choice_law,
    data_sets,
    histogram,
    naive_gamma,
    pairs,
    slide_distance,
)

F = Fraction
REPLACED = Rows(1, "replaced")
X21 = [
    0.3,
    0.9,
    1.1,
    1.6,
    2.0,
    2.2,
    2.7,
    3.1,
    3.3,
    3.8,
    4.0,
    4.1,
    4.7,
    5.2,
    5.9,
    6.0,
    6.6,
    7.5,
    8.1,
    8.8,
    9.7,
]


def smooth(cells: int, values: tuple[int, ...], beta: float) -> float:
    found = smooth_sensitivity(ends(histogram(cells, values), 1, 2), F(beta))
    return found.width * math.exp(-beta * found.steps)


def gamma(values: list[float], eta: float) -> int:
    """γ on an unbounded domain: half units, far from the ends of a grid."""
    cells = [int(2 * value) + 1000 for value in values]
    return stability_distance(ends(histogram(2001, tuple(cells)), 1, 2), int(2 * eta))


def slide(values: list[float], eta: float) -> int:
    """The lectures' distance on an unbounded domain."""
    return slide_distance(2001, tuple(int(10 * value) + 1000 for value in values), 10 * eta)


def test_exponential_median_on_intervals() -> None:
    """em_median_intervals: a grid so fine that the five occupied cells weigh nothing."""
    cells = 10**12
    data = histogram_of_cells(
        cells, np.array([int(value * cells) for value in (0.1, 0.2, 0.4, 0.8, 0.9)])
    )
    runs = rank_losses(QuantileChoice(REPLACED, 1, 2, F(1, 4), "exponential"), data)
    weights = runs.sizes * np.exp(-runs.losses / 4)
    shares = weights / weights.sum()
    gaps = [
        0.04628101175185853,
        0.07630448850481177,
        0.25160966649555316,
        0.5032193329911063,
        0.07630448850481177,
        0.04628101175185853,
    ]
    assert shares[runs.sizes > 1] == pytest.approx(gaps, abs=1e-10)
    assert (shares * (runs.starts + runs.sizes / 2)).sum() / cells == pytest.approx(0.5, abs=1e-10)


def test_inverse_sensitivity_median() -> None:
    """inverse_sensitivity_median."""
    choice, data = (
        QuantileChoice(REPLACED, 1, 2, F(1, 2), "inverse"),
        histogram(11, (2, 3, 5, 6, 9)),
    )
    runs = rank_losses(choice, data)
    assert np.repeat(runs.losses, runs.sizes).tolist() == [3, 3, 2, 1, 1, 0, 1, 2, 2, 2, 3]
    wanted = [
        0.04498138293730509,
        0.04498138293730509,
        0.07416176283424271,
        0.12227207585743417,
        0.12227207585743417,
        0.20159257227881133,
        0.12227207585743417,
        0.07416176283424271,
        0.07416176283424271,
        0.07416176283424271,
        0.04498138293730509,
    ]
    assert choice_law(choice, data) == pytest.approx(wanted, abs=1e-10)


def test_smooth_sensitivities() -> None:
    """smooth_sens_median_*."""
    assert smooth(11, (2, 3, 5, 6, 9), 0.1) == pytest.approx(6.065306597126334, abs=1e-10)
    assert smooth(11, (2, 3, 5, 6, 9), 1.0) == pytest.approx(2.0, abs=1e-10)
    assert smooth(11, (0, 0, 5, 10, 10), 0.3) == pytest.approx(7.4081822068171785, abs=1e-10)
    values, tail = tuple(round(10 * value) for value in X21), math.log(2 / 1e-5)
    assert (1 / (4 * (1 + tail)), 1 / (2 * tail)) == pytest.approx(
        (0.018930684898558155, 0.04096321679546111), abs=1e-10
    )
    assert smooth(101, values, 1 / (4 * (1 + tail))) / 10 == pytest.approx(
        6.719681181123016, abs=1e-10
    )
    assert smooth(101, values, 1 / (2 * tail)) / 10 == pytest.approx(4.316343233906663, abs=1e-10)


def test_corrected_distances() -> None:
    """ptr_gamma_*, ptr_counterexample, ptr_lipschitz_n5."""
    assert gamma([2, 3, 5, 6, 9], 1.5) == 0
    assert gamma([4, 5, 5, 5, 6], 0.5) == 1
    x, y = [0] * 6 + [2] * 5, [0] * 5 + [1] + [2] * 5
    assert (slide(x, 1), slide(y, 1)) == (1, 6)
    assert (gamma(x, 1), gamma(y, 1)) == (0, 1)
    changes = [
        (
            abs(slide_distance(7, a, 1) - slide_distance(7, b, 1)),
            abs(naive_gamma(7, a, 1, 2, 1) - naive_gamma(7, b, 1, 2, 1)),
        )
        for a, b in pairs(7, (5,), "replaced")
    ]
    assert (max(one for one, _ in changes), max(two for _, two in changes)) == (2, 1)


def test_corrected_distance_of_nine_values_moves_by_one() -> None:
    """ptr_lipschitz_n9."""
    assert len(data_sets(5, 9)) == 715
    found = {
        values: stability_distance(ends(histogram(5, values), 1, 2), 1)
        for values in data_sets(5, 9)
    }
    changes = [
        (abs(slide_distance(5, a, 1) - slide_distance(5, b, 1)), abs(found[a] - found[b]))
        for a, b in pairs(5, (9,), "replaced")
    ]
    assert (max(one for one, _ in changes), max(two for _, two in changes)) == (4, 1)


def test_the_lectures_distances_and_what_they_give_away() -> None:
    """ptr_A_*, ptr_pbot_A5_e1_d1e-3, ptr_violation_n201:
    the positive controls are what they are said to be.
    """
    assert [
        slide([2, 3, 5, 6, 9], 0.5),
        slide([2, 3, 5, 6, 9], 2.5),
        slide([4, 5, 5, 5, 6], 1.5),
        slide(X21, 0.5),
        slide(X21, 2.0),
    ] == [1, 2, 3, 2, 6]
    assert 1 - released(5, 1e-3) == pytest.approx(0.986350462491714, abs=1e-12)
    x, y = [0] * 101 + [2] * 100, [0] * 100 + [1] + [2] * 100
    assert (slide(x, 1), slide(y, 1)) == (1, 101)
    assert (released(1, 1e-6), released(101, 1e-6)) == pytest.approx((2.5e-7, 1.0), rel=1e-10)
    assert (gamma(x, 1), gamma(y, 1)) == (0, 1)


def released(distance: int, delta: float) -> float:
    """P(distance + Lap(1) > 1 + ln(2/δ)), the lectures' test at ε = 1."""
    short = 1 + math.log(2 / delta) - distance
    return 0.5 * math.exp(-short) if short > 0 else 1 - 0.5 * math.exp(short)


def test_the_lectures_smooth_gaussian() -> None:
    """slide_smooth_gauss_bug: with a constant S the noise 2S/ε is ε/2-GDP."""
    assert gdp_delta(F(1, 2), F(1)) == pytest.approx(0.0068295949831145755, abs=1e-12)
