"""Where noise is small, intervals of rows that are several units' are the clustered ones: wider
than those of rows where a unit's rows are alike, and not wider where they are not.
"""

from __future__ import annotations

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session

UNITS, MOST = 1500, 4
SCHEMA = {
    "x": dp.Real(-40, 140),
    "yes": dp.Boolean(),
    "level": dp.Category(["a", "b"]),
    "y": dp.Real(-80, 150),
}
RELATIONS = (dp.Replace(unit="id", max_rows=MOST), dp.AddRemove(unit="id", max_rows=MOST))
CALM = dp.GDP(40)
ASKS = {
    "mean": lambda session: dp.mean(session, "x", spend=CALM),
    "share": lambda session: dp.proportion(session, "yes", spend=CALM),
    "table": lambda session: dp.table(session, by="level", spend=CALM),
    "histogram": lambda session: dp.histogram(session, "level", spend=CALM),
    "group mean": lambda session: dp.table(session, "x", by="level", spend=CALM),
    "slope": lambda session: dp.ols(session, "y ~ x", spend=CALM),
}


def rows_of(correlation):
    """Units of 1 to 4 rows; some cells hold nothing."""
    rng = np.random.default_rng(8)
    ids = np.repeat(np.arange(UNITS), rng.integers(1, MOST + 1, UNITS))

    def alike():
        own, shared = rng.standard_normal(len(ids)), rng.standard_normal(UNITS)[ids]
        return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own

    x, yes = 50 + 12 * alike(), alike() < -0.5
    y, gone = 10 + 0.6 * x + 8 * alike(), rng.random(len(ids)) < 0.05
    columns = {
        "id": ids,
        "x": np.where(gone, np.nan, x),
        "yes": np.where(gone, None, yes),
        "level": np.where(gone, None, np.where(yes, "a", "b")),
        "y": y,
    }
    return columns, {"id": ids[~gone], "x": x[~gone], "yes": yes[~gone], "y": y[~gone]}


def half_width(name, held, *, by_unit=True):
    """Without privacy, from the variance between units or rows."""
    rows = len(held["id"])
    ids = held["id"] if by_unit else np.arange(rows)
    design, response = np.ones((rows, 1)), held["x"]
    if name in ("share", "table", "histogram"):
        response = held["yes"].astype(float)
    elif name == "group mean":
        design = held["yes"].astype(float)[:, None]
    elif name == "slope":
        design, response = np.column_stack([np.ones(rows), held["x"] - 50]), held["y"]
    inverse = np.linalg.inv(design.T @ design)
    rest = response - design @ (inverse @ (design.T @ response))
    scores = np.stack([np.bincount(ids, column * rest) for column in design.T])
    return 1.96 * float(np.sqrt((inverse @ (scores @ scores.T) @ inverse)[-1, -1]))


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "slope" else name for name in ASKS],
)
def test_intervals_are_the_clustered_ones(name, correlation, neighbors):
    columns, held = rows_of(correlation)
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    result = ASKS[name](seeded_session(data, CALM, "units"))
    low, high = result.confidence_interval()[1 if name == "slope" else 0]
    expected = half_width(name, held)
    # a fit's weights fade until its noise is up to a sixth of the variance
    assert (high - low) / 2 == pytest.approx(expected, rel=0.12 if name == "slope" else 0.04)
    if correlation:
        rows = half_width(name, held, by_unit=False)
        assert expected > (1.1 if name == "slope" else 1.25) * rows
    assert "taken together" in str(result.summary())


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_a_count_of_units_spreads_as_they_arrive(neighbors):
    columns, _ = rows_of(0.0)
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    low, high = dp.count(seeded_session(data, CALM, "units"), spend=CALM).confidence_interval()[0]
    sizes = np.bincount(columns["id"])
    expected = 1.96 * np.sqrt(float((sizes**2).sum()))
    assert (high - low) / 2 == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_a_total_spreads_as_units_do(neighbors):
    columns, held = rows_of(0.9)
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    low, high = dp.sum(seeded_session(data, CALM, "u"), "x", spend=CALM).confidence_interval()[0]
    sums = np.bincount(held["id"], held["x"])
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(float((sums**2).sum())), rel=0.03)


def test_pure_spends_allow_for_rows_that_are_alike():
    columns, held = rows_of(0.0)
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=RELATIONS[1])
    session = seeded_session(data, dp.PureDP(200), "units")
    result = dp.mean(session, "x", spend=dp.PureDP(200))
    low, high = result.confidence_interval()[0]
    assert (high - low) / 2 == pytest.approx(2 * half_width("mean", held, by_unit=False), rel=0.05)
    assert "fully alike" in str(result.summary())
