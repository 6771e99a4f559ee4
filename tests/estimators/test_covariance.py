"""dp.covariance and dp.correlation: right answers, honest intervals, total behaviour,
and what is refused.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from scipy import stats
from tests.benchmark_modules import benchmark

import discreet as dp
from discreet.accounting.guarantees import spend_mu_squared
from discreet.estimators.matrices import _dividing, correlation_question
from discreet.inference.means.pair_decode import decode_pairs
from discreet.inference.means.pairs import (
    correlation_estimate,
    correlation_interval,
    covariance_estimate,
    covariance_interval,
)
from discreet.inference.means.variances import supported_by_normal
from discreet.testing import SeededSource, seeded_session

LARGE = dp.GDP(400)
RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
]
SCHEMA = {
    "x": dp.Real(-5, 5),
    "y": dp.Real(-20, 40),
    "k": dp.Integer(0, 4),
    "b": dp.Boolean(),
    "g": dp.Category(["p", "q"]),
}


def table(rows: int = 4000) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    x = rng.standard_normal(rows)
    return {
        "x": x,
        "y": 10 + 6 * x + 4 * rng.standard_normal(rows),
        "k": rng.integers(0, 5, rows),
        "b": rng.random(rows) < 0.3,
        "g": np.where(x > 0, "p", "q"),
        "id": np.arange(rows),
    }


def ask(
    arrays: dict[str, Any], neighbors: Any, budget: Any = None, schema: Any = None
) -> dp.Session:
    return seeded_session(
        dp.from_arrays(arrays, schema=schema or SCHEMA, neighbors=neighbors),
        budget or dp.GDP(900),
        "covariance",
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_with_little_noise_they_are_the_textbook_matrices(neighbors: Any) -> None:
    data = table()
    session = ask(data, neighbors)
    names = ["x", "y", "k", "b"]
    values = np.array([np.asarray(data[name], dtype=float) for name in names])
    covariance, correlation = (
        dp.covariance(session, names, spend=LARGE),
        dp.correlation(session, names, spend=LARGE),
    )
    scale = np.sqrt(np.outer(*[np.diag(np.cov(values))] * 2))
    assert np.max(np.abs(covariance.matrix - np.cov(values)) / scale) < 2e-3
    assert np.max(np.abs(correlation.matrix - np.corrcoef(values))) < 2e-3
    kept = values[:, data["g"] == "p"]
    filtered = dp.correlation(session, names, spend=LARGE, where={"g": "p"})
    assert np.max(np.abs(filtered.matrix - np.corrcoef(kept))) < 4e-3
    assert covariance.names == tuple(names)
    assert covariance.labels[1] == ("x", "y")


def test_standard_errors_are_the_asymptotic_ones_without_noise() -> None:
    data = table()
    session = ask(data, dp.Replace())
    fit, spread = (
        dp.correlation(session, ["x", "y"], spend=LARGE),
        dp.covariance(session, ["x", "y"], spend=LARGE),
    )
    x, y = data["x"] - data["x"].mean(), data["y"] - data["y"].mean()
    z, w = x / x.std(), y / y.std()
    r = float(np.mean(z * w))
    expected = math.sqrt(np.var(z * w - r / 2 * (z**2 + w**2)) / len(x))
    assert fit.std_errors[0] == pytest.approx(expected, rel=0.01)
    assert spread.std_errors == pytest.approx(
        [math.sqrt(np.var(u * v) / len(x)) for u, v in ((x, x), (x, y), (y, y))], rel=0.01
    )
    low, high = fit.confidence_interval()[0]
    fisher = np.tanh(np.arctanh(r) + np.array([-1, 1]) * 1.96 * expected / (1 - r**2))
    assert [low, high] == pytest.approx(list(fisher), abs=1e-3)
    estimate, inner_low, inner_high = fit.between("y", "x", 0.5)
    assert low < inner_low < estimate < inner_high < high
    with pytest.raises(dp.InvalidParameter, match="no pair"):
        fit.between("x", "k")


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_noise_share_and_data_intervals(neighbors: Any) -> None:
    session = ask(table(), neighbors)
    fit = dp.correlation(session, ["x", "y"], spend=dp.GDP(1))
    both, private = fit.confidence_interval(), fit.confidence_interval(target="data")
    assert private[0, 1] - private[0, 0] < both[0, 1] - both[0, 0]
    assert 0 < fit.noise_share[0] < 1
    assert -1 <= both[0, 0] < both[0, 1] <= 1
    assert "noise %" in str(fit.summary())
    assert str(fit.summary()).startswith("Private correlations of x, y")


# ── coverage, small; benchmarks/coverage_location.py has the whole grid ───────────────────────────


def simulated(
    neighbors: Any, spend: Any, size: int, rho: float, repetitions: int
) -> tuple[Any, Any]:
    """Statistics of `repetitions` seeded releases of normal pairs,
    through the public question and the exact mechanism's law.
    """
    rng = np.random.default_rng(size)
    public = (
        dp.from_arrays(
            {"x": [0.0] * size, "y": [0.0] * size},
            schema={"x": dp.Real(-4, 4), "y": dp.Real(-4, 4)},
            neighbors=neighbors,
        )
        .open(budget=spend)
        .public
    )
    question = correlation_question(public, ["x", "y"], spend=spend)
    query, mechanism = question.query, question.mechanism
    z = rng.standard_normal((2, repetitions, size))
    grid = query.factors[0].encoding
    codes = [
        np.floor((np.clip(value, -4, 4) - grid.center) * grid.per_unit + 0.5)
        for value in (z[0], rho * z[0] + math.sqrt(1 - rho**2) * z[1])
    ]
    sums = {
        term: (codes[0] ** term.count(0) * codes[1] ** term.count(1)).sum(axis=1)
        for term in query.terms()
    }
    cut = 2.0**mechanism.refinement
    off = [place in (1, 2, 4) for place in range(query.size)]
    spreads = np.where(off, float(mechanism.off_spread), float(mechanism.spread)) * cut
    released = np.array(query.arrange(sums)) * cut + spreads[:, None] * rng.standard_normal(
        (query.size, repetitions)
    )
    return decode_pairs(
        query,
        mechanism,
        released,
        public_rows=size if neighbors.row_count_is_public else None,
        cluster=1,
    ), grid


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
@pytest.mark.parametrize(
    ("size", "rho", "mu"), [(500, 0.0, 1.0), (500, 0.8, 0.5), (1000, 0.3, 1.0)]
)
def test_intervals_cover(neighbors: Any, size: int, rho: float, mu: float) -> None:
    repetitions = 1500
    statistics, grid = simulated(neighbors, dp.GDP(mu), size, rho, repetitions)
    pair = statistics.pair(0, 1)
    low, high = correlation_interval(correlation_estimate(pair), 0.95, target="population")
    variance = covariance_estimate(statistics.pair(0, 0), "xx")
    lower, upper = covariance_interval(
        variance, pair.rows, 0.95, target="population", is_variance=True
    )
    truth = (grid.per_unit / grid.high) ** 2
    for hits in ((low <= rho) & (rho <= high), (lower <= truth) & (truth <= upper)):
        assert stats.binom.cdf(hits.sum(), repetitions, 0.94) > 1e-9
        assert hits.mean() < 0.99


@pytest.mark.slow
def test_coverage_would_show_noise_taken_for_smaller() -> None:
    """Control: inference that believes half of the noise is caught by the same limit."""
    statistics, _ = simulated(dp.Replace(), dp.GDP(0.5), 500, 0.3, 1500)
    wrong = type(statistics)(
        statistics.columns,
        statistics.sums,
        {place: variance / 4 for place, variance in statistics.noise.items()},
        1,
    )
    low, high = correlation_interval(
        correlation_estimate(wrong.pair(0, 1)), 0.95, target="population"
    )
    assert stats.binom.cdf(((low <= 0.3) & (high >= 0.3)).sum(), 1500, 0.94) < 1e-9


@pytest.fixture
def bench() -> Any:
    return benchmark("coverage_pairs")


@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_the_path_of_the_benchmark_is_the_public_one(bench: Any, neighbors: Any) -> None:
    """One data set, the same words: the benchmark's interval of a correlation and of a variance is
    the public function's.
    """
    margin, size = bench.MARGINS[0], 300
    x, y = (
        margin.clamped(np.random.default_rng(seed).standard_normal((1, size))) for seed in (1, 2)
    )
    schema = {"x": margin.column, "y": margin.column}
    data = dp.from_arrays({"x": x[0], "y": y[0]}, schema=schema, neighbors=neighbors)
    for estimator in ("correlation", "variance"):
        session = seeded_session(data, dp.GDP(5), "same")
        if estimator == "correlation":
            public = dp.correlation(session, ["x", "y"], spend=dp.GDP(1))
            question = correlation_question(session.public, ["x", "y"], spend=dp.GDP(1))
            codes = [
                bench._codes(value.copy(), factor.encoding)
                for value, factor in zip((x, y), question.query.factors, strict=True)
            ]
            sums = dict(
                zip(
                    question.query.terms(),
                    bench._products(*codes, question.query.terms()),
                    strict=True,
                )
            )
            low, high = bench.correlation_intervals(
                question, sums, session.public.rows, SeededSource("same")
            )
        else:
            public = dp.variance(session, "x", spend=dp.GDP(1))
            question = bench.variance_question(session.public, "x", spend=dp.GDP(1))
            codes = bench._codes(x.copy(), question.query.factor.encoding)
            low, high = bench.variance_intervals(
                question,
                np.array([(codes**power).sum(axis=1) for power in range(5)]),
                session.public.rows,
                SeededSource("same"),
            )
        assert public.confidence_interval()[0] == pytest.approx([low[0], high[0]], rel=1e-9)


# ── total behaviour ───────────────────────────────────────────────────────────────────────────────

ODD: dict[str, list[Any]] = {
    "empty": [],
    "one": [0.3],
    "two": [0.3, -0.2],
    "constant": [1.5] * 50,
    "at a bound": [9.0] * 50,
    "missing": [None, math.nan, math.inf, 1.0, "text"] * 5,
}


@pytest.mark.slow
@pytest.mark.parametrize("values", ODD.values(), ids=ODD)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_odd_data_give_a_wide_answer_and_no_exception(values: list[Any], neighbors: Any) -> None:
    rows = len(values)
    arrays = {
        "x": values,
        "y": [0.5] * rows,
        "k": [2] * rows,
        "b": [True] * rows,
        "g": ["p"] * rows,
        "id": list(range(rows)),
    }
    session = ask(arrays, neighbors)
    correlation = dp.correlation(session, ["x", "y", "k"], spend=dp.GDP(1))
    interval = correlation.confidence_interval()
    assert np.all(
        (interval[:, 0] >= -1) & (interval[:, 0] <= interval[:, 1]) & (interval[:, 1] <= 1)
    )
    assert np.all(interval[:, 1] - interval[:, 0] > 0.5), (
        "a column without spread has no correlation"
    )
    covariance = dp.covariance(session, ["x", "y", "k"], spend=dp.GDP(1))
    assert np.all(np.isfinite(covariance.confidence_interval()))
    for result in (correlation, covariance):
        assert np.all(np.isfinite(result.matrix))
        assert np.linalg.eigvalsh(result.positive_definite())[0] > 0
        assert str(result.summary())


def test_a_repaired_matrix_is_positive_definite_and_near() -> None:
    data = table(300)
    session = ask(data, dp.AddRemove())
    names = ["x", "y", "k", "b"]
    covariance, correlation = (
        dp.covariance(session, names, spend=dp.GDP(0.2)),
        dp.correlation(session, names, spend=dp.GDP(0.2)),
    )
    assert np.linalg.eigvalsh(covariance.positive_definite())[0] > 0
    repaired = correlation.positive_definite()
    assert np.linalg.eigvalsh(repaired)[0] > 0
    assert np.diag(repaired) == pytest.approx(np.ones(4))
    assert np.max(np.abs(repaired)) <= 1
    clear = dp.covariance(session, names, spend=LARGE)
    assert clear.positive_definite() == pytest.approx(clear.matrix, rel=1e-9)


def test_two_equal_columns_and_one_column_alone() -> None:
    data = table()
    data["copy"] = data["x"]
    session = ask(data, dp.Replace(), schema=SCHEMA | {"copy": dp.Real(-5, 5)})
    fit = dp.correlation(session, ["x", "copy"], spend=dp.GDP(5))
    assert fit.confidence_interval()[0, 1] == 1
    assert fit.confidence_interval()[0, 0] > 0.8
    alone = dp.covariance(session, ["x"], spend=dp.GDP(5))
    assert alone.matrix.shape == (1, 1)
    assert alone.confidence_interval()[0, 0] < np.var(data["x"]) < alone.confidence_interval()[0, 1]


@pytest.mark.slow
def test_thirty_columns_in_one_release() -> None:
    rng = np.random.default_rng(3)
    names = [f"v{j}" for j in range(30)]
    arrays = {name: rng.uniform(-1, 1, 500) for name in names}
    session = ask(arrays, dp.Replace(), schema={name: dp.Real(-1, 1) for name in names})
    fit = dp.correlation(session, names, spend=dp.GDP(100))
    assert fit.matrix.shape == (30, 30)
    assert np.max(np.abs(fit.matrix - np.corrcoef(np.array(list(arrays.values()))))) < 0.02
    assert dp.from_json(fit.to_json()).matrix == pytest.approx(fit.matrix)


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_files_give_the_same_integers(neighbors: Any, tmp_path: Any) -> None:
    """Memory and Parquet, bit for bit, with missing and outlying cells and a filter."""
    rows = 200
    data = table(rows)
    columns = {name: data[name].tolist() for name in SCHEMA} | {
        "id": [f"u{place // 3}" for place in range(rows)]
    }
    columns["x"][:4] = [None, math.nan, 1e9, -1e9]
    columns["k"][0] = None
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    sources = (
        dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors),
        dp.read_parquet(tmp_path / "t.parquet", schema=SCHEMA, neighbors=neighbors),
    )
    found = [
        dp.covariance(
            seeded_session(source, dp.GDP(5), "file"),
            ["x", "y", "k", "b"],
            spend=dp.GDP(1),
            where={"g": "p"},
        ).release.integers
        for source in sources
    ]
    assert found[0] == found[1]


def test_a_hidden_sampling_variance_is_supported_and_a_visible_one_is_left_alone() -> None:
    estimate, normal = np.array([0.0, 0.2, 1.0, 3.0]), np.ones(4)
    visible, deviation = supported_by_normal(estimate, np.full(4, 1e-6), normal)
    assert visible == pytest.approx(estimate, abs=1e-11)
    assert deviation == pytest.approx(1e-6)
    hidden, deviation = supported_by_normal(estimate, np.full(4, 100.0), normal)
    assert hidden == pytest.approx([1, 1, 1, 3], abs=1e-3)
    assert np.all(deviation <= 1)
    assert supported_by_normal(np.zeros(1), np.zeros(1), np.zeros(1))[0][0] == 0


# ── the result as an object ───────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_results_round_trip_pickle_and_plot(tmp_path: Any) -> None:
    session = ask(table(200), dp.Replace())
    for fit in (
        dp.covariance(session, ["x", "y"], spend=dp.GDP(1)),
        dp.correlation(session, ["x", "y"], spend=dp.GDP(1)),
    ):
        again = dp.from_json(fit.to_json())
        assert type(again) is type(fit)
        assert again == fit == pickle.loads(pickle.dumps(fit))
        frame = fit.to_frame()
        assert list(frame["column"]) == [label[0] for label in fit.labels]
        path = tmp_path / "matrix.png"
        fit.plot(path=str(path))
        assert path.stat().st_size > 1000


def test_the_release_takes_the_session_key() -> None:
    session = ask(table(200), dp.Replace())
    first = dp.correlation(session, ["x", "y"], spend=dp.GDP(1), key="pair")
    spent = session.ledger.spent()
    assert dp.correlation(session, ["x", "y"], spend=dp.GDP(1), key="pair") == first
    assert session.ledger.spent() == spent


@pytest.mark.parametrize("neighbors", RELATIONS[:2], ids=str)
def test_preview_foretells_the_width(neighbors: Any) -> None:
    session = ask(table(), neighbors)
    assume = dp.Assumptions(rows=4000, standard_deviation=1)
    schema = {"x": dp.Real(-5, 5), "z": dp.Real(-5, 5)}
    independent = ask(
        {
            "x": np.random.default_rng(1).standard_normal(4000),
            "z": np.random.default_rng(2).standard_normal(4000),
        },
        neighbors,
        schema=schema,
    )
    forecast = dp.preview(independent, dp.correlation, ["x", "z"], spend=dp.GDP(1), assume=assume)
    fit = dp.correlation(independent, ["x", "z"], spend=dp.GDP(1))
    low, high = fit.confidence_interval()[0]
    assert forecast.width == pytest.approx(high - low, rel=0.2)
    assert (
        dp.preview(
            session, dp.covariance, ["x", "y"], spend=dp.GDP(1), assume=assume, where={"g": "p"}
        ).noise
        > 0
    )


def test_what_is_refused_before_any_debit() -> None:
    session = ask(table(50), dp.Replace())
    spent = session.ledger.spent()
    with pytest.raises(dp.NoTheorem, match="pure"):
        dp.covariance(session, ["x", "y"], spend=dp.PureDP(1))
    with pytest.raises(dp.WrongColumnKind):
        dp.covariance(session, ["x", "g"], spend=LARGE)
    with pytest.raises(dp.UndeclaredColumn):
        dp.covariance(session, ["x", "nothing"], spend=LARGE)
    for wrong in ("xy", [], ["x", "x"], None, [f"v{j}" for j in range(60)]):
        with pytest.raises(dp.InvalidParameter):
            dp.covariance(session, wrong, spend=LARGE)
    with pytest.raises(dp.InvalidParameter):
        dp.correlation(session, ["x"], spend=LARGE)
    with pytest.raises(dp.InvalidParameter):
        dp.correlation(None, ["x", "y"], spend=LARGE)
    with pytest.raises(dp.InvalidParameter):
        dp.correlation(session, ["x", "y"], spend=0.5)
    assert session.ledger.spent() == spent


def test_codes_shrink_with_the_spend_and_keep_whole_numbers_on_the_grid() -> None:
    data = table(50)
    for spend in (dp.GDP(1), dp.GDP(1e-3), dp.ZCDP(1e-6), dp.ApproxDP(0.01, 1e-9)):
        for neighbors in RELATIONS:
            public = (
                dp.from_arrays(data, schema=SCHEMA, neighbors=neighbors)
                .open(budget=dp.GDP(9))
                .public
            )
            question = correlation_question(public, ["x", "y", "k", "b"], spend=spend)
            assert question.query.height % 4 == 0
            assert (
                question.mechanism.sensitivity.squared / question.mechanism.spread** 2
                <= spend_mu_squared(spend)
            )
    assert _dividing(2047, [dp.Integer(0, 100), dp.Integer(0, 4)]) == 2000
    assert _dividing(63, [dp.Integer(0, 100)]) == 63


def test_seeded_noise_repeats() -> None:
    data = dp.from_arrays(table(100), schema=SCHEMA, neighbors=dp.Replace())
    results = [
        dp.covariance(
            seeded_session(data, dp.GDP(5), "again"), ["x", "y"], spend=dp.GDP(1)
        ).release.integers
        for _ in range(2)
    ]
    assert results[0] == results[1]
    assert SeededSource("again").secure is False
