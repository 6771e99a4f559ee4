"""A noisy threshold that stays open: paid once, asked one count after another,
each chosen after the answers before it.

Theorem.  A watch of `positives` positives, whatever is asked of it and whatever else the session
          releases meanwhile, is private as its mechanism `AboveThreshold` says, and the one debit
          at its opening pays for it in the ledger's box.
Proof.    The proof of AboveThreshold conditions on the answers so far, so it holds for questions
          chosen adaptively. A watch is one interactive ε-DP mechanism (or several, one after
          another); each can be simulated by randomised response of ε, drawn at its opening, and a
          post-processing of it that answers questions (Vadhan and Wang 2021;
          docs/theory/selection.md gives the argument), so whatever is interleaved with it composes
          as if it had ended. The noisy threshold lives in this object alone: it is not written,
          printed, copied, pickled or used after a fork.
Checked.  tests/claims/test_selection.py::test_a_watch_has_the_law_of_its_mechanism,
          tests/estimators/test_select_and_watch.py
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from typing import Any, NoReturn

from discreet import plain
from discreet.errors import InvalidParameter, LedgerRefused
from discreet.seclusion import Failed, Sealed, aside
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.specs.queries.scores import CandidateScores
from discreet.trusted.noise.selection import ThresholdRun
from discreet.trusted.release import Question
from discreet.trusted.session import ReleaseFailed, Session, fresh_key


class NoisyThreshold:
    """An open run of AboveThreshold on a session's data."""

    __slots__ = ("_key", "_lock", "_process", "_question", "_run", "_session")

    def __init__(self, session: Session, question: Question) -> None:
        """Debits the question's price; reads no data."""
        question = session._checked(question)
        if type(question.mechanism) is not AboveThreshold:
            raise InvalidParameter(
                "a watch",
                "its mechanism is not AboveThreshold",
                "its price is that mechanism's",
                "open it with dp.watch",
            )
        # never a caller's: the same key again would be a second run at the price of one
        self._key = fresh_key()
        self._session, self._question, self._process, self._lock = (
            session,
            question,
            os.getpid(),
            threading.Lock(),
        )
        session.ledger.debit(
            key=self._key,
            request=session._request(question),
            price=session.price(question),
            secure=session._secure,
        )
        self._run = ThresholdRun(question.mechanism, session._source)

    @property
    def question(self) -> Question:
        """What was paid for: a copy, which is not what runs."""
        own = self._question
        description, mechanism, spend = (
            plain.rebuilt(own.description),
            plain.rebuilt(own.mechanism),
            plain.rebuilt(own.spend),
        )
        return replace(
            own,
            description=description,
            query=plain.rebuilt(own.query),
            mechanism=mechanism,
            spend=spend,
        )

    @property
    def left(self) -> int:
        """How many positive answers it can still give."""
        return self._run.left

    def above(self, query: CandidateScores) -> bool:
        """Whether a count plus noise reaches the noisy threshold."""
        if type(query) is not CandidateScores:
            raise InvalidParameter(
                "a watch",
                "this is not one count of rows",
                "its noise is calibrated to counts",
                "ask watch.above(where)",
            )
        # a copy of its own: what is checked is what runs
        query = CandidateScores.from_dict(json.loads(json.dumps(query.to_dict())))
        if (
            query.size != 1
            or not query.counts
            or query.sensitivity(self._session._neighbors) != self._question.mechanism.sensitivity
        ):
            raise InvalidParameter(
                "a watch",
                "this is not one count of rows",
                "its noise is calibrated to counts",
                "ask watch.above(where)",
            )
        if self._process != os.getpid():
            raise LedgerRefused(
                "a question to a watch",
                "this process is a fork of the one that opened it",
                "both would answer with the same noisy threshold, paid for once",
                "open a watch in this process",
            )
        with self._lock:
            if not self._run.left:
                raise LedgerRefused(
                    "a question to a watch",
                    "it has given all the positive answers that were paid for",
                    "each further answer would cost more privacy",
                    "open another one with dp.watch, or ask for more positives= from the start",
                )
            count = self._count(query)
            above = aside(lambda: self._run.above(count.take()))
        if isinstance(above, Failed):
            raise LedgerRefused(
                "a question to a watch",
                "the draw failed",
                "nothing was answered, and nothing more was charged",
                "open another watch with dp.watch",
            )
        return above

    def _count(self, query: CandidateScores) -> Sealed:
        """The exact count; a failure of the engine says nothing about the data and uses up nothing,
        for no noise was drawn.
        """
        try:
            scores = self._session._aggregate(replace(self._question, query=query), self._key)
            return Sealed(scores.take()[0])
        except ReleaseFailed:
            pass
        raise LedgerRefused(
            "a question to a watch",
            "the engine failed",
            "nothing was answered, and nothing more was charged",
            "look at the data source (is the file still there?), then ask again",
        )

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise LedgerRefused(
            "copying a watch",
            "it cannot be pickled or copied",
            "a copy would answer with the same noisy threshold, paid for once",
            "open another one with dp.watch",
        )

    def __repr__(self) -> str:
        return f"NoisyThreshold({self._run.left} positive answers left)"
