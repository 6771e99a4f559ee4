"""`dp.audit`: the largest ε, μ or ρ that is measured, beside the one that is claimed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from discreet import plain
from discreet.accounting.guarantees import GDP, MU_CEILING, ApproxDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.renyi.rdp import ZCDP
from discreet.asking.records import record_of
from discreet.audits import canaries, replay, reports
from discreet.audits import runs as guesses
from discreet.audits.canaries import Coins
from discreet.audits.cases import RELATIONS, Pair, drawn_pair, worst_pair
from discreet.audits.registry import ENTRIES, REASONS, Entry, procedure
from discreet.audits.results import AuditResult
from discreet.audits.transcripts import Step, log_ratio, statistic, transcript
from discreet.errors import InvalidParameter, shown
from discreet.estimators.basic import histogram
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.neighbors import Neighbors, Replace, require_neighbors
from discreet.schema import Boolean, Category
from discreet.specs.mechanisms.local import LocalSpec
from discreet.testing.seeded import seeded_session
from discreet.trusted.datasets import Dataset, from_frame
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.session import Session

USUAL_RUNS, FEWEST_RUNS = 20_000, 200
DRAWN = 8  # pairs that a replay starts from
TOGETHER = 64  # runs of one session
CANARY_LEVELS, CANARY_SHARE = 4096, 200
KINDS = (PureDP, ApproxDP, GDP, ZCDP)


@plain.called
def audit(
    target: Callable[..., Any],
    *,
    spend: PrivacyProfile | None = None,
    claim: PrivacyProfile | None = None,
    pair: tuple[Any, Any] | None = None,
    neighbors: Neighbors | None = None,
    method: str | None = None,
    runs: int | None = None,
    confidence: float = 0.95,
    seed: int = 1,
) -> AuditResult:
    """A measured lower bound of what a procedure tells about one row.

    target      a public function, asked of made-up rows (``dp.audit(dp.mean, spend=dp.GDP(3))``);
                what a device does (``client.RandomizedResponse(…)``); or any function of one value,
                which is called on both values of `pair`
    claim       what is claimed of it; of a public function it is its `spend`
    neighbors   of made-up rows, `dp.Replace()` by default
    method      "runs" guesses which of two neighbours was run on; "replay" repeats a procedure on a
                neighbour with recorded answers, and searches for the pair that moves it most;
                "canaries" flips a coin for each of thousands of rows of a release
    runs        that are guessed, 20 000 by default (a tenth as many more choose the rule)
    confidence  that the bound is not above the truth

    Validity. A lower bound at the confidence that was asked for; a procedure that passes may still
              leak (docs/theory/audits.md).
    Price.    None: made-up rows.
    Example.
            print(dp.audit(dp.count, method="replay", spend=dp.GDP(1), neighbors=dp.AddRemove()))
    See also. docs/how-to/audits.md, docs/tutorials/five-objections.md.
    """
    name = getattr(target, "__name__", type(target).__name__)
    level = _between(confidence, "confidence=", 0.5, 1)
    count = USUAL_RUNS if runs is None else plain.whole(runs, "runs=")
    if count < FEWEST_RUNS:
        raise InvalidParameter(
            "runs=",
            f"{count} is below {FEWEST_RUNS}",
            "so few say nothing",
            "pass 20_000, or leave it out",
        )
    seed = plain.whole(seed, "seed=")
    given: Any = pair
    pair = tuple(given) if type(given) is list else given
    if isinstance(target, LocalSpec):
        values = pair if type(pair) is tuple and len(pair) == 2 else _ends_of(target.column)
        return reports.audited(target, values, runs=count, level=level, seed=seed)
    if record_of(target) is None:
        return _of_a_function(target, claim or spend, pair, method, (name, count, level, seed))
    entry = _entry(name)
    if pair is not None or (spend is not None and claim is not None):
        raise InvalidParameter(
            "dp.audit",
            f"{'pair=' if pair is not None else 'spend= and claim='} of the public function {name}",
            "it is asked of made-up neighbours, and what is claimed of it is its spend",
            f"pass for example dp.audit(dp.{name}, spend=dp.GDP(1))",
        )
    spend = _claim(spend or claim or entry.spend)
    relation = Replace() if neighbors is None else require_neighbors(neighbors)
    if method is not None and method not in entry.methods:
        raise InvalidParameter(
            "method=",
            f"{shown(method)} says nothing about {name}",
            "methods differ in what they can look at",
            f"pass one of {', '.join(entry.methods)}",
        )
    if (method or entry.methods[0]) == "canaries":
        return _planted(name, spend, relation, (count, level, seed))
    if (method or entry.methods[0]) == "replay":
        return _searched(name, entry, spend, relation, seed)[1]
    return _run(name, entry, spend, relation, (count, level, seed))


def _of_a_function(
    target: Callable[..., Any],
    claim: PrivacyProfile | None,
    pair: tuple[Any, Any] | None,
    method: str | None,
    how: tuple[str, int, float, int],
) -> AuditResult:
    name, count, level, seed = how
    if not callable(target) or method not in (None, "runs"):
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
        lambda side, number: target(pair[side]),
        _claim(claim),
        name=name,
        runs=count,
        level=level,
        seed=seed,
    )


def _run(
    name: str,
    entry: Entry,
    spend: Any,
    neighbors: Neighbors,
    how: tuple[int, float, int],
) -> AuditResult:
    """Guesses by the likelihood ratio of the whole transcript, and by its numbers."""
    count, level, seed = how
    pair = worst_pair(entry.ends)
    if entry.methods[0] == "replay":  # what is worst for it is found by looking
        pair = _searched(name, entry, spend, neighbors, seed)[0]
    sides = pair.under(neighbors)
    readers = tuple(_session(side, spend, "reader") for side in sides)
    known: dict[Any, tuple[list[int], list[int]]] = {}
    fit = _fit(entry, spend)
    open_sessions: dict[tuple[int, int], Session] = {}

    def run(side: int, number: int) -> dict[str, float]:
        if not record_of(procedure(name)).question:  # type: ignore[union-attr]
            session = _session(sides[side], spend, f"{seed}/{number}/{side}")
            _ask(session, name, entry, spend, fit)
            return _features(transcript(session.ledger), readers, known)
        block = side, number // TOGETHER
        if block not in open_sessions:
            open_sessions.clear()
            for one in (0, 1):
                open_sessions[one, block[1]] = _session(
                    sides[one], spend, f"{seed}/{block[1]}/{one}", TOGETHER
                )
        result = _ask(open_sessions[block], name, entry, spend, fit, key=None)
        return _features([_step_of(result)], readers, known)

    return guesses.audited(run, spend, name=name, runs=count, level=level, seed=seed)


def _step_of(result: Any) -> Step:
    """What a result of one release was released from."""
    release = getattr(result, "result", result).release
    return Step(release.key, release.query, release.mechanism, release.integers)


def _features(
    steps: Sequence[Step],
    readers: tuple[Session, ...],
    known: dict[Any, tuple[list[int], list[int]]],
) -> dict[str, float]:
    """The log-likelihood ratio of additive answers, and all numbers of the others."""
    ratio, found = 0.0, {"answers": float(len(steps))}
    for number, step in enumerate(steps):
        if not step.additive:
            found |= {
                f"answer {number}, {place}": float(value)
                for place, value in enumerate(step.integers[:16])
            }
            continue
        if step.query not in known:
            first, second = (statistic(one, step) for one in readers)
            known[step.query] = first, second
        ratio += log_ratio(step, *known[step.query])
    return found | {"likelihood ratio": ratio}


def _searched(
    name: str, entry: Entry, spend: Any, neighbors: Neighbors, seed: int
) -> tuple[Pair, AuditResult]:
    fit = _fit(entry, spend)
    drawn = [drawn_pair(Stream(f"audit/{seed}/{number}")) for number in range(DRAWN)]
    return replay.searched(
        [worst_pair(entry.ends), worst_pair(), *drawn],
        lambda session: _ask(session, name, entry, spend, fit),
        neighbors,
        spend,
        name=name,
        how=replay.Search(lambda: Ledger.open(_roomy(spend)), seed, entry.search),
    )


def _fit(entry: Entry, spend: Any) -> Any:
    """The fit that an entry reads: public, and made on rows of its own."""
    if not entry.fit:
        return None
    made = worst_pair().under(Replace())[0]
    return _ask(_session(made, spend, "fit"), entry.fit, ENTRIES[entry.fit], spend, None)


def _ask(
    session: Session,
    name: str,
    entry: Entry,
    spend: Any,
    fit: Any,
    *,
    key: str | None = replay.KEY,
) -> Any:
    """The procedure of an entry, with a key where it takes one."""
    asked = entry.asked if fit is None else (fit,)
    keys = {"key": key} if entry.keyed else {}
    return procedure(name)(session, *asked, spend=spend, **entry.options, **keys)


def _session(data: Dataset, spend: Any, seed: str, times: int = 1) -> Session:
    return seeded_session(data, Ledger.open(_roomy(spend, times)), seed)


def _roomy(spend: Any, times: int = 1) -> Any:
    """A budget with room for so many spends, and for δ₀ that is set aside."""
    if isinstance(spend, GDP):
        return GDP(min(float(MU_CEILING), 2 * times * spend.mu))
    if isinstance(spend, ZCDP):
        return ZCDP(2 * times * spend.rho)
    if isinstance(spend, ApproxDP):
        return ApproxDP(2 * times * spend.epsilon, min(0.5, 4 * times * spend.delta))
    return PureDP(2 * times * spend.epsilon)


def _planted(
    name: str, spend: Any, neighbors: Neighbors, how: tuple[int, float, int]
) -> AuditResult:
    """A histogram with a coin for every level: whether its one row is there, or (Replace) in the
    level or in its neighbour.
    """
    runs_asked, level, seed = how
    levels = Category(range(CANARY_LEVELS))
    replaced = isinstance(neighbors, Replace)
    coins = CANARY_LEVELS // 2 if replaced else CANARY_LEVELS

    def score(inside: Coins, release: int) -> Array:
        planted = 2 * np.arange(coins) + ~inside if replaced else np.flatnonzero(inside)
        rows = {"level": planted.tolist()}
        data = from_frame(rows, schema={"level": levels}, neighbors=neighbors)
        answer = histogram(_session(data, spend, f"{seed}/{release}"), "level", spend=spend)
        noise: Any = answer.release.mechanism
        noisy = np.array(answer.release.integers[:CANARY_LEVELS], dtype=float) * float(noise.step)
        return np.asarray(noisy[0::2] - noisy[1::2] if replaced else noisy - 0.5)

    return canaries.audited(
        score,
        spend,
        name=name,
        coins=coins,
        releases=max(1, runs_asked // CANARY_SHARE),
        level=level,
        seed=seed,
    )


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


def relations() -> tuple[Neighbors, ...]:
    """The relations under which every procedure can be audited."""
    return tuple(RELATIONS.values())
