"""What a number of the accountant may be:
each check reads it exactly and refuses the rest in four parts.
"""

from __future__ import annotations

from fractions import Fraction

from discreet import plain
from discreet.errors import InvalidParameter, shown
from discreet.exact import decimal_text, rational

Number = int | float | Fraction

RHO_FLOOR, RHO_CEILING = Fraction(1, 10**19), Fraction(10**6)
ORDER_CEILING = Fraction(10**12)
LARGEST_COUNT = 10**12
_SMALLEST_DELTA = Fraction(1, 10**300)
_WHY = "a guarantee is computed from it; outside this range there is no noise or no answer"


def positive(value: object, name: str) -> Fraction:
    """A finite number above 0, exactly."""
    number = rational(value, name)
    if number <= 0:
        raise InvalidParameter(
            name, f"{decimal_text(number)} is not above 0", _WHY, "pass a positive number"
        )
    return number


def not_negative(value: object, name: str) -> Fraction:
    """A finite number of 0 or more, exactly."""
    number = rational(value, name)
    if number < 0:
        raise InvalidParameter(
            name, f"{decimal_text(number)} is negative", _WHY, "pass 0 or a positive number"
        )
    return number


def within(
    value: object, name: str, floor: Fraction, ceiling: Fraction, remedy: str = ""
) -> Fraction:
    """A number of a closed interval, exactly."""
    number = rational(value, name)
    if not floor <= number <= ceiling:
        raise InvalidParameter(
            name,
            f"{decimal_text(number)} is outside {decimal_text(floor)} … {decimal_text(ceiling)}",
            _WHY,
            remedy or f"pass a {name} of ordinary size",
        )
    return number


def failure_probability(value: object, name: str = "delta") -> Fraction:
    """A δ with 0 < δ < 1, exactly."""
    number = rational(value, name)
    if not _SMALLEST_DELTA <= number < 1:
        raise InvalidParameter(
            name,
            f"{decimal_text(number)} is not above 0 and below 1",
            "delta is a probability of failure; at 1 nothing is private",
            "use a delta far below one over the number of people, for example 1e-6",
        )
    return number


def probability(value: object, name: str) -> Fraction:
    """A number of [0, 1], exactly."""
    number = rational(value, name)
    if not 0 <= number <= 1:
        raise InvalidParameter(
            name,
            f"{decimal_text(number)} is not in [0, 1]",
            "it is a probability",
            "pass a number from 0 to 1",
        )
    return number


def order_above_one(value: object) -> Fraction:
    """A Rényi order α with 1 < α ≤ 10¹², exactly."""
    number = rational(value, "order")
    if not 1 < number <= ORDER_CEILING:
        raise InvalidParameter(
            "order",
            f"{decimal_text(number)} is not above 1 and at most {decimal_text(ORDER_CEILING)}",
            "the Rényi divergence of order α is used for α above 1",
            "pass for example 2, 8 or 32",
        )
    return number


def whole_number(value: object, name: str, *, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """A whole number of least … most; a bool is not one."""
    read = plain.value(value, name)
    if type(read) is not int or not least <= read <= most:
        raise InvalidParameter(
            name,
            f"{shown(read)} is not a whole number from {least} to {most}",
            "it counts things",
            f"pass a whole number of {least} or more",
        )
    return read
