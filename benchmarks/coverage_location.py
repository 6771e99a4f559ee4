"""Coverage of 95 % intervals for location and scale,
beside the textbook interval on the same draws.

    python benchmarks/coverage_location.py [--quick]

Every repetition draws data, runs the mechanism that a session would run (exact noise, on the
histogram of the grid) and the inference that reads its answer. Repetitions are fixed: REPETITIONS
in every cell. A *case* is one distribution with its quantities; add one to CASES:

    Case(name, draw(rng, n) → values, cells: list of Cell(label, target,
        private(values, source) → (low, high), textbook(values) → (low, high)))

where `private` drives the library and `textbook` is the usual non-private interval. Requirements
(issue 4): at least 0.94 where the textbook interval covers 0.945 or more, elsewhere at most 0.01
below it; at most 0.99 for n ≥ 1000. The last holds no reading for quantiles of coarse discrete
data, where the textbook interval itself covers nearly always: cells with textbook coverage above
0.985 are listed and left out of `best_coverage`.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

import stored
from discreet.accounting.guarantees import GDP
from discreet.estimators.quantiles import quantile_question
from discreet.inference.quantiles.quantiles import QuantileResult
from discreet.neighbors import Replace
from discreet.schema import Real, Schema
from discreet.specs.statistics import histogram_of_cells
from discreet.testing import SeededSource
from discreet.trusted.noise.kernels import compiled_kernel
from discreet.trusted.noise.samplers import apply
from discreet.trusted.release import PublicFacts, Release

REPETITIONS = 10_000
SIZES = (500, 1000, 10_000)
SPENDS = (0.5, 1.0)
LEVEL = 0.95
LEAST, LEAST_TEXTBOOK, SHORTFALL, MOST, MOST_FROM = 0.94, 0.945, 0.01, 0.99, 1000
DEGENERATE = 0.985  # textbook coverage above which an interval cannot but cover too often

Interval = tuple[float, float]


@dataclass(frozen=True)
class Cell:
    """One quantity at one spend: the true value, the private interval and the textbook one."""

    label: str
    target: float
    private: Callable[[Any, SeededSource], Interval]
    textbook: Callable[[Any], Interval]


@dataclass(frozen=True)
class Case:
    """One distribution: how to draw it and what is estimated from it, for a number of rows."""

    name: str
    draw: Callable[[np.random.Generator, int], Any]
    cells: Callable[[int], list[Cell]]
    sizes: tuple[int, ...] = SIZES
    # (n, repetitions, seed) → the rows of `coverage`, for cases that run all repetitions at once
    batch: Callable[[int, int, int], list[tuple[str, int, str, float, float, float]]] | None = None


# ── quantiles ─────────────────────────────────────────────────────────────────────────────────────


def order_statistics(q: float, n: int) -> tuple[int, int]:
    """Indices of the textbook interval: x_(l) ≤ quantile ≤ x_(u) with binomial tails of at most
    2.5 % each.
    """
    low, high = stats.binom.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], n, q)
    return max(int(low) - 1, 0), min(int(high), n - 1)


def quantile_cells(
    low: float, high: float, targets: dict[Fraction, float], **options: Any
) -> Callable[[int], list[Cell]]:
    """The quantiles `targets` of a column declared on [low, high], at every spend; `options` are
    those of `dp.quantile`.
    """
    # the other methods need a public number of rows that hold a value
    schema = Schema({"x": Real(low, high, missing=low if "method" in options else None)})

    def cells(n: int) -> list[Cell]:
        public = PublicFacts(schema, Replace(), n)
        found = []
        for mu in SPENDS:
            for q, target in targets.items():
                found.append(
                    Cell(
                        f"q={float(q):g} μ={mu:g}",
                        target,
                        _private_quantile(public, q, mu, **options),
                        _textbook_quantile(float(q), n),
                    )
                )
        return found

    return cells


def _private_quantile(
    public: PublicFacts, q: Fraction, mu: float, **options: Any
) -> Callable[[Any, SeededSource], Interval]:
    question = quantile_question(public, "x", q, spend=GDP(mu), **options)
    query: Any = question.query
    grid = query.factor.encoding

    def interval(values: Any, source: SeededSource) -> Interval:
        codes = (
            np.clip(
                np.floor((values - grid.center) * grid.per_unit + 0.5), grid.low, grid.high
            ).astype(np.int64)
            - grid.low
        )
        answer = apply(question.mechanism, histogram_of_cells(query.size, codes), source)
        release = Release(
            question.description,
            query,
            question.mechanism,
            answer.integers,
            public.neighbors,
            question.spend,
            question.spend,
            public.count,
            "benchmark",
            0,
            "",
            secure=False,
        )
        (row,) = QuantileResult(release).confidence_interval(LEVEL)
        return float(row[0]), float(row[1])

    return interval


def _textbook_quantile(q: float, n: int) -> Callable[[Any], Interval]:
    first, last = order_statistics(q, n)

    def interval(values: Any) -> Interval:
        parts = np.partition(values, (first, last))
        return float(parts[first]), float(parts[last])

    return interval


QUARTERS = (Fraction(1, 4), Fraction(1, 2))
_MODES = stats.norm(-3, 0.5), stats.norm(3, 0.5)


def _bimodal(rng: np.random.Generator, n: int) -> Any:
    return np.where(rng.random(n) < 0.5, -3.0, 3.0) + 0.5 * rng.standard_normal(n)


def _targets(law: Any, qs: tuple[Fraction, ...] = QUARTERS) -> dict[Fraction, float]:
    return {q: float(law.ppf(float(q))) for q in qs}


CASES: list[Case] = [
    Case(
        "normal",
        lambda rng, n: rng.standard_normal(n),
        quantile_cells(-10, 10, _targets(stats.norm)),
    ),
    Case(
        "lognormal",
        lambda rng, n: np.exp(rng.standard_normal(n)),
        quantile_cells(0, 100, _targets(stats.lognorm(1), (Fraction(1, 2), Fraction(3, 4)))),
    ),
    Case(
        "Student t3",
        lambda rng, n: rng.standard_t(3, n),
        quantile_cells(-50, 50, _targets(stats.t(3))),
    ),
    Case(
        "rounded",
        lambda rng, n: np.round(rng.standard_normal(n), 2),
        quantile_cells(-10, 10, {Fraction(1, 2): 0.0, Fraction(1, 4): -0.67}),
    ),
    Case("bimodal", _bimodal, quantile_cells(-8, 8, {Fraction(1, 2): 0.0, Fraction(1, 4): -3.0})),
    Case(
        "Poisson(5)",
        lambda rng, n: rng.poisson(5, n).astype(float),
        quantile_cells(0, 60, {Fraction(1, 2): 5.0}),
        (1000,),
    ),
]


# Other mechanisms for the estimate share the search and its interval. With 200 repetitions of each
# normal values covered 0.965 to 0.995, an empty middle 0.97 to 0.985
# (docs/theory/quantile-intervals.md).
OTHER_METHODS: dict[str, dict[str, Any]] = {
    "inverse": {"method": "inverse"},
    "smooth": {"method": "smooth"},
    "ptr": {"method": "ptr", "delta": 1e-6},
}
CASES += [
    Case(f"{shape}, {name}", draw, quantile_cells(-10, 10, {Fraction(1, 2): 0.0}, **options))
    for shape, draw in (("normal", lambda rng, n: rng.standard_normal(n)), ("bimodal", _bimodal))
    for name, options in OTHER_METHODS.items()
]


def _pairs(
    margin: int, rho: float
) -> Callable[[int, int, int], list[tuple[str, int, str, float, float, float]]]:
    """Correlations (Fisher's z beside them) and, at ρ = 0, variances (chi-square, and free of
    normality): coverage_pairs.py.
    """

    def batch(
        n: int, repetitions: int, seed: int
    ) -> list[tuple[str, int, str, float, float, float]]:
        import coverage_pairs

        return list(coverage_pairs.rows(coverage_pairs.MARGINS[margin], rho, n, repetitions, seed))

    return batch


CASES += [
    Case(f"pairs {margin} {rho:g}", lambda rng, n: None, lambda n: [], batch=_pairs(margin, rho))
    for margin in range(5)
    for rho in (0.0, 0.3, 0.8)
]


def _unbounded(
    law: int,
) -> Callable[[int, int, int], list[tuple[str, int, str, float, float, float]]]:
    """Means on declared ranges a million standard deviations wide (Student's t beside them):
    unbounded_draws.py.
    """

    def batch(
        n: int, repetitions: int, seed: int
    ) -> list[tuple[str, int, str, float, float, float]]:
        import unbounded_draws

        return unbounded_draws.coverage_rows(unbounded_draws.LAWS[law], n, repetitions, seed)

    return batch


CASES += [
    Case(f"unbounded {law}", lambda rng, n: None, lambda n: [], batch=_unbounded(law))
    for law in range(5)
]


# ── running ───────────────────────────────────────────────────────────────────────────────────────


def coverage(task: tuple[int, int, int, int]) -> list[tuple[str, int, str, float, float, float]]:
    """(case, n, label, private coverage, textbook coverage, ratio of mean widths) of all cells of
    one case at one n.
    """
    place, n, repetitions, seed = task
    case = CASES[place]
    compiled_kernel()  # many small draws: the same numbers, sooner
    if case.batch is not None:
        return case.batch(n, repetitions, seed)
    cells = case.cells(n)
    rng = np.random.default_rng((seed, place, n))
    source = SeededSource(f"coverage {seed} {place} {n}")
    hits, textbook, widths = np.zeros(len(cells)), np.zeros(len(cells)), np.zeros((len(cells), 2))
    for _ in range(repetitions):
        values = case.draw(rng, n)
        for j, cell in enumerate(cells):
            low, high = cell.private(values, source)
            usual = cell.textbook(values)
            hits[j] += low <= cell.target <= high
            textbook[j] += usual[0] <= cell.target <= usual[1]
            widths[j] += (high - low, usual[1] - usual[0])
    return [
        (
            case.name,
            n,
            cell.label,
            float(hits[j] / repetitions),
            float(textbook[j] / repetitions),
            float(widths[j, 0] / widths[j, 1]) if widths[j, 1] else math.inf,
        )
        for j, cell in enumerate(cells)
    ]


def store(rows: list[tuple[str, int, str, float, float, float]], repetitions: int) -> None:
    """The cells by quantity and number of rows."""
    asked: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for _, n, label, private, textbook, ratio in rows:
        kind = label.split(" ")[0]
        asked.setdefault((kind, n), []).append((private, textbook, ratio))
    stored.table(
        "coverage_location",
        about="coverage",
        title="Medians, quantiles and means without a tight range",
        says="Coverage of nominal 95 % intervals over laws and spends, beside the textbook "
        "interval on the same samples without privacy, and the median width beside the textbook's.",
        columns=[
            stored.column("asked"),
            stored.column("rows"),
            stored.column("cells", "settings"),
            stored.column("middle", "median coverage", digits=3),
            stored.column("lowest", "lowest coverage", digits=3, target=f"≥ {LEAST}"),
            stored.column("textbook", "lowest of the textbook", digits=3),
            stored.column("width", "median width / textbook", digits=2),
        ],
        rows=[
            {
                "asked": kind,
                "rows": n,
                "cells": len(found),
                "middle": stored.share(
                    float(np.median([one[0] for one in found])) * repetitions, repetitions
                ),
                "lowest": stored.share(min(one[0] for one in found) * repetitions, repetitions),
                "textbook": stored.share(min(one[1] for one in found) * repetitions, repetitions),
                "width": float(np.median([one[2] for one in found])),
            }
            for (kind, n), found in sorted(asked.items())
        ],
        runs=repetitions,
        error="the standard error of a share of the runs",
        notes=[
            "Where the textbook's interval falls short on the same samples, ours may by as much "
            "and a point more.",
            "The lowest of many shares lies below their median by chance as well.",
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
    )  # type: ignore[union-attr]
    parser.add_argument(
        "--quick", action="store_true", help="300 repetitions: a look, not a measurement"
    )
    parser.add_argument("--processes", type=int, default=2)
    stored.option(parser)
    options = parser.parse_args()
    repetitions = 300 if options.quick else REPETITIONS
    begun = time.perf_counter()
    tasks = sorted(
        ((place, n, repetitions, 4) for place, case in enumerate(CASES) for n in case.sizes),
        key=lambda task: -task[1],
    )
    print(
        f"{repetitions} repetitions; standard error of a coverage near 0.95: "
        f"{math.sqrt(0.95 * 0.05 / repetitions):.4f}"
    )
    print(
        f"{'case':12} {'n':>6} {'quantity':14} {'private':>8} {'textbook':>9} {'width ratio':>12}"
    )
    rows = []
    with multiprocessing.Pool(options.processes) as pool:
        for found in pool.imap_unordered(coverage, tasks):
            rows += found
            for name, n, label, private, textbook, ratio in found:
                print(
                    f"{name:12} {n:6d} {label:14} {private:8.4f} {textbook:9.4f} {ratio:12.3f}",
                    flush=True,
                )
    if options.store:
        store(rows, repetitions)
    failures = [
        row
        for row in rows
        if row[3] < (LEAST if row[4] >= LEAST_TEXTBOOK else row[4] - SHORTFALL)
        or (row[1] >= MOST_FROM and row[3] > MOST and row[4] <= DEGENERATE)
    ]
    for row in failures:
        print("outside:", row)
    print(f"{time.perf_counter() - begun:.0f} s")
    # a shortfall against a textbook interval that itself falls short counts from 0.94, so that one
    # number says whether all is well
    worst = min(
        row[3] if row[4] >= LEAST_TEXTBOOK else row[3] - (row[4] - SHORTFALL) + LEAST
        for row in rows
    )
    best = max(row[3] for row in rows if row[1] >= MOST_FROM and row[4] <= DEGENERATE)
    print(f"worst_coverage={worst:.4f} best_coverage={best:.4f}")
    return 1 if failures and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())
