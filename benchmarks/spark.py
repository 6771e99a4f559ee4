"""A Spark frame on this machine: CPU times of passes beside Spark's own query.

    make bench NAME=spark [ARGS="2500000 10000000 --store"]

Spark runs as `local[2]`, over a Parquet file of 12 columns; times are CPU seconds of the whole tree
of processes (the driver, the virtual machine, its Python workers), after a first question that
loads and compiles. The last line has

table_vs_sparksql  a table of means by 4 levels, over Spark's own group-by of the same columns
pass_fixed_s       what a pass over a model's blocks takes whatever the rows
pass_ns_row        and for each row more
encode_ns_row      the pass that encodes a model of 8 columns, for each row
growth             the whole fit at the most rows, over the one before
identical          1 where a seeded fit and table release what they do over the file at hand
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import discreet as dp
import outofcore
import stored
from discreet.testing import seeded_session

ROWS = (2_500_000, 10_000_000)
MODEL = "y ~ age + hours + edu + cost + married + region"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.io.encryption.enabled": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.log.level": "ERROR",
}
WANTED = {
    "table_vs_sparksql": "≤ 2.5",
    "pass_fixed_s": "≤ 1",
    "pass_ns_row": "≤ 100",
    "encode_ns_row": "≤ 1000",
    "growth": "≤ 4.4",
    "identical": "1",
}
TICKS = os.sysconf("SC_CLK_TCK")


def cpu() -> float:
    """CPU seconds of this process and of all that it started, also of those that ended."""
    times, parents = {}, {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            times[int(place.name)] = sum(map(int, fields[11:15])) / TICKS
            parents[int(place.name)] = int(fields[1])
    here, total = [os.getpid()], 0.0
    while here:
        one = here.pop()
        total += times.get(one, 0.0)
        here += [child for child, parent in parents.items() if parent == one]
    return total


def timed(work: Any) -> tuple[float, Any]:
    start = cpu()
    found = work()
    return cpu() - start, found


def declared() -> dict[str, Any]:
    return {name: column for name, column in outofcore.schema().items() if name != "id"}


def released(data: Any) -> list[Any]:
    """A seeded table and fit."""
    session = seeded_session(data, dp.ApproxDP(20, 1e-4), seed=3)
    table = dp.table(session, "income", by="region", spend=dp.GDP(0.5))
    fit = dp.logistic(session, MODEL, spend=dp.GDP(0.5))
    return [table.release.integers, *(one.integers for one in fit.releases)]


def at(spark: Any, path: str, rows: int) -> dict[str, Any]:
    """The times at one number of rows."""
    frame = spark.read.parquet(path)
    frame.createOrReplaceTempView("visits")
    query = "SELECT region, count(*), sum(income), sum(income * income) FROM visits GROUP BY region"
    plain = min(timed(lambda: spark.sql(query).collect())[0] for _ in range(3))
    data = dp.from_spark(frame, schema=declared(), neighbors=dp.Replace())
    session = seeded_session(data, dp.ApproxDP(20, 1e-4), seed=3)
    asked = [
        timed(lambda: dp.table(session, "income", by="region", spend=dp.GDP(0.1)))[0]
        for _ in range(3)
    ]
    passes, added = [], data._engine._added

    def noted(*given: Any, **named: Any) -> Any:
        seconds, totals = timed(lambda: added(*given, **named))
        passes.append(seconds)
        return totals

    data._engine._added = noted
    fit, _ = timed(lambda: dp.logistic(session, MODEL, spend=dp.GDP(0.5)))
    data._engine._added = added
    again = sorted(passes[1:])
    found = {
        "rows": rows,
        "plain": plain,
        "table": min(asked),
        "encode": passes[0],
        "pass": again[len(again) // 2],
        "passes": len(passes),
        "fit": fit,
    }
    print({key: round(value, 3) for key, value in found.items()}, flush=True)
    return found


def summary(found: list[dict[str, Any]], identical: bool) -> dict[str, float]:
    few, many = found[-2], found[-1]
    slope = (many["pass"] - few["pass"]) / (many["rows"] - few["rows"])
    encode = (many["encode"] - few["encode"]) / (many["rows"] - few["rows"])
    return {
        "table_vs_sparksql": round(many["table"] / many["plain"], 2),
        "pass_fixed_s": round(few["pass"] - slope * few["rows"], 2),
        "pass_ns_row": round(1e9 * slope, 1),
        "encode_ns_row": round(1e9 * encode),
        "growth": round(many["fit"] / few["fit"], 2),
        "identical": int(identical),
    }


def main() -> int:
    storing = stored.wanted()
    sizes = [int(word) for word in sys.argv[1:]] or list(ROWS)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    found, same = [], True
    with tempfile.TemporaryDirectory() as folder:
        spark = builder.config("spark.local.dir", folder).getOrCreate()
        for number, rows in enumerate([100_000, *sizes]):
            path = str(Path(folder) / f"{rows}.parquet")
            outofcore.write(Path(path), rows)
            if not number:  # what is loaded and compiled once is not timed; and answers are equal
                frames = [
                    dp.from_spark(
                        spark.read.parquet(path), schema=declared(), neighbors=dp.Replace()
                    ),
                    dp.read_parquet(path, schema=declared(), neighbors=dp.Replace()),
                ]
                same = released(frames[0]) == released(frames[1])
                continue
            found.append(at(spark, path, rows))
        start = time.monotonic()
        spark.stop()
        print(f"stopped in {time.monotonic() - start:.1f} s")
    figures = summary(found, same)
    if storing:
        stored.figures(
            "spark",
            about="speed",
            title=f"A Spark frame of {sizes[-1]} rows, local[2]",
            says="CPU seconds of all processes, beside Spark's own query; passes from two sizes.",
            found={name: (value, WANTED[name]) for name, value in figures.items()},
            notes=[f"growth: {sizes[-2]} to {sizes[-1]} rows."],
        )
    print(" ".join(f"{name}={value}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
