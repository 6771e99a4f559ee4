"""What thresholded counts of undeclared keys cost:
the noise's own loss, and δ for the keys that only one neighbour has.

Theorem.  `ThresholdedCounts` is as private as its noise on counts of the stated sensitivity,
          outside an event of probability at most δ under both neighbours, with k = the rows of one
          unit, T the threshold, N the noise and
              δ = max( P(N ≥ T − k), 1 − P(N < T − 1)^k ).
Proof.    Call keys that both neighbours have common. A key that only one of them has, has all its
          rows from the unit that differs: if such keys have c₁, …, c_m ≥ 1 rows, Σc_j ≤ k, one of
          them is shown with probability p = 1 − Π P(N < T − c_j). This holds on either side, under
          AddRemove (one side has no such key) and Replace (both may). Given that none is shown,
          what is shown are the common keys, whose noise is independent of that event; on their
          counts the noise has its own guarantee. If p and p′ differ between the sides, let a coin
          also call a failure on the side with the smaller one, so that failures have the same
          probability max(p, p′) on both sides: that is a price (docs/theory/ledger.md). The worst
          p: N is log-concave on the grid, so g(c) = −ln P(N < T − c) is convex in c, and rising.
          For m keys Σg(c_j) is largest at (k−m+1, 1, …, 1), and g(k−m+1) + (m−1)·g(1) is convex in
          m: largest at m = 1 or m = k.
Checked.  tests/claims/test_open_keys.py::test_the_worst_split_is_one_key_or_all_different_keys,
          tests/claims/test_open_keys.py::test_hockey_sticks_of_all_neighbours
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet import plain
from discreet.enclosure import enclose, normal_tail
from discreet.exact import float_up
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.theorems import gaussian_loss, pure_loss


def tail(ball: Any, noise: GaussianNoise | GeometricNoise, steps: int) -> Any:
    """P(N ≥ steps) of the noise that is drawn, in grid steps, as a ball.

    Gaussian noise is s·Z rounded to the nearest whole number, so N ≥ t means s·Z > t − ½. Geometric
    noise has P(N ≥ t) = b^t/(1+b) for t ≥ 1, b = exp(−1/s), and the rest follows by symmetry.
    """
    if isinstance(noise, GaussianNoise):
        return normal_tail(ball, (ball(2 * steps - 1) / 2) / ball(noise.steps))
    if steps <= 0:
        return 1 - tail(ball, noise, 1 - steps)
    return (-ball(steps) / ball(noise.spread)).exp() / (1 + (-1 / ball(noise.spread)).exp())


@plain.remembered(4096)
def show_bounds(
    noise: GaussianNoise | GeometricNoise, threshold: int, rows: int
) -> tuple[Fraction, Fraction]:
    """Bounds of P(a key of `rows` rows is shown)."""
    return enclose(lambda ball: tail(ball, noise, threshold - (rows << noise.refinement)))


@plain.remembered(4096)
def failure_bounds(
    noise: GaussianNoise | GeometricNoise, threshold: int, rows: int
) -> tuple[Fraction, Fraction]:
    """Bounds of δ: the probability that some key is shown which one unit of `rows` rows alone
    holds, at its worst.
    """
    together = show_bounds(noise, threshold, rows)
    apart = enclose(
        lambda ball: (
            -(rows * (-tail(ball, noise, threshold - (1 << noise.refinement))).log1p()).expm1()
        )
    )
    return max(together[0], apart[0]), max(together[1], apart[1])


def failure_delta(mechanism: ThresholdedCounts) -> Fraction:
    """The δ of a mechanism, rounded up to a float."""
    rows = mechanism.sensitivity.rows
    return Fraction(float_up(failure_bounds(mechanism.noise, mechanism.threshold, rows)[1]))


def thresholded_loss(mechanism: ThresholdedCounts) -> Loss:
    """The noise's own loss, but for δ (the theorem above)."""
    noise = mechanism.noise
    own = gaussian_loss(noise) if isinstance(noise, GaussianNoise) else pure_loss(noise)
    return replace(own, delta=failure_delta(mechanism))
