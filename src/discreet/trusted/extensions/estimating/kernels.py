"""Exact sums of estimating equations: weights, gradients and second moments of whole numbers, bit
for bit the same in any order.

Matrix products run in float64 BLAS on blocks whose sums of absolute values stay below 2**52
(kernels.py has the theorem); everything between them is one correctly rounded operation a step
(add, multiply, divide, floor) or a table look-up, which every machine computes alike.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.estimating.batches import absolute_radius
from discreet.specs.estimating.components import UNIT_BITS
from discreet.specs.estimating.equations import LEAN_BITS
from discreet.specs.estimating.families import Family, psi_bound, slope_bound
from discreet.specs.estimating.metric import WEIGHT_BITS, Metric
from discreet.specs.estimating.model import EstimatingPlan, Point
from discreet.specs.estimating.tables import NO_GAIN, PSI_BITS, clipped_rest
from discreet.trusted.engines.kernels import Totals, in_threads
from discreet.trusted.extensions.estimating.loops import (
    GRAM_TILE,
    Loop,
    gradient_loop,
    gram_loop,
    norm_loop,
    place_loop,
)

GRADIENT_ROWS = 1 << 14  # multipliers of at most 19 bits times 14-bit columns: sums below 2**47
LOOP_ROWS = 1 << 16  # of a block of the compiled loop: sums below 2**49
COMPILED_ROWS = 1 << 17  # from this many rows on, compiling pays
GRAM_ROWS = 1 << 12  # 12 + 14 + 14 bits: sums of at most 2**52
# multiplications of one product of matrices up to which BLAS starts no threads:
# they would wait for each other on a busy machine
ONE_THREAD = 1 << 18
ONE_THREAD_VECTOR = 1 << 13  # the same for a matrix times a vector
CACHED_CELLS = 1 << 18  # of a block as float64: it stays in the processor's cache
CHUNK_ROWS = 1 << 14  # rows that one of our own threads takes at a time
LOT = 64  # chunks whose sums are kept before they are added
# rows of a compiled second moment at a time, and their cells: both stay in the processor's cache
LOOP_TILE_ROWS, LOOP_TILE_CELLS = 1 << 9, 1 << 15
PANEL = 32  # columns of a tile of a second moment; tiles below its diagonal are left out
TOP_WEIGHT = float(1 << WEIGHT_BITS)
LOWERED = 1 - 2.0**-50  # makes up for the rounding of a quotient
Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class ModelData:
    """The rows of a model: int16 columns (rows × columns) and the response,
    on its grid (int32) or in units of ψ.
    """

    matrix: npt.NDArray[np.int16]
    response: npt.NDArray[np.int32]


def room_beside(rows: Any) -> Any:
    """Room for a whole number (int32) beside each row: in memory, or on disk where the rows are."""
    in_memory = isinstance(rows, np.ndarray)
    return np.empty(len(rows), dtype=np.int32) if in_memory else rows.beside(np.int32)


def row_weights(matrix: npt.NDArray[np.int16], metric: Metric) -> Any:
    """⌊2**WEIGHT_BITS·min(1, R²/‖zq‖²)⌋, never above the real number.

    Theorem.  The result v satisfies v·‖z‖ ≤ 2**WEIGHT_BITS·R·2**shift and
              v·‖z‖² ≤ 2**WEIGHT_BITS·R²·4**shift.
    Proof.    ‖z‖ ≤ 2**shift·‖zq‖ since zq rounds up. v ≤ 2**WEIGHT_BITS·min(1, R²/‖zq‖²): the float
              quotient is off by at most a factor 1+2**-53 and is lowered by 2**-50 before the
              floor. If ‖zq‖ ≤ R the first bound is v‖zq‖ ≤ 2**WEIGHT_BITS·R, else R²/‖zq‖ ≤ R.
    Checked.  tests/claims/test_estimating_equations.py::test_weights_never_exceed_their_bound
    """
    # exact: a power of two
    scaled = np.ascontiguousarray(
        np.ldexp(np.array(metric.rows, dtype=np.float64), -metric.shift).T
    )
    diagonal = (
        np.diagonal(scaled)
        if scaled.shape[0] == scaled.shape[1]
        and np.count_nonzero(scaled) == np.count_nonzero(np.diagonal(scaled))
        else None
    )
    panels = column_panels(scaled.shape[1], 2 * PANEL)
    weights = room_beside(matrix)
    tiles, loop = (
        tiles_of(matrix.shape[1], min(scaled.shape[1], 2 * PANEL), GRADIENT_ROWS),
        where_it_pays(norm_loop, len(matrix)),
    )

    sure = _sure_length(scaled, metric.radius_squared)
    if sure >= matrix.shape[1] << (2 * UNIT_BITS):  # no row is longer
        for start in range(0, len(matrix), LOOP_ROWS):
            weights[start : start + LOOP_ROWS] = 1 << WEIGHT_BITS
        return weights

    def weigh(start: int) -> None:
        block, z = np.empty(tiles.shape), np.empty((*tiles.shape[:2], scaled.shape[1]))
        for rows in tiles.blocks(start, min(start + CHUNK_ROWS, len(matrix))):
            cells = matrix[rows]
            found = np.full(len(cells), 1 << WEIGHT_BITS, dtype=np.int32)
            _fill(block, cells)
            open_rows = np.flatnonzero(np.vecdot(block, block).reshape(-1)[: len(cells)] > sure)
            if not len(open_rows):
                weights[rows] = found
                continue
            if len(open_rows) < len(cells):
                _fill(block, cells[open_rows])
            stack = slice(0, -(-len(open_rows) // tiles.shape[1]))
            if diagonal is None:
                for panel in panels:
                    np.matmul(block[stack], scaled[:, panel], out=z[stack, :, panel])
            else:
                np.multiply(block[stack], diagonal, out=z[stack])
            found[open_rows] = weights_of(
                z[stack].reshape(-1, scaled.shape[1]),
                len(open_rows),
                float(metric.radius_squared),
                loop,
            )
            weights[rows] = found

    in_threads(weigh, range(0, len(matrix), CHUNK_ROWS))
    return weights


def absolute_weights(matrix: npt.NDArray[np.int16], metric: Metric) -> Any:
    """⌊2**WEIGHT_BITS·min(1, R/‖x‖₁)⌋ of every row, in whole numbers throughout.

    Theorem.  The result v satisfies v·‖x‖₁ ≤ 2**WEIGHT_BITS·R.
    Proof.    v ≤ 2**WEIGHT_BITS·R/max(R, ‖x‖₁), a quotient of whole numbers rounded down.
    Checked.  tests/claims/test_sgd.py::test_absolute_weights_never_exceed_their_bound
    """
    radius, weights = absolute_radius(metric), room_beside(matrix)
    for start in range(0, len(matrix), CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        norms = np.abs(matrix[rows]).sum(axis=1, dtype=np.int64)
        weights[rows] = (radius << WEIGHT_BITS) // np.maximum(norms, radius)
    return weights


@dataclass(frozen=True)
class Tiles:
    """A block of rows as a stack of matrices, each so small that BLAS multiplies it on the thread
    that asks: shape (stack, rows, columns).

    The last rows of a block that is not full are 0, and add nothing.
    """

    shape: tuple[int, int, int]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def blocks(self, start: int, stop: int) -> Iterator[slice]:
        """The rows from start to stop, a block at a time."""
        for first in range(start, stop, self.size):
            yield slice(first, min(first + self.size, stop))


def tiles_of(columns: int, products: int, most: int) -> Tiles:
    """Tiles of rows with `columns` columns of which each is multiplied `products` times;
    at most `most` rows in all.
    """
    rows = max(1, min(most, ONE_THREAD // (columns * products), ONE_THREAD_VECTOR // columns))
    rows = rows - rows % 8 if rows > 8 else rows  # whole vectors of the processor
    return Tiles((max(1, min(most, CACHED_CELLS // columns) // rows), rows, columns))


def column_panels(columns: int, width: int) -> list[slice]:
    """Columns in groups of nearly equal width, at most `width`."""
    count = -(-columns // width)
    edges = [columns * place // count for place in range(count + 1)]
    return [slice(left, right) for left, right in itertools.pairwise(edges)]


def _fill(block: Floats, rows: npt.NDArray[np.int16]) -> None:
    """Rows as float64 in a stack of tiles, 0 beyond them."""
    flat = block.reshape(-1, block.shape[2])
    flat[: len(rows)] = rows
    flat[len(rows) :] = 0


def _sure_length(scaled: Floats, radius_squared: int) -> float:
    """A length² of x up to which every row has ‖zq‖ ≤ R, so that its weight is 1 without its z;
    below 0 where there is none.

    Theorem.  ‖x‖² ≤ (R − √q)²/τ with τ ≥ ‖A/2**shift‖₂² implies ‖zq‖ ≤ R.
    Proof.    zq rounds |z|/2**shift up by less than 1 in each of q coordinates,
              so ‖zq‖ ≤ ‖A/2**shift‖₂‖x‖ + √q. τ is (tr B^k)^(1/k) for B = AᵀA/4**shift and k = 64,
              never below its largest eigenvalue; the margin of 10⁻⁶ is far above the rounding of
              six squarings.
    Checked.  tests/claims/test_model_blocks.py::test_rows_that_are_surely_inside_need_no_product
    """
    power, size, logarithm = scaled @ scaled.T, 1.0, 0.0
    for _ in range(6):
        size = float(np.trace(power))
        if not 0 < size < math.inf:
            return -1.0
        logarithm, power = 2 * (logarithm + math.log(size)), power / size @ (power / size)
    tau = math.exp((logarithm + math.log(max(float(np.trace(power)), 1e-300))) / 64) * (1 + 1e-6)
    room = math.sqrt(radius_squared) - math.sqrt(scaled.shape[1])
    return room * room / tau * (1 - 1e-6) if room > 0 else -1.0


def weights_of(z: Floats, rows: int, radius_squared: float, loop: Loop | None) -> Floats:
    """The weights of the first rows of z; z is written over.

    Checked.
    tests/claims/test_model_blocks.py::test_weights_at_the_edge_of_a_step_are_alike_compiled_and_not
    """
    if loop is None:
        np.abs(z, out=z)
        np.ceil(z, out=z)
        norms = np.vecdot(z, z)[:rows]
    else:
        norms = np.empty(rows)
        loop(z, norms)
    share = radius_squared / np.maximum(norms, radius_squared)
    return np.where(norms <= radius_squared, TOP_WEIGHT, np.floor(share * LOWERED * TOP_WEIGHT))


def where_it_pays(loop: Callable[[], Loop | None], rows: int) -> Loop | None:
    """A compiled pass where it pays: for many rows, or for fewer once it is there."""
    ready = loop.cache_info().currsize > 0  # type: ignore[attr-defined]
    return loop() if rows >= (COMPILED_ROWS >> 4 if ready else COMPILED_ROWS) else None


def psi_and_slope(
    family: Family, point: Point, matrix: Floats, response: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """ψ and ψ′ of the rows of a block (or of a stack of tiles), in units of 2**-PSI_BITS."""
    place = _places(family, point, matrix, response)
    return _psi(family, place, response), family.tables().slope[place].astype(np.int64)


def _places(
    family: Family,
    point: Point,
    matrix: Any,
    response: npt.NDArray[np.int32],
    loop: Loop | None = None,
) -> npt.NDArray[np.int64]:
    """Where in the family's tables each row is;
    `matrix` holds rows, or a stack of tiles where there is no compiled pass.
    """
    reach, beta = family.tables().reach, np.array(point.beta, dtype=np.float64)
    if loop is not None:
        places = np.empty(len(response), dtype=np.int64)
        loop(
            matrix,
            response,
            beta,
            (2.0**point.eta_bits if family.residual else 0.0, point.per_scale, float(reach)),
            places,
        )
        return places
    argument = (matrix @ beta).reshape(-1)[: len(response)]
    if family.residual:
        argument = np.ldexp(response.astype(np.float64), point.eta_bits) - argument
    return np.asarray(
        np.clip(np.floor(argument * point.per_scale + 0.5), -reach, reach).astype(np.int64) + reach
    )


def _psi(
    family: Family, place: npt.NDArray[np.int64], response: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    tables = family.tables()
    if family.residual:
        return tables.psi[place].astype(np.int64)
    return np.asarray(
        tables.shift[place]
        - clipped_rest(tables, np.clip(response.astype(np.int64), 0, tables.top), place)
    )


def gradient_sums(
    data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point
) -> tuple[Objects, int]:
    """Σ m·x, m = wψ·2**(WEIGHT_BITS−PSI_BITS)… cut toward zero, and Σ ψ²: by a compiled pass where
    there are many rows, else by `numpy_gradient`.
    """
    loop = where_it_pays(gradient_loop, len(data.matrix))
    return (
        numpy_gradient(data, weights, family, point)
        if loop is None
        else compiled_gradient(loop, data, weights, family, point)
    )


def numpy_gradient(
    data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point
) -> tuple[Objects, int]:
    width = data.matrix.shape[1]
    tiles = tiles_of(width, 1, GRADIENT_ROWS)

    def chunk(start: int) -> tuple[npt.NDArray[np.int64], int]:
        sums, squares = np.zeros(width, dtype=np.int64), 0
        block, moved = np.empty(tiles.shape), np.zeros(tiles.size)
        for rows in tiles.blocks(start, min(start + CHUNK_ROWS, len(data.matrix))):
            _fill(block, data.matrix[rows])
            response = data.response[rows]
            psi = _psi(family, _places(family, point, block, response), response)
            product = weights[rows] * psi
            moved[: len(psi)], moved[len(psi) :] = (
                np.where(product < 0, -((-product) >> PSI_BITS), product >> PSI_BITS),
                0,
            )
            sums += (
                np.matmul(moved.reshape(tiles.shape[0], 1, tiles.shape[1]), block)
                .sum(axis=0)[0]
                .astype(np.int64)
            )
            squares += int((psi * psi).sum())
        return sums, squares

    totals, squares = Totals((width,)), 0
    for sums, part in in_threads(chunk, range(0, len(data.matrix), CHUNK_ROWS)):
        totals.reserve(CHUNK_ROWS << (UNIT_BITS + WEIGHT_BITS + 4))[...] += sums
        squares += part
    return totals.total(), squares


def compiled_gradient(
    loop: Loop, data: ModelData, weights: npt.NDArray[np.int32], family: Family, point: Point
) -> tuple[Objects, int]:
    """The same numbers by one pass over two bytes a cell, in blocks on several threads; sums of
    whole numbers do not depend on the order.

    Checked.  tests/claims/test_estimating_equations.py::test_the_compiled_pass_is_bit_identical
    """
    tables, beta = family.tables(), np.array(point.beta, dtype=np.float64)
    numbers = (
        2.0**point.eta_bits if family.residual else 0.0,
        point.per_scale,
        float(tables.reach),
        tables.clip,
        tables.top,
    )
    arrays = (
        (tables.psi, tables.slope, tables.slope, NO_GAIN)
        if family.residual
        else (tables.slope, tables.mean, tables.shift, tables.gain)
    )

    def block(start: int) -> tuple[Floats, int]:
        rows, sums = slice(start, start + LOOP_ROWS), np.zeros(len(beta))
        squares = loop(
            data.matrix[rows], data.response[rows], weights[rows], beta, numbers, arrays, sums
        )
        return sums, squares

    totals, squares = Totals((len(beta),)), 0
    starts = range(0, len(data.matrix), LOOP_ROWS)
    for start, (sums, part) in zip(starts, in_threads(block, starts), strict=True):
        rows = min(LOOP_ROWS, len(data.matrix) - start)
        totals.reserve(rows << (UNIT_BITS + WEIGHT_BITS + 4))[...] += sums.astype(np.int64)
        squares += int(part)
    return totals.total(), squares


def gram_sums(data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan) -> Objects:
    """Σ m·x xᵀ with the multiplier of the plan's part, a whole number from 0 to 2**LEAN_BITS: by a
    compiled pass where there are many rows, else by products of BLAS.

    Checked.  tests/claims/test_model_blocks.py::test_blocks_and_threads_do_not_matter
    """
    width, rows = data.matrix.shape[1], len(data.matrix)
    loop, places = where_it_pays(gram_loop, rows), where_it_pays(place_loop, rows)
    # above the diagonal; what is left follows by symmetry
    gram, chunk = (
        _products(data, weights, plan)
        if loop is None or places is None
        else (_compiled_products(loop, places, data, weights, plan), CHUNK_ROWS)
    )
    totals = Totals((width, width))
    # a lot at a time, so that few sums are kept
    for start in range(0, rows, chunk * LOT):
        for sums in in_threads(gram, range(start, min(start + chunk * LOT, rows), chunk)):
            totals.reserve(chunk << (2 * UNIT_BITS + LEAN_BITS))[...] += sums
    total, below = totals.total(), np.tril_indices(width, -1)
    total[below] = total.T[below]
    return total


def _products(
    data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan
) -> tuple[Callable[[int], npt.NDArray[np.int64]], int]:
    """The sums over a chunk of rows by BLAS, and the rows of a chunk: whole stacks of tiles."""
    width = data.matrix.shape[1]
    pairs = [(left, slice(left.start, width)) for left in column_panels(width, PANEL)]
    tiles = tiles_of(width, min(width, PANEL), GRAM_ROWS)
    chunk = tiles.size * max(1, CHUNK_ROWS // tiles.size)

    def gram(start: int) -> npt.NDArray[np.int64]:
        sums = np.zeros((width, width), dtype=np.int64)
        block, moved = np.empty(tiles.shape), np.empty(tiles.shape)
        multiplier = np.zeros(tiles.size)
        for rows in tiles.blocks(start, min(start + chunk, len(data.matrix))):
            count, response = rows.stop - rows.start, data.response[rows]
            _fill(block, data.matrix[rows])
            multiplier[:count] = multipliers(plan, weights[rows], block, response, None)
            multiplier[count:] = 0
            np.multiply(block, multiplier.reshape(*tiles.shape[:2], 1), out=moved)
            filled = slice(0, -(-count // tiles.shape[1]))
            for left, right in pairs:
                sums[left, right] += (
                    np.matmul(moved[filled, :, left].transpose(0, 2, 1), block[filled, :, right])
                    .sum(axis=0)
                    .astype(np.int64)
                )
        return sums

    return gram, chunk


def _compiled_products(
    loop: Loop,
    places: Loop,
    data: ModelData,
    weights: npt.NDArray[np.int32],
    plan: EstimatingPlan,
) -> Callable[[int], npt.NDArray[np.int64]]:
    """The same sums over CHUNK_ROWS rows by a compiled pass, in blocks of GRAM_ROWS."""
    width = data.matrix.shape[1]
    padded = -(-width // GRAM_TILE) * GRAM_TILE
    kept = max(1, min(LOOP_TILE_ROWS, LOOP_TILE_CELLS // width))

    def gram(start: int) -> npt.NDArray[np.int64]:
        sums, found = np.zeros((width, width), dtype=np.int64), np.empty((padded, padded))
        block, moved = np.zeros((padded, kept)), np.zeros((padded, kept))
        stop = min(start + CHUNK_ROWS, len(data.matrix))
        for first in range(start, stop, GRAM_ROWS):
            rows = slice(first, min(first + GRAM_ROWS, stop))
            cells = data.matrix[rows]
            found[...] = 0
            shares = multipliers(plan, weights[rows], cells, data.response[rows], places)
            loop(cells, shares, block, moved, found)
            sums += found[:width, :width].astype(np.int64)
        return sums

    return gram


def multipliers(
    plan: EstimatingPlan,
    weights: npt.NDArray[np.int32],
    rows: Any,
    response: npt.NDArray[np.int32],
    loop: Loop | None,
) -> Floats:
    """The multipliers m of a block's rows: w, wψ′/s, (wψ/b)² or wψ/b, in units of 2**-LEAN_BITS,
    cut to whole numbers; finite whatever the family is, for no bound is taken to be below 1.

    The float quotient's floor is that of the exact one: of a whole number below 2**45 over one
    below 2**33 it is at most 2**12, and either a whole number or at least 2**-33 away from one, and
    rounding moves it by less than 2**-40.
    """
    if plan.family is None or plan.point is None:
        return np.asarray(weights >> (WEIGHT_BITS - LEAN_BITS), dtype=np.float64)
    place = _places(plan.family, plan.point, rows, response, loop)
    lean = weights * float(1 << LEAN_BITS)
    if plan.part == "curvature":
        return np.asarray(
            np.floor(
                plan.family.tables().slope[place]
                * lean
                / float(max(1, slope_bound(plan.family)) << WEIGHT_BITS)
            )
        )
    psi = _psi(plan.family, place, response)
    share = np.floor(np.abs(psi) * lean / float(max(1, psi_bound(plan.family)) << WEIGHT_BITS))
    if plan.part == "unit scores":
        return np.asarray(np.copysign(share, psi))
    return np.asarray(np.floor(share * share * 2.0**-LEAN_BITS))


def residual_counts(data: ModelData, point: Point, edges: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """How many rows have a standardised residual (whole numbers of 1/GRID) below,
    between and from the edges on.

    Checked.
        tests/claims/test_residual_counts.py::test_counts_are_exact_in_any_order_and_on_every_engine
    """
    beta, counts = np.array(point.beta, dtype=np.float64), np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(data.matrix), GRADIENT_ROWS):
        rows = slice(start, start + GRADIENT_ROWS)
        argument = (
            np.ldexp(data.response[rows].astype(np.float64), point.eta_bits)
            - data.matrix[rows].astype(np.float64) @ beta
        )
        with np.errstate(over="ignore"):
            place = np.floor(argument * point.per_scale + 0.5)
        counts += np.bincount(
            np.searchsorted(np.array(edges, dtype=np.float64), place, side="right"),
            minlength=len(counts),
        )
    return counts


def estimating_sums(data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan) -> Any:
    """What `EstimatingPlan` asks for."""
    if plan.part == "gradient":
        assert plan.family is not None
        assert plan.point is not None
        return gradient_sums(data, weights, plan.family, plan.point)
    return gram_sums(data, weights, plan)
