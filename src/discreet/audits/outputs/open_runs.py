"""Open runs that are audited: what they were asked, what they answered, and how likely that is.

No ledger knows what an open run answered. So procedures of the registry hand theirs to `heard`: on
the tape of an audit every question and answer is noted, or answered from a script in place of the
run.

Theorem.   Let a procedure see rows through answers alone, and let q_i be what it asks after the
           answers a_1 … a_{i−1}. The path a of an open threshold has on D the probability that
           AboveThreshold gives the answers a to the numbers q_i(D); where no more than a threshold
           is asked, these are the law of everything that the procedure shows.
Proof.     docs/theory/audits.md.
Checked.   tests/audits/test_open_runs.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from discreet.audits.outputs.likelihoods import log_likelihood
from discreet.errors import questions
from discreet.estimators.selection import Watch
from discreet.models.holdout.opened import Holdout
from discreet.sensitivity import LInf
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.trusted.extensions.selection import ThresholdRun
from discreet.trusted.noise.source import Source

Path = tuple[int, ...]  # a 1 for a positive answer, else a 0
ROWS = "rows"  # what asks a holdout for its number of rows; all else asks a threshold
_NOTHING: Mapping[str, Any] = {"above": False, "answer": None, ROWS: 0}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of an open run: by which method, and what it answered."""

    run: int
    method: str
    query: Any
    answer: Any

    @property
    def question(self) -> tuple[int, str, Any]:
        return self.run, self.method, self.query

    @property
    def scored(self) -> bool:
        """Whether it was compared with the threshold."""
        return self.method != ROWS

    @property
    def positive(self) -> bool:
        return self.scored and self.answer is not None and self.answer is not False


class Tape:
    """All that open runs are asked while an audit listens. With a `script` no run is asked: its
    answers are given one after another, and after the last of them each that costs nothing.
    """

    def __init__(self, script: tuple[Any, ...] | None = None) -> None:
        self.script, self.asked = script, list[Asked]()
        self.opened: list[Any] = []  # the question of each run, which was debited

    def answers(self) -> tuple[Any, ...]:
        return tuple(one.answer for one in self.asked)

    def questions(self) -> list[tuple[int, str, Any]]:
        return [one.question for one in self.asked]

    def runs(self) -> Iterator[Opened]:
        for number, question in enumerate(self.opened):
            mine = tuple(one for one in self.asked if one.run == number)
            yield Opened(question.mechanism, question.query, mine)


_LISTENING: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextmanager
def listening(tape: Tape) -> Iterator[Tape]:
    """While it lasts, what `heard` is given is on this tape."""
    before = _LISTENING.set(tape)
    try:
        yield tape
    finally:
        _LISTENING.reset(before)


def heard(run: Any) -> Any:
    """A watch or a holdout on the tape of the audit that listens; the same one where none does."""
    tape = _LISTENING.get()
    if tape is None:
        return run
    kind: Callable[..., Any] = Watch if isinstance(run, Watch) else Holdout
    tape.opened.append(run._noisy.question)
    return kind(_Heard(run._noisy, tape, len(tape.opened) - 1), run._session)


class _Heard:
    """In place of the trusted run: passes its questions on, or answers them from the script."""

    def __init__(self, run: Any, tape: Tape, number: int) -> None:
        self._run, self._tape, self._number = run, tape, number
        self.question, self.secure = run.question, False

    @property
    def left(self) -> int:
        if self._tape.script is None:
            return int(self._run.left)
        above = getattr(self.question.mechanism, "above", self.question.mechanism)
        mine = (one for one in self._tape.asked if one.run == self._number)
        return int(above.positives) - sum(one.positive for one in mine)

    def above(self, query: Any) -> bool:
        return bool(self._told("above", query))

    def answer(self, query: Any) -> int | None:
        return self._told("answer", query)  # type: ignore[no-any-return]

    def rows(self) -> int:
        return int(self._told(ROWS, None))

    def _told(self, method: str, query: Any) -> Any:
        tape, place = self._tape, len(self._tape.asked)
        if tape.script is None:
            asked = getattr(self._run, method)
            given = asked() if method == ROWS else asked(query)
        elif place < len(tape.script):
            given = tape.script[place]
        elif method != ROWS and self.left <= 0:
            raise questions.watch_used_up()
        else:
            given = _NOTHING[method]
        tape.asked.append(Asked(self._number, method, query, given))
        return given


# ── what a run gave, on two data sets ─────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Opened:
    """An open run: its mechanism, the question that was debited, and what it was asked."""

    mechanism: Any
    query: Any
    asked: tuple[Asked, ...]

    @property
    def above(self) -> Any:
        return getattr(self.mechanism, "above", self.mechanism)

    def path(self) -> Path:
        return tuple(int(one.positive) for one in self.asked if one.scored)

    def overdrawn(self) -> list[str]:
        """Answers that were not paid for."""
        given, paid = sum(self.path()), self.above.positives
        if given <= paid:
            return []
        return [f"an open run gave {given} positive answers, and {paid} were paid for"]

    def too_far(self, first: list[list[int]], second: list[list[int]]) -> list[str]:
        """What moved further than the noises were calibrated to."""
        allowed: LInf = self.above.sensitivity
        moves = [
            [there - here for here, there in zip(*both, strict=True)]
            for both in zip(first, second, strict=True)
        ]
        scores = [move[0] for move, one in zip(moves, self.asked, strict=True) if one.scored]
        ways = {score > 0 for score in scores if score}
        largest = max((abs(number) for move in moves for number in move), default=0)
        if largest <= allowed.value and not (allowed.one_way and len(ways) > 1):
            return []
        kind = type(self.mechanism).__name__
        return [f"{kind} moved by {largest} in {len(ways)} directions, {allowed} is declared"]

    def log_ratio(self, first: list[list[int]], second: list[list[int]]) -> float:
        """ln P(path | second) / P(path | first): exact, for the path's law is."""
        kept = [place for place, one in enumerate(self.asked) if one.scored]
        path = self.path()
        if not path:
            return 0.0
        scores = ([side[place][0] for place in kept] for side in (first, second))
        logs = [log_likelihood(self.above, numbers, path) or 0.0 for numbers in scores]
        return logs[1] - logs[0]

    def noisy(
        self, first: list[list[int]], second: list[list[int]]
    ) -> list[tuple[Any, list[int], list[int]]]:
        """Each number that was answered with noise: its mechanism, and what it was on both."""
        found, counted = [], False
        for one, here, there in zip(self.asked, first, second, strict=True):
            if not isinstance(self.mechanism, Thresholdout):
                break
            if one.method == ROWS and not counted:  # drawn once, then repeated
                counted = True
                found.append((self.mechanism.count, here[2:], there[2:]))
            elif one.positive:
                found.append((self.mechanism.answer, here[1:2], there[1:2]))
        return found

    def queries(self) -> list[Any]:
        """What each question is a statistic of; the number of rows is that of the opening."""
        return [self.query if one.method == ROWS else one.query for one in self.asked]


# ── every path ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Paths:
    """All paths of a procedure that asks one open threshold: after which answers which question
    comes, and what is complete.
    """

    mechanism: Any
    asked: Mapping[Path, Any]
    ends: tuple[Path, ...]

    def probability(self, end: Path, scores: Mapping[Path, int]) -> float:
        """Of one complete path, given the number that is asked for after each beginning."""
        if not end:
            return 1.0
        numbers = [scores[end[:place]] for place in range(len(end))]
        found = log_likelihood(self.mechanism, numbers, end)
        return 0.0 if found is None else math.exp(found)

    def drawn(self, scores: Mapping[Path, int], source: Source) -> Path:
        """A path as the trusted run draws it."""
        run, seen = ThresholdRun(self.mechanism, source), Path()
        while seen in self.asked:
            seen = (*seen, int(run.above(scores[seen])))
        return seen


def walked(ask: Callable[[Tape], None], most: int) -> Paths | str:
    """Every path of a procedure, by asking it again with the beginnings of answers; or why not."""
    left: list[Path] = [()]
    asked, ends, mechanism = dict[Path, Any](), list[Path](), None
    while left:
        script = left.pop()
        tape = Tape(tuple(map(bool, script)))
        ask(tape)
        if len(tape.opened) != 1 or isinstance(tape.opened[0].mechanism, Thresholdout):
            return "one open threshold alone has few outputs"
        mechanism, path = tape.opened[0].mechanism, Path(map(int, tape.answers()))
        for place, one in enumerate(tape.asked):
            if asked.setdefault(path[:place], one.query) != one.query:
                return "after the same answers it asks something else"
        ends.append(path)
        if len(ends) > most:
            return "it has more paths than that"
        left += [(*path[:place], 1) for place in range(len(script), len(path))]
    return Paths(mechanism, asked, tuple(ends))
