"""Exact sums of estimating equations: weights, gradients and second moments of whole numbers, bit for bit the same in any order.

Matrix products run in float64 BLAS on blocks whose sums of absolute values stay below 2**52 (kernels.py has the theorem); everything between them
is one correctly rounded operation a step (add, multiply, divide, floor) or a table look-up, which every machine computes alike.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.kernels import Totals
from discreet.queries.families import GAIN_BITS, PSI_BITS, Family, clipped_rest, psi_bound, slope_bound
from discreet.queries.model import LEAN_BITS, WEIGHT_BITS, EstimatingPlan, Metric, Point
from discreet.queries.pieces import UNIT_BITS

GRADIENT_ROWS = 1 << 14  # multipliers of at most 19 bits times 14-bit columns: sums below 2**47
LOOP_ROWS = 1 << 16  # of a block of the compiled loop: sums below 2**49
COMPILED_ROWS = 1 << 17  # from this many rows on, compiling pays
ONE_THREAD = 1 << 18  # multiplications up to which BLAS does not start threads, which would wait for each other on a busy machine
LEAST_ROWS, FEW_BLOCKS, LOT = 64, 8, 256
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
    size = block_rows(len(transposed) * transposed.shape[1], GRADIENT_ROWS)

    def weigh(start: int) -> None:
        z = matrix[start : start + size].astype(np.float64) @ transposed
        np.abs(z, out=z)
        z *= 2.0**-metric.shift  # exact: a power of two
        np.ceil(z, out=z)
        norms = np.einsum("ij,ij->i", z, z)
        share = np.minimum(1.0, radius / np.maximum(norms, radius))
        weights[start : start + size] = np.where(norms <= radius, top, np.floor(share * (1 - 2.0**-50) * top))

    in_threads(weigh, range(0, len(matrix), size))
    return weights


def block_rows(products: int, most: int) -> int:
    """Rows of a block with `products` multiplications a row: few enough for BLAS to stay on one thread, where blocks run on threads of our own."""
    return max(LEAST_ROWS, min(most, ONE_THREAD // max(products, 1)))


def in_threads(work: Callable[[int], Any], starts: range) -> list[Any]:
    """work(start) for every block, on several threads where there are many; results in the order of the blocks."""
    if len(starts) < FEW_BLOCKS:
        return [work(start) for start in starts]
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        return list(pool.map(work, starts))


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
    return tables.shift[place] - clipped_rest(tables, np.clip(response.astype(np.int64), 0, tables.top), place), slope


def gradient_sums(data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point) -> tuple[Objects, int]:
    """Σ m·x, m = wψ·2**(WEIGHT_BITS−PSI_BITS)… cut toward zero, and Σ ψ²: by a compiled pass where there are many rows, else by `numpy_gradient`."""
    ready = gradient_loop.cache_info().currsize > 0
    loop = gradient_loop() if len(data.matrix) >= (COMPILED_ROWS >> 4 if ready else COMPILED_ROWS) else None
    return numpy_gradient(data, weights, family, point) if loop is None else compiled_gradient(loop, data, weights, family, point)


def numpy_gradient(data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point) -> tuple[Objects, int]:
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


def compiled_gradient(loop: Loop, data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point) -> tuple[Objects, int]:
    """The same numbers by one pass over two bytes a cell, in blocks on several threads; sums of whole numbers do not depend on the order.

    Checked.  tests/claims/test_estimating_equations.py::test_the_compiled_pass_is_bit_identical
    """
    tables, beta = family.tables(), np.array(point.beta, dtype=np.float64)
    numbers = (2.0**point.eta_bits if family.residual else 0.0, point.per_scale, float(tables.reach), tables.clip, tables.top)
    arrays = (tables.psi, tables.slope, tables.slope, np.zeros(1, dtype=np.int64)) if family.residual else (tables.slope, tables.mean, tables.shift, tables.gain)

    def block(start: int) -> tuple[Floats, int]:
        rows, sums = slice(start, start + LOOP_ROWS), np.zeros(len(beta))
        squares = loop(data.matrix[rows], data.response[rows], weights[rows], beta, numbers, arrays, sums)
        return sums, squares

    totals, squares = Totals((len(beta),)), 0
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        for start, (sums, part) in zip(range(0, len(data.matrix), LOOP_ROWS), pool.map(block, range(0, len(data.matrix), LOOP_ROWS)), strict=True):
            totals.reserve(min(LOOP_ROWS, len(data.matrix) - start) << (UNIT_BITS + WEIGHT_BITS + 4))[...] += sums.astype(np.int64)
            squares += int(part)
    return totals.total(), squares


Loop = Callable[..., int]


@functools.cache
def gradient_loop() -> Loop | None:
    """The compiled pass, or None where numba cannot be loaded.

    loop(matrix, response, weights, beta, numbers, tables, sums) adds Σ m·x to `sums` and returns Σ ψ², with
    numbers = (2**eta_bits, or 0 for mean families; per_scale; reach; clip; top) and tables = (psi, mean, shift, gain).
    """
    try:
        numba: Any = importlib.import_module("numba")
    except Exception:  # not installed, or broken: numpy gives the same numbers, and a release must not fail for it after its debit
        return None
    # "reassoc" lets sums be reordered, which are exact in any order; what else is computed here is one rounded operation a step, with no sum to reorder
    options = {"nogil": True, "fastmath": {"reassoc"}}
    try:
        compiled: Loop = numba.njit(cache=True, **options)(_gradient_rows)
    except RuntimeError:  # no writable place for the compiled code
        compiled = numba.njit(**options)(_gradient_rows)
    return compiled


def _gradient_rows(matrix: Any, response: Any, weights: Any, beta: Any, numbers: Any, tables: Any, sums: Any) -> int:
    response_unit, per_scale, reach, clip, top = numbers
    psi_table, mean, shift, gain = tables
    squares = 0
    for row in range(matrix.shape[0]):
        argument = 0.0
        for column in range(beta.size):
            argument += matrix[row, column] * beta[column]
        if response_unit > 0:
            argument = response[row] * response_unit - argument
        place = int(min(max(math.floor(argument * per_scale + 0.5), -reach), reach)) + int(reach)
        if response_unit > 0:
            psi = int(psi_table[place])
        else:
            rest = ((min(max(int(response[row]), 0), top) - mean[place]) * gain[place]) >> GAIN_BITS
            psi = int(shift[place]) - min(max(rest, -clip), clip)
        squares += psi * psi
        product = int(weights[row]) * psi
        moved = float(-((-product) >> PSI_BITS) if product < 0 else product >> PSI_BITS)
        for column in range(beta.size):
            sums[column] += moved * matrix[row, column]
    return squares


def gram_sums(data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan) -> Objects:
    """Σ m·x xᵀ with the multiplier of the plan's part, a whole number from 0 to 2**LEAN_BITS."""
    width = data.matrix.shape[1]
    totals = Totals((width, width))
    size = block_rows(width * width, GRAM_ROWS)

    def gram(start: int) -> npt.NDArray[np.int64]:
        rows = slice(start, start + size)
        block = data.matrix[rows].astype(np.float64)
        multiplier = _multiplier(plan, weights[rows].astype(np.int64), block, data.response[rows]).astype(np.float64)
        return ((block * multiplier[:, None]).T @ block).astype(np.int64)

    for start in range(0, len(data.matrix), size * LOT):  # a lot of blocks at a time, so that few sums are kept
        for sums in in_threads(gram, range(start, min(start + size * LOT, len(data.matrix)), size)):
            totals.reserve(size << (2 * UNIT_BITS + LEAN_BITS))[...] += sums
    return totals.total()


def _multiplier(plan: EstimatingPlan, weights: npt.NDArray[np.int64], block: Floats, response: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    if plan.family is None or plan.point is None:
        return weights >> (WEIGHT_BITS - LEAN_BITS)
    psi, slope = psi_and_slope(plan.family, plan.point, block, response)
    if plan.part == "curvature":
        return np.asarray((weights * slope << LEAN_BITS) // (slope_bound(plan.family) << WEIGHT_BITS))
    share = (weights * np.abs(psi) << LEAN_BITS) // (psi_bound(plan.family) << WEIGHT_BITS)
    return np.asarray(share * share >> LEAN_BITS)


def residual_counts(data: ModelData, point: Point, edges: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """How many rows have a standardised residual (whole numbers of 1/GRID) below, between and from the edges on.

    Checked.  tests/claims/test_residual_counts.py::test_counts_are_exact_in_any_order_and_on_every_engine
    """
    beta, counts = np.array(point.beta, dtype=np.float64), np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(data.matrix), GRADIENT_ROWS):
        rows = slice(start, start + GRADIENT_ROWS)
        argument = np.ldexp(data.response[rows].astype(np.float64), point.eta_bits) - data.matrix[rows].astype(np.float64) @ beta
        with np.errstate(over="ignore"):
            place = np.floor(argument * point.per_scale + 0.5)
        counts += np.bincount(np.searchsorted(np.array(edges, dtype=np.float64), place, side="right"), minlength=len(counts))
    return counts


def estimating_sums(data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan) -> Any:
    """What `EstimatingPlan` asks for."""
    if plan.part == "gradient":
        assert plan.family is not None
        assert plan.point is not None
        return gradient_sums(data, weights, plan.family, plan.point)
    return gram_sums(data, weights, plan)
