"""The dominating pairs themselves, one step:
brute force, numerical integrals, and the numerics they rest on.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtr

from discreet.accounting.loss_distributions.build import (
    approx_pld,
    discrete_pld,
    exponential_pld,
    fixed_size_subsampled,
    gaussian_pld,
    geometric_pld,
    laplace_pld,
    pld_of,
    poisson_subsampled,
    randomized_response_pld,
)
from discreet.accounting.loss_distributions.curve import PLD, _evaluate
from discreet.accounting.loss_distributions.lattice import Grading, place
from discreet.accounting.loss_distributions.laws import UNIT, law_of
from discreet.accounting.loss_distributions.pairs import Direction, Gaussian, Laplace, Sampled
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise, LaplaceNoise


def test_normal_tails_are_as_accurate_as_assumed() -> None:
    """The slack of a Gaussian cell allows 64 + 4x² roundoffs in scipy's ndtr;
    Arb says what the error is.
    """
    rng = np.random.default_rng(1)
    points = np.concatenate([-rng.uniform(0, 37, 3000), -np.geomspace(1e-12, 37, 500)])
    before, ctx.prec = ctx.prec, 128
    try:
        for x, value in zip(points.tolist(), ndtr(points).tolist(), strict=True):
            exact = (arb(-x) / arb(2).sqrt()).erfc() / 2
            error = abs(float((arb(value) - exact) / exact))
            assert error <= 0.75 * (64 + 4 * x * x) * UNIT
    finally:
        ctx.prec = before


def hockey(direction: Direction, mu: float, rate: float, epsilon: float) -> mpmath.mpf:
    """∫ (p − e^ε q)_+ of a Poisson-subsampled Gaussian by quadrature between the exact crossing and
    the ends.
    """
    with mpmath.workdps(40):

        def base(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x)

        def mixture(x: mpmath.mpf) -> mpmath.mpf:
            return (1 - mpmath.mpf(rate)) * mpmath.npdf(x) + mpmath.mpf(rate) * mpmath.npdf(x, mu)

        growth = mpmath.exp(mpmath.mpf(epsilon))
        p, q = (mixture, base) if direction == "remove" else (base, mixture)
        # the likelihood ratio mixture/base = 1−r+r·e^(μx−μ²/2) is monotone
        level = growth if direction == "remove" else 1 / growth
        inner = (level - 1 + mpmath.mpf(rate)) / mpmath.mpf(rate)
        if inner <= 0:
            return mpmath.mpf(0) if direction == "add" else 1 - growth
        cross = (mpmath.log(inner) + mpmath.mpf(mu) ** 2 / 2) / mu
        ends = (
            [cross, cross + 3, cross + 8, cross + 16, cross + 30]
            if direction == "remove"
            else [cross - 30, cross - 16, cross - 8, cross - 3, cross]
        )
        return mpmath.quad(lambda x: p(x) - growth * q(x), ends)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"),
    [(1.0, 0.1, 0.05), (0.6, 0.3, 0.3), (2.0, 0.5, 0.25), (0.8, 0.01, 0.004), (0.5, 0.02, 2.0)],
)
def test_sampled_gaussian_against_integrals(
    direction: Direction, sigma: float, rate: float, epsilon: float
) -> None:
    exact = hockey(direction, 1 / sigma, rate, epsilon)
    pld = poisson_subsampled(gaussian_pld(1 / sigma), rate)
    laws = dict(zip(("remove", "add"), pld._orders(), strict=True))[direction]
    high = _evaluate(laws, "above", 1e-4, epsilon=epsilon).delta(epsilon)
    low = _evaluate(laws, "below", 1e-5, epsilon=epsilon).delta(epsilon)
    assert low <= exact <= high
    assert high - low <= 5e-3 * high + 1e-12
    assert pld.delta_at(epsilon) >= exact


def simple_pair(epsilon0: float) -> tuple[np.ndarray, np.ndarray]:
    p = np.array([math.exp(epsilon0), 1.0, 1.0])
    q = np.array([1.0, math.exp(epsilon0), 1.0])
    return p / p.sum(), q / q.sum()


def discrete_delta(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.4, 0.9])
def test_poisson_sampling_by_brute_force(rate: float) -> None:
    """One secret draw of one record: with it the mechanism answers by P₀, without it by Q₀."""
    p, q = simple_pair(1.2)
    mixture = rate * p + (1 - rate) * q
    pld = poisson_subsampled(discrete_pld(p.tolist(), q.tolist()), rate)
    for epsilon in (0.0, 0.02, 0.1, 0.3, 0.7):
        exact = max(discrete_delta(mixture, q, epsilon), discrete_delta(q, mixture, epsilon))
        assert exact * (1 - 1e-12) <= pld.delta_at(epsilon) <= exact * (1 + 1e-3) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.05, 0.4, 0.9])
def test_fixed_size_is_the_greater_of_both_orders(rate: float) -> None:
    """C_r(f₀) as a curve: max over the two orders at every real ε, for randomised response,
    Laplace and Gaussian.
    """
    for base in (randomized_response_pld(1.2, 3), laplace_pld(1.2), gaussian_pld(0.9)):
        fixed, poisson = fixed_size_subsampled(base, rate), poisson_subsampled(base, rate)
        for epsilon in (0.0, 0.02, 0.1, 0.3):
            # already the greater of both orders
            low, high = poisson.delta_bounds(epsilon, accuracy=1e-2)
            fixed_low, fixed_high = fixed.delta_bounds(epsilon, accuracy=1e-2)
            assert fixed_high >= low - 1e-12
            assert fixed_low <= high + 1e-12
            assert fixed_high - fixed_low <= 1e-2 * fixed_high + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("epsilon0", [0.3, 1.2, 3.0])
def test_fixed_size_sampling_by_brute_force(epsilon0: float) -> None:
    """n = 3 records, m = 1, randomised response on the drawn record, then two adaptive-free rounds;
    both orders.
    """
    truth = math.exp(epsilon0) / (1 + math.exp(epsilon0))
    answer = {0: np.array([truth, 1 - truth]), 1: np.array([1 - truth, truth])}
    for others in ((0, 0), (0, 1), (1, 1)):
        first = sum((answer[x] for x in (*others, 0)), np.zeros(2)) / 3
        second = sum((answer[x] for x in (*others, 1)), np.zeros(2)) / 3
        fixed = fixed_size_subsampled(randomized_response_pld(epsilon0), 1 / 3)
        for epsilon in (0.0, 0.05, 0.2):
            for p, q in ((first, second), (second, first)):
                assert discrete_delta(p, q, epsilon) <= fixed.delta_at(epsilon) + 1e-12
                twice = np.outer(p, p).ravel(), np.outer(q, q).ravel()
                assert (
                    discrete_delta(*twice, epsilon)
                    <= fixed.self_compose(2).delta_at(epsilon) + 1e-12
                )


def test_fixed_size_worst_case_is_attained() -> None:
    """The two orders are both real: mechanisms whose answers for the other records look like one of
    the two neighbours.
    """
    rate, (p, q) = 0.25, simple_pair(1.0)
    fixed = fixed_size_subsampled(randomized_response_pld(1.0, 3), rate)
    for epsilon in (0.01, 0.1, 0.2):
        mixture = rate * p + (1 - rate) * q
        reached = max(discrete_delta(mixture, q, epsilon), discrete_delta(q, mixture, epsilon))
        assert reached <= fixed.delta_at(epsilon) <= reached * 1.001 + 1e-9


def test_symmetrising_costs_and_is_needed() -> None:
    """Composing one order alone would say less than the symmetrised curve."""
    base = gaussian_pld(1.0)
    fixed = fixed_size_subsampled(base, 0.05).self_compose(400).epsilon_bounds(1e-5)
    poisson = poisson_subsampled(base, 0.05).self_compose(400).epsilon_bounds(1e-5)
    assert fixed[0] > poisson[1]


def test_bounded_range_dominates_exponential_mechanisms() -> None:
    """Random utilities with sensitivity 1, weights e^(εu/2):
    every pair of neighbours lies below the curve.
    """
    rng, epsilon0 = np.random.default_rng(7), 1.5
    curve = exponential_pld(epsilon0)
    asked = [0.0, 0.2, 0.6, 1.2]
    bound = [curve.delta_at(e) for e in asked]
    seen = 0.0
    for _ in range(4000):
        utility = rng.integers(0, 4, size=6).astype(float)
        other = utility + rng.choice([-1.0, 1.0], size=6)
        p, q = np.exp(epsilon0 * utility / 2), np.exp(epsilon0 * other / 2)
        p, q = p / p.sum(), q / q.sum()
        for epsilon, most in zip(asked, bound, strict=True):
            found = discrete_delta(p, q, epsilon)
            assert found <= most
            seen = max(seen, found / most)
    assert seen > 0.9


def test_laplace_on_a_vector_is_dominated_by_the_scalar_pair() -> None:
    for a, b in ((0.5, 0.5), (0.9, 0.1), (1.5, 1.0)):
        scalar, vector = laplace_pld(a + b), laplace_pld(a).compose(laplace_pld(b))
        for epsilon in (0.0, 0.3, 0.6, 0.95 * (a + b)):
            assert vector.delta_bounds(epsilon)[0] <= scalar.delta_at(epsilon) + 1e-12
    for a, b in ((1, 1), (3, 2)):
        scalar, vector = (
            geometric_pld(0.4 * (a + b), a + b),
            geometric_pld(0.4 * a, a).compose(geometric_pld(0.4 * b, b)),
        )
        for epsilon in (0.0, 0.3, 0.7):
            assert vector.delta_bounds(epsilon)[0] <= scalar.delta_at(epsilon) + 1e-12


def test_specs_become_their_pairs() -> None:
    assert pld_of(GaussianNoise(L2(Fraction(4)), Fraction(1000), 10)).epsilon_at(
        1e-6
    ) == pytest.approx(gaussian_pld(0.002).epsilon_at(1e-6), rel=1e-9)
    assert pld_of(LaplaceNoise(L1(Fraction(2)), Fraction(1024), 0)).delta_at(0.0) == pytest.approx(
        -math.expm1(-1 / 1024), rel=1e-3
    )
    assert pld_of(GeometricNoise(L1(Fraction(3)), Fraction(6), 0)).epsilon_at(
        1e-9
    ) == pytest.approx(0.5, rel=1e-6)


FACTORS = [
    Gaussian(1.0),
    Laplace(0.7),
    Sampled(Gaussian(1.4), 0.01, "poisson"),
    Sampled(Laplace(1.0), 0.2, "poisson"),
    Sampled(Gaussian(0.8), 0.3, "fixed"),
]


@pytest.mark.few(2)
@pytest.mark.parametrize("factor", FACTORS, ids=str)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("step", [0.11, 0.03, 0.004])
def test_lattices_bracket_the_curve(factor: object, direction: Direction, step: float) -> None:
    """δ of both lattices at many ε, for coarse and fine steps and for a graded one: below ≤ above,
    and P and Q keep their totals.
    """
    law = law_of([factor], [1], direction)  # type: ignore[list-item]
    fine = place(law, step / 16, 1e-14, "above")
    above, below = place(law, step, 1e-14, "above"), place(law, step, 1e-14, "below")
    graded = place(law, step, 1e-14, "above", Grading((0.3, 0.8, 1.5), (0.3, 0.8, 1.5)))

    def delta(lattice: object, epsilon: float) -> float:
        loss = lattice.losses + lattice.offset[0]  # type: ignore[attr-defined]
        return float(
            lattice.infinite[0] + (lattice.mass[0] * np.maximum(-np.expm1(epsilon - loss), 0)).sum()
        )

    for lattice in (above, graded):
        assert lattice.mass.min() >= 0
        assert lattice.mass.sum() + lattice.infinite[0] == pytest.approx(1, abs=1e-9)
        assert (lattice.mass[0] * np.exp(-lattice.losses - lattice.offset[0])).sum() <= 1 + 1e-9
    assert below.mass.min() >= 0
    for epsilon in np.linspace(-2, 3, 53):
        low, middle, high, wide = (delta(x, float(epsilon)) for x in (below, fine, above, graded))
        assert low - below.missing[0] <= middle
        # every cell has its own slack, and the finer lattice has more cells
        assert middle <= high + 1e-9
        assert high <= wide + 1e-9


def test_bad_input_is_refused_at_once() -> None:
    from discreet.errors import InvalidParameter, NoTheorem

    for make in (
        lambda: gaussian_pld(float("nan")),
        lambda: gaussian_pld(-1.0),
        lambda: gaussian_pld(0),
        lambda: laplace_pld(float("inf")),
        lambda: laplace_pld(-2),
        lambda: randomized_response_pld(1.0, 1),
        lambda: geometric_pld(1.0, 0),
        lambda: approx_pld(1.0, 1.0),
        lambda: approx_pld(-1.0),
        lambda: approx_pld(1.0, -0.1),
        lambda: poisson_subsampled(gaussian_pld(1.0), 0.0),
        lambda: poisson_subsampled(gaussian_pld(1.0), 1.5),
        lambda: fixed_size_subsampled(gaussian_pld(1.0), float("nan")),
        lambda: poisson_subsampled(gaussian_pld(1e6), 0.01),
        lambda: PLD(()),
        lambda: gaussian_pld(1.0).self_compose(0),
        lambda: gaussian_pld(1.0).self_compose(-3),
        lambda: gaussian_pld(1.0).self_compose(True),
        lambda: gaussian_pld(1.0).self_compose(10**13),
        lambda: discrete_pld([0.5, 0.6], [0.5, 0.5]),
        lambda: discrete_pld([1.0, 0.0], [0.0, 1.0]),
        lambda: gaussian_pld(1e12),
        lambda: laplace_pld(1.0).epsilon_at(0.0),
        lambda: laplace_pld(1.0).epsilon_at(1.0),
        lambda: laplace_pld(1.0).epsilon_at(float("nan")),
        lambda: laplace_pld(1.0).delta_at(-0.1),
        lambda: laplace_pld(1.0).delta_at(float("inf")),
        lambda: laplace_pld(1.0).tradeoff(1.2),
        lambda: laplace_pld("1"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidParameter):
            make()
    for make in (
        lambda: poisson_subsampled(gaussian_pld(1.0).self_compose(2), 0.1),
        lambda: poisson_subsampled(poisson_subsampled(gaussian_pld(1.0), 0.1), 0.1),
        lambda: fixed_size_subsampled(discrete_pld([0.7, 0.3], [0.2, 0.8]), 0.1),
        lambda: pld_of("gaussian"),  # type: ignore[arg-type]
    ):
        with pytest.raises(NoTheorem):
            make()
