"""What procedures use of a session: one protocol, for data at hand and for data behind a service.

Every procedure builds questions from public facts and reads releases, so that it needs of a session
no more than this:

    public     schema, relation and public count: what may be known without spending
    release    the answer to a question under a key, out of a reservation where one is named
    reserve    a spend set aside for a procedure of several steps; `close` hands the rest back
    price      what a question costs in the session's box
    remaining  what is left, in words and as a spend
    ledger     the account: its box, what is free in it, its entries, whether it knows a key
    open_threshold  a run that stays open beside the data; a session far away refuses it

Two classes answer to it. `discreet.trusted.session.Session` holds data; `RemoteSession` asks a
curator, who holds them. Formulas, searches, previews and intervals are computed by the caller in
either case. Nothing else passes: a subclass could release something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from discreet import plain
from discreet.accounting.guarantees import Guarantee
from discreet.accounting.statement import Remaining
from discreet.errors import InvalidParameter
from discreet.trusted.losses.pricing import Price
from discreet.trusted.release import PublicFacts, Question, Release
from discreet.trusted.session import Session as LocalSession

_REMOTE = "discreet.remote.session"


class Aside(Protocol):
    """Budget set aside for the steps of one procedure."""

    @property
    def id(self) -> str: ...

    def close(self) -> Any:
        """Hand back what no step was debited for, once."""


class Account(Protocol):
    """The account that a session's answers are paid from, as far as procedures read it."""

    @property
    def budget(self) -> Guarantee: ...

    @property
    def box(self) -> Price: ...

    def remaining(self) -> Any:
        """What can still be debited, in whole units of the box."""

    def how_many(self, price: Price | Guarantee) -> int:
        """How many more requests of this price fit."""

    def holds(self, key: str) -> bool:
        """Whether a request was debited under this key."""

    def entries(self) -> Sequence[Any]:
        """The history, from the opening on."""


class Session(Protocol):
    """An open account on a data set, here or behind a service."""

    @property
    def public(self) -> PublicFacts: ...

    @property
    def ledger(self) -> Account: ...

    def release(
        self, question: Question, *, key: str | None = None, reservation: Any = None
    ) -> Release:
        """The answer to a question, debited before any data is read."""

    def reserve(
        self, spend: Guarantee, *, delta: Fraction = Fraction(0), key: str | None = None
    ) -> Aside:
        """Budget set aside; the same key gives the same reservation again."""

    def price(self, question: Question) -> Price:
        """What a question would cost."""

    def remaining(self, delta: float | None = None) -> Remaining:
        """What can still be spent."""

    def open_threshold(self, question: Question) -> Any:
        """A threshold that stays open between questions."""


def is_session(given: object) -> bool:
    """Whether something is a session, of exactly one of the two classes."""
    kind = type(given)
    return kind is LocalSession or (kind.__module__ == _REMOTE and kind is _remote_class())


def opened(session: object) -> Session:
    """The session that a caller passed; anything else is refused."""
    if is_session(session):
        return session  # type: ignore[return-value]
    raise InvalidParameter(
        "session",
        f"a {plain.kind_name(session)} is not a session",
        "questions are asked of an open session, which has a budget",
        "pass what data.open(budget=...) returned, or connection.open(...) of a service",
    )


def _remote_class() -> type:
    from discreet.remote.session import RemoteSession

    return RemoteSession
