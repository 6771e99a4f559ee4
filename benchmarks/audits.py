"""Audits at full size: how near to their claims procedures are measured, and whether broken ones
are caught.

    make bench NAME=audits                         # the figures of the last line
    make bench NAME=audits ARGS="--all --store"    # every procedure: docs/audits.md
    make bench NAME=audits ARGS="--simulated"      # 10⁴ audits of known laws, by each method

Shares of the claim are 95 % lower bounds. `caught` is the share of positive controls that are
refuted at level 1e-9; `false_alarms` counts refuted procedures of ours, `unlisted` public names
without an entry or a reason.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

import discreet as dp
import stored
from discreet import client
from discreet.audits import canaries, procedures, runs
from discreet.audits.audit import relations
from discreet.audits.bounds import of_guesses
from discreet.audits.outputs.laws import Laws, least_of
from discreet.audits.registry import (
    DEVICE_REASONS,
    DEVICES,
    ENTRIES,
    REASONS,
    function_of,
)
from discreet.audits.results import AuditResult
from discreet.testing.faults import FAULTS
from discreet.testing.weakened import WEAKENED

AUDITS = 10_000
LEVEL = 0.95
PURE = 1 / (1 + math.exp(-1))
FIRST_PAIRS = 2  # that are drawn, beside the worst ones; searches are in the figures
FEW = 400  # runs of what can be audited by runs alone
QUICK = ("exact", "replay")


def timed(name: str, run: Callable[[], Any]) -> Any:
    began = time.process_time()
    found = run()
    print(f"{name}: {time.process_time() - began:.1f} CPU s\n{found}\n", flush=True)
    return found


def figures() -> dict[str, AuditResult]:
    """The audits of the last line."""
    robust: dict[str, Any] = {"spend": dp.GDP(3), "neighbors": dp.AddRemove()}
    response = client.RandomizedResponse(client.Category(["a", "b"]), epsilon=1)
    asked: dict[str, Callable[[], AuditResult]] = {
        "mean_gdp3": lambda: dp.audit(dp.mean, spend=dp.GDP(3)),
        "mean_pure2": lambda: dp.audit(dp.mean, spend=dp.PureDP(2)),
        "histogram_canaries": lambda: dp.audit(
            dp.histogram, spend=dp.PureDP(1), method="canaries", neighbors=dp.AddRemove()
        ),
        "local": lambda: dp.audit(response, runs=4_000_000),
        "session": lambda: dp.audit("session", spend=dp.GDP(3), runs=5000),
        "robust_replay": lambda: dp.audit(dp.robust, method="replay", **robust),
        "robust_runs": lambda: dp.audit(dp.robust, method="runs", runs=2000, **robust),
    }
    return {name: timed(name, run) for name, run in asked.items()}


def every_procedure(wanted: str) -> list[tuple[AuditResult, str, str]]:
    """Each entry under each of its relations, by its quickest method, in memory; replays from
    batches of rows as well.
    """
    found = []
    procedures.DRAWN = FIRST_PAIRS
    for name, entry in list(ENTRIES.items()):
        if wanted not in name:
            continue
        ENTRIES[name] = replace(entry, search=0)
        method = next((one for one in QUICK if one in entry.methods), "runs")
        count = FEW if method == "runs" else 500
        for neighbors in relations(entry):
            one = dp.audit(name, method=method, neighbors=neighbors, runs=count)
            print(_line(one, str(neighbors)), flush=True)
            found.append((one, str(neighbors), "memory"))
            if "replay" in entry.methods:
                one = dp.audit(name, method="replay", neighbors=neighbors, engine="stream")
                print(_line(one, f"{neighbors}, stream"), flush=True)
                found.append((one, str(neighbors), "stream"))
    for name, make in DEVICES.items():
        if wanted not in name:
            continue
        one = dp.audit(make(), method="exact", runs=100_000)
        print(_line(one, "one record"), flush=True)
        found.append((one, "one record", "device"))
    return found


def _line(one: AuditResult, where: str) -> str:
    told = "; ".join(one.broken)
    return f"{one.name:<22} {where:<42} {one.method:<7} {one.share:.3f} of {one.claim} {told}"


def store_every(found: list[tuple[AuditResult, str, str]]) -> None:
    """The table of docs/audits.md."""
    stored.table(
        "audits",
        about="privacy",
        title="Every procedure: what is claimed and what is measured",
        says="Lower bounds on what each procedure tells about one made-up row or unit. A small "
        "share says that this method saw little, not that little is told; none of it is a proof.",
        columns=[
            stored.column("procedure"),
            stored.column("neighbours"),
            stored.column("rows", "rows in"),
            stored.column("method"),
            stored.column("runs", "pairs, runs or draws"),
            stored.column("claim"),
            stored.column("lower", "lower bound", digits=3),
            stored.column("share", "share of the claim", digits=3, target="≤ 1"),
        ],
        rows=[
            {
                "procedure": one.name,
                "neighbours": neighbors,
                "rows": engine,
                "method": one.method,
                "runs": str(one.trials),
                "claim": str(one.claim),
                "lower": one.lower,
                "share": one.share,
            }
            for one, neighbors, engine in found
        ],
    )


def store_figures(shares: dict[str, AuditResult], told: list[tuple[str, float]]) -> None:
    """The first table of docs/audits.md."""
    rows = [
        {
            "figure": name,
            "method": one.method,
            "runs": str(one.trials),
            "claim": str(one.claim),
            "value": one.share,
        }
        for name, one in shares.items()
    ]
    rows += [
        {"figure": name, "method": "runs", "runs": "", "claim": "", "value": value}
        for name, value in told
    ]
    stored.table(
        "audits_figures",
        about="privacy",
        title="How near to their claims audits measure",
        says="Shares of the claim, as 95 % lower bounds (replay: along one transcript), and how "
        "many of the broken procedures were refuted at level 1e-9.",
        columns=[
            stored.column("figure"),
            stored.column("method"),
            stored.column("runs", "pairs or runs"),
            stored.column("claim"),
            stored.column("value", "share of the claim", digits=3),
        ],
        rows=rows,
    )


def controls() -> tuple[int, int]:
    """(caught, all) of the broken procedures."""
    makes = dict.fromkeys((*FAULTS, *(one for every in WEAKENED.values() for one in every)))
    caught = 0
    for make in makes:
        fault = make()
        one = dp.audit(fault.run, pair=fault.pair, claim=fault.claim, runs=fault.runs)
        caught += one.violated
        print(f"{fault.name:<42} p = {one.p_value:.2g} {'' if one.violated else 'MISSED'}")
    return caught, len(makes)


def simulated() -> None:
    """How often lower bounds exceed true claims, by each method: 10⁴ audits each."""
    draws, above = np.random.default_rng(1), dict.fromkeys(("exact", "canaries", "runs", "δ"), 0)
    for audit in range(AUDITS):
        epsilon, levels = float(draws.uniform(0.1, 6)), int(draws.integers(2, 12))
        kept, other = np.exp([epsilon, 0.0]) / (levels - 1 + math.exp(epsilon))
        sides = np.full((2, levels), other)
        sides[0, 0] = sides[1, 1] = kept
        above["exact"] += least_of(dp.PureDP(1), Laws(*sides)) > epsilon * (1 + 1e-9)

        def score(inside: Any, release: int, audit: int = audit) -> Any:
            kept = np.random.default_rng((audit, release)).random(len(inside)) < PURE
            return np.where(inside == kept, 1.0, -1.0)

        how: dict[str, Any] = {"name": "response", "level": LEVEL, "seed": audit}
        found = canaries.audited(score, dp.PureDP(1), coins=200, releases=2, **how)
        above["canaries"] += found.lower > 1
        place = iter(draws.random(2000))
        found = runs.audited(
            lambda side, number, place=place: float(side if next(place) < PURE else 1 - side),
            dp.PureDP(1),
            runs=400,
            **how,
        )
        above["runs"] += found.lower > 1
        failed = int(draws.binomial(400, 0.01))
        right = int(draws.binomial(400 - failed, PURE)) + failed
        above["δ"] += of_guesses(dp.ApproxDP(1, 0.01), right, 400, 400, LEVEL)[0] > 1
    for method, count in above.items():
        unlikely = stats.binom.sf(count - 1, AUDITS, 1 - LEVEL)
        print(f"{method}: above the truth in {count} of {AUDITS} (p = {unlikely:.2g})")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true", help="every procedure, by every relation")
    parser.add_argument("--simulated", action="store_true", help="10⁴ audits of known laws")
    parser.add_argument("--only", default="", help="entries whose name has this in it")
    stored.option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.simulated:
        simulated()
        return
    audited = {function_of(name) for name in ENTRIES}
    unlisted = set(dp.__all__) - audited - set(REASONS)
    unlisted |= set(client.__all__) - set(DEVICES) - set(DEVICE_REASONS)
    if options.all:
        every = every_procedure(options.only)
        alarms = sum(one.violated for one, *_ in every)
        if options.store:
            store_every(every)
        print(f"audited={len(every)} false_alarms={alarms} unlisted={len(unlisted)}")
        return
    shares = figures()
    alarms = sum(one.violated for one in shares.values())
    caught, faults = controls()
    told = [("caught", caught / faults), ("broken procedures", float(faults))]
    if options.store:
        store_figures(shares, told)
    print(
        *(f"{name}={one.share:.3f}" for name, one in shares.items()),
        f"caught={caught / faults:.2f}",
        f"false_alarms={alarms}",
        f"unlisted={len(unlisted)}",
    )


if __name__ == "__main__":
    main()
