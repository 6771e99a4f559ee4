"""`dp.audit`: the largest ε, μ or ρ that is measured, beside the one that is claimed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.renyi.rdp import ZCDP
from discreet.asking.records import record_of
from discreet.audits import exact, reports
from discreet.audits import runs as guesses
from discreet.audits.cases import ENGINES, RELATIONS
from discreet.audits.pairs import checked_pair
from discreet.audits.procedures import Procedure
from discreet.audits.registry import ENTRIES, REASONS, Entry
from discreet.audits.results import AuditResult
from discreet.errors import InvalidParameter, shown
from discreet.neighbors import Neighbors, Replace, require_neighbors
from discreet.schema import Boolean
from discreet.specs.mechanisms.local import LocalSpec

USUAL_RUNS, FEWEST_RUNS = 20_000, 200
KINDS = (PureDP, ApproxDP, GDP, ZCDP)


@plain.called
def audit(
    target: Callable[..., Any] | LocalSpec | str,
    *,
    spend: PrivacyProfile | None = None,
    claim: PrivacyProfile | None = None,
    pair: tuple[Any, Any] | None = None,
    neighbors: Neighbors | None = None,
    method: str | None = None,
    runs: int | None = None,
    confidence: float = 0.95,
    seed: int = 1,
    engine: str = "memory",
) -> AuditResult:
    """A measured lower bound of what a procedure tells about one row.

    target      a public function, asked of made-up rows (``dp.audit(dp.mean, spend=dp.GDP(3))``),
                or the name of a variant (``"ols newton"``, ``"session"``); what a device does
                (``client.RandomizedResponse(…)``); or any function of one value, which is called
                on both values of `pair`; with an ``invoke`` method, as OpenDP's, that is called
    claim       what is claimed of it; of a public function it is its `spend`
    pair        two values; of a public function, two tables (columns by name) whose columns are
                those of the made-up rows and which are neighbours under `neighbors`
    neighbors   of rows, `dp.Replace()` by default
    method      "exact" enumerates outputs where they are few; "runs" guesses which of two
                neighbours was run on; "replay" repeats a procedure on a neighbour with recorded
                answers, and searches for the pair that moves it most; "canaries" flips a coin for
                each of thousands of rows of a release
    runs        that are guessed, 20 000 by default (a tenth as many more choose the rule)
    confidence  that the bound is not above the truth
    engine      "memory", or "stream": rows come in batches, as files and databases give them

    Validity. A lower bound at the confidence that was asked for; a procedure that passes may still
              leak (docs/theory/audits.md).
    Price.    None: made-up rows.
    Example.
            print(dp.audit(dp.count, method="replay", spend=dp.GDP(1), neighbors=dp.AddRemove()))
    See also. docs/how-to/audits.md, docs/tutorials/five-objections.md.
    """
    level = _between(confidence, "confidence=", 0.5, 1)
    count = _runs(runs)
    seed = plain.whole(seed, "seed=")
    given: Any = pair
    pair = tuple(given) if type(given) is list else given
    if isinstance(target, LocalSpec):
        return _of_a_device(target, pair, method, count, level, seed)
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if not isinstance(target, str) and record_of(target) is None:
        how = (name, count, level, seed)
        return _of_a_function(target, claim or spend, pair, method, how)
    entry = _entry(name)
    if spend is not None and claim is not None:
        raise InvalidParameter(
            "dp.audit",
            f"spend= and claim= of the public function {name}",
            "what is claimed of it is its spend",
            f"pass for example dp.audit(dp.{name}, spend=dp.GDP(1))",
        )
    relation = Replace() if neighbors is None else require_neighbors(neighbors)
    chosen = _method(name, entry, method)
    if engine not in ENGINES:
        raise InvalidParameter(
            "engine=",
            f"{shown(engine)} is no place for made-up rows",
            "rows are read by one of two engines",
            f"pass one of {', '.join(ENGINES)}",
        )
    rows = None if pair is None else checked_pair(pair, relation)
    return Procedure(
        name,
        entry,
        _claim(spend or claim or entry.spend),
        relation,
        engine,
        count,
        level,
        seed,
        rows,
    ).audited(chosen)


def _of_a_device(
    spec: LocalSpec, pair: Any, method: str | None, count: int, level: float, seed: int
) -> AuditResult:
    if method == "exact":
        return exact.of_reports(spec, runs=count, seed=seed)
    if method not in (None, "runs"):
        raise InvalidParameter(
            "method=",
            f"{shown(method)} says nothing about a report",
            "a device makes one report of one value: there is nothing to repeat",
            "pass runs or exact",
        )
    values = pair if type(pair) is tuple and len(pair) == 2 else _ends_of(spec.column)
    return reports.audited(spec, values, runs=count, level=level, seed=seed)


def _of_a_function(
    target: Callable[..., Any],
    claim: PrivacyProfile | None,
    pair: tuple[Any, Any] | None,
    method: str | None,
    how: tuple[str, int, float, int],
) -> AuditResult:
    name, count, level, seed = how
    invoke = getattr(target, "invoke", None)
    called = invoke if callable(invoke) else target
    if not callable(called) or method not in (None, "runs"):
        raise InvalidParameter(
            "dp.audit",
            f"{shown(target)} is no function that can be run",
            "what is audited is called on two values, again and again",
            "pass a function of one value, with pair=, claim= and method='runs'",
        )
    if type(pair) is not tuple or len(pair) != 2:
        raise InvalidParameter(
            "pair=",
            "it is not two values",
            "a claim is about neighbours, and only you know what they are for a function of yours",
            "pass for example pair=(0.0, 1.0), claim=dp.PureDP(1)",
        )
    return guesses.audited(
        lambda side, number: called(pair[side]),
        _claim(claim),
        name=name,
        runs=count,
        level=level,
        seed=seed,
    )


def _runs(runs: object) -> int:
    count = USUAL_RUNS if runs is None else plain.whole(runs, "runs=")
    if count < FEWEST_RUNS:
        raise InvalidParameter(
            "runs=",
            f"{count} is below {FEWEST_RUNS}",
            "so few say nothing",
            "pass 20_000, or leave it out",
        )
    return count


def _method(name: str, entry: Entry, method: str | None) -> str:
    if method is not None and method not in entry.methods:
        raise InvalidParameter(
            "method=",
            f"{shown(method)} says nothing about {name}",
            "methods differ in what they can look at",
            f"pass one of {', '.join(entry.methods)}",
        )
    return method or entry.methods[0]


def _ends_of(column: Any) -> tuple[Any, Any]:
    """Two values of a column that are as different as any."""
    listed = getattr(column, "levels", None)
    if listed is not None:
        return listed[0], listed[1]
    return (False, True) if isinstance(column, Boolean) else (column.low, column.high)


def _entry(name: str) -> Entry:
    if name in ENTRIES:
        return ENTRIES[name]
    raise InvalidParameter(
        "dp.audit",
        f"{name} has no audit: {REASONS.get(name, 'it releases nothing')}",
        "an audit needs rows, a neighbour and a score that say something about a procedure",
        f"audit one of {', '.join(sorted(ENTRIES))}, or a function of yours with pair= and claim=",
    )


def _claim(claim: object) -> Any:
    if type(claim) in KINDS:
        return claim
    raise InvalidParameter(
        "claim=",
        f"{shown(claim)} is no guarantee with one number",
        "a bound is measured in the number that is claimed: ε, μ or ρ",
        "pass for example dp.PureDP(1), dp.GDP(0.5) or dp.ApproxDP(1, 1e-6)",
    )


def _between(value: object, name: str, low: float, high: float) -> float:
    number = plain.number(value, name)
    if low < number < high:
        return number
    raise InvalidParameter(
        name,
        f"{number:g} is not between {low:g} and {high:g}",
        "it is the chance that a bound is not above the truth",
        "pass 0.95",
    )


def relations(entry: Entry | None = None) -> tuple[Neighbors, ...]:
    """The relations under which procedures can be audited, or one entry."""
    return tuple(RELATIONS[name] for name in (entry.relations if entry else RELATIONS))
