"""The file engine on adversarial tables: every type, writer and question, against memory and a
plain reading, and neighbours on files.

    make bench NAME=engine_fuzz [ARGS="--seconds 540 --seed 1"]

comparisons   statistics of one random table by the file engine, other readers and a plain reading
              cell by cell, each held against the engine in memory
differences   of them, how many were not the same integers
neighbours    statistics of a file and of the file in which one row (or unit) was exchanged,
              added or removed
worst_ratio   the largest change over the sensitivity that the noise is set by;
              1 is met, more would be a leak
failures      tables on which something raised
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

import stored

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "trusted" / "engines"))
import engine_fuzz as fuzz


def worker(seed: int, seconds: float, results: multiprocessing.Queue) -> None:
    """Random tables of every relation in turn until the time is up; None says that it ended."""
    try:
        _work(seed, seconds, results)
    finally:
        results.put(None)


def _work(seed: int, seconds: float, results: multiprocessing.Queue) -> None:
    asked = {neighbors: fuzz.questions(neighbors)[0] for neighbors in fuzz.RELATIONS}
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "data.parquet")
        for number, neighbors in enumerate(itertools.cycle(fuzz.RELATIONS)):
            if time.monotonic() > end:
                break
            choose = random.Random(f"{seed} {number}")
            try:
                compared, different = fuzz.compare(choose, path, neighbors, asked[neighbors])
                moved, worst, too_far = fuzz.neighbours(choose, path, neighbors, asked[neighbors])
                results.put((compared, different, moved, worst, too_far, []))
            except Exception:
                results.put(
                    (0, [], 0, 0.0, [], [f"{seed} {number} {neighbors}\n{traceback.format_exc()}"])
                )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    stored.option(parser)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [
        context.Process(target=worker, args=(1000 * options.seed + place, options.seconds, results))
        for place in range(options.processes)
    ]
    for process in processes:
        process.start()
    running, shown = len(processes), time.monotonic()
    compared = moved = tables = 0
    worst, different, too_far, failures = 0.0, [], [], []
    while running:
        found = results.get()
        if found is None:
            running -= 1
            continue
        tables, compared, moved, worst = (
            tables + 1,
            compared + found[0],
            moved + found[2],
            max(worst, found[3]),
        )
        for texts, kept in ((found[1], different), (found[4], too_far), (found[5], failures)):
            kept += texts
            for text in texts[: max(0, 5 - len(kept) + len(texts))]:
                print(text[:2000], flush=True)
        if time.monotonic() - shown > 20:
            shown = time.monotonic()
            print(
                f"{tables} tables, {compared} comparisons, {moved} neighbours, worst {worst:.3f}",
                flush=True,
            )
    if options.store:
        stored.figures(
            "engine_fuzz",
            about="privacy",
            title="Files of every odd shape",
            says="Statistics of made-up tables read from files and from memory, and of "
            "neighbouring files, exactly.",
            found={
                "tables": tables,
                "statistics compared with memory": compared,
                "of them, not the same whole numbers": (len(different), "0"),
                "neighbouring files compared": moved,
                "largest change over the sensitivity": (worst, "≤ 1"),
                "tables on which something raised": (len(failures), "0"),
            },
        )
    print(
        f"comparisons={compared} differences={len(different)} neighbours={moved} "
        f"worst_ratio={worst:.6g} failures={len(failures)}"
    )


if __name__ == "__main__":
    main()
