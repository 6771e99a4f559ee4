"""What dp.poisson says about itself: right for Poisson counts, biased as stated under
overdispersion, where a mean function of one's own is right.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import discreet as dp
from discreet.specs.estimating.families import COUNT_UNIT, Poisson
from discreet.specs.estimating.tables import GRID, PSI, clipped_rest
from discreet.testing import seeded_session

TRUTH = np.array([1.0, 0.5])
MOST = 60
PAGES = 400_000


def counts(dispersion, n, seed=1):
    """Counts of mean exp(1 + x/2) and of `dispersion` times that variance (negative binomial)."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    mean = np.exp(TRUTH[0] + TRUTH[1] * x)
    return x, rng.poisson(mean) if dispersion == 1 else rng.negative_binomial(
        mean / (dispersion - 1), 1 / dispersion
    )


def solution(x, y):
    """The solution of the estimating equation that dp.poisson uses, without noise and weights."""
    tables, rows, beta = (
        Poisson(float(MOST)).tables(),
        np.c_[np.ones(len(x)), x],
        np.array([math.log(y.mean()), 0.0]),
    )
    for _ in range(40):
        place = (
            np.clip(np.floor(rows @ beta * GRID + 0.5), -tables.reach, tables.reach).astype(int)
            + tables.reach
        )
        psi = (
            tables.shift[place]
            - clipped_rest(tables, np.minimum(y, MOST).astype(np.int64) * COUNT_UNIT, place)
        ) / PSI
        beta = beta - np.linalg.solve(
            (rows * (tables.slope[place] / PSI)[:, None]).T @ rows, rows.T @ psi
        )
    return beta


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dispersion", "intercept", "slope"),
    [(1, 0.0, 0.0), (1.5, -0.016, 0.004), (2, -0.045, 0.02), (3, -0.108, 0.044)],
)
def test_the_bias_under_overdispersion_is_as_documented(dispersion, intercept, slope):
    """With 400 000 rows the standard error is below 0.002; the limits are five of them and more."""
    assert solution(*counts(dispersion, PAGES)) - TRUTH == pytest.approx(
        [intercept, slope], abs=0.012
    )


def test_residuals_are_standardised_and_clipped():
    """One row adds about 2.5 at most, whatever the largest count is."""
    for most in (5.0, 60.0, 5000.0):
        tables = Poisson(most).tables()
        ends = [
            np.abs(tables.shift - clipped_rest(tables, np.int64(end), slice(None))).max() / PSI
            for end in (0, tables.top)
        ]
        assert 2.4 < max(ends) < 4.0


@pytest.mark.slow
def test_a_mean_function_of_ones_own_is_right_under_overdispersion():
    x, y = counts(3, 20_000, 7)
    session = seeded_session(
        dp.from_arrays(
            {"x": x, "y": y},
            schema={"x": dp.Real(-1, 1), "y": dp.Integer(0, MOST)},
            neighbors=dp.Replace(),
        ),
        dp.GDP(9),
        "spread",
    )
    clipped = dp.poisson(session, "y ~ x", spend=dp.GDP(2))
    own = dp.m_estimate(
        session, "y ~ x", mean=lambda eta: min(math.exp(eta), MOST), spend=dp.GDP(2)
    )
    assert own.converged
    assert (np.abs(own.params - TRUTH) < 6.2 * own.std_errors).all()
    assert clipped.params[0] < TRUTH[0] - 6.2 * clipped.std_errors[0]
    assert "OVERDISPERSED" in str(clipped.summary())
    x, y = counts(1, 20_000, 8)
    session = seeded_session(
        dp.from_arrays(
            {"x": x, "y": y},
            schema={"x": dp.Real(-1, 1), "y": dp.Integer(0, MOST)},
            neighbors=dp.Replace(),
        ),
        dp.GDP(9),
        "plain",
    )
    assert "OVERDISPERSED" not in str(dp.poisson(session, "y ~ x", spend=dp.GDP(2)).summary())
