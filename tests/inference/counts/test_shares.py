"""Intervals for shares and expected counts:
Wilson's and the Poisson score interval where there is no noise.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference.counts.shares import ShareStatistics, poisson_interval, share_interval
from discreet.inference.results.laws import Noise, half_width

NONE = Noise(0.0)


def one_share(
    count: float,
    total: float,
    noise: Noise = NONE,
    others: Noise = NONE,
    *,
    public: bool = True,
    cluster: int = 1,
) -> ShareStatistics:
    return ShareStatistics(np.array([count]), np.array([total]), noise, others, cluster, public)


def ends(
    statistics: ShareStatistics, level: float = 0.95, target: str = "population"
) -> tuple[float, float]:
    low, high = share_interval(statistics, level, target=target)
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("count", [0, 1, 7, 50, 99, 100])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("public", [True, False])
def test_without_noise_it_is_wilsons_interval(count: int, level: float, public: bool) -> None:
    tiny = Noise(1e-20)
    reference = stats.binomtest(count, 100).proportion_ci(level, method="wilson")
    np.testing.assert_allclose(
        ends(one_share(count, 100.0, tiny, NONE if public else tiny, public=public), level),
        (reference.low, reference.high),
        atol=1e-8,
    )


@pytest.mark.parametrize("noise", [Noise(9.0), Noise(2 * 3.0**2, 3.0**4)])
def test_the_ends_solve_their_equation(noise: Noise) -> None:
    """|X − pN| equals the half-width at p, at both ends, with a private N."""
    statistics = one_share(
        40.0, 130.0, noise, Noise(2 * noise.variance, 2 * noise.fourth), public=False
    )
    for p in ends(statistics):
        at = np.array([p])
        mixed = noise.scaled(1 - at) + statistics.others.scaled(at)
        assert abs(40 - 130 * p) == pytest.approx(
            float(half_width(0.95, 130 * at * (1 - at), mixed)[0]), rel=1e-8
        )


def test_for_the_data_only_noise_counts() -> None:
    np.testing.assert_allclose(
        ends(one_share(40.0, 100.0, Noise(9.0)), target="data"),
        0.4 + np.array([-1, 1]) * stats.norm.ppf(0.975) * 0.03,
        rtol=1e-9,
    )


@pytest.mark.parametrize(("count", "edge"), [(-12.0, 0.0), (112.0, 1.0)])
def test_counts_beyond_the_range_keep_a_useful_interval(count: float, edge: float) -> None:
    low, high = ends(one_share(count, 100.0, Noise(25.0)))
    assert edge in (low, high)
    assert 0 < high - low < 0.2
    mirrored = ends(one_share(100 - count, 100.0, Noise(25.0)))
    np.testing.assert_allclose((low, high), (1 - mirrored[1], 1 - mirrored[0]), atol=1e-9)


def test_alike_rows_widen() -> None:
    low, high = ends(one_share(300.0, 1000.0))
    wide_low, wide_high = ends(one_share(300.0, 1000.0, cluster=4))
    assert wide_high - wide_low == pytest.approx(2 * (high - low), rel=0.01)


@pytest.mark.parametrize("count", [0.0, 3.0, 250.0])
def test_poisson_interval_without_noise_is_the_score_interval(count: float) -> None:
    """(X − λ)² ≤ z²λ."""
    low, high = poisson_interval(np.array([count]), NONE, 0.95, cluster=1)
    z2 = stats.norm.ppf(0.975) ** 2
    reference = count + z2 / 2 + np.array([-1, 1]) * np.sqrt(z2 * count + z2**2 / 4)
    np.testing.assert_allclose([low[0], high[0]], reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [-40.0, 0.0, 30.0])
def test_poisson_interval_with_noise(count: float) -> None:
    noise = Noise(2 * 5.0**2, 5.0**4)
    low, high = (
        float(end[0]) for end in poisson_interval(np.array([count]), noise, 0.95, cluster=2)
    )
    assert 0 <= low < high
    if count >= 0:
        assert high - count == pytest.approx(
            float(half_width(0.95, np.array([2 * high]), noise)[0]), rel=1e-8
        )
    else:
        assert high == pytest.approx(
            float(poisson_interval(np.zeros(1), noise, 0.95, cluster=2)[1][0]), rel=1e-9
        )
