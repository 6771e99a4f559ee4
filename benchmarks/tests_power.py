"""Power of the private tests of tables, ranks and means, beside that of other tests.

    python benchmarks/tests_power.py [--repetitions 4000] [--rows 50 200 1000 10000]
        [--spends epsilon mu]

The others: the normal approximation (two proportions, two means), Kifer and Rogers' χ² quantile
(tables), and the noisy rank sum of Couch et al. 2019 (ranks), at alternatives that the normal
approximation finds about half the time. The size of a test is its largest share of rejections under
any null, so the other test is asked at the null of the comparison and at every null of its family
at which sizes are measured (tests_size.py), 10 000 times each: `worst_power_loss` is the largest
deficit where it keeps its size at all of them, `loss_at_one_null` where it does at the null of the
comparison.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import stats

import stored
from discreet.accounting.guarantees import GDP, PureDP
from discreet.estimators.hypotheses.plans import _mean_laws, count_law
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.tables.association import association
from discreet.inference.tables.comparisons import normal_p_value
from discreet.inference.tables.tables import (
    NoisyTables,
    chi_square,
    kruskal_wallis,
)
from tests_size import (
    ALPHA,
    MANY,
    NULL_REPETITIONS,
    ROWS,
    SPENDS,
    TABLES,
    TWO_MEANS,
    Generator,
    mean_data,
    means_rejected,
    noisy_counts,
    plain_means,
    population,
    spend_of,
    table_rejected,
)


class Comparison:
    """Power of a test less that of another one, where the other keeps its size (within 3 standard
    errors): at the null of the comparison, and at all nulls of its family.
    """

    def __init__(self) -> None:
        self.losses: dict[str, float] = {}
        self.losses_at_one: dict[str, float] = {}
        self.rows: list[tuple[str, float, str, float, bool]] = []

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
        self.rows.append((name, power, called, against, max(sizes) <= limit))
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


def store(compared: Comparison, repetitions: int) -> None:
    """Each test's power beside the best known to keep its size, by kind of test."""
    stored.table(
        "tests_power",
        about="power",
        title="Power beside tests that know more",
        says="Alternatives that a plain test would find about half the time. The other test is "
        "calibrated at one null; where it keeps 5 % at other nulls too is said.",
        columns=[
            stored.column("setting"),
            stored.column("power", "our power", digits=3),
            stored.column("other", "beside"),
            stored.column("against", "its power", digits=3),
            stored.column("kept", "keeps its size"),
        ],
        rows=[
            {
                "setting": name,
                "power": stored.share(power * repetitions, repetitions),
                "other": called,
                "against": stored.share(against * repetitions, repetitions),
                "kept": kept,
            }
            for name, power, called, against, kept in compared.rows
        ],
        runs=repetitions,
        error="the standard error of a share of the runs",
        notes=[
            "The mark + stands for a public number of rows (Replace), − for a private one "
            "(AddRemove)."
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repetitions", type=int, default=4000)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--spends", nargs="+", choices=("epsilon", "mu"), default=["epsilon", "mu"])
    stored.option(parser)
    options = parser.parse_args()
    compared, line = powers(options.repetitions, options.rows, options.spends), []
    if options.store:
        store(compared, options.repetitions)
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
