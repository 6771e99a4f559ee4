"""The method of enumeration: the laws of outputs on two neighbours, cell by cell.

Theorem.   `audits.outputs.laws`: what two laws over the same outputs ask of a claim. Outputs of
           several steps have the product of their laws, where the questions depend on no answer.
Proof.     docs/theory/audits.md.
Checked.   tests/audits/test_exact.py

The laws are those that specifications state (`audits.outputs.likelihoods`), at the statistics that
engines computed; the draws of the samplers that run are held against them, cell by cell, with exact
binomial tails. `lower` is no matter of chance, and `p_value` is that of the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr, bdtrc

from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import amount_of
from discreet.audits.cases import Pair
from discreet.audits.outputs.enumerated import (
    MOST_OUTPUTS,
    Answer,
    Part,
    parts_of,
    report_parts,
)
from discreet.audits.outputs.laws import Laws, least_of
from discreet.audits.outputs.open_runs import Tape, listening, walked
from discreet.audits.replay import Ask, Search
from discreet.audits.results import ALARM, AuditResult
from discreet.audits.transcripts import statistic, transcript
from discreet.errors import NoTheorem
from discreet.inference.results.laws import Array
from discreet.local.questions import guarantee
from discreet.neighbors import Neighbors
from discreet.specs.mechanisms.local import GaussianResponse, LaplaceResponse, OneBitResponse
from discreet.testing.seeded import SeededSource, seeded_reports, seeded_session
from discreet.trusted.datasets import Dataset
from discreet.trusted.extensions.local.values import code_of, place_of
from discreet.trusted.noise.samplers import apply

CERTAIN = Laws(np.ones(1), np.ones(1))
SLACK = 1e-9  # relative, more than floats lose
OTHER_SEEDS = 2  # runs whose questions must be the same ones
LISTED_VALUES = 16  # of a device's column, of which all pairs are compared
NOT_DECLARED = "not a declared level"
MEASURED = (OneBitResponse, LaplaceResponse, GaussianResponse)
TOGETHER = 1 << 18


@dataclass(frozen=True, slots=True)
class Drawn:
    """Parts of outputs that are drawn together: how, on either side, from a source of bits."""

    draw: Callable[[int, SeededSource], Answer]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The independent parts of the outputs on a pair, and how they are drawn."""

    steps: tuple[Drawn, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for step in self.steps for part in step.parts)

    @property
    def laws(self) -> Laws:
        found = CERTAIN
        for part in self.parts:
            found = found.times(part.laws)
        return found


def audited(
    start: Sequence[Pair],
    ask: Ask,
    neighbors: Neighbors,
    claim: PrivacyProfile,
    *,
    name: str,
    how: Search,
    draws: int,
) -> AuditResult:
    """The largest lower bound on pairs of neighbours: those of `start`, and then changes of the
    best one so far; and whether draws on that pair follow its laws.
    """
    best, pair, worst = None, start[0], -1.0
    for number in range(len(start) + how.steps):
        tried = start[number] if number < len(start) else pair.changed(how.stream(number))
        found = enumerated(tried.under(neighbors, how.engine), ask, how, name, first=number == 0)
        lower = least_of(claim, found.laws)
        if lower > worst:
            best, pair, worst = found, tried, lower
    assert best is not None
    cells = sum(len(part.laws.first) for part in best.parts)
    unlikely = _of_draws(best, draws, f"exact/{how.seed}")
    pairs = len(start) + how.steps
    notes = (
        f"{pairs} pairs of neighbours, {neighbors}; {cells} cells of outputs on the one that tells "
        "most.",
    )
    return _result(name, claim, worst, unlikely, draws, notes)


def enumerated(
    pair: tuple[Dataset, Dataset], ask: Ask, how: Search, name: str, *, first: bool = True
) -> Enumerated:
    """The laws of a procedure's outputs on two neighbours; on the `first` pair the questions are
    asked with other noise too.
    """
    asked, opened = [], 0
    for number in range(1 + OTHER_SEEDS * first):
        account = how.ledger()
        with listening(Tape()) as tape:
            result = ask(seeded_session(pair[0], account, f"exact/{how.seed}/{number}"))
        asked.append(transcript(account, result))
        opened += len(tape.opened)
    if opened:
        return _every_path(pair, ask, how, name)
    questions = [[(step.query, step.mechanism) for step in steps] for steps in asked]
    if any(other != questions[0] for other in questions[1:]):
        raise _too_many(name, "its questions depend on answers")
    sessions = [seeded_session(data, how.ledger(), 1) for data in pair]
    steps = []
    for step in asked[0]:
        values = tuple(statistic(session, step.query) for session in sessions)
        found = parts_of(step.mechanism, *values)
        if found is None:
            raise _too_many(name, f"{type(step.mechanism).__name__} has more outputs than that")
        steps.append(Drawn(_answers(step.mechanism, values), tuple(found)))
    return Enumerated(tuple(steps))


def _answers(mechanism: Any, values: tuple[Any, ...]) -> Callable[[int, SeededSource], Answer]:
    return lambda side, source: apply(mechanism, values[side], source).integers


def _every_path(pair: tuple[Dataset, Dataset], ask: Ask, how: Search, name: str) -> Enumerated:
    """The law of a procedure that asks one open threshold: that of its paths."""

    def listen(tape: Tape) -> None:
        account = how.ledger()
        with listening(tape):
            result = ask(seeded_session(pair[0], account, f"exact/{how.seed}"))
        if transcript(account, result):
            raise _too_many(name, "it releases more beside an open run")

    paths = walked(listen, MOST_OUTPUTS)
    if isinstance(paths, str):
        raise _too_many(name, paths)
    sessions = [seeded_session(data, how.ledger(), 1) for data in pair]
    scores = [
        {seen: statistic(session, query)[0] for seen, query in paths.asked.items()}
        for session in sessions
    ]
    places = {end: place for place, end in enumerate(paths.ends)}
    laws = Laws(*(np.array([paths.probability(end, one) for end in places]) for one in scores))
    part = Part(laws, lambda seen: places[seen])
    return Enumerated((Drawn(lambda side, source: paths.drawn(scores[side], source), (part,)),))


def _too_many(name: str, why: str) -> NoTheorem:
    return NoTheorem(
        f"an exact audit of {name}",
        why,
        "outputs are enumerated, one by one",
        'pass method="runs" or method="replay"',
    )


def _of_draws(found: Enumerated, draws: int, seed: str) -> float:
    """The probability of draws as far from their laws, over all cells; rounded up."""
    lowest, cells = 1.0, 0
    for number, step in enumerate(found.steps):
        for side in (0, 1):
            source = SeededSource(f"{seed}/{number}/{side}")
            answers = [step.draw(side, source) for _ in range(draws if step.parts else 0)]
            for part in step.parts:
                law = (part.laws.first, part.laws.second)[side]
                seen = np.bincount([part.cell(one) for one in answers], minlength=len(law))
                lowest, cells = min(lowest, _rarest(seen, law)), cells + len(law)
    return min(1.0, lowest * cells)


def _rarest(seen: npt.NDArray[np.int64], law: Array) -> float:
    """The least two-sided tail of any cell's count."""
    draws, chances = int(seen.sum()), np.minimum(law, 1.0)
    few = bdtr(seen, draws, chances)
    many = np.where(seen > 0, bdtrc(np.maximum(seen - 1, 0), draws, chances), 1.0)
    return float(np.minimum(1.0, 2 * np.minimum(few, many)).min())


def of_reports(spec: Any, *, runs: int, seed: int) -> AuditResult:
    """A device's report: every pair of values of its column, or its ends where they are many."""
    claim, values = guarantee(spec), _values(spec.column)
    codes = [_code(spec, value) for value in values]
    best, worst = (0, 1), -1.0
    for one in range(len(codes)):
        for other in range(one):
            lower = least_of(claim, _joint(spec, (codes[other], codes[one])))
            if lower > worst:
                best, worst = (other, one), lower
    parts = report_parts(spec, (codes[best[0]], codes[best[1]]))
    lowest, cells = 1.0, 0
    for side in (0, 1):
        counts = [np.zeros(len(part.laws.first), dtype=np.int64) for part in parts]
        for first in range(0, runs, TOGETHER):
            size = min(TOGETHER, runs - first)
            held = [values[best[side]]] * size
            seen = seeded_reports(spec, held, f"exact/{seed}/{side}/{first}")
            for part, count in zip(parts, counts, strict=True):
                count += np.bincount(part.cells(seen), minlength=len(count))
        for part, count in zip(parts, counts, strict=True):
            law = (part.laws.first, part.laws.second)[side]
            lowest, cells = min(lowest, _rarest(count, law)), cells + len(law)
    pairs = len(codes) * (len(codes) - 1) // 2
    notes = (f"{pairs} pairs of values; {cells // 2} cells of reports on the one that tells most.",)
    return _result(type(spec).__name__, claim, worst, min(1.0, lowest * cells), runs, notes)


def _joint(spec: Any, codes: tuple[int, int]) -> Laws:
    found = CERTAIN
    for part in report_parts(spec, codes):
        found = found.times(part.laws)
    return found


def _values(column: Any) -> list[Any]:
    """The values of a column that are compared, one that is not declared among them."""
    levels = getattr(column, "levels", None)
    if levels is not None:
        return [*levels[:LISTED_VALUES], NOT_DECLARED]
    return [getattr(column, "low", False), getattr(column, "high", True)]


def _code(spec: Any, value: Any) -> int:
    """What a device makes of a value before it draws."""
    read = code_of if isinstance(spec, MEASURED) else place_of
    return int(read(spec.column, value))


def _result(
    name: str,
    claim: PrivacyProfile,
    lower: float,
    unlikely: float,
    draws: int,
    notes: tuple[str, ...],
) -> AuditResult:
    claimed, broken = amount_of(claim), []
    if lower > claimed * (1 + SLACK):
        broken.append(f"two laws ask for {lower:.6g}, and {claimed:.6g} is claimed")
    if unlikely <= ALARM:
        broken.append(f"{draws} draws do not follow the law that is stated (p = {unlikely:.2g})")
    return AuditResult(
        name,
        claim,
        lower,
        1.0,
        min(unlikely, 0.0 if broken else 1.0),
        "exact",
        draws,
        (*notes, f"{draws} draws on each side, held against the laws: p = {unlikely:.3g}."),
        tuple(broken),
    )
