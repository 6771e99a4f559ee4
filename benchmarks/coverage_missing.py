"""Coverage of 95 % intervals where cells are missing, of the complete cases' own target.

    python benchmarks/coverage_missing.py [--draws 400] [--quick]

Means, shares, tables (a level's share, a group's mean), medians and slopes, with 0, 5 and 40 % of
the cells missing, at random or depending on another column, under both relations and two spends,
through the public functions. The target is the population's value among those who hold a value.
Where nothing is missing, the mean width is divided by that of the same question on a column whose
`missing=` fills in, which is the interval of a public number of rows.

Last line: worst_coverage= (over cells), worst_z= (its distance from 0.94 in Monte-Carlo standard
errors, where it is below), width_full= (the mean of the width ratios), width_full_worst=.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dp
from discreet.testing import seeded_session

RATES = (0.0, 0.05, 0.4)
SHARE, SLOPE = 0.3, 0.6
LEAST = 0.94


@dataclass(frozen=True)
class Setting:
    """One question to data with so many rows and missing cells."""

    estimator: str
    rows: int
    rate: float
    depends: bool
    relation: str
    mu: float

    @property
    def name(self) -> str:
        how = "by g" if self.depends else "at random"
        return (
            f"{self.estimator:10} n={self.rows} missing={self.rate:.0%} {how:9} "
            f"{self.relation:9} mu={self.mu:g}"
        )


def drawn(setting: Setting, rng: np.random.Generator) -> tuple[dict[str, Any], dict[str, float]]:
    """Columns, and the true value of each estimator among those who hold a value."""
    n, rate = setting.rows, setting.rate
    g = rng.random(n) < 0.5
    # half as likely to be missing in one group, half as much again in the other
    lost = {True: 1.5 * rate, False: 0.5 * rate} if setting.depends else {True: rate, False: rate}
    kept = {group: 1 - lost[group] for group in lost}
    ours = kept[True] / (kept[True] + kept[False])  # the share of g among those who hold a value
    x = 40 + 20 * g + 12 * rng.standard_normal(n)
    yes = rng.random(n) < SHARE + 0.3 * g
    y = 10 + SLOPE * x + 8 * rng.standard_normal(n)
    gone = rng.random(n) < np.where(g, lost[True], lost[False])
    columns = {
        "x": np.where(gone, np.nan, np.clip(x, -40, 140)),
        "yes": np.where(gone, None, yes),
        "level": np.where(gone, None, np.where(yes, "a", "b")),
        "g": np.where(g, "1", "0"),
        "y": np.clip(y, -80, 150),
    }
    targets = {
        "mean": 40 + 20 * ours,
        "share": SHARE + 0.3 * ours,
        "table": SHARE + 0.3 * ours,
        "group mean": 60.0,
        "median": _mixture_median(ours),
        "slope": SLOPE,
    }
    return columns, targets


def _mixture_median(share: float) -> float:
    from scipy.optimize import brentq
    from scipy.stats import norm

    def excess(point: float) -> float:
        low, high = norm.cdf(point, 40, 12), norm.cdf(point, 60, 12)
        return float((1 - share) * low + share * high - 0.5)

    return float(brentq(excess, 20, 80))


def schema_of(*, filled: bool) -> dict[str, Any]:
    x, yes = (50.0, False) if filled else (None, None)
    level, y = ("a", 35.0) if filled else (None, None)
    return {
        "x": dp.Real(-40, 140, missing=x),
        "yes": dp.Boolean(missing=yes),
        "level": dp.Category(["a", "b"], missing=level),
        "g": dp.Category(["0", "1"], missing="0" if filled else None),
        "y": dp.Real(-80, 150, missing=y),
    }


ASKS: dict[str, Callable[[Any, Any], np.ndarray]] = {
    "mean": lambda session, spend: dp.mean(session, "x", spend=spend).confidence_interval()[0],
    "share": lambda session, spend: dp.proportion(
        session, "yes", spend=spend
    ).confidence_interval()[0],
    "table": lambda session, spend: dp.table(
        session, by="level", spend=spend
    ).confidence_interval()[0],
    "group mean": lambda session, spend: dp.table(
        session, "x", by="g", spend=spend
    ).confidence_interval()[1],
    "median": lambda session, spend: dp.median(session, "x", spend=spend).confidence_interval()[0],
    "slope": lambda session, spend: dp.ols(session, "y ~ x", spend=spend).confidence_interval()[1],
}


def settings(*, quick: bool) -> list[Setting]:
    spends = (0.5,) if quick else (0.25, 1.0)
    sizes = (500,) if quick else (500, 4000)
    return [
        Setting(estimator, rows, rate, depends, relation, mu)
        for estimator in ASKS
        for rows in sizes
        for rate in RATES
        for depends in ((False, True) if rate else (False,))
        for relation in ("Replace", "AddRemove")
        for mu in spends
        # below this a regression says "not resolvable" and its interval is nearly the whole line
        if estimator != "slope" or rows * mu >= 500
    ]


def run(job: tuple[Setting, int, int]) -> tuple[str, float, float, float]:
    """(name, coverage, mean width, mean width on filled columns or NaN)."""
    setting, draws, seed = job
    relation = dp.Replace() if setting.relation == "Replace" else dp.AddRemove()
    rng = np.random.default_rng([seed, 20])
    covered, widths, public = 0, [], []
    for draw in range(draws):
        columns, targets = drawn(setting, rng)
        for filled in (False, True) if setting.rate == 0 else (False,):
            data = dp.from_arrays(columns, schema=schema_of(filled=filled), neighbors=relation)
            session = seeded_session(data, dp.GDP(setting.mu), f"{seed}-{draw}-{filled}")
            low, high = ASKS[setting.estimator](session, dp.GDP(setting.mu))
            (public if filled else widths).append(high - low)
            if not filled:
                covered += low <= targets[setting.estimator] <= high
    full = float(np.mean(public)) if public else float("nan")
    return setting.name, covered / draws, float(np.mean(widths)), full


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--draws", type=int, default=400)
    reader.add_argument("--quick", action="store_true")
    asked = reader.parse_args()
    jobs = [(one, asked.draws, place) for place, one in enumerate(settings(quick=asked.quick))]
    began, found = time.perf_counter(), []
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for row in pool.imap(run, jobs):
            found.append(row)
            name, coverage, width, full = row
            ratio = "" if np.isnan(full) else f"  width/filled {width / full:.3f}"
            seconds = time.perf_counter() - began
            print(
                f"{len(found):3}/{len(jobs)} {seconds:5.0f}s {name} coverage {coverage:.3f}{ratio}",
                flush=True,
            )
    error = (LEAST * (1 - LEAST) / asked.draws) ** 0.5
    worst = min(coverage for _, coverage, _, _ in found)
    ratios = [width / full for _, _, width, full in found if not np.isnan(full)]
    print(
        f"worst_coverage={worst:.4f} worst_z={(worst - LEAST) / error:.2f} "
        f"width_full={np.mean(ratios):.4f} width_full_worst={max(ratios):.4f} "
        f"cells={len(found)} draws={asked.draws}"
    )


if __name__ == "__main__":
    main()
