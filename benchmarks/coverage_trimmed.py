"""Coverage of 95 % intervals of dp.trimmed_mean,
and their width beside the non-private interval and beside dp.mean's.

    python benchmarks/coverage_trimmed.py [--quick] [--repetitions 200] [--processes 2]

Every repetition draws data, runs the two mechanisms that a session would run (exact noise, on the
statistic of the grid) and the inference that reads their answers. Laws are given by their quantile
functions, so that the target ∫ Q over the middle is exact for every one of them, discrete or not.
"gap" has no density between two values and exactly a tenth of its rows below: the quantile is not
unique, which is the worst that a law can do to a trimmed mean.

A cell is *informative* where its median interval is at most three times as wide as the non-private
one (Tukey and McLaughlin's); widths are compared there. Coverage is judged everywhere.

Last line: worst_coverage= (least over all cells), worst_z= (its distance from 0.94 in Monte-Carlo
standard errors, least over all cells), mean_coverage=, width_vs_nonprivate= (median over
informative cells), width_vs_mean= (median over informative cells on wide ranges), informative= of
all cells
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
from discreet.accounting.guarantees import GDP, Guarantee, PureDP
from discreet.estimators.questions import mean_question
from discreet.estimators.trimmed import ends_question, middle_question
from discreet.estimators.unbounded import begun
from discreet.inference.means.results import MeanResult
from discreet.inference.means.trimmed import TrimmedMeanResult
from discreet.neighbors import AddRemove, Neighbors, Replace
from discreet.schema import Integer, Real, Schema
from discreet.specs.statistics import histogram_of_cells
from discreet.testing import SeededSource
from discreet.trusted.noise.kernels import compiled_kernel
from discreet.trusted.noise.samplers import apply
from discreet.trusted.release import PublicFacts, Question, Release

REPETITIONS = 200
SIZES = (500, 2000, 20_000)
SPENDS: tuple[Guarantee, ...] = (GDP(0.1), GDP(0.3), GDP(1.0), PureDP(1.0))
RELATIONS: tuple[Neighbors, ...] = (Replace(), AddRemove())
LEVEL, LEAST, INFORMATIVE = 0.95, 0.94, 3.0
TRIM = Fraction(1, 10)

Array = Any


@dataclass(frozen=True)
class Law:
    """A law by its quantile function, and the column that it is declared as; `wide` where the
    declared range is a thousand times the spread.
    """

    name: str
    quantile: Callable[[Array], Array]
    column: Real | Integer
    wide: bool = True

    @property
    def target(self) -> float:
        """(1/(1−2a)) ∫ Q(p) dp over the middle, by the midpoint rule on 10⁶ pieces."""
        middle = float(1 - 2 * TRIM)
        pieces = 1_000_000
        places = float(TRIM) + middle * (np.arange(pieces) + 0.5) / pieces
        return float(np.mean(self.quantile(places)))


_PLACES = np.linspace(-60, 60, 200_001)
_CONTAMINATED = 0.9 * stats.norm.cdf(_PLACES) + 0.1 * stats.norm.cdf(_PLACES, 8, 10)


def _ages(p: Array) -> Array:
    return np.clip(np.round(45 + 17 * stats.norm.ppf(p)), 18, 90)


def _gap(p: Array) -> Array:
    """A tenth in (−11, −10), the rest in (0, 10)."""
    return np.where(p <= 0.1, -11 + 10 * p, (p - 0.1) / 0.09)


LAWS = (
    Law("normal", stats.norm.ppf, Real(-800, 1200)),
    Law("lognormal", lambda p: np.exp(stats.norm.ppf(p)), Real(0, 2000)),
    Law("Student t3", stats.t(3).ppf, Real(-900, 1100)),
    Law("contaminated", lambda p: np.interp(p, _CONTAMINATED, _PLACES), Real(-900, 1100)),
    Law("ages", _ages, Integer(18, 90), wide=False),
    Law("counts", stats.poisson(3).ppf, Integer(0, 1000)),
    Law("gap", _gap, Real(-20, 20), wide=False),
)


@dataclass(frozen=True)
class Cell:
    """One row of the table."""

    law: str
    rows: int
    spend: str
    neighbors: str
    coverage: float
    width: float  # median width over the non-private one
    mean_width: float  # of dp.mean, over the non-private one
    wide: bool

    def z(self, repetitions: int) -> float:
        error = math.sqrt(LEAST * (1 - LEAST) / repetitions)
        return (self.coverage - LEAST) / error


def released(question: Question, statistic: Any, public: PublicFacts, source: Any) -> Release:
    """What a session would release, but for the ledger."""
    return Release(
        question.description,
        question.query,
        question.mechanism,
        apply(question.mechanism, statistic, source).integers,
        public.neighbors,
        question.spend,
        question.spend,
        public.count,
        "benchmark",
        0,
        "",
        secure=False,
    )


def codes(values: Array, question: Question) -> Array:
    grid: Any = question.query.factor.encoding  # type: ignore[attr-defined]
    found = np.floor((values - grid.center) * grid.per_unit + 0.5)
    return np.clip(found, grid.low, grid.high).astype(np.int64)


def moments(values: Array, question: Question) -> list[int]:
    query: Any = question.query
    whole = codes(values, question)
    sums = [int(np.sum(whole**power)) for power in range(query.design.degree + 1)]
    return list(query.assemble(np.array([sums], dtype=object)))


def private_interval(
    values: Array, first: Question, search: Any, source: Any
) -> tuple[float, float]:
    query: Any = first.query
    stride = 2 if query.factor.encoding.is_exact else 1
    places = (codes(values, first) - query.factor.encoding.low) // stride
    ends = released(first, histogram_of_cells(query.size, places), search.public, source)
    second = middle_question(search, ends)
    last = released(second, moments(values, second), search.public, source)
    (row,) = TrimmedMeanResult(last, (ends,)).confidence_interval(LEVEL)
    return float(row[0]), float(row[1])


def textbook_width(values: Array) -> float:
    """Tukey and McLaughlin's interval: Student's t and the Winsorised variance."""
    trim, rows = float(TRIM), len(values)
    ordered = np.sort(values)
    cut = int(trim * rows)
    spread = np.clip(values, ordered[cut], ordered[-cut - 1]).std(ddof=1)
    freedom = rows - 2 * cut - 1
    return float(2 * stats.t.ppf(0.5 + LEVEL / 2, freedom) * spread / (1 - 2 * trim) / rows**0.5)


def cell(task: tuple[int, int, int, int, int]) -> Cell:
    """Coverage and widths of one law, size, spend and relation."""
    law_place, rows, spend_place, relation_place, repetitions = task
    law, spend, neighbors = LAWS[law_place], SPENDS[spend_place], RELATIONS[relation_place]
    compiled_kernel()  # many small draws: the same numbers, sooner
    public = PublicFacts(
        Schema({"x": law.column}), neighbors, rows if isinstance(neighbors, Replace) else None
    )
    search = begun(public, "x", spend=spend, where=None, asked="a trimmed mean")
    first, mean = ends_question(search, TRIM), mean_question(public, "x", spend=spend)
    rng = np.random.default_rng(task)
    source, target = SeededSource(f"trimmed {task}"), law.target
    hits, widths, usual, means = 0, [], [], []
    for repetition in range(repetitions):
        values = np.asarray(law.quantile(rng.random(rows)), dtype=float)
        low, high = private_interval(values, first, search, source)
        hits += low <= target <= high
        widths.append(high - low)
        if repetition < 40:  # both hardly vary
            usual.append(textbook_width(values))
            answer = MeanResult(released(mean, moments(values, mean), public, source))
            means.append(float(np.diff(answer.confidence_interval(LEVEL)[0])[0]))
    unit = float(np.median(usual))
    return Cell(
        law.name,
        rows,
        str(spend),
        type(neighbors).__name__,
        hits / repetitions,
        float(np.median(widths)) / unit,
        float(np.median(means)) / unit,
        law.wide,
    )


def store(cells: list[Cell], repetitions: int) -> None:
    """The cells by law and number of rows."""
    asked: dict[tuple[str, int], list[Cell]] = {}
    for one in cells:
        asked.setdefault((one.law, one.rows), []).append(one)
    stored.table(
        "coverage_trimmed",
        about="coverage",
        title="Trimmed means",
        says="Coverage of nominal 95 % intervals over relations and spends, and the median width "
        "beside the interval of Tukey and McLaughlin without privacy.",
        columns=[
            stored.column("law"),
            stored.column("rows"),
            stored.column("cells", "settings"),
            stored.column("middle", "median coverage", digits=3),
            stored.column("lowest", "lowest coverage", digits=3),
            stored.column("width", "median width / without privacy", digits=2),
        ],
        rows=[
            {
                "law": law,
                "rows": rows,
                "cells": len(found),
                "middle": stored.share(
                    float(np.median([one.coverage for one in found])) * repetitions, repetitions
                ),
                "lowest": stored.share(
                    min(one.coverage for one in found) * repetitions, repetitions
                ),
                "width": float(np.median([one.width for one in found])),
            }
            for (law, rows), found in asked.items()
        ],
        runs=repetitions,
        error="the standard error of a share of the runs",
        notes=["The lowest of eight shares lies below their median by chance as well."],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="40 repetitions: a look")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--processes", type=int, default=2)
    stored.option(parser)
    options = parser.parse_args()
    repetitions = 40 if options.quick else options.repetitions
    begun_at = time.perf_counter()
    tasks = [
        (law, rows, spend, relation, repetitions)
        for law in range(len(LAWS))
        for rows in SIZES
        for spend in range(len(SPENDS))
        for relation in range(len(RELATIONS))
    ]
    print(f"{'law':13} {'n':>6} {'spend':26} {'neighbours':10} coverage  width  dp.mean's")
    with multiprocessing.Pool(options.processes) as pool:
        cells = []
        for one in pool.imap(cell, tasks):
            cells.append(one)
            print(
                f"{one.law:13} {one.rows:6d} {one.spend:26} {one.neighbors:10} "
                f"{one.coverage:8.4f} {one.width:6.3g} {one.mean_width:9.3g}",
                flush=True,
            )
    print(f"{time.perf_counter() - begun_at:.0f} s", file=sys.stderr)
    if options.store:
        store(cells, repetitions)
    told = [one for one in cells if one.width <= INFORMATIVE]
    worst = min(one.z(repetitions) for one in cells)
    print(
        f"worst_coverage={min(one.coverage for one in cells):.4f} worst_z={worst:.2f} "
        f"mean_coverage={np.mean([one.coverage for one in cells]):.4f} "
        f"width_vs_nonprivate={np.median([one.width for one in told]):.3f} "
        f"width_vs_mean={np.median([one.width / one.mean_width for one in told if one.wide]):.4f} "
        f"informative={len(told)}/{len(cells)}"
    )
    return 1 if worst < -3.5 else 0  # one cell in 4000 by chance


if __name__ == "__main__":
    sys.exit(main())
