"""The lectures' one-shot output perturbation (reference.md G2): NOT a private mechanism.

For teaching and comparison, on plain arrays alone.

It adds noise in proportion to the largest influence that a row of *this* data set has on its
M-estimate. That number is itself computed from the data without noise, and neighbours can have very
different ones; no finite sample has a guarantee (docs/theory/output-perturbation.md has the
counterexample). So nothing here takes a session, reads a ledger or gives a `Release`, and every
result says ``certified=False``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.errors import InvalidParameter, NoTheorem
from discreet.inference.results.laws import Array

LARGEST_ROUNDS = 500


@dataclass(frozen=True)
class UncertifiedEstimate:
    """What the lectures' recipe gives: not private, whatever ε and δ say."""

    params: Array
    noise_sd: float
    epsilon: float
    delta: float
    certified: Literal[False] = False

    def __str__(self) -> str:
        values = ", ".join(f"{value:.6g}" for value in self.params)
        return (
            f"NOT CERTIFIED as private (asymptotic recipe, reference.md G2): {values}; "
            f"noise of standard deviation {self.noise_sd:.3g} was added"
        )


def output_perturbation(
    rows: Any, response: Any, noise: Any, *, epsilon: float, delta: float, c: float = 1.345
) -> UncertifiedEstimate:
    """Huber's regression of plain arrays plus γ·5√(2 ln n·ln(1/δ))/(εn) times the standard normal
    numbers `noise` (one for each column).

    Method.     γ is the largest norm of the influence function H⁻¹ψ(r)x over the rows, H the mean
                of ψ′xxᵀ, at the estimate; the scale is 1.
    Validity.   None as a privacy guarantee (reference.md G2): use `dp.robust`, which has one.
    Reference.  Avella-Medina 2021; reference.md G2.
    """
    _refuse(rows, response)
    x, y, z = _numbers(rows, "rows"), _numbers(response, "response"), _numbers(noise, "noise")
    x = x.reshape(len(y), -1) if y.ndim == 1 and len(y) and x.size % len(y) == 0 else x
    if y.ndim != 1 or x.ndim != 2 or len(x) != len(y) or len(y) < 2 or z.shape != (x.shape[1],):
        raise InvalidParameter(
            "output_perturbation",
            "the arrays do not fit together",
            "it needs n rows, n responses and one noise number a column",
            "pass arrays of shapes (n, p), (n,) and (p,)",
        )
    if not (
        isinstance(epsilon, (int, float))
        and 0 < epsilon < math.inf
        and isinstance(delta, (int, float))
        and 0 < delta < 1
        and 0.1 <= c <= 10
    ):
        raise InvalidParameter(
            "output_perturbation",
            "epsilon, delta or c is out of range",
            "the recipe divides by epsilon and takes the logarithm of delta",
            "pass for example epsilon=1, delta=1e-6, c=1.345",
        )
    beta = huber_regression(x, y, c)
    gamma = largest_influence(x, y, beta, c)
    spread = gamma * 5 * math.sqrt(2 * math.log(len(y)) * math.log(1 / delta)) / (epsilon * len(y))
    return UncertifiedEstimate(np.asarray(beta + spread * z), spread, float(epsilon), float(delta))


def huber_regression(x: Array, y: Array, c: float) -> Array:
    """The minimiser of Σρ_c(y − xᵀβ), by Newton steps with a search along each."""
    beta = np.linalg.lstsq(x, y, rcond=None)[0]
    for _ in range(LARGEST_ROUNDS):
        rest = y - x @ beta
        gradient = -x.T @ np.clip(rest, -c, c)
        if float(np.abs(gradient).max()) <= 1e-10 * len(y):
            break
        step = np.linalg.lstsq(
            _curvature(x, rest, c) + 1e-9 * np.eye(x.shape[1]), gradient, rcond=None
        )[0]
        before, size = _loss(rest, c), 1.0
        while size > 1e-12 and _loss(
            y - x @ (beta - size * step), c
        ) > before - 1e-4 * size * float(gradient @ step):
            size /= 2
        beta = beta - size * step
    return np.asarray(beta)


def largest_influence(x: Array, y: Array, beta: Array, c: float) -> float:
    """γ = max ‖H⁻¹ψ(r)x‖ over the rows, with H the mean curvature."""
    rest = y - x @ beta
    inverse = np.linalg.pinv(_curvature(x, rest, c) / len(y), hermitian=True)
    return float(np.max(np.linalg.norm((np.clip(rest, -c, c)[:, None] * x) @ inverse, axis=1)))


def _curvature(x: Array, rest: Array, c: float) -> Array:
    return np.asarray((x * (np.abs(rest) <= c)[:, None]).T @ x)


def _loss(rest: Array, c: float) -> float:
    size = np.abs(rest)
    return float(np.where(size <= c, size**2 / 2, c * size - c * c / 2).sum())


def _numbers(values: Any, name: str) -> Array:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameter(
            name,
            "it holds no numbers",
            "this recipe computes on plain arrays",
            "pass an array of numbers",
        ) from None
    if not np.isfinite(array).all():
        raise InvalidParameter(
            name,
            "it holds numbers that are not finite",
            "this recipe computes on plain arrays",
            "leave them out first",
        )
    return array


def _refuse(*values: Any) -> None:
    if any(type(value).__module__.startswith("discreet.") for value in values):
        raise NoTheorem(
            "output perturbation in a session",
            "it has no finite-sample guarantee",
            "neighbouring data sets can have very different influence "
            "(docs/theory/output-perturbation.md), so no ledger can be charged for it",
            "use dp.robust, or pass plain arrays to look at the recipe",
        )
