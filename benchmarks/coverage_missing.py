"""Coverage of 95 % intervals where cells are missing, of the complete cases' own target, and where
several rows are one unit's.

    python benchmarks/coverage_missing.py [--draws 400] [--quick] [--part missing|units]

Means, shares, tables (a level's share, a group's mean), medians and slopes, with 0, 5 and 40 % of
the cells missing, at random or depending on another column, under both relations and two spends,
through the public functions. The target is the population's value among those who hold a value.
Where nothing is missing, the mean width is divided by that of the same question on a column whose
`missing=` fills in, which is the interval of a public number of rows.

Units have 1 to 4 rows, of which 4 count, with an intra-unit correlation of 0, 0.3 and 0.9 and, in
half of the settings, 5 % of the cells missing. The mean width is divided by that of the clustered
interval without privacy on the same data, whose coverage stands beside.

The line before the last says how many cells and draws there were, how far the least coverage lies
from 0.94 in Monte-Carlo standard errors (and how far the least of so many cells lies where all
cover 0.95), the mean coverages, the least coverage of a cell of units and the largest width ratio
where nothing is missing, and the share of noise from which on a cell of units has "small noise".

Last line: worst_coverage= (over cells of the missing part), best_cluster_coverage= (the greatest
over cells of the units part), width_full= (the mean of the width ratios where nothing is missing),
width_cluster= (the largest ratio to the clustered interval, where noise is at most SMALL_NOISE of
the variance). A part that was not asked for shows nan.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

import discreet as dp
import stored
from discreet.testing import seeded_session

RATES = (0.0, 0.05, 0.4)
CORRELATIONS = (0.0, 0.3, 0.9)
UNITS, MOST_ROWS, UNIT_MU = 4000, 4, 2.0
NORMAL = 1.959964
SHARE, SLOPE = 0.3, 0.6
LEAST, NOMINAL = 0.94, 0.95
SMALL_NOISE = 0.1  # a cell of units with at most this share of noise has "small noise"


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


# how a question is asked, and which of its numbers is looked at
ASKS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "mean": (lambda session, spend: dp.mean(session, "x", spend=spend), 0),
    "share": (lambda session, spend: dp.proportion(session, "yes", spend=spend), 0),
    "table": (lambda session, spend: dp.table(session, by="level", spend=spend), 0),
    "group mean": (lambda session, spend: dp.table(session, "x", by="g", spend=spend), 1),
    "median": (lambda session, spend: dp.median(session, "x", spend=spend), 0),
    "slope": (lambda session, spend: dp.ols(session, "y ~ x", spend=spend), 1),
}


def asked(estimator: str, session: Any, spend: Any) -> tuple[float, float, float]:
    """The ends of an interval, and the share of its variance that is noise."""
    ask, place = ASKS[estimator]
    result = ask(session, spend)
    low, high = result.confidence_interval()[place]
    return low, high, float(np.ravel(result.noise_share)[place])


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
            low, high, _ = asked(setting.estimator, session, dp.GDP(setting.mu))
            (public if filled else widths).append(high - low)
            if not filled:
                covered += low <= targets[setting.estimator] <= high
    full = float(np.mean(public)) if public else float("nan")
    return setting.name, covered / draws, float(np.mean(widths)), full


# ── units ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class UnitSetting:
    """One question to units of 1 to 4 rows."""

    estimator: str
    correlation: float
    rate: float
    relation: str

    @property
    def name(self) -> str:
        return (
            f"{self.estimator:10} units={UNITS} correlation={self.correlation:g} "
            f"missing={self.rate:.0%} {self.relation:9} mu={UNIT_MU:g}"
        )


READS = {"mean": "x", "share": "yes", "table": "level", "group mean": "x g", "slope": "x y"}
UNIT_TARGETS = {"mean": 50.0, "share": SHARE, "table": SHARE, "group mean": 50.0, "slope": SLOPE}


def drawn_units(
    setting: UnitSetting, rng: np.random.Generator
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Columns, and the same without what is missing."""
    ids = np.repeat(np.arange(UNITS), rng.integers(1, MOST_ROWS + 1, UNITS))
    rows = len(ids)

    def alike() -> np.ndarray:
        own, shared = rng.standard_normal(rows), rng.standard_normal(UNITS)[ids]
        return np.sqrt(setting.correlation) * shared + np.sqrt(1 - setting.correlation) * own

    x = np.clip(50 + 12 * alike(), -40, 140)
    yes = alike() < -0.5244005  # the 30 % point
    y = np.clip(10 + SLOPE * x + 8 * alike(), -80, 150)
    gone = rng.random(rows) < setting.rate
    columns = {
        "id": ids,
        "x": np.where(gone, np.nan, x),
        "yes": np.where(gone, None, yes),
        "level": np.where(gone, None, np.where(yes, "a", "b")),
        "g": np.where(yes, "1", "0"),
        "y": y,
    }
    held = {"id": ids[~gone], "x": x[~gone], "yes": yes[~gone], "y": y[~gone]}
    return columns, held


def clustered(estimator: str, held: dict[str, Any]) -> tuple[float, float]:
    """(estimate, half-width) without privacy: the variance between units."""
    ids, x, y = held["id"], held["x"], held["y"]
    design = np.ones((len(ids), 1))
    response = held["yes"].astype(float) if estimator in ("share", "table") else x
    if estimator == "group mean":
        design = held["yes"].astype(float)[:, None]
    if estimator == "slope":
        design, response = np.column_stack([np.ones(len(ids)), x - 50]), y
    inverse = np.linalg.inv(design.T @ design)
    fitted = inverse @ (design.T @ response)
    rest = response - design @ fitted
    scores = np.stack([np.bincount(ids, column * rest, UNITS) for column in design.T])
    variance = inverse @ (scores @ scores.T) @ inverse
    return float(fitted[-1]), NORMAL * float(np.sqrt(variance[-1, -1]))


def unit_settings(*, quick: bool) -> list[UnitSetting]:
    return [
        UnitSetting(estimator, correlation, rate, relation)
        for estimator in UNIT_TARGETS
        for correlation in CORRELATIONS
        for rate in ((0.0,) if quick else (0.0, 0.05))
        for relation in ("Replace", "AddRemove")
    ]


def run_units(job: tuple[UnitSetting, int, int]) -> tuple[str, float, float, float, float]:
    """(name, coverage, the clustered interval's own coverage, the ratio of the mean widths, the
    mean share of noise).
    """
    setting, draws, seed = job
    kind = dp.Replace if setting.relation == "Replace" else dp.AddRemove
    relation = kind(unit="id", max_rows=MOST_ROWS)
    rng, target = np.random.default_rng([seed, 21]), UNIT_TARGETS[setting.estimator]
    schema = {name: schema_of(filled=False)[name] for name in READS[setting.estimator].split()}
    covered, plain, widths, usual, shares = 0, 0, [], [], []
    for draw in range(draws):
        columns, held = drawn_units(setting, rng)
        data = dp.from_arrays(columns, schema=schema, neighbors=relation)
        session = seeded_session(data, dp.GDP(UNIT_MU), f"units-{seed}-{draw}")
        low, high, share = asked(setting.estimator, session, dp.GDP(UNIT_MU))
        shares.append(share)
        estimate, half = clustered(setting.estimator, held)
        covered += low <= target <= high
        plain += abs(estimate - target) <= half
        widths.append(high - low)
        usual.append(2 * half)
    ratio = float(np.mean(widths) / np.mean(usual))
    return setting.name, covered / draws, plain / draws, ratio, float(np.mean(shares))


def kind_of(name: str) -> str:
    """What was asked, without its setting."""
    return name[:10].strip()


def store(
    found: list[tuple[str, float, float, float]],
    of_units: list[tuple[str, float, float, float, float]],
    draws: int,
) -> None:
    """The cells by estimator: complete cases, and rows of one unit."""
    cells: dict[str, list[tuple[float, float]]] = {}
    for name, coverage, width, full in found:
        cells.setdefault(kind_of(name), []).append((coverage, width / full))
    if cells:
        stored.table(
            "coverage_missing",
            about="coverage",
            title="Where cells are missing",
            says="Coverage of nominal 95 % intervals of the complete cases' own target, with 0, 5 "
            "and 40 % of the cells missing, at random or by another column, and the width where "
            "nothing is missing beside that of a public number of rows.",
            columns=[
                stored.column("asked"),
                stored.column("cells", "settings"),
                stored.column("middle", "median coverage", digits=3),
                stored.column("lowest", "lowest coverage", digits=3),
                stored.column("width", "mean width / public rows", digits=3),
            ],
            rows=[
                {
                    "asked": name,
                    "cells": len(every),
                    "middle": stored.share(
                        float(np.median([one for one, _ in every])) * draws, draws
                    ),
                    "lowest": stored.share(min(one for one, _ in every) * draws, draws),
                    "width": float(np.nanmean([ratio for _, ratio in every])),
                }
                for name, every in cells.items()
            ],
            runs=draws,
            error="the standard error of a share of the runs",
        )
    units: dict[str, list[tuple[float, float, float]]] = {}
    for name, coverage, plain, ratio, _ in of_units:
        units.setdefault(kind_of(name), []).append((coverage, plain, ratio))
    if units:
        stored.table(
            "coverage_units",
            about="coverage",
            title="Where several rows are one person's",
            says="Coverage of nominal 95 % intervals with 1 to 4 rows a unit, correlated by 0, 0.3 "
            "and 0.9, beside the clustered interval without privacy on the same data.",
            columns=[
                stored.column("asked"),
                stored.column("cells", "settings"),
                stored.column("middle", "median coverage", digits=3),
                stored.column("lowest", "lowest coverage", digits=3),
                stored.column("plain", "median of the clustered", digits=3),
                stored.column("width", "largest width / clustered", digits=3),
            ],
            rows=[
                {
                    "asked": name,
                    "cells": len(every),
                    "middle": stored.share(
                        float(np.median([one[0] for one in every])) * draws, draws
                    ),
                    "lowest": stored.share(min(one[0] for one in every) * draws, draws),
                    "plain": stored.share(
                        float(np.median([one[1] for one in every])) * draws, draws
                    ),
                    "width": max(one[2] for one in every),
                }
                for name, every in units.items()
            ],
            runs=draws,
            error="the standard error of a share of the runs",
        )


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--draws", type=int, default=400)
    reader.add_argument("--quick", action="store_true")
    reader.add_argument("--part", choices=("missing", "units"))
    stored.option(reader)
    asked_for = reader.parse_args()
    missing = [] if asked_for.part == "units" else settings(quick=asked_for.quick)
    units = [] if asked_for.part == "missing" else unit_settings(quick=asked_for.quick)
    jobs = [(one, asked_for.draws, place) for place, one in enumerate(missing)]
    unit_jobs = [(one, asked_for.draws, place) for place, one in enumerate(units)]
    began, found, of_units = time.perf_counter(), [], []
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
        for unit_row in pool.imap(run_units, unit_jobs):
            of_units.append(unit_row)
            name, coverage, plain, ratio, share = unit_row
            print(
                f"{len(of_units):3}/{len(unit_jobs)} {time.perf_counter() - began:5.0f}s {name} "
                f"coverage {coverage:.3f} (clustered {plain:.3f})  width/clustered {ratio:.3f}  "
                f"noise {share:.3f}",
                flush=True,
            )
    if asked_for.store:
        store(found, of_units, asked_for.draws)
    report(found, of_units, asked_for.draws)


def report(
    found: list[tuple[str, float, float, float]],
    of_units: list[tuple[str, float, float, float, float]],
    draws: int,
) -> None:
    """The two last lines."""
    error, none = (LEAST * (1 - LEAST) / draws) ** 0.5, float("nan")
    covered = [coverage for _, coverage, _, _ in found] or [none]
    ratios = [width / full for _, _, width, full in found if not np.isnan(full)] or [none]
    between = [coverage for _, coverage, *_ in of_units] or [none]
    quiet = [ratio for *_, ratio, share in of_units if share <= SMALL_NOISE]
    least = binom(draws, NOMINAL).ppf(1 - 0.5 ** (1 / max(len(found), 1))) / draws
    print(
        f"cells={len(found)} unit_cells={len(of_units)} draws={draws} "
        f"worst_z={(min(covered) - LEAST) / error:.2f} "
        f"least_of_cells_that_cover={least:.4f} mean_coverage={np.mean(covered):.4f} "
        f"mean_cluster_coverage={np.mean(between):.4f} worst_cluster_coverage={min(between):.4f} "
        f"width_full_worst={max(ratios):.4f} small_noise={SMALL_NOISE} quiet_cells={len(quiet)} "
        f"width_cluster_any={max((one[3] for one in of_units), default=none):.4f}"
    )
    print(
        f"worst_coverage={min(covered):.4f} best_cluster_coverage={max(between):.4f} "
        f"width_full={np.mean(ratios):.4f} width_cluster={max(quiet, default=none):.4f}"
    )


if __name__ == "__main__":
    main()
