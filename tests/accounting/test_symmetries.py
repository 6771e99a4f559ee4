"""Trade-off curves of neighbours in the other order, of groups, and of sampled rows."""

import itertools
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tradeoff import ALPHAS, SLOPES, at, corners, curve_of, delta, is_below, pairs, stated

import discreet as dp
from discreet.accounting.subsampling import FixedSizeSampling, PoissonSampling
from discreet.accounting.tradeoff import segments as tradeoff_segments
from discreet.accounting.tradeoff.curve import TradeOff, tradeoff_of
from discreet.errors import NoTheorem

# ── inversion, symmetrisation, groups ─────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(pairs())
def test_inverse_exchanges_the_neighbours(pair):
    exchanged = [(q, p) for p, q in pair]
    assert is_below(curve_of(pair).inverse(), exchanged)
    for alpha in ALPHAS:
        assert curve_of(pair).inverse()(alpha) == pytest.approx(
            float(at(corners(exchanged), Fraction(alpha))), abs=1e-12
        )
        assert curve_of(pair).inverse().inverse()(alpha) == pytest.approx(
            curve_of(pair)(alpha), abs=1e-12
        )


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(pairs())
def test_symmetrised_is_the_greatest_convex_minorant(pair):
    curve, exchanged = curve_of(pair).symmetrised(), [(q, p) for p, q in pair]
    assert is_below(curve, pair)
    assert is_below(curve, exchanged)
    for slope in SLOPES:  # the conjugate of the minorant of a minimum is the larger of the two
        assert float(stated(curve, slope)) == pytest.approx(
            float(max(delta(pair, slope), delta(exchanged, slope))), abs=1e-12
        )
    for alpha in ALPHAS:
        assert curve(alpha) == pytest.approx(curve.inverse()(alpha), abs=1e-12)


def test_one_order_alone_is_not_a_guarantee_for_both():
    pair = [(Fraction(1, 10), Fraction(0)), (Fraction(9, 10), Fraction(1))]
    assert not is_below(curve_of(pair), [(q, p) for p, q in pair])


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.integers(1, 20), min_size=3, max_size=3), min_size=3, max_size=3))
def test_groups(weights):
    """A chain x, x′, x″ of three data sets: the curve between its ends is above the group curve of
    the worst step.
    """
    laws = [[Fraction(w, sum(law)) for w in law] for law in weights]
    steps = [list(zip(laws[i], laws[j], strict=True)) for i, j in ((0, 1), (1, 0), (1, 2), (2, 1))]
    points = [point for step in steps for point in corners(step)]
    worst = TradeOff(*tradeoff_segments.through(tradeoff_segments.lower_hull(points)))
    assert is_below(worst.group(2), list(zip(laws[0], laws[2], strict=True)))
    assert is_below(worst.group(2), list(zip(laws[2], laws[0], strict=True)))


@pytest.mark.slow
def test_groups_of_the_named_guarantees():
    gaussian = tradeoff_of(dp.GDP(0.25)).group(4)
    assert gaussian.gap(dp.GDP(1)) < 3e-4
    assert all(gaussian(alpha) <= dp.GDP(1).tradeoff(alpha) for alpha in ALPHAS)
    pure = tradeoff_of(dp.PureDP(0.5)).group(3)
    assert tradeoff_of(dp.ApproxDP(1.5 + 1e-9, 1e-14)).covers(pure)
    assert pure.epsilon_at(0) == pytest.approx(1.5, rel=1e-9)
    assert pure.group(1) == pure


# ── subsampling ───────────────────────────────────────────────────────────────────────────────────


def mechanism(generator, size):
    """A random law over three outcomes for every ordered sample of bits."""
    laws = {}
    for sample in itertools.product((0, 1), repeat=size):
        weights = [generator.randint(1, 20) for _ in range(3)]
        laws[sample] = [Fraction(w, sum(weights)) for w in weights]
    return laws


def neighbours(size):
    return [
        (x, y)
        for x, y in itertools.product(itertools.product((0, 1), repeat=size), repeat=2)
        if sum(a != b for a, b in zip(x, y, strict=True)) == 1
    ]


def own_curve(laws, size):
    points = [
        point
        for x, y in neighbours(size)
        for point in corners(list(zip(laws[x], laws[y], strict=True)))
    ]
    return TradeOff(*tradeoff_segments.through(tradeoff_segments.lower_hull(points)))


def sampled(laws, rows, size):
    subsets = list(itertools.combinations(range(len(rows)), size))
    parts = [laws[tuple(rows[i] for i in subset)] for subset in subsets]
    return [sum((part[k] for part in parts), Fraction(0)) / len(subsets) for k in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "rows"), [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)])
def test_subsampling_is_below_every_true_curve(size, rows):
    generator = random.Random(size * 10 + rows)
    caught = 0
    for _ in range(8):
        laws = mechanism(generator, size)
        own = own_curve(laws, size)
        promised, boast = (
            own.amplified(FixedSizeSampling(size, rows), dp.Replace()),
            own.subsampled(Fraction(7 * size, 10 * rows)),
        )
        for x, y in neighbours(rows):  # both orders are among them
            true = list(zip(sampled(laws, x, size), sampled(laws, y, size), strict=True))
            assert is_below(promised, true)
            caught += not is_below(boast, true)
    assert caught > 0  # a rate 30 % too small is noticed


def test_subsampling_is_attained_by_a_mechanism_that_knows_the_row():
    """f_p itself is the curve of (1−p)Q + pP against Q;
    with its exchange, C_p(f) cannot be raised.
    """
    high, low = Fraction(3, 4), Fraction(1, 4)
    pair = [(high, low), (low, high)]
    mixed = [(Fraction(1, 2) * (p + q), q) for p, q in pair]
    curve = curve_of(pair).subsampled(Fraction(1, 2))
    for slope in SLOPES:
        worst = max(delta(mixed, slope), delta([(q, p) for p, q in mixed], slope))
        assert float(stated(curve, slope)) == pytest.approx(float(worst), abs=1e-13)


def test_subsampling_amplifies_epsilon_as_the_theorem_says():
    """reference.md E1: ln(1 + p(e^ε − 1)) is the steepest slope of C_p(f_ε), up to a δ of about
    1e-15 that exchanging the neighbours costs.
    """
    assert tradeoff_of(dp.PureDP(1)).subsampled(0.1).epsilon_at(1e-14) == pytest.approx(
        math.log1p(0.1 * math.expm1(1)), rel=1e-9
    )
    assert tradeoff_of(dp.PureDP(1)).subsampled(1).epsilon_at(1e-14) == pytest.approx(1, rel=1e-9)
    assert tradeoff_of(dp.ApproxDP(1, 1e-3)).subsampled(0.1).epsilon_at(1.0001e-4) == pytest.approx(
        math.log1p(0.1 * math.expm1(1)), rel=1e-5
    )


def test_amplification_with_a_mismatched_relation_is_refused():
    curve = tradeoff_of(dp.GDP(1))
    for sampling, neighbors in (
        (FixedSizeSampling(1, 10), dp.AddRemove()),
        (PoissonSampling(0.1), dp.Replace()),
        (PoissonSampling(0.1), dp.AddRemove()),
    ):
        with pytest.raises(NoTheorem):
            curve.amplified(sampling, neighbors)
