"""Coverage of nominal 95 % intervals: a small, powerful version of benchmarks/coverage_basic.py,
whose path is the public one.
"""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.benchmark_modules import benchmark

import discreet as dp
from discreet.testing import SeededSource, seeded_session

ALPHA = 1e-6  # of each cell, at the least coverage that is allowed
REPETITIONS = 1500
CASES = [
    ("normal", 200),
    ("bernoulli.05", 200),
    ("skewed", 200),
    ("normal", 1000),
    ("bernoulli.05", 1000),
    ("uniform", 1000),
]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark, with noise that repeats."""
    module = benchmark("coverage_basic")
    source = SeededSource("coverage")
    monkeypatch.setattr(module, "secure_source", lambda: source)
    return module


def law_of(bench: ModuleType, name: str) -> Any:
    return next(law for law in bench.LAWS if law.name == name)


def too_low(bench: ModuleType, row: Any) -> bool:
    """Whether so few of the repetitions covered that the allowed coverage,
    or the textbook's where that is lower, is refuted.
    """
    allowed = (
        bench.LOWEST if row.textbook >= bench.LEVEL else min(bench.LOWEST, row.textbook - 0.01)
    )
    return bool(stats.binom.cdf(round(row.coverage * REPETITIONS), REPETITIONS, allowed) < ALPHA)


def too_high(bench: ModuleType, row: Any) -> bool:
    return bool(
        row.judged_above
        and stats.binom.sf(round(row.coverage * REPETITIONS) - 1, REPETITIONS, bench.HIGHEST)
        < ALPHA
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), CASES)
def test_intervals_cover(bench: ModuleType, name: str, size: int) -> None:
    rows = list(bench.rows_for(law_of(bench, name), size, REPETITIONS, np.random.default_rng(size)))
    assert len(rows) >= 12
    bad = [
        f"{row.case}: {row.coverage:.4f} (textbook {row.textbook:.4f})"
        for row in rows
        if too_low(bench, row) or too_high(bench, row)
    ]
    assert not bad, "\n".join(bad)
    assert max(row.width_ratio for row in rows) < 2.5


def with_noise_scaled(monkeypatch: pytest.MonkeyPatch, bench: ModuleType, weight: float) -> None:
    """Make inference believe that the noise is `weight` times what it is."""

    def scaled(thing: Any) -> Any:
        if isinstance(thing, tuple) and thing and hasattr(thing[0], "scaled"):
            return tuple(noise.scaled(weight) for noise in thing)
        return thing.scaled(weight) if hasattr(thing, "scaled") else thing

    for name in ("decode_means", "decode_variance", "decode_shares"):
        honest = getattr(bench, name)

        def wrong(*arguments: Any, honest: Any = honest, **options: Any) -> Any:
            statistics = honest(*arguments, **options)
            return dataclasses.replace(
                statistics,
                **{
                    field.name: scaled(getattr(statistics, field.name))
                    for field in dataclasses.fields(statistics)
                },
            )

        monkeypatch.setattr(bench, name, wrong)


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.5, 0.8])
def test_intervals_that_take_the_noise_for_smaller_fail(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, weight: float
) -> None:
    with_noise_scaled(monkeypatch, bench, weight)
    with np.errstate(all="ignore"):
        rows = list(
            bench.rows_for(law_of(bench, "normal"), 200, REPETITIONS, np.random.default_rng(200))
        )
    # where noise hides the mean, a variance's interval is a profile that has room for a little more
    for kind in ("mean", "histogram") if weight > 0.5 else ("mean", "variance", "histogram"):
        caught = [row for row in rows if row.case.startswith(kind) and too_low(bench, row)]
        assert caught, f"no {kind} interval was caught"


# ── the benchmark's path is the public one ────────────────────────────────────────────────────────

SIZE = 300


class Recorder:
    """Keeps the intervals that the benchmark asks for."""

    def __init__(self, interval: Any) -> None:
        self.interval, self.seen = interval, []

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.seen.append(self.interval(*arguments, **options))
        return self.seen[-1]


def recorded(
    monkeypatch: pytest.MonkeyPatch, bench: ModuleType, interval: str, relation: Any, spend: Any
) -> Recorder:
    """One relation, one spend, and noise from the same words as a seeded session's first
    release.
    """
    recorder = Recorder(getattr(bench, interval))
    monkeypatch.setattr(bench, interval, recorder)
    monkeypatch.setattr(bench, "RELATIONS", (relation,))
    monkeypatch.setattr(bench, "SPENDS", (spend,))
    monkeypatch.setattr(bench, "secure_source", lambda: SeededSource("same"))
    return recorder


def public_session(
    arrays: dict[str, np.ndarray], schema: dict[str, Any], relation: Any
) -> dp.Session:
    return seeded_session(
        dp.from_arrays(arrays, schema=schema, neighbors=relation), dp.GDP(100), "same"
    )


def assert_same(public: np.ndarray, benchmark: np.ndarray) -> None:
    np.testing.assert_allclose(public, benchmark, rtol=1e-9, atol=1e-12)


EVERY = pytest.mark.parametrize(
    ("relation", "spend"),
    [
        (relation, spend)
        for relation in (dp.Replace(), dp.AddRemove())
        for spend in (dp.GDP(0.5), dp.PureDP(0.5))
    ],
    ids=str,
)


@EVERY
def test_means_and_variances_are_the_public_ones(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, relation: Any, spend: Any
) -> None:
    law = law_of(bench, "normal")
    values = law.sample(np.random.default_rng(1), (1, SIZE))
    for bits, degree, ask, rows, interval in (
        (16, 2, dp.mean, bench.mean_rows, "mean_interval"),
        (10, 4, dp.variance, bench.variance_rows, "variance_interval"),
    ):
        recorder = recorded(monkeypatch, bench, interval, relation, spend)
        grid = law.column.encoding(bits)
        sums = bench.power_sums(bench.encode(values, grid), degree)
        list(
            rows(law, SIZE, sums, 0.95)
            if ask is dp.mean
            else rows(law, SIZE, sums, 0.95, 3 * law.variance**2)
        )
        ((low, high),) = recorder.seen
        result = ask(
            public_session(
                {"x": values[0]}, {"x": dataclasses.replace(law.column, missing=50)}, relation
            ),
            "x",
            spend=spend,
        )
        worth, step = float(grid.high * grid.step), float(grid.step)
        if ask is dp.mean:
            expected = [
                np.clip(50 + worth * low[0] - step / 2, 0, 100),
                np.clip(50 + worth * high[0] + step / 2, 0, 100),
            ]
        else:
            expected = [max(end[0] * worth**2 - step**2 / 12, 0) for end in (low, high)]
        assert_same(result.confidence_interval()[0], np.array(expected))


@pytest.mark.slow
@EVERY
def test_shares_are_the_public_ones(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, relation: Any, spend: Any
) -> None:
    rng = np.random.default_rng(2)
    yes = rng.random(SIZE) < 0.2
    recorder = recorded(monkeypatch, bench, "share_interval", relation, spend)
    list(
        bench.share_rows(
            "proportion",
            np.array([[yes.sum()], [SIZE - yes.sum()]]),
            np.array([0.2, 0.8]),
            SIZE,
            True,
        )
    )
    result = dp.proportion(
        public_session({"yes": yes}, {"yes": dp.Boolean(missing=False)}, relation),
        "yes",
        spend=spend,
    )
    assert_same(
        result.confidence_interval(method="score")[0],
        np.array([recorder.seen[-1][0][0, 0], recorder.seen[-1][1][0, 0]]),
    )

    values = np.clip(rng.normal(50, 10, SIZE), 0, 100)
    counts = np.histogram(values, bench.EDGES)[0]
    list(bench.share_rows("histogram", counts[:, None], np.full(10, 0.1), SIZE, False))
    result = dp.histogram(
        public_session({"x": values}, {"x": dp.Real(0, 100, missing=50)}, relation),
        "x",
        bins=10,
        spend=spend,
    )
    assert_same(
        result.confidence_interval(), np.stack([end[:, 0] for end in recorder.seen[-1]], axis=1)
    )


@EVERY
def test_tables_are_the_public_ones(
    bench: ModuleType, monkeypatch: pytest.MonkeyPatch, relation: Any, spend: Any
) -> None:
    law, rng = law_of(bench, "skewed"), np.random.default_rng(3)
    values, group = law.sample(rng, (1, SIZE)), rng.choice(4, SIZE, p=bench.GROUPS)
    grid = law.column.encoding(16)
    codes = bench.encode(values, grid)
    cells = np.stack([bench.power_sums(codes[:, group == cell], 2)[0] for cell in range(4)])[None]
    recorder = recorded(monkeypatch, bench, "mean_interval", relation, spend)
    list(bench.table_rows(law, SIZE, cells, np.full(4, 0.95)))
    ((low, high),) = recorder.seen
    schema = {"x": law.column, "g": dp.Category(list("abcd"))}
    result = dp.table(
        public_session({"x": values[0], "g": np.array(list("abcd"))[group]}, schema, relation),
        "x",
        by="g",
        spend=spend,
    )
    worth, step = float(grid.high * grid.step), float(grid.step)
    expected = np.clip(
        grid.center
        + worth * np.stack([low, high], axis=-1).reshape(4, 2)
        + np.array([-step / 2, step / 2]),
        0,
        1,
    )
    assert_same(result.confidence_interval(), expected)
