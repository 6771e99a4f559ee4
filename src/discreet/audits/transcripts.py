"""Everything that a session released, and how much likelier it is on one data set than on another.

A ledger in memory keeps each question as it was asked and each answer as it was drawn: a session's
whole transcript, whatever the procedure shows of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.inference.results.laws import Array
from discreet.specs.mechanisms.additive import AdditiveNoise, GaussianNoise
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise, off_diagonal
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.trusted.engines.execution import execute
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.session import Session

ADDITIVE = (AdditiveNoise, SymmetricGaussianNoise)


@dataclass(frozen=True, slots=True)
class Step:
    """One question with its answer."""

    key: str
    query: Any
    mechanism: Any
    integers: tuple[int, ...]

    @property
    def additive(self) -> bool:
        """Whether the answer is a statistic plus noise of a known law."""
        return isinstance(self.mechanism, ADDITIVE)


def transcript(ledger: Ledger) -> list[Step]:
    """The answered questions of a ledger, in order."""
    asked: dict[str, Any] = {}
    steps = []
    for entry in ledger.entries():
        if entry.kind == "debit":
            asked[entry.key] = entry.request
        elif entry.kind == "answer" and "query" in asked.get(entry.key, {}):
            record, answer = asked[entry.key], json.loads(entry.body)
            steps.append(
                Step(
                    entry.key,
                    query_from_dict(record["query"]),
                    mechanism_from_dict(record["mechanism"]),
                    tuple(int(value) for value in answer.get("integers", ())),
                )
            )
    return steps


def statistic(session: Session, step: Step) -> list[int]:
    """The exact statistic of a step's question on a session's rows."""
    plan = step.query.plan()
    return list(step.query.assemble(execute(session._engine, plan, session._source, Session)))


def log_ratio(step: Step, first: list[int], second: list[int]) -> float:
    """ln P(answer | second) / P(answer | first) of additive noise, as a score: rounding to the
    grid is left out.
    """
    mechanism = step.mechanism
    noisy = np.array([float(value * mechanism.step) for value in step.integers])
    away, here = (noisy - np.array(values, dtype=float) for values in (first, second))
    spread = spreads(mechanism, len(noisy))
    if isinstance(mechanism, (GaussianNoise, SymmetricGaussianNoise)):
        return float(((away**2 - here**2) / (2 * spread**2)).sum())
    return float(((np.abs(away) - np.abs(here)) / spread).sum())


def spreads(mechanism: Any, size: int) -> Array:
    """σ, or the scale, of every number's noise."""
    found = np.full(size, float(mechanism.spread))
    if isinstance(mechanism, SymmetricGaussianNoise):
        off = np.array(off_diagonal(mechanism.order))
        found[: len(off)][off] = float(mechanism.off_spread)
    return found


def moved(first: list[int], second: list[int]) -> tuple[int, int, int]:
    """How far a statistic moved: ℓ₁, squared ℓ₂, ℓ∞."""
    gaps = [abs(a - b) for a, b in zip(first, second, strict=True)]
    return sum(gaps), sum(gap * gap for gap in gaps), max(gaps, default=0)


def measured(step: Step, first: list[int], second: list[int]) -> tuple[Fraction, Fraction]:
    """(μ², ε) that a step's noise shows of this move."""
    mechanism = step.mechanism
    if isinstance(mechanism, GaussianNoise):
        return Fraction(moved(first, second)[1]) / mechanism.spread**2, Fraction(0)
    if isinstance(mechanism, SymmetricGaussianNoise):
        gaps = np.array([a - b for a, b in zip(first, second, strict=True)], dtype=float)
        return Fraction(float(((gaps / spreads(mechanism, len(gaps))) ** 2).sum())), Fraction(0)
    return Fraction(0), Fraction(moved(first, second)[0]) / mechanism.spread
