"""The account of a remote session: what procedures read of a ledger, read from the far side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.errors.remote import foreign_words
from discreet.remote.far import FarSeat, Words, amounts_of_words, budget_of_words, price_of_words
from discreet.trusted.ledger.units import Amounts, charge
from discreet.trusted.losses.pricing import Price, price_of_spend


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteEntry:
    """A line of the seat's own history; times and answers are not in it."""

    number: int
    kind: str
    key: str
    reservation: str
    amounts: Amounts
    request: dict[str, Any] | None
    hash: str


class RemoteAccount:
    """The boxes that a remote session's questions are debited in.

    `box` and `budget` are those of the seat, in which questions are priced here; where a further
    box holds less, `how_many` says so. What is granted is decided on the far side alone.
    """

    __slots__ = ("_box", "_budget", "_seat")

    def __init__(self, seat: FarSeat) -> None:
        first = seat.boxes()[0]
        self._seat = seat
        self._budget, self._box = budget_of_words(first["budget"]), price_of_words(first["box"])

    @property
    def budget(self) -> Guarantee:
        """What is promised for all answers of this seat."""
        return self._budget

    @property
    def box(self) -> Price:
        """The exact capacity of the seat in each coordinate."""
        return self._box

    @property
    def head(self) -> str:
        """The hash of the last entry, which commits to the whole history."""
        return str(self._seat.boxes()[0].get("head", ""))

    def remaining(self) -> Amounts:
        """What can still be debited from the seat; open reservations are not in it."""
        return amounts_of_words(self._seat.boxes()[0]["left"])

    def spent(self) -> Amounts:
        """What was debited from the seat."""
        return amounts_of_words(self._seat.boxes()[0]["spent"])

    def how_many(self, price: Price | Guarantee) -> int:
        """How many more requests of this price, or of a spend, fit in every box that counts as this
        one does.
        """
        known = price if isinstance(price, Price) else price_of_spend(price, box=self._box)
        cost = charge(known)
        return min(
            cost.times_in(amounts_of_words(box["left"]))
            for box in self._seat.boxes()
            if _same_coordinates(price_of_words(box["box"]), self._box)
        )

    def holds(self, key: str) -> bool:
        """Whether a request was debited under this key."""
        return any(entry.kind == "debit" and entry.key == key for entry in self.entries())

    def entries(self) -> list[RemoteEntry]:
        """The seat's own history, from the opening on."""
        return [_entry(told) for told in self._seat.entries()]

    def guarantee(self) -> str:
        """The promise for everything together, as text."""
        return statement.promise(self._budget, self._box)

    def __str__(self) -> str:
        return f"budget ({self._budget}); left {self.remaining()}"

    def __repr__(self) -> str:
        return f"<RemoteAccount: budget ({self._budget})>"


def _same_coordinates(one: Price, other: Price) -> bool:
    """Whether two boxes opened the same coordinates, δ₀ left aside."""
    return all(
        bool(getattr(one, name)) == bool(getattr(other, name))
        for name in ("epsilon", "mu_squared", "rho")
    )


def _entry(told: Words) -> RemoteEntry:
    try:
        return RemoteEntry(
            number=int(told["number"]),
            kind=str(told["kind"]),
            key=str(told["key"]),
            reservation=str(told.get("reservation") or ""),
            amounts=amounts_of_words(told["amounts"]),
            request=told.get("request"),
            hash=str(told["hash"]),
        )
    except (LookupError, TypeError, ValueError):
        raise foreign_words("an entry of a ledger that is none") from None
