"""Makes src/discreet/trusted/noise/tables.npy and prints the SHA-256 to put into tables.py.

    python tools/make_noise_tables.py

For each piece: Taylor coefficients of z about its middle in ball arithmetic, changed to the
Chebyshev basis, cut after degree 6, changed back and rounded to floats. The margin sums the four
errors of tables.py, each bounded upwards; tests/claims/test_noise_enclosure.py proves them again,
another way.
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
from flint import arb, ctx

from discreet.trusted.noise.tables import (
    DEGREE,
    FIRST_EXPONENT,
    FRACTION_BITS,
    LAST_EXPONENT,
    MARGIN,
    ROWS,
    Tail,
)

TERMS = 18  # Taylor terms about the middle; the next one is below 2**-100
HALF = Fraction(1, 1 << (FRACTION_BITS + 1))
UNIT = Fraction(1, 1 << 53)
SPARE = Fraction(1, 1 << 5)  # the proof in the tests bounds A by another way, which is less tight
TARGET = Path(__file__).parent.parent / "src" / "discreet" / "trusted" / "noise" / "tables.npy"


def chebyshev_polynomials(count: int) -> list[list[int]]:
    """Monomial coefficients of T_0 … T_{count−1}."""
    rows = [[1], [0, 1]]
    while len(rows) < count:
        rows.append([2 * a - b for a, b in zip([0, *rows[-1]], [*rows[-2], 0, 0], strict=True)])
    return rows[:count]


CHEBYSHEV = chebyshev_polynomials(TERMS)


def to_chebyshev(coefficients: list[arb]) -> list[arb]:
    """The Chebyshev coefficients of Σ a_k v^k on [−1, 1]:
    eliminate the leading power again and again.
    """
    rest, result = list(coefficients), [arb(0)] * len(coefficients)
    for k in range(len(rest) - 1, -1, -1):
        result[k] = rest[k] / CHEBYSHEV[k][k]
        for power, factor in enumerate(CHEBYSHEV[k]):
            rest[power] -= result[k] * factor
    return result


def taylor(tail: Tail, t: arb, dt: arb, terms: int) -> list[arb]:
    """Coefficients in v of z(t + dt·v).

    Normal: w = dz/dv = −dt/φ(z) and dw/dv = z·w² (since dφ = −zφ dz). Exponential:
    z = −ln(2t) − ln(1 + (dt/t)·v).
    """
    if tail is Tail.EXPONENTIAL:
        return [-(2 * t).log()] + [(-dt / t) ** k / k for k in range(1, terms)]
    z = [arb(2).sqrt() * (2 * t).erfcinv()]
    w = [-dt * (2 * arb.pi()).sqrt() * (z[0] ** 2 / 2).exp()]
    for k in range(terms - 1):
        square = [sum((w[i] * w[n - i] for i in range(n + 1)), arb(0)) for n in range(k + 1)]
        z.append(w[k] / (k + 1))
        w.append(sum((z[i] * square[k - i] for i in range(k + 1)), arb(0)) / (k + 1))
    return z


def horner_error(coefficients: list[float], half: Fraction) -> tuple[Fraction, Fraction]:
    """(rounding error of Horner's rule on |u| ≤ half, largest |value|),
    with or without fused multiply-add.
    """
    error, size = Fraction(0), abs(Fraction(coefficients[-1]))
    for coefficient in reversed(coefficients[:-1]):
        product = half * (size + error)
        total = product * (1 + UNIT) + abs(Fraction(coefficient))
        error = half * error + UNIT * product + UNIT * total
        size = half * size + abs(Fraction(coefficient))
    return error, size + error


def margin(
    tail: Tail, low: Fraction, high: Fraction, approximation: float, coefficients: list[float]
) -> float:
    """(1 + 2**-20)·(A + H + I + 2**-51·max|ẑ|), rounded up, with SPARE of itself in hand."""
    # 1/φ(z) ≤ √(π/2)/t; √(π/2) < 1.2534
    steepness = Fraction(12534, 10000) if tail is Tail.NORMAL else Fraction(1)
    image = steepness * (UNIT * high + Fraction(1, 1 << 64)) / (low * (1 - Fraction(1, 1 << 19)))
    rounding, largest = horner_error(coefficients, HALF)
    total = Fraction(approximation) + rounding + image + 4 * UNIT * largest
    return math.nextafter(float(total * (1 + Fraction(1, 1 << 20)) * (1 + SPARE)), math.inf)


def piece(tail: Tail, exponent: int, fraction: int) -> list[float]:
    scale = Fraction(2) ** (exponent - 64)
    middle = scale * (1 + Fraction(2 * fraction + 1, 64))
    width = scale * HALF
    t, dt = (arb(x.numerator) / x.denominator for x in (middle, width))
    coefficients = taylor(tail, t, dt, TERMS)
    spectrum = to_chebyshev(coefficients)
    monomials = [
        sum((spectrum[k] * CHEBYSHEV[k][i] for k in range(i, DEGREE + 1)), arb(0))
        for i in range(DEGREE + 1)
    ]
    rounded = [float((m * (1 << 6) ** i).mid()) for i, m in enumerate(monomials)]
    difference = to_chebyshev(
        [
            a - arb(r) / (1 << 6) ** i
            for i, (a, r) in enumerate(
                zip(coefficients, rounded + [0.0] * (TERMS - DEGREE - 1), strict=True)
            )
        ]
    )
    approximation = float(sum((abs(d) for d in difference), arb(0)).upper()) + 2.0**-90
    return [*rounded, margin(tail, middle - width, middle + width, approximation, rounded)]


def half_point(tail: Tail) -> list[float]:
    """The float 2**63: z = 0 there, for cells just below ½."""
    half = Fraction(1, 2)
    return [0.0] * (DEGREE + 1) + [margin(tail, half, half, 0.0, [0.0] * (DEGREE + 1))]


def main() -> None:
    ctx.prec = 200
    rows = np.zeros((2, ROWS, 8), dtype="<f8")
    for tail in Tail:
        rows[tail, 0, MARGIN] = np.inf
        pieces = [
            piece(tail, e, j)
            for e in range(FIRST_EXPONENT, LAST_EXPONENT + 1)
            for j in range(1 << FRACTION_BITS)
        ]
        rows[tail, 1:] = [*pieces, half_point(tail)]
        print(
            f"{tail.name.lower():12s} margin: smallest "
            f"2^{np.log2(rows[tail, 1:, MARGIN].min()):.2f}, at t=1/4 "
            f"2^{np.log2(rows[tail, -33, MARGIN]):.2f}"
        )
    np.save(TARGET, rows)
    print(hashlib.sha256(TARGET.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
