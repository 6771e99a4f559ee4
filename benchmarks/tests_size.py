"""Size and power of the private tests of tables, ranks and means, simulated with the released noise laws.

    python benchmarks/tests_size.py [--repetitions 10000] [--draws 199] [--rows 50 200 1000 10000] [--no-power]

A p-value (1 + exceeding)/(draws + 1) with 199 draws is at most 0.05 with the same probability as with 1999, so few draws do for sizes (power is a little lower).

For each test, number of rows and spend: the share of null data sets that are rejected at α = 0.05. `worst_size` is the largest share, `least_size` the smallest, and
`worst_errors` the largest excess over α in standard errors. Power stands beside the plain normal approximation (two proportions), Kifer and Rogers' χ² quantile (tables) and the
direct noisy rank sum of Couch et al. 2019 (ranks), each where it keeps its size.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from discreet.inference.comparisons import normal_p_value
from discreet.inference.laws import Noise
from discreet.inference.mean_tests import MeanNoise, anova_statistic, means_p_value
from discreet.inference.means import MeanStatistics
from discreet.inference.table_tests import fit_statistic, multinomial_draws
from discreet.inference.tables import NoisyTables, chi_square, kruskal_wallis, signed_root, table_p_value
from discreet.inference.tulap import ReleasedNoise

ALPHA = 0.05
ROWS = (50, 200, 1000, 10_000)
SPENDS = (("epsilon", 0.1), ("epsilon", 0.5), ("epsilon", 2.0), ("mu", 0.25), ("mu", 0.5), ("mu", 1.0))
Generator = np.random.Generator


def table_noise(kind: str, amount: float) -> ReleasedNoise:
    """Noise in the cells of a table under Replace: ℓ₁ sensitivity 2, ℓ₂ sensitivity √2."""
    spread = 2 / amount if kind == "epsilon" else float(np.sqrt(2)) / amount
    return ReleasedNoise("geometric", spread) if kind == "epsilon" else ReleasedNoise("gaussian", spread, spread / 1024)


def noisy_tables(rng: Generator, rows: int, shares: Any, noise: ReleasedNoise, repetitions: int) -> Any:
    counts = rng.multinomial(rows, np.ravel(shares), size=repetitions).reshape(repetitions, *np.shape(shares))
    return counts + noise.quantile(rng.random(counts.shape))


def two_sided(tables: NoisyTables) -> Any:
    return np.abs(signed_root(tables))


def table_p_values(tables: Any, noise: ReleasedNoise, statistic: Callable[[NoisyTables], Any], total: int | None, draws: int) -> Any:
    public = None if total is None else np.asarray(float(total))
    return np.array([table_p_value(NoisyTables(table, noise, public), statistic, 7919 * place * draws, few=draws, many=draws)[1] for place, table in enumerate(tables)])


TABLES: dict[str, tuple[Any, Callable[[NoisyTables], Any]]] = {
    "two proportions, ½": (np.outer([0.5, 0.5], [0.5, 0.5]), two_sided),
    "two proportions, 0.05": (np.outer([0.3, 0.7], [0.05, 0.95]), two_sided),
    "χ² 3 × 4": (np.outer([0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4]), chi_square),
    "ranks 3 × 8": (np.outer([0.3, 0.3, 0.4], [0.02, 0.08, 0.2, 0.3, 0.2, 0.1, 0.06, 0.04]), kruskal_wallis),
}


def fit_p_values(rng: Generator, rows: int, expected: Any, noise: ReleasedNoise, repetitions: int) -> Any:
    """The null law has no unknowns: one large simulation serves all data sets."""
    def draw(count: int) -> Any:
        counts = multinomial_draws(rng.random((count, expected.size)), rows, expected)
        return fit_statistic(counts + noise.quantile(rng.random(counts.shape)), expected, noise.variance, rows)

    null = np.sort(draw(100_000))
    counts = rng.multinomial(rows, expected, size=repetitions)
    value = fit_statistic(counts + noise.quantile(rng.random(counts.shape)), expected, noise.variance, rows)
    return 1 - np.searchsorted(null, value) / null.size


def mean_data(rng: Generator, rows: int, kind: str, amount: float, repetitions: int, *, groups: int = 2, shift: float = 0.0) -> tuple[MeanStatistics, MeanNoise]:
    """Noisy count, sum and spread by group of values of normal shape in [−1, 1], under Replace (the designs of dp.table)."""
    if kind == "epsilon":  # weights 4, 10, 5 and reach 28
        worths, law = (1 / 4, 1 / 10, 1 / 5), ReleasedNoise("laplace", 28 / amount, 28 / amount / 1024)
    else:  # weights 1, 1, 1 and reach √4
        worths, law = (1.0, 1.0, 1.0), ReleasedNoise("gaussian", 2 / amount, 2 / amount / 1024)
    counts = np.zeros((3, repetitions, groups))
    for place in range(repetitions):
        group = rng.integers(0, groups, rows)
        c = np.clip(rng.normal(0.2, 0.3 * (1 + 0.5 * group)) + shift * group, -1, 1) if shift else np.clip(0.2 + 0.8 * np.tanh(rng.normal(0, 0.4 * (1 + 0.5 * group))), -1, 1)
        counts[:, place] = [np.bincount(group, minlength=groups), np.bincount(group, c, minlength=groups), np.bincount(group, 1 - c**2, minlength=groups)]
    noisy = [values + law.quantile(rng.random(values.shape)) * worth for values, worth in zip(counts, worths, strict=True)]
    laws = [Noise(law.variance * worth**2, (law.variance * worth**2 / 2) ** 2 if kind == "epsilon" else 0.0) for worth in worths]
    return MeanStatistics(*noisy, *laws), MeanNoise(law, worths)


def mean_p_values(statistics: MeanStatistics, noise: MeanNoise, draws: int) -> Any:
    laws = (statistics.count_noise, statistics.first_noise, statistics.even_noise)
    return np.array([
        means_p_value(MeanStatistics(statistics.count[place], statistics.first[place], statistics.even[place], *laws), noise, anova_statistic, 7919 * place * draws, few=draws, many=draws)[1]
        for place in range(len(statistics.count))])


def sizes(repetitions: int, draws: int, numbers: list[int]) -> dict[str, float]:
    """The share of rejections of every setting, printed as it is found."""
    found: dict[str, float] = {}
    for rows in numbers:
        for kind, amount in SPENDS:
            rng = np.random.default_rng([rows, int(1000 * amount), len(kind)])
            noise, start = table_noise(kind, amount), time.process_time()
            for name, (shares, statistic) in TABLES.items():
                for public in (True, False):
                    p = table_p_values(noisy_tables(rng, rows, shares, noise, repetitions), noise, statistic, rows if public else None, draws)
                    found[f"{name}, n = {rows}, {kind} {amount}, total {'public' if public else 'private'}"] = float(np.mean(p <= ALPHA))
            found[f"goodness of fit, n = {rows}, {kind} {amount}"] = float(np.mean(fit_p_values(rng, rows, np.array([0.05, 0.15, 0.3, 0.5]), noise, repetitions) <= ALPHA))
            few = min(repetitions, 2000 if rows > 1000 else repetitions)
            found[f"Welch, n = {rows}, {kind} {amount}"] = float(np.mean(mean_p_values(*mean_data(rng, rows, kind, amount, few), draws) <= ALPHA))
            shown = {name: value for name, value in found.items() if f"n = {rows}, {kind} {amount}" in name}
            print(f"n = {rows:6d}  {kind} = {amount:4}  " + "  ".join(f"{value:.4f}" for value in shown.values()) + f"  ({time.process_time() - start:.0f} s)", flush=True)
    return found


def power_gaps(repetitions: int, draws: int) -> dict[str, float]:
    """Power less that of the alternative, where the alternative keeps its size (within 3 standard errors)."""
    gaps: dict[str, float] = {}
    for rows, change in ((200, 0.3), (1000, 0.14), (10_000, 0.05)):
        for kind, amount in (("epsilon", 0.5), ("epsilon", 2.0), ("mu", 0.5), ("mu", 1.0)):
            rng, noise = np.random.default_rng([rows, 77]), table_noise(kind, amount)
            null = np.outer([0.5, 0.5], [0.3, 0.7])
            shares = np.array([[0.15 + change / 2, 0.35 - change / 2], [0.15, 0.35]])
            alternative, at_null = noisy_tables(rng, rows, shares, noise, repetitions), noisy_tables(rng, rows, null, noise, repetitions)
            ours = float(np.mean(table_p_values(alternative, noise, two_sided, rows, draws) <= ALPHA))
            normal = float(np.mean(normal_p_value(alternative, noise.variance) <= ALPHA))
            size = float(np.mean(normal_p_value(at_null, noise.variance) <= ALPHA))
            kept = size <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / repetitions)
            print(f"two proportions n = {rows:6d} {kind} = {amount}: power {ours:.4f}, normal approximation {normal:.4f} (its size {size:.4f})")
            if kept:
                gaps[f"proportions {rows} {kind} {amount}"] = ours - normal
            tilt = np.outer([0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4]) * (1 + 3 * change * np.outer([-1, 1, -0.2], [-1, 0.5, 0.5, -0.375]) / 2)
            tables = noisy_tables(rng, rows, tilt / tilt.sum(), noise, repetitions)
            ours = float(np.mean(table_p_values(tables, noise, chi_square, rows, draws) <= ALPHA))
            limit = stats.chi2.isf(ALPHA, 6)
            plain = float(np.mean(chi_square(NoisyTables(tables, noise, np.full(repetitions, float(rows)))) > limit))
            nulls = noisy_tables(rng, rows, np.outer([0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.4]), noise, repetitions)
            size = float(np.mean(chi_square(NoisyTables(nulls, noise, np.full(repetitions, float(rows)))) > limit))
            print(f"χ² 3 × 4        n = {rows:6d} {kind} = {amount}: power {ours:.4f}, χ² quantile {plain:.4f} (its size {size:.4f})")
            if size <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / repetitions):
                gaps[f"χ² {rows} {kind} {amount}"] = ours - plain
            rank_power(rng, rows, kind, amount, repetitions, draws)
    return gaps


def rank_power(rng: Generator, rows: int, kind: str, amount: float, repetitions: int, draws: int) -> None:
    """Ranks by 8 and 16 bins beside the noisy rank sum: its sensitivity is n − 1 where a row's group is protected too, and the larger group's size where it is public (Couch et al. 2019)."""
    noise, shift = table_noise(kind, amount), 8 / np.sqrt(rows)
    half, repetitions = rows // 2, min(repetitions, 1000)
    tables, direct = {8: [], 16: []}, []
    for _ in range(repetitions):
        low, high = rng.normal(0, 1, half), rng.normal(min(shift, 1.0), 1, half)
        for bins, kept in tables.items():
            edges = np.linspace(-3, 3, bins + 1)
            kept.append([np.bincount(np.clip(np.searchsorted(edges, x) - 1, 0, bins - 1), minlength=bins) for x in (low, high)])
        direct.append(stats.mannwhitneyu(high, low).statistic - half * half / 2)
    def rank_sum(spread: float) -> float:
        def draw(count: int) -> Any:
            return rng.laplace(0, spread, count) if kind == "epsilon" else rng.normal(0, spread, count)

        null = np.sqrt(half * half * (2 * half + 1) / 12) * rng.normal(0, 1, 400_000) + draw(400_000)
        return float(np.mean(np.abs(np.array(direct) + draw(repetitions)) >= np.quantile(np.abs(null), 1 - ALPHA)))

    powers = {bins: float(np.mean(table_p_values(np.array(kept) + noise.quantile(rng.random((repetitions, 2, bins))), noise, kruskal_wallis, rows, draws) <= ALPHA)) for bins, kept in tables.items()}
    print(f"ranks           n = {rows:6d} {kind} = {amount}: power {powers[8]:.3f} (8 bins), {powers[16]:.3f} (16 bins), noisy rank sum {rank_sum((rows - 1) / amount):.3f}, with public groups {rank_sum(half / amount):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--draws", type=int, default=199)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--no-power", action="store_true")
    options = parser.parse_args()
    repetitions = options.repetitions
    print("columns: " + "; ".join(f"{name}, total {total}" for name in TABLES for total in ("public", "private")) + "; goodness of fit; Welch", flush=True)
    found = sizes(repetitions, options.draws, options.rows)
    gaps = {"not measured": 0.0} if options.no_power else power_gaps(min(repetitions, 2000), options.draws)
    error = np.sqrt(ALPHA * (1 - ALPHA) / repetitions)
    worst = max(found, key=lambda name: found[name])
    print(f"worst: {worst}; least power gap: {min(gaps, key=lambda name: gaps[name])}")
    print(f"worst_size={found[worst]:.4f} least_size={min(found.values()):.4f} worst_errors={(found[worst] - ALPHA) / error:.2f} least_power_gap={min(gaps.values()):.4f}")


if __name__ == "__main__":
    main()
