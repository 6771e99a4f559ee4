"""Private counts and means in 1000 declared groups of a Parquet file,
against DuckDB's own plain group-by.

    make bench NAME=groups [ARGS=rows]

The headline figure groups by a text column ('g0042'); the same with a whole-number column is
printed above it. Ours is the whole public path, `dp.table` and its intervals: price, debit, clamp,
encode and sum exactly (count, sum, sum of squares), exact noise, stored answer, release,
95 % intervals. DuckDB's is `SELECT g, count(*), avg(x) ... GROUP BY g`. Both run in this process
with the same number of threads, interleaved, and the best of several repeats counts. Peak memory is
that of the whole process, which also wrote the file and ran the plain queries.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable

import duckdb

import discreet as dp
import stored

ROWS, GROUPS, REPEATS = 10_000_000, 1000, 7


def make_file(path: str, rows: int) -> None:
    """A text group, the same group as a number, and a double;
    the same bytes on every run (one thread writes).
    """
    print(f"writing {rows} rows ...", flush=True)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            "COPY (SELECT 'g' || lpad(CAST(g AS VARCHAR), 4, '0') AS g, g AS number, x FROM "
            f"(SELECT CAST((i * 48271) % 2147483647 % {GROUPS} AS INTEGER) AS g,"
            f" ((i * 69621 + 7) % 2147483647 % 1000003) / 10000e0 AS x FROM range({rows}) AS "
            f"source(i))) TO '{path}' (FORMAT parquet)"
        )


def ours(path: str, group: str) -> Callable[[], object]:
    """The whole private release on our side: a fresh debit and fresh noise every time."""
    schema = {
        "g": dp.Category([f"g{level:04d}" for level in range(GROUPS)]),
        "number": dp.Category(range(GROUPS)),
        "x": dp.Real(0, 100),
    }
    session = dp.read_parquet(path, schema=schema, neighbors=dp.Replace()).open(budget=dp.GDP(10))

    def release() -> object:
        return dp.table(session, "x", by=group, spend=dp.GDP(0.5)).quantities()

    return release


def plain(path: str, group: str) -> Callable[[], object]:
    def query() -> object:
        with duckdb.connect(":memory:") as connection:
            return connection.execute(
                f"SELECT {group}, count(*), avg(x) FROM read_parquet('{path}') GROUP BY {group}"
            ).fetchall()

    return query


def best_interleaved(
    first: Callable[[], object], second: Callable[[], object]
) -> tuple[float, float]:
    """Best seconds of each, taking turns."""
    best = [float("inf"), float("inf")]
    for _ in range(REPEATS):
        for place, work in enumerate((first, second)):
            start = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - start)
    return best[0], best[1]


def main() -> None:
    asked = stored.wanted()
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "groups.parquet")
        make_file(path, rows)
        ratios, times = {}, {}
        for group in ("number", "g"):
            private, public = best_interleaved(ours(path, group), plain(path, group))
            ratios[group], times[group] = private / public, (private, public)
            print(
                f"group by {group}: ours {private:.3f} s, plain DuckDB {public:.3f} s, ratio "
                f"{ratios[group]:.2f}",
                flush=True,
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if asked:
        stored.table(
            "groups",
            about="speed",
            title="Counts and means in 1000 groups of a file",
            says=f"{rows:,} rows of a Parquet file: ours with debit, exact noise and intervals, "
            "and DuckDB's own plain group-by.".replace(",", " "),
            columns=[
                stored.column("group", "grouped by"),
                stored.column("ours", "discreet, s", digits=3),
                stored.column("plain", "DuckDB, plain, s", digits=3),
            ],
            rows=[
                {"group": {"g": "text", "number": "whole numbers"}[name], "ours": a, "plain": b}
                for name, (a, b) in times.items()
            ],
            notes=[f"Peak memory of the process: {peak:.0f} MB."],
        )
    print(f"groups_vs_duckdb={ratios['g']:.2f} peak_mb={peak:.0f}")


if __name__ == "__main__":
    main()
