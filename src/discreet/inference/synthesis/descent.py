"""The least of a smooth function of many numbers, by L-BFGS: steps along the inverse of a curvature
that the last gradients tell, shortened or lengthened until they meet the weak Wolfe conditions.

Written out because its vectors are short: linear algebra in threads takes twenty times as long
waiting for them than it computes, and what a fit gives would depend on how many there are.

Reference.  Nocedal and Wright, Numerical Optimization (2006), algorithm 7.4; the search for a step
            by halving and doubling is that of Lewis and Overton (2013).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from discreet.inference.results.laws import Array

MEMORY = 20  # gradients that are kept
LEAST_GRADIENT, LEAST_FALL = 1e-5, 1e-12
ENOUGH, FLATTER = 1e-4, 0.9  # of the slope: how far a step falls, and how much slope it leaves
MOST_TRIES = 20

Loss = Callable[[Array], tuple[float, Array]]


def least(loss: Loss, start: Array, iterations: int, done: Callable[[list[float]], bool]) -> Array:
    """Where `loss`, which gives its value and gradient, is least; ends after so many steps, where
    nothing falls, or where `done` says so of the values of all steps.
    """
    point, (value, gradient) = start, loss(start)
    kept: deque[tuple[Array, Array, float]] = deque(maxlen=MEMORY)
    values: list[float] = []
    for _ in range(iterations):
        if np.abs(gradient).max(initial=0.0) <= LEAST_GRADIENT:
            break
        direction = -_over_curvature(gradient, kept)
        if not direction @ gradient < 0:
            kept.clear()
            direction = -gradient
        first = 1.0 if kept else min(1.0, 1.0 / float(np.abs(gradient).sum()))
        moved, found, slope = _step(loss, point, value, gradient, first * direction)
        if not found < value - LEAST_FALL * max(abs(value), 1.0):
            break
        change = slope - gradient
        bent = float(change @ (moved - point))
        if bent > 1e-10 * float(change @ change):
            kept.append((moved - point, change, bent))
        point, value, gradient = moved, found, slope
        values.append(value)
        if done(values):
            break
    return point


def _over_curvature(gradient: Array, kept: deque[tuple[Array, Array, float]]) -> Array:
    """The gradient over the curvature that the last steps saw: two loops over them."""
    left, shares = gradient.copy(), []
    for step, change, bent in reversed(kept):
        share = float(step @ left) / bent
        left -= share * change
        shares.append(share)
    if kept:
        _, change, bent = kept[-1]
        left *= bent / float(change @ change)
    for (step, change, bent), share in zip(kept, reversed(shares), strict=True):
        left += step * (share - float(change @ left) / bent)
    return left


def _step(
    loss: Loss, point: Array, value: float, gradient: Array, direction: Array
) -> tuple[Array, float, Array]:
    """The point after a step along a direction, its value and its gradient."""
    slope, length = float(gradient @ direction), 1.0
    low, high = 0.0, np.inf
    best = point, value, gradient
    for _ in range(MOST_TRIES):
        moved = point + length * direction
        found, there = loss(moved)
        if not found <= value + ENOUGH * length * slope:
            high = length
        else:
            best = moved, found, there
            if there @ direction >= FLATTER * slope:
                break
            low = length
        length = (low + high) / 2 if high < np.inf else 2 * low
    return best
