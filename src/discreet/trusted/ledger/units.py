"""Decimal integer units: how a ledger counts.

    ε, μ² and ρ   units of 1e-12        δ₀   units of 1e-18

The largest ε (1e6), μ² (1e6), ρ (1e6) and δ (1) that a guarantee may have are 1e18 units, so every
amount and every sum that stays within a box fits a signed 64-bit integer. A price is rounded up,
once per debit; a box is rounded down. So whatever the units say fits, fits exactly.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from discreet import plain
from discreet.errors import ledger as refusals
from discreet.exact import rational
from discreet.trusted.losses.pricing import Price

LARGEST_AMOUNT = 2**63 - 1
COORDINATES = ("epsilon", "mu_squared", "delta", "rho")  # of a Price and of Amounts, in order
_SYMBOLS = ("ε", "μ²", "δ₀", "ρ")
_PLACES = (12, 12, 18, 12)  # decimal places of a unit
_UNITS = tuple(10**places for places in _PLACES)


@dataclass(frozen=True, slots=True)
class Amounts:
    """Whole units in the coordinates of a box."""

    epsilon: int = 0
    mu_squared: int = 0
    delta: int = 0
    rho: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*map(operator.add, self.as_tuple(), other.as_tuple()))

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(*map(operator.sub, self.as_tuple(), other.as_tuple()))

    def __bool__(self) -> bool:
        return any(self.as_tuple())

    def as_tuple(self) -> tuple[int, int, int, int]:
        return self.epsilon, self.mu_squared, self.delta, self.rho

    def fits(self, room: Amounts) -> bool:
        """Whether every coordinate is at most the one of `room`."""
        return all(map(operator.le, self.as_tuple(), room.as_tuple()))

    def times_in(self, room: Amounts) -> int:
        """How often this amount, which is not nothing, can be taken out of `room`."""
        return min(
            max(0, theirs) // mine
            for mine, theirs in zip(self.as_tuple(), room.as_tuple(), strict=True)
            if mine
        )

    def exact(self) -> Price:
        """The same amounts as exact numbers."""
        return Price(*map(Fraction, self.as_tuple(), _UNITS))

    def __str__(self) -> str:
        """Every digit, so that a shortfall of one unit can be read."""
        shown = [
            f"{symbol} = {_decimal(amount, places)}"
            for symbol, amount, places in zip(_SYMBOLS, self.as_tuple(), _PLACES, strict=True)
            if amount
        ]
        return ", ".join(shown) or "nothing"


NOTHING = Amounts()


def charge(price: Price) -> Amounts:
    """The units that one debit of `price` costs, rounded up.

    Refuses a negative coordinate, which would hand budget back, and a price of nothing.
    """
    amounts = Amounts(*map(math.ceil, _in_units(price)))
    if not amounts:
        raise refusals.no_price()
    return amounts


def capacity(box: Price) -> Amounts:
    """The units that a box holds, rounded down."""
    amounts = Amounts(*map(math.floor, _in_units(box)))
    if not amounts or max(amounts.as_tuple()) > LARGEST_AMOUNT:
        raise refusals.bad_box()
    return amounts


def _in_units(price: Price) -> list[Fraction]:
    """An exact price in units, not yet rounded; refuses what is no price."""
    if type(price) is not Price:
        raise refusals.not_a_price(plain.kind_name(price))
    price = plain.rebuilt(price)
    numbers = [rational(getattr(price, name), name) for name in COORDINATES]
    if min(numbers) < 0:
        raise refusals.negative_price()
    return [number * units for number, units in zip(numbers, _UNITS, strict=True)]


def _decimal(units: int, places: int) -> str:
    number = Decimal(units).scaleb(-places).normalize()
    return f"{number:f}" if abs(number) >= Decimal("1e-4") else f"{number:e}"
