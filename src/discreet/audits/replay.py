"""The method of replay: run on D, then on D′ with the recorded answers.

Theorem.   A procedure that sees rows through releases alone asks on D′ the questions that it asked
           on D, if it is given the same answers. Each statistic may move no further than its
           declared sensitivity, and what the moves cost at the noise that was drawn adds up to no
           more than the debit.
Proof.     docs/theory/audits.md.
Checked.   tests/audits/test_audit.py::test_no_procedure_asks_or_moves_otherwise_on_a_neighbour

What is found is no matter of chance: another question, a statistic that moved too far, or a debit
that is too small refutes the claim. `lower` is what the moves cost along this transcript.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.guarantees import GDP, PureDP
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import amount_of, right_limit
from discreet.audits.bounds import least_amount
from discreet.audits.cases import Pair
from discreet.audits.outputs.likelihoods import LAWS
from discreet.audits.outputs.open_runs import Tape, listening
from discreet.audits.results import AuditResult
from discreet.audits.transcripts import (
    Noisy,
    Step,
    measured,
    moved,
    moved_twice,
    noisy_parts,
    rows_moved,
    statistic,
    transcript,
)
from discreet.errors import DiscreetError, LedgerRefused
from discreet.inference.simulation.streams import Stream
from discreet.neighbors import Neighbors
from discreet.sensitivity import L1, L2, Frobenius, LInf, Rows
from discreet.specs.statistics import Histogram
from discreet.testing.seeded import seeded_session
from discreet.trusted.datasets import Dataset
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import price_of
from discreet.trusted.session import Session

Ask = Callable[[Session], Any]
KEY = "audited"
COMPARED = ("vector", "matrix", "histogram")  # what statistics are looked at on both data sets


def audited(
    start: Sequence[Pair],
    ask: Ask,
    neighbors: Neighbors,
    claim: PrivacyProfile,
    *,
    name: str,
    how: Search,
) -> AuditResult:
    """The largest loss that is found on pairs of neighbours: those of `start`, and then changes of
    the best one so far.
    """
    return searched(start, ask, neighbors, claim, name=name, how=how)[1]


def searched(
    start: Sequence[Pair],
    ask: Ask,
    neighbors: Neighbors,
    claim: PrivacyProfile,
    *,
    name: str,
    how: Search,
) -> tuple[Pair, AuditResult]:
    """`audited`, with the pair on which the loss was largest."""
    best, worst, broken, notes = start[0], -1.0, dict[str, None](), dict[str, None]()
    for number in range(len(start) + how.steps):
        pair = start[number] if number < len(start) else best.changed(how.stream(number))
        sides = pair.under(neighbors, how.engine)
        found = _compared(sides, ask, how.ledger(), how.stream(number).seed)
        lower = _lower(claim, found.mu_squared, found.epsilon)
        if lower > worst:
            best, worst = pair, lower
        broken |= dict.fromkeys(found.broken)
        notes |= dict.fromkeys(found.notes)
    if worst > amount_of(claim) * (1 + 1e-9):
        broken[f"the moves cost {worst:.4g}, and {amount_of(claim):.4g} is claimed"] = None
    pairs = len(start) + how.steps
    return best, AuditResult(
        name,
        claim,
        worst,
        1.0,
        0.0 if broken else 1.0,
        "replay",
        pairs,
        (f"{pairs} pairs of neighbours, {neighbors}.", *notes),
        tuple(broken),
    )


@dataclass(frozen=True, slots=True)
class Search:
    """How pairs are tried: on which ledger, from which seed, how many after the first ones, where
    rows are.
    """

    ledger: Callable[[], Ledger]
    seed: int
    steps: int
    engine: str = "memory"

    def stream(self, number: int) -> Stream:
        return Stream(f"replay/{self.seed}/{number}")


@dataclass(frozen=True, slots=True)
class Found:
    """What one pair showed."""

    mu_squared: Fraction
    epsilon: Fraction
    broken: tuple[str, ...]
    notes: tuple[str, ...]


def _compared(pair: tuple[Dataset, Dataset], ask: Ask, account: Ledger, seed: int | str) -> Found:
    """A run on the first of two neighbours, and its repetition on the second."""
    sessions = [seeded_session(data, account, seed) for data in pair]
    with listening(Tape()) as tape:
        steps = transcript(account, ask(sessions[0]))
    runs = list(tape.runs())
    unpaid = _unpaid(
        [*(step.mechanism for step in steps), *(one.mechanism for one in runs)], account
    )
    broken, notes = _again(ask, sessions[1], account, tape), []
    mu_squared = epsilon = Fraction(0)
    for step in steps:
        if type(step.mechanism) not in LAWS:
            notes.append(f"{type(step.mechanism).__name__}: its questions alone were compared.")
        if step.mechanism.reads not in COMPARED or step.query is None:
            continue
        # random parts are put alike, from one seed on both sides
        readers = [seeded_session(data, account, f"{seed}/{step.key}") for data in pair]
        values = [statistic(reader, step.query) for reader in readers]
        broken += _too_far(step, *values)
        for part in noisy_parts(step.mechanism, step.integers, *values):
            more = measured(part)
            mu_squared, epsilon = mu_squared + more[0], epsilon + more[1]
    ratio = 0.0
    for run in runs:
        here, there = ([statistic(one, asked) for asked in run.queries()] for one in sessions)
        broken += run.overdrawn() + run.too_far(here, there)
        ratio += run.log_ratio(here, there)
        for noisy in run.noisy(here, there):
            more = measured(Noisy(*noisy))
            mu_squared, epsilon = mu_squared + more[0], epsilon + more[1]
    epsilon += Fraction(abs(ratio))  # of noise, an answer on either side tells as much
    return Found(mu_squared, epsilon, tuple(broken + unpaid), tuple(notes))


def _again(ask: Ask, session: Session, account: Ledger, tape: Tape) -> list[str]:
    """The same procedure on the neighbour, answered from the ledger and from the tape."""
    before = len(account.entries())
    try:
        with listening(Tape(tape.answers())) as repeated:
            ask(session)
    except LedgerRefused:
        return ["on the neighbour another question was asked under the same key"]
    except DiscreetError as error:
        return [f"on the neighbour it failed: {type(error).__name__}"]
    if repeated.opened != tape.opened or repeated.questions() != tape.questions():
        return ["on the neighbour an open run was asked something else"]
    asked = len(account.entries()) - before - len(repeated.opened)
    return [f"on the neighbour {asked} further entries were written"] if asked else []


def _too_far(step: Step, first: Any, second: Any) -> list[str]:
    """What moved further than its mechanism was calibrated to."""
    allowed, kind = step.mechanism.sensitivity, type(step.query).__name__
    if isinstance(first, Histogram):
        gone, come = rows_moved(first, second)
        within = _held(allowed, gone, come) if isinstance(allowed, Rows) else gone == come == 0
        return [] if within else [f"{kind}: {gone} values went, {come} came; {allowed} is declared"]
    length, squared, largest = moved(first, second)
    if isinstance(allowed, L1) and length > allowed.value:
        return [f"{kind} moved by {length}, and {allowed.value} is declared"]
    if isinstance(allowed, L2) and squared > allowed.squared:
        return [f"{kind} moved by √{squared}, and √{allowed.squared} is declared"]
    if isinstance(allowed, Frobenius):
        twice = squared + moved_twice(allowed.order, first, second)
        if twice > allowed.squared:
            return [f"{kind} moved by √{twice} (Frobenius), and √{allowed.squared} is declared"]
    if isinstance(allowed, LInf):
        ways = {a < b for a, b in zip(first, second, strict=True) if a != b}
        if largest > allowed.value or (allowed.one_way and len(ways) > 1):
            return [f"{kind} moved by {largest} in {len(ways)} directions, {allowed} is declared"]
    return []


def _held(allowed: Rows, gone: int, come: int) -> bool:
    """Whether values of a histogram came and went as declared."""
    if allowed.change == "added or removed":
        return min(gone, come) == 0 and gone + come <= allowed.rows
    return max(gone, come) <= allowed.rows and (allowed.change == "changed" or gone == come)


def _unpaid(mechanisms: Sequence[Any], account: Ledger) -> list[str]:
    """Whether the debits are less than the mechanisms cost."""
    price = price_of(tuple(mechanisms), box=account.box)
    spent = account.spent().exact()
    short = [
        coordinate
        for coordinate in ("mu_squared", "epsilon", "rho", "delta")
        if (getattr(price, coordinate, 0) or 0) > (getattr(spent, coordinate, 0) or 0)
    ]
    return [f"less was debited than the mechanisms cost ({', '.join(short)})"] if short else []


def _lower(claim: PrivacyProfile, mu_squared: Fraction, epsilon: Fraction) -> float:
    """The losses in the claim's own number: Gaussian ones by their μ, pure ones by their ε."""
    if isinstance(claim, PureDP):
        return float(epsilon) if not mu_squared else 0.0
    if isinstance(claim, GDP) and not epsilon:
        return math.sqrt(float(mu_squared))
    found = math.sqrt(float(mu_squared))
    share = right_limit(GDP(found)) if found > 1e-6 else 0.5
    return least_amount(claim, share)
