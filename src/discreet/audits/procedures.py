"""Public procedures on made-up rows, by every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.accounting.guarantees import GDP, MU_CEILING, ApproxDP, PureDP
from discreet.accounting.renyi.rdp import ZCDP
from discreet.asking.records import record_of
from discreet.audits import canaries, exact, replay
from discreet.audits import runs as guesses
from discreet.audits.canaries import Coins
from discreet.audits.cases import Pair, drawn_pair, worst_pair
from discreet.audits.outputs.likelihoods import LAWS
from discreet.audits.registry import ENTRIES, Entry, procedure
from discreet.audits.results import AuditResult
from discreet.audits.transcripts import (
    RANDOM,
    Step,
    log_ratio,
    releases_of,
    statistic,
    transcript,
)
from discreet.estimators.basic import histogram
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream
from discreet.neighbors import Neighbors, Replace
from discreet.schema import Category
from discreet.testing.seeded import seeded_session
from discreet.trusted.datasets import Dataset, from_frame
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.session import Session

DRAWN = 8  # pairs that a search starts from
TOGETHER = 64  # runs of one session
READ, KNOWN = 16, 4096  # numbers that are looked at, statistics that are kept
CANARY_LEVELS, CANARY_SHARE = 4096, 200


@dataclass(frozen=True, slots=True)
class Procedure:
    """An entry, and how it is audited: what is spent, which relation, which engine, from which
    seed, how many runs.
    """

    name: str
    entry: Entry
    spend: Any
    neighbors: Neighbors
    engine: str
    runs: int
    level: float
    seed: int
    pair: Pair | None = None

    def audited(self, method: str) -> AuditResult:
        if method == "canaries":
            return _planted(self)
        if method == "replay":
            return self.replayed()[1]
        if method == "exact":
            return exact.audited(
                self.pairs(),
                self.ask(),
                self.neighbors,
                self.spend,
                name=self.name,
                how=self.search(),
                draws=self.runs,
            )
        return _run(self)

    def replayed(self) -> tuple[Pair, AuditResult]:
        return replay.searched(
            self.pairs(),
            self.ask(),
            self.neighbors,
            self.spend,
            name=self.name,
            how=self.search(),
        )

    def pairs(self) -> list[Pair]:
        """What a search starts from; one pair where one was given."""
        if self.pair is not None:
            return [self.pair]
        drawn = [drawn_pair(Stream(f"audit/{self.seed}/{number}")) for number in range(DRAWN)]
        return [worst_pair(self.entry.ends), worst_pair(), *drawn]

    def search(self) -> replay.Search:
        steps = 0 if self.pair is not None else self.entry.search
        return replay.Search(lambda: ledger(self.spend), self.seed, steps, self.engine)

    def ask(self) -> replay.Ask:
        """The procedure, of any session, with a key where it takes one."""
        fit = self.fit()
        return lambda session: asked(session, self.name, self.entry, self.spend, fit)

    def fit(self) -> Any:
        """The fit that an entry reads: public, and made on rows of its own."""
        if not self.entry.fit:
            return None
        made = worst_pair().under(Replace())[0]
        session = seeded_session(made, ledger(self.spend), "fit")
        return asked(session, self.entry.fit, ENTRIES[self.entry.fit], self.spend, None)


def asked(
    session: Session,
    name: str,
    entry: Entry,
    spend: Any,
    fit: Any,
    *,
    key: str | None = replay.KEY,
) -> Any:
    """What the procedure of an entry gives."""
    if entry.ask is not None:
        return entry.ask(session, spend=spend, key=key)
    given = entry.asked if fit is None else (fit,)
    keys = {"key": key} if entry.keyed else {}
    return procedure(name)(session, *given, spend=spend, **entry.options, **keys)


def ledger(spend: Any, times: int = 1) -> Ledger:
    """An account with room for so many spends, and for δ₀ that is set aside."""
    if isinstance(spend, GDP):
        return Ledger.open(GDP(min(float(MU_CEILING), 2 * times * spend.mu)))
    if isinstance(spend, ZCDP):
        return Ledger.open(ZCDP(2 * times * spend.rho))
    if isinstance(spend, ApproxDP):
        roomy = ApproxDP(2 * times * spend.epsilon, min(0.5, 4 * times * spend.delta))
        return Ledger.open(roomy)
    return Ledger.open(PureDP(2 * times * spend.epsilon))


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────


def _run(how: Procedure) -> AuditResult:
    """Guesses by the likelihood ratio of the whole transcript, and by its numbers."""
    entry, pair = how.entry, how.pair or worst_pair(how.entry.ends)
    if entry.methods[0] == "replay" and how.pair is None:  # what is worst is found by looking
        pair = how.replayed()[0]
    sides = pair.under(how.neighbors, how.engine)
    readers = tuple(seeded_session(side, ledger(how.spend), "reader") for side in sides)
    known: dict[Any, tuple[Any, ...]] = {}
    fit, open_sessions = how.fit(), dict[tuple[int, int], Session]()
    record = record_of(procedure(how.name))
    single = entry.ask is None and record is not None and bool(record.question) and entry.keyed

    def session_of(side: int, seed: str, times: int = 1) -> Session:
        return seeded_session(sides[side], ledger(how.spend, times), f"{how.seed}/{seed}/{side}")

    def run(side: int, number: int) -> dict[str, float]:
        if not single:
            session = session_of(side, str(number))
            seen = asked(session, how.name, entry, how.spend, fit)
            told = dict(seen) if isinstance(seen, Mapping) else {}
            return told | _features(transcript(session.ledger, seen), readers, known)
        block = side, number // TOGETHER
        if block not in open_sessions:
            open_sessions.clear()
            for one in (0, 1):
                open_sessions[one, block[1]] = session_of(one, f"block {block[1]}", TOGETHER)
        result = asked(open_sessions[block], how.name, entry, how.spend, fit, key=None)
        step = _step_of(result)
        if step is None:
            session = session_of(side, str(number))
            seen = asked(session, how.name, entry, how.spend, fit)
            return _features(transcript(session.ledger, seen), readers, known)
        return _features([step], readers, known)

    run(0, -1)  # what cannot be asked at all says so, and is no output
    return guesses.audited(
        run, how.spend, name=how.name, runs=how.runs, level=how.level, seed=how.seed
    )


def _step_of(result: Any) -> Step | None:
    """What a result of one release was released from; None for a result of several."""
    releases = releases_of(result)
    if len(releases) != 1:
        return None
    release = releases[0]
    return Step(release.key, release.query, release.mechanism, release.integers, release.found)


def _features(
    steps: Sequence[Step], readers: tuple[Session, ...], known: dict[Any, tuple[Any, ...]]
) -> dict[str, float]:
    """The log-likelihood ratio of all answers whose law is written out, and all numbers and names
    of the others.
    """
    ratio, found = 0.0, {"answers": float(len(steps))}
    for number, step in enumerate(steps):
        if type(step.mechanism) in LAWS and not isinstance(step.query, (*RANDOM, type(None))):
            if step.query not in known:
                if len(known) > KNOWN:
                    known.clear()
                known[step.query] = tuple(statistic(one, step.query) for one in readers)
            ratio += log_ratio(step, *known[step.query]) or 0.0
            continue
        for place, value in enumerate(step.integers[:READ]):
            found[f"answer {number}, {place}"] = float(value)
        found |= {f"answer {number} has {name}": 1.0 for name in step.found[:READ]}
    return found | {"likelihood ratio": ratio}


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────


def _planted(how: Procedure) -> AuditResult:
    """A histogram with a coin for every level: whether its one row is there, or (Replace) in the
    level or in its neighbour.
    """
    levels = Category(range(CANARY_LEVELS))
    replaced = isinstance(how.neighbors, Replace)
    coins = CANARY_LEVELS // 2 if replaced else CANARY_LEVELS

    def score(inside: Coins, release: int) -> Array:
        planted = 2 * np.arange(coins) + ~inside if replaced else np.flatnonzero(inside)
        data: Dataset = from_frame(
            {"level": planted.tolist()}, schema={"level": levels}, neighbors=how.neighbors
        )
        session = seeded_session(data, ledger(how.spend), f"{how.seed}/{release}")
        answer = histogram(session, "level", spend=how.spend)
        noise: Any = answer.release.mechanism
        noisy = np.array(answer.release.integers[:CANARY_LEVELS], dtype=float) * float(noise.step)
        return np.asarray(noisy[0::2] - noisy[1::2] if replaced else noisy - 0.5)

    return canaries.audited(
        score,
        how.spend,
        name=how.name,
        coins=coins,
        releases=max(1, how.runs // CANARY_SHARE),
        level=how.level,
        seed=how.seed,
    )
