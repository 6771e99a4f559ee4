"""Simultaneous bands: the generator, the calibration of suprema and of many cells,
and the bounds beyond what is simulated.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference.counts.shares import ShareStatistics
from discreet.inference.quantiles.cumulative import Cumulative
from discreet.inference.quantiles.simultaneous import band, band_half_width, cell_level
from discreet.inference.quantiles.trees import TreeShape
from discreet.inference.results.laws import Noise
from discreet.inference.simulation.streams import uniforms

SHAPE = TreeShape(4, 4)


def curve(
    rows: float, noise: Noise, *, cluster: int = 1, public: bool = True, shape: TreeShape = SHAPE
) -> Cumulative:
    return Cumulative(
        shape, np.linspace(0, rows, shape.leaves + 1), rows, noise, public, shape.leaves, cluster
    )


def test_the_generator_is_splitmix64() -> None:
    """The first words of SplitMix64 from seed 0, as its author publishes them."""
    words = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC]
    np.testing.assert_array_equal(
        uniforms(0, (4,)), [((word >> 11) + 0.5) * 2.0**-53 for word in words]
    )
    np.testing.assert_array_equal(uniforms(2, (2,)), uniforms(0, (2, 2))[1])
    assert stats.kstest(uniforms(5, (20_000,)), "uniform").pvalue > 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_without_noise_it_is_the_kolmogorov_limit(level: float) -> None:
    exact = stats.kstwobign.ppf(level) / np.sqrt(1000)
    assert band_half_width(curve(1000, Noise(1e-12)), level) == pytest.approx(exact, rel=0.06)
    assert band_half_width(curve(1000, Noise(1e-12), cluster=4), level) == pytest.approx(
        2 * exact, rel=0.06
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("fourth", [0.0, (50.0 / 2) ** 2])
def test_the_band_holds_for_the_noise_alone(public: bool, fourth: float) -> None:
    """2000 fresh draws of the noise, another generator:
    the band of the data set's own curve covers 0.9 of them.
    """
    from discreet.inference.quantiles.trees import least_squares, prefix_counts

    rng, nodes, noise = np.random.default_rng(4), sum(SHAPE.sizes), Noise(50.0, fourth)
    cumulative = curve(500, noise, public=public)
    half = band_half_width(cumulative, 0.9, target="data")
    draws = (
        rng.laplace(0, 5, (2000, nodes)) if fourth else rng.normal(0, np.sqrt(50), (2000, nodes))
    )
    error = prefix_counts(least_squares(SHAPE, draws, total=0.0 if public else None))
    error -= 0 if public else cumulative.prefix / 500 * error[:, -1:]
    covered = np.mean(np.abs(error).max(axis=1) <= half * 500)
    assert 0.88 <= covered <= 0.93


def test_beyond_the_simulation_a_proven_bound_is_used() -> None:
    cumulative = curve(1000, Noise(20.0))
    halves = [band_half_width(cumulative, level) for level in (0.9, 0.99, 0.999, 1 - 1e-9)]
    assert np.all(np.diff(halves) > 0)
    assert halves[2] > np.sqrt(np.log(2 / 0.0005) / 2000)
    assert band_half_width(cumulative, 0.999, target="data") < halves[2]


@pytest.mark.slow
def test_fine_trees_are_calibrated_above_and_widened_below() -> None:
    fine = curve(1000, Noise(5.0), shape=TreeShape(4, 7))
    low, high = band(fine, fine.inner, 0.9)
    truth = fine.inner / fine.shape.leaves
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)
    assert np.all((low <= truth) & (truth <= high))
    np.testing.assert_allclose(
        low[3::4], np.clip(truth[3::4] - band_half_width(fine, 0.9), 0, 1), atol=1e-9
    )


@pytest.mark.parametrize("cells", [2, 10, 60])
@pytest.mark.parametrize("public", [True, False])
def test_the_level_for_many_cells_lies_between_one_and_bonferroni(cells: int, public: bool) -> None:
    count = np.full(cells, 1000 / cells)
    noise = Noise(20.0)
    statistics = ShareStatistics(
        count, np.full(cells, 1000.0), noise, Noise(20.0 * (cells - 1)), 1, public
    )
    found = cell_level(statistics, 0.9)
    assert 0.9 <= found <= 1 - 0.1 / cells
    # Šidák's level bounds it, up to the simulation's error
    assert found <= 0.9 ** (1 / cells) + 0.1 * 0.1 / cells
    assert cell_level(statistics, 0.9999) == pytest.approx(1 - 0.0001 / cells)


def test_two_complementary_cells_need_no_correction() -> None:
    statistics = ShareStatistics(
        np.array([300.0, 700.0]), np.full(2, 1000.0), Noise(1e-9), Noise(0.0), 1, True
    )
    assert cell_level(statistics, 0.9) == pytest.approx(0.9, abs=0.012)
