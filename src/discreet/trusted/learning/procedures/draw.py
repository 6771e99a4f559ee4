"""The best of a random number of hidden runs.

K is drawn first, from bits alone. Each run draws one trial and gets an account of its own; its
releases, its account and whatever it raises end with it. Only the best run's trial, score and text
are kept; the number of runs tells nothing of the data, and is not kept either.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial

from flint import arb, fmpq

from discreet import plain
from discreet.accounting.guarantees import GDP, PureDP
from discreet.enclosure import precision
from discreet.seclusion import Failed, aside
from discreet.specs.hidden_runs import OpenRuns
from discreet.specs.mechanisms.procedures import BestOf
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.noise.choice import GUARD_BITS, uniform_below
from discreet.trusted.noise.source import Source


def best_run(
    mechanism: BestOf, runs: OpenRuns, source: Source
) -> tuple[tuple[int, int], tuple[str]]:
    """Trial and score of the best of K runs, and its text; of equal scores the first.

    A run that fails has the worst score of all; where all fail, so does the draw. The first of
    equal ones is a uniform one of them, for the runs are exchangeable.
    """
    best: tuple[int, int, str] | None = None
    runs = replace(runs, engine=copy(runs.engine))
    runs.engine.remembered = {}  # what runs keep with the rows ends with them
    with plain.forgetting():
        for _ in range(number_of_runs(mechanism, source)):
            trial = uniform_below(runs.trials, source)
            outcome = aside(partial(_outcome, runs, trial, source))
            if not isinstance(outcome, Failed) and (best is None or outcome[1] > best[1]):
                best = outcome
    if best is None:
        raise RuntimeError("no run succeeded")
    return best[:2], best[2:]


def _outcome(runs: OpenRuns, trial: int, source: Source) -> tuple[int, int, str]:
    """One run on an account that nobody else sees."""
    base, engine = runs.base, runs.engine
    account = Ledger.open(GDP(base.mu) if base.mu else PureDP(base.epsilon))
    session = runs.session(engine, engine.schema, engine.neighbors, account, source)
    score, text = runs.run(session, trial)
    return trial, plain.whole(score, "score"), plain.text(text, "a run")


def number_of_runs(mechanism: BestOf, source: Source) -> int:
    """K, exactly with the law of the mechanism.

    Theorem.  Given ideal bits, P(K = k) is that of specs/mechanisms/procedures.py.
    Proof.    K is the first k with U ≤ P(K ≤ k), U uniform, decided in ball arithmetic for the
              whole interval of U that the bits so far leave; while it is open, more are drawn.
    Checked.  tests/claims/test_best_of.py::test_the_number_of_runs_follows_its_law
    """
    if mechanism.gamma == 1:
        return 1
    word, length, number = source.bits(64), 64, None
    while number is None:
        with precision(length + GUARD_BITS):
            number = _certain(mechanism, arb(word) / arb(2) ** length, arb(2) ** -length)
        word, length = (word << 64) | source.bits(64), length + 64
    return number


def _certain(mechanism: BestOf, low: arb, width: arb) -> int | None:
    """The K of every U from `low` to `low + width`; None where they differ, or may."""
    gamma, eta = (fmpq(*q.as_integer_ratio()) for q in (mechanism.gamma, mechanism.eta))
    powers = -arb(gamma).log() if not eta else (arb(gamma) ** -arb(eta) - 1) / arb(eta)
    mass, number = arb(1 - gamma) / powers, 1
    total = mass
    while total <= low:
        mass *= arb((1 - gamma) * (number + eta) / (number + 1))
        total, number = total + mass, number + 1
    return number if low + width <= total else None
