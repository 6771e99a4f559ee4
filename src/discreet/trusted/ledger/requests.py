"""What a ledger hands out: a paid request, and budget set aside for several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from discreet import plain
from discreet.errors import questions
from discreet.trusted.ledger.units import Amounts
from discreet.trusted.losses.pricing import Price

if TYPE_CHECKING:
    from discreet.trusted.ledger.core import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Debit:
    """A paid request: `answer` is the stored one, or None while it is unfinished;
    `fresh` if it was paid just now.
    """

    key: str
    number: int
    hash: str
    amounts: Amounts
    answer: str | None
    fresh: bool


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget set aside for the steps of one procedure.

    Leaving its ``with`` block closes it, which returns the part for which no step was debited.
    A process that dies leaves it open: its budget stays set aside until someone calls
    ``ledger.close_reservation(id)``, or the procedure is run again with the same keys and goes on
    where it stopped.
    """

    ledger: Ledger
    id: str

    def debit(
        self, *, key: str, request: Mapping[str, Any], price: Price, secure: bool = True
    ) -> Debit:
        """Pay for one step out of this reservation; a known key is a retry and costs nothing."""
        return self.ledger.debit(
            key=key, request=request, price=price, reservation=self.id, secure=secure
        )

    def remaining(self) -> Amounts:
        """What is still set aside here."""
        return self.ledger.left_in(self.id)

    def close(self) -> Amounts:
        """Return what was not debited, once; says how much that was."""
        return self.ledger.close_reservation(self.id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def asked_key(key: object) -> str:
    """The key of a question, as exact text."""
    name = str.__str__(key) if plain.derives(type(key), str) else ""
    if not 1 <= len(name) <= 200:
        raise questions.bad_key()
    return name


def reservation_id(reservation: object) -> str:
    """The name of a reservation, read once."""
    if type(reservation) is not Reservation:
        raise questions.not_a_reservation(plain.kind_name(reservation))
    return plain.text(object.__getattribute__(reservation, "id"), "reservation=")
