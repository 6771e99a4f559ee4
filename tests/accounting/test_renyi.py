"""zCDP and Rényi DP: reference values, conversions that hold on actual pairs of laws, rounding,
bad input.
"""

import math
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise, laplace_noise
from discreet.accounting.renyi import conversions as conversions
from discreet.accounting.renyi.curves import (
    USUAL_ORDERS,
    gaussian_renyi,
    laplace_renyi,
    pure_renyi,
    randomized_response_renyi,
)
from discreet.accounting.renyi.mechanisms import rdp_of_mechanism
from discreet.accounting.renyi.rdp import (
    RDP,
    ZCDP,
    compose_renyi,
    rdp_of,
    renyi_bound,
    rho_of,
    zcdp_of,
)
from discreet.sensitivity import L1, L2

RHOS, DELTAS = st.floats(1e-6, 100), st.floats(1e-12, 0.5)


def divergence(p, q, order):
    """D_α of two laws on a few points, naively."""
    return math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def pairs(seed, count, points=6, spread=1.5):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        p, q = (np.exp(spread * rng.standard_normal(points)) for _ in range(2))
        yield p / p.sum(), q / q.sum()


@pytest.mark.parametrize(
    ("rho", "delta", "tight", "basic"),
    [
        ("0.01", "1e-6", 0.6216926545596025, 0.7533844377699677),
        ("0.5", "1e-6", 5.221534444530169, 5.756521769756932),
    ],
)
def test_zcdp_epsilon_reference_values(rho, delta, tight, basic):
    assert ZCDP(float(rho)).epsilon_at(float(delta)) == pytest.approx(tight, abs=1e-8)
    assert conversions.zcdp_epsilon_bun_steinke(Fraction(rho), Fraction(delta)) == pytest.approx(
        basic, abs=1e-12
    )


@pytest.mark.parametrize(
    ("rho", "tight", "basic"),
    [(0.001, 0.1829, 0.2361), (0.01, 0.6217, 0.7534), (0.1, 2.142, 2.451), (1.0, 7.766, 8.434)],
)
def test_zcdp_epsilon_table_of_the_formula_sheet(rho, tight, basic):
    assert ZCDP(rho).epsilon_at(1e-6) == pytest.approx(tight, rel=3e-4)
    assert conversions.zcdp_epsilon_bun_steinke(rho, 1e-6) == pytest.approx(basic, rel=3e-4)


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        ("1", "1e-5", 0.020819938339535462),
        ("3", "1e-5", 0.17348321192510013),
        ("1", "1e-6", 0.017469),
    ],
)
def test_zcdp_rho_reference_values(epsilon, delta, rho):
    assert conversions.zcdp_rho_bun_steinke(Fraction(epsilon), Fraction(delta)) == pytest.approx(
        rho, rel=1e-4 if rho == 0.017469 else 1e-12
    )


def test_curve_reference_values():
    assert laplace_renyi(2, 1) == pytest.approx(0.6191236299985928, abs=1e-12)
    assert laplace_renyi(8, 2) == pytest.approx(1.9101987629396724, abs=1e-12)
    assert randomized_response_renyi(4, 0.75) == pytest.approx(1.0028706454725507, abs=1e-12)
    assert gaussian_renyi(3, Fraction(1, 4)) == 0.375
    assert randomized_response_renyi(3, 0.5) == 0.0


def test_trap_the_lecture_conversion_is_below_the_truth():
    """`ρ + 4ρ ln(1/δ)` reports less than the exact ε of the Gaussian mechanism;
    ours never does (reference.md D2).
    """
    for rho in (0.001, 0.01):
        exact = dp.GDP(math.sqrt(2 * rho)).epsilon_at(1e-6)
        assert rho + 4 * rho * math.log(1e6) < exact <= ZCDP(rho).epsilon_at(1e-6)


def test_trap_the_inverse_without_its_square():
    """√(L+ε) − √L, printed without the square,
    allows a ρ whose Gaussian has ε = 2.3 instead of 1 (reference.md D3).
    """
    printed = math.sqrt(math.log(1e6) + 1) - math.sqrt(math.log(1e6))
    assert dp.GDP(math.sqrt(2 * printed)).epsilon_at(1e-6) > 2.3
    assert dp.GDP(math.sqrt(2 * conversions.zcdp_rho(1, 1e-6))).epsilon_at(1e-6) <= 1


@pytest.mark.slow
@given(RHOS, DELTAS)
@settings(deadline=None)
def test_tight_conversion_is_rounded_up_and_never_above_the_basic_one(rho, delta):
    """Against mpmath's minimum over a dense set of orders, at 50 digits, of the same formula."""
    epsilon = ZCDP(rho).epsilon_at(delta)
    assert epsilon <= conversions.zcdp_epsilon_bun_steinke(rho, delta)
    assert dp.GDP(math.sqrt(2 * rho)).epsilon_at(delta) <= epsilon * (1 + 1e-12) + 1e-12
    assert conversions.zcdp_delta(rho, epsilon) <= delta * (1 + 1e-6)
    grid = 1 + np.exp(np.linspace(-8, 20, 400))
    least = np.min(grid * rho + np.log1p(-1 / grid) - (math.log(delta) + np.log(grid)) / (grid - 1))
    assert epsilon <= max(0.0, least) + 1e-9 * (1 + abs(least))


@pytest.mark.slow
@given(st.floats(0.01, 20), DELTAS)
@settings(deadline=None)
def test_inverse_conversions_round_down(epsilon, delta):
    rho = conversions.zcdp_rho(epsilon, delta)
    assert rho >= conversions.zcdp_rho_bun_steinke(epsilon, delta)
    assert conversions.zcdp_epsilon(rho, delta) <= epsilon * (1 + 1e-9)
    assert conversions.zcdp_epsilon(rho * (1 + 1e-5), delta) > epsilon
    assert conversions.zcdp_epsilon_bun_steinke(
        conversions.zcdp_rho_bun_steinke(epsilon, delta), delta
    ) <= epsilon * (1 + 1e-14)


@pytest.mark.parametrize("order", [1.2, 2.0, 3.5, 8.0])
def test_tight_conversion_holds_on_random_pairs(order):
    for p, q in pairs(seed=1, count=60):
        bound = divergence(p, q, order)
        if bound <= 0:
            continue
        for epsilon in (0.0, 0.3, 1.0, 2.5):
            true, tight = hockey_stick(p, q, epsilon), conversions.rdp_delta(order, bound, epsilon)
            assert true <= tight * (1 + 1e-9)
            assert tight <= conversions.rdp_delta_mironov(order, bound, epsilon) * (1 + 1e-12)


def test_tight_conversion_is_attained():
    """A loss of ε + ln(α/(α−1)) with small probability and a hugely negative one else meets the
    bound: one order says no more.
    """
    order, epsilon, share = 3, 1, mpmath.mpf("0.01")
    with mpmath.workdps(60):
        top, rest = mpmath.exp(epsilon) * mpmath.mpf(order) / (order - 1), mpmath.mpf(10) ** -20
        # E_P e^{(α−1)Z}, for sub-probabilities
        moment = share * top ** (order - 1) + (1 - share) * rest ** (order - 1)
        reached = share * (1 - mpmath.exp(epsilon) / top)
        bound = (
            moment
            * mpmath.exp(-(order - 1) * epsilon)
            * (1 - mpmath.mpf(1) / order) ** order
            / (order - 1)
        )
        assert abs(bound / reached - 1) < 1e-30
    assert conversions.rdp_delta(order, 2.0, epsilon + 2.0) == pytest.approx(
        math.exp(-2.0) * (2 / 3) ** 3 / 2, rel=1e-12
    )


def test_pure_rho_is_the_least():
    for epsilon in (1e-6, 0.1, 1.0, 3.0, 50.0, 1e5):
        rho = conversions.pure_rho(epsilon)
        assert rho <= min(epsilon**2 / 2, epsilon) * (1 + 1e-15)
        for order in (1 + 1e-9, 1.01, 1.5, 2.0, 10.0, 1e4):
            assert pure_renyi(order, epsilon) <= order * rho * (1 + 1e-12)
        assert pure_renyi(1 + 1e-9, epsilon) == pytest.approx(rho, rel=1e-6)


def test_bounded_range_on_exponential_mechanisms():
    rng = np.random.default_rng(2)
    for _ in range(100):
        epsilon = rng.uniform(0.1, 4)
        scores = rng.normal(size=(2, 7))
        scores[1] = scores[0] + rng.uniform(-1, 1, 7)
        p, q = (np.exp(epsilon * s / 2) / np.exp(epsilon * s / 2).sum() for s in scores)
        for order in (1.01, 2, 5, 30):
            assert (
                divergence(p, q, order)
                <= order * float(conversions.bounded_range_rho(epsilon)) + 1e-12
            )


@pytest.mark.few(2)
@pytest.mark.parametrize(("epsilon", "order"), [(0.3, 1.5), (1.0, 2.0), (2.0, 8.0), (5.0, 3.3)])
def test_laplace_curve_is_the_integral(epsilon, order):
    with mpmath.workdps(30):
        total = mpmath.quad(
            lambda x: mpmath.exp(-order * abs(x) + (order - 1) * abs(x - epsilon)) / 2,
            [-60, -5, 0, epsilon / 2, epsilon, epsilon + 5, epsilon + 60],
        )
        assert laplace_renyi(order, epsilon) == pytest.approx(
            float(mpmath.log(total) / (order - 1)), rel=1e-12
        )
    # a shift spread over two coordinates costs no more
    halves = 2 * laplace_renyi(order, epsilon / 2)
    assert halves <= laplace_renyi(order, epsilon) <= pure_renyi(order, epsilon)


def test_pure_curve_bounds_random_pure_pairs():
    for p, q in pairs(seed=3, count=100, spread=0.7):
        epsilon = float(np.abs(np.log(p / q)).max())
        for order in (1.1, 2, 6.5):
            assert divergence(p, q, order) <= pure_renyi(order, epsilon) * (1 + 1e-12)
    p = np.array([0.75, 0.25])
    assert pure_renyi(4, math.log(3)) == pytest.approx(divergence(p, p[::-1], 4), rel=1e-12)


def test_rdp_reads_between_its_orders():
    curve = RDP((2, 4, 8), (0.5, 0.9, 3.0))
    assert curve.at(2) == 0.5
    assert curve.at(8) == 3.0
    assert curve.at(1.5) == 0.5
    assert curve.at(9) == math.inf
    gaussian = rdp_of(dp.GDP(1), orders=(2, 4))
    # αμ²/2 = 1.5 exactly; the chord of (α−1)D is (1·1 + 3·2)/2/2 = 1.75
    assert 1.5 <= gaussian.at(3) <= 2.0
    assert gaussian.at(3) == 1.75
    assert RDP((2, 4), (0.9, 0.5)).at(2) == 0.5  # D_α increases, so the later bound holds earlier


def test_rdp_groups_hold_for_gaussians():
    curve = rdp_of(dp.GDP(0.5))
    for size in (2, 3, 4):
        grown = curve.group(size)
        assert all(
            value >= order * (0.5 * size) ** 2 / 2 * (1 - 1e-12)
            for order, value in zip(grown.orders, grown.epsilons, strict=True)
        )
    for p, q in pairs(seed=4, count=50):
        r = (p + q) / 2
        for order in (1.3, 2, 4):
            through = (order - 0.5) / (order - 1) * divergence(p, r, 2 * order) + divergence(
                r, q, 2 * order - 1
            )
            assert divergence(p, q, order) <= through + 1e-12
    with pytest.raises(dp.NoTheorem, match="orders"):
        RDP((2, 3), (0.1, 0.2)).group(4)
    assert ZCDP(0.1).group(3).rho == pytest.approx(0.9)


@pytest.mark.slow
@given(st.floats(0.02, 3), st.floats(0, 1))
@settings(max_examples=12, deadline=None)
def test_trade_off_lies_below_the_true_curve_and_not_far(mu, alpha):
    """For the Gaussian the truth is G_μ; the curve from its ρ must be below it."""
    ours, truth = zcdp_of(dp.GDP(mu)).tradeoff(alpha), dp.GDP(mu).tradeoff(alpha)
    assert ours <= truth + 1e-15
    assert ours >= truth - 0.35


def test_trade_off_ends():
    assert [g.tradeoff(a) for g in (ZCDP(0.1), rdp_of(ZCDP(0.1))) for a in (0, 1)] == [
        1.0,
        0.0,
        1.0,
        0.0,
    ]
    assert rdp_of(ZCDP(0.1)).tradeoff(0.05) == pytest.approx(ZCDP(0.1).tradeoff(0.05), abs=1e-3)


@given(st.lists(st.floats(1e-4, 5), min_size=2, max_size=5), st.randoms())
@settings(max_examples=30, deadline=None)
def test_composition_is_commutative_and_adds(rhos, order):
    shuffled = list(rhos)
    order.shuffle(shuffled)
    together = compose_renyi(*map(ZCDP, rhos))
    assert together == compose_renyi(*map(ZCDP, shuffled))
    assert together.rho >= math.fsum(rhos) * (1 - 1e-15)
    curves = [rdp_of(ZCDP(rho), (2, 3 + i, 8)) for i, rho in enumerate(rhos)]
    assert compose_renyi(*curves) == compose_renyi(*reversed(curves))
    assert compose_renyi(curves[0], ZCDP(0.1)).covers(curves[0])
    assert compose_renyi(ZCDP(rhos[0]), ZCDP(rhos[0])) == ZCDP(rhos[0]).repeat(2)


@pytest.mark.slow
@given(st.floats(0.01, 5), st.floats(1.01, 3), DELTAS)
@settings(deadline=None)
def test_more_noise_never_costs_more(mu, factor, delta):
    for less, more in (
        (zcdp_of(dp.GDP(mu / factor)), zcdp_of(dp.GDP(mu))),
        (rdp_of(dp.PureDP(mu / factor), (2, 5, 9)), rdp_of(dp.PureDP(mu), (2, 5, 9))),
    ):
        assert less.epsilon_at(delta) <= more.epsilon_at(delta)
        assert less.delta_at(1.0) <= more.delta_at(1.0)
        assert more.covers(less)
        assert not less.covers(more)


def test_covers_and_conversions():
    assert rho_of(dp.GDP(1)) == Fraction(1, 2)
    assert ZCDP(0.5).covers(dp.GDP(1))
    assert not ZCDP(0.4999).covers(dp.GDP(1))
    assert ZCDP(0.47).covers(dp.PureDP(1))
    assert not ZCDP(0.46).covers(dp.PureDP(1))
    assert not ZCDP(100).covers(dp.ApproxDP(0.1, 1e-9))
    assert not ZCDP(100).covers(rdp_of(dp.PureDP(0.1)))
    assert rdp_of(dp.GDP(1)).covers(dp.GDP(1))
    assert rdp_of(dp.PureDP(1)).covers(dp.PureDP(1))
    assert not rdp_of(dp.PureDP(1)).covers(dp.GDP(1))
    assert dp.ApproxDP(1, 1e-5).covers(
        ZCDP(conversions.zcdp_rho(1, 1e-5)),
    )  # type: ignore[arg-type]
    assert renyi_bound(dp.ApproxDP(1, 1e-6), Fraction(2)) is None
    for convert in (zcdp_of, rdp_of):
        with pytest.raises(dp.NoTheorem):
            convert(dp.ApproxDP(1, 1e-6))


def test_mechanisms_have_their_own_curves():
    gaussian, laplace, geometric = (
        gaussian_noise(L2(Fraction(1)), Fraction(1)),
        laplace_noise(L1(Fraction(1)), Fraction(1)),
        geometric_noise(L1(Fraction(1)), Fraction(1)),
    )
    assert rdp_of_mechanism(gaussian, (2, 8)).epsilons == pytest.approx((1.0, 4.0))
    assert rdp_of_mechanism(laplace, (2,)).epsilons == pytest.approx((0.6191236299985928,))
    assert rdp_of_mechanism(geometric, (2,)).epsilons == pytest.approx((pure_renyi(2, 1),))


def test_round_trip_and_printing():
    for guarantee in (ZCDP(0.125), rdp_of(dp.GDP(1), (1.5, 2, 8))):
        record = guarantee.to_dict()
        assert (
            type(guarantee)(**{name: value for name, value in record.items() if name != "kind"})
            == guarantee
        )
        assert hash(guarantee) is not None
        assert record["kind"] == guarantee.kind
    assert str(ZCDP(0.125)) == "ρ = 0.125 (zero-concentrated DP)"
    assert "3 orders from 1.5 to 8" in str(rdp_of(dp.GDP(1), (1.5, 2, 8)))
    assert rdp_of(dp.GDP(1)).orders[0] == 1.1
    assert len(rdp_of(dp.GDP(1)).orders) == len(USUAL_ORDERS)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, True, "1", None, 1e-30, 1e9, [1]])
def test_bad_rhos_are_refused(bad):
    with pytest.raises(dp.InvalidParameter, match="What to do"):
        ZCDP(bad)


@pytest.mark.parametrize(
    ("orders", "epsilons"),
    [
        ((), ()),
        ((2,), ()),
        ((2, 2), (1, 1)),
        ((3, 2), (1, 1)),
        ((1,), (1,)),
        ((0.5,), (1,)),
        ((2,), (-1,)),
        ((2,), (math.nan,)),
        ((2,), (math.inf,)),
        ((math.nan,), (1,)),
        (2, 1),
        ("ab", "cd"),
        ((True,), (1,)),
    ],
)
def test_bad_curves_are_refused(orders, epsilons):
    with pytest.raises(dp.InvalidParameter):
        RDP(orders, epsilons)


@pytest.mark.parametrize("bad", [0, 1, 1.5, -1e-9, math.nan, math.inf, None, "x", True])
def test_bad_deltas_are_refused(bad):
    for guarantee in (ZCDP(0.1), RDP((2,), (1,))):
        with pytest.raises(dp.InvalidParameter):
            guarantee.epsilon_at(bad)
    for bad_epsilon in (-1, math.nan, math.inf, None):
        with pytest.raises(dp.InvalidParameter):
            ZCDP(0.1).delta_at(bad_epsilon)
    for bad_count in (0, -1, 1.5, True, 10**13):
        with pytest.raises(dp.InvalidParameter):
            ZCDP(0.1).repeat(bad_count)
    with pytest.raises(dp.InvalidParameter):
        compose_renyi()


def test_extremes_are_answered_at_once():
    begin = time.process_time()
    for rho in (1e-19, 1e-10, 1.0, 1e6):
        for delta in (1e-300, 1e-9, 0.999):
            assert (
                0 <= ZCDP(rho).epsilon_at(delta) <= conversions.zcdp_epsilon_bun_steinke(rho, delta)
            )
        for epsilon in (0, 1e-9, 1, 1e6, 1e300):
            assert 0 <= ZCDP(rho).delta_at(epsilon) <= 1
    assert ZCDP(1e-10).repeat(10**9).rho == pytest.approx(0.1)
    assert rdp_of(dp.GDP(1e-3)).repeat(10**9).epsilon_at(1e-6) > 400
    assert rdp_of(dp.PureDP(1e6)).delta_at(1.0) == 1.0
    assert RDP((2,), (1e300,)).epsilon_at(1e-6) >= 1e300
    assert time.process_time() - begin < 5
