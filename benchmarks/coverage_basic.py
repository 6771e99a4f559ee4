"""Coverage and width of nominal 95 % intervals for mean, variance, proportion,
histogram cells and table cells.

Every repetition draws data from a known law, encodes it, computes the exact integer statistic, adds
the exact noise that the estimator would add, and asks the same inference code as the public
functions (a test checks that the two paths agree). Beside each: the textbook interval on the same
draws without privacy, and the width of an oracle that knows the true sampling variance and spends
nothing on finding it.

    make bench NAME=coverage_basic
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

import discreet as dp
import stored
from discreet.asking.noise_choice import count_noise, moments_noise, norm_of
from discreet.encoding import Encoding
from discreet.inference.counts.shares import decode_shares, share_interval
from discreet.inference.means.means import decode_means, mean_interval
from discreet.inference.means.variances import decode_variance, variance_interval
from discreet.inference.results.decode import noise_of
from discreet.inference.results.laws import half_width
from discreet.schema import Column, Integer, Real
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.moments import Moments, mean_design, variance_design
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import Sum
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import secure_source

REPETITIONS = 10_000
SIZES = (200, 1000, 10_000)
SPENDS = (dp.GDP(0.2), dp.GDP(1.0), dp.PureDP(0.5))
RELATIONS = (dp.Replace(), dp.AddRemove())
LEVEL = 0.95
LOWEST, HIGHEST = 0.941, 0.98
GROUPS = np.array([0.4, 0.3, 0.2, 0.1])
EDGES = tuple(float(edge) for edge in np.linspace(0, 100, 11))


@dataclass(frozen=True)
class Law:
    """A data law with its true mean and variance, and the column a user would declare for it."""

    name: str
    column: Column
    mean: float
    variance: float
    sample: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


LAWS = (
    Law("normal", Real(0, 100), 50.0, 100.0, lambda rng, shape: rng.normal(50, 10, shape)),
    Law("uniform", Real(0, 1), 0.5, 1 / 12, lambda rng, shape: rng.random(shape)),
    Law(
        "bernoulli.05",
        Integer(0, 1),
        0.05,
        0.0475,
        lambda rng, shape: (rng.random(shape) < 0.05).astype(float),
    ),
    Law(
        "bernoulli.5",
        Integer(0, 1),
        0.5,
        0.25,
        lambda rng, shape: (rng.random(shape) < 0.5).astype(float),
    ),
    Law("skewed", Real(0, 1), 0.2, 0.2 * 0.8 / 11, lambda rng, shape: rng.beta(2, 8, shape)),
)


@dataclass(frozen=True)
class Row:
    """One cell of the benchmark: what was covered, by how much wider than the oracle,
    and the textbook's coverage.
    """

    case: str
    size: int
    coverage: float
    textbook: float
    width_ratio: float
    judged_above: bool

    @property
    def fails(self) -> bool:
        low = self.coverage < LOWEST and not (
            self.textbook < LEVEL and self.coverage >= self.textbook - 0.01
        )
        return low or (self.judged_above and self.coverage > HIGHEST)


def encode(values: np.ndarray, grid: Encoding) -> np.ndarray:
    codes = np.floor((values - grid.center) * grid.per_unit + 0.5)
    return np.clip(codes, grid.low, grid.high)


def chunks(repetitions: int, size: int) -> Iterator[int]:
    step = max(1, 2_000_000 // size)
    for start in range(0, repetitions, step):
        yield min(step, repetitions - start)


def power_sums(codes: np.ndarray, degree: int) -> np.ndarray:
    """Exact power sums of every repetition, shape (repetitions, degree + 1), as integers."""
    sums = [np.full(len(codes), codes.shape[1], dtype=np.int64)]
    power = np.ones_like(codes, dtype=np.int64)
    whole = codes.astype(np.int64)
    for _ in range(degree):
        power = power * whole
        sums.append(power.sum(axis=1))
    return np.stack(sums, axis=1)


def add_noise(statistic: list[int], mechanism: object, coordinates: int) -> np.ndarray:
    refinement = 1 << mechanism.refinement
    noise = draw(mechanism, len(statistic), secure_source())
    return np.array(
        [value * refinement + int(step) for value, step in zip(statistic, noise, strict=True)],
        dtype=float,
    ).reshape(coordinates, -1)


def covered(low: np.ndarray, high: np.ndarray, truth: float) -> float:
    return float(np.mean((low <= truth) & (truth <= high)))


def mean_rows(law: Law, size: int, sums: np.ndarray, textbook: float) -> Iterator[Row]:
    factor = Factor("x", law.column.encoding(16))
    unit = factor.largest * float(factor.encoding.step)
    truth = (law.mean - factor.encoding.center) / unit
    for relation in RELATIONS:
        for spend in SPENDS:
            query = Moments(
                (),
                factor,
                mean_design(relation, cells=1, optional=False, norm=norm_of(spend)),
                False,
            )
            mechanism = moments_noise(query, relation, spend)
            coordinates = query.size
            released = add_noise(query.assemble(sums), mechanism, coordinates)
            public = size if relation.row_count_is_public else None
            statistics = decode_means(query, mechanism, released, public_rows=public, cluster=1)
            low, high = mean_interval(statistics, LEVEL)
            sampling = size * law.variance / unit**2
            noise = statistics.first_noise + statistics.count_noise.scaled(truth)
            oracle = 2 * half_width(LEVEL, np.array([sampling]), noise)[0] / size
            yield Row(
                f"mean {law.name} {relation} {spend!r}",
                size,
                covered(low, high, truth),
                textbook,
                float(np.mean(high - low)) / oracle,
                size >= 1000,
            )


def variance_rows(
    law: Law, size: int, sums: np.ndarray, textbook: float, fourth: float
) -> Iterator[Row]:
    factor = Factor("x", law.column.encoding(10))
    unit = factor.largest * float(factor.encoding.step)
    truth = law.variance / unit**2
    for relation in RELATIONS:
        for spend in SPENDS:
            query = Moments(
                (), factor, variance_design(relation, optional=False, norm=norm_of(spend)), False
            )
            mechanism = moments_noise(query, relation, spend)
            released = add_noise(query.assemble(sums), mechanism, query.size)
            public = size if relation.row_count_is_public else None
            statistics = decode_variance(query, mechanism, released, public_rows=public, cluster=1)
            low, high = variance_interval(statistics, LEVEL)
            m = (law.mean - factor.encoding.center) / unit
            noise = (
                statistics.noises[2].scaled(1 / size)
                + statistics.noises[1].scaled(2 * m / size)
                + statistics.noises[0].scaled((truth - m**2) / size)
            )
            oracle_low = np.clip(
                truth
                - half_width(LEVEL, np.array([(fourth / unit**4 - truth**2) / size]), noise)[0],
                0,
                1,
            )
            oracle_high = (
                truth
                + half_width(LEVEL, np.array([(fourth / unit**4 - truth**2) / size]), noise)[0]
            )
            yield Row(
                f"variance {law.name} {relation} {spend!r}",
                size,
                covered(low, high, truth),
                textbook,
                float(np.mean(high - low)) / (oracle_high - oracle_low),
                size >= 1000,
            )


def share_rows(
    name: str, counts: np.ndarray, truths: np.ndarray, size: int, one_cell: bool
) -> Iterator[Row]:
    """`counts` has shape (cells, repetitions) and sums to `size`;
    a proportion releases its cell alone where n is public.

    There its default interval is exact, with computed coverage (docs/theory/binomial.md);
    the row is about ``method="score"``.
    """
    for relation in RELATIONS:
        public = size if relation.row_count_is_public else None
        alone = one_cell and public is not None
        query = Sum((Levels("g", 1 if alone else len(truths)),), (), alone)
        for spend in SPENDS:
            mechanism = count_noise(query, relation, spend)
            used = counts[:1] if alone else counts
            released = add_noise([int(value) for value in used.ravel()], mechanism, len(used))
            statistics = decode_shares(mechanism, released, public_rows=public, cluster=1)
            low, high = share_interval(statistics, LEVEL)
            deviation = float(np.sqrt(noise_of(mechanism, 1.0).variance))
            for cell, truth in enumerate(truths[:1] if one_cell else truths):
                wide = np.clip(
                    2
                    * half_width(
                        LEVEL,
                        np.array([size * truth * (1 - truth)]),
                        statistics.noise_at(np.array([truth])),
                    )[0]
                    / size,
                    0,
                    1,
                )
                clear = size * min(truth, 1 - truth) >= 10 * deviation
                ratio = float(np.mean(high[cell] - low[cell])) / wide if clear else 1.0
                yield Row(
                    f"{name}[{cell}] {relation} {spend!r}",
                    size,
                    covered(low[cell], high[cell], truth),
                    wilson(counts[cell], size, truth),
                    ratio,
                    size >= 1000 and clear,
                )


def wilson(count: np.ndarray, size: int, truth: float) -> float:
    z = stats.norm.ppf(0.5 + LEVEL / 2)
    return float(np.mean(np.abs(count / size - truth) <= z * np.sqrt(truth * (1 - truth) / size)))


def table_rows(law: Law, size: int, cell_sums: np.ndarray, textbooks: np.ndarray) -> Iterator[Row]:
    """`cell_sums` has shape (repetitions, groups, 3): power sums by group."""
    factor = Factor("x", law.column.encoding(16))
    unit = factor.largest * float(factor.encoding.step)
    truth = (law.mean - factor.encoding.center) / unit
    groups = len(GROUPS)
    for relation in RELATIONS:
        for spend in SPENDS:
            query = Moments(
                (Levels("g", groups),),
                factor,
                mean_design(relation, cells=groups, optional=False, norm=norm_of(spend)),
                False,
            )
            mechanism = moments_noise(query, relation, spend)
            flat = Moments((), factor, query.design, False)
            released = add_noise(flat.assemble(cell_sums.reshape(-1, 3)), mechanism, 3)
            statistics = decode_means(flat, mechanism, released, public_rows=None, cluster=1)
            low, high = (end.reshape(-1, groups) for end in mean_interval(statistics, LEVEL))
            noise = statistics.first_noise + statistics.count_noise.scaled(truth)
            for group, share in enumerate(GROUPS):
                rows = size * share
                clear = rows >= 10 * np.sqrt(statistics.count_noise.variance)
                oracle = (
                    2
                    * half_width(LEVEL, np.array([rows * law.variance / unit**2]), noise)[0]
                    / rows
                )
                ratio = float(np.mean(high[:, group] - low[:, group])) / oracle if clear else 1.0
                yield Row(
                    f"table mean {law.name}[{group}] {relation} {spend!r}",
                    size,
                    covered(low[:, group], high[:, group], truth),
                    textbooks[group],
                    ratio,
                    size >= 1000 and bool(clear),
                )


@dataclass
class Draws:
    """What one law and size need, gathered over chunks of repetitions."""

    fine: list[np.ndarray]
    coarse: list[np.ndarray]
    cells: list[np.ndarray]
    mean_hits: list[np.ndarray]
    variance_hits: list[np.ndarray]
    group_hits: list[np.ndarray]
    bins: list[np.ndarray]


def simulate(law: Law, size: int, repetitions: int, rng: np.random.Generator) -> Draws:
    draws = Draws([], [], [], [], [], [], [])
    grid, small = law.column.encoding(16), law.column.encoding(10)
    t = stats.t.ppf(0.5 + LEVEL / 2, size - 1)
    chi_low, chi_high = stats.chi2.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], size - 1)
    for count in chunks(repetitions, size):
        values = law.sample(rng, (count, size))
        mean, variance = values.mean(axis=1), values.var(axis=1, ddof=1)
        draws.mean_hits.append(np.abs(mean - law.mean) <= t * np.sqrt(variance / size))
        ratio = (size - 1) * variance / law.variance
        draws.variance_hits.append((chi_low <= ratio) & (ratio <= chi_high))
        codes = encode(values, grid)
        draws.fine.append(power_sums(codes, 2))
        if law.name in ("normal", "uniform"):
            draws.coarse.append(power_sums(encode(values, small), 4))
        if law.name == "normal":
            inside = np.clip(values, 0, 100)
            draws.bins.append(
                np.stack(
                    [
                        ((inside >= low) & ((inside < high) | (high == 100.0))).sum(axis=1)
                        for low, high in itertools.pairwise(EDGES)
                    ],
                    axis=1,
                )
            )
        if law.name in ("uniform", "skewed"):
            sums, hits = by_group(codes, values, law, rng)
            draws.cells.append(sums)
            draws.group_hits.append(hits)
    return draws


def by_group(
    codes: np.ndarray, values: np.ndarray, law: Law, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    group = np.searchsorted(np.cumsum(GROUPS)[:-1], rng.random(codes.shape), side="right")
    sums, hits = [], []
    for cell in range(len(GROUPS)):
        inside = group == cell
        n = inside.sum(axis=1)
        masked = np.where(inside, codes, 0).astype(np.int64)
        sums.append(np.stack([n, masked.sum(axis=1), (masked * masked).sum(axis=1)], axis=1))
        mean = np.where(inside, values, 0).sum(axis=1) / n
        spread = np.where(inside, (values - mean[:, None]) ** 2, 0).sum(axis=1) / (n - 1)
        hits.append(
            np.abs(mean - law.mean) <= stats.t.ppf(0.5 + LEVEL / 2, n - 1) * np.sqrt(spread / n)
        )
    return np.stack(sums, axis=1), np.stack(hits, axis=1)


def rows_for(law: Law, size: int, repetitions: int, rng: np.random.Generator) -> Iterator[Row]:
    draws = simulate(law, size, repetitions, rng)
    fine = np.concatenate(draws.fine)
    yield from mean_rows(law, size, fine, float(np.mean(np.concatenate(draws.mean_hits))))
    if draws.coarse:
        fourth = 3 * law.variance**2 if law.name == "normal" else 1 / 80
        yield from variance_rows(
            law,
            size,
            np.concatenate(draws.coarse),
            float(np.mean(np.concatenate(draws.variance_hits))),
            fourth,
        )
    if law.name.startswith("bernoulli"):
        ones = (fine[:, 1] + size) // 2
        yield from share_rows(
            f"proportion {law.name}",
            np.stack([ones, size - ones]),
            np.array([law.mean, 1 - law.mean]),
            size,
            one_cell=True,
        )
    if draws.bins:
        truths = np.diff(stats.norm.cdf((np.array(EDGES) - 50) / 10))
        truths[0] += stats.norm.cdf(-5)
        truths[-1] += stats.norm.sf(5)
        yield from share_rows(
            "histogram", np.concatenate(draws.bins).T, truths, size, one_cell=False
        )
    if draws.cells:
        cells = np.concatenate(draws.cells)
        yield from table_rows(law, size, cells, np.concatenate(draws.group_hits).mean(axis=0))
        yield from share_rows(
            f"table count {law.name}", cells[:, :, 0].T, GROUPS, size, one_cell=False
        )


def run(repetitions: int, sizes: tuple[int, ...] = SIZES, seed: int = 20) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    start = time.perf_counter()
    for size in sizes:
        for law in LAWS:
            rows.extend(rows_for(law, size, repetitions, rng))
            print(
                f"n = {size:6d}  {law.name:13s} {len(rows):4d} cells  "
                f"{time.perf_counter() - start:6.1f} s",
                file=sys.stderr,
                flush=True,
            )
    return rows


def store(rows: list[Row], repetitions: int) -> None:
    """The cells by what was asked and how many rows there were."""
    asked: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        words = row.case.split(" ")
        kind = " ".join(words[:2]) if words[0] == "table" else words[0].partition("[")[0]
        asked.setdefault((kind, row.size), []).append(row)
    stored.table(
        "coverage_basic",
        about="coverage",
        title="Means, variances, shares and tables",
        says="Coverage of nominal 95 % intervals over laws (normal, uniform, rare and even "
        "shares, skewed), relations and spends (GDP 0.2, GDP 1, PureDP 0.5), beside the textbook "
        "interval on the same samples without privacy, and the width beside an oracle that knows "
        "the true sampling variance.",
        columns=[
            stored.column("asked"),
            stored.column("rows"),
            stored.column("cells", "settings"),
            stored.column("middle", "median coverage", digits=4),
            stored.column("lowest", "lowest coverage", digits=4, target=f"≥ {LOWEST}"),
            stored.column("textbook", "lowest of the textbook", digits=4),
            stored.column("widest", "widest / oracle", digits=3),
        ],
        rows=[
            {
                "asked": kind,
                "rows": size,
                "cells": len(found),
                "middle": hit(float(np.median([row.coverage for row in found])), repetitions),
                "lowest": hit(min(row.coverage for row in found), repetitions),
                "textbook": hit(min(row.textbook for row in found), repetitions),
                "widest": max(row.width_ratio for row in found),
            }
            for (kind, size), found in asked.items()
        ],
        runs=repetitions,
        error="the standard error of a share of the runs",
        notes=[
            f"{sum(row.fails for row in rows)} of {len(rows)} settings are outside the limits. A "
            "setting is inside where its coverage reaches the limit, or where the textbook's "
            "interval does not either and privacy costs at most a point more; limits are made for "
            f"{REPETITIONS} runs, and with fewer chance puts more settings outside.",
            "The lowest of many shares lies below their median by chance as well.",
        ],
    )


def hit(coverage: float, repetitions: int) -> dict[str, float]:
    return stored.share(coverage * repetitions, repetitions)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--all", action="store_true", help="print every cell, not only the extremes"
    )
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    stored.option(parser)
    arguments = parser.parse_args()
    rows = run(arguments.repetitions)
    if arguments.store:
        store(rows, arguments.repetitions)
    failed = [row for row in rows if row.fails]
    shown = (
        rows
        if arguments.all
        else failed
        + sorted(rows, key=lambda row: row.coverage)[:15]
        + sorted(rows, key=lambda row: -row.width_ratio)[:15]
    )
    print(f"{'cell':62s} {'n':>6s} {'coverage':>8s} {'textbook':>8s} {'width/oracle':>12s}")
    for row in shown:
        print(
            f"{row.case:62s} {row.size:6d} {row.coverage:8.4f} {row.textbook:8.4f} "
            f"{row.width_ratio:12.3f}{'  FAILS' if row.fails else ''}"
        )
    print(
        f"{len(rows)} cells, {len(failed)} outside the limits; Monte-Carlo standard error "
        f"{np.sqrt(LEVEL * (1 - LEVEL) / arguments.repetitions):.4f}"
    )
    worst = min(rows, key=lambda row: row.coverage)
    widest = max(row.width_ratio for row in rows)
    print(
        f"worst_coverage={worst.coverage:.4f} "
        f"worst_case={worst.case.replace(' ', '_')}_n={worst.size} widest_vs_oracle={widest:.3f}"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
