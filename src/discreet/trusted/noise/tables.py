"""Piecewise polynomials for z(t) with a proven margin a piece.

A 64-bit word is a sign bit and 63 bits T: the tail t lies in [T, T+1]·2**-64 ⊂ [0, ½]. The float
nearest to T names a piece by its exponent and the five leading bits of its fraction; the other bits
are the coordinate u ∈ [−2**-6, 2**-6] about the middle of the piece, where the float is
2**e·(1 + (2j+1)/64 + u).

    row 0             T < 2**20 (t < 2**-44): margin ∞, so that nothing is decided there
    row 1+32(e−20)+j  exponent e = 20 … 62, fraction bits j = 0 … 31
    row 1377          the float 2**63, t = ½ exactly, z = 0
    columns           coefficients of u⁰ … u⁶ (CONSTANT … SEXTIC), and the MARGIN

Theorem.  For every t in the cell of T, every s > 0 and every offset 0 ≤ c: with ẑ the polynomial
          evaluated by Horner's rule in float64 (with or without fused multiply-add), y = s·ẑ + c
          and r = s·margin + 2**-50·c in floats, the floats y − r and y + r enclose s·z(t) + c, and
          also s·z(t) + c′ for |c′ − c| ≤ 2**-51·c.
Proof.    docs/theory/exact-noise.md: margin ≥ (1 + 2**-20)·(A + H + I + 2**-51·max|ẑ|), where A is
          the error of the polynomial, H of Horner's rule, I the image of the cell and of the
          rounding of T.
Checked.  tests/claims/test_noise_enclosure.py (every piece of both tables, in ball arithmetic)

The tables are stored in tables.npy, made by tools/make_noise_tables.py;
a file that is not the proven one is refused.
"""

from __future__ import annotations

import hashlib
import math
from enum import IntEnum
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from discreet.errors.noise import other_tables

FRACTION_BITS = 5
FIRST_EXPONENT = 20
LAST_EXPONENT = 62
CONSTANT, LINEAR, QUADRATIC, CUBIC, QUARTIC, QUINTIC, SEXTIC, MARGIN = range(8)
DEGREE = SEXTIC
COLUMNS = MARGIN + 1
ROWS = 2 + ((LAST_EXPONENT - FIRST_EXPONENT + 1) << FRACTION_BITS)
OFFSET_SLACK = 2.0**-50
SHA256 = "73f3367f7d45bbd2fe45f812b8df20225ff000fb3d9acd4022e30f225439df74"


class Tail(IntEnum):
    """Which inverse tail a table holds."""

    NORMAL = 0  # z(t) = Φ⁻¹(1 − t)
    EXPONENTIAL = 1  # z(t) = −ln(2t)


@cache
def tables() -> NDArray[np.float64]:
    """Both tables, an array (tail, row, column), read once."""
    stored = resources.files("discreet.trusted.noise").joinpath("tables.npy")
    content = stored.read_bytes()
    if hashlib.sha256(content).hexdigest() != SHA256:
        raise other_tables()
    shape = (len(Tail), ROWS, COLUMNS)
    numbers = np.frombuffer(content[-8 * math.prod(shape) :], dtype="<f8")
    native = numbers.astype(np.float64).tobytes()  # memory that nobody can make writable
    return np.frombuffer(native, dtype=np.float64).reshape(shape)
