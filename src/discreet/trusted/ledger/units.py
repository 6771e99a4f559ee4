"""Decimal integer units: how a ledger counts.

    ε, μ² and ρ   units of 1e-12        δ₀   units of 1e-18

The largest ε (1e6), μ² (1e6), ρ (1e6) and δ (1) that a guarantee may have are 1e18 units, so every
amount and every sum that stays within a box fits a signed 64-bit integer. A price is rounded up,
once per debit; a box is rounded down. So whatever the units say fits, fits exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.trusted.losses.pricing import Price

EPSILON_UNITS = MU_SQUARED_UNITS = RHO_UNITS = 10**12
DELTA_UNITS = 10**18
LARGEST_AMOUNT = 2**63 - 1
COORDINATES = ("epsilon", "mu_squared", "delta", "rho")
SYMBOLS = {"epsilon": "ε", "mu_squared": "μ²", "delta": "δ₀", "rho": "ρ"}
_PLACES = {"epsilon": 12, "mu_squared": 12, "delta": 18, "rho": 12}


@dataclass(frozen=True, slots=True)
class Amounts:
    """Whole units in the coordinates of a box."""

    epsilon: int = 0
    mu_squared: int = 0
    delta: int = 0
    rho: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.epsilon + other.epsilon,
            self.mu_squared + other.mu_squared,
            self.delta + other.delta,
            self.rho + other.rho,
        )

    def __sub__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.epsilon - other.epsilon,
            self.mu_squared - other.mu_squared,
            self.delta - other.delta,
            self.rho - other.rho,
        )

    def __bool__(self) -> bool:
        return any(self.as_tuple())

    def as_tuple(self) -> tuple[int, int, int, int]:
        return self.epsilon, self.mu_squared, self.delta, self.rho

    def fits(self, room: Amounts) -> bool:
        """Whether every coordinate is at most the one of `room`."""
        return all(
            mine <= theirs for mine, theirs in zip(self.as_tuple(), room.as_tuple(), strict=True)
        )

    def times_in(self, room: Amounts) -> int:
        """How often this amount, which is not nothing, can be taken out of `room`."""
        return min(
            max(0, theirs) // mine
            for mine, theirs in zip(self.as_tuple(), room.as_tuple(), strict=True)
            if mine
        )

    def exact(self) -> Price:
        """The same amounts as exact numbers."""
        return Price(
            Fraction(self.epsilon, EPSILON_UNITS),
            Fraction(self.mu_squared, MU_SQUARED_UNITS),
            Fraction(self.delta, DELTA_UNITS),
            Fraction(self.rho, RHO_UNITS),
        )

    def __str__(self) -> str:
        """Every digit, so that a shortfall of one unit can be read."""
        parts = [
            f"{SYMBOLS[name]} = {_decimal(amount, _PLACES[name])}"
            for name, amount in zip(COORDINATES, self.as_tuple(), strict=True)
            if amount
        ]
        return ", ".join(parts) or "nothing"


NOTHING = Amounts()


def charge(price: Price) -> Amounts:
    """The units that one debit of `price` costs, rounded up.

    Refuses a negative coordinate, which would hand budget back, and a price of nothing.
    """
    amounts = Amounts(*(math.ceil(number * units) for number, units in _coordinates(price)))
    if not amounts:
        raise InvalidParameter(
            "price",
            "it charges nothing",
            "a release that costs nothing needs no ledger; one that costs something must say what",
            "price the mechanisms with discreet.accounting.price_of",
        )
    return amounts


def capacity(box: Price) -> Amounts:
    """The units that a box holds, rounded down."""
    amounts = Amounts(*(math.floor(number * units) for number, units in _coordinates(box)))
    if not amounts or max(amounts.as_tuple()) > LARGEST_AMOUNT:
        raise InvalidParameter(
            "the ledger's box",
            "it holds less than one unit, or more than 2**63 of them",
            "amounts are 64-bit counts of units",
            "open it with a guarantee, for example dp.ApproxDP(1, 1e-6)",
        )
    return amounts


def _coordinates(price: Price) -> list[tuple[Fraction, int]]:
    if type(price) is not Price:
        raise InvalidParameter(
            "price",
            f"a {plain.kind_name(price)} is not a Price",
            "a ledger charges exact amounts in each coordinate of its box",
            "price the mechanisms with discreet.accounting.price_of",
        )
    price = plain.rebuilt(price)
    numbers = [rational(getattr(price, name), name) for name in COORDINATES]
    if min(numbers) < 0:
        raise InvalidParameter(
            "price",
            "a coordinate is negative",
            "a negative price would hand budget back, and what was released stays released",
            "price the mechanisms with discreet.accounting.price_of",
        )
    return list(
        zip(numbers, (EPSILON_UNITS, MU_SQUARED_UNITS, DELTA_UNITS, RHO_UNITS), strict=True)
    )


def _decimal(units: int, places: int) -> str:
    number = Decimal(units).scaleb(-places).normalize()
    return f"{number:f}" if abs(number) >= Decimal("1e-4") else f"{number:e}"
