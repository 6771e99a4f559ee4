"""dp.residuals: a private histogram of residuals at a released fit."""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session


def session_of(n=3000, neighbors=None, seed="residuals"):
    rng = np.random.default_rng(5)
    x = np.clip(rng.normal(size=n), -3, 3)
    columns = {"x": x, "y": 1 + x + rng.normal(size=n), "b": rng.random(n) < 0.5}
    data = dp.from_arrays(
        columns,
        schema={"x": dp.Real(-3, 3), "y": dp.Real(-6, 8), "b": dp.Boolean()},
        neighbors=neighbors or dp.Replace(),
    )
    return seeded_session(data, dp.GDP(40), seed)


@pytest.mark.parametrize("method", ["clipped", "moments"])
def test_shares_of_normal_errors_are_normal(method):
    session = session_of()
    fit = dp.ols(session, "y ~ x", spend=dp.GDP(4), method=method)
    found = dp.residuals(session, fit, spend=dp.GDP(1), bins=[-2, -1, 0, 1, 2])
    assert np.abs(found.params - found.normal_shares()).max() < 0.05
    assert found.params.sum() == pytest.approx(1, abs=0.02)
    again = dp.from_json(found.to_json())
    assert np.array_equal(again.params, found.params)
    assert len(found.plot().axes) == 1
    assert "residual / scale" in str(found.summary())


def test_it_costs_what_it_says_and_keeps_the_filter():
    session = session_of(neighbors=dp.AddRemove())
    fit = dp.robust(session, "y ~ x", spend=dp.GDP(4), where={"b": True})
    found = dp.residuals(session, fit, spend=dp.PureDP(2), key="shape")
    assert found.release.guarantee == dp.PureDP(2)
    assert 1200 < found.quantities()[0].estimate.sum() < 1800
    assert "b is True" in str(found.summary())
    assert dp.residuals(session, fit, spend=dp.PureDP(2), key="shape").release == found.release


def test_it_is_previewed_without_spending():
    session = session_of()
    fit = dp.robust(session, "y ~ x", spend=dp.GDP(4))
    left = str(session.ledger)
    forecast, found = dp.preview(session, dp.residuals, fit, spend=dp.GDP(1)), None
    assert str(session.ledger) == left
    found = dp.residuals(session, fit, spend=dp.GDP(1))
    assert forecast.noise == pytest.approx(
        float(np.sqrt(np.median(found.quantities()[-1].privacy_variance))), rel=0.3
    )


def test_fits_without_residuals_and_bad_bins_are_refused_before_spending():
    session = session_of()
    left = str(session.ledger)
    with pytest.raises(dp.InvalidParameter, match="not a fit with residuals"):
        dp.residuals(session, "a fit", spend=dp.GDP(1))
    assert str(session.ledger) == left
    fit = dp.robust(session, "y ~ x", spend=dp.GDP(1))
    left = str(session.ledger)
    for bins in (0, 1.5, "many", [1, 1], [0, float("nan")], [], 10**6, True):
        with pytest.raises(dp.DiscreetError):
            dp.residuals(session, fit, spend=dp.GDP(1), bins=bins)
    other = dp.from_arrays(
        {"z": np.zeros(3)}, schema={"z": dp.Real(0, 1)}, neighbors=dp.Replace()
    ).open(budget=dp.GDP(9))
    untouched = str(other.ledger)
    with pytest.raises(dp.UndeclaredColumn):
        dp.residuals(other, fit, spend=dp.GDP(1))
    assert str(session.ledger) == left
    assert str(other.ledger) == untouched
    logistic = dp.logistic(session, "b ~ x", spend=dp.GDP(1))
    with pytest.raises(dp.InvalidParameter, match="means, not residuals"):
        dp.residuals(session, logistic, spend=dp.GDP(1))
