"""Exact tests of one proportion: the released laws, sizes computed (not simulated), and optimality
against linear programs over all private tests.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.gaussian import gdp_delta
from discreet.inference.counts.binomial import NoisyCount, binomial_law, normal_p_value
from discreet.inference.counts.most_powerful import (
    NOISELESS,
    critical_value,
    critical_values,
    power_at,
    randomised_power,
    randomised_share,
    rejection,
    two_armed_power,
    unbiased_test,
)
from discreet.inference.counts.tulap import (
    ReleasedNoise,
    released_noise,
    released_value,
    truncation,
    tulap_cdf,
    tulap_quantile,
)
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import TulapNoise
from discreet.testing import SeededSource
from discreet.trusted.noise.sampling import draw

ONE = Fraction(1)
GAUSSIAN = gaussian_noise(L2(ONE), ONE)
GEOMETRIC = geometric_noise(L1(ONE), Fraction(1, 2))
TULAP = TulapNoise(L1(ONE), Fraction(2), 32)
SHARES = [1e-9, 1e-4, 0.003, 0.02, 0.1, 0.3, 0.5, 0.77, 0.95, 0.999, 1 - 1e-9]
NOISES = [
    ReleasedNoise("tulap", 1.0),
    ReleasedNoise("tulap", 10.0),
    ReleasedNoise("tulap", 0.2),
    ReleasedNoise("tulap", 1.0, 0.0, truncation(1.0, 0.01)),
    ReleasedNoise("geometric", 1.0),
    ReleasedNoise("geometric", 5.0),
    ReleasedNoise("geometric", 0.3),
    ReleasedNoise("gaussian", 1.0, 2.0**-10),
    ReleasedNoise("gaussian", 6.0, 2.0**-7),
    ReleasedNoise("gaussian", 2.0, 1.0),
]
NAMES = [f"{noise.kind} {noise.spread:g} {noise.step:g}" for noise in NOISES]


@pytest.mark.parametrize("rows", [1, 5, 100, 20_000, 10**6])
@pytest.mark.parametrize("theta", [1e-6, 0.01, 0.4, 0.999])
def test_the_binomial_law(rows: int, theta: float) -> None:
    x, weights = binomial_law(rows, theta)
    reference = stats.binom.pmf(x, rows, theta)
    np.testing.assert_allclose(weights, reference, rtol=1e-10, atol=1e-17)
    assert float(weights.sum()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("b", [0.0, 1e-9, 0.1, math.exp(-0.5), math.exp(-1e-4)])
@pytest.mark.parametrize("q", [0.0, 0.05])
def test_tulap_quantiles_invert_the_distribution_function(b: float, q: float) -> None:
    u = np.linspace(1e-7, 1 - 1e-7, 4001)
    np.testing.assert_allclose(tulap_cdf(tulap_quantile(u, b, q), b, q), u, atol=1e-12)


@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
def test_tails_belong_to_a_symmetric_law_on_its_grid(noise: ReleasedNoise) -> None:
    """P(N ≥ t) + P(N < t) = 1, quantiles of uniform numbers have these tails,
    and the law is symmetric.
    """
    spacing = 1.0 if noise.kind == "geometric" else noise.step
    places = (
        (np.arange(-2000, 2001) + (0.5 if noise.kind == "tulap" else 0.0)) * spacing
        if spacing
        else np.linspace(-9, 9, 401)
    )
    np.testing.assert_allclose(noise.above(places) + noise.below(places - spacing), 1.0, atol=1e-12)
    np.testing.assert_allclose(noise.above(places), noise.below(-places), atol=1e-15)
    u = (np.arange(20_000) + 0.5) / 20_000
    drawn = noise.quantile(u)
    for t in (-2.3, -0.5, 0.0, 0.4, 1.0, 3.7):
        assert float(np.mean(drawn >= t)) == pytest.approx(float(noise.above(t)), abs=2e-4)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "mechanism", [GAUSSIAN, GEOMETRIC, TULAP], ids=lambda mechanism: mechanism.kind
)
def test_the_law_is_the_one_that_is_released(mechanism: TulapNoise) -> None:
    """Against the library's own sampler: Kolmogorov's limit at 1e-9;
    a law off by 30 % is rejected.
    """
    size = 20_000
    noise = released_noise(mechanism)
    drawn = np.array(
        [
            released_value(mechanism, int(value))
            for value in draw(mechanism, size, SeededSource("binomial"))
        ]
    )
    limit = math.sqrt(math.log(2 / 1e-9) / (2 * size))
    places = np.unique(drawn)
    seen = np.array([np.mean(drawn >= place) for place in places[:: max(1, places.size // 400)]])
    at = places[:: max(1, places.size // 400)]
    assert np.max(np.abs(seen - noise.above(at))) < limit
    wrong = ReleasedNoise(noise.kind, 1.3 * noise.spread, noise.step)
    assert np.max(np.abs(seen - wrong.above(at))) > limit


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES, ids=NAMES)
@pytest.mark.parametrize("rows", [1, 5, 30, 100])
def test_size_never_exceeds_the_level(noise: ReleasedNoise, rows: int) -> None:
    """Computed at every null of a grid, and for smaller shares than the null;
    continuous noise attains it.
    """
    for null in SHARES:
        for alpha in (0.01, 0.05, 0.3):
            limit = critical_value(rows, null, noise, alpha)
            size = rejection(rows, null, noise, -math.inf, limit)
            assert size <= alpha + 1e-9
            assert NoisyCount(limit, rows, noise).p_value(null, "greater") <= alpha + 1e-9
            assert rejection(rows, null / 2, noise, -math.inf, limit) <= size + 1e-12
            if noise.kind == "tulap":
                assert size == pytest.approx(alpha, abs=1e-9)
            low, high = critical_values(rows, null, noise, alpha)
            assert rejection(rows, null, noise, low, high) <= alpha + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("noise", [noise for noise in NOISES if noise.kind == "geometric"], ids=str)
@pytest.mark.parametrize("rows", [0, 5, 40])
def test_sizes_on_the_lattice_by_brute_force(noise: ReleasedNoise, rows: int) -> None:
    """P(p ≤ α) summed over every whole release, for all alternatives and the symmetric test."""
    values = np.arange(-round(30 * noise.spread) - 3, rows + round(30 * noise.spread) + 4)
    for null in (0.0, 0.02, 0.25, 0.5, 0.9, 1.0):
        x, weights = binomial_law(rows, null)
        mass = np.array(
            [
                float(weights @ (noise.above(value - x) - noise.above(value - x + 1)))
                for value in values
            ]
        )
        counts = [NoisyCount(float(value), rows, noise) for value in values]
        tests = [
            [count.p_value(null, side) for count in counts]
            for side in ("greater", "less", "two-sided")
        ] + [[count.symmetric_p_value(null) for count in counts]]
        for p_values in tests:
            for alpha in (0.01, 0.05, 0.2, 0.5):
                assert float(mass[np.array(p_values) <= alpha].sum()) <= alpha + 1e-9


def test_treating_rounded_noise_as_continuous_has_the_wrong_size() -> None:
    """The positive control: Gaussian noise rounded to whole counts and tested as continuous exceeds
    its level; the exact test does not.
    """
    rounded, smooth = ReleasedNoise("gaussian", 0.5, 1.0), ReleasedNoise("gaussian", 0.5)
    worst = max(
        rejection(rows, null, rounded, -math.inf, critical_value(rows, null, smooth, 0.05))
        for rows in (10, 20, 30)
        for null in (0.02, 0.05, 0.1)
    )
    assert worst > 0.06
    assert all(
        rejection(rows, null, rounded, -math.inf, critical_value(rows, null, rounded, 0.05))
        <= 0.05 + 1e-9
        for rows in (10, 20, 30)
        for null in (0.02, 0.05, 0.1)
    )


def test_the_symmetric_test_has_exact_size() -> None:
    noise = ReleasedNoise("tulap", 1.0)
    for rows, null in ((10, 0.1), (30, 0.4), (100, 0.95)):
        low, high = critical_values(rows, null, noise, 0.05, symmetric=True)
        assert rejection(rows, null, noise, low, high) == pytest.approx(0.05, abs=1e-9)
        assert NoisyCount(high, rows, noise).symmetric_p_value(null) == pytest.approx(
            0.05, abs=1e-9
        )


def best_private_power(
    rows: int,
    null: float,
    share: float,
    alpha: float,
    slopes: list[tuple[float, float]],
    *,
    unbiased: bool = False,
) -> float:
    """The greatest power of any φ with φ(x) ≤ e^ε·φ(x ± 1) + δ, and the same for 1 − φ, for all
    (e^ε, δ) of `slopes`: a linear program (HiGHS).
    """
    x = np.arange(rows + 1)
    at_null, at_share = stats.binom.pmf(x, rows, null), stats.binom.pmf(x, rows, share)
    matrix, limits = [], []
    for factor, delta in slopes:
        for here in range(rows):
            for one, other in ((here, here + 1), (here + 1, here)):
                row = np.zeros(rows + 1)
                row[one], row[other] = 1.0, -factor
                matrix.append(row)
                limits.append(delta)
                matrix.append(-row)  # (1 − φ(one)) ≤ factor·(1 − φ(other)) + δ
                limits.append(factor - 1 + delta)
    equal = ([at_null, at_null * (x - rows * null)], [alpha, 0.0]) if unbiased else (None, None)
    if not unbiased:
        matrix.append(at_null)
        limits.append(alpha)
    found = linprog(
        -at_share,
        A_ub=np.array(matrix),
        b_ub=np.array(limits),
        A_eq=equal[0],
        b_eq=equal[1],
        bounds=(0, 1),
        method="highs",
    )
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize(
    ("rows", "null", "share", "epsilon", "delta"),
    [
        (1, 0.5, 0.9, 1.0, 0.0),
        (8, 0.3, 0.6, 0.5, 0.0),
        (20, 0.8, 0.9, 1.0, 0.0),
        (15, 0.1, 0.3, 2.0, 0.0),
        (10, 0.4, 0.6, 1.0, 0.01),
        (12, 0.5, 0.8, 0.3, 0.05),
    ],
)
def test_one_sided_tests_are_the_most_powerful_that_privacy_allows(
    rows: int, null: float, share: float, epsilon: float, delta: float
) -> None:
    noise = ReleasedNoise("tulap", 1 / epsilon, 0.0, truncation(epsilon, delta) if delta else 0.0)
    best = best_private_power(rows, null, share, 0.05, [(math.exp(epsilon), delta)])
    assert power_at(rows, null, share, noise, 0.05, "greater") == pytest.approx(best, abs=2e-8)
    assert (
        power_at(rows, null, share, ReleasedNoise("geometric", 1 / epsilon), 0.05, "greater")
        <= best + 1e-9
    )
    other = ReleasedNoise("tulap", 1.1 / epsilon)
    assert power_at(rows, null, share, other, 0.05, "greater") < best - 1e-5


@pytest.mark.parametrize(
    ("rows", "null", "share", "mu"), [(6, 0.3, 0.7, 1.0), (12, 0.5, 0.75, 0.5)]
)
def test_gaussian_noise_gives_the_most_powerful_test_of_gaussian_privacy(
    rows: int, null: float, share: float, mu: float
) -> None:
    """The program with many of the (ε, δ) that make up μ-GDP is an upper bound that closes in on
    the Gaussian test.
    """
    slopes = [
        (math.exp(epsilon), gdp_delta(Fraction(mu), Fraction(epsilon)))
        for epsilon in np.linspace(0, 4, 25).tolist()
    ]
    best = best_private_power(
        rows, null, share, 0.05, [(factor, float(delta)) for factor, delta in slopes]
    )
    ours = power_at(rows, null, share, ReleasedNoise("gaussian", 1 / mu), 0.05, "greater")
    assert best - 2e-3 < ours <= best + 1e-8


@pytest.mark.parametrize(("null", "share"), [(0.75, 0.5), (0.3, 0.6)])
def test_the_unbiased_test_is_the_best_unbiased_one(null: float, share: float) -> None:
    noise = ReleasedNoise("tulap", 1.0)
    k, m = unbiased_test(10, null, noise, 0.1)
    best = best_private_power(10, null, share, 0.1, [(math.e, 0.0)], unbiased=True)
    assert two_armed_power(10, share, noise, k, m) == pytest.approx(best, abs=1e-7)
    grid = [two_armed_power(10, theta, noise, k, m) for theta in np.linspace(0.01, 0.99, 99)]
    assert min(grid) >= 0.1 - 1e-9


def test_the_unbiased_test_is_no_post_processing_of_a_count() -> None:
    """If φ(x) = E g(x + G), G geometric, then (1 + b²)·φ(x) − b·(φ(x−1) + φ(x+1)) = (1−b)²·g(x) ≥
    0; at its centre it is negative. One-sided tests pass.
    """
    noise = ReleasedNoise("tulap", 1.0)
    b, x = noise.b, np.arange(-10.0, 21.0)
    k, m = unbiased_test(10, 0.75, noise, 0.1)

    def post_processing(phi: np.ndarray) -> np.ndarray:
        return np.asarray(((1 + b * b) * phi[1:-1] - b * (phi[:-2] + phi[2:])) / (1 - b) ** 2)

    assert post_processing(noise.above(m - np.abs(x - k))).min() < -0.01
    one_sided = post_processing(noise.above(9.3 - x))
    assert one_sided.min() > -1e-12
    assert one_sided.max() < 1 + 1e-12


def test_power_grows_with_rows_and_with_privacy_spent() -> None:
    noise = ReleasedNoise("tulap", 2.0)
    by_rows = [power_at(rows, 0.4, 0.5, noise, 0.05, "greater") for rows in range(1, 120, 7)]
    assert np.all(np.diff(by_rows) > 0)
    by_spend = [
        power_at(50, 0.4, 0.55, ReleasedNoise("tulap", spread), 0.05)
        for spread in (50.0, 5.0, 1.0, 0.3)
    ]
    assert np.all(np.diff(by_spend) > 0)
    assert by_spend[-1] < power_at(50, 0.4, 0.55, NOISELESS, 0.05)
    assert randomised_power(50, 0.4, 0.55, ReleasedNoise("tulap", 1.0), 0.05) < by_spend[2]


def test_randomised_response_spends_what_the_noise_spends() -> None:
    assert randomised_share(1.0, ReleasedNoise("tulap", 1 / math.log(3))) == pytest.approx(0.75)
    truth = randomised_share(1.0, ReleasedNoise("gaussian", 1.0))
    # on the trade-off curve G_1
    assert stats.norm.cdf(stats.norm.ppf(truth) - 1.0) == pytest.approx(1 - truth)
    assert randomised_share(0.3, ReleasedNoise("tulap", 1e-4)) == 0.3


def test_values_outside_the_range_are_used_as_they_are() -> None:
    """Clamping to [0, n] first would never reject a small null from below (reference.md M3)."""
    noise = ReleasedNoise("tulap", 1.0)
    assert NoisyCount(-4.0, 30, noise).p_value(0.02, "less") < 0.03
    assert NoisyCount(0.0, 30, noise).p_value(0.02, "less") > 0.2
    assert NoisyCount(-4.0, 30, noise).p_value(0.02, "greater") > 0.97
    assert normal_p_value(NoisyCount(-4.0, 30, noise), 0.02, "less") < 0.01


def test_without_rows_p_values_are_the_noises_own() -> None:
    noise = ReleasedNoise("tulap", 1.0)
    for null in (0.0, 0.4, 1.0):
        assert NoisyCount(1.3, 0, noise).p_value(null, "greater") == pytest.approx(
            float(noise.above(1.3))
        )
