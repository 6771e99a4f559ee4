"""Exact numbers: how a number a person writes is read, and how a result is rounded against us.

A float is read by its shortest decimal (``Fraction(repr(x))``),
so that ten spends of 0.1 make exactly 1.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.errors import InvalidParameter

LARGEST_BITS = 1 << 13  # of a numerator or denominator; no computation of the library comes near it
_LARGEST_EXPONENT = 1000
type_error_why = (
    "privacy parameters are exact numbers; anything else could be read in more than one way"
)

LONGEST_STORED = 4000  # characters of a stored Fraction; Python reads whole numbers of 4300 digits
_STORED = re.compile("-?[0-9]+(/[0-9]*[1-9][0-9]*)?")


def rational(given: object, name: str) -> Fraction:
    """The exact rational number a person meant by `given`;
    refuses bool, text, None, NaN, infinity and what no float can hold.
    """
    value: Any = plain.value(given, name)
    if type(value) is Fraction:  # made anew
        return _of_ordinary_size(value, name)
    if isinstance(value, bool) or not isinstance(value, (float, numbers.Real, Decimal)):
        raise InvalidParameter(
            name,
            f"a {plain.kind_name(value)} is not a number",
            type_error_why,
            "pass an int, a float or a Fraction",
        )
    if isinstance(value, int):
        return _of_ordinary_size(Fraction(value), name)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise InvalidParameter(name, "it is not finite", type_error_why, "pass a finite number")
        # as a Fraction it could fill the memory
        if value and abs(value.adjusted()) > _LARGEST_EXPONENT:
            raise _out_of_size(name)
        return _of_ordinary_size(Fraction(value) if value else Fraction(0), name)
    try:
        number = float(value)
    except Exception:  # a number of another library
        raise InvalidParameter(
            name,
            f"a {plain.kind_name(value)} cannot be read as a float",
            type_error_why,
            "pass an int, a float or a Fraction",
        ) from None
    if not math.isfinite(number):
        raise InvalidParameter(name, "it is not finite", type_error_why, "pass a finite number")
    return Fraction(repr(number))


def _of_ordinary_size(number: Fraction, name: str) -> Fraction:
    above, below = number.numerator.bit_length(), number.denominator.bit_length()
    # |number| < 2^(above − below + 1), which most often settles it
    near_the_largest = above - below + 1 >= sys.float_info.max_exp
    if max(above, below) > LARGEST_BITS or (near_the_largest and abs(number) > sys.float_info.max):
        raise _out_of_size(name)
    return number


def _out_of_size(name: str) -> InvalidParameter:
    return InvalidParameter(
        name,
        "it has more digits than any float, or is beyond their range",
        type_error_why,
        "pass a number of ordinary size",
    )


def readings(value: float) -> tuple[Fraction, Fraction]:
    """(lower, upper) of the two ways a float can be read:
    its binary value and its shortest decimal.
    """
    binary, decimal = Fraction(value), Fraction(repr(value))
    return min(binary, decimal), max(binary, decimal)


def float_up(value: Fraction) -> float:
    """The least float that is ≥ value however it is read (infinity beyond the largest)."""
    candidate = _nearest(value)
    if candidate == -math.inf:
        candidate = -sys.float_info.max
    while candidate != math.inf and readings(candidate)[0] < value:
        candidate = math.nextafter(candidate, math.inf)
    return candidate


def float_down(value: Fraction) -> float:
    """The greatest float that is ≤ value however it is read (minus infinity beyond the largest)."""
    return -float_up(-value)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def sqrt_up(value: Fraction) -> Fraction:
    """A float (as a Fraction) whose square is ≥ value,
    at most one step above the least such float.
    """
    if value < 0:
        raise ValueError("square root of a negative number")
    root = math.sqrt(float_up(value))
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return Fraction(root)


def root_up(value: Fraction) -> float:
    """The least float whose square is ≥ value, however the float is read."""
    root = float(sqrt_down(value))
    while readings(root)[0] ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def sqrt_down(value: Fraction) -> Fraction:
    """A float (as a Fraction) whose square is ≤ value,
    at most one step below the greatest such float.
    """
    if value < 0:
        raise ValueError("square root of a negative number")
    root = math.sqrt(float_down(value))
    while Fraction(root) ** 2 > value:
        root = math.nextafter(root, 0.0)
    return Fraction(root)


def is_float(value: Fraction) -> bool:
    """Whether `value` is a float64 exactly."""
    try:
        return Fraction(float(value)) == value
    except OverflowError:
        return False


def decimal_text(value: Fraction | float, digits: int = 4) -> str:
    """`value` with significant digits, never rounded to a bare 0."""
    return f"{float(value):.{digits}g}"


def fraction_text(value: Fraction) -> str:
    """A Fraction as JSON text, ``"3/7"`` or ``"2"``; read back by `stored_fraction`."""
    return str(value)


def stored_fraction(text: object) -> Fraction:
    """The Fraction that `fraction_text` wrote; a ValueError for every other text.

    ``Fraction`` reads more: of ``"1e200000000"`` it makes a number that fills the memory.
    """
    if type(text) is int:
        return Fraction(text)
    if type(text) is not str or len(text) > LONGEST_STORED or not _STORED.fullmatch(text):
        raise ValueError("not the text of a stored fraction")
    return Fraction(text)
