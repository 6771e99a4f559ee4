"""``discreet audit``: audits of public procedures, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.audits.audit import audit
from discreet.audits.registry import ENTRIES
from discreet.audits.results import AuditResult
from discreet.cli.words import spend_of
from discreet.errors import DiscreetError, InvalidParameter, shown

QUICK = ("exact", "replay", "canaries")  # the methods of --all, what few runs say being little
FEW_RUNS = 400  # of what could be audited by runs alone


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
        return _all(spend, options, as_json=as_json)
    if name not in ENTRIES:
        raise InvalidParameter(
            "discreet audit",
            f"{shown(name)} is no procedure that is audited",
            "an audit needs rows, a neighbour and a score",
            f"write one of {', '.join(sorted(ENTRIES))}",
        )
    one = audit(name, spend=spend, **options)
    return [one.to_json() if as_json else str(one)], one.violated


def _all(spend: Any, options: Mapping[str, Any], *, as_json: bool) -> tuple[list[str], bool]:
    """A line for every entry, and whether one was refuted; one that cannot be asked with this
    spend says so.
    """
    texts, refuted = [], False
    for name, entry in ENTRIES.items():
        method = next((one for one in QUICK if one in entry.methods), "runs")
        runs = FEW_RUNS if method == "runs" else options["runs"]
        try:
            one = audit(name, spend=spend, **dict(options, method=method, runs=runs))
        except DiscreetError as refusal:
            if spend is None:
                raise
            texts.append(f"{name:<20} not asked with this spend: {str(refusal).splitlines()[0]}")
            continue
        texts.append(one.to_json() if as_json else _line(one))
        refuted |= one.violated
    return texts, refuted


def _line(one: AuditResult) -> str:
    verdict = f"  REFUTED: {'; '.join(one.broken) or f'p = {one.p_value:.2g}'}"
    share = f"{one.name:<20} at least {100 * one.share:5.1f} % of {one.claim}, by {one.method}"
    return share + (verdict if one.violated else "")
