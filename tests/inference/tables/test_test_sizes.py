"""Sizes of the tests of tables, ranks and means with many repetitions, by the simulation of
benchmarks/tests_size.py, which first has to agree with the library's own p-values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.benchmark_modules import benchmark

from discreet.inference.means.mean_tests import anova_statistic, means_p_value
from discreet.inference.means.means import MeanStatistics
from discreet.inference.tables.tables import NoisyTables, table_p_value

SIZE = benchmark("tests_size")


def limit(repetitions):
    return 6.2 * np.sqrt(0.05 * 0.95 / repetitions)  # seeded; a false alarm of 1e-9 on fresh data


@pytest.mark.slow
def test_many_tables_at_once_are_tested_as_one_by_one():
    rng, noise, rows = np.random.default_rng(1), SIZE.count_law(SIZE.spend_of("epsilon", 0.5)), 80
    shares, statistic = SIZE.TABLES["two ½"]
    tables = SIZE.noisy_counts(rng, rows, shares + np.array([[0.1, -0.1], [-0.1, 0.1]]), noise, 40)
    p = np.array(
        [
            table_p_value(
                NoisyTables(table, noise, np.asarray(float(rows))),
                statistic,
                104_729 * place,
                few=1999,
                many=1999,
            )[1]
            for place, table in enumerate(tables)
        ]
    )
    rejected = SIZE.table_rejected(rng, tables, noise, statistic, rows, SIZE.MANY)
    clear = np.abs(p - 0.05) > 0.05 * 0.6  # 6 standard errors of 999 draws
    assert clear.sum() > 15
    assert (rejected[clear] == (p <= 0.05)[clear]).all()


@pytest.mark.slow
def test_many_groups_of_means_are_tested_as_one_by_one():
    rng = np.random.default_rng(2)
    seen, noise = SIZE.mean_data(
        rng,
        300,
        SIZE.spend_of("mu", 1.0),
        np.array([SIZE.population(0.0, 0.3), SIZE.population(0.15, 0.3)]) / 2,
        40,
    )
    laws = (seen.count_noise, seen.first_noise, seen.even_noise)
    p = np.array(
        [
            means_p_value(
                MeanStatistics(seen.count[k], seen.first[k], seen.even[k], *laws, total=300),
                noise,
                anova_statistic,
                104_729 * k,
                few=1999,
                many=1999,
            )[1]
            for k in range(40)
        ]
    )
    rejected = SIZE.means_rejected(rng, seen, noise, SIZE.MANY)
    clear = np.abs(p - 0.05) > 0.05 * 0.6
    assert clear.sum() > 15
    assert (rejected[clear] == (p <= 0.05)[clear]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows", "spend", "repetitions"),
    [
        ("two ½+", 50, ("epsilon", 0.1), 4000),
        ("two ½−", 200, ("epsilon", 0.1), 3000),
        ("two .05²+", 200, ("mu", 0.25), 2000),
        ("χ² 3×4+", 200, ("epsilon", 0.1), 2000),
        ("ranks 2×8−", 50, ("epsilon", 0.5), 3000),
        ("fit+", 200, ("epsilon", 2.0), 20_000),
        ("Welch", 200, ("epsilon", 2.0), 8000),
        ("Welch .7", 50, ("mu", 1.0), 2500),
    ],
)
def test_size_is_nominal(name, rows, spend, repetitions):
    """Noise taken for 30 % smaller would be rejected 0.11, 0.12, 0.16, 0.22, 0.12 and (Welch .7)
    0.14 of the time: six standard errors beyond the limit with so many repetitions. In the other
    two settings the rows' own chance rules (0.055, 0.079), so that they look at more.
    """
    rejected = SIZE.null_tests(np.random.default_rng(9), rows, *spend, repetitions)[name]()
    assert abs(np.mean(rejected) - 0.05) < limit(repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two ½", "χ² 3×4"])
def test_the_check_rejects_noise_that_is_30_percent_too_small(name):
    rng, noise = np.random.default_rng(3), SIZE.count_law(SIZE.spend_of("epsilon", 0.5))
    shares, statistic = SIZE.TABLES[name]
    tables = SIZE.noisy_counts(rng, 100, shares, noise, 4000)
    rejected = SIZE.table_rejected(
        rng, tables, replace(noise, spread=0.7 * noise.spread), statistic, 100
    )
    assert np.mean(rejected) > 0.05 + limit(4000)
