"""Runs of whole procedures on hidden accounts, of which a mechanism makes as many as it draws and
answers with one.

The statistic is not a number but a trusted opener: each run gets a session on the same data with
an account of its own, in memory, whose budget is the guarantee of one run. Only a mechanism that
hides all runs but one may read it (specs/mechanisms/procedures.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import PrivateRuns, sensitivity_from_dict
from discreet.specs.queries.keys import Key

MOST_TRIALS = 1 << 10
LONGEST_TRIAL = 1 << 16
# of a session and the number of a trial: its score, and what is kept of it as text
Run = Callable[[Any, int], tuple[int, str]]


@dataclass(frozen=True, slots=True)
class RunsPlan:
    """What an engine gives is itself, and how to open an account on it."""

    @property
    def columns(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class OpenRuns:
    """What a mechanism reads: rows, the class of sessions, and the run of one trial of `trials`."""

    engine: Any
    session: Any
    base: PrivateRuns
    trials: int
    run: Run


@plain.kept(functions=("run",))
@dataclass(frozen=True, slots=True)
class HiddenRuns:
    """Runs of one of some trials, each drawn alike; `trials` and `score` say in words what is run.

    `run` is a procedure of this library on a session. It returns a score (the greater the better)
    and a text, and must keep nothing else.

    Theorem.  Under every relation one run, with its score, is private as `base` says.
    Proof.    Its session is opened on an account in memory whose budget is `base`. Whatever the
              procedure asks, adaptively, the account is a filter, so that everything the session
              gives satisfies `base` (docs/theory/ledger.md); trial, score and text are functions
              of that and of bits that do not depend on the data.
    Checked.  tests/claims/test_best_of.py
    """

    trials: tuple[str, ...]
    score: str
    base: PrivateRuns
    run: Run | None = field(default=None, compare=False, repr=False)
    kind: ClassVar[str] = "hidden runs"
    gives: ClassVar[str] = "runs"
    size: ClassVar[int] = 1
    keys: ClassVar[tuple[Key, ...]] = ()
    optional: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.trials) <= MOST_TRIALS or any(
            len(trial) > LONGEST_TRIAL for trial in self.trials
        ):
            raise InvalidParameter(
                "hidden runs",
                f"there are no 1 to {MOST_TRIALS} trials of ordinary length",
                "each run draws one of them",
                "pass a list of dp.trial(...)",
            )
        if type(self.base) is not PrivateRuns:
            raise InvalidParameter(
                "hidden runs",
                "the guarantee of one run is not stated",
                "a run's account is opened with it",
                "ask through dp.tune",
            )

    def sensitivity(self, neighbors: Neighbors) -> PrivateRuns:
        return self.base

    def plan(self) -> RunsPlan:
        return RunsPlan()

    def assemble(self, opener: tuple[Any, Any]) -> OpenRuns:
        if self.run is None:
            raise InvalidParameter(
                "hidden runs",
                "the procedure that they run is not here",
                "a stored question keeps the words of its trials, not the functions",
                "ask again through dp.tune",
            )
        return OpenRuns(*opener, self.base, len(self.trials), self.run)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "trials": list(self.trials),
            "score": self.score,
            "base": self.base.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> HiddenRuns:
        base = sensitivity_from_dict(record["base"])
        assert isinstance(base, PrivateRuns), "a run's guarantee"
        return cls(tuple(record["trials"]), record["score"], base)
