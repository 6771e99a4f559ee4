"""The attacks at full size, against raw, sanitised and private releases.

    make bench NAME=attacks

`above_limit` counts the private releases whose guarantee cannot explain what was guessed, at level
1e-9; the attacks on exact numbers are the positive control.
"""

from __future__ import annotations

import time

import discreet as dp
import stored
from discreet.attacks import (
    AttackResult,
    FreshNoise,
    KAnonymous,
    Raw,
    Released,
    Rounded,
    Suppressed,
    averaging,
    differencing,
    linkage,
    membership,
    reconstruction,
    uniqueness,
)


def timed(name: str, result: AttackResult, began: float) -> AttackResult:
    print(f"{result}\n{name}: {time.process_time() - began:.1f} CPU s\n", flush=True)
    return result


def store(figures: dict[str, tuple[float, float | None]]) -> None:
    """What each attack found, beside the limit of a guarantee."""
    stored.table(
        "attacks",
        about="privacy",
        title="Attacks on made-up people",
        says="How often each attack was right (the average: how near it came), beside the limit "
        "that the guarantee sets to every attack.",
        columns=[
            stored.column("attack"),
            stored.column("found", "achieved", digits=3),
            stored.column("limit", "limit of the guarantee", digits=3),
        ],
        rows=[
            {"attack": name, "found": achieved, "limit": limit}
            for name, (achieved, limit) in figures.items()
        ],
    )


def main() -> None:
    asked = stored.wanted()
    mu, approx = Released(dp.GDP(1)), Released(dp.ApproxDP(1, 1e-6))
    began = time.process_time()
    halves = timed(
        "reconstruction",
        reconstruction(
            500,
            questions=2000,
            against=[Raw(), Rounded(10), Suppressed(5), FreshNoise(5), mu],
        ),
        began,
    )
    began = time.process_time()
    counts = timed("membership", membership(against=[Raw(), Rounded(10), FreshNoise(5)]), began)
    began = time.process_time()
    private = timed("private membership", membership(against=approx, releases=20), began)
    began = time.process_time()
    broad = timed(
        "differencing",
        differencing(targets=400, against=[Raw(), Suppressed(5), KAnonymous(20), mu]),
        began,
    )
    began = time.process_time()
    rows = timed(
        "linkage",
        linkage(2000, against=[Raw(), Rounded(30), Suppressed(20), KAnonymous(10), mu]),
        began,
    )
    began = time.process_time()
    average = timed("averaging", averaging(times=10, releases=1000, against=mu), began)
    began = time.process_time()
    timed("uniqueness", uniqueness(against=[Raw(), Rounded(365), KAnonymous(5)]), began)
    above = sum(len(one.beyond) for one in (halves, private, broad, rows))
    figures = {
        "reconstruct_raw": halves[Raw()].achieved,
        "reconstruct_rounded10": halves[Rounded(10)].achieved,
        "reconstruct_mu1": halves[mu].achieved,
        "limit_mu1": halves[mu].limit,
        "membership_raw": counts[Raw()].achieved,
        "membership_eps1": private[approx].achieved,
        "limit_eps1": private[approx].limit,
        "linkage": rows[Raw()].achieved,
        "averaging_floor": average[mu].achieved,
    }
    if asked:
        store(
            {
                "reconstruction, exact numbers": (halves[Raw()].achieved, None),
                "reconstruction, rounded to 10": (halves[Rounded(10)].achieved, None),
                "reconstruction, GDP(1)": (halves[mu].achieved, halves[mu].limit),
                "membership, exact numbers": (counts[Raw()].achieved, None),
                "membership, ε = 1": (private[approx].achieved, private[approx].limit),
                "differencing, exact numbers": (broad[Raw()].achieved, None),
                "differencing, GDP(1)": (broad[mu].achieved, broad[mu].limit),
                "linkage, exact numbers": (rows[Raw()].achieved, None),
                "linkage, GDP(1)": (rows[mu].achieved, rows[mu].limit),
            }
        )
    print(*(f"{name}={value:.3f}" for name, value in figures.items()), f"above_limit={above}")


if __name__ == "__main__":
    main()
