"""Private medians and quantiles of a million values,
against numpy and against the medians of two peers.

    make bench NAME=quantiles [ARGS=rows]

Ours is the whole public path on a data set that nobody has read before: read, clamp and encode the
column, count it on its 2**16 grid, price, debit, draw exactly, store, release, 95 % intervals
(the smooth median has none). Data sets are made and sessions opened beforehand. The smooth median
includes the search for its best constants. All of it runs in this process, interleaved, and the
best of several repeats counts. Errors are against the sample median, at ε = 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dp
import stored

ROWS, REPEATS = 1_000_000, 9
LOW, HIGH = 0.0, 100.0
QUANTILES = [Fraction(percent, 100) for percent in range(1, 100)]
SPEND = dp.PureDP(1)


def fresh_session(values: np.ndarray) -> dp.Session:
    data = dp.from_arrays(
        {"x": values}, schema={"x": dp.Real(LOW, HIGH, missing=50)}, neighbors=dp.Replace()
    )
    return data.open(budget=dp.PureDP(100))


def our_median(session: dp.Session) -> float:
    result = dp.median(session, "x", spend=SPEND)
    result.confidence_interval(0.95)
    return float(result.estimate)


def our_smooth_median(session: dp.Session) -> float:
    return float(dp.median(session, "x", spend=SPEND, method="smooth").estimate)


def our_quantiles(session: dp.Session) -> object:
    return dp.quantiles(session, "x", QUANTILES, spend=SPEND).confidence_interval(0.95)


def opendp_median() -> Callable[[np.ndarray], float] | None:
    """OpenDP's exponential mechanism on 1001 fixed candidates; scale 2 is ε = 1 for one replaced
    row (a symmetric distance of 2).
    """
    try:
        import opendp.prelude as op
    except ImportError:
        return None
    op.enable_features("contrib")
    candidates = [LOW + (HIGH - LOW) * place / 1000 for place in range(1001)]
    domain = op.vector_domain(op.atom_domain(T=float, nan=False))

    def median(values: np.ndarray) -> float:
        private = op.m.make_private_quantile(
            domain, op.symmetric_distance(), op.max_divergence(), candidates, 0.5, 2.0
        )
        return float(private(values))

    return median


def diffprivlib_median() -> Callable[[np.ndarray], float] | None:
    try:
        from diffprivlib import tools
    except ImportError:
        return None
    return lambda values: float(tools.median(values, epsilon=1.0, bounds=(LOW, HIGH)))


def timed(work: Callable[[Any], object], argument: Any) -> tuple[float, object]:
    start = time.perf_counter()
    answer = work(argument)
    return time.perf_counter() - start, answer


def store(best: dict[str, float], errors: dict[str, list[float]], rows: int) -> None:
    """Milliseconds and errors, one line a way."""
    stored.table(
        "quantiles",
        about="speed",
        title="Medians and quantiles of many values",
        says=f"{rows:,} values; ours with intervals, on data that nobody has read before. Errors "
        "are against the sample median, at ε = 1.".replace(",", " ", 1),
        columns=[
            stored.column("way"),
            stored.column("time", "ms", digits=1),
            stored.column("error", "mean error"),
        ],
        rows=[
            {
                "way": name,
                "time": 1e3 * seconds,
                "error": float(np.mean(errors[name])) if name in errors else None,
            }
            for name, seconds in best.items()
        ],
    )


def main() -> None:
    asked = stored.wanted()
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    values = np.random.default_rng(20).normal(47.0, 10.0, rows)
    true = float(np.median(values))
    plain: dict[str, Callable[[Any], object]] = {"numpy.median": np.median, "numpy.sort": np.sort}
    ours: dict[str, Callable[[Any], object]] = {
        "median": our_median,
        "smooth median": our_smooth_median,
        "99 quantiles": our_quantiles,
    }
    peers = {
        name: found
        for name, found in (
            ("OpenDP 0.16 median", opendp_median()),
            ("diffprivlib 0.6.6 median", diffprivlib_median()),
        )
        if found
    }
    best: dict[str, float] = {}
    errors: dict[str, list[float]] = {}
    for repeat in range(REPEATS):
        for name, work in {**plain, **ours, **(peers if repeat < 3 else {})}.items():
            seconds, answer = timed(work, fresh_session(values) if name in ours else values)
            best[name] = min(best.get(name, float("inf")), seconds)
            if isinstance(answer, float):
                errors.setdefault(name, []).append(abs(answer - true))
    for name, seconds in best.items():
        error = f", mean error {np.mean(errors[name]):.2g}" if name in errors else ""
        print(
            f"{name}: {1e3 * seconds:.1f} ms ({seconds / best['numpy.median']:.2f} × "
            f"numpy.median){error}",
            flush=True,
        )
    if asked:
        store(best, errors, rows)
    print(
        f"median_vs_numpy={best['median'] / best['numpy.median']:.2f} "
        f"quantiles99_vs_median={best['99 quantiles'] / best['median']:.2f} "
        f"smooth_vs_sort={best['smooth median'] / best['numpy.sort']:.2f}"
    )


if __name__ == "__main__":
    main()
