"""Means from one-bit, Laplace and Gaussian reports:
unbiased, covering, with both parts of the variance.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.printed import unwrapped

import discreet as dp
from discreet import client, local
from discreet.errors import InvalidParameter, NoTheorem
from discreet.testing import seeded_reports

RANGE = client.Real(0, 10)
SPECS: dict[str, Any] = {
    "bit": client.OneBitResponse(RANGE, 1),
    "laplace": client.LaplaceResponse(RANGE, 1),
    "gaussian": client.GaussianResponse(RANGE, mu=1),
}


def population(count: int, seed: int) -> np.ndarray:
    return 10 * np.random.default_rng(seed).beta(2, 5, count)


@pytest.mark.parametrize("name", SPECS)
def test_means_lie_near_the_truth(name: str) -> None:
    values = population(20_000, 1)
    fit = local.mean(SPECS[name], seeded_reports(SPECS[name], values, name))
    assert abs(fit.unbiased[0] - values.mean()) < 6 * fit.std_errors[0]
    assert 0.5 < fit.noise_share[0] <= 1
    low, high = fit.confidence_interval()[0]
    inner = fit.confidence_interval(target="data")[0]
    assert low <= inner[0] < inner[1] <= high
    assert fit.test(float(values.mean())).p_value > 1e-8
    assert fit.test(8).p_value <= 1e-8
    assert fit.test(8, alternative="less").p_value <= 1e-8
    assert fit.test(8, alternative="greater").p_value > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("column", [RANGE, client.Integer(0, 10), client.Boolean()], ids=str)
def test_variances_are_those_of_many_repetitions(column: Any) -> None:
    values = np.resize([0, 1, 1, 0, 1, 0, 0, 0], 400)
    for make in (
        lambda: client.OneBitResponse(column, 1),
        lambda: client.LaplaceResponse(column, 1),
        lambda: client.GaussianResponse(column, mu=1),
    ):
        spec = make()
        fits = [local.mean(spec, seeded_reports(spec, values, i)) for i in range(300)]
        raw = np.array([fit.unbiased[0] for fit in fits])
        known = np.median([fit.quantity(target="data").std_error[0] for fit in fits])
        assert raw.mean() == pytest.approx(0.375, abs=float(6 * known / np.sqrt(300)))
        assert raw.std() == pytest.approx(known, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("count", [10, 60, 500])
def test_intervals_cover(name: str, count: int) -> None:
    """800 repetitions; limits five standard errors below nominal (and another 0.01 where intervals
    are approximate).
    """
    spec, reps, mean = SPECS[name], 800, 20 / 7
    column = {"bit": client.OneBitResponse, "laplace": client.LaplaceResponse}.get(name)
    # sampling error counts as well
    strong = column(RANGE, 8) if column else client.GaussianResponse(RANGE, mu=8)
    for tried in (spec, strong):
        answers = seeded_reports(tried, population(reps * count, count), f"{name}{count}").reshape(
            reps, count
        )
        ends = np.array([local.mean(tried, row).confidence_interval()[0] for row in answers])
        covered = np.mean((ends[:, 0] <= mean) & (mean <= ends[:, 1]))
        assert covered > 0.94 - 5 * np.sqrt(0.95 * 0.05 / reps)
        assert np.all((ends >= 0) & (ends <= 10))


@pytest.mark.parametrize("name", SPECS)
def test_no_reports_one_and_two(name: str) -> None:
    spec = SPECS[name]
    empty = local.mean(spec, [])
    assert np.isnan(empty.params[0])
    assert empty.confidence_interval().tolist() == [[0.0, 10.0]]
    assert empty.test(5).p_value == 1
    assert "0 reports" in str(empty)
    for count in (1, 2, 3):
        fit = local.mean(spec, [client.report(spec, 5)] * count)
        assert np.isfinite(fit.std_errors[0])
        low, high = fit.confidence_interval()[0]
        assert 0 <= low <= high <= 10
    with pytest.raises(NoTheorem):
        local.shares(spec, [])
    with pytest.raises(InvalidParameter):
        empty.test(11)


def test_intervals_contain_half_a_step_of_the_grid() -> None:
    spec = client.GaussianResponse(client.Real(0, 10), mu=1000)
    step = float(spec.column.encoding().step)
    fit = local.mean(spec, seeded_reports(spec, np.full(1000, 5 + 0.49 * step), 1))
    low, high = fit.confidence_interval(1 - 1e-9, target="data")[0]
    assert low <= 5 + 0.49 * step <= high
    low, high = fit.confidence_interval(0.5, target="data")[0]
    assert high - low == pytest.approx(
        step + 2 * 0.6744897501960817 * fit.quantity(target="data").std_error[0], rel=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_results_come_back_from_json_and_are_drawn(name: str, tmp_path: Path) -> None:
    fit = local.mean(SPECS[name], seeded_reports(SPECS[name], population(500, 2), 1))
    assert dp.from_json(fit.to_json()) == fit
    assert fit.to_frame()["estimate"][0] == fit.params[0]
    fit.plot(path=str(tmp_path / "mean.png"))
    assert (tmp_path / "mean.png").stat().st_size > 5000
    assert "for one report" in unwrapped(fit)


def test_sums_are_exact_beyond_64_bits() -> None:
    spec = client.LaplaceResponse(client.Real(0, 1, bits=32), 0.001)
    answers = np.array([2**45, 2**45, -(2**44)])
    made = local.collect(spec, answers)
    assert made.counts == (2**46 - 2**44, 2 * 2**90 + 2**88)


@pytest.mark.few(2)
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_null_law_of_a_picture_has_the_p_value_as_its_shaded_mass(alternative: str) -> None:
    spec = client.OneBitResponse(client.Real(0, 100), 1)
    found = local.mean(spec, seeded_reports(spec, [40.0] * 500 + [60.0] * 500, 1))
    test = found.test(45, alternative=alternative)
    law = test.null_law()
    assert law is not None
    # the other of two equal tails is found by interpolation between bins
    assert law.shaded == pytest.approx(
        test.p_value, abs=0.03 if alternative == "two-sided" else 1e-6
    )
    assert law.observed == pytest.approx(found.unbiased[0])
    assert test.plot().axes
