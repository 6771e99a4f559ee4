"""PLD against compositions that are known exactly: enumeration, binomial sums, closed forms;
never below, and close.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.gaussian import gdp_delta, gdp_epsilon
from discreet.accounting.loss_distributions.build import (
    approx_pld,
    discrete_pld,
    exponential_pld,
    gaussian_pld,
    geometric_pld,
    laplace_pld,
    poisson_subsampled,
    randomized_response_pld,
)
from discreet.accounting.loss_distributions.curve import PLD, compose_all

# id, (σ, rate, steps, δ), ε of dp-accounting 0.6.0 (2e-3 relative is the stored tolerance)
DPSGD = [
    (4.0, 0.01, 10_000, 1e-5, 0.9469993068930963),
    (1.3, 0.004266666666666667, 3516, 1e-5, 0.8645889419787726),
    (0.7, 0.004266666666666667, 10_547, 1e-5, 5.63971643638149),
    (1.0, 0.01, 1000, 1e-6, 2.1245225256749363),
    (0.8, 0.02, 100, 1e-5, 2.620243126133915),
]


def sgd(sigma: float, rate: float, steps: int) -> PLD:
    return poisson_subsampled(gaussian_pld(1 / sigma), rate).self_compose(steps)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "expected"), DPSGD)
def test_dpsgd_reference_values(
    sigma: float, rate: float, steps: int, delta: float, expected: float
) -> None:
    low, high = sgd(sigma, rate, steps).epsilon_bounds(delta)
    assert low < high
    assert (high - low) / low < 1e-3
    assert high <= expected * 1.001
    assert low >= expected * 0.999


def test_dpsgd_agrees_with_an_independent_fft_code() -> None:
    """`own_fft_prv` of the reference values: another discretisation, good to 2e-4."""
    assert sgd(4.0, 0.01, 10_000).epsilon_at(1e-5) == pytest.approx(0.9468692918417012, rel=3e-4)
    assert sgd(1.0, 0.01, 1000).epsilon_at(1e-6) == pytest.approx(2.1245159955758575, rel=3e-4)


@pytest.mark.slow
def test_the_clt_would_have_said_too_little() -> None:
    """reference.md E7: the Gaussian CLT says 1.618 where the certified lower bound is above
    1.82.
    """
    low, high = sgd(1.0, 0.01, 1000).epsilon_bounds(1e-5)
    assert 1.82 < low < high < 1.83


def test_gaussian_composition_is_the_closed_form() -> None:
    composed = gaussian_pld(0.1).self_compose(100)
    assert composed.epsilon_at(1e-5) == pytest.approx(4.377178095681227, rel=1e-12)
    # pld_gauss_s10_T100
    assert composed.epsilon_at(1e-5) == pytest.approx(4.377178519105701, abs=1e-3)


def test_stored_laplace_values() -> None:
    assert laplace_pld(0.1).self_compose(100).epsilon_at(1e-6) == pytest.approx(
        4.692667438643727, rel=1e-4
    )
    assert poisson_subsampled(laplace_pld(1.0), 0.01).self_compose(1000).epsilon_at(
        1e-6
    ) == pytest.approx(1.2864239338488, rel=1e-4)


def test_kov_values() -> None:
    response = randomized_response_pld(0.1)
    assert response.self_compose(10).epsilon_at(1e-6) == pytest.approx(0.9993709057217587, abs=1e-9)
    assert response.self_compose(10).delta_at(0.5) == pytest.approx(0.009929626917388853, rel=1e-9)
    assert response.self_compose(100).delta_at(3) == pytest.approx(0.0013613986948316375, rel=1e-9)


def test_tenfold_tradeoff_curve() -> None:
    """rr10_tradeoff: Neyman–Pearson on a binomial."""
    composed = randomized_response_pld(1 / math.sqrt(10)).self_compose(10)
    for alpha, expected in zip(
        (0.05, 0.1, 0.5), (0.7504091024765683, 0.6187528018456876, 0.16309165466483275), strict=True
    ):
        found = composed.tradeoff(alpha)
        assert expected - 1e-10 <= found <= expected


def binomial_delta(epsilon0: float, steps: int, epsilon: float, levels: int = 2) -> mpmath.mpf:
    """δ(ε) of binary randomised response, in 60 digits."""
    with mpmath.workdps(60):
        e0, e = mpmath.mpf(epsilon0), mpmath.mpf(epsilon)
        truth = 1 / (1 + mpmath.exp(-e0))
        total = mpmath.mpf(0)
        for k in range(steps + 1):
            loss = e0 * (2 * k - steps)
            if loss > e:
                total += (
                    mpmath.binomial(steps, k)
                    * truth**k
                    * (1 - truth) ** (steps - k)
                    * (1 - mpmath.exp(e - loss))
                )
        return total


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon0", "steps", "epsilon"),
    [
        (0.1, 100, 9.0),
        (0.5, 40, 15.0),
        (1.0, 7, 0.3),
        (0.01, 3000, 3.5),
        (2.0, 1, 1.0),
        (0.3, 250, 60.0),
    ],
)
def test_randomised_response_down_to_tiny_deltas(
    epsilon0: float, steps: int, epsilon: float
) -> None:
    exact = binomial_delta(epsilon0, steps, epsilon)
    low, high = randomized_response_pld(epsilon0).self_compose(steps).delta_bounds(epsilon)
    assert low <= exact <= high
    assert high - low <= 1e-8 * high


@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-15, 1e-25])
def test_lattice_gaussians_against_the_closed_form(delta: float) -> None:
    """Gaussians through the lattice (an almost free randomised response blocks the shortcut):
    G_1 at every δ.
    """
    blocked = gaussian_pld(0.25).self_compose(16).compose(approx_pld(0.0, 0.0))
    exact = gdp_epsilon(Fraction(1), Fraction(delta))
    low, high = blocked.epsilon_bounds(delta)
    assert low <= exact <= high
    assert high - low <= 3e-4 * exact


def test_gaussian_large_and_small() -> None:
    for mu, epsilon in ((6.0, 40.0), (0.01, 0.02), (12.0, 130.0)):
        exact = gdp_delta(Fraction(mu), Fraction(epsilon))
        low, high = gaussian_pld(mu).compose(approx_pld(0.0, 0.0)).delta_bounds(epsilon)
        assert low <= exact <= high * (1 + 1e-12)
        assert high <= 1.05 * exact


def exact_delta(pairs: list[tuple[list[Fraction], list[Fraction]]], epsilon: float) -> float:
    """δ(ε) = Σ (p − e^ε q)_+ over all outcomes of the product,
    with a rational e^ε that is at most 1e-15 off.
    """
    growth = Fraction(math.exp(epsilon))
    total = Fraction(0)
    for outcome in itertools.product(*(range(len(p)) for p, _ in pairs)):
        a = b = Fraction(1)
        for (p, q), i in zip(pairs, outcome, strict=True):
            a, b = a * p[i], b * q[i]
        total += max(Fraction(0), a - growth * b)
    return float(total)


weights = st.lists(st.integers(1, 40), min_size=3, max_size=3)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(weights, weights), min_size=1, max_size=4), st.floats(0, 2.5))
def test_enumerated_compositions_of_different_mechanisms(
    parts: list[tuple[list[int], list[int]]], epsilon: float
) -> None:
    pairs = [([Fraction(x, sum(a)) for x in a], [Fraction(x, sum(b)) for x in b]) for a, b in parts]
    exact = max(exact_delta(pairs, epsilon), exact_delta([(q, p) for p, q in pairs], epsilon))
    composed = compose_all((discrete_pld(p, q), 1) for p, q in pairs)
    low, high = composed.delta_bounds(epsilon)
    assert low <= exact * (1 + 1e-12) + 1e-15
    assert exact <= high * (1 + 1e-12) + 1e-15
    assert high <= exact + 2e-3


def test_enumeration_with_impossible_outcomes() -> None:
    p, q = (
        [Fraction(1, 2), Fraction(1, 2), Fraction(0)],
        [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
    )
    composed = discrete_pld(p, q).self_compose(3)
    exact = max(exact_delta([(p, q)] * 3, 0.4), exact_delta([(q, p)] * 3, 0.4))
    low, high = composed.delta_bounds(0.4)
    assert low <= exact <= high <= exact * (1 + 1e-6)
    assert composed.epsilon_at(0.2) == math.inf  # 1 − (3/4)³ of the time everything is told


@pytest.mark.slow
def test_one_laplace_is_its_closed_form() -> None:
    for epsilon in (0.0, 0.3, 0.9):
        exact = -math.expm1((epsilon - 1) / 2)
        low, high = laplace_pld(1.0).delta_bounds(epsilon)
        assert exact * (1 - 1e-3) <= low <= exact * (1 + 1e-12)
        assert exact <= high * (1 + 1e-12) <= exact * (1 + 1e-4)
    assert laplace_pld(1.0).delta_at(1.0) <= 1e-9
    assert laplace_pld(1.0).epsilon_at(1e-9) <= 1.0 + 1e-9


def test_one_bounded_range_mechanism_is_its_closed_form() -> None:
    for epsilon in (0.0, 0.5, 1.5):
        exact = (-math.expm1((epsilon - 2) / 2)) ** 2 / -math.expm1(-2)
        low, high = exponential_pld(2.0).delta_bounds(epsilon)
        assert low <= exact * (1 + 1e-12)
        assert exact <= high * (1 + 1e-12) <= exact * 1.001


def test_geometric_composition_by_enumeration() -> None:
    step, shift = 0.5, 2
    ratio = mpmath.exp(-step)
    outcomes = range(-160, 161)
    p = [float((1 - ratio) / (1 + ratio) * ratio ** abs(k)) for k in outcomes]
    single = sum(max(0.0, p[i] - math.exp(0.6) * p[i - shift]) for i in range(shift, len(p)))
    assert geometric_pld(1.0, 2).delta_at(0.6) == pytest.approx(single, rel=1e-9)
    loss = {round(abs(k - shift) - abs(k)): 0.0 for k in outcomes}
    for k, mass in zip(outcomes, p, strict=True):
        loss[abs(k - shift) - abs(k)] += mass
    twice = sum(
        a * b * max(0.0, 1 - math.exp(0.9 - step * (i + j)))
        for (i, a), (j, b) in itertools.product(loss.items(), repeat=2)
    )
    assert geometric_pld(1.0, 2).self_compose(2).delta_at(0.9) == pytest.approx(twice, rel=1e-9)


def test_approximate_guarantees_compose_optimally() -> None:
    """Kairouz–Oh–Viswanath with δ: 1 − (1−δ)^k(1 − δ_pure(ε))."""
    pure = binomial_delta(0.2, 30, 2.0)
    expected = 1 - (1 - mpmath.mpf("1e-7")) ** 30 * (1 - pure)
    assert approx_pld(0.2, 1e-7).self_compose(30).delta_at(2.0) == pytest.approx(
        float(expected), rel=1e-8
    )
