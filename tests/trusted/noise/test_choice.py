"""Exact choices, coins and uniform integers:
the law is read from the code, word by word, and compared with mpmath.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.testing import SeededSource
from discreet.trusted.extensions.choices import _decided, choose
from discreet.trusted.noise.choice import bernoulli_exp, uniform_below, weights_of
from discreet.trusted.noise.source import take_bits

TOP = 1 << 64


class Script:
    """A source that gives the words it is told, and no others."""

    secure = False

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def uint64(self, count: int) -> np.ndarray:
        assert len(self.words) >= count, "more bits were drawn than expected"
        taken, self.words = self.words[:count], self.words[count:]
        return np.array(taken, dtype=np.uint64)

    def bits(self, count: int) -> int:
        return take_bits(self, count)


def integers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def edges(gaps, sizes, rate):
    """The cumulated shares, to 2**-200."""
    with mpmath.workprec(512):
        best = min(int(gap) for gap in gaps)
        weights = [
            int(size)
            * mpmath.exp(-mpmath.mpf(rate.numerator) * (int(gap) - best) / rate.denominator)
            for gap, size in zip(gaps, sizes, strict=True)
        ]
        return [
            Fraction(
                int(
                    mpmath.floor(mpmath.fsum(weights[: place + 1]) / mpmath.fsum(weights) * 2**200)
                ),
                2**200,
            )
            for place in range(len(weights))
        ]


CASES = [
    (integers(0, 1, 2, 3), integers(1, 1, 1, 1), Fraction(1, 2)),
    (integers(7, 5, 9, 5, 6), integers(3, 1, 2**32, 5, 1), Fraction(7, 3)),
    (integers(0, 10**6, 10**18, 1), integers(2**32, 2**32, 2**32, 1), Fraction(1, 10**17)),
    (integers(4, 4, 4), integers(1, 2, 3), Fraction(0)),
    (integers(10, 0, 20, 0), integers(1, 1, 1, 1), Fraction(29, 1)),
    (integers(0, 2**62, 3), integers(1, 2**32, 1), Fraction(10**6)),
]


def test_weights_stay_within_their_proven_error():
    rng = np.random.default_rng(5)
    for rate in (
        Fraction(1, 3),
        Fraction(10**9, 7),
        Fraction(1, 10**15),
        Fraction(599),
        Fraction(1, 10**320),
    ):
        largest = int(min(Fraction(2**62), 640 / rate))
        gaps = np.unique(np.concatenate([integers(0, 1), rng.integers(0, largest + 1, 60)]))
        sizes = rng.integers(1, 2**40, len(gaps))
        found = weights_of(gaps, sizes, rate)
        with mpmath.workprec(200):
            for gap, size, weight in zip(
                gaps.tolist(), sizes.tolist(), found.tolist(), strict=True
            ):
                exponent = Fraction(gap) * rate
                truth = size * mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
                if exponent <= 600 or weight:
                    assert abs(weight / truth - 1) < mpmath.mpf(2) ** -41, (gap, rate)
                else:
                    assert weight == 0
                    assert truth < mpmath.mpf(2) ** -800


@pytest.mark.parametrize(("gaps", "sizes", "rate"), CASES)
def test_words_at_the_edge_of_a_cell_choose_the_right_side(gaps, sizes, rate):
    """Between two edges every word chooses the same group,
    so the words next to the edges fix the whole law to 2**-64.
    """
    shares = edges(gaps, sizes, rate)
    for place, share in enumerate(shares[:-1]):
        edge = math.floor(share * TOP)
        before, after = share * TOP - edge, edge + 1 - share * TOP
        for word in range(edge - 3, edge + 4):
            if not 0 <= word < TOP or word == edge:
                continue
            wanted = next(j for j, other in enumerate(shares) if word < other * TOP)
            assert choose(gaps, sizes, rate, Script(word, *[123456789] * 40))[0] == wanted
            assert (
                choose(gaps, sizes, rate, Script(word, *[987654321] * 40), force_exact=True)[0]
                == wanted
            )
        if before > 1e-6 and after > 1e-6:  # the word of the edge itself: 64 further bits decide
            inside = int(before * TOP)
            low, high = (
                choose(gaps, sizes, rate, Script(edge, word, *[5] * 40))[0]
                for word in (max(inside - 10**9, 0), min(inside + 10**9, TOP - 1))
            )
            assert low <= place < high


@pytest.mark.few(2)
@pytest.mark.parametrize(("gaps", "sizes", "rate"), CASES)
def test_the_exact_path_agrees_with_the_fast_one(gaps, sizes, rate):
    words = [*SeededSource("choice words").uint64(300).tolist(), 0, 1, TOP - 2, TOP - 1]
    for word in words:
        more = [31 * word % TOP, 17 * word % TOP, *[0] * 9]
        assert choose(gaps, sizes, rate, Script(word, *more)) == choose(
            gaps, sizes, rate, Script(word, *more), force_exact=True
        )


def test_few_words_are_left_to_the_exact_path():
    rng = np.random.default_rng(8)
    gaps, sizes = rng.integers(0, 10**5, 5000), rng.integers(1, 2**32, 5000)
    words = SeededSource("undecided").uint64(300).tolist()
    assert all(
        _decided(gaps - gaps.min(), sizes, Fraction(1, 10**4), word) is not None for word in words
    )


def test_the_share_of_words_is_the_law():
    gaps, sizes, rate = integers(3, 1, 0, 5), integers(1, 4, 1, 9), Fraction(2, 3)
    chosen = [
        choose(gaps, sizes, rate, Script(place << 54, *[9] * 8))[0] for place in range(1 << 10)
    ]
    shares = np.diff([0.0, *(float(edge) for edge in edges(gaps, sizes, rate))])
    assert np.all(np.abs(np.bincount(chosen, minlength=4) / 1024 - shares) <= 1 / 1024)


def test_places_within_a_group_are_uniform_and_gaps_may_have_any_offset():
    places = [
        choose(integers(2**60), integers(5), Fraction(1), Script(word << 61))[1]
        for word in range(5)
    ]
    assert places == [0, 1, 2, 3, 4]
    for word in (3, TOP // 3, TOP - 5):
        far, near = (
            choose(
                integers(*(base + gap for gap in (4, 0, 2))),
                integers(1, 1, 1),
                Fraction(1, 2),
                Script(word, *[1] * 9),
            )
            for base in (2**62, 0)
        )
        assert far == near


def test_gaps_beyond_64_bits_take_the_exact_path():
    gaps = np.array([0, 2**70, 2**70 + 1], dtype=object)
    shares = edges([0, 1 << 70, (1 << 70) + 1], [1, 1, 1], Fraction(1, 2**70))
    for word in range(0, TOP, TOP // 50):
        wanted = next(j for j, share in enumerate(shares) if word < share * TOP)
        assert (
            choose(gaps, integers(1, 1, 1), Fraction(1, 2**70), Script(word, *[4] * 20))[0]
            == wanted
        )
    assert bernoulli_exp(gaps, Fraction(1, 2**70), Script(1 << 62, 1 << 62, 1 << 63)).tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    "rate", [Fraction(1, 2), Fraction(7, 3), Fraction(1, 10**9), Fraction(10**12)]
)
def test_coins_follow_their_law(rate):
    gaps = integers(0, 1, 2, 40, 10**9, 2**62)
    for gap in gaps.tolist():
        with mpmath.workprec(400):
            level = mpmath.exp(-mpmath.mpf(rate.numerator) * gap / rate.denominator) * TOP
            edge, level = (
                int(mpmath.floor(level)),
                Fraction(int(mpmath.floor(level * 2**100)), 2**100),
            )
        for word in {
            0,
            1,
            TOP // 2,
            TOP - 1,
            *(max(0, min(TOP - 1, edge + step)) for step in (-2, -1, 1, 2)),
        }:
            if word == edge and gap:
                continue  # further bits decide
            for exact in (False, True):
                assert bernoulli_exp(
                    integers(gap), rate, Script(word, *[TOP - 1] * 9), force_exact=exact
                ).tolist() == [word < level], (gap, word)


def test_the_coin_of_an_edge_word_is_decided_by_further_bits():
    with mpmath.workprec(400):
        level = mpmath.exp(-1) * TOP
        edge = int(mpmath.floor(level))
        rest = int(mpmath.floor((level - edge) * TOP))
    assert bernoulli_exp(integers(1), Fraction(1), Script(edge, rest - 1)).tolist() == [True]
    assert bernoulli_exp(integers(1), Fraction(1), Script(edge, rest + 1)).tolist() == [False]


def test_uniform_integers_reject_what_is_above_the_bound():
    assert uniform_below(1, Script()) == 0
    for bound in (2, 3, 5, 8):
        length = (bound - 1).bit_length()
        first = [
            uniform_below(bound, Script(word << (64 - length), 0)) for word in range(1 << length)
        ]
        assert first[:bound] == list(range(bound))
        assert first[bound:] == [0] * ((1 << length) - bound)  # rejected: the next word decides
    assert 0 <= uniform_below(10**30, SeededSource(1)) < 10**30


@pytest.mark.slow
def test_draws_are_independent_of_each_other_in_law():
    """Chi-square of pairs against the product law, and it rejects a rate that is 30 % off."""
    gaps, sizes, rate, draws = integers(0, 1, 3), integers(1, 2, 4), Fraction(1, 2), 6000
    source = SeededSource("pairs")
    seen = np.zeros((3, 3))
    for _ in range(draws):
        seen[choose(gaps, sizes, rate, source)[0], choose(gaps, sizes, rate, source)[0]] += 1
    shares = {
        factor: np.diff([0.0, *(float(edge) for edge in edges(gaps, sizes, rate * factor))])
        for factor in (Fraction(1), Fraction(13, 10))
    }
    statistic = {
        factor: sum(
            (seen[i, j] - draws * p[i] * p[j]) ** 2 / (draws * p[i] * p[j])
            for i, j in itertools.product(range(3), repeat=2)
        )
        for factor, p in shares.items()
    }
    limit = 59.0  # of a chi-square law with 8 degrees of freedom, at 1e-9
    assert statistic[Fraction(1)] < limit < statistic[Fraction(13, 10)]
