"""Every kind of question over a Parquet file of 12 columns, within a limit of memory.

    make bench NAME=outofcore [ARGS="1000000 10000000 --store"]
    make bench NAME=outofcore ARGS="10000000 50000000 --only=table,keys,unit_mean --folder=rows"

`--only` asks some of the questions. `--folder` keeps files and answers there: a run that was
stopped goes on, and one that is asked again asks what is new.

Each question runs twice in a process of its own, with `memory_limit="500MB"`, at each of the
numbers of rows. Times are CPU seconds; those of tables are of the second pass. The last line has,
for the largest number of rows,

peak_mb               the largest resident memory, Python and libraries included
worst                 the question that needs it
growth                the largest ratio of a question's memory to that at the number of rows before
pass_vs_memory        a table over the file, over the same table in memory
fit_vs_memory         a logistic fit with rows on disk, over one with rows in memory (`cache=None`)
groups_vs_duckdb      a table of counts by 1000 undeclared keys, over DuckDB's own group-by
unit_first_vs_window  the first mean of units of at most two rows, over DuckDB's window and average
unit_again_vs_rows    the next such mean, over a mean of rows
identical             1 where seeded releases are those of the same question with rows in memory,
                      for the smallest number of rows
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import stored

ROWS = (1_000_000, 10_000_000)
CHUNK = 1_000_000
LIMIT = "500MB"
MODEL = "age + hours + edu + cost + married + region"


def write(path: Path, rows: int) -> None:
    """The same file for the same number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng, writer = np.random.default_rng(21), None
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        age, hours = rng.integers(18, 91, n), rng.uniform(0, 80, n)
        score = (age - 54) / 36 + (hours - 40) / 40
        table = pa.table(
            {
                "age": age,
                "hours": hours,
                "income": np.clip(60_000 + 30_000 * score + rng.normal(0, 20_000, n), 0, None),
                "edu": rng.integers(1, 21, n),
                "region": pa.array(np.array(["E", "N", "S", "W"])[rng.integers(0, 4, n)]),
                "married": rng.random(n) < 0.5,
                "cost": rng.gamma(2, 90, n),
                "visits": rng.poisson(3, n),
                "y": rng.random(n) < 1 / (1 + np.exp(-score)),
                "key": pa.array([f"k{key}" for key in range(1000)]).take(
                    pa.array(rng.integers(0, 1000, n))
                ),
                "weight": rng.normal(70, 15, n),
                "id": rng.integers(0, max(rows // 2, 1), n),
            }
        )
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def schema() -> dict[str, Any]:
    import discreet as dp

    return {
        "age": dp.Integer(18, 90),
        "hours": dp.Real(0, 80),
        "income": dp.Real(0, 200_000),
        "edu": dp.Integer(1, 20),
        "region": dp.Category(["E", "N", "S", "W"]),
        "married": dp.Boolean(),
        "cost": dp.Real(0, 1000),
        "visits": dp.Integer(0, 30),
        "y": dp.Boolean(),
        "key": dp.Open(),
        "weight": dp.Real(0, 200, bits=32),
        "id": dp.Open(),
    }


def questions() -> dict[str, Callable[[Any], Any]]:
    """What is asked, by its name; each is one public call."""
    import discreet as dp

    spend = dp.GDP(0.5)
    return {
        "table": lambda s: dp.table(s, "income", by="region", spend=spend),
        "mean": lambda s: dp.mean(s, "income", spend=spend),
        "median": lambda s: dp.median(s, "income", spend=spend),
        "fine median": lambda s: dp.median(s, "weight", spend=spend),
        "covariance": lambda s: dp.covariance(s, ["age", "hours", "cost"], spend=spend),
        "keys": lambda s: dp.table(s, by="key", spend=spend, delta=1e-8),
        "many keys": lambda s: dp.table(s, by="id", spend=spend, delta=1e-8),
        "ols": lambda s: dp.ols(s, f"income ~ {MODEL}", spend=spend),
        "moments": lambda s: dp.ols(s, f"income ~ {MODEL}", spend=spend, method="moments"),
        "logistic": lambda s: dp.logistic(s, f"y ~ {MODEL}", spend=spend),
        "unit mean": lambda s: dp.mean(s, "income", spend=spend),
        "unit ols": lambda s: dp.ols(s, "income ~ age + hours", spend=spend),
        "unbounded": lambda s: dp.unbounded_mean(s, "weight", spend=spend),
        "parts": lambda s: dp.subsample_test(
            s, lambda x: float(x.mean() > 40), columns="hours", parts=200, spend=spend
        ),
        "functions": lambda s: dp.subsample(
            s,
            lambda x: float(np.median(x)),
            columns="hours",
            parts=100,
            output=dp.Real(0, 80),
            spend=spend,
        ),
    }


ONCE = ("unbounded", "parts", "functions", "many keys", "fine median")  # asked once, for their time


def ask(path: str, name: str, cache: str | None) -> dict[str, Any]:
    """One question in this process."""
    import discreet as dp
    from discreet.testing import seeded_session

    unit = name.startswith("unit ")
    neighbors = dp.Replace(unit="id", max_rows=2) if unit else dp.Replace()
    declared = schema()
    if unit:
        declared = {key: declared[key] for key in ("age", "hours", "income")}
    data = dp.read_parquet(
        path, schema=declared, neighbors=neighbors, memory_limit=LIMIT, cache=cache
    )
    session = seeded_session(data, dp.ApproxDP(20, 1e-4), seed=3)
    asked = questions()[name]
    asked_of_few(asked, declared, neighbors)
    times = []
    for _ in range(2):
        start = time.process_time()
        result = asked(session)
        times.append(time.process_time() - start)
        if name in ONCE:
            break
    releases = result.releases if hasattr(result, "releases") else (result.release,)
    text = json.dumps([[str(number) for number in one.integers] for one in releases])
    return {
        "first": times[0],
        "again": times[-1],
        "peak": peak_mb(),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
    }


def asked_of_few(asked: Callable[[Any], Any], declared: dict[str, Any], neighbors: Any) -> None:
    """The question of a few rows in memory: what is loaded and compiled once is not timed."""
    import discreet as dp
    from discreet.testing import seeded_session

    rng, n = np.random.default_rng(1), 150_000
    few = {name: rng.integers(20, 80, n) for name in (*declared, "id")}
    few |= {"region": np.array(["E", "N"])[few["age"] % 2], "key": few["age"].astype(str)}
    few |= {"y": few["age"] % 2 == 0, "married": few["hours"] % 2 == 0}
    data = dp.from_arrays(few, schema=declared, neighbors=neighbors)
    asked(seeded_session(data, dp.ApproxDP(20, 1e-4), seed=3))


def in_memory(path: str) -> dict[str, Any]:
    """A table of the same rows in memory, encoded anew; what is loaded at first is not timed."""
    import pyarrow.parquet as parquet

    import discreet as dp
    from discreet.testing import seeded_session

    asked, neighbors = questions()["table"], dp.Replace()
    asked_of_few(asked, schema(), neighbors)
    frame = parquet.read_table(path, columns=["income", "region"])
    declared = {name: schema()[name] for name in ("income", "region")}
    for _ in range(2):
        start = time.process_time()
        data = dp.from_frame(frame, schema=declared, neighbors=neighbors)
        asked(seeded_session(data, dp.ApproxDP(20, 1e-4), seed=3))
        again = time.process_time() - start
    return {"again": again, "peak": peak_mb()}


def plain(path: str) -> dict[str, Any]:
    """DuckDB's own queries."""
    import duckdb

    times = {}
    for name, query in {
        "groups": f"SELECT key, count(*) FROM '{path}' GROUP BY key",
        "window": "SELECT avg(income) FROM (SELECT income, row_number() OVER (PARTITION BY id "
        f"ORDER BY age, hours, income) AS place FROM '{path}') WHERE place <= 2",
    }.items():
        for _ in range(2):  # what is loaded at first is not timed
            start = time.process_time()
            duckdb.sql(query).fetchall()
            times[name] = time.process_time() - start
    return times


def peak_mb() -> float:
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def fresh(*asked: str) -> dict[str, Any]:
    """The answer of this file in a process of its own."""
    ended = subprocess.run(
        [sys.executable, __file__, "--one", *asked], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise SystemExit(f"{asked}: {ended.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return found


def one(kind: str, path: str, name: str, cache: str) -> dict[str, Any]:
    if kind == "plain":
        return plain(path)
    if kind == "memory":
        return in_memory(path)
    return ask(path, name, None if cache == "none" else cache)


class Answers:
    """What was measured at one number of rows, kept beside its file."""

    def __init__(self, path: Path) -> None:
        self._path, self._kept = path, path.with_name(f"found_{path.stem}.json")
        self.held: dict[str, dict[str, Any]] = (
            json.loads(self._kept.read_text()) if self._kept.exists() else {}
        )

    def of(self, name: str) -> dict[str, Any]:
        """A question's answer, "plain", "memory", or "without" a folder and a question."""
        if name not in self.held:
            kind = name if name in ("plain", "memory") else "file"
            cache = "none" if name.startswith("without ") else "temporary"
            self.held[name] = fresh(kind, str(self._path), name.removeprefix("without "), cache)
            self._kept.write_text(json.dumps(self.held))
        return self.held[name]


def measured(answers: Answers, names: list[str]) -> dict[str, dict[str, Any]]:
    found = {}
    for name in names:
        found[name] = answers.of(name)
        shown = {key: found[name][key] for key in ("first", "again", "peak")}
        print(f"  {name:11}", shown, flush=True)
    return found


def summary(found: list[dict[str, dict[str, Any]]], kept: list[Answers]) -> dict[str, Any]:
    """The figures whose questions were asked."""
    last, growth, answers = found[-1], float("nan"), kept[-1]
    if len(found) > 1:
        growth = max(last[name]["peak"] / found[-2][name]["peak"] for name in last)
    figures: dict[str, Any] = {
        "peak_mb": round(max(one["peak"] for one in last.values())),
        "worst": max(last, key=lambda name: last[name]["peak"]).replace(" ", "_"),
        "growth": round(growth, 2),
    }

    def compare(name: str, asked: str, when: str, other: Callable[[], float]) -> None:
        if asked in last:
            figures[name] = round(last[asked][when] / other(), 2)

    compare("pass_vs_memory", "table", "again", lambda: answers.of("memory")["again"])
    compare("fit_vs_memory", "logistic", "first", lambda: answers.of("without logistic")["first"])
    compare("groups_vs_duckdb", "keys", "again", lambda: answers.of("plain")["groups"])
    compare("unit_first_vs_window", "unit mean", "first", lambda: answers.of("plain")["window"])
    if "mean" in last:
        compare("unit_again_vs_rows", "unit mean", "again", lambda: last["mean"]["again"])
    both = [name for name in ("logistic", "unit mean") if name in last]
    if both:
        alike = [
            found[0][name]["digest"] == kept[0].of(f"without {name}")["digest"] for name in both
        ]
        figures["identical"] = int(all(alike))
    return figures


WANTED = {
    "peak_mb": "≤ 600",
    "growth": "≤ 1.05",
    "pass_vs_memory": "≤ 1.5",
    "fit_vs_memory": "≤ 1.25",
    "groups_vs_duckdb": "≤ 2",
    "unit_first_vs_window": "≤ 10",
    "unit_again_vs_rows": "≤ 1.3",
    "identical": "1",
}


def store(
    sizes: list[int], found: list[dict[str, dict[str, Any]]], figures: dict[str, Any]
) -> None:
    """The memory of each question at each size, and the figures of the last line."""
    stored.table(
        "outofcore_memory",
        about="speed",
        title="Resident memory at its largest, MB, by number of rows",
        says='One process a question over a Parquet file of 12 columns, `memory_limit="500MB"`; '
        "Python, Arrow, compiled loops and all libraries included.",
        columns=[
            stored.column("question"),
            *(stored.column(f"{rows:.0e}".replace("+0", ""), digits=0) for rows in sizes),
            stored.column("seconds", "CPU s, most rows", digits=1),
        ],
        rows=[
            {"question": name}
            | {
                f"{rows:.0e}".replace("+0", ""): one[name]["peak"]
                for rows, one in zip(sizes, found, strict=True)
            }
            | {"seconds": found[-1][name]["first"]}
            for name in found[-1]
        ],
    )
    stored.figures(
        "outofcore",
        about="speed",
        title=f"Data on disk: {sizes[-1]} rows within 500 MB",
        says="CPU times beside the same rows in memory and beside DuckDB's own queries.",
        found={name: (value, WANTED.get(name, "")) for name, value in figures.items()},
    )


def main(asked: list[str]) -> int:
    if asked[:1] == ["--one"]:
        print(json.dumps(one(*asked[1:])))
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--only", default="", help="questions, with _ in the place of spaces")
    parser.add_argument("--folder", help="where files and answers stay")
    stored.option(parser)
    options = parser.parse_args(asked)
    names = options.only.replace("_", " ").split(",") if options.only else list(questions())
    found, kept = [], []
    with tempfile.TemporaryDirectory() as temporary:
        for rows in options.rows:
            path = Path(options.folder or temporary) / f"{rows}.parquet"
            if not path.exists():
                write(path, rows)
            print(f"{rows} rows, {path.stat().st_size / 1e6:.0f} MB", flush=True)
            kept.append(Answers(path))
            found.append(measured(kept[-1], names))
        figures = summary(found, kept)
    if options.store:
        store(options.rows, found, figures)
    print(" ".join(f"{name}={value}" for name, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
