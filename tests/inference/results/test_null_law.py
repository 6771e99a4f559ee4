"""The null law that a picture shows: its shaded mass is the p-value that the test reports."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import chdtrc, ndtr, ndtri
from tests.survey import SCHEMA, data_set, survey

import discreet as dp
from discreet.inference.results.null_law import (
    Recorded,
    chi_square_law,
    from_draws,
    from_intervals,
    from_survival,
)
from discreet.testing import seeded_session

SIDES = ("two-sided", "greater", "less")


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("observed", [-1.7, 0.4, 9.0])
def test_shaded_mass_is_the_tail(side: str, observed: float) -> None:
    law = from_survival(lambda t: ndtr(-t), (-6.0, 6.0), observed, side, "z")
    tail = {"greater": ndtr(-observed), "less": ndtr(observed)}.get(side, 2 * ndtr(-abs(observed)))
    assert law.masses.sum() == pytest.approx(1.0, abs=1e-12)
    # bins are cut at the marks; equal tails are found by interpolation between 61 bins
    assert law.shaded == pytest.approx(tail, abs=0.01 if side == "two-sided" else 2e-4)


def test_simulated_statistics_are_kept() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=2000)
    kept = Recorded(np.asarray)
    assert float(kept(1.3)) == 1.3  # the observed value is no draw
    kept(drawn[:1500])
    kept(drawn[1500:])
    law, other = kept.law(1.3, "z"), kept.law(-1.3, "z", sign=-1.0)
    assert law is not None
    assert other is not None
    assert law.shaded == pytest.approx(np.mean(drawn >= 1.3), abs=1e-9)
    assert other.shaded == pytest.approx(np.mean(-drawn <= -1.3), abs=1e-9)
    assert Recorded(np.asarray).law(1.0, "z") is None
    for far in (50.0, -50.0):
        assert from_draws(drawn, far, "z").shaded == pytest.approx(float(far < 0), abs=1e-9)
    assert from_draws(np.zeros(10), 0.0, "z").shaded == pytest.approx(1.0)


def test_inverted_intervals() -> None:
    """For a normal estimate the mirrored confidence density is its null law."""

    def ends(level: float) -> tuple[float, float]:
        half = 2.0 * float(ndtri(0.5 + level / 2))
        return 5.0 - half, 5.0 + half

    law = from_intervals(ends, 5.0, 2.0, "greater", "mean")
    assert law.shaded == pytest.approx(ndtr(-1.5), abs=0.003)  # linear between 65 quantiles
    middle = float(law.edges[:-1] @ law.masses)
    assert middle == pytest.approx(2.0, abs=0.3)


def test_chi_square() -> None:
    law = chi_square_law(7.0, 3)
    assert law is not None
    assert law.shaded == pytest.approx(chdtrc(3, 7.0), abs=1e-6)
    assert chi_square_law(0.0, 0) is None


@pytest.mark.few(2)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "method",
    [
        "exact",
        "score",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("conservative", "symmetric")),
    ],
)
def test_a_proportion(side: str, method: str) -> None:
    schema = {**SCHEMA, "member": dp.Boolean(missing=False)}
    whole = dp.from_arrays(survey(), schema=schema, neighbors=dp.Replace())
    result = dp.proportion(seeded_session(whole, dp.GDP(100), 1), "member", spend=dp.PureDP(0.5))
    test = result.test(0.28, alternative=side, method=method)
    law = test.null_law()
    assert law is not None
    # the other of two equal tails is found by interpolation between bins
    assert law.shaded == pytest.approx(test.p_value, abs=0.02 if side == "two-sided" else 1e-6)
    assert test.plot().axes


@pytest.mark.slow
def test_tests_hold_their_null_laws() -> None:
    session = seeded_session(data_set(), dp.GDP(100), 1)
    spend = dp.GDP(0.5)
    for found in (
        dp.compare(session, "member", by="region", spend=spend).test(),
        dp.compare_means(session, "income", by="region", spend=spend).test(),
        dp.compare_means(session, "income", by="region", spend=spend).test(alternative="less"),
        dp.independence_test(session, "region", "member", spend=spend).test(),
        dp.goodness_of_fit(session, "region", [0.4, 0.3, 0.2, 0.1], spend=spend).test(),
        dp.rank_test(session, "income", by="region", spend=spend).test(),
        dp.mean_test(session, "income", null=50.5, spend=spend).test(),
    ):
        assert found.null is not None
        assert found.null.observed == pytest.approx(found.statistic) or "mean" in found.null.axis
        # the simulated tail counts the observed value too; inverted intervals are interpolated
        assert found.null.shaded == pytest.approx(found.p_value, abs=0.01)
        assert "NullLaw" not in repr(found)
