"""Machine-checked proof that the stored margins enclose:
every piece of both tables, in ball arithmetic.

The proof goes another way than the generator. Normal: g(v) = Q(p(v)) − t(v) is expanded about the
middle of the piece (v ∈ [−1, 1]), its remainder coefficient is taken over the whole piece, and
|p − z| ≤ max|g| / min φ. Exponential: the same with g(v) = p(v) + ln 2t(v), directly. A polynomial
is bounded by the sum of its Chebyshev coefficients.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

import numpy as np
import pytest
from flint import arb, arb_series, ctx

from discreet.errors import InsecureNoise
from discreet.trusted.noise import tables as module
from discreet.trusted.noise.kernels import CENTRE, compiled_kernel, in_numpy
from discreet.trusted.noise.tables import (
    DEGREE,
    FIRST_EXPONENT,
    FRACTION_BITS,
    LAST_EXPONENT,
    MARGIN,
    ROWS,
    Tail,
    tables,
)

TERMS = 16
PIECES = [
    (e, j) for e in range(FIRST_EXPONENT, LAST_EXPONENT + 1) for j in range(1 << FRACTION_BITS)
]
UNIT = arb(2) ** -53


@pytest.fixture(autouse=True)
def _precision():
    before = ctx.prec, ctx.cap
    ctx.prec, ctx.cap = 200, TERMS + 1
    yield
    ctx.prec, ctx.cap = before


@cache
def power_in_chebyshev(power: int) -> list[tuple[int, int]]:
    """v^n = 2^(1−n) Σ C(n, i) T_{n−2i}, the T_0 term halved: pairs (index, numerator over 2^n)."""
    from math import comb

    return [
        (power - 2 * i, comb(power, i) * (1 if power == 2 * i else 2))
        for i in range(power // 2 + 1)
    ]


def largest(coefficients: list[arb]) -> arb:
    """An upper bound of |Σ a_k v^k| on [−1, 1]."""
    spectrum = [arb(0)] * len(coefficients)
    for power, coefficient in enumerate(coefficients):
        for index, numerator in power_in_chebyshev(power):
            spectrum[index] += coefficient * numerator / 2**power
    return sum((abs(c) for c in spectrum), arb(0))


def expansion(tail: Tail, row: np.ndarray, middle: arb, width: arb, start: arb) -> list[arb]:
    """Taylor coefficients of g about v = start."""
    v = arb_series([start, 1])
    p = arb_series([0])
    for coefficient in row[DEGREE::-1]:
        p = p * (v / 64) + arb(float(coefficient))
    t = middle + width * v
    g = (p / arb(2).sqrt()).erfc() / 2 - t if tail is Tail.NORMAL else p + (2 * t).log()
    return [g[k] for k in range(TERMS + 1)]


def approximation_error(tail: Tail, row: np.ndarray, middle: arb, width: arb) -> arb:
    """A: an upper bound of |p − z| over the piece."""
    centre = expansion(tail, row, middle, width, arb(0))[:TERMS]
    remainder = expansion(tail, row, middle, width, arb(0, 1))[TERMS]
    error = largest(centre) + abs(remainder)
    if tail is Tail.EXPONENTIAL:
        return error
    highest = (
        sum((abs(arb(float(c))) / 64**k for k, c in enumerate(row[: DEGREE + 1])), arb(0))
        + arb(2) ** -30
    )
    # so z ≤ highest on the piece, and |p| ≤ highest
    assert (highest / arb(2).sqrt()).erfc() / 2 < middle - width
    density = (-(highest**2) / 2).exp() / (2 * arb.pi()).sqrt()
    return error / density


def horner_error(row: np.ndarray, half: arb) -> tuple[arb, arb]:
    """H and max|ẑ|, from |fl(a·b)| ≤ (1+2**-53)|ab| and the same for sums;
    a fused step errs less.
    """
    error, size = arb(0), abs(arb(float(row[DEGREE])))
    for coefficient in row[DEGREE - 1 :: -1]:
        product = half * (size + error)
        error = (
            half * error
            + UNIT * product
            + UNIT * (product * (1 + UNIT) + abs(arb(float(coefficient))))
        )
        size = half * size + abs(arb(float(coefficient)))
    return error, size + error


def needed(tail: Tail, row: np.ndarray, low: arb, high: arb, approximation: arb) -> arb:
    """(1 + 2**-20)·(A + H + I + 2**-51·max|ẑ|): what the theorem in tables.py asks of a margin."""
    steepness = (arb.pi() / 2).sqrt() if tail is Tail.NORMAL else arb(1)
    reach = UNIT * high + arb(2) ** -64  # |t − float(T)·2**-64| over the cell
    image = steepness * reach / (low - reach)
    rounding, size = horner_error(row, arb(2) ** -6)
    return (1 + arb(2) ** -20) * (approximation + rounding + image + 4 * UNIT * size)


def piece_needs(tail: Tail, row: np.ndarray, exponent: int, fraction: int) -> arb:
    scale = arb(2) ** (exponent - 64)
    middle, width = scale * (1 + arb(2 * fraction + 1) / 64), scale / 64
    return needed(
        tail, row, middle - width, middle + width, approximation_error(tail, row, middle, width)
    )


@pytest.mark.slow
@pytest.mark.parametrize("tail", list(Tail))
def test_every_piece_is_enclosed(tail):
    table = tables()[tail]
    assert table.shape == (ROWS, 8)
    for (exponent, fraction), row in zip(PIECES, table[1:-1], strict=True):
        proven = piece_needs(tail, row, exponent, fraction)
        assert proven <= float(row[MARGIN]), (exponent, fraction)
    half = arb(0.5)
    # z(½) = 0 = the last polynomial
    assert needed(tail, table[-1], half, half, arb(0)) <= float(table[-1, MARGIN])
    assert not table[-1, : DEGREE + 1].any()
    assert table[0, MARGIN] == np.inf


@pytest.mark.parametrize("tail", list(Tail))
@pytest.mark.parametrize("column", range(DEGREE + 1))
def test_the_proof_refuses_a_corrupted_coefficient(tail, column):
    row = tables()[tail][-2].copy()
    row[column] += 2.0**-48 * 64**column
    assert not piece_needs(tail, row, *PIECES[-1]) <= float(row[MARGIN])


@pytest.mark.parametrize("tail", list(Tail))
def test_margins_are_below_the_design_limit(tail):
    table = tables()[tail]
    for (exponent, fraction), row in zip(PIECES, table[1:-1], strict=True):
        smallest_t = 2.0 ** (exponent - 64) * (1 + fraction / 32)
        z = abs(row[0]) - 2 * abs(row[1]) / 64
        assert row[MARGIN] < 2.0**-44 * (1 + max(z, 0.0)) + 4 * 2.0**-64 / smallest_t


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [in_numpy, compiled_kernel()], ids=["numpy", "numba"])
def test_kernels_read_row_and_coordinate_exactly(kernel):
    """A table that returns its own row number, and one that returns u, show how a word is read."""
    rng = np.random.default_rng(1)
    powers = np.array([1 << e for e in range(63)], dtype=np.uint64)
    shifts = rng.integers(0, 63, 4000).astype(np.uint64)
    top = np.array([2**63 - 1, 2**63 - 512, 2**63 - 513], dtype=np.uint64)
    words = np.concatenate(
        [
            powers,
            powers - np.uint64(1),
            powers + np.uint64(1),
            rng.integers(0, 2**63, 4000, dtype=np.uint64) >> shifts,
            top,
        ]
    )
    rows, local = np.zeros((ROWS, 8)), np.zeros((ROWS, 8))
    rows[:, 0], local[:, 1] = np.arange(ROWS), 2.0**52
    row, coordinate = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    assert kernel(words, rows, 1.0, 0.25, 0.0, row) == 0
    assert kernel(words, local, 1.0, 2.0**47, 0.0, coordinate) == 0
    for word, r, c in zip(words.tolist(), row.tolist(), coordinate.tolist(), strict=True):
        nearest = int(float(word))
        if nearest < 1 << FIRST_EXPONENT:
            assert r == 0
            continue
        exponent, fraction = divmod(r - 1, 32)
        mantissa = (1 << 52) + (2 * fraction + 1) * (1 << 46) + (c - (1 << 47))
        assert mantissa << (exponent + FIRST_EXPONENT) == nearest << 52
    assert CENTRE == 1 + 1 / 64


def test_another_table_is_refused(monkeypatch):
    content = resources.files("discreet.trusted.noise").joinpath("tables.npy").read_bytes()
    assert hashlib.sha256(content).hexdigest() == module.SHA256
    monkeypatch.setattr(module, "SHA256", "0" * 64)
    with pytest.raises(InsecureNoise, match="proven"):
        module.tables.__wrapped__()
