"""Procedures that are asked in a way of their own: open runs, and sessions that spend their budget
in several questions. Each gives what its caller sees that is in no ledger, as numbers by name.
"""

from __future__ import annotations

from typing import Any

from discreet.audits.outputs.open_runs import heard
from discreet.estimators.basic import count, mean, proportion
from discreet.estimators.quantiles import median
from discreet.estimators.selection import mode, watch
from discreet.models.holdout.opened import holdout
from discreet.trusted.session import Session

HALF = 12  # of the rows of a made-up data set (audits.cases)
SURPRISING = 0.2  # what a training mean lies off the held-out one


def watched(session: Session, *, spend: Any, key: str | None = None) -> dict[str, float]:
    """One threshold for three counts of the same people, one of them far below it."""
    run = heard(watch(session, HALF, spend=spend))
    wheres: tuple[Any, ...] = ({"flag": True}, {"flag": False}, {"x": (0.9, 1.0)})
    found = {}
    for number, where in enumerate(wheres):
        if not run.left:
            break
        found[f"answer {number}"] = float(run.above(where))
    return found | {"left": float(run.left)}


def held_out(session: Session, *, spend: Any, key: str | None = None) -> dict[str, float]:
    """Means of a column, a share and a function of a row, near their training values and far."""
    run = heard(holdout(session, threshold=SURPRISING / 2, answers=2, spend=spend))
    found: dict[str, float] = {}
    training = {"near": 0.5, "far": 0.5 - SURPRISING}
    for name, value in training.items():
        if not run.left:
            break
        answer = run.mean("full", training=value)
        found |= {f"answer {name}": float(answer.value), f"source {name}": _surprised(answer)}
    if run.left:
        answer = run.share({"flag": True}, training=0.5)
        found |= {"answer share": float(answer.value), "source share": _surprised(answer)}
    return found | {"left": float(run.left)}


def _surprised(answer: Any) -> float:
    return float(answer.source == "holdout")


def adaptive_session(session: Session, *, spend: Any, key: str | None = None) -> dict[str, float]:
    """A whole budget in four questions, of which each depends on the answers before it: which
    column, which rows, which share of the rest.
    """
    first, *rest = spend.split(4)
    share = proportion(session, "flag", spend=first, key=_key(key, "share"))
    column, other = ("x", "y") if share.estimate > 0.5 else ("y", "x")
    centre = mean(session, column, spend=rest[0], key=_key(key, "mean"))
    where = {"flag": True} if centre.estimate > 0.5 else {other: (0.75, 1.0)}
    many = count(session, where=where, spend=rest[1], key=_key(key, "count"))
    if many.estimate > HALF:
        mean(session, other, spend=rest[2], key=_key(key, "last"))
    else:
        count(session, where={other: (0.75, 1.0)}, spend=rest[2], key=_key(key, "last"))
    return {}


def long_session(session: Session, *, spend: Any, key: str | None = None) -> dict[str, float]:
    """Sixteen questions of all kinds out of one budget."""
    parts = spend.split(16)
    for number, part in enumerate(parts):
        name = _key(key, str(number))
        if number % 4 == 0:
            mean(session, "xy"[number // 4 % 2], spend=part, key=name)
        elif number % 4 == 1:
            count(session, where={"flag": number % 8 == 1}, spend=part, key=name)
        elif number % 4 == 2:
            median(session, "x", spend=part, key=name)
        else:
            mode(session, "level", spend=part, key=name)
    return {}


def _key(key: str | None, name: str) -> str | None:
    return None if key is None else f"{key} {name}"
