"""One proportion against values computed independently (mpmath, linear programs, quadrature), with
their tolerances; ids in each table.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtri

from discreet.inference.counts.binomial import NoisyCount, normal_p_value
from discreet.inference.counts.fiducial_share import FiducialShare
from discreet.inference.counts.most_powerful import (
    centred_offset,
    power_at,
    rejection,
    two_armed_power,
    unbiased_test,
)
from discreet.inference.counts.tulap import ReleasedNoise, truncation, tulap_cdf

CUT = truncation(1.0, 0.01)


def tulap(epsilon: float, delta: float = 0.0) -> ReleasedNoise:
    return ReleasedNoise("tulap", 1 / epsilon, 0.0, truncation(epsilon, delta) if delta else 0.0)


# tulap_cdf_*, tulap_ptulap_example, tulap_trunc_cdf_*
@pytest.mark.parametrize(
    ("t", "b", "q", "value"),
    [
        (-2.3, math.exp(-1), 0.0, 0.048905414708421836),
        (1.7, math.exp(-1), 0.0, 0.9135701314718091),
        (0.5, math.exp(-2), 0.0, 0.8807970779778824),
        (0.5, 0.3, 0.05, 0.7834008097165992),
        (-2.3, math.exp(-1), CUT, 0.04365488388373029),
        (1.7, math.exp(-1), CUT, 0.9183838951352787),
    ],
)
def test_tulap_distribution_function(t: float, b: float, q: float, value: float) -> None:
    assert float(tulap_cdf(t, b, q)) == pytest.approx(value, abs=1e-12)


def test_tulap_truncation_and_variance() -> None:
    """tulap_q_e1_d01, tulap_var_e1."""
    assert pytest.approx(0.011505614148730779, abs=1e-12) == CUT
    assert tulap(1.0).variance == pytest.approx(1.924680521748918, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "null", "share", "epsilon", "delta", "value"),
    [  # ump_power_*
        (30, 0.8, 0.9, 0.015625, 0.0, 0.052386143436592786),
        (30, 0.8, 0.9, 0.0625, 0.0, 0.06006644630141281),
        (30, 0.8, 0.9, 0.25, 0.0, 0.09932768364962906),
        (30, 0.8, 0.9, 1.0, 0.0, 0.3039826454627936),
        (16, 0.9, 0.95, 1.0, 0.0, 0.08502420019685474),
        (64, 0.9, 0.95, 1.0, 0.0, 0.30623559024228475),
        (256, 0.9, 0.95, 1.0, 0.0, 0.8975472681006712),
        (10, 0.4, 0.6, 1.0, 0.01, 0.2514923707836621),
        (100, 0.6, 0.7, 0.1, 0.0, 0.13380768539815363),
    ],
)
def test_power_of_the_most_powerful_test(
    n: int, null: float, share: float, epsilon: float, delta: float, value: float
) -> None:
    assert power_at(n, null, share, tulap(epsilon, delta), 0.05, "greater") == pytest.approx(
        value, abs=1e-8
    )
    assert power_at(n, 1 - null, 1 - share, tulap(epsilon, delta), 0.05, "less") == pytest.approx(
        value, abs=1e-8
    )


# ump_pval_right_*, ump_pval_two_*
@pytest.mark.parametrize(
    ("z", "n", "null", "epsilon", "right", "two"),
    [
        (7.3, 10, 0.5, 1.0, 0.12971475505110483, 0.25942951010220966),
        (26.5, 30, 0.8, 0.25, 0.30184701354984256, 0.6021625993385141),
    ],
)
def test_p_values(z: float, n: int, null: float, epsilon: float, right: float, two: float) -> None:
    count = NoisyCount(z, n, tulap(epsilon))
    assert count.p_value(null, "greater") == pytest.approx(right, abs=1e-10)
    assert count.p_value(null, "less") == pytest.approx(1 - right, abs=1e-10)
    assert count.symmetric_p_value(null) == pytest.approx(two, abs=1e-10)


def test_intervals_by_inversion() -> None:
    """ci_lower_doc, ci_upper_doc, ci_two_doc, ci_lower_vignette, ci_upper_vignette."""
    noise, cut = ReleasedNoise("tulap", 1.0, 0.0, 0.05), tulap(1.0, 0.01)
    assert NoisyCount(7, 10, noise).interval(0.95, sides="low") == pytest.approx(
        (0.38448187438841386, 1.0), abs=1e-8
    )
    assert NoisyCount(2, 10, noise).interval(0.95, sides="high") == pytest.approx(
        (0.0, 0.5173789690081375), abs=1e-8
    )
    assert NoisyCount(18, 30, noise).symmetric_interval(0.95) == pytest.approx(
        (0.4107205703099944, 0.7667095607880773), abs=1e-8
    )
    assert NoisyCount(18.4243, 30, cut).interval(0.95, sides="low")[0] == pytest.approx(
        0.44951213375529414, abs=1e-8
    )
    assert NoisyCount(18.4243, 30, cut).interval(0.95, sides="high")[1] == pytest.approx(
        0.7624285887159362, abs=1e-8
    )


def test_the_most_powerful_unbiased_test() -> None:
    """umpu_km_*, umpu_power_*: the centred test (k = n·null) is the published approximation
    of it.
    """
    k, m = unbiased_test(10, 0.75, tulap(1.0), 0.1)
    assert (k, m) == pytest.approx((7.208000614082067, 3.0990050954898685), abs=1e-7)
    assert two_armed_power(10, 0.5, tulap(1.0), k, m) == pytest.approx(
        0.33453767739587187, abs=1e-8
    )
    noise = tulap(0.1)
    assert two_armed_power(30, 0.3, noise, *unbiased_test(30, 0.1, noise, 0.05)) == pytest.approx(
        0.07927664449109473, abs=1e-7
    )
    assert two_armed_power(
        30, 0.3, noise, 3.0, centred_offset(30, 0.1, noise, 0.05, 3.0)
    ) == pytest.approx(0.08236540178403401, abs=1e-7)


@pytest.mark.parametrize(
    ("n", "null", "share", "epsilon", "value"),
    [  # vu_normal_*
        (30, 0.8, 0.8, 1.0, 0.0432243505419376),
        (30, 0.8, 0.9, 0.25, 0.0945394293750305),
        (30, 0.05, 0.05, 1.0, 0.05423738958940005),
        (100, 0.9, 0.9, 1.0, 0.04290017635181946),
    ],
)
def test_rejection_probability_of_the_normal_approximation(
    n: int, null: float, share: float, epsilon: float, value: float
) -> None:
    noise = ReleasedNoise("laplace", 1 / epsilon)
    limit = n * null + float(ndtri(0.95)) * math.sqrt(n * null * (1 - null) + noise.variance)
    assert normal_p_value(NoisyCount(limit, n, noise), null, "greater") == pytest.approx(
        0.05, abs=1e-12
    )
    assert rejection(n, share, noise, -math.inf, limit) == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    ("share", "n", "epsilon", "values"),
    [  # jimi_q_*
        (0.6, 30, 1.0, [0.3999355361439354, 0.5990751310316972, 0.7806992163936712]),
        (0.2, 100, 0.5, [0.11373859180800859, 0.20075076014816912, 0.30471377700477276]),
        (0.5, 500, 0.1, [0.4278421084287224, 0.5000000000000019, 0.5721578915712808]),
    ],
)
def test_fiducial_quantiles(share: float, n: int, epsilon: float, values: list[float]) -> None:
    law = FiducialShare(NoisyCount(n * share, n, ReleasedNoise("laplace", 1 / epsilon)))
    np.testing.assert_allclose([law.quantile(p) for p in (0.025, 0.5, 0.975)], values, atol=1e-7)


def fiducial_limit(n: int, noise: ReleasedNoise, theta: float, probability: float) -> float:
    """The count at which the fiducial law puts `probability` below θ."""
    wide = 12 * math.sqrt(n / 4 + noise.variance) + 30
    return float(
        brentq(
            lambda value: FiducialShare(NoisyCount(value, n, noise)).cdf(theta) - probability,
            n * theta - wide,
            n * theta + wide,
            xtol=1e-10,
        )
    )


@pytest.mark.parametrize(
    ("theta", "n", "epsilon", "coverage", "low", "high"),
    [  # jimi_cov_*
        (0.5, 30, 1.0, 0.9489627629835184, 0.2993348803533332, 0.7006651196466638),
        (0.95, 30, 1.0, 0.9476931247303636, 0.8213603977540013, 1.0657891190966615),
        (0.5, 500, 0.1, 0.9499796884785998, 0.42764130285341295, 0.5723586971465837),
    ],
)
def test_fiducial_coverage(
    theta: float, n: int, epsilon: float, coverage: float, low: float, high: float
) -> None:
    noise = ReleasedNoise("laplace", 1 / epsilon)
    ends = fiducial_limit(n, noise, theta, 0.975), fiducial_limit(n, noise, theta, 0.025)
    assert np.array(ends) / n == pytest.approx((low, high), abs=1e-6)
    assert 1 - rejection(n, theta, noise, *ends) == pytest.approx(coverage, abs=1e-6)


@pytest.mark.parametrize(
    ("null", "theta", "n", "epsilon", "value"),
    [  # jimi_power_*
        (0.8, 0.8, 30, 1.0, 0.05119602171516004),
        (0.9, 0.95, 128, 1.0, 0.5986943693096775),
        (0.8, 0.9, 30, 0.25, 0.09958978875973788),
    ],
)
def test_fiducial_power(null: float, theta: float, n: int, epsilon: float, value: float) -> None:
    noise = ReleasedNoise("laplace", 1 / epsilon)
    assert rejection(
        n, theta, noise, -math.inf, fiducial_limit(n, noise, null, 0.05)
    ) == pytest.approx(value, abs=1e-6)
