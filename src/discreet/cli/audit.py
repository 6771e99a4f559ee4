"""``discreet audit``: audits of public procedures, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.audits.audit import audit
from discreet.audits.registry import ENTRIES, procedure
from discreet.audits.results import AuditResult
from discreet.cli.words import spend_of
from discreet.errors import InvalidParameter, shown


def run_audits(
    name: str | None,
    spent: dict[str, float | None],
    *,
    bare: str | None,
    every: bool,
    as_json: bool,
    options: Mapping[str, Any],
) -> tuple[list[str], bool]:
    """The texts to print, and whether a claim was refuted."""
    named = bare is not None or any(value is not None for value in spent.values())
    spend = spend_of(spent, bare) if named else None
    if every == (name is not None):
        raise InvalidParameter(
            "discreet audit",
            "it names a procedure and --all, or neither",
            "one is audited, or all",
            "write discreet audit mean --mu 3, or discreet audit --all",
        )
    if every:
        found = [
            audit(procedure(one), spend=spend, **dict(options, method="replay"))
            for one, entry in ENTRIES.items()
            if "replay" in entry.methods
        ]
        return _texts(found, as_json=as_json, brief=True), any(one.violated for one in found)
    if name not in ENTRIES:
        raise InvalidParameter(
            "discreet audit",
            f"{shown(name)} is no procedure that is audited",
            "an audit needs rows, a neighbour and a score",
            f"write one of {', '.join(sorted(ENTRIES))}",
        )
    one = audit(procedure(name), spend=spend, **options)
    return _texts([one], as_json=as_json, brief=False), one.violated


def _texts(found: list[AuditResult], *, as_json: bool, brief: bool) -> list[str]:
    if as_json:
        return [one.to_json() for one in found]
    if not brief:
        return [str(one) for one in found]
    return [
        f"{one.name:<20} {100 * one.share:5.1f} % of {one.claim}"
        f"{'  REFUTED: ' + '; '.join(one.broken) if one.violated else ''}"
        for one in found
    ]
