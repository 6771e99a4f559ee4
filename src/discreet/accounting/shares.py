"""Shares of a budget: spends that together fill the box which a ledger opens for it.

A ledger counts in whole units of 10⁻¹² (trusted/ledger/units.py): it rounds the box down and each
price up. A share is therefore a whole number of units, and the spend is the greatest float whose
price is no more than that.

Theorem.  The spends of `split` are all granted by a new ledger of the budget, in any order, and
          leave fewer than two units a spend of the coordinate that they are priced in, but for
          the last digit of a float.
Proof.    Each costs at most its share rounded down to units, and the shares add up to the box. One
          unit is lost where a share is rounded, and one where its spend is.
Checked.  tests/accounting/test_budget_shares.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.accounting.parameters import LARGEST_COUNT
from discreet.errors import InvalidParameter, shown
from discreet.exact import rational

UNITS = 10**12  # of ε, μ² and ρ in 1; a ledger's own
MOST_SPENDS = 10**6  # written out at once
_WHY = "each part becomes a spend of its own, and together they fill the budget"

ShareOf = Callable[[Fraction], Any]  # the spend of a share between 0 and 1


def split(share_of: ShareOf, parts: object) -> Any:
    """Equal spends for a whole number of parts, or a spend a name for weights by name."""
    given = plain.value(parts, "parts")
    if type(given) is dict:
        return _weighted(share_of, given)
    number = _number_of(given, MOST_SPENDS)
    return (share_of(Fraction(1, number)),) * number


def part(share_of: ShareOf, parts: object) -> Any:
    """One of so many equal spends."""
    return share_of(Fraction(1, _number_of(plain.value(parts, "parts"), LARGEST_COUNT)))


def units_of(box: Fraction, share: Fraction) -> Fraction:
    """A share of what a box holds, in whole units, rounded down."""
    return Fraction(math.floor(math.floor(box * UNITS) * share), UNITS)


def greatest_float(amount: Fraction) -> float:
    """The greatest float that costs no more than an amount, read by its decimal as a price is."""
    return _greatest(float(amount), lambda number: number <= amount)


def greatest_root(amount: Fraction) -> float:
    """The greatest float whose square costs no more than an amount."""
    return _greatest(math.sqrt(amount), lambda number: number**2 <= amount)


def _greatest(near: float, fits: Callable[[Fraction], bool]) -> float:
    candidate = math.nextafter(math.nextafter(near, math.inf), math.inf)
    while not fits(Fraction(repr(candidate))):
        candidate = math.nextafter(candidate, 0.0)
    return candidate


def _weighted(share_of: ShareOf, weights: Mapping[Any, Any]) -> dict[str, Any]:
    if not weights or not all(type(name) is str and name for name in weights):
        raise _refused("it names no parts")
    numbers = {
        name: rational(weight, f"the weight of {name!r}") for name, weight in weights.items()
    }
    if min(numbers.values()) <= 0:
        raise _refused("a weight is not above 0")
    whole = sum(numbers.values(), Fraction(0))
    return {name: share_of(number / whole) for name, number in numbers.items()}


def _number_of(given: object, most: int) -> int:
    if type(given) is not int or not 1 <= given <= most:
        raise _refused(f"{shown(given)} is not a whole number from 1 to {most}")
    return given


def _refused(found: str) -> InvalidParameter:
    return InvalidParameter(
        "split", found, _WHY, 'pass for example 12, or weights such as {"tables": 3, "model": 1}'
    )
