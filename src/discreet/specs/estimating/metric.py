"""The metric in which a row is seen: z = A·x, A a released matrix of whole numbers, and the exact
arithmetic that maps sums by it.

A row's weight w = min(1, R²/‖z‖²) bounds what it adds, whatever it holds: w‖z‖ ≤ R, w‖z‖² ≤ R²
(reference.md H2; regression.md §2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.exact import sqrt_up
from discreet.specs.estimating.components import UNIT_BITS
from discreet.specs.queries.plans import FLOAT_BITS

WEIGHT_BITS = 15  # weights are whole numbers from 0 to 2**15
LARGEST_COLUMNS = 200
# of `whole_product`: 200 · 16 products of 40 bits stay below 2**52
DIGIT_BITS, MOST_DIGITS = 20, 16


@plain.kept()
@dataclass(frozen=True, slots=True)
class Metric:
    """z = A·x with A of whole numbers; norms are taken of zq = ⌈|z| / 2**shift⌉,
    so that ‖zq‖² is exact and never too small.

    `radius_squared` is R² in units of zq; ‖zq‖² stays below 2**52 for every row (checked from A
    alone).
    """

    rows: tuple[tuple[int, ...], ...]
    shift: int
    radius_squared: int

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows}
        if (
            not self.rows
            or len(self.rows) > LARGEST_COLUMNS
            or len(widths) != 1
            or self.radius_squared < 1
            or not 0 <= self.shift <= FLOAT_BITS
        ):
            raise _bad_metric("it is no matrix with a radius")
        row_sums = [sum(map(abs, row)) << UNIT_BITS for row in self.rows]
        if (
            max(row_sums).bit_length() > FLOAT_BITS
            or sum(((one >> self.shift) + 1) ** 2 for one in row_sums).bit_length() > FLOAT_BITS
        ):
            raise _bad_metric("its entries have too many bits")

    @property
    def matrix(self) -> npt.NDArray[np.object_]:
        return np.array(self.rows, dtype=object)

    @property
    def bound(self) -> Fraction:
        """R in units of z, rounded up: R·2**shift."""
        return _bound(self.radius_squared, self.shift)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": [[str(entry) for entry in row] for row in self.rows],
            "shift": self.shift,
            "radius_squared": str(self.radius_squared),
        }


def metric_from_dict(record: dict[str, Any]) -> Metric:
    return Metric(
        tuple(tuple(int(entry) for entry in row) for row in record["rows"]),
        record["shift"],
        int(record["radius_squared"]),
    )


def metric_of(matrix: npt.NDArray[np.float64], radius: float) -> Metric:
    """The metric nearest to a real matrix (rows of z by columns of x in units of 1) with radius R,
    on the finest grid that stays exact.
    """
    longest = float(np.abs(matrix).sum(axis=1).max())
    if not (math.isfinite(longest) and longest > 0 and math.isfinite(radius) and radius > 0):
        raise _bad_metric("its numbers are not finite")
    bits = FLOAT_BITS - 2 - UNIT_BITS - max(0, math.ceil(math.log2(longest)))
    rows = tuple(tuple(map(int, row)) for row in np.floor(np.ldexp(matrix, bits) + 0.5).tolist())
    largest = max(sum(map(abs, row)) for row in rows) << UNIT_BITS
    shift = max(0, largest.bit_length() - (FLOAT_BITS - 2 - math.ceil(math.log2(len(rows)))) // 2)
    scaled = Fraction(radius) * (1 << (bits + UNIT_BITS)) / (1 << shift)
    return Metric(rows, shift, max(1, math.floor(scaled**2)))


@plain.remembered(256)
def _bound(radius_squared: int, shift: int) -> Fraction:
    return sqrt_up(Fraction(radius_squared)) * (1 << shift)


def whole_product(
    left: npt.NDArray[np.object_], right: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """left @ right of whole numbers of any size, exactly.

    Method.  Both are split into digits of DIGIT_BITS bits; products of digits are float64 sums of
             at most LARGEST_COLUMNS·MOST_DIGITS terms below 2**(2·DIGIT_BITS), so below 2**52 and
             exact. What a digit has beyond DIGIT_BITS is carried to the next (so all stay below
             2**53); three lower ones are a number of 60 bits, and few Python integers are made.
    """
    return _product(left, _digits_of(left), right)


def congruent(
    matrix: npt.NDArray[np.object_], middle: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """matrix @ middle @ matrix.T of whole numbers, exactly; the digits of `matrix` are taken once.

    Checked.  tests/claims/test_model_blocks.py::test_whole_products_are_exact
    """
    digits = _digits_of(matrix)
    return _product(matrix, digits, _product(matrix, digits, middle).T).T


def _product(
    left: npt.NDArray[np.object_],
    lefts: list[npt.NDArray[np.float64]],
    right: npt.NDArray[np.object_],
) -> npt.NDArray[np.object_]:
    """left @ right; `lefts` are the digits of `left`."""
    rights = _digits_of(right)
    if min(len(lefts), len(rights)) > MOST_DIGITS:
        return np.asarray(left @ right)
    count, digits = len(lefts) + len(rights) - 1, []
    carried: npt.NDArray[np.int64] = np.zeros((left.shape[0], right.shape[1]), dtype=np.int64)
    for place in range(count):
        parts = [
            lefts[i] @ rights[place - i] for i in range(len(lefts)) if 0 <= place - i < len(rights)
        ]
        digit = sum(parts[1:], parts[0]).astype(np.int64) + carried
        digits.append(digit & ((1 << DIGIT_BITS) - 1))
        carried = digit >> DIGIT_BITS
    total = carried.astype(object) << (DIGIT_BITS * count)
    for place in range(0, count, 3):
        three = digits[place : place + 3]
        whole = sum(digit << (DIGIT_BITS * above) for above, digit in enumerate(three))
        total = total + (np.asarray(whole).astype(object) << (DIGIT_BITS * place))
    return np.asarray(total)


def _digits_of(matrix: npt.NDArray[np.object_]) -> list[npt.NDArray[np.float64]]:
    """Whole numbers as digits, least first: matrix = Σ digits·2**(DIGIT_BITS·place); all but the
    last lie in 0 … 2**DIGIT_BITS − 1.
    """
    largest = int(np.abs(matrix).max(initial=0))
    count = max(1, -(-(largest.bit_length() + 1) // DIGIT_BITS))
    digits: list[npt.NDArray[np.int64]] = []
    while count > 3:  # three digits at once, as a number of 60 bits
        digits += _lower((matrix & ((1 << 3 * DIGIT_BITS) - 1)).astype(np.int64), 3)
        matrix, count = matrix >> (3 * DIGIT_BITS), count - 3
    top = matrix.astype(np.int64)  # at most three digits with its sign
    digits += [*_lower(top, count - 1), top >> (DIGIT_BITS * (count - 1))]
    return [digit.astype(np.float64) for digit in digits]


def _lower(numbers: npt.NDArray[np.int64], count: int) -> list[npt.NDArray[np.int64]]:
    """The lowest digits."""
    mask = (1 << DIGIT_BITS) - 1
    return [(numbers >> (DIGIT_BITS * place)) & mask for place in range(count)]


def cut_off(value: int, bits: int) -> int:
    """value / 2**bits rounded to the nearest whole number (halves up)."""
    return value if bits == 0 else (value + (1 << (bits - 1))) >> bits


def _bad_metric(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a metric",
        found,
        "the norm of every row must be an exact whole number below 2**52",
        "take it from metric_of, with numbers of ordinary size",
    )
