"""Are the posteriors of dp.posterior calibrated? Parameters from their prior, rows from the family,
the mechanisms that a session runs, and where the truth lies in each posterior.

    python benchmarks/bayes_calibration.py [--runs 4000] [--cases beta_n20 line] [--store]

For every case: the share of 95 % credible intervals that hold the truth (of the parameter whose
share is farthest from 0.95), and the p-value of χ² on 20 bins of P(θ < truth), the least over
parameters times their number; noise-aware and naive. The Monte-Carlo error of a share is 0.0034 at
4000 runs.

Last line: for every case NAME_covers=, NAME_p=, NAME_naive_covers=, NAME_naive_p=; accepted= and
rejected=, how many noise-aware posteriors have p > 1e-6 and coverage in 0.94 … 0.96, and how many
naive ones have p < 1e-6; cases=
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "inference" / "posteriors"))

from simulated import CASES, simulated

import stored

RUNS, LEAST_P = 4000, 1e-6


def words_of(case: Any) -> str:
    """A case as the table tells it."""
    private = "" if case.neighbors.row_count_is_public else ", their number private"
    return f"{type(case.family).__name__}, {case.rows} rows{private}, {case.spend}"


def store(rows: list[dict[str, Any]], runs: int) -> None:
    """The figures as a table."""
    stored.table(
        "bayes_calibration",
        about="coverage",
        title="Calibration of private posteriors",
        says="Parameters from their prior, rows from the family, the mechanisms that a session "
        "runs: how often a 95 % credible interval holds the truth, and χ² on 20 bins of ranks.",
        columns=[
            stored.column("case"),
            stored.column("covers", "noise-aware", digits=3, target="0.94 to 0.96"),
            stored.column("p", "p of ranks", digits=6, target="> 10⁻⁶"),
            stored.column("naive", "naive", digits=3),
            stored.column("naive_p", "p of ranks, naive", digits=6, target="< 10⁻⁶"),
        ],
        rows=rows,
        runs=runs,
        error="the standard error of a share of the runs",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=[case.name for case in CASES])
    stored.option(parser)
    given = parser.parse_args()
    told: list[str] = []
    rows: list[dict[str, Any]] = []
    accepted = rejected = 0
    print(f"{'case':22} {'covers':>7} {'p':>9} {'naive':>7} {'p':>9} {'ms a run':>9}")
    for case in CASES:
        if case.name not in given.cases:
            continue
        begun = time.process_time()
        ranks = simulated(case, given.runs, given.seed)
        each = 1000 * (time.process_time() - begun) / given.runs
        (covers, naive), (p, naive_p) = ranks.coverage(), ranks.p_values()
        accepted += p > LEAST_P and 0.94 <= covers <= 0.96
        rejected += naive_p < LEAST_P
        print(
            f"{case.name:22} {covers:7.4f} {p:9.2g} {naive:7.4f} {naive_p:9.2g} {each:9.1f}",
            flush=True,
        )
        rows.append(
            {
                "case": words_of(case),
                "covers": stored.share(covers * given.runs, given.runs),
                "p": p,
                "naive": stored.share(naive * given.runs, given.runs),
                "naive_p": naive_p,
            }
        )
        told += [
            f"{case.name}_covers={covers:.4f} {case.name}_p={p:.3g} "
            f"{case.name}_naive_covers={naive:.4f} {case.name}_naive_p={naive_p:.3g}"
        ]
    if given.store:
        store(rows, given.runs)
    print(*told, f"accepted={accepted} rejected={rejected} cases={len(told)}")


if __name__ == "__main__":
    main()
