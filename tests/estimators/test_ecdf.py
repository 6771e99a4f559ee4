"""Distribution functions and densities through the public functions: right, total, consistent where
asked, drawn, previewed, refused.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.survey import RELATIONS, SPENDS, data_set, open_session, survey

import discreet as dp
from discreet.estimators.distributions import (
    default_bins,
    ecdf_leaves,
    quantile_leaves,
    tree_question,
)
from discreet.inference.quantiles.cumulative import cumulative_of, share_bounds
from discreet.inference.quantiles.simultaneous import band_half_width, cell_level
from discreet.inference.quantiles.tree_quantiles import checked_quantiles, quantiles_from_tree
from discreet.inference.results.laws import half_width
from discreet.testing import seeded_session
from discreet.trusted.engines.memory import MemoryEngine
from discreet.trusted.release import Description

PLENTY = dp.GDP(200)
SCHEMA = {
    "x": dp.Real(0, 10, missing=5),
    "k": dp.Integer(0, 12, missing=6),
    "b": dp.Boolean(missing=False),
    "group": dp.Category(["a", "b"]),
}
PNG = b"\x89PNG\r\n\x1a\n"


def small(values: list[Any], neighbors: Any = RELATIONS[0]) -> dp.Session:
    columns = {
        "x": np.array(values, dtype=object),
        "k": np.array(values, dtype=object),
        "b": np.zeros(len(values)),
        "group": np.array(["a"] * len(values), dtype=object),
        "person": np.arange(len(values)),
    }
    return seeded_session(
        dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors), dp.GDP(1000), "ecdf"
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_with_plenty_to_spend_it_is_the_empirical_distribution_function(neighbors: Any) -> None:
    session, data = open_session(neighbors), survey()
    kept = data["member"]
    for column, where, rows in (("income", None, slice(None)), ("age", {"member": True}, kept)):
        result = dp.ecdf(session, column, spend=PLENTY, where=where)
        values = data[column][rows]
        truth = np.mean(values[:, None] <= result.points, axis=0)
        np.testing.assert_allclose(result.params, truth, atol=5e-3)
        assert np.all(np.abs(result.cdf(result.points) - result.unprojected) < 1e-12)
        low, high = result.confidence_interval(1 - 1e-9, target="data").T
        assert np.all((low - 1e-3 <= truth) & (truth <= high + 1e-3))


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS[:2], ids=repr)
def test_bands_intervals_and_frames_fit_together(neighbors: Any, spend: Any) -> None:
    result = dp.ecdf(
        seeded_session(data_set(neighbors), dp.GDP(1000), "fit"), "age", spend=spend, points=60
    )
    pointwise, everywhere = result.band(0.9, kind="pointwise"), result.band(0.9)
    np.testing.assert_array_equal(pointwise, result.confidence_interval(0.9))
    assert len(result.points) == len(result.labels) == len(result.params) == 72
    for bounds in (pointwise, everywhere, result.band(0.9, target="data")):
        assert np.all(
            (bounds[:, 0] <= bounds[:, 1]) & (bounds >= 0).all(axis=1) & (bounds <= 1).all(axis=1)
        )
    assert np.all(np.diff(everywhere, axis=0) >= 0)
    middle = (result.params > 0.25) & (result.params < 0.75)
    assert np.all(
        (everywhere[middle, 1] - everywhere[middle, 0])
        > (pointwise[middle, 1] - pointwise[middle, 0])
    )
    assert np.all(
        np.ptp(result.band(0.9, kind="pointwise", target="data"), axis=1)[middle]
        < np.ptp(pointwise, axis=1)[middle]
    )
    assert list(result.to_frame()["age"]) == pytest.approx(list(result.points))
    assert dp.from_json(result.to_json()).params == pytest.approx(result.params)
    assert pickle.loads(pickle.dumps(result)) == result
    text = str(result)
    assert all(
        words in text
        for words in (
            "Private distribution function of age",
            "share below",
            "50%",
            "noise %",
            str(result.release.guarantee),
        )
    )


def test_intervals_are_the_shares_that_the_score_test_keeps() -> None:
    result = dp.ecdf(
        seeded_session(data_set(RELATIONS[1]), dp.GDP(1000), "score"), "income", spend=dp.GDP(0.3)
    )
    cumulative = cumulative_of(result.release)
    inner = cumulative.inner[::37]
    low, high = share_bounds(cumulative, inner, 0.9)
    for share in (low, high):
        open_ended = (
            (share > 1e-9)
            & (share < 1 - 1e-9)
            & (cumulative.prefix[inner] > 0)
            & (cumulative.prefix[inner] < cumulative.rows)
        )
        reach = half_width(
            0.9, cumulative.sampling_variance(share), cumulative.noise_at(inner, share)
        )
        np.testing.assert_allclose(
            np.abs(cumulative.prefix[inner] - share * cumulative.rows)[open_ended],
            reach[open_ended],
            rtol=1e-6,
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        [],
        [3],
        [3, 7],
        [5] * 40,
        [0] * 30,
        [12] * 30,
        [None, "text", float("nan"), float("inf"), 3],
        [1e300, -1e300, 5],
    ],
    ids=str,
)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_every_data_set_gives_an_answer(values: list[Any], neighbors: Any) -> None:
    session = small(values, neighbors)
    for column, spend, where in (
        ("x", dp.GDP(0.5), None),
        ("k", dp.PureDP(0.5), None),
        ("x", dp.PureDP(0.5), {"group": "b"}),
        ("k", dp.GDP(0.5), {"group": "b"}),
    ):
        curve = dp.ecdf(session, column, spend=spend, where=where, points=40)
        bars = dp.density(session, column, spend=spend, where=where, bins=5)
        for result in (curve, bars):
            assert np.all(np.isfinite(result.params))
            assert np.all(np.isfinite(result.confidence_interval(0.99)))
            assert np.all(np.isfinite(result.band(0.9999)))  # proven bounds, which are quick
            assert str(result)
        if where is None and column == "x" and neighbors == RELATIONS[0]:
            assert np.all(np.isfinite(curve.band(0.8)))
            assert np.all(np.isfinite(bars.band(0.8)))
        found = curve.quantiles([0.01, 0.5, 0.99])
        assert np.all((found.low <= found.estimate) & (found.estimate <= found.high))
        consistent = curve.counts(consistent=True)
        assert np.all(consistent >= 0)
        shares = bars.shares(consistent=True)
        assert np.all(shares >= 0)
        assert shares.sum() == pytest.approx(1)


def test_an_empty_part_of_the_range_may_be_empty() -> None:
    """Where the data say nothing against a share of 0, the interval starts at 0 itself."""
    session = small([5] * 100)
    low = dp.ecdf(session, "x", spend=dp.GDP(0.5)).confidence_interval()[:, 0]
    heights = dp.density(session, "x", spend=dp.GDP(0.5), bins=40)
    assert np.count_nonzero(low == 0) > 10
    assert np.all((low == 0) | (low > 1e-6))
    assert np.count_nonzero((heights.params > 0) & (heights.confidence_interval()[:, 0] == 0)) > 5


def test_a_boolean_column_has_a_distribution_function() -> None:
    result = dp.ecdf(small([1, 0, 1, 1]), "b", spend=PLENTY)
    np.testing.assert_allclose(result.cdf([-0.1, 0, 0.5, 1, 2]), [0, 1, 1, 1, 1], atol=0.02)
    assert list(result.points) == [0.0]


def test_steps_interpolation_and_both_ends() -> None:
    session = small([2, 2, 3, 9])
    steps = dp.ecdf(session, "k", spend=PLENTY)
    np.testing.assert_allclose(
        steps.cdf([-1, 0, 1.9, 2, 2.9, 3, 8.9, 9, 12, 99]),
        [0, 0, 0, 0.5, 0.5, 0.75, 0.75, 1, 1, 1],
        atol=0.03,
    )
    np.testing.assert_array_equal(steps.cdf_interval([-1, 12, 99]), [[0, 0], [1, 1], [1, 1]])
    bent = dp.ecdf(session, "x", spend=PLENTY)
    assert bent.cdf(-0.1) == 0.0
    assert bent.cdf(10) == 1.0
    inside = (bent.points[0] + bent.points[1]) / 2
    low, high = bent.cdf_interval(inside)[0]
    assert low == bent.band(kind="pointwise")[0, 0]
    assert high == bent.band(kind="pointwise")[1, 1]
    # rows at the lower bound are at or below it
    bottom = dp.ecdf(small([0] * 20), "x", spend=PLENTY)
    assert bottom.cdf_interval(0.0)[0, 1] > 0.9


@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_consistent_counts_never_fall_and_add_up(neighbors: Any) -> None:
    result = dp.ecdf(
        seeded_session(data_set(neighbors), dp.GDP(1000), "consistent"), "income", spend=dp.GDP(0.1)
    )
    raw, repaired = result.counts(), result.counts(consistent=True)
    assert raw.min() < 0
    assert repaired.min() >= 0
    total = cumulative_of(result.release).total
    assert repaired.sum() == pytest.approx(total)
    curve = result.cdf(result.points, consistent=True)
    assert np.all(np.diff(curve) >= 0)
    assert curve[0] >= 0
    assert curve[-1] <= 1
    exact = dp.ecdf(open_session(neighbors), "age", spend=dp.GDP(500))
    np.testing.assert_allclose(exact.counts(consistent=True), exact.counts(), atol=1)


def test_quantiles_of_a_tree_are_the_data_s_own_where_noise_is_small() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(5, 1, 20_000)
    session = seeded_session(
        dp.from_arrays(
            {"x": values, "k": np.round(values)},
            schema={"x": dp.Real(0, 10), "k": dp.Integer(0, 10)},
            neighbors=dp.Replace(),
        ),
        dp.GDP(1000),
        "quantiles",
    )
    q = np.arange(1, 100) / 100
    asked = tree_question(
        session.public,
        Description("ecdf", "x", ("x",)),
        spend=dp.GDP(50),
        leaves=quantile_leaves(session.public),
    )
    found = quantiles_from_tree(session.release(asked), q, 0.999, target="data")
    truth = np.quantile(values, q, method="inverted_cdf")
    assert np.max(np.abs(found.estimate - truth)) < 0.01  # a thousandth of the range
    assert np.all((found.low <= truth) & (truth <= found.high))
    whole = dp.ecdf(session, "k", spend=dp.GDP(50)).quantiles([0.1, 0.5, 0.9])
    np.testing.assert_array_equal(whole.estimate, np.quantile(np.round(values), [0.1, 0.5, 0.9]))
    np.testing.assert_array_equal(whole.low, whole.estimate)
    data = dp.ecdf(session, "x", spend=dp.GDP(0.5)).quantiles(0.5, target="data")
    assert data.low[0] <= np.median(values) <= data.high[0]


def test_quantile_intervals_shrink_with_the_spend_and_the_level() -> None:
    session = seeded_session(data_set(), dp.GDP(1000), "shrink")
    wide, narrow = (
        dp.ecdf(session, "income", spend=dp.GDP(mu)).quantiles([0.25, 0.5, 0.75]) for mu in (0.1, 2)
    )
    assert np.all(wide.high - wide.low > narrow.high - narrow.low)
    assert np.all(wide.noise_share > 0.5)
    assert np.all(narrow.noise_share < 0.5)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), "half", [], [0.5, 2]])
def test_impossible_quantiles_are_refused(bad: Any) -> None:
    with pytest.raises(dp.InvalidParameter):
        checked_quantiles(bad)


@pytest.mark.slow
def test_coverage_of_bands_and_quantiles() -> None:
    """120 data sets: pointwise 95 % bands between 0.87 and 1, simultaneous ones at least 0.89
    (seeded; benchmarks/coverage_bands.py does 2000).
    """
    rng, n, spend = np.random.default_rng(11), 400, dp.GDP(0.7)
    points, everywhere, quantiles, bins, all_bins = [], [], [], [], []
    half, level = None, 0.95
    for repetition in range(120):
        session = seeded_session(
            dp.from_arrays(
                {"x": rng.normal(5, 1, n)}, schema={"x": dp.Real(0, 10)}, neighbors=dp.Replace()
            ),
            dp.GDP(1000),
            repetition,
        )
        curve, bars = (
            dp.ecdf(session, "x", spend=spend, points=255),
            dp.density(session, "x", spend=spend, bins=10),
        )
        truth, shares = (
            stats.norm.cdf(curve.points, 5, 1),
            np.diff(stats.norm.cdf(bars.edges, 5, 1)),
        )
        cumulative = cumulative_of(curve.release)
        if half is None:
            half, level = band_half_width(cumulative, 0.95), cell_level(bars._statistics(), 0.95)
        looked = np.flatnonzero((truth > 0.1) & (truth < 0.9))[::8]
        low, high = share_bounds(cumulative, looked + 1, 0.95)
        points.append((low <= truth[looked]) & (truth[looked] <= high))
        everywhere.append(np.abs(curve.params - truth).max() <= half)
        found = curve.quantiles([0.25, 0.5, 0.75])
        quantiles.append(
            (found.low <= stats.norm.ppf(found.q, 5, 1))
            & (stats.norm.ppf(found.q, 5, 1) <= found.high)
        )
        low, high = bars.confidence_interval().T
        bins.append(((low <= shares) & (shares <= high))[3:7])
        low, high = bars.confidence_interval(level).T
        all_bins.append(np.all((low <= shares) & (shares <= high)))
    assert 0.87 <= np.mean(points, axis=0).min() <= np.mean(points) <= 0.98
    assert 0.89 <= np.mean(everywhere) <= 0.995
    assert 0.87 <= np.mean(quantiles, axis=0).min() <= np.mean(quantiles) <= 0.99
    assert 0.87 <= np.mean(bins, axis=0).min() <= np.mean(bins) <= 0.98
    assert 0.89 <= np.mean(all_bins) <= 0.995


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_densities_are_shares_over_widths(neighbors: Any) -> None:
    session, data = open_session(neighbors), survey()
    bars = dp.density(session, "income", bins=[0, 40, 50, 60, 100], spend=PLENTY)
    counts = np.histogram(data["income"], [0, 40, 50, 60, 100])[0]
    np.testing.assert_allclose(
        bars.params, counts / 1000 / np.diff([0, 40, 50, 60, 100]), atol=1e-3
    )
    np.testing.assert_allclose(
        bars.pdf([-1, 0, 39.9, 40, 100, 100.1]),
        [0, bars.params[0], bars.params[0], bars.params[1], bars.params[3], 0],
    )
    pointwise, everywhere = bars.band(kind="pointwise"), bars.band()
    assert np.all((everywhere[:, 0] <= pointwise[:, 0]) & (everywhere[:, 1] >= pointwise[:, 1]))
    part = dp.density(session, "income", bins=[40, 50, 60], spend=PLENTY)
    expected = counts[1:3] / (1000 if neighbors == dp.Replace() else counts[1:3].sum())
    np.testing.assert_allclose(part.shares(consistent=True), expected, atol=0.01)


def test_default_bins_follow_the_number_of_rows_and_the_noise() -> None:
    assert [default_bins(n, 0.0) for n in (200, 1000, 5000)] == [13, 23, 39]
    assert default_bins(200, 32.0) < default_bins(200, 2.0) < default_bins(200, 0.0)
    assert default_bins(1, 1e9) == 2
    edges = dp.density(open_session(), "age", spend=dp.GDP(0.5)).edges
    assert (edges[0], edges[-1]) == (17.5, 90.5)
    assert set(np.diff(edges)) <= {3.0, 4.0, 5.0}
    few = dp.density(small([3] * 5), "k", spend=dp.GDP(100))
    assert len(few.edges) - 1 <= 13


def test_default_points_follow_the_public_number_of_rows_and_the_noise() -> None:
    assert [ecdf_leaves(rows, 0.0) for rows in (0, 1, 300, 2000, 10**8, None)] == [
        64,
        64,
        512,
        1024,
        4096,
        1024,
    ]
    assert ecdf_leaves(300, 1000.0) == 128
    found = [
        len(dp.ecdf(open_session(), "income", spend=dp.GDP(mu)).points) for mu in (0.01, 0.08, 10)
    ]
    assert found[0] == 63 < found[1] < found[2] == 511
    assert quantile_leaves(open_session().public) == 16_000
    assert quantile_leaves(open_session(RELATIONS[1]).public) == 1 << 14


@pytest.mark.parametrize(
    ("column", "points"),
    [("income", 63), ("income", 255), ("income", 1000), ("age", 60), ("age", 72), ("age", 5000)],
)
def test_there_are_at_least_as_many_points_as_asked_for(column: str, points: int) -> None:
    found = len(dp.ecdf(open_session(), column, spend=dp.GDP(1), points=points).points)
    assert found >= min(points, 72 if column == "age" else points)
    assert found <= 72 if column == "age" else found < 2 * points


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [dp.ecdf, dp.density], ids=lambda estimator: estimator.__name__
)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS[:2], ids=repr)
def test_previews_are_free_and_come_true(
    monkeypatch: pytest.MonkeyPatch, estimator: Any, neighbors: Any, spend: Any
) -> None:
    session = seeded_session(data_set(neighbors), dp.GDP(1000), "preview")
    head, assume = session.ledger.head, dp.Assumptions(rows=1000, mean=50, standard_deviation=10)
    with monkeypatch.context() as patched:
        for method in ("sums", "histogram"):
            patched.setattr(
                MemoryEngine, method, lambda self, plan: pytest.fail("a preview read data")
            )
        preview = dp.preview(session, estimator, "income", spend=spend, assume=assume)
    assert session.ledger.head == head
    result = estimator(session, "income", spend=spend)
    main = result.quantities()[-1]
    assert preview.question.mechanism == result.release.mechanism
    assert preview.noise == pytest.approx(
        float(np.sqrt(np.median(main.privacy_variance))), rel=0.25
    )
    if estimator is dp.ecdf:
        assert preview.width == pytest.approx(float(np.median(main.high - main.low)), rel=0.5)
    assert "Nothing was spent" in str(preview)


@pytest.mark.parametrize("points", [0, -1, 1 << 16, 2.5, True, "many"])
def test_impossible_numbers_of_points_are_refused_before_the_debit(points: Any) -> None:
    session = open_session()
    head = session.ledger.head
    with pytest.raises(dp.InvalidParameter, match="points"):
        dp.ecdf(session, "income", spend=dp.GDP(0.1), points=points)
    assert session.ledger.head == head


def test_other_mistakes_are_refused_before_the_debit() -> None:
    session = open_session()
    head = session.ledger.head
    for call in (
        lambda: dp.ecdf(session, "region", spend=dp.GDP(0.1)),
        lambda: dp.density(session, "region", spend=dp.GDP(0.1)),
        lambda: dp.density(session, "member", spend=dp.GDP(0.1)),
        lambda: dp.ecdf(session, "incone", spend=dp.GDP(0.1)),
        lambda: dp.density(small([1] * 20), "x", bins=1, spend=dp.GDP(0.1)),
        lambda: dp.density(session, "income", bins=[3, 2, 1], spend=dp.GDP(0.1)),
        lambda: dp.ecdf(session, "income", spend=0.1),
        lambda: dp.ecdf(None, "income", spend=dp.GDP(0.1)),  # type: ignore[arg-type]
    ):
        with pytest.raises(dp.DiscreetError):
            call()
    assert session.ledger.head == head
    result = dp.ecdf(session, "income", spend=dp.GDP(1))
    with pytest.raises(dp.InvalidParameter, match="kind"):
        result.band(kind="both")
    with pytest.raises(dp.InvalidParameter, match="level"):
        result.band(1.5)


def test_asking_again_with_a_key_costs_nothing() -> None:
    session = open_session()
    first = dp.ecdf(session, "income", spend=dp.GDP(0.3), key="curve")
    head = session.ledger.head
    again = dp.ecdf(session, "income", spend=dp.GDP(0.3), key="curve")
    assert again.release.integers == first.release.integers
    assert session.ledger.head == head
    np.testing.assert_array_equal(again.band(), first.band())  # the calibration repeats, too


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_distributions_are_drawn(tmp_path: Path, neighbors: Any) -> None:
    session = open_session(neighbors)
    for name, result in (
        ("curve", dp.ecdf(session, "income", spend=dp.GDP(0.5), points=100)),
        ("steps", dp.ecdf(session, "age", spend=dp.GDP(0.02))),
        ("bars", dp.density(session, "age", spend=dp.GDP(0.5))),
    ):
        path = tmp_path / f"{name}.png"
        (axes,) = result.plot(0.9, path=str(path)).axes
        assert path.read_bytes().startswith(PNG)
        assert result.title in axes.get_title(loc="left")
        assert any(str(result.release.guarantee) in text.get_text() for text in axes.texts)
        assert len(axes.get_legend().get_texts()) == 4


@pytest.mark.parametrize("spend", SPENDS, ids=repr)
def test_every_kind_of_spend_buys_a_distribution(spend: Any) -> None:
    session = seeded_session(data_set(), dp.GDP(1000), "spend")
    curve, bars = dp.ecdf(session, "age", spend=spend), dp.density(session, "age", spend=spend)
    for result in (curve, bars):
        assert result.release.mechanism.kind == (
            "geometric" if isinstance(spend, dp.PureDP) else "gaussian"
        )
        assert np.all(result.std_errors > 0)
    assert abs(curve.cdf(54.0) - 0.5) < 0.2
