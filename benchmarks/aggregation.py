"""Friendly means in many dimensions, centres of clusters, functions on parts: errors, coverage,
overhead; and 10^5 random neighbours of the filter that all of it stands on.

    make bench NAME=aggregation [ARGS="--runs 40 --pairs 100000 --coverage 200 --store"]

friendly_d1000   error of dp.friendly_mean over all 1000 coordinates: 800 normal rows, μ = √2,
                 δ = 10^-8, ranges of ±10 000 in units of the standard deviation
plain_d1000      the same with refine=False, and what its theory says of it
known_d1000      that of a mean clipped about the known centre, by its formula
clusters_found   how often dp.friendly_clusters finds three centres to within a third of a
                 standard deviation: 20 000 rows in two columns, 200 parts, μ = 1
parts_overhead   seconds of processor time of a part beyond what its function takes by itself
pairs            neighbours of the filter, single points and tuples of centres; the worst of their
                 moves over its bound (1 is met, more would be a leak), and that of three controls
coverage         of 95 % intervals: medians and means of parts, two sizes, refined means
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import chi2

import discreet as dp
import stored
from discreet.testing import seeded_session

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.claims.friendly_pairs import figured, printed, random_pairs, seen, unseparated

from discreet.trusted.aggregation import part_outputs

SPEND = dp.GDP(math.sqrt(2))
FAILURE = 1e-8


def opened(columns: dict[str, Any], schema: dict[str, Any], seed: int) -> Any:
    data = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
    return seeded_session(data, budget=dp.ApproxDP(60, 1e-3), seed=seed)


def errors(size: int, rows: int, runs: int) -> dict[str, float]:
    """Mean errors, lengths over all coordinates, and the shares of coordinates that are covered."""
    names = [f"x{place}" for place in range(size)]
    schema = {name: dp.Real(-10_000, 10_000, missing=0.0) for name in names}
    radius = math.sqrt(2 * chi2.isf(0.01 / rows**2, size))
    found: dict[str, list[float]] = {"refined": [], "plain": [], "theory": [], "covered": []}
    for run in range(runs):
        random = np.random.default_rng(run)
        truth = random.normal(0, 1000, size)
        table = random.normal(size=(rows, size)) + truth
        session = opened({name: table[:, place] for place, name in enumerate(names)}, schema, run)
        refined = dp.friendly_mean(session, names, radius=radius, spend=SPEND, delta=FAILURE)
        plain = dp.friendly_mean(
            session, names, radius=radius, spend=SPEND, delta=FAILURE, refine=False
        )
        assert refined.found
        assert plain.found
        found["refined"].append(float(np.linalg.norm(refined.params - truth)))
        found["plain"].append(float(np.linalg.norm(plain.params - truth)))
        noise = plain.quantities()[0].privacy_variance
        found["theory"].append(math.sqrt(float(noise.sum()) + size / rows))
        ends = refined.confidence_interval()
        found["covered"].append(float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))))
    known = 2 * math.sqrt(chi2.isf(0.01 / rows, size)) / (rows * float(SPEND.mu)) * math.sqrt(size)
    return {name: float(np.mean(values)) for name, values in found.items()} | {
        "known": math.hypot(math.sqrt(size / rows), known)
    }


def clusters(runs: int) -> float:
    """How often all three centres are found."""
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    found = 0
    for run in range(runs):
        random = np.random.default_rng(run)
        table = centres[random.integers(0, 3, 20_000)] + random.normal(size=(20_000, 2))
        columns = {"x": table[:, 0], "y": table[:, 1]}
        schema = {"x": dp.Real(-50, 50, missing=0.0), "y": dp.Real(-50, 50, missing=0.0)}
        result = dp.friendly_clusters(
            opened(columns, schema, run),
            ["x", "y"],
            k=3,
            radius=0.9,
            parts=200,
            spend=dp.GDP(1),
            delta=FAILURE,
        )
        gaps = np.linalg.norm(result.centres[:, None] - centres, axis=2).min(axis=0)
        found += result.found and bool((gaps < 1 / 3).all())
    return found / runs


def used() -> float:
    """Processor time of this process and of the children that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def overhead(parts: int) -> float:
    """Seconds a part beyond the function's own."""
    values = np.random.default_rng(0).normal(size=100 * parts)
    session = opened({"x": values}, {"x": dp.Real(-9, 9, missing=0.0)}, 0)

    def ask(many: int) -> float:
        begun = used()
        dp.subsample(
            session, np.mean, columns="x", output=dp.Real(-1, 1), parts=many, spend=dp.GDP(1)
        )
        return used() - begun

    ask(4)
    least = min(ask(4) for _ in range(3))
    whole = ask(parts) - least
    begun = used()
    for part in np.array_split(values, parts):
        np.mean(part)
    return (whole - (used() - begun)) / (parts - 4)


def neighbours(pairs: int) -> tuple[float, float]:
    """The worst over pairs, and the least of what the controls show."""
    random = np.random.default_rng(1)
    worst = max(
        seen(random_pairs(random, share, centres)).most
        for centres, share in ((1, pairs // 2), (2, pairs // 4), (3, pairs // 4))
    )
    controls = (
        seen(random_pairs(random, 5000), weigh=printed).most,
        seen(random_pairs(random, 5000), weigh=figured).most,
        seen(random_pairs(random, 5000, 3), friends=unseparated).most,
    )
    print(f"neighbours: worst {worst:.3f} of the bounds; controls {controls}", flush=True)
    return worst, min(controls)


def slope(x: np.ndarray, z: np.ndarray, y: np.ndarray) -> float:
    """The logistic slope of x, by Newton's method."""
    rows = np.column_stack([np.ones(len(x)), x, z])
    beta = np.zeros(3)
    for _ in range(12):
        share = 1 / (1 + np.exp(-np.clip(rows @ beta, -30, 30)))
        bent = (rows * (share * (1 - share))[:, None]).T @ rows + 1e-6 * np.eye(3)
        beta = beta + np.clip(np.linalg.solve(bent, rows.T @ (y - share)), -2, 2)
    return float(beta[1])


WAYS: dict[str, dict[str, Any]] = {
    "median": {},
    "mean": {"aggregate": "mean"},
    "two sizes": {"aggregate": "mean", "bias": "two sizes"},
}


def together(works: Any, width: int) -> np.ndarray:
    """What `in_processes` gives for a function that never fails, without processes: for
    simulations of the law of its answers, which take hundreds of thousands of parts.
    """
    return np.array([work() for work in works]).reshape(len(works), width)


def coverage(runs: int, rows: int, parts: int) -> dict[str, tuple[float, float]]:
    """How often the interval holds the true slope 1, and its mean width, for each way."""
    part_outputs.in_processes = together
    hits: dict[str, list[bool]] = {way: [] for way in WAYS}
    widths: dict[str, list[float]] = {way: [] for way in WAYS}
    bounds = dp.Real(-9, 9, missing=0.0)
    for run in range(runs):
        random = np.random.default_rng(run)
        x, z = random.normal(size=(2, rows))
        y = random.random(rows) < 1 / (1 + np.exp(0.5 - x + z))
        columns = {"x": x, "z": z, "y": y}
        schema = {"x": bounds, "z": bounds, "y": dp.Boolean(missing=False)}
        session = opened(columns, schema, run)
        for way, options in WAYS.items():
            result = dp.subsample(
                session,
                slope,
                columns=["x", "z", "y"],
                output=dp.Real(-1, 3),
                parts=parts,
                spend=dp.GDP(1),
                **options,
            )
            low, high = result.confidence_interval()[0]
            hits[way].append(bool(low <= 1 <= high))
            widths[way].append(float(high - low))
    return {way: (float(np.mean(hits[way])), float(np.mean(widths[way]))) for way in WAYS}


def store(
    found: dict[str, float],
    share: float,
    extra: float,
    worst: float,
    caught: float,
    asked: argparse.Namespace,
) -> None:
    """The figures as a table."""
    known = found["known"]
    rows = [
        ("friendly mean, 1000 columns, over the error with the centre known",
         found["refined"] / known, "≤ 1.5"),
        ("the same without the refinement, over what its theory says",
         found["plain"] / found["theory"], "0.95 to 1.05"),
        ("coordinates held by 95 % intervals", found["covered"], "0.95"),
        ("runs in which three clusters are found", share, ""),
        ("milliseconds of processor time of a part, beyond its function", 1000 * extra, "≤ 30"),
        (f"{asked.pairs} neighbours of the filter: the worst move over its bound", worst, "≤ 1"),
        ("the same of the least of three positive controls", caught, "> 1"),
    ]  # fmt: skip
    stored.table(
        "aggregation",
        about="accuracy",
        title="Friendly means, clusters, functions on parts",
        says="800 rows of 1000 columns at μ = √2; 20 000 rows in three clusters, 200 parts, μ = 1.",
        columns=[
            stored.column("what"),
            stored.column("found", digits=3),
            stored.column("wanted"),
        ],
        rows=[{"what": what, "found": value, "wanted": wanted} for what, value, wanted in rows],
        notes=[f"{asked.runs} runs of the friendly means; clusters {max(asked.runs // 2, 1)}."],
    )


def store_coverage(held: dict[str, tuple[float, float]], runs: int) -> None:
    """Coverage of functions on parts as a table of its own."""
    stored.table(
        "aggregation_coverage",
        about="coverage",
        title="Intervals of a function on parts",
        says="A logistic slope on 100 parts of 20 000 rows, μ = 1: how often the interval holds "
        "the slope of the population.",
        columns=[
            stored.column("way", "aggregate"),
            stored.column("covers", "coverage", digits=3),
            stored.column("width", digits=3),
        ],
        rows=[
            {"way": way, "covers": stored.share(covered * runs, runs), "width": width}
            for way, (covered, width) in held.items()
        ],
        runs=runs,
        error="the standard error of a share of the runs",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--coverage", type=int, default=0, help="runs of 20 000 rows (hours: 1000)")
    stored.option(parser)
    asked = parser.parse_args()
    begun = time.process_time()
    worst, caught = neighbours(asked.pairs)
    for size, rows in ((10, 400), (1000, 800)):
        found = errors(size, rows, asked.runs)
        print(f"d={size}, n={rows}: {found}", flush=True)
    share, extra = clusters(max(asked.runs // 2, 1)), overhead(200)
    held_by: dict[str, tuple[float, float]] = {}
    if asked.coverage:
        for way, (held, width) in coverage(asked.coverage, 20_000, 100).items():
            error = math.sqrt(held * (1 - held) / asked.coverage)
            held_by[way] = held, width
            print(f"{way}: covers {held:.3f} ± {error:.3f}, width {width:.3f}", flush=True)
    if asked.store:
        store(found, share, extra, worst, caught, asked)
    if asked.store and held_by:
        store_coverage(held_by, asked.coverage)
    print(f"seconds of processor time: {time.process_time() - begun:.0f}")
    print(
        f"friendly_d1000={found['refined']:.2f} plain_d1000={found['plain']:.2f} "
        f"plain_theory={found['theory']:.2f} known_d1000={found['known']:.2f} "
        f"ratio={found['refined'] / found['known']:.2f} covered_d1000={found['covered']:.3f} "
        f"clusters_found={share:.2f} parts_overhead={extra:.4f} "
        f"pairs={asked.pairs} worst={worst:.3f} controls={caught:.2f}"
    )


if __name__ == "__main__":
    main()
