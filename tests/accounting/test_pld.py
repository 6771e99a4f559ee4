"""PLD as an object: consistency, both orders, calibration, extremes,
and the bounds of the numerics.
"""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.loss_distributions.build import (
    approx_pld,
    exponential_pld,
    fixed_size_subsampled,
    gaussian_pld,
    laplace_pld,
    poisson_subsampled,
    randomized_response_pld,
)
from discreet.accounting.loss_distributions.calibration import calibrate_sigma
from discreet.accounting.loss_distributions.curve import PLD, compose_all
from discreet.accounting.loss_distributions.lattice import place
from discreet.accounting.loss_distributions.laws import UNIT, law_of
from discreet.accounting.loss_distributions.pairs import Gaussian, Sampled
from discreet.accounting.loss_distributions.spectrum import compose
from discreet.errors import InvalidParameter


def sgd(sigma: float, rate: float, steps: int) -> PLD:
    return poisson_subsampled(gaussian_pld(1 / sigma), rate).self_compose(steps)


PARTS = [
    gaussian_pld(0.2),
    laplace_pld(0.15),
    randomized_response_pld(0.2, 3),
    exponential_pld(0.3),
    sgd(1.0, 0.05, 1),
    poisson_subsampled(laplace_pld(1.0), 0.1),
    fixed_size_subsampled(gaussian_pld(0.8), 0.1),
    approx_pld(0.1, 1e-9),
]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.permutations(range(len(PARTS))), st.integers(1, 30))
def test_composition_is_associative_and_commutative(order: list[int], times: int) -> None:
    parts = [PARTS[i] for i in order[:4]]
    left = parts[0].compose(parts[1]).compose(parts[2]).compose(parts[3]).self_compose(times)
    right = parts[3].compose(parts[2].compose(parts[1].compose(parts[0])))
    again = compose_all([(right, times)])
    assert left.epsilon_at(1e-6) == pytest.approx(again.epsilon_at(1e-6), rel=2e-4)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.sampled_from(PARTS), st.sampled_from(PARTS), st.integers(1, 50))
def test_composing_more_never_costs_less(first: PLD, second: PLD, times: int) -> None:
    low, high = first.self_compose(times).compose(second).epsilon_bounds(1e-6, accuracy=1e-2)
    alone, _ = first.self_compose(times).epsilon_bounds(1e-6, accuracy=1e-2)
    assert low <= high
    assert alone <= high * (1 + 1e-9)


@pytest.mark.slow
def test_more_noise_and_rarer_sampling_never_cost_more() -> None:
    by_noise = [sgd(sigma, 0.02, 500).epsilon_bounds(1e-6) for sigma in (0.7, 0.9, 1.3, 2.0)]
    by_rate = [sgd(1.0, rate, 500).epsilon_bounds(1e-6) for rate in (0.1, 0.05, 0.01)]
    for curve in (by_noise, by_rate):
        for (low, _), (_, high) in itertools.pairwise(curve):
            assert high < low
    assert sgd(1.0, 0.1, 500).epsilon_at(1e-6) < gaussian_pld(1.0).self_compose(500).epsilon_at(
        1e-6
    )


def test_epsilon_and_delta_invert_each_other() -> None:
    for pld in (
        sgd(1.0, 0.02, 300),
        laplace_pld(0.1).self_compose(60),
        randomized_response_pld(0.3).self_compose(20),
    ):
        for delta in (1e-3, 1e-7, 1e-12):
            epsilon = pld.epsilon_at(delta)
            assert pld.delta_at(epsilon) == pytest.approx(delta, rel=2e-2)
            assert pld.delta_at(epsilon * 0.98) > delta


def test_the_remove_order_decides_for_sampled_gaussians_and_both_are_looked_at() -> None:
    """The add order alone would report less; `delta_at` is the greater of the two."""
    pld = sgd(0.8, 0.05, 50)
    remove, add = (
        compose(
            [place(law, 2e-3, 1e-16, "above") for law in laws], tilt=2.0, spread=1.0, side="above"
        ).delta(2.0)
        for laws in pld._orders()
    )
    assert add < 0.5 * remove
    assert pld.delta_at(2.0) == pytest.approx(remove, rel=2e-2)


def test_tradeoff_lies_below_and_near_the_gaussian_it_is() -> None:
    from discreet.accounting.gaussian import tradeoff_gdp

    blocked = gaussian_pld(0.5).self_compose(4).compose(approx_pld(0.0, 0.0))
    for alpha in (0.001, 0.05, 0.3, 0.9):
        found, exact = blocked.tradeoff(alpha), tradeoff_gdp(1.0, alpha)
        assert found <= exact + 1e-12
        assert found >= exact - 1e-3
    assert blocked.tradeoff(0.0) <= 1.0
    assert blocked.tradeoff(1.0) == 0.0


@pytest.mark.slow
def test_calibrated_noise_meets_its_target_barely() -> None:
    for epsilon, delta, steps, rate in (
        (2.0, 1e-5, 10_000, 0.01),
        (0.5, 1e-8, 100, 0.1),
        (8.0, 1e-6, 1000, 0.02),
    ):
        sigma = calibrate_sigma(epsilon, delta, steps=steps, sampling_rate=rate)
        assert sgd(sigma, rate, steps).delta_at(epsilon) <= delta
        assert sgd(sigma * (1 - 5e-5), rate, steps).delta_at(epsilon) > delta
        assert sgd(sigma * 0.998, rate, steps).epsilon_bounds(delta)[0] > epsilon * 0.999
    from discreet.accounting.gaussian import mu_for_approx

    assert calibrate_sigma(1.0, 1e-5, steps=1) == pytest.approx(
        1 / mu_for_approx(1, 1e-5), rel=1e-4
    )  # type: ignore[arg-type]
    assert calibrate_sigma(
        2.0, 1e-5, steps=500, sampling_rate=0.05, scheme="fixed"
    ) > calibrate_sigma(2.0, 1e-5, steps=500, sampling_rate=0.05)


def test_calibration_refuses_nonsense() -> None:
    for bad in (
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"delta": 0.0},
        {"delta": 1.0},
        {"steps": 0},
        {"sampling_rate": 0.0},
        {"sampling_rate": 2.0},
        {"scheme": "shuffle"},
    ):
        with pytest.raises(InvalidParameter):
            calibrate_sigma(
                **{"epsilon": 1.0, "delta": 1e-5, "steps": 10, "sampling_rate": 0.1, **bad}
            )


@pytest.mark.slow
def test_a_billion_steps_at_once() -> None:
    start = time.process_time()
    response = randomized_response_pld(1e-5).self_compose(10**9)
    low, high = response.epsilon_bounds(1e-6)
    assert low < 1.36757 < high < low * 1.0001  # GDP(√T·ε₀ = 0.316): 1.3676 to five digits
    assert gaussian_pld(1e-5).self_compose(10**9).epsilon_at(1e-6) == pytest.approx(high, rel=1e-4)
    assert math.isfinite(sgd(2.0, 1e-4, 10**9).epsilon_at(1e-6))
    assert sgd(1.0, 0.01, 10**9).epsilon_at(1e-6) > 1e4
    assert time.process_time() - start < 120  # one after the other the steps would take hours


@pytest.mark.slow
def test_extreme_inputs_are_answered() -> None:
    assert sgd(1.0, 1e-300, 10).epsilon_at(1e-10) == 0.0
    assert laplace_pld(500.0).epsilon_at(1e-5) <= 500.0
    assert randomized_response_pld(400.0).delta_at(399.0) <= 1.0
    assert gaussian_pld(1e6).epsilon_at(1e-6) > 4e11
    assert sgd(1.0, 0.01, 1000).delta_at(1e9) < 1e-30
    assert sgd(1.0, 0.1, 10).epsilon_at(0.9) == 0.0
    assert approx_pld(1.0, 1e-3).epsilon_at(1e-4) == math.inf
    assert approx_pld(0.0, 0.0).epsilon_at(1e-9) == 0.0
    tiny = sgd(0.8, 1e-3, 1000).epsilon_bounds(1e-15)
    assert tiny[0] <= tiny[1] <= tiny[0] * 1.01


def test_transforms_are_as_accurate_as_assumed() -> None:
    """The bound 8·log₂N roundoffs of Σ|x| at every frequency,
    against the same transform in extended precision.
    """
    from scipy import fft

    rng = np.random.default_rng(3)
    for size in (2**10, 2**16, 15 * 2**10, 11 * 7 * 2**8, 3**9):
        values = rng.random(size) ** 8
        exact = fft.rfft(values.astype(np.longdouble))
        worst = float(np.max(np.abs(fft.rfft(values) - exact)))
        assert worst <= 8 * UNIT * math.log2(size) * values.sum() / 4
        back = float(np.max(np.abs(fft.irfft(exact.astype(complex), size) - values)))
        assert back <= 8 * UNIT * math.log2(size) * float(np.abs(exact).sum()) * 2 / size


def test_error_bounds_cover_the_errors() -> None:
    """The same lattice composed by FFT and by repeated direct convolution,
    whose relative error is a few hundred roundoffs.
    """
    law = law_of([Sampled(Gaussian(1.0), 0.2, "poisson")], [32], "remove")
    lattice = place(law, 0.02, 1e-16, "above")
    direct = lattice.mass[0]
    for _ in range(5):
        direct = np.convolve(direct, direct)
    losses = 0.02 * (32 * lattice.points[0] + np.arange(direct.size))
    for tilt, epsilon in ((0.0, 1.0), (1.0, 3.0), (2.0, 4.0)):
        above = compose([lattice], tilt=tilt, spread=1.2, side="above")
        below = compose([lattice], tilt=tilt, spread=1.2, side="below")
        exact = float((direct * np.maximum(-np.expm1(epsilon - losses), 0)).sum()) + float(
            above.infinite
        )
        assert below.delta(epsilon) <= exact <= above.delta(epsilon)
        assert above.delta(epsilon) - below.delta(epsilon) <= 1e-5 * exact + 1e-7


@pytest.mark.slow
def test_many_rows_take_the_short_way_and_agree() -> None:
    """Hundreds of different rows (few frequencies, matrix products) against the same rows in
    groups, composed as lattices one by one.
    """
    rates = [0.01 + 0.0001 * k for k in range(120)]
    together = compose_all((poisson_subsampled(gaussian_pld(0.8), rate), 1) for rate in rates)
    grouped = compose_all(
        (poisson_subsampled(gaussian_pld(0.8), rate), 40)
        for rate in (rates[20], rates[60], rates[100])
    )
    low, high = together.epsilon_bounds(1e-6, accuracy=2e-3)
    assert low <= high <= low * 1.005
    assert high == pytest.approx(grouped.epsilon_at(1e-6), rel=5e-3)


def test_importing_discreet_stays_light() -> None:
    code = (
        "import sys, discreet; import discreet.accounting; print(any(name.split('.')[0] == 'scipy' "
        "for name in sys.modules), 'discreet.accounting.loss_distributions' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert found == ["False", "False"]
