"""dp.friendly_mean and dp.friendly_clusters: error, coverage, rows far away, refusals."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from discreet.estimators.aggregation.clusters import k_means
from discreet.estimators.aggregation.points import clip_radius, grid_of
from discreet.inference.aggregation.friendly import drawn_together
from discreet.schema import Schema
from discreet.testing import seeded_session

WIDE = dp.Real(-1000, 1000, missing=0.0)


def session_of(table, *, column=WIDE, seed=0, neighbors=None):
    names = [f"x{place}" for place in range(table.shape[1])]
    data = dp.from_arrays(
        {name: table[:, place] for place, name in enumerate(names)},
        schema=dict.fromkeys(names, column),
        neighbors=neighbors or dp.Replace(),
    )
    return seeded_session(data, dp.ApproxDP(200, 1e-3), seed), names


def normal(rows, size, seed):
    random = np.random.default_rng(seed)
    truth = random.uniform(-500, 500, size)
    return random.normal(size=(rows, size)) + truth, truth


def radius_of(rows, size):
    return math.sqrt(2 * chi2.isf(0.01 / rows**2, size))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rows", "refine"), [(2, 300, True), (8, 400, True), (8, 400, False)]
)
def test_intervals_cover(size, rows, refine):
    """100 data sets: of all coordinates together between 0.91 and 1, noise and sampling in them."""
    hits, errors, stated = [], [], []
    for seed in range(100):
        table, truth = normal(rows, size, seed)
        session, names = session_of(table, seed=seed)
        result = dp.friendly_mean(
            session, names, radius=radius_of(rows, size), spend=dp.GDP(1.5), refine=refine
        )
        assert result.found
        ends = result.confidence_interval()
        hits += list((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        errors.append(result.params - truth)
        stated.append(result.std_errors)
    assert np.mean(hits) > 0.91
    if refine:
        assert np.mean(hits) < 0.985
        assert 0.85 < np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(stated))) < 1.15


@pytest.mark.slow
def test_a_thousand_columns():
    table, truth = normal(800, 1000, 1)
    session, names = session_of(table)
    radius = radius_of(800, 1000)
    refined = dp.friendly_mean(session, names, radius=radius, spend=dp.GDP(math.sqrt(2)))
    plain = dp.friendly_mean(
        session, names, radius=radius, spend=dp.GDP(math.sqrt(2)), refine=False
    )
    assert np.linalg.norm(refined.params - truth) < 1.5 * 2.24
    noise = math.sqrt(plain.quantities()[0].privacy_variance.sum() + 1000 / 800)
    assert abs(np.linalg.norm(plain.params - truth) / noise - 1) < 0.07
    ends = refined.confidence_interval()
    assert 0.92 < np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) < 0.975


def test_rows_far_away_have_no_weight():
    table, truth = normal(400, 3, 2)
    spoilt = table.copy()
    spoilt[:40] = 1000.0
    means = []
    for rows in (table, spoilt):
        session, names = session_of(rows)
        plain = dp.friendly_mean(session, names, radius=8, spend=dp.GDP(3), refine=False)
        refined = dp.friendly_mean(session, names, radius=8, spend=dp.GDP(3))
        means.append(refined.params)
        assert np.abs(plain.params - truth).max() < 1
    # 40 of 400 rows were drawn in to the clip radius: no further than that tenth of it
    assert np.linalg.norm(means[1] - truth) < 0.1 * refined.clipped_at + 0.5


def test_no_core_is_told_and_finite():
    random = np.random.default_rng(0)
    for rows in (0, 1, 5, 300):
        session, names = session_of(random.uniform(-1000, 1000, (rows, 2)))
        for refine in (True, False):
            result = dp.friendly_mean(session, names, radius=3, spend=dp.GDP(1), refine=refine)
            assert not result.found
            assert result.confidence_interval().tolist() == [[-1000, 1000]] * 2
            assert "No core was found" in str(result.summary())
            assert dp.from_json(result.to_json()).found is False
    gone, names = session_of(np.full((50, 2), np.nan), column=dp.Real(-1, 1))
    assert not dp.friendly_mean(gone, names, radius=1, spend=dp.GDP(2)).found


def test_rows_without_values_are_left_out_and_counted():
    table, truth = normal(600, 2, 3)
    table[::5, 0] = np.nan
    session, names = session_of(table, column=dp.Real(-1000, 1000))
    result = dp.friendly_mean(session, names, radius=8, spend=dp.GDP(2))
    assert (np.abs(result.params - truth) < 1).all()
    filled, names = session_of(table)
    assert result.release.query.optional
    assert not dp.friendly_mean(filled, names, radius=8, spend=dp.GDP(2)).release.query.optional


def test_results_come_back():
    table, _ = normal(300, 2, 4)
    session, names = session_of(table)
    for refine in (True, False):
        result = dp.friendly_mean(
            session, names, radius=8, spend=dp.GDP(2), refine=refine, key=str(refine)
        )
        again = dp.from_json(result.to_json())
        assert again.confidence_interval().tolist() == result.confidence_interval().tolist()
        assert str(again.summary()) == str(result.summary())
        assert pickle.loads(pickle.dumps(result)).params.tolist() == result.params.tolist()
        same = dp.friendly_mean(
            session, names, radius=8, spend=dp.GDP(2), refine=refine, key=str(refine)
        )
        assert same.params.tolist() == result.params.tolist()
        assert result.params.names == ("x0", "x1")
        assert result.radius == pytest.approx(8, rel=1e-4)
        assert result.guarantee.delta == pytest.approx(2e-8)
        data = result.confidence_interval(target="data")
        assert (np.diff(data) < np.diff(result.confidence_interval())).all()


def test_steps_stay_within_the_spend():
    """Both releases fit in a budget of hardly more than the spend, and nothing more does."""
    table, _ = normal(300, 2, 5)
    data = dp.from_arrays(
        {"x0": table[:, 0], "x1": table[:, 1]},
        schema={"x0": WIDE, "x1": WIDE},
        neighbors=dp.Replace(),
    )
    spend = dp.ApproxDP(3, 1e-6)
    session = data.open(budget=dp.ApproxDP(3.0001, 1e-6), delta0=1e-8)
    shown = dp.preview(session, dp.friendly_mean, ["x0", "x1"], radius=8, spend=spend)
    assert shown.how_many == 1
    assert "δ₀ = 1e-08" in shown.price
    assert dp.friendly_mean(session, ["x0", "x1"], radius=8, spend=spend).found
    with pytest.raises(dp.DiscreetError):
        dp.mean(session, "x0", spend=dp.GDP(0.01))


def test_the_grid_is_exact_and_fine():
    for ranges in ([(-1e4, 1e4)] * 1000, [(0, 1)], [(-5, 5), (-1e5, 1e5)], [(0, 1e9)] * 2):
        schema = Schema({f"x{place}": dp.Real(*ends) for place, ends in enumerate(ranges)})
        factors, codes = grid_of(
            schema, tuple(schema), 0.01 * max(high for _, high in ranges), "it"
        )
        assert 4 * sum(one.largest**2 for one in factors) < 2**52
        assert codes >= 8
        for factor, (low, high) in zip(factors, ranges, strict=True):
            reach = factor.largest / factor.encoding.per_unit
            assert (high - low) / 2 <= reach <= (high - low) / 2 + 1 / factor.encoding.per_unit


def test_variances_are_drawn_together_as_far_as_noise_hides_them():
    alike = np.random.default_rng(0).normal(1, 0.5, 400)
    assert np.ptp(drawn_together(alike, 0.5)) < 0.3
    told = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert np.abs(drawn_together(told, 0.01) - told).max() < 0.01
    assert (drawn_together(np.array([-1.0, 3.0]), 1.0) >= 0.1).all()


def test_the_clip_radius_follows_the_noise():
    session, names = session_of(normal(100, 2, 0)[0])
    from discreet.estimators.aggregation.friendly import points_of_rows

    points, _ = points_of_rows(session.public, names, 8.0, dp.GDP(1), 1e-8)
    near, far = clip_radius(points, 0.0), clip_radius(points, 10.0 * points.radius)
    assert near == math.ceil(points.radius / math.sqrt(2))
    assert far > 10 * points.radius


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_clusters_are_found(neighbors):
    random = np.random.default_rng(6)
    centres = np.array([[0.0, 0.0], [60.0, 0.0], [0.0, 60.0]])
    table = centres[random.integers(0, 3, 4000)] + random.normal(size=(4000, 2))
    session, names = session_of(table, neighbors=neighbors)
    result = dp.friendly_clusters(session, names, k=3, radius=4, parts=70, spend=dp.GDP(3))
    assert result.found
    gaps = np.linalg.norm(result.centres[:, None] - centres, axis=2)
    assert (gaps.min(axis=0) < 3).all()
    assert sorted(gaps.argmin(axis=1)) == [0, 1, 2]
    assert result.labels[0] == ("1", "x0")
    assert dp.from_json(result.to_json()).centres.tolist() == result.centres.tolist()
    shown = dp.preview(
        session, dp.friendly_clusters, names, k=3, radius=4, parts=70, spend=dp.GDP(3)
    )
    assert "70 parts that all agree" in str(shown.summary())


def test_k_means_finds_what_is_there_and_is_a_function_of_its_rows():
    random = np.random.default_rng(7)
    centres = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], [9.0, 9.0]])
    rows = centres[random.integers(0, 4, 200)] + random.normal(size=(200, 2))
    rows[3] = np.nan
    found = np.array(k_means(rows[:, 0], rows[:, 1], k=4)).reshape(4, 2)
    assert (np.linalg.norm(found[:, None] - centres, axis=2).min(axis=0) < 0.6).all()
    assert k_means(rows[:, 0], rows[:, 1], k=4) == k_means(rows[:, 0], rows[:, 1], k=4)
    assert k_means(np.ones(5), np.ones(5), k=2) == [1.0] * 4


def test_what_cannot_be_asked_is_refused_before_the_debit():
    table, _ = normal(50, 2, 0)
    session, names = session_of(table)
    good = {"radius": 5.0, "spend": dp.GDP(1)}
    for options in (
        good | {"radius": 0},
        good | {"radius": -1.0},
        good | {"radius": math.inf},
        good | {"radius": math.nan},
        good | {"radius": 1e-9},
        good | {"radius": "wide"},
        good | {"columns": []},
        good | {"columns": ["x0", "x0"]},
        good | {"columns": ["nobody"]},
        good | {"delta": 0},
        good | {"delta": 1.0},
        good | {"refine": 1},
        good | {"spend": dp.PureDP(1)},
        good | {"spend": dp.ApproxDP(1, 1e-9)},
        good | {"spend": dp.GDP(1e-6)},
        good | {"spend": 1},
    ):
        asked = {"columns": names} | options
        with pytest.raises(dp.DiscreetError) as refused:
            dp.friendly_mean(session, asked.pop("columns"), **asked)
        assert len(str(refused.value).splitlines()) >= 3
    for options in ({"k": 0}, {"k": 65}, {"k": True}, {"k": 2, "parts": 0}, {"k": 2, "radius": 0}):
        with pytest.raises(dp.DiscreetError):
            dp.friendly_clusters(session, names, **(good | options))
    assert len(session.ledger.entries()) == 1  # it was opened


@pytest.mark.parametrize("neighbors", [dp.AddRemove(), dp.Replace(unit="x0", max_rows=1)], ids=str)
def test_a_private_number_of_rows_is_refused(neighbors):
    session, names = session_of(normal(50, 2, 0)[0], neighbors=neighbors)
    with pytest.raises(dp.DiscreetError, match=r"dp\.subsample"):
        dp.friendly_mean(session, names, radius=8, spend=dp.GDP(1))
    assert len(session.ledger.entries()) == 1  # it was opened
