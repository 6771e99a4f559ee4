"""Approximations: their reference values, the settings where they are wrong,
and that nothing can charge them.
"""

import math

import pytest

import discreet as dp
from discreet.accounting.approximations import (
    Approximation,
    classical_gaussian_sigma_approximation,
    clt_mu_approximation,
    clt_mu_subsampled_approximation,
)
from discreet.accounting.composition import basic, compose, optimal
from discreet.accounting.guarantees import spend_mu_squared
from discreet.accounting.renyi.rdp import compose_renyi, zcdp_of
from discreet.accounting.subsampling import FixedSizeSampling, PoissonSampling, amplify
from discreet.trusted.losses.pricing import Price, open_box, price_of_spend

RATE = 0.004266666666666667


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [
        (0.1, 1e-5, 48.448052626053894),
        (1, 1e-5, 4.844805262605389),
        (2, 1e-8, 3.0531806608245913),
        (10, 1e-10, 0.6818943390475487),
    ],
)
def test_classical_gaussian_reference_values(epsilon, delta, sigma):
    assert classical_gaussian_sigma_approximation(
        epsilon=epsilon, delta=delta
    ).value == pytest.approx(sigma, rel=1e-12)


def test_trap_the_classical_gaussian_at_a_large_epsilon():
    """At ε = 10, δ = 1e-10 its σ is below the least that works, 0.683;
    at ε = 10, δ = 1e-5 the true δ is 2.27e-5.
    """
    sigma = classical_gaussian_sigma_approximation(epsilon=10, delta=1e-10).value
    assert sigma < 0.6830439672274812
    assert dp.GDP(1 / sigma).delta_at(10) > 1e-10
    assert dp.GDP(
        1 / classical_gaussian_sigma_approximation(epsilon=10, delta=1e-5).value
    ).delta_at(10) == pytest.approx(2.27e-5, rel=3e-3)
    assert (
        dp.GDP(1 / classical_gaussian_sigma_approximation(epsilon=0.5, delta=1e-5).value).delta_at(
            0.5
        )
        < 0.309e-5
    )


@pytest.mark.parametrize(
    ("sigma", "steps", "mu", "epsilon"),
    [
        (1.3, 3516, 0.22728628834317083, 0.834511645328404),
        (0.7, 10547, 1.1339391882883285, 5.066191005220677),
    ],
)
def test_clt_reference_values(sigma, steps, mu, epsilon):
    found = clt_mu_subsampled_approximation(
        noise_multiplier=sigma, sampling=PoissonSampling(RATE), steps=steps
    )
    assert found.value == pytest.approx(mu, abs=1e-9)
    assert dp.GDP(found.value).epsilon_at(1e-5) == pytest.approx(epsilon, abs=1e-8)


def test_trap_the_central_limit_under_reports():
    """DP-SGD with σ = 0.7: the limit says 5.07,
    a certified PLD 5.64 and its optimistic twin 5.11.
    """
    limit = clt_mu_subsampled_approximation(
        noise_multiplier=0.7, sampling=PoissonSampling(RATE), steps=10547
    )
    assert dp.GDP(limit.value).epsilon_at(1e-5) < 5.07 < 5.111574570142356


def test_clt_of_composed_pure_releases():
    assert clt_mu_approximation([1 / math.sqrt(10)] * 10).value == pytest.approx(
        1.0041718781012752, abs=1e-10
    )
    assert clt_mu_approximation([0.1] * 100).value == pytest.approx(1.00042, abs=1e-5)
    curve, mu = (
        optimal(dp.PureDP(1 / math.sqrt(10)), times=10),
        clt_mu_approximation([1 / math.sqrt(10)] * 10).value,
    )
    # no upper bound
    assert any(curve.delta_at(e) > dp.GDP(mu).delta_at(e) for e in (0.0, 0.1, 0.5, 1.0))


def test_clt_of_fixed_size_samples():
    """Against the formula with √2 written out (reference.md E8),
    and the ratio to Poisson sampling for weak signals.
    """
    found = clt_mu_subsampled_approximation(
        noise_multiplier=1, sampling=FixedSizeSampling(100, 10000), steps=1000
    ).value
    normal = dp.GDP(1).tradeoff(0.5)  # Φ(−1)
    assert normal == pytest.approx(0.15865525393145707)
    assert found == pytest.approx(
        0.01 * math.sqrt(2 * 1000 * (math.e * 0.9331927987311419 + 3 * 0.3085375387259869 - 2)),
        rel=1e-12,
    )


def test_nothing_can_charge_an_approximation():
    limit = clt_mu_approximation([0.1] * 10)
    for charge in (
        lambda: open_box(limit),
        lambda: spend_mu_squared(limit),
        lambda: price_of_spend(limit, box=Price()),
        lambda: float(limit),
        lambda: zcdp_of(limit),
    ):
        with pytest.raises(TypeError):
            charge()
    for refuse in (
        lambda: compose(limit),
        lambda: dp.GDP(limit),
        lambda: basic(limit),
        lambda: compose_renyi(limit),
        lambda: optimal(limit),
    ):
        with pytest.raises((TypeError, dp.InvalidParameter)):
            refuse()
    with pytest.raises((TypeError, dp.DiscreetError)):
        amplify(limit, PoissonSampling(0.1), dp.AddRemove())
    assert not isinstance(limit, dp.GDP)
    assert "no guarantee" in str(limit)
    assert isinstance(limit, Approximation)


def test_bad_input_and_extremes():
    for bad in (0, -1, math.nan, math.inf, None, True):
        with pytest.raises(dp.InvalidParameter):
            classical_gaussian_sigma_approximation(epsilon=bad, delta=1e-5)
        with pytest.raises(dp.InvalidParameter):
            clt_mu_subsampled_approximation(
                noise_multiplier=bad, sampling=PoissonSampling(0.1), steps=10
            )
        with pytest.raises(dp.InvalidParameter):
            clt_mu_approximation([bad])
    for call in (
        lambda: clt_mu_approximation([]),
        lambda: clt_mu_subsampled_approximation(noise_multiplier=1, sampling=0.1, steps=10),
        lambda: classical_gaussian_sigma_approximation(epsilon=1, delta=1),
    ):
        with pytest.raises(dp.InvalidParameter):
            call()
    assert (
        clt_mu_subsampled_approximation(
            noise_multiplier=1e-12, sampling=PoissonSampling(0.1), steps=10**9
        ).value
        == math.inf
    )
    assert (
        clt_mu_subsampled_approximation(
            noise_multiplier=1e-200, sampling=FixedSizeSampling(1, 10), steps=1
        ).value
        == math.inf
    )
    assert (
        clt_mu_subsampled_approximation(
            noise_multiplier=1e6, sampling=FixedSizeSampling(1, 10), steps=10**9
        ).value
        < 1
    )
    assert clt_mu_approximation([1e6]).value > 1e100
