"""Size and power of the private tests of tables, ranks and means,
simulated with the released noise laws.

    python benchmarks/tests_size.py [--repetitions 10000] [--rows 50 200 1000 10000]
        [--only size|power] [--power-repetitions 4000] [--spends epsilon mu] [--tests Welch ANOVA]

Sizes: for each test, number of rows and spend, the share of null data sets that are rejected at
α = 0.05. A p-value (1 + reached)/(draws + 1) with 199 draws is at most 0.05 with the same
probability as with 1999, so few draws do for sizes; a data set leaves the simulation as soon as
more than 9 draws have reached its statistic, which changes no decision and saves four fifths of the
draws. `worst_size` and `least_size` are the largest and smallest share, `worst_errors` the largest
distance from α in standard errors; `outside` counts settings more than 3 standard errors away,
of `settings` (chance alone leads to 1 in 370).

Power stands beside the normal approximation (two proportions, two means), Kifer and Rogers' χ²
quantile (tables), and the noisy rank sum of Couch et al. 2019 (ranks), at alternatives that the
normal approximation finds about half the time. The size of a test is its largest share of
rejections under any null, so the other test is asked at the null of the comparison and at every
null of its family that the sizes above are measured at, 10 000 times each: `worst_power_loss` is
the largest deficit where it keeps its size at all of them, `loss_at_one_null` where it does at the
null of the comparison.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

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
from discreet.inference.tables.comparisons import normal_p_value
from discreet.inference.tables.table_tests import fit_statistic
from discreet.inference.tables.tables import (
    NoisyTables,
    chi_square,
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


class Comparison:
    """Power of a test less that of another one, where the other keeps its size (within 3 standard
    errors): at the null of the comparison, and at all nulls of its family.
    """

    def __init__(self) -> None:
        self.losses: dict[str, float] = {}
        self.losses_at_one: dict[str, float] = {}

    def add(self, name: str, ours: Any, other: Any, other_at_nulls: list[Any], called: str) -> None:
        power, against, *sizes = (
            float(np.mean(reject)) for reject in (ours, other, *other_at_nulls)
        )
        limit = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / NULL_REPETITIONS)
        print(
            f"{name:32s} power {power:.4f}, {called} {against:.4f} (its size {sizes[0]:.4f}, "
            "at other nulls up to "
            f"{max(sizes[1:]):.4f}{'' if max(sizes) <= limit else ', not kept'})",
            flush=True,
        )
        if sizes[0] <= limit:
            self.losses_at_one[name] = against - power
        if max(sizes) <= limit:
            self.losses[name] = against - power


def signal(rows: int, variance: float, share: float) -> float:
    """The difference of two shares, groups of equal size,
    that a normal test finds about half the time.
    """
    return float(
        2.0
        * np.sqrt(
            4 * share * (1 - share) / rows + 8 * variance * (share**2 + (1 - share) ** 2) / rows**2
        )
    )


def powers(repetitions: int, numbers: list[int], kinds: list[str]) -> Comparison:
    compared = Comparison()
    for rows in numbers:
        for kind, amount in (spend for spend in SPENDS if spend[0] in kinds):
            rng, spend, setting = (
                np.random.default_rng([rows, 77]),
                spend_of(kind, amount),
                f"n={rows} {kind}={amount}",
            )
            for total, mark, noise in (
                (rows, "+", count_law(spend)),
                (None, "−", count_law(spend, moved=1)),
            ):
                change = signal(rows, noise.variance, 0.3)
                if change > 0.65:
                    print(f"{setting} {mark}: no alternative is found half the time")
                    continue
                share_power(
                    compared, rng, rows, noise, change, repetitions, f"{mark} {setting}", total
                )
                table_power(
                    compared,
                    rng,
                    rows,
                    noise,
                    min(1.0, change),
                    repetitions,
                    f"{mark} {setting}",
                    total,
                )
            means_power(compared, rng, rows, spend, repetitions, setting)
            rank_power(compared, rng, rows, (kind, amount), count_law(spend), repetitions, setting)
    return compared


def share_power(
    compared: Comparison,
    rng: Generator,
    rows: int,
    noise: ReleasedNoise,
    change: float,
    repetitions: int,
    setting: str,
    total: int | None,
) -> None:
    seen = noisy_counts(
        rng, rows, np.array([[0.3 + change, 0.7 - change], [0.3, 0.7]]) / 2, noise, repetitions
    )
    nulls = [
        np.outer([0.5, 0.5], [0.3, 0.7]),
        *(shares for name, (shares, _) in TABLES.items() if name.startswith("two")),
    ]
    plain, *at_nulls = (
        normal_p_value(tables, noise.variance) <= ALPHA
        for tables in (
            seen,
            *(noisy_counts(rng, rows, shares, noise, NULL_REPETITIONS) for shares in nulls),
        )
    )
    compared.add(
        f"two shares{setting}",
        table_rejected(rng, seen, noise, association, total, MANY),
        plain,
        at_nulls,
        "normal",
    )


def table_power(
    compared: Comparison,
    rng: Generator,
    rows: int,
    noise: ReleasedNoise,
    change: float,
    repetitions: int,
    setting: str,
    total: int | None,
) -> None:
    independent = np.outer([0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4])
    tilted = np.maximum(
        independent + change * np.outer([-1, 1, 0], [-0.5, -0.5, 0.5, 0.5]) / 3, 0.0
    )
    seen = noisy_counts(rng, rows, tilted / tilted.sum(), noise, repetitions)
    nulls = [
        independent,
        *(shares for name, (shares, _) in TABLES.items() if name in ("χ² 2×3", "χ² .03")),
    ]

    def plain(tables: Any) -> Any:
        given = NoisyTables(
            tables, noise, None if total is None else np.full(len(tables), float(total))
        )
        return chi_square(given) > stats.chi2.isf(
            ALPHA, (tables.shape[-2] - 1) * (tables.shape[-1] - 1)
        )

    compared.add(
        f"χ² 3×4{setting}",
        table_rejected(rng, seen, noise, association, total, MANY),
        plain(seen),
        [plain(noisy_counts(rng, rows, shares, noise, NULL_REPETITIONS)) for shares in nulls],
        "χ² quantile",
    )


def means_power(
    compared: Comparison,
    rng: Generator,
    rows: int,
    spend: PureDP | GDP,
    repetitions: int,
    setting: str,
) -> None:
    law, worths = _mean_laws(spend, 2)
    change = 2.0 * np.sqrt(4 * 0.12 / rows + 8 * law.variance * worths[1] ** 2 / rows**2)
    if change > 0.9:
        return
    one, two = population(-change / 2, 0.35), population(change / 2, 0.35)
    seen, noise = mean_data(rng, rows, spend, np.array([one, two]) / 2, repetitions)
    nulls = (
        mean_data(rng, rows, spend, shares, NULL_REPETITIONS)[0]
        for shares in (np.array([population(0.0, 0.35)] * 2) / 2, *TWO_MEANS.values())
    )
    plain, *at_nulls = (plain_means(data) > stats.chi2.isf(ALPHA, 1) for data in (seen, *nulls))
    compared.add(
        f"two means {setting}", means_rejected(rng, seen, noise, MANY), plain, at_nulls, "normal"
    )


def rank_power(
    compared: Comparison,
    rng: Generator,
    rows: int,
    spend: tuple[str, float],
    noise: ReleasedNoise,
    repetitions: int,
    setting: str,
) -> None:
    """Ranks by 4, 8 and 16 bins beside the noisy rank sum: its sensitivity is n − 1 where a row's
    group is protected too, and half of that where it is public (Couch et al. 2019).
    """
    kind, amount = spend
    bins, half, many = (4, 8, 16), rows // 2, min(repetitions, 1000)
    shift = min(2.0, float(2.0 * np.sqrt(4.2 / rows + 12 * 16 * noise.variance / rows**2)))
    tables: dict[int, list[Any]] = {number: [] for number in bins}
    direct = np.zeros(many)
    for place in range(many):
        low, high = rng.normal(0, 1, half), rng.normal(shift, 1, half)
        for number in bins:
            edges = np.linspace(-3, 3, number + 1)[1:-1]
            tables[number].append(
                [np.bincount(np.searchsorted(edges, x), minlength=number) for x in (low, high)]
            )
        ranks = np.argsort(np.argsort(np.concatenate([low, high])))[half:]
        direct[place] = ranks.sum() - half * (half - 1) / 2 - half * half / 2

    def rank_sum(spread: float) -> float:
        def draw(count: int) -> Any:
            return (
                rng.laplace(0, spread, count) if kind == "epsilon" else rng.normal(0, spread, count)
            )

        null = np.sqrt(half * half * (2 * half + 1) / 12) * rng.normal(0, 1, 200_000) + draw(
            200_000
        )
        return float(np.mean(np.abs(direct + draw(many)) >= np.quantile(np.abs(null), 1 - ALPHA)))

    found = {
        number: table_rejected(
            rng,
            np.array(kept) + noise.quantile(rng.random((many, 2, number))),
            noise,
            kruskal_wallis,
            rows,
            MANY,
        )
        for number, kept in tables.items()
    }
    text = ", ".join(
        f"{float(np.mean(reject)):.3f} ({number} bins)" for number, reject in found.items()
    )
    print(
        f"{'ranks ' + setting:32s} power {text}, noisy rank sum "
        f"{rank_sum((rows - 1) / amount):.3f}, with public groups {rank_sum(half / amount):.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--power-repetitions", type=int, default=4000)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--only", choices=("size", "power"))
    parser.add_argument("--spends", nargs="+", choices=("epsilon", "mu"), default=["epsilon", "mu"])
    parser.add_argument(
        "--tests",
        nargs="+",
        default=[""],
        help="sizes of the tests whose names begin with one of these",
    )
    options = parser.parse_args()
    found = (
        {}
        if options.only == "power"
        else sizes(options.repetitions, options.rows, options.spends, options.tests)
    )
    compared = (
        None
        if options.only == "size"
        else powers(options.power_repetitions, options.rows, options.spends)
    )
    error = np.sqrt(ALPHA * (1 - ALPHA) / options.repetitions)
    outside = {name: size for name, size in found.items() if abs(size - ALPHA) > 3 * error}
    for (setting, name), size in sorted(outside.items(), key=lambda item: item[1]):
        print(f"outside 3 standard errors: {name}, {setting}: {size:.4f}")
    line = []
    if found:
        line.append(
            f"worst_size={max(found.values()):.4f} least_size={min(found.values()):.4f} "
            f"worst_errors={max(abs(size - ALPHA) for size in found.values()) / error:.2f} "
            f"outside={len(outside)} settings={len(found)}"
        )
    if compared is not None:
        for what, losses in (
            ("worst_power_loss", compared.losses),
            ("loss_at_one_null", compared.losses_at_one),
        ):
            worst = max(losses, key=lambda name: losses[name])
            print(f"{what}: {worst}")
            line.append(f"{what}={losses[worst]:.4f}")
    print(" ".join(line))


if __name__ == "__main__":
    main()
