"""Everything that a session released, and how much likelier it is on one data set than on another.

A ledger in memory keeps each question as it was asked and each answer as it was drawn: a session's
whole transcript, whatever the procedure shows of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.audits.outputs.likelihoods import log_likelihood, spreads
from discreet.errors import DiscreetError
from discreet.specs.aggregation.part_outputs import PartOutputs
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise, off_diagonal
from discreet.specs.queries.parts import PartRejections
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.specs.statistics import Histogram
from discreet.trusted.engines.execution import execute
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.noise.search import folded
from discreet.trusted.session import Session

RANDOM = (PartRejections, PartOutputs)  # statistics of random parts: another one at every reading
ADDITIVE = (AdditiveNoise, SymmetricGaussianNoise, CutTulapNoise)


@dataclass(frozen=True, slots=True)
class Step:
    """One question with its answer."""

    key: str
    query: Any
    mechanism: Any
    integers: tuple[int, ...]
    found: tuple[str, ...] = ()


def transcript(ledger: Ledger, result: Any = None) -> list[Step]:
    """The answered questions of a ledger, in order; a question that holds a function is taken from
    the `result` that it was asked for.
    """
    asked: dict[str, Any] = {}
    told = {one.key: one.query for one in releases_of(result)}
    steps = []
    for entry in ledger.entries():
        if entry.kind == "debit":
            asked[entry.key] = entry.request
        elif entry.kind == "answer" and "query" in asked.get(entry.key, {}):
            record, answer = asked[entry.key], json.loads(entry.body)
            steps.append(
                Step(
                    entry.key,
                    told[entry.key] if entry.key in told else _query(record["query"]),
                    mechanism_from_dict(record["mechanism"]),
                    tuple(int(value) for value in answer.get("integers", ())),
                    tuple(answer.get("found", ())),
                )
            )
    return steps


def releases_of(result: Any) -> list[Any]:
    """The releases that a result was made of."""
    inner = getattr(result, "result", result)
    several = getattr(inner, "releases", None)
    found = several if isinstance(several, (list, tuple)) else [getattr(inner, "release", None)]
    return [one for one in found if one is not None]


def _query(record: dict[str, Any]) -> Any:
    """A stored question; None where it holds a function, whose name alone is stored."""
    try:
        return query_from_dict(record)
    except DiscreetError:
        return None


def statistic(session: Session, query: Any) -> Any:
    """The exact statistic of a query on a session's rows: whole numbers, a histogram, or whatever
    a mechanism reads.
    """
    found = query.assemble(execute(session._engine, query.plan(), session._source, Session))
    return found if isinstance(found, Histogram) or not isinstance(found, Iterable) else [*found]


def log_ratio(step: Step, first: Any, second: Any) -> float | None:
    """ln P(answer | second) / P(answer | first); None where the mechanism's law is not written
    out, or what it reads is no statistic of these two.
    """
    values = [log_likelihood(step.mechanism, one, step.integers) for one in (second, first)]
    return None if values[0] is None or values[1] is None else values[0] - values[1]


@dataclass(frozen=True, slots=True)
class Noisy:
    """Numbers with noise of a known spread, and what they were without it on both data sets."""

    mechanism: Any
    first: list[int]
    second: list[int]


def noisy_parts(mechanism: Any, answer: tuple[int, ...], first: Any, second: Any) -> list[Noisy]:
    """What of an answer is a statistic plus noise: all of it, or each count that a search asked."""
    if isinstance(mechanism, ADDITIVE):
        return [Noisy(mechanism, first, second)]
    if isinstance(mechanism, CountSearch):
        both, found = mechanism.below + mechanism.above, []
        for place, share in zip(answer[0::3], answer[1::3], strict=False):
            counts = [
                [both * one.below(place) - mechanism.above * one.rows] for one in (first, second)
            ]
            found.append(Noisy(mechanism.noise(share), *counts))
        return found
    if isinstance(mechanism, InTurn):
        parts = zip(mechanism.stages, mechanism.split(answer), strict=False)
        return [one for stage, part in parts for one in noisy_parts(stage, part, first, second)]
    if isinstance(mechanism, AboutCentre):
        folds = [folded(one, answer[1]) for one in (first, second)]
        return noisy_parts(mechanism.distances, answer[1 + answer[0] :], *folds)
    return []


def moved(first: list[int], second: list[int]) -> tuple[int, int, int]:
    """How far a statistic moved: ℓ₁, squared ℓ₂, ℓ∞."""
    gaps = [abs(a - b) for a, b in zip(first, second, strict=True)]
    return sum(gaps), sum(gap * gap for gap in gaps), max(gaps, default=0)


def moved_twice(order: int, first: list[int], second: list[int]) -> int:
    """What entries off the diagonal of a matrix moved by, squared: they stand in it twice."""
    off = off_diagonal(order)
    gaps = [a - b for a, b, both in zip(first, second, off, strict=False) if both]
    return sum(gap * gap for gap in gaps)


def rows_moved(first: Histogram, second: Histogram) -> tuple[int, int]:
    """How many values are only in the first histogram, and how many only in the second."""
    counts = dict(zip(first.places.tolist(), first.counts.tolist(), strict=True))
    for place, count in zip(second.places.tolist(), second.counts.tolist(), strict=True):
        counts[place] = counts.get(place, 0) - count
    return sum(max(0, gap) for gap in counts.values()), sum(max(0, -gap) for gap in counts.values())


def measured(part: Noisy) -> tuple[Fraction, Fraction]:
    """(μ², ε) that noise shows of this move."""
    mechanism, first, second = part.mechanism, part.first, part.second
    if isinstance(mechanism, GaussianNoise):
        return Fraction(moved(first, second)[1]) / mechanism.spread**2, Fraction(0)
    if isinstance(mechanism, SymmetricGaussianNoise):
        gaps = np.array([a - b for a, b in zip(first, second, strict=True)], dtype=float)
        return Fraction(float(((gaps / spreads(mechanism, len(gaps))) ** 2).sum())), Fraction(0)
    spread = getattr(mechanism, "noise", mechanism).spread
    return Fraction(0), Fraction(moved(first, second)[0]) / spread
