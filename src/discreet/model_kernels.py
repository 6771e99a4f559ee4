"""Exact sums of estimating equations: weights, gradients and second moments of whole numbers, bit for bit the same in any order.

Matrix products run in float64 BLAS on blocks whose sums of absolute values stay below 2**52 (kernels.py has the theorem); everything between them
is one correctly rounded operation a step (add, multiply, divide, floor) or a table look-up, which every machine computes alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.kernels import Totals
from discreet.queries.families import PSI, PSI_BITS, Family, psi_bound, slope_bound
from discreet.queries.model import LEAN_BITS, WEIGHT_BITS, EstimatingPlan, Metric, Point
from discreet.queries.pieces import UNIT_BITS

GRADIENT_ROWS = 1 << 14  # multipliers of at most 19 bits times 14-bit columns: sums below 2**47
GRAM_ROWS = 1 << 12  # 12 + 14 + 14 bits: sums of at most 2**52
Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class ModelData:
    """The rows of a model: int16 columns (rows × columns) and the response, on its grid (int32) or in units of ψ."""

    matrix: npt.NDArray[np.int16]
    response: npt.NDArray[np.int32]


def row_weights(matrix: npt.NDArray[np.int16], metric: Metric) -> npt.NDArray[np.int32]:
    """⌊2**WEIGHT_BITS·min(1, R²/‖zq‖²)⌋, never above the real number.

    Theorem.  The result v satisfies v·‖z‖ ≤ 2**WEIGHT_BITS·R·2**shift and v·‖z‖² ≤ 2**WEIGHT_BITS·R²·4**shift.
    Proof.    ‖z‖ ≤ 2**shift·‖zq‖ since zq rounds up. v ≤ 2**WEIGHT_BITS·min(1, R²/‖zq‖²): the float quotient is off by at most a factor 1+2**-53
              and is lowered by 2**-50 before the floor. If ‖zq‖ ≤ R the first bound is v‖zq‖ ≤ 2**WEIGHT_BITS·R, else R²/‖zq‖ ≤ R.
    Checked.  tests/claims/test_estimating_equations.py::test_weights_never_exceed_their_bound
    """
    transposed = np.array(metric.rows, dtype=np.float64).T
    weights = np.empty(len(matrix), dtype=np.int32)
    top, radius = float(1 << WEIGHT_BITS), float(metric.radius_squared)
    for start in range(0, len(matrix), GRADIENT_ROWS):
        z = matrix[start : start + GRADIENT_ROWS].astype(np.float64) @ transposed
        np.abs(z, out=z)
        np.ceil(np.ldexp(z, -metric.shift), out=z)
        norms = np.einsum("ij,ij->i", z, z)
        share = np.minimum(1.0, radius / np.maximum(norms, radius))
        weights[start : start + GRADIENT_ROWS] = np.where(norms <= radius, top, np.floor(share * (1 - 2.0**-50) * top))
    return weights


def psi_and_slope(family: Family, point: Point, matrix: Floats, response: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """ψ and ψ′ of the rows of a block, in units of 2**-PSI_BITS."""
    tables = family.tables()
    eta = matrix @ np.array(point.beta, dtype=np.float64)
    if family.residual:
        argument = np.ldexp(response.astype(np.float64), point.eta_bits) - eta
    else:
        argument = eta
    place = np.clip(np.floor(argument * point.per_scale + 0.5), -tables.reach, tables.reach).astype(np.int64) + tables.reach
    slope = tables.slope[place].astype(np.int64)
    if family.residual:
        return tables.psi[place].astype(np.int64), slope
    rest = np.clip(np.clip(response.astype(np.int64), 0, PSI) - tables.mean[place], -tables.clip, tables.clip)
    return tables.shift[place] - rest, slope


def gradient_sums(data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point) -> tuple[Objects, int]:
    """Σ m·x, m = wψ·2**(WEIGHT_BITS−PSI_BITS)… cut toward zero, and Σ ψ²."""
    totals = Totals((data.matrix.shape[1],))
    squares = 0
    for start in range(0, len(data.matrix), GRADIENT_ROWS):
        rows = slice(start, start + GRADIENT_ROWS)
        block = data.matrix[rows].astype(np.float64)
        psi, _ = psi_and_slope(family, point, block, data.response[rows])
        product = weights[rows] * psi
        moved = np.where(product < 0, -((-product) >> PSI_BITS), product >> PSI_BITS).astype(np.float64)
        totals.reserve(len(block) << (UNIT_BITS + WEIGHT_BITS + 4))[...] += (moved @ block).astype(np.int64)
        squares += int((psi * psi).sum())
    return totals.total(), squares


def gram_sums(data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan) -> Objects:
    """Σ m·x xᵀ with the multiplier of the plan's part, a whole number from 0 to 2**LEAN_BITS."""
    width = data.matrix.shape[1]
    totals = Totals((width, width))
    for start in range(0, len(data.matrix), GRAM_ROWS):
        rows = slice(start, start + GRAM_ROWS)
        block = data.matrix[rows].astype(np.float64)
        multiplier = _multiplier(plan, weights[rows].astype(np.int64), block, data.response[rows]).astype(np.float64)
        totals.reserve(len(block) << (2 * UNIT_BITS + LEAN_BITS))[...] += ((block * multiplier[:, None]).T @ block).astype(np.int64)
    return totals.total()


def _multiplier(plan: EstimatingPlan, weights: npt.NDArray[np.int64], block: Floats, response: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    if plan.family is None or plan.point is None:
        return weights >> (WEIGHT_BITS - LEAN_BITS)
    psi, slope = psi_and_slope(plan.family, plan.point, block, response)
    if plan.part == "curvature":
        return np.asarray((weights * slope << LEAN_BITS) // (slope_bound(plan.family) << WEIGHT_BITS))
    share = (weights * np.abs(psi) << LEAN_BITS) // (psi_bound(plan.family) << WEIGHT_BITS)
    return np.asarray(share * share >> LEAN_BITS)


def estimating_sums(data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan) -> Any:
    """What `EstimatingPlan` asks for."""
    if plan.part == "gradient":
        assert plan.family is not None
        assert plan.point is not None
        return gradient_sums(data, weights, plan.family, plan.point)
    return gram_sums(data, weights, plan)
