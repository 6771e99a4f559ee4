"""Audits at full size: how near to their claims procedures are measured, and whether broken ones
are caught.

    make bench NAME=audits

Shares of the claim are 95 % lower bounds. `caught` is the share of positive controls that are
refuted at level 1e-9; `false_alarms` counts refuted procedures of ours, `unlisted` estimators
without an entry or a reason.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import discreet as dp
import stored
from discreet import client
from discreet.asking.records import RECORDS
from discreet.audits.audit import relations
from discreet.audits.registry import ENTRIES, REASONS, procedure
from discreet.testing.faults import FAULTS


def timed(name: str, run: Callable[[], Any]) -> Any:
    began = time.process_time()
    found = run()
    print(f"{name}: {time.process_time() - began:.1f} CPU s\n{found}\n", flush=True)
    return found


def main() -> None:
    asked = stored.wanted()
    warnings.simplefilter("ignore")
    found = {
        "mean_gdp3": timed("mean", lambda: dp.audit(dp.mean, spend=dp.GDP(3))),
        "mean_pure2": timed("mean", lambda: dp.audit(dp.mean, spend=dp.PureDP(2))),
        "histogram_canaries": timed(
            "histogram",
            lambda: dp.audit(
                dp.histogram, spend=dp.PureDP(1), method="canaries", neighbors=dp.AddRemove()
            ),
        ),
        "local": timed(
            "randomised response",
            lambda: dp.audit(
                client.RandomizedResponse(client.Category(["a", "b"]), epsilon=1), runs=4_000_000
            ),
        ),
        "robust_replay": timed(
            "robust",
            lambda: dp.audit(dp.robust, spend=dp.GDP(3), method="replay", neighbors=dp.AddRemove()),
        ),
        "robust_runs": timed(
            "robust",
            lambda: dp.audit(
                dp.robust, spend=dp.GDP(3), method="runs", runs=2000, neighbors=dp.AddRemove()
            ),
        ),
    }
    alarms = sum(one.violated for one in found.values())
    for name, entry in ENTRIES.items():
        if "replay" in entry.methods:
            for neighbors in relations() if entry.units else relations()[:2]:
                alarms += dp.audit(procedure(name), method="replay", neighbors=neighbors).violated
    caught = [
        dp.audit(fault.run, pair=fault.pair, claim=fault.claim).violated
        for fault in (make() for make in FAULTS)
    ]
    unlisted = {record.name for record in RECORDS} - set(ENTRIES) - set(REASONS)
    if asked:
        stored.figures(
            "audits",
            about="privacy",
            title="Audits",
            says="Measured lower bounds of what procedures tell, at 95 % confidence, as shares of "
            "their claims; and whether planted faults are caught at level 1e-9.",
            found={
                **{f"{name}, share of its claim": one.share for name, one in found.items()},
                "planted faults that are caught": (sum(caught) / len(caught), "1"),
                "procedures of ours that are refuted": (int(alarms), "0"),
                "estimators without an entry or a reason": (len(unlisted), "0"),
            },
        )
    print(
        *(f"{name}={one.share:.3f}" for name, one in found.items()),
        f"caught={sum(caught) / len(caught):.2f}",
        f"false_alarms={alarms}",
        f"unlisted={len(unlisted)}",
    )


if __name__ == "__main__":
    main()
