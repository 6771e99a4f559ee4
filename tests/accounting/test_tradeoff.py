"""Trade-off curves: reference values, exact enumeration of small mechanisms,
and the rounding direction of every operation.
"""

import itertools
import math
import random
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.accounting.composition import optimal
from discreet.accounting.renyi.rdp import ZCDP, rdp_of
from discreet.accounting.tradeoff import segments as tradeoff_segments
from discreet.accounting.tradeoff.curve import TradeOff, tradeoff_of
from discreet.errors import InvalidParameter, NoTheorem

ALPHAS = [0.0, 1e-9, 1e-4, 0.01, 0.05, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]
SLOPES = [
    Fraction(1, 10**6),
    Fraction(1, 50),
    Fraction(1, 3),
    Fraction(1),
    Fraction(5, 4),
    Fraction(3),
    Fraction(40),
    Fraction(10**6),
]


# ── a naive oracle: a pair is a list of (P, Q) masses, exactly ────────────────────────────────────


def corners(pair):
    """The exact Neyman–Pearson corners (α, β) of T(Q, P), P the alternative."""
    order = sorted((p / q if q else Fraction(10**30), p, q) for p, q in pair if p or q)[::-1]
    points = [(Fraction(0), Fraction(1))]
    for _, p, q in order:
        points.append((points[-1][0] + q, points[-1][1] - p))
    return points[1 if order[0][2] == 0 else 0 :]


def at(points, alpha):
    best = None
    for (a, b), (c, d) in itertools.pairwise(points):
        if a <= alpha <= c:
            value = b if a == c else b + (d - b) * (alpha - a) / (c - a)
            best = value if best is None else min(best, value)
    return best if best is not None else points[-1][1]


def delta(pair, slope):
    return sum((max(Fraction(0), p - slope * q) for p, q in pair), Fraction(0))


def product(first, second):
    return [(p * r, q * s) for p, q in first for r, s in second]


def stated(curve, slope):
    """1 + f*(−slope) of the curve that is stored."""
    return curve._delta(slope)


def is_below(curve, pair):
    """Whether a curve is a true lower bound of a pair's: the δ of every slope of the pair and of
    the curve is at least the pair's.
    """
    return all(curve._height(alpha) <= beta for alpha, beta in corners(pair)) and all(
        stated(curve, slope) >= delta(pair, slope) for slope in SLOPES
    )


def curve_of(pair):
    return TradeOff(
        *tradeoff_segments.through(
            tradeoff_segments.lower_hull([*corners(pair), (Fraction(1), Fraction(0))])
        )
    )


def too_high(curve):
    """The curve raised by 1 %, where there is room below 1 − α."""
    return TradeOff.through(
        [
            (Fraction(a), min(1 - Fraction(a), Fraction(101, 100) * Fraction(b)))
            for a, b in curve.vertices
        ]
    )


@st.composite
def pairs(draw, most=4):
    size = draw(st.integers(2, most))
    first = draw(st.lists(st.integers(0, 30), min_size=size, max_size=size).filter(any))
    second = draw(st.lists(st.integers(0, 30), min_size=size, max_size=size).filter(any))
    return [
        (Fraction(p, sum(first)), Fraction(q, sum(second)))
        for p, q in zip(first, second, strict=True)
    ]


# ── reference values ──────────────────────────────────────────────────────────────────────────────


def test_ten_randomised_responses():
    """rr10_tradeoff of the reference values."""
    curve = tradeoff_of(dp.PureDP(1 / math.sqrt(10))).repeat(10)
    truth = [0.7504091024765683, 0.6187528018456876, 0.16309165466483275]
    assert [curve.tradeoff(alpha) for alpha in (0.05, 0.1, 0.5)] == pytest.approx(truth, abs=1e-10)
    assert all(curve(alpha) <= value for alpha, value in zip((0.05, 0.1, 0.5), truth, strict=True))
    assert curve.delta_at(0.5) == pytest.approx(
        optimal(dp.PureDP(1 / math.sqrt(10)), times=10).delta_at(0.5), rel=1e-9
    )


def test_wasserman_zhou_curve():
    """wz_tradeoff_e1_d.01_a.05."""
    assert tradeoff_of(dp.ApproxDP(1, 0.01)).tradeoff(0.05) == pytest.approx(
        0.8540859085770477, abs=1e-12
    )


@pytest.mark.parametrize(
    ("mu", "truth"),
    [
        (0.5, [0.9661010608771572, 0.8738651018065697, 0.7827609195726948, 0.3085375387259869]),
        (2, [0.6279194145645057, 0.36123996868766495, 0.23624041589411687, 0.02275013194817921]),
    ],
)
def test_gaussian_reference_values(mu, truth):
    curve = tradeoff_of(dp.GDP(mu))
    for alpha, value in zip((0.01, 0.05, 0.1, 0.5), truth, strict=True):
        assert value - 1e-4 <= curve(alpha) <= value + 1e-15


@pytest.mark.slow
@pytest.mark.parametrize(("times", "distance"), [(10, 1.23e-2), (100, 1.25e-3)])
def test_central_limit_distance(times, distance):
    """max |f^⊗K − G_1| of reference.md C5: an approximation's error,
    which no certified curve may hide.
    """
    curve = tradeoff_of(dp.PureDP(1 / math.sqrt(times))).repeat(times)
    grid = {float(alpha) for alpha, _ in curve.exact_vertices} | {i / 500 for i in range(501)}
    assert max(abs(curve(alpha) - dp.GDP(1).tradeoff(alpha)) for alpha in grid) == pytest.approx(
        distance, rel=2e-2
    )


def test_central_limit_mu_is_close_and_no_bound():
    """clt_mu_rr10: G_1.00417… approximates ten (1/√10)-DP releases;
    the curve dips below it, so it cannot be a guarantee.
    """
    curve, limit = tradeoff_of(dp.PureDP(1 / math.sqrt(10))).repeat(10), dp.GDP(1.0041718781012752)
    assert any(
        curve(float(alpha)) < limit.tradeoff(float(alpha)) - 1e-3
        for alpha, _ in curve.exact_vertices[1:-1]
    )
    assert curve.gap(limit) < 0.0125


# ── tensor products ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(pairs(), pairs())
def test_tensor_products_are_the_enumeration(first, second):
    together, curve = product(first, second), curve_of(first).tensor(curve_of(second))
    assert is_below(curve, together)
    points = corners(together)
    for alpha in ALPHAS:
        assert curve(alpha) >= at(points, Fraction(alpha)) - Fraction(1, 10**12)


def test_three_different_mechanisms_by_enumeration():
    laws = [
        [(Fraction(3, 10), Fraction(1, 10)), (Fraction(7, 10), Fraction(9, 10))],
        [(Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 2), Fraction(3, 4))],
        [(Fraction(1, 100), Fraction(0)), (Fraction(99, 100), Fraction(1))],
    ]
    curve = curve_of(laws[0]).compose(curve_of(laws[1]), curve_of(laws[2]))
    together = product(product(laws[0], laws[1]), laws[2])
    assert is_below(curve, together)
    assert all(
        abs(float(stated(curve, slope) - delta(together, slope))) < 1e-14 for slope in SLOPES
    )
    assert curve.certain == pytest.approx(0.01, rel=1e-12)


def test_the_check_catches_a_curve_one_percent_too_high():
    pair = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    together = product(pair, pair)
    honest = curve_of(pair).tensor(curve_of(pair))
    assert is_below(honest, together)
    raised = too_high(honest)
    assert not is_below(raised, together)
    assert not raised.covers(honest)
    assert honest.gap(raised) == pytest.approx(0.0044, abs=2e-4)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(pairs(5), pairs(5), st.integers(3, 9))
def test_thinning_never_raises_a_curve(first, second, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tradeoff_segments, "MOST_SEGMENTS", most)
        curve = curve_of(first).tensor(curve_of(second))
        twice = curve.tensor(curve)
    assert len(curve.hits) <= most
    assert len(twice.hits) <= most
    together = product(first, second)
    assert is_below(curve, together)
    assert is_below(twice, product(together, together))


def test_thinning_by_chords_would_be_caught():
    """The obvious way to thin, keeping every other corner, raises the curve; the check sees it."""
    pair = [(Fraction(k + 1, 15), Fraction(5 - k, 15)) for k in range(5)]
    points = corners(pair)
    chords = TradeOff.through([(float(a), max(0.0, float(b) - 1e-15)) for a, b in points[::2]])
    assert not is_below(chords, pair)


@pytest.mark.slow
def test_many_compositions_stay_below_and_close_to_the_gaussian():
    """C4: G_0.1^⊗100 = G_1; thinning costs less than 1e-3 and is never on the wrong side."""
    curve = tradeoff_of(dp.GDP(0.1)).repeat(100)
    assert all(curve(alpha) <= dp.GDP(1).tradeoff(alpha) for alpha in ALPHAS)
    assert curve.covers(dp.GDP(0.999999))
    assert curve.gap(dp.GDP(1)) < 1e-3
    assert (
        dp.GDP(1).epsilon_at(1e-6) <= curve.epsilon_at(1e-6) <= 1.005 * dp.GDP(1).epsilon_at(1e-6)
    )


@pytest.mark.slow
def test_different_gaussians_compose_by_squares():
    curve = tradeoff_of(dp.GDP(0.6)).compose(dp.GDP(0.8))
    assert all(curve(alpha) <= dp.GDP(1).tradeoff(alpha) for alpha in ALPHAS)
    assert curve.gap(dp.GDP(1)) < 5e-4


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(pairs(3), pairs(3), pairs(3))
def test_composition_is_associative_and_commutative(first, second, third):
    f, g, h = map(curve_of, (first, second, third))
    for left, right in (
        ((f.tensor(g)).tensor(h), f.tensor(g.tensor(h))),
        (f.tensor(g), g.tensor(f)),
    ):
        for alpha in ALPHAS:
            assert left(alpha) == pytest.approx(right(alpha), abs=1e-12)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(pairs(3), st.integers(1, 5))
def test_repeat_is_the_product(pair, times):
    together, curve = pair, curve_of(pair).repeat(times)
    for _ in range(times - 1):
        together = product(together, pair)
    assert is_below(curve, together)
    assert all(
        curve(alpha) >= at(corners(together), Fraction(alpha)) - Fraction(1, 10**12)
        for alpha in ALPHAS
    )


# ── shape, conversions ────────────────────────────────────────────────────────────────────────────


def shape_is_right(curve):
    points = curve.exact_vertices
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in itertools.pairwise(points)]
    return (
        points[0][0] == 0
        and points[-1] == (1, 0)
        and all(x <= y <= 0 for x, y in itertools.pairwise([*slopes, Fraction(0)]))
        and all(a + b <= 1 for a, b in points)
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(pairs(), pairs(), st.fractions(Fraction(1, 100), 1))
def test_curves_are_convex_and_fall(first, second, rate):
    f, g = curve_of(first), curve_of(second)
    for curve in (f, f.tensor(g), f.inverse(), f.symmetrised(), f.subsampled(rate), f.group(3)):
        assert shape_is_right(curve)


@pytest.mark.slow
@pytest.mark.parametrize(
    "guarantee",
    [
        dp.PureDP(1),
        dp.ApproxDP(0.5, 0.1),
        dp.GDP(1),
        dp.GDP(1e-6),
        dp.GDP(200),
        dp.PureDP(1e-9),
        dp.PureDP(10**6),
        optimal(dp.ApproxDP(0.2, 1e-3), times=7),
    ],
    ids=str,
)
def test_every_guarantee_has_a_curve_below_its_own(guarantee):
    curve = tradeoff_of(guarantee)
    assert shape_is_right(curve)
    for epsilon in (0.0, 0.3, 1.0, 2.5, 7.0):
        assert curve.delta_at(epsilon) >= guarantee.delta_at(epsilon) * (1 - 1e-12)
    assert all(curve(alpha) <= guarantee.tradeoff(alpha) + 1e-15 for alpha in ALPHAS)


@pytest.mark.slow
def test_renyi_guarantees_have_curves_below_the_gaussian_they_contain():
    """ρ-zCDP and its Rényi curve hold for √(2ρ)-GDP;
    lines at several ε together may say more than any one conversion.
    """
    for guarantee in (ZCDP(0.5), rdp_of(dp.GDP(1))):
        curve = tradeoff_of(guarantee)
        assert shape_is_right(curve)
        assert curve.covers(dp.GDP(1))
        assert not curve.covers(dp.GDP(1.5))
        assert curve.delta_at(3.0) == pytest.approx(guarantee.delta_at(3.0), rel=0.01)


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-6, 12), st.floats(1e-9, 0.4))
def test_round_trip(epsilon, fail):
    guarantee = dp.ApproxDP(epsilon, fail)
    curve = tradeoff_of(guarantee)
    assert fail <= curve.delta_at(epsilon) <= fail + 1e-12
    back = curve.epsilon_at(fail * (1 + 1e-14))
    assert back <= epsilon + 1e-9 * max(1, epsilon)
    assert back >= guarantee.epsilon_at(fail * (1 + 1e-14)) - 1e-12
    assert curve.epsilon_at(fail * 0.999) == math.inf
    assert tradeoff_of(dp.PureDP(epsilon)).epsilon_at(0) == pytest.approx(epsilon, rel=1e-9)
    assert tradeoff_of(dp.PureDP(epsilon)).epsilon_at(0) >= epsilon


@settings(deadline=None, max_examples=40)
@given(pairs(), st.floats(0, 8))
def test_delta_is_the_sum_of_positive_parts(pair, epsilon):
    curve = curve_of(pair)
    low, high = Fraction(math.exp(epsilon) * (1 - 1e-14)), Fraction(math.exp(epsilon) * (1 + 1e-14))
    assert (
        delta(pair, high)
        <= Fraction(curve.delta_at(epsilon))
        <= delta(pair, low) + Fraction(1, 10**12)
    )
    wanted = curve.delta_at(epsilon)
    if wanted < 1:
        assert curve.epsilon_at(wanted) <= epsilon + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.001, 0.1, 0.5, 1, 2, 3])
def test_gaussian_curves_are_certified_and_close(mu):
    curve = tradeoff_of(dp.GDP(mu))
    assert curve.covers(dp.GDP(mu))
    assert not curve.covers(dp.GDP(1.001 * mu))
    assert curve.gap(dp.GDP(mu)) <= 1e-4
    generator = random.Random(5)
    for _ in range(200):
        alpha = generator.random() ** generator.choice((1, 4))
        assert curve(alpha) <= dp.GDP(mu).tradeoff(alpha) + 1e-16


@pytest.mark.slow
def test_a_gaussian_curve_one_percent_too_high_is_caught():
    honest = tradeoff_of(dp.GDP(1))
    raised = too_high(honest)
    assert honest.covers(dp.GDP(1))
    assert not raised.covers(dp.GDP(1))


# ── covers ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(pairs(), pairs())
def test_covers_agrees_with_the_curves(first, second):
    f, g = curve_of(first), curve_of(second)
    grid = sorted({alpha for alpha, _ in (*f.exact_vertices, *g.exact_vertices)})
    below = all(f._height(alpha) <= g._height(alpha) for alpha in grid)
    mirrored = g.inverse()
    if below:
        assert f.covers(g)
    if f.covers(g):  # promised in both orders, g says max(g, g⁻¹)
        assert all(
            f._height(alpha) <= max(g._height(alpha), mirrored._height(alpha)) + Fraction(1, 10**12)
            for alpha in grid
        )
    even, other = f.symmetrised(), g.symmetrised()
    if any(even._height(alpha) > other._height(alpha) + Fraction(1, 10**9) for alpha in grid):
        assert not even.covers(other)
    assert f.covers(f)
    assert f.tensor(g).covers(f)  # releasing more is never more private
    assert f.tensor(g).covers(g)


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(st.floats(0.05, 4), st.floats(0.05, 4), st.floats(1e-6, 0.3))
def test_covers_other_guarantees(mine, theirs, fail):
    pure, approx = tradeoff_of(dp.PureDP(mine)), tradeoff_of(dp.ApproxDP(mine, fail))
    assert pure.covers(dp.PureDP(mine))
    assert approx.covers(dp.ApproxDP(mine, fail))
    assert pure.covers(dp.PureDP(theirs)) == (mine >= theirs)
    assert (
        approx.covers(dp.PureDP(theirs)) == dp.ApproxDP(mine, fail).covers(dp.PureDP(theirs))
        or abs(mine - theirs) < 1e-9
    )
    assert not pure.covers(dp.ApproxDP(theirs, fail))
    assert not pure.covers(dp.GDP(theirs))


@pytest.mark.slow
def test_covers_by_tangency_is_sharp():
    """f_(ε,δ) ≤ G_μ iff δ_μ(ε) ≤ δ (reference.md A7), here through the slopes."""
    fail = dp.GDP(1).delta_at(1.5)
    assert tradeoff_of(dp.ApproxDP(1.5, fail * (1 + 1e-9))).covers(dp.GDP(1))
    assert not tradeoff_of(dp.ApproxDP(1.5, fail * 0.99)).covers(dp.GDP(1))
    assert tradeoff_of(ZCDP(0.5)).covers(ZCDP(0.5))
    assert tradeoff_of(ZCDP(0.6)).covers(ZCDP(0.5))
    assert not tradeoff_of(ZCDP(0.4)).covers(ZCDP(0.5))
    # a composed curve that ends a rounding before α = 1
    together = tradeoff_of(dp.PureDP(0.5)).repeat(4).compose(dp.GDP(0.5))
    # more than the δ at which both curves stop being Gaussian
    slack = tradeoff_of(dp.ApproxDP(1e-3, 1e-12))
    assert tradeoff_of(dp.GDP(2)).tensor(slack).covers(together)
    assert not tradeoff_of(dp.GDP(0.9)).tensor(slack).covers(together)


# ── the type ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_record_round_trip_and_text():
    curve = tradeoff_of(dp.GDP(1)).tensor(tradeoff_of(dp.ApproxDP(1, 0.01)))
    record = curve.to_dict()
    assert record.pop("kind") == "tradeoff"
    assert TradeOff(**record) == curve
    assert "f-DP" in str(curve)
    assert hash(curve) == hash(TradeOff(**record))


def test_values_at_the_ends():
    curve = TradeOff.through([(0, 1), (0.25, 0.25), (1, 0)])
    assert (curve(0), curve(0.25), curve(1), curve(1.0)) == (1.0, 0.25, 0.0, 0.0)
    assert curve.delta_at(1e6) == curve.certain == 0
    nothing = TradeOff(1.0, (), ())
    assert nothing(0) == nothing(0.5) == 0
    assert nothing.delta_at(3) == 1
    assert nothing.tensor(curve).certain == 1
    assert nothing.covers(curve)
    perfect = TradeOff.through([(0, 1)])
    assert perfect.epsilon_at(0) == 0
    assert perfect.tensor(curve).gap(curve) < 1e-12


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(0.1, 0.5)],
        [(0, 0.5), (0.5, 0.6)],
        [(0, 0.5), (0.2, 0.9)],
        [(0, math.nan)],
        [(0, -0.1)],
        [(0, 1.1)],
    ],
)
def test_bad_points(points):
    with pytest.raises(InvalidParameter):
        TradeOff.through(points)


@pytest.mark.parametrize(
    "arguments",
    [
        (0.0, (0.5,), (0.5,)),
        (0.0, (1.0,), (1.5,)),
        (-0.1, (1.1,), (1.0,)),
        (0.0, (1.0,), (math.nan,)),
        (0.0, (1.0, 0.0), (0.5, 0.5)),
        (0.0, (1.0,), ()),
        (0.0, 1.0, 1.0),
        (math.nan, (1.0,), (1.0,)),
        (True, (), ()),
    ],
)
def test_bad_fields(arguments):
    with pytest.raises(InvalidParameter):
        TradeOff(*arguments)


def test_bad_arguments():
    curve = tradeoff_of(dp.PureDP(1))
    for call in (
        lambda: curve(-0.1),
        lambda: curve(math.nan),
        lambda: curve.delta_at(-1),
        lambda: curve.epsilon_at(1.1),
        lambda: curve.repeat(0),
        lambda: curve.repeat(10**9),
        lambda: curve.group(0),
        lambda: curve.subsampled(0),
        lambda: curve.subsampled(1.5),
        lambda: curve.tensor(dp.GDP(1)),
        lambda: tradeoff_of(dp.GDP(1), points=1),
    ):
        with pytest.raises(InvalidParameter):
            call()
    with pytest.raises(NoTheorem):
        tradeoff_of("nothing")


@pytest.mark.slow
def test_extreme_compositions_answer_at_once():
    start = time.process_time()
    assert tradeoff_of(dp.PureDP(5)).repeat(1000)(0.05) == 0.0
    tiny = tradeoff_of(dp.PureDP(1e-9)).repeat(1000)
    assert tiny(0.05) == pytest.approx(0.95, abs=1e-6)
    assert tiny.epsilon_at(0) >= 1e-6 * (1 - 1e-9)
    assert time.process_time() - start < 20
