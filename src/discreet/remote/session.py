"""A session on data that somebody else holds.

It has the public facts, prices questions, reads releases and is debited like a session at hand, so
that every procedure of this library runs on it unchanged; what procedures use of a session is said
in `discreet.asking.sessions`. Rows never come near: a question travels as what it wrote of itself,
and the far side rebuilds it, checks it again and debits it before it reads anything.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from types import TracebackType
from typing import Any, NoReturn, Self

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import letters_of
from discreet.errors import questions
from discreet.errors.remote import does_not_travel, foreign_words
from discreet.exact import fraction_text, rational
from discreet.neighbors import neighbors_from_dict
from discreet.remote.account import RemoteAccount
from discreet.remote.checks import release_of
from discreet.remote.far import FarSeat, Words, amounts_of_words
from discreet.schema import Schema, column_from_dict
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.trusted.ledger.requests import asked_key
from discreet.trusted.ledger.units import Amounts
from discreet.trusted.losses.pricing import Price, price_of, price_of_spend
from discreet.trusted.release import PublicFacts, Question, Release, plain_question, plain_spend
from discreet.trusted.session import fresh_key


@dataclass(frozen=True, slots=True)
class RemoteReservation:
    """Budget set aside on the far side; leaving its ``with`` block hands back the rest."""

    seat: FarSeat
    id: str

    def close(self) -> Amounts:
        """Return what was not debited, once; says how much that was."""
        return amounts_of_words(self.seat.close(self.id)["returned"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class RemoteSession:
    """An open seat in a study; `connection.open(...)` makes one."""

    __slots__ = ("__weakref__", "_account", "_public", "_seat")

    def __init__(self, seat: FarSeat) -> None:
        self._seat = seat
        self._public = _public(seat.facts())
        self._account = RemoteAccount(seat)

    @property
    def public(self) -> PublicFacts:
        """What is known without spending."""
        return self._public

    @property
    def ledger(self) -> RemoteAccount:
        """The account that every answer is paid from."""
        return self._account

    @property
    def made_up(self) -> bool:
        """Whether answers are about rows made up of the schema alone."""
        return self._seat.made_up

    def release(
        self,
        question: Question,
        *,
        key: str | None = None,
        reservation: RemoteReservation | None = None,
    ) -> Release:
        """The answer to a question; with a `key`, asking again gives the stored one."""
        question, name = plain_question(question), _name(key)
        held = None if reservation is None else _held(reservation)
        if _runs_a_function(question):
            if held is not None:
                held.close()  # nothing of the procedure can be asked
            raise does_not_travel(question.description.estimator)
        told = self._seat.release(question.to_dict(), name, None if held is None else held.id)
        return release_of(told, question, name, self._public, made_up=self.made_up)

    def reserve(
        self, spend: Guarantee, *, delta: Fraction = Fraction(0), key: str | None = None
    ) -> RemoteReservation:
        """Set budget aside for a procedure of several steps; closing it gives back the rest."""
        spend, delta = plain_spend(spend), rational(delta, "delta=")
        price_of_spend(spend, box=self._account.box, delta=delta)  # refused here where it has none
        told = self._seat.reserve(letters_of(spend), fraction_text(delta), _name(key))
        return RemoteReservation(self._seat, str(told["reservation"]))

    def price(self, question: Question) -> Price:
        """What a question would cost in the seat's box."""
        return price_of((plain_question(question).mechanism,), box=self._account.box)

    def remaining(self, delta: float | None = None) -> statement.Remaining:
        """What can still be spent; see `Session.remaining`."""
        account = self._account
        entries: Any = account.entries()
        return statement.remaining(account.budget, account.remaining(), entries, delta)

    def open_threshold(self, question: Question) -> NoReturn:
        """Refused: a threshold that stays open lives beside the data."""
        holdout = isinstance(plain_question(question).mechanism, Thresholdout)
        raise does_not_travel("holdout" if holdout else "watch")

    def __reduce__(self) -> NoReturn:
        raise questions.not_copied("session")

    def _repr_html_(self) -> str:
        rows = [(name, str(column)) for name, column in self.public.schema.items()]
        notes = (f"Neighbours {self.public.neighbors}. {self.ledger}",)
        title = "Session on made-up rows" if self.made_up else "Remote session"
        return statement.table_html(title, ("column", "declared"), rows, notes)

    def __repr__(self) -> str:
        made_up = "made-up rows; " if self.made_up else ""
        columns = ", ".join(self.public.schema)
        return f"RemoteSession({made_up}{columns}; {self.public.neighbors}; {self.ledger})"


def _public(told: Words) -> PublicFacts:
    """The public facts, rebuilt with all their checks."""
    try:
        schema = Schema({name: column_from_dict(one) for name, one in told["schema"].items()})
        neighbors, count = neighbors_from_dict(told["neighbors"]), told["public_count"]
    except (LookupError, TypeError, AttributeError):
        raise foreign_words("a schema or a relation that is none") from None
    if count is not None and (type(count) is not int or count < 0):
        raise foreign_words("a public count that is none")
    return PublicFacts(schema, neighbors, count)


def _name(key: str | None) -> str:
    return fresh_key() if key is None else asked_key(key)


def _held(reservation: object) -> RemoteReservation:
    if type(reservation) is not RemoteReservation:
        raise questions.not_a_reservation(plain.kind_name(reservation))
    return reservation


def _runs_a_function(question: Question) -> bool:
    """Whether a function of the caller's own is part of the statistic."""
    query: Any = question.query
    return is_dataclass(query) and any(
        callable(getattr(query, part.name)) for part in fields(query)
    )
