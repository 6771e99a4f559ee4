"""The descent by which models are fitted finds what scipy finds, and ends where nothing falls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from discreet.inference.synthesis.descent import least


def never(values):
    return False


def bowl(size):
    """A quadratic whose curvatures go from 1 to 10^4, about the point (1, …, 1)."""
    curvature = np.logspace(0, 4, size)
    return lambda x: (
        0.5 * float(curvature @ (x - 1) ** 2),
        curvature * (x - 1),
    )


@pytest.mark.parametrize(
    ("loss", "start"),
    [
        (bowl(40), np.zeros(40)),
        (lambda x: (float(rosen(x)), rosen_der(x)), np.array([-1.2, 1.0, 0.5, -2.0, 3.0])),
        (lambda x: (float(np.logaddexp(0, -x).sum() + x @ x / 200), -1 / (1 + np.exp(x)) + x / 100),
         np.full(3, -50.0)),
    ],
    ids=["curvatures far apart", "a bent valley", "flat ends"],
)  # fmt: skip
def test_it_finds_what_scipy_finds(loss, start):
    found = least(loss, start, 2000, never)
    theirs = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14})
    assert loss(found)[0] <= theirs.fun + 1e-6
    np.testing.assert_allclose(found, theirs.x, atol=2e-3)


def test_values_fall_until_it_is_told_to_end():
    seen = []

    def enough(values):
        seen.append(list(values))
        return len(values) == 7

    least(lambda x: (float(rosen(x)), rosen_der(x)), np.full(6, -1.5), 500, enough)
    assert [len(values) for values in seen] == [1, 2, 3, 4, 5, 6, 7]
    assert (np.diff(seen[-1]) < 0).all()


def test_it_stays_where_nothing_falls():
    start = np.array([0.3, -0.2])
    wrong = least(lambda x: (float(x @ x), -x), start, 50, never)  # a gradient that points down
    np.testing.assert_array_equal(wrong, start)
    still = least(lambda x: (1.0, np.zeros(2)), start, 50, never)
    np.testing.assert_array_equal(still, start)
    lost = least(lambda x: (np.nan if x[0] < 0 else float(x[0]), np.ones(2)), start, 50, never)
    assert np.isfinite(lost).all()
    assert lost[0] >= 0
