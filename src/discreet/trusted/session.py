"""The one meeting point of data, budget and noise.

`Session.release` does four things in this order: debit (durable) → aggregate → draw and store the
answer (one transaction) → hand out the Release. Beside it only `open_threshold` sees private
statistics: debit → a run that answers with noise (extensions/noisy_threshold.py has its theorem).

Theorem.  Everything a session hands out satisfies its ledger's guarantee,
          for any adaptive choice of questions.
Proof.    A question's mechanism is calibrated to its query's sensitivity under the session's
          relation, which is computed again here (`_checked`); it satisfies the price that was
          debited (losses/pricing.py); the ledger is a filter, valid under full adaptivity
          (docs/theory/ledger.md); an answer is drawn once for a key and then repeated; all else
          that leaves is computed from public facts, from releases, or from the ledger.
Checked.  tests/claims/test_one_meeting_point.py, tests/claims/test_release_noise.py,
          tests/trusted/ledger/
"""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from fractions import Fraction
from typing import Any, NoReturn

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.accounting.statement import session_html
from discreet.errors import ReleaseFailed, SourceChanged, questions
from discreet.errors.questions import mismatched
from discreet.exact import rational
from discreet.neighbors import Neighbors, require_neighbors
from discreet.schema import Schema
from discreet.seclusion import Failed, Sealed, aside
from discreet.sensitivity import OneRow
from discreet.specs.mechanisms.mechanism import ends_over, fits_in_size
from discreet.trusted.engines.engine import Engine
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.rehearsal import Rehearsal
from discreet.trusted.later import later
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.requests import Debit, Reservation, asked_key, reservation_id
from discreet.trusted.losses.pricing import Price, guarantee_of, price_of, within_spend
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.source import SecureSource, Source
from discreet.trusted.release import (
    WATCH,
    PublicFacts,
    Question,
    Release,
    plain_question,
    plain_spend,
    stored_answer,
)


class Session:
    """An open account on a data set. Made by `Dataset.open`; public functions take it first.

    Nothing that its promise depends on can be assigned. `public` is a copy for callers to read:
    what is checked before a debit is the session's own (`_schema`, `_neighbors`), which equals what
    the engine reads rows by.

    Example.  print(dp.load_census().open(budget=dp.GDP(1)).remaining())
    See also. `dp.Dataset`, `dp.Ledger`; docs/how-to/budgets.md.
    """

    __slots__ = (
        "__weakref__",
        "_count",
        "_engine",
        "_ledger",
        "_neighbors",
        "_public",
        "_rehearsal",
        "_schema",
        "_secure",
        "_source",
    )
    sums_only = property(lambda self: hasattr(type(self._engine), "carried"))  # rows are elsewhere

    def __init__(
        self, engine: Engine, schema: Schema, neighbors: Neighbors, ledger: Ledger, source: Source
    ) -> None:
        schema = schema if type(schema) is Schema else Schema(schema)
        neighbors = require_neighbors(neighbors)
        if engine.schema != schema or engine.neighbors != neighbors:
            raise questions.another_engine()
        if type(ledger) is not Ledger:
            ledger = later("discreet.trusted.tree.node", "require_node")(ledger)
        self._engine, self._source, self._ledger = engine, source, ledger
        self._secure = type(source) is SecureSource  # whatever another source says of itself
        self._schema, self._neighbors = engine.schema, neighbors  # nobody else holds them
        rehearsal = Rehearsal(engine.schema, neighbors, getattr(engine, "require", None))
        self._rehearsal = engine.remembered.setdefault(Rehearsal, rehearsal)
        self._count = _public_count(engine)
        self._public = PublicFacts(schema, require_neighbors(neighbors), self._count)

    @property
    def ledger(self) -> Ledger:
        """The account that every answer is paid from."""
        return self._ledger

    @property
    def public(self) -> PublicFacts:
        """What is known without spending."""
        return self._public

    @plain.called
    def release(
        self, question: Question, *, key: str | None = None, reservation: Reservation | None = None
    ) -> Release:
        """Answer a question: debit, aggregate, draw, store, release.

        With a `key`, asking the same question again returns the stored answer; a question that was
        debited but not answered (a crash) is finished without a second debit; another question
        under the same key is refused, and so is one that `open_threshold` debits for.
        """
        question, guarantee, debit = self._paid(question, key, reservation)
        name, answer = debit.key, debit.answer
        if answer is None:
            statistic = self._aggregate(question, name)
            answer = self.ledger.store(name, lambda: self._draw(question, statistic))
        record = stored_answer(answer)
        if record is None:
            raise ReleaseFailed(name)
        query, mechanism = plain.twin((question.query, question.mechanism))  # what ran is not shown
        return Release(
            description=question.description,
            query=query,
            mechanism=mechanism,
            integers=tuple(record["integers"]),
            neighbors=require_neighbors(self._neighbors),
            spend=question.spend,
            guarantee=guarantee,
            public_count=self._count,
            key=name,
            entry=debit.number,
            entry_hash=debit.hash,
            secure=self._secure and record["secure"],
            delta=question.delta,
            found=tuple(record["found"]),
            filled=self._schema.filled_in(question.query.plan().columns),
        )

    def admit(
        self, question: Question, *, key: str, reservation: Reservation | None = None
    ) -> Debit:
        """The first step of `release` alone: checked and debited, durably, and no data is read;
        `release` under the same key, in any process with this ledger, finishes it and pays nothing.
        """
        return self._paid(question, key, reservation)[2]

    def _paid(
        self, question: Question, key: str | None, reservation: Reservation | None
    ) -> tuple[Question, Guarantee, Debit]:
        """The question as it will be run, what it satisfies, and its debit, which comes last."""
        question = self._checked(question)
        if question.description.estimator == WATCH:
            raise questions.watch_released()
        guarantee = guarantee_of(question.mechanism)
        name = fresh_key() if key is None else asked_key(key)
        # what was paid for can still be read, or finished
        if not self._engine.unchanged() and not self.ledger.holds(name):
            raise SourceChanged()
        held = None if reservation is None else reservation_id(reservation)
        return question, guarantee, self._debit(question, name, held)

    def open_threshold(self, question: Question) -> Any:
        """A noisy threshold that stays open: debit → run, and no data is read before it is asked.

        Its key is never a caller's, and its request says what it is, which `release` refuses: a
        second run under one key would have the price of one.
        """
        from discreet.trusted.extensions import noisy_threshold as extension

        question, name = extension.require_threshold(self._checked(question)), fresh_key()
        self._debit(question, name)
        return extension.opened(
            question,
            self._neighbors,
            self._source,
            lambda query: self._aggregate(replace(question, query=query), name),
            self._rehearsal.require,
        )

    def price(self, question: Question) -> Price:
        """What a question would cost in this session's ledger."""
        return self._price(plain_question(question))

    def _price(self, question: Question, reservation: str | None = None) -> Price:
        return price_of((question.mechanism,), box=self.ledger.box_in(reservation))

    @plain.called
    def remaining(self, delta: float | None = None) -> statement.Remaining:
        """What can still be spent: `epsilon` at `delta` (the budget's own, or 1e-6), `mu`, the
        greatest `spend`, and how many more like the last question; it prints as a sentence.
        """
        ledger = self.ledger
        return statement.remaining(ledger.budget, ledger.remaining(), ledger.entries(), delta)

    @plain.called
    def reserve(
        self, spend: Guarantee, *, delta: Fraction = Fraction(0), key: str | None = None
    ) -> Reservation:
        """Set budget aside for a procedure of several steps; closing it gives back the rest."""
        spend, delta = plain_spend(spend), rational(delta, "delta=")
        return self.ledger.reserve_spend(spend, delta, key=key)

    @plain.called
    def book(self, spend: Guarantee, *, note: str, key: str | None = None) -> Debit:
        """Debit what was given away elsewhere, by its guarantee; see procedures/booking.py."""
        from discreet.trusted.learning.procedures.booking import booked

        about = self._neighbors.to_dict(), self._engine.data_id()
        name = fresh_key() if key is None else asked_key(key)
        return booked(self.ledger, plain_spend(spend), note, name, about, self._secure)

    def _checked(self, question: Question) -> Question:
        """The question as it will be run: a copy of its own, refused before the debit where noise,
        statistic and spend do not belong together.

        Theorem.  What passes has noise of a proven law, calibrated to the query's sensitivity under
                  this session's relation, at no more than the spend.
        Proof.    Query and mechanism are of the types that the theorems are about, not subclasses
                  of them, and the whole question is built anew from what its parts write of
                  themselves (`plain_question`), so nothing inside it can be of another type or
                  change later; the sensitivity is computed here again, and a query that says that
                  every row counts has only keys that leave none out (`Rehearsal`).
        Checked.  tests/claims/test_plain_values.py, tests/reliability/test_hostile_objects.py
        """
        question = plain_question(question)
        query, mechanism = question.query, question.mechanism
        if mechanism.reads != query.gives:
            raise mismatched(
                f"its mechanism reads a {mechanism.reads}, and its query gives a {query.gives}"
            )
        if not fits_in_size(mechanism, query.size):
            raise mismatched("its mechanism reads a statistic of another size than its query gives")
        if not ends_over(mechanism, self.public.rows):
            raise mismatched("its mechanism is finer than a pass over so many rows can tell")
        self._rehearsal.require(query)
        proven = query.sensitivity(self._neighbors)
        if isinstance(proven, OneRow) and proven.rows not in (None, self.public.rows):
            raise mismatched("its query states another number of rows than is public")
        if mechanism.sensitivity not in (proven if isinstance(proven, tuple) else (proven,)):
            raise mismatched(
                "its mechanism is not calibrated to its query's sensitivity under "
                f"{self._neighbors}"
            )
        if not within_spend(mechanism, question.spend, question.delta):
            raise mismatched("its mechanism costs more than its spend")
        return question

    def _debit(self, question: Question, name: str, reservation: str | None = None) -> Debit:
        """The price of a checked question, debited under a name."""
        request = {
            **question.to_dict(),
            "neighbors": self._neighbors.to_dict(),
            "data": self._engine.data_id(),
        }
        return self.ledger.debit(
            key=name,
            request=request,
            price=self._price(question, reservation),
            reservation=reservation,
            secure=self._secure,
        )

    def _aggregate(self, question: Question, key: str) -> Sealed:
        """The exact statistic, sealed; nothing that the engine says or raises beside it is seen."""
        engine, query = self._engine, question.query
        statistic = aside(
            lambda: Sealed(query.assemble(execute(engine, query.plan(), self._source, Session)))
        )
        if isinstance(statistic, Failed):
            raise ReleaseFailed(key)
        return statistic

    def _draw(self, question: Question, statistic: Sealed) -> str:
        """The mechanism's answer, as JSON; a draw that fails is one too, and not drawn again."""
        answer = aside(lambda: apply(question.mechanism, statistic.take(), self._source))
        record: dict[str, Any] = {"failed": True}
        if not isinstance(answer, Failed):
            record = {"integers": [*map(str, answer.integers)], "found": [*answer.found]}
        return json.dumps({**record, "secure": self._secure})

    def __reduce__(self) -> NoReturn:
        raise questions.not_copied("session")

    def _repr_html_(self) -> str:
        return session_html(self.public.schema, f"Neighbours {self.public.neighbors}", self.ledger)

    def __repr__(self) -> str:
        return f"Session({', '.join(self.public.schema)}; {self.public.neighbors}; {self.ledger})"


def _public_count(engine: Engine) -> int | None:
    """The count that the relation makes public; reading it says nothing else."""
    count = aside(engine.public_count)
    if isinstance(count, Failed):
        raise SourceChanged() if not engine.unchanged() else questions.data_unreadable()
    return count


def fresh_key() -> str:
    """A name that no question has had."""
    return uuid.uuid4().hex
