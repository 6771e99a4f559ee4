"""The far side of a remote session: a seat in a study, in the words of JSON.

A seat answers six calls, and nothing else is asked of it. `discreet.remote.service` reaches one by
HTTP, `discreet.remote.dummy` makes one of made-up rows in this process.

Amounts (prices, boxes, what is left) are exact decimal texts by coordinate, as
``{"epsilon": "0", "mu_squared": "0.01", "delta": "0", "rho": "0"}``; a spend is said by its
letters, as ``{"mu": 0.1}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import guarantee_of_letters, letters_of
from discreet.errors import DiscreetError
from discreet.errors.remote import foreign_words
from discreet.trusted.ledger.units import COORDINATES, Amounts, capacity, charge
from discreet.trusted.losses.pricing import Price

if TYPE_CHECKING:
    from discreet.trusted.tree.node import Box

Words = dict[str, Any]
LONGEST_AMOUNT = 80


class FarSeat(Protocol):
    """Where questions are put."""

    @property
    def made_up(self) -> bool:
        """Whether its rows are made up of the schema alone."""

    def facts(self) -> Words:
        """What is public: `schema`, `neighbors`, `public_count`, `budget`."""

    def boxes(self) -> list[Words]:
        """The boxes that a question is debited in, the seat's own first; `box`, `left`, …"""

    def entries(self) -> list[Words]:
        """The seat's own history."""

    def release(self, question: Words, key: str, reservation: str | None) -> Words:
        """The release of a question, as a release writes itself."""

    def reserve(self, spend: Words, delta: str, key: str) -> Words:
        """A `reservation` for a spend; the same key gives the same again."""

    def close(self, reservation: str) -> Words:
        """What a reservation did not use: `returned`."""


def price_of_words(told: object) -> Price:
    """An amount as a price."""
    return Price(*(_number(told, name) for name in COORDINATES))


def amounts_of_words(told: object) -> Amounts:
    """An amount in the whole units of a ledger; nothing where all of it is 0."""
    price = price_of_words(told)
    return charge(price) if price != Price() else Amounts()


def words_of_price(price: Price) -> dict[str, str]:
    """A price as an amount: a decimal where it is one, rounded down to units where it is none."""
    held = capacity(price) if price != Price() else Amounts()
    return {
        name: _decimal(units, places)
        for name, units, places in zip(COORDINATES, held.as_tuple(), (12, 12, 18, 12), strict=True)
    }


def words_of_box(box: Box) -> Words:
    """A box of a budget tree, as a seat may see it."""
    return {
        "node": box.node,
        "name": box.name,
        "kind": box.kind,
        "budget": letters_of(box.budget),
        "box": words_of_price(box.box),
        "left": words_of_price(box.left.exact()),
        "spent": words_of_price(box.spent.exact()),
        "reserved": words_of_price(box.reserved.exact()),
        "head": box.head,
        "frozen": box.frozen,
        "closed": box.closed,
    }


def budget_of_words(told: object) -> Guarantee:
    """A guarantee from its letters."""
    try:
        found = guarantee_of_letters(told) if type(told) is dict else None
    except (DiscreetError, TypeError):
        found = None
    if found is None:
        raise foreign_words("a budget that is no guarantee")
    return found


def _number(told: object, name: str) -> Fraction:
    text = told.get(name, "0") if isinstance(told, Mapping) else None
    try:
        if isinstance(text, str) and len(text) <= LONGEST_AMOUNT:
            number = Decimal(text)
            if number.is_finite() and number >= 0 and abs(number.adjusted()) <= LONGEST_AMOUNT:
                return Fraction(number)
    except InvalidOperation:
        pass
    raise foreign_words("an amount that is no exact decimal")


def _decimal(units: int, places: int) -> str:
    return f"{Decimal(units).scaleb(-places).normalize():f}"
