"""Sizes of the private tests of tables, ranks and means, simulated with the released noise laws.

    python benchmarks/tests_size.py [--repetitions 10000] [--rows 50 200 1000 10000]
        [--spends epsilon mu] [--tests Welch ANOVA]

For each test, number of rows and spend, the share of null data sets that are rejected at α = 0.05.
A p-value (1 + reached)/(draws + 1) with 199 draws is at most 0.05 with the same probability as with
1999, so few draws do; a data set leaves the simulation as soon as more than 9 draws have reached
its statistic, which changes no decision and saves four fifths of the draws. `worst_size` and
`least_size` are the largest and smallest share, `worst_errors` the largest distance from α in
standard errors; `outside` counts settings more than 3 standard errors away, of `settings` (chance
alone leads to 1 in 370). Power: tests_power.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

import stored
from discreet.accounting.guarantees import GDP, PureDP
from discreet.estimators.hypotheses.plans import _mean_laws, count_law
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.means.mean_tests import (
    MeanNoise,
    anova_statistic,
    fit_equal_means,
    simulated_means,
)
from discreet.inference.means.means import MeanStatistics
from discreet.inference.results.laws import Noise, student_factor
from discreet.inference.tables.association import association
from discreet.inference.tables.table_tests import fit_statistic
from discreet.inference.tables.tables import (
    NoisyTables,
    fit_independence,
    kruskal_wallis,
)

ALPHA = 0.05
ROWS = (50, 200, 1000, 10_000)
SPENDS = (
    ("epsilon", 0.1),
    ("epsilon", 0.2),
    ("epsilon", 0.5),
    ("epsilon", 1.0),
    ("epsilon", 2.0),
    ("mu", 0.25),
    ("mu", 0.5),
    ("mu", 1.0),
)
# 199 and 999 draws, in the steps after which data sets leave
FEW, MANY = (20, 25, 35, 50, 69), (20, 25, 35, 120, 300, 499)
NUMBERS = 400_000  # simulated at once
NULL_REPETITIONS = 10_000  # for the size of a test that ours is compared with
GRID = np.linspace(-1, 1, 41)  # values of c in simulated populations
Generator = np.random.Generator


def spend_of(kind: str, amount: float) -> PureDP | GDP:
    return PureDP(amount) if kind == "epsilon" else GDP(amount)


def noisy_counts(
    rng: Generator, rows: int, shares: Any, noise: ReleasedNoise, repetitions: int
) -> Any:
    counts = rng.multinomial(rows, np.ravel(shares), size=repetitions).reshape(
        repetitions, *np.shape(shares)
    )
    return counts + noise.quantile(rng.random(counts.shape))


def rejected(value: Any, simulate: Callable[[Any, int], Any], steps: tuple[int, ...]) -> Any:
    """Whether (1 + reached)/(draws + 1) ≤ α, for all data sets; `simulate(places, draws)` gives
    statistics of shape (draws, places).
    """
    most = int(ALPHA * (sum(steps) + 1) + 1e-9) - 1
    reached, places = np.zeros(len(value), dtype=int), np.arange(len(value))
    for draws in steps:
        limit = value[places] - 1e-12 * np.abs(value[places])
        reached[places] += (simulate(places, draws) >= limit).sum(axis=0)
        places = places[reached[places] <= most]
        if not places.size:
            break
    return reached <= most


def table_rejected(
    rng: Generator,
    tables: Any,
    noise: ReleasedNoise,
    statistic: Callable[[NoisyTables], Any],
    total: int | None,
    steps: tuple[int, ...] = FEW,
) -> Any:
    """The test of `table_p_value`, for many tables at once."""
    seen = NoisyTables(tables, noise, None if total is None else np.full(len(tables), float(total)))
    means = fit_independence(seen).means

    def simulate(places: Any, draws: int) -> Any:
        parts = []
        for part in np.array_split(places, max(1, places.size * draws * seen.cells // NUMBERS)):
            counts = rng.poisson(means[part], size=(draws, *means[part].shape))
            whole = None if total is None else counts.sum(axis=(-2, -1)).astype(float)
            parts.append(
                statistic(
                    NoisyTables(counts + noise.quantile(rng.random(counts.shape)), noise, whole)
                )
            )
        return np.concatenate(parts, axis=1)

    return rejected(statistic(seen), simulate, steps)


def fit_rejected(
    rng: Generator,
    counts: Any,
    expected: Any,
    noise: ReleasedNoise,
    total: int | None,
    steps: tuple[int, ...] = FEW,
) -> Any:
    """The test of `fit_p_value`, for many tables at once."""
    rows = np.maximum(counts.sum(axis=-1, keepdims=True), 0.0)

    def simulate(places: Any, draws: int) -> Any:
        drawn = (
            rng.multinomial(total, expected, size=(draws, places.size))
            if total is not None
            else rng.poisson(rows[places] * expected, size=(draws, places.size, expected.size))
        )
        return fit_statistic(
            drawn + noise.quantile(rng.random(drawn.shape)), expected, noise.variance, total
        )

    return rejected(fit_statistic(counts, expected, noise.variance, total), simulate, steps)


def population(mean: float, spread: float, skew: float = 0.0) -> Any:
    """Shares of the values of GRID: about normal with this spread, skewed,
    tilted to have exactly this mean.
    """
    base = stats.norm.pdf((GRID - mean) / spread) * (1 + skew * np.tanh((GRID - mean) / spread))
    low, high = -60.0, 60.0
    for _ in range(60):
        tilt = (low + high) / 2
        shares = base * np.exp(tilt * (GRID - mean))
        shares /= shares.sum()
        low, high = (tilt, high) if shares @ GRID < mean else (low, tilt)
    return shares


POPULATIONS = (population(0.2, 0.3, 0.5), population(0.2, 0.5, -0.5), population(0.2, 0.15))


TWO_MEANS = {
    "Welch": np.array([0.4 * POPULATIONS[0], 0.6 * POPULATIONS[1]]),
    "Welch .7": np.array([0.5 * population(0.7, 0.2), 0.5 * population(0.7, 0.1)]),
    "Welch -.85": np.array([0.3 * population(-0.85, 0.1), 0.7 * population(-0.85, 0.1)]),
    "Welch .6/.2": np.array([0.3 * population(0.1, 0.6), 0.7 * population(0.1, 0.2)]),
}
MORE_MEANS = {
    "ANOVA 3": np.array([[0.3], [0.3], [0.4]]) * np.array(POPULATIONS),
    "ANOVA 4": np.array([population(0.5, 0.2)] * 4) / 4,
}


def mean_data(
    rng: Generator, rows: int, spend: PureDP | GDP, shares: Any, repetitions: int
) -> tuple[MeanStatistics, MeanNoise]:
    """Noisy count, sum and spread by group under Replace; `shares` are of groups × values."""
    counts = rng.multinomial(rows, np.ravel(shares), size=repetitions).reshape(
        repetitions, *shares.shape
    )
    law, worths = _mean_laws(spend, len(shares))
    moments = (counts.sum(axis=-1).astype(float), counts @ GRID, counts @ (1 - GRID**2))
    noisy = [
        values + law.quantile(rng.random(values.shape)) * worth
        for values, worth in zip(moments, worths, strict=True)
    ]
    laws = [
        Noise(
            law.variance * worth**2,
            (law.variance * worth**2 / 2) ** 2 if law.kind == "laplace" else 0.0,
        )
        for worth in worths
    ]
    return MeanStatistics(*noisy, *laws, total=rows), MeanNoise(
        law, (worths[0], worths[1], worths[2])
    )


def means_rejected(
    rng: Generator, seen: MeanStatistics, noise: MeanNoise, steps: tuple[int, ...] = FEW
) -> Any:
    """The test of `means_p_value`, for many data sets at once."""
    fit = fit_equal_means(seen)

    def simulate(places: Any, draws: int) -> Any:
        chosen = replace(
            seen, count=seen.count[places], first=seen.first[places], even=seen.even[places]
        )
        uniform = rng.random((5, draws, *chosen.count.shape))
        return anova_statistic(
            simulated_means(
                chosen,
                replace(
                    fit, mean=fit.mean[places], rows=fit.rows[places], squares=fit.squares[places]
                ),
                noise,
                uniform,
            )
        )

    return rejected(anova_statistic(seen), simulate, steps)


def plain_means(seen: MeanStatistics) -> Any:
    """The obvious alternative: Σ(Σc − mN)²/(Σ(c−m)² + noise) at the weighted common mean of the
    noisy numbers as they are.
    """
    whole = np.maximum(seen.count, 0.0).sum(axis=-1, keepdims=True)
    m = np.clip(seen.first.sum(axis=-1, keepdims=True) / np.maximum(whole, 1e-9), -1, 1)
    for _ in range(3):
        squares = np.maximum((1 + m**2) * seen.count - seen.even - 2 * m * seen.first, 0.0)
        variance = squares + seen.first_noise.variance + m**2 * seen.count_noise.variance
        m = np.clip(
            (seen.count * seen.first / variance).sum(axis=-1, keepdims=True)
            / (seen.count**2 / variance).sum(axis=-1, keepdims=True),
            -1,
            1,
        )
    return ((seen.first - m * seen.count) ** 2 / variance).sum(axis=-1)


def one_mean_rejected(seen: MeanStatistics, null: float) -> Any:
    """The test of `mean_p_value` at α: whether the interval misses `null`."""
    covered = seen.covers(
        np.full(seen.count.shape, null),
        1 - ALPHA,
        "population",
        student_factor(1 - ALPHA, seen.rows - 1),
    )
    return (~covered & (seen.count > 0)).ravel()


SHAPE = [0.02, 0.08, 0.2, 0.3, 0.2, 0.1, 0.06, 0.04]
TABLES: dict[str, tuple[Any, Callable[[NoisyTables], Any]]] = {
    "two ½": (np.outer([0.5, 0.5], [0.5, 0.5]), association),
    "two .05": (np.outer([0.3, 0.7], [0.05, 0.95]), association),
    "two .05²": (np.outer([0.05, 0.95], [0.05, 0.95]), association),
    "two .02": (np.outer([0.5, 0.5], [0.02, 0.98]), association),
    "χ² 2×3": (np.outer([0.1, 0.9], [0.1, 0.1, 0.8]), association),
    "χ² 3×4": (np.outer([0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4]), association),
    "χ² .03": (np.outer([0.05, 0.1, 0.85], [0.03, 0.07, 0.1, 0.8]), association),
    "ranks 2×8": (np.outer([0.3, 0.7], SHAPE), kruskal_wallis),
    "ranks 3×8": (np.outer([0.3, 0.3, 0.4], SHAPE), kruskal_wallis),
    "ranks .9": (
        np.outer([0.1, 0.9], [0.9, 0.04, 0.02, 0.01, 0.01, 0.01, 0.005, 0.005]),
        kruskal_wallis,
    ),
}
EXPECTED = np.array([0.05, 0.15, 0.3, 0.5])


def null_tests(
    rng: Generator, rows: int, kind: str, amount: float, repetitions: int
) -> dict[str, Callable[[], Any]]:
    """Every test at one setting; + marks a public number of rows (Replace), − a private one
    (AddRemove, where a row moves one cell and not two).
    """
    spend = spend_of(kind, amount)
    tests: dict[str, Callable[[], Any]] = {}
    for total, mark, noise in (
        (rows, "+", count_law(spend)),
        (None, "−", count_law(spend, moved=1)),
    ):
        for name, (shares, statistic) in TABLES.items():
            tests[name + mark] = (
                lambda shares=shares, statistic=statistic, total=total, noise=noise: table_rejected(
                    rng,
                    noisy_counts(rng, rows, shares, noise, repetitions),
                    noise,
                    statistic,
                    total,
                )
            )
        tests["fit" + mark] = lambda total=total, noise=noise: fit_rejected(
            rng, noisy_counts(rng, rows, EXPECTED, noise, repetitions), EXPECTED, noise, total
        )
    for name, shares in (TWO_MEANS | MORE_MEANS).items():
        tests[name] = lambda shares=shares: means_rejected(
            rng, *mean_data(rng, rows, spend, shares, repetitions)
        )
    tests["one mean"] = lambda: one_mean_rejected(
        mean_data(rng, rows, spend, POPULATIONS[0][None], repetitions)[0], 0.2
    )
    # differences fill half of their range at most
    tests["pairs"] = lambda: one_mean_rejected(
        mean_data(rng, rows, spend, population(0.02, 0.12, 0.5)[None], repetitions)[0], 0.02
    )
    return tests


def sizes(
    repetitions: int, numbers: list[int], kinds: list[str], tests: list[str]
) -> dict[tuple[str, str], float]:
    """The share of rejections of every setting, printed as it is found;
    of the tests whose names begin with one of `tests`.
    """
    found: dict[tuple[str, str], float] = {}
    names = [
        name
        for name in null_tests(np.random.default_rng(0), 50, "mu", 1.0, 1)
        if name.startswith(tuple(tests))
    ]
    print(f"{'size of':22s}" + " ".join(f"{name:>10s}" for name in names), flush=True)
    for rows in numbers:
        for kind, amount in (spend for spend in SPENDS if spend[0] in kinds):
            rng, start = (
                np.random.default_rng([rows, int(1000 * amount), len(kind), 1]),
                time.process_time(),
            )
            setting = f"n={rows} {kind}={amount}"
            every = null_tests(rng, rows, kind, amount, repetitions)
            found |= {(setting, name): float(np.mean(every[name]())) for name in names}
            print(
                f"{setting:22s}"
                + " ".join(f"{found[setting, name]:10.4f}" for name in names)
                + f"  ({time.process_time() - start:.0f} s)",
                flush=True,
            )
    return found


def store(found: dict[tuple[str, str], float], repetitions: int) -> None:
    """The share of rejections of each test over all settings."""
    names = list(dict.fromkeys(name for _, name in found))
    by_test = {
        name: [size for (_, other), size in found.items() if other == name] for name in names
    }
    stored.table(
        "tests_size",
        about="size",
        title="True nulls that are rejected at 5 %",
        says="Each test on data for which its null is true, over numbers of rows and spends.",
        columns=[
            stored.column("test"),
            stored.column("cells", "settings"),
            stored.column("least", "least size", digits=4),
            stored.column("middle", "median size", digits=4, target="0.05"),
            stored.column("most", "largest size", digits=4),
        ],
        rows=[
            {
                "test": name,
                "cells": len(sizes),
                "least": stored.share(min(sizes) * repetitions, repetitions),
                "middle": stored.share(float(np.median(sizes)) * repetitions, repetitions),
                "most": stored.share(max(sizes) * repetitions, repetitions),
            }
            for name, sizes in by_test.items()
        ],
        runs=repetitions,
        error="the standard error of a share of the runs",
        notes=[
            "Two: shares of two groups, with what the shares are; χ²: tables of that size; fit: "
            "goodness of fit; + where the number of rows is public, − where it is private.",
            "Least and largest of many shares lie off their median by chance as well.",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--spends", nargs="+", choices=("epsilon", "mu"), default=["epsilon", "mu"])
    parser.add_argument(
        "--tests",
        nargs="+",
        default=[""],
        help="sizes of the tests whose names begin with one of these",
    )
    stored.option(parser)
    options = parser.parse_args()
    found = sizes(options.repetitions, options.rows, options.spends, options.tests)
    if options.store:
        store(found, options.repetitions)
    error = np.sqrt(ALPHA * (1 - ALPHA) / options.repetitions)
    outside = {name: size for name, size in found.items() if abs(size - ALPHA) > 3 * error}
    for (setting, name), size in sorted(outside.items(), key=lambda item: item[1]):
        print(f"outside 3 standard errors: {name}, {setting}: {size:.4f}")
    print(
        f"worst_size={max(found.values()):.4f} least_size={min(found.values()):.4f} "
        f"worst_errors={max(abs(size - ALPHA) for size in found.values()) / error:.2f} "
        f"outside={len(outside)} settings={len(found)}"
    )


if __name__ == "__main__":
    main()
