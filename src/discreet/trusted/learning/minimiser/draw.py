"""The draw of a perturbed minimiser: noise b, a certified minimiser, noise that covers its error.

Theorem.  Given ideal bits the answer is a function of (θ̂, fresh noise), ‖θ̂ − θ*(b)‖ is at most
          (tolerance + half the diagonal of b's grid)/Λ, and b, before it is rounded, has exactly
          the law of the spec.
Proof.    G(θ) = Σwψz + Λθ is Λ-strongly monotone, so ‖θ̂ − θ*‖ ≤ ‖G(θ̂) + b‖/Λ; `solved` gives a θ̂
          only where the bound of that norm is certainly no larger: it is compared as whole
          numbers, with the gradient's own error added. It always gives one: a step of 1/(Λ + ns)
          shortens G + b by the factor 1 − Λ/(Λ + ns) at least, and is taken where no Newton step
          does so by a tenth; both are so in truth and not only as computed, since a gradient that
          is not 64 times its error is taken without any. Where it begins and what curvature is
          lent decide nothing but the time. Gaussian noise is `sampling.draw`'s, the other
          `euclidean_laplace`'s.
Checked.  tests/claims/test_perturbed_minimisers.py, tests/claims/test_minimiser_passes.py
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from discreet.enclosure import precision
from discreet.exact import sqrt_up
from discreet.sensitivity import L2
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.specs.mechanisms.minimiser import CLEAR, NOISE_BITS, PerturbedMinimiser
from discreet.trusted.learning.minimiser.rows import SUM_BITS, LossRows
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source

Floats = npt.NDArray[np.float64]
THETA_BITS = 80  # iterates are whole numbers of 2**-80
SHORTER, HALVED, SEARCHES = 0.9, 0.5, 60
MANY_ROWS = 1 << 17
PART_ROWS, ROUGH = 1 << 16, 16  # of many rows, and how far that start is from its own minimiser
_GUARD_BITS = 192


def minimised(mechanism: PerturbedMinimiser, rows: LossRows, source: Source) -> tuple[int, ...]:
    """θ̂ in steps, with noise."""
    noise = (
        _noise(mechanism, mechanism.spread, source)
        if mechanism.way == "objective"
        else [0] * mechanism.size
    )
    linear = [Fraction(value, 1 << NOISE_BITS) for value in noise]
    theta = solved(
        rows, linear, mechanism.penalty, mechanism.tolerance, mechanism.sensitivity.curvature
    )
    steps = (round(value / mechanism.step) for value in theta)
    cover = _noise(mechanism, mechanism.cover, source)
    return tuple(step + extra for step, extra in zip(steps, cover, strict=True))


def _noise(mechanism: PerturbedMinimiser, spread: Fraction, source: Source) -> list[int]:
    if mechanism.law == "laplace":
        return euclidean_laplace(spread, mechanism.size, source)
    law = GaussianNoise(L2(Fraction(1)), spread, 0)
    return [int(value) for value in draw(law, mechanism.size, source)]


def solved(
    rows: LossRows,
    linear: list[Fraction],
    penalty: Fraction,
    tolerance: Fraction,
    curvature: Fraction,
) -> list[Fraction]:
    """A θ̂ with ‖G(θ̂) + b‖ ≤ tolerance, certainly. Where there are many rows, a part of them says
    where to begin, and lends its curvature.
    """
    theta, bent, few = [Fraction(0)] * len(linear), None, rows.part(PART_ROWS)
    if few is not None:
        share = Fraction(few.count, rows.count)
        part = _Problem(few, [share * value for value in linear], share * penalty, curvature)
        theta, found = _descended(part, theta, Fraction(math.isqrt(few.count), ROUGH))
        bent = found.bent / float(share)
    return _descended(_Problem(rows, linear, penalty, curvature), theta, tolerance, bent)[0]


def _descended(
    problem: _Problem, theta: list[Fraction], tolerance: Fraction, lent: Floats | None = None
) -> tuple[list[Fraction], _Found]:
    """The first iterate whose gradient is certainly no longer than `tolerance`.

    A Newton step is taken whole where it makes the gradient shorter than any before, else as far
    as the objective falls. Curvature that was lent, or for many rows an earlier one, is used while
    each step halves the gradient.
    """
    found, fresh = problem.at(theta, tolerance, curved=lent is None), lent is None
    bent, best = found.bent if lent is None else lent, found.length
    while not found.short:
        step = _newton(bent, found.gradient, found.gradient / problem.steepest)
        trial = _moved(theta, step)
        there = problem.at(trial, tolerance, curved=fresh and not problem.many)
        if there.short or there.length <= (SHORTER if fresh else HALVED) * best:
            theta, found, best = trial, there, there.length
            fresh, bent = there.curved, there.bent if there.curved else bent
        elif fresh:
            theta = _searched(problem, theta, found.gradient, step)
            found = problem.at(theta, tolerance)
            bent = found.bent
        else:
            found, fresh = problem.at(theta, tolerance), True
            bent = found.bent
    return theta, found


def _searched(
    problem: _Problem, theta: list[Fraction], gradient: Floats, step: Floats
) -> list[Fraction]:
    """As far along a step as the objective falls, at a slope of at most half of the first.

    The slope never rises along a line, and it is 0 at the lowest place. Where floats do not find
    it, a step of 1/(Λ + ns) does.
    """
    least = _moved(theta, gradient / problem.steepest)
    slope, low, high, length = float(gradient @ step), 0.0, math.inf, 1.0
    for _ in range(SEARCHES if slope > 0 else 0):
        trial = _moved(theta, length * step)
        found = float(problem.at(trial, Fraction(0), curved=False).gradient @ step)
        if 0 <= found <= HALVED * slope:
            return trial
        low, high = (length, high) if found > 0 else (low, length)
        length = 4 * low if high == math.inf else (low + high) / 2 if low else high / 4
    return least


def _newton(bent: Floats, gradient: Floats, otherwise: Floats) -> Floats:
    """A Newton step; `otherwise` where floats have none: a failure would tell of the rows."""
    try:
        step: Floats = np.asarray(np.linalg.solve(bent, gradient), dtype=np.float64)
    except np.linalg.LinAlgError:
        return otherwise
    return step if np.isfinite(step).all() else otherwise


def _moved(theta: list[Fraction], step: Floats) -> list[Fraction]:
    """θ less a step, on its grid."""
    unit = 1 << THETA_BITS
    moves = [Fraction(round(Fraction(move) * unit), unit) for move in step.tolist()]
    return [value - move for value, move in zip(theta, moves, strict=True)]


@dataclass(frozen=True, slots=True)
class _Found:
    """G(θ) + b at a θ, whether it is certainly short, and the curvature there."""

    gradient: Floats
    short: bool
    curved: bool
    bent: Floats

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.gradient))


class _Problem:
    """The objective: rows, b and Λ; `steepest` bounds its curvature, which is dear where there are
    `many` rows.
    """

    def __init__(
        self, rows: LossRows, linear: list[Fraction], penalty: Fraction, curvature: Fraction
    ) -> None:
        self._rows, self._linear, self._penalty = rows, linear, penalty
        self._unit = 1 / (rows.metric.bound * (1 << SUM_BITS))
        scaled = np.array([[float(entry) for entry in row] for row in rows.metric.rows])
        self._whole, self._scaled = rows.metric.matrix, scaled / float(rows.metric.bound)
        self.steepest = float(penalty + rows.count * curvature)
        self.many = rows.count >= MANY_ROWS

    def at(self, theta: list[Fraction], tolerance: Fraction, *, curved: bool = True) -> _Found:
        sums, error, bent = self._rows.gradient(theta, curved=curved)
        squared, exact = self._with(sums, theta)
        short = sqrt_up(squared) + error <= tolerance
        if not short and squared <= (CLEAR * error) ** 2:
            squared, exact = self._with(self._rows.exactly(theta), theta)
            short = sqrt_up(squared) <= tolerance
        if curved:
            bent = self._scaled @ bent @ self._scaled.T + float(self._penalty) * np.eye(len(theta))
        return _Found(np.array([float(value) for value in exact]), short, curved, bent)

    def _with(self, sums: Any, theta: list[Fraction]) -> tuple[Fraction, list[Fraction]]:
        """‖G + b‖² and G + b, of the rows' sums."""
        exact = [
            moved * self._unit + self._penalty * value + given
            for moved, value, given in zip(self._whole @ sums, theta, self._linear, strict=True)
        ]
        return sum((value**2 for value in exact), Fraction(0)), exact


def euclidean_laplace(spread: Fraction, size: int, source: Source) -> list[int]:
    """A vector of density ∝ exp(−‖z‖₂/spread), each coordinate rounded to the nearest whole number.

    Theorem.  Given ideal bits the vector before rounding has exactly this law.
    Proof.    In polar coordinates the law is a uniform direction, which independent normal numbers
              have, times a length of density ∝ r^(size−1)·exp(−r/spread): spread times a sum of
              `size` exponential numbers, −ln of a product of uniform ones. Every uniform number is
              known to lie in a cell of its first bits; all are refined by 64 bits until the ball of
              each coordinate lies between two halves.
    Checked.
        tests/claims/test_perturbed_minimisers.py::test_euclidean_laplace_noise_follows_its_law
    """
    words, length = [source.bits(64) for _ in range(2 * size)], 64
    while True:
        with precision(length + _GUARD_BITS):
            found = _coordinates(spread, words, length, size)
        if found is not None:
            return found
        words, length = [(word << 64) | source.bits(64) for word in words], length + 64


def _coordinates(spread: Fraction, words: list[int], length: int, size: int) -> list[int] | None:
    """The rounded coordinates that all uniform numbers in these cells share, or None."""
    if not all(words):
        return None
    one = arb(2) ** -length
    cells = [(arb(word) * one, arb(word + 1) * one) for word in words]
    radius = -sum(((low.log()).union(high.log()) for low, high in cells[:size]), arb(0))
    # a normal number: its tail from the cell but for the first bit, its sign from that bit
    normals: list[Any] = []
    for word in words[size:]:
        tail, half = word & ((1 << (length - 1)) - 1), arb(2) ** (1 - length)
        if tail == 0:
            return None
        ends = [(arb(end) * half).erfcinv() for end in (tail, tail + 1)]
        value = ends[0].union(ends[1])
        normals.append(-value if word >> (length - 1) else value)
    norm = sum((value * value for value in normals), arb(0)).sqrt()
    scale = arb(spread.numerator) / arb(spread.denominator) * radius / norm
    whole = [(scale * value + arb(0.5)).floor().unique_fmpz() for value in normals]
    return None if any(value is None for value in whole) else [int(value) for value in whole]
