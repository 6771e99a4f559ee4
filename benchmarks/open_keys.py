"""Counts by text keys that nobody declared, through the public function,
against the plain group-by of the same engine.

10⁶ rows, 10⁴ different keys. Two sources: a polars table in memory and a Parquet file. Ratios are
medians of pairs measured one after the other in this run; a new data set is declared for every
release, so nothing is read from a cache. The file also guards its target: at most 3.

    python benchmarks/open_keys.py [--rows 1000000] [--keys 10000] [--repeats 7]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import discreet as dp

MOST = 3.0
SCHEMA = {"city": dp.Open()}


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(
    ours: Callable[[], object], plain: Callable[[], object], repeats: int
) -> tuple[float, float, float]:
    ours(), plain()
    pairs = [(seconds(ours), seconds(plain)) for _ in range(repeats)]
    return (
        statistics.median(a / b for a, b in pairs),
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
    )


def release(data: dp.Dataset) -> int:
    session = data.open(budget=dp.ApproxDP(2, 1e-6))
    return len(dp.table(session, by="city", spend=dp.GDP(0.25), delta=1e-8).release.found)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(11)
    names = np.array([f"city {number} é" for number in range(options.keys)])
    table = pl.DataFrame(
        {
            "city": names[
                np.minimum(
                    rng.exponential(options.keys / 6, options.rows).astype(int), options.keys - 1
                )
            ],
            "cost": rng.random(options.rows),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trips.parquet"
        table.write_parquet(path)

        def in_memory() -> int:
            return release(dp.from_frame(table, schema=SCHEMA, neighbors=dp.AddRemove()))

        def in_file() -> int:
            return release(dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()))

        def plain_file() -> object:
            return (
                duckdb.connect()
                .execute(f"SELECT city, count(*) FROM '{path}' GROUP BY city")
                .fetchall()
            )

        memory = ratio(in_memory, lambda: table.group_by("city").len().rows(), options.repeats)
        file = ratio(in_file, plain_file, options.repeats)
        shown = in_memory()
    for name, plain, (worst, ours, theirs) in (
        ("polars table", "polars group_by", memory),
        ("Parquet file", "DuckDB GROUP BY", file),
    ):
        print(
            f"{name:14} dp.table {1e3 * ours:7.1f} ms   {plain} {1e3 * theirs:7.1f} ms   ratio "
            f"{worst:.2f}"
        )
    print(f"{shown} of {table['city'].n_unique()} keys shown")
    print(f"open_keys_vs_polars={memory[0]:.2f} open_keys_vs_duckdb={file[0]:.2f}")
    if max(memory[0], file[0]) > MOST:
        raise SystemExit(f"above {MOST}")


if __name__ == "__main__":
    main()
