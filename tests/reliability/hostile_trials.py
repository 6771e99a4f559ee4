"""Trials of hostile objects in calls, and what is wrong with their outcome."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from hostile_objects import hostile

import discreet as dp
from hostile import (
    SECRETS,
    Call,
    fresh_session,
)

# -- trials ----------------------------------------


@dataclass(frozen=True)
class Trial:
    """One hostile object for one parameter of one call."""

    call: Call
    parameter: str
    behaviour: str
    make: Callable[[], Any] = field(compare=False)


@dataclass
class Counts:
    """What was seen in all trials; everything but `objects` must stay 0."""

    objects: int = 0
    leaks: int = 0
    raw_errors: int = 0
    double_answers: int = 0
    overspent: int = 0
    refused: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        return self.leaks == self.raw_errors == self.double_answers == self.overspent == 0

    def line(self) -> str:
        names = ("objects", "leaks", "raw_errors", "double_answers", "overspent")
        return " ".join(f"{name}={getattr(self, name)}" for name in names)


def trials(calls: list[Call]) -> Iterator[Trial]:
    for call in calls:
        for name, value in call.arguments.items():
            for behaviour, make in hostile(value):
                yield Trial(call, name, behaviour, make)


def settled(outcome: Any) -> Any:
    """An outcome as nested tuples of exact built-in types; what is of another kind is `hostile`."""
    kind = type(outcome)
    if outcome is None or kind in (str, int, bool, float, Fraction, Decimal, bytes):
        return (kind.__name__, outcome if not (kind is float and math.isnan(outcome)) else "nan")
    if kind in (list, tuple):
        return tuple(settled(member) for member in outcome)
    if kind in (dict,):
        return tuple((settled(name), settled(held)) for name, held in outcome.items())
    if kind is np.ndarray:
        return settled(outcome.tolist())
    if hasattr(outcome, "releases") and not isinstance(outcome, type):
        return tuple(settled(one) for one in outcome.releases)
    if kind is dp.Release:
        left_out = ("entry_hash", "key", "query", "mechanism")
        return tuple(
            (one.name, settled(getattr(outcome, one.name)))
            for one in dataclasses.fields(outcome)
            if one.name not in left_out
        )
    if kind.__module__.startswith("discreet.") and dataclasses.is_dataclass(outcome):
        return (
            kind.__name__,
            *(
                (one.name, settled(getattr(outcome, one.name)))
                for one in dataclasses.fields(outcome)
                if one.repr
            ),
        )
    if isinstance(outcome, np.generic):
        return settled(outcome.item())
    return ("hostile", kind.__name__)


# the call itself is held: the number of a call that is gone is used again
_RIGHT: dict[int, tuple[Call, Any, Any]] = {}


def _right(call: Call) -> tuple[Any, Any]:
    """The outcome with plain values, and what it cost."""
    if id(call) not in _RIGHT:
        session = fresh_session(call.relation)
        outcome = settled(call.run(session, dict(call.arguments)))
        assert "hostile" not in str(outcome), call.name
        _RIGHT[id(call)] = call, outcome, session.ledger.spent()
    return _RIGHT[id(call)][1:]


def judge(trial: Trial, counts: Counts) -> None:
    """Run one trial and add what was wrong with it."""
    call, (right, price) = trial.call, _right(trial.call)
    session = fresh_session(call.relation)
    counts.objects += 1
    try:
        outcome = settled(call.run(session, {**call.arguments, trial.parameter: trial.make()}))
    except dp.DiscreetError as error:
        counts.refused += 1
        if any(secret in str(error) for secret in SECRETS):
            _note(counts, trial, "leaks", "a private value in an error")
        outcome = None
    except Exception as error:
        _note(counts, trial, "raw_errors", f"{type(error).__name__}: {str(error)[:120]}")
        return
    if outcome is not None and outcome != right:
        _note(counts, trial, "leaks", f"another outcome: {str(outcome)[:300]}")
    spent = session.ledger.spent()
    if outcome is not None and not price.fits(spent):
        _note(counts, trial, "leaks", "answered below its price")
    if not spent.fits(price) or not session.ledger.verify():
        _note(counts, trial, "overspent", f"{spent} instead of {price}")
    if call.asks and outcome is not None:
        try:
            again = settled(call.run(session, dict(call.arguments)))
        except dp.DiscreetError:  # the key is bound to another question
            again = None
        if again != outcome or session.ledger.spent() != spent:
            _note(
                counts,
                trial,
                "double_answers",
                "the same question under the same key was answered or charged anew",
            )


def _note(counts: Counts, trial: Trial, what: str, text: str) -> None:
    setattr(counts, what, getattr(counts, what) + 1)
    counts.notes.append(f"{what}: {trial.call.name}({trial.parameter}=…) {trial.behaviour}: {text}")


def some(calls: list[Call], stride: int) -> Iterator[Trial]:
    """One trial in `stride`, of every parameter of every call at least one."""
    place = 0
    for call in calls:
        for name, value in call.arguments.items():
            made = [Trial(call, name, behaviour, make) for behaviour, make in hostile(value)]
            chosen = made[place % stride :: stride] or made[:1]
            place += 1
            yield from chosen
