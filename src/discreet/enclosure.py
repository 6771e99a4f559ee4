"""Certified real numbers: ball arithmetic (Arb, through python-flint),
and floats rounded to a stated side.

Every number that a guarantee depends on and that is not rational goes through here, so that its
rounding direction is proven rather than hoped for. flint is imported on first use.

python-flint keeps its working precision in one place per process. A ball encloses the true value
at every precision, so another thread that changes it meanwhile can only make an answer less sharp,
never wrong; the lock of `precision` keeps our own threads apart.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from discreet.exact import float_down, float_up

_PRECISIONS = (160, 640, 2560, 20480)  # bits tried in turn until the ball is tight enough
_WANTED_BITS = 64

_state = {"lock": threading.RLock()}
os.register_at_fork(after_in_child=lambda: _state.update(lock=threading.RLock()))


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits inside the block."""
    from flint import ctx

    with _state["lock"]:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def enclose(formula: Callable[[Any], Any]) -> tuple[Fraction, Fraction]:
    """Rational bounds (lower, upper) of `formula(ball)`,
    where ``ball(q)`` makes a ball of a rational or an int.

    The working precision grows until the relative error is below 2**-64,
    so cancellation costs time, not truth.
    """
    from flint import arb, fmpq

    def ball(value: Fraction | int) -> Any:
        number = Fraction(value)
        return arb(fmpq(number.numerator, number.denominator))

    for bits in _PRECISIONS:
        with precision(bits):
            result = formula(ball)
            if result.rel_accuracy_bits() >= _WANTED_BITS or bits == _PRECISIONS[-1]:
                return _fraction(result.lower(), -1), _fraction(result.upper(), +1)
    raise AssertionError("unreachable")


def _fraction(point: Any, side: int) -> Fraction:
    """An endpoint as a Fraction; where it is far below the floats,
    0 or a tiny number on its outer side.
    """
    mantissa, exponent = (int(part) for part in point.man_exp())
    if exponent >= -(1 << 16):
        return Fraction(mantissa) * Fraction(2) ** exponent
    return Fraction(0) if mantissa * side <= 0 else side * Fraction(1, 1 << 1100)


def upper_float(bounds: tuple[Fraction, Fraction]) -> float:
    """The least float that is certainly not below the enclosed number."""
    return float_up(bounds[1])


def lower_float(bounds: tuple[Fraction, Fraction]) -> float:
    """The greatest float that is certainly not above the enclosed number."""
    return float_down(bounds[0])


def normal_tail(ball: Callable[[Fraction | int], Any], x: Any) -> Any:
    """P(Z > x) of a standard normal Z, as a ball."""
    return (x / ball(2).sqrt()).erfc() / 2


def least_float(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least float in (low, high] at which the monotone condition holds;
    it must hold at high and not at low.
    """
    while True:
        middle = low + (high - low) / 2
        if not low < middle < high:
            return high
        if holds(middle):
            high = middle
        else:
            low = middle
        if high - low <= 4 * math.ulp(high):
            return high
