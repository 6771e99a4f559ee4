"""Exact block arithmetic: clamp, encode, sum by cell, and Gram matrices, always as exact integers.

Every result is an array of Python integers (dtype object): sums have no bound that is public under
`AddRemove`, so no fixed width is right for all data. Inside, blocks are added as float64 below
2**52 or as int64 below 2**62, both exact, and moved to Python integers before they could leave that
range.

Theorem.  A float64 sum of integers is exact, in any order and with or without fused multiply-add,
          while the sum of their absolute values stays below 2**52.
Proof.    Every partial sum is then an integer of magnitude below 2**52,
          which float64 represents exactly.
Checked.  tests/claims/test_exact_sums.py::test_sums_and_gram_do_not_depend_on_the_order_of_rows
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.encoding import Encoding
from discreet.schema import Boolean, Integer, Number, Real
from discreet.seclusion import Secluded, seclude_worker
from discreet.specs.queries.plans import BLOCK_ROWS, FLOAT_BITS
from discreet.trusted.compiled import compiled

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.signedinteger[Any]]
ObjectIntegers = npt.NDArray[np.object_]

SUM_ROWS = 1 << 20  # rows of a block in `cell_sums`
NARROW_BITS = 31  # terms below 2**31: a block of SUM_ROWS sums below 2**51
SPLIT_BITS = 24  # wider terms are added in two parts: the low 24 bits and the rest
ACCUMULATOR_LIMIT = 1 << 62
CACHED_ROWS = 1 << 14  # float64 values at a time that stay in the processor's cache
COUNTED_ROWS = 1 << 17  # codes at a time in `grid_counts`
MOST_THREADS = 8
NUMBA_ROWS = 1 << 20  # from this many rows on, compiling pays


def clamp(numbers: Floats, column: Number) -> Floats:
    """Numbers clamped to the declared range (±inf → the nearest bound);
    NaN → `missing`, or NaN where none was declared.
    """
    if isinstance(column, Boolean):
        return numbers
    with np.errstate(invalid="ignore"):
        if column.missing is not None:
            numbers = np.where(np.isnan(numbers), float(column.missing), numbers)
        return np.minimum(np.maximum(numbers, float(column.low)), float(column.high))


def encode(values: Floats, encoding: Encoding) -> Integers:
    """clip(⌊(x − center)·per_unit + ½⌋, low, high) of clamped values, as int16 where it fits,
    else int32.
    """
    out = np.empty(len(values), dtype=code_dtype(encoding))
    part = np.empty(min(len(values), CACHED_ROWS))
    for start in range(0, len(values), CACHED_ROWS):
        block = values[start : start + CACHED_ROWS]
        _encode_block(block, encoding, part[: len(block)], out[start : start + CACHED_ROWS])
    return out


def clamp_and_encode(numbers: Floats, column: Number, encoding: Encoding) -> Integers:
    """encode(clamp(numbers, column), encoding), bit for bit,
    in one pass over blocks that stay in the processor's cache.

    The value for missing cells lies in the declared range, so it does not matter that it is filled
    in after clamping (NaN passes through).
    """
    if isinstance(column, Boolean):
        return encode(numbers, encoding)
    low, high, missing = float(column.low), float(column.high), float(column.fill)
    out = np.empty(len(numbers), dtype=code_dtype(encoding))
    loop = (
        numba_encode()
        if len(numbers) >= (CACHED_ROWS if numba_encode.cache_info().currsize else NUMBA_ROWS)
        else None
    )
    if loop is not None and numbers.dtype == np.float64 and numbers.ndim == 1:
        loop(numbers, encoding_limits(column, encoding), out)
        return out
    part = np.empty(min(len(numbers), CACHED_ROWS))
    gone = np.empty(len(part), dtype=np.bool_)
    with np.errstate(invalid="ignore"):
        for start in range(0, len(numbers), CACHED_ROWS):
            block = numbers[start : start + CACHED_ROWS]
            values, nan = part[: len(block)], gone[: len(block)]
            np.maximum(block, low, out=values)
            np.minimum(values, high, out=values)
            np.isnan(values, out=nan)
            np.copyto(values, missing, where=nan)
            _encode_block(values, encoding, values, out[start : start + CACHED_ROWS])
    return out


def encoding_limits(column: Real | Integer, encoding: Encoding) -> tuple[float, ...]:
    """What a compiled pass encodes with: (low, high, missing, center, per_unit, lowest code,
    highest code).
    """
    return tuple(
        map(
            float,
            (
                column.low,
                column.high,
                column.fill,
                encoding.center,
                encoding.per_unit,
                encoding.low,
                encoding.high,
            ),
        )
    )


def _encode_block(values: Floats, encoding: Encoding, part: Floats, out: Integers) -> None:
    np.subtract(values, encoding.center, out=part)
    part *= encoding.per_unit
    part += 0.5
    np.floor(part, out=part)
    np.maximum(part, encoding.low, out=part)
    np.minimum(part, encoding.high, out=part)
    np.copyto(out, part, casting="unsafe")


def places(codes: Integers, low: int, stride: int) -> npt.NDArray[np.int64]:
    """(code − low) / stride: the cells of a grid, from 0."""
    cells = codes.astype(np.int64)
    cells -= low
    return cells if stride == 1 else cells // stride


def grid_counts(codes: Integers, low: int, stride: int, cells: int) -> npt.NDArray[np.int64]:
    """How many codes fall in each cell (code − low) / stride of a grid:
    `places` counted, block by block.
    """
    counts = np.zeros(cells, dtype=np.int64)
    here = np.empty(min(len(codes), COUNTED_ROWS), dtype=np.int64)
    for start in range(0, len(codes), COUNTED_ROWS):
        block = codes[start : start + COUNTED_ROWS]
        part = here[: len(block)]
        np.subtract(block, low, out=part, dtype=np.int64)
        if stride != 1:
            part //= stride
        counts += np.bincount(part, minlength=cells)
    return counts


def code_dtype(encoding: Encoding) -> type[np.int16] | type[np.int32]:
    """int16 for codes that fit in it, else int32 (the schema bounds every code by 2**31)."""
    return np.int16 if max(abs(encoding.low), abs(encoding.high)) < 1 << 15 else np.int32


def bin_index(values: Floats, edges: Sequence[float]) -> npt.NDArray[np.int32]:
    """j where edges[j] ≤ x < edges[j+1] (the last bin is closed), −1 outside;
    exact float comparisons.
    """
    limits = np.asarray(edges, dtype=np.float64)
    index = np.searchsorted(limits, values, side="right").astype(np.int32) - np.int32(1)
    index[values == limits[-1]] = len(limits) - 2
    index[index == len(limits) - 1] = -1
    return index


class Totals:
    """Running totals: int64 while the public bound on the partial sums allows it,
    Python integers beyond.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.running = np.zeros(shape, dtype=np.int64)
        self.bound = 0
        self.settled: ObjectIntegers | None = None

    def reserve(self, bound: int) -> npt.NDArray[np.int64]:
        """The int64 array to add a block to, whose entries change by at most `bound`."""
        if self.bound + bound >= ACCUMULATOR_LIMIT:
            self.settled = self.total()
            self.running[...] = 0
            self.bound = 0
        self.bound += bound
        return self.running

    def total(self) -> ObjectIntegers:
        running = self.running.astype(object)
        return running if self.settled is None else self.settled + running


Scatter = Callable[..., None]  # (running, cells, part), compiled ones with 0 … DIRECT factors
Factors = tuple[Integers, ...]
DIRECT = 2  # factors whose product a compiled loop takes by itself


def scatter_numpy(
    running: npt.NDArray[np.int64], cells: Integers, part: npt.NDArray[np.int64]
) -> None:
    """running[c] += Σ part over the rows of cell c; the caller keeps Σ|part| below 2**52."""
    sums = np.bincount(cells + 1, weights=part, minlength=len(running) + 1)
    running += sums[1:].astype(np.int64)


@functools.cache
def numba_scatter() -> Scatter | None:
    """The same sums as compiled loops, or None where numba is not installed.

    Theorem.  They write inside `running` and read inside `cells` and the factors,
              whatever they hold.
    Proof.    All but `running` are as long as the loop runs (checked before);
              a cell outside `running` is none.
    Checked.  tests/claims/test_compiled_bounds.py::test_cells_outside_are_no_cells
    """
    loops = [compiled(loop, nogil=True) for loop in (_count_rows, _scatter_rows, _scatter_products)]
    if loops[0] is None:
        return None

    def call(running: npt.NDArray[np.int64], cells: Integers, *factors: Integers) -> None:
        fits = all(
            one.dtype.kind == "i" and one.ndim == 1 and len(one) == len(cells)
            for one in (cells, *factors)
        )
        if not fits or running.dtype != np.int64 or running.ndim != 1 or len(factors) > 2:
            raise IndexError("the sizes of a compiled sum do not fit together")
        loop = loops[len(factors)]
        assert loop is not None
        loop(running, cells, *factors)

    return call


def _count_rows(running: Any, cells: Any) -> None:
    for row in range(cells.size):
        if 0 <= cells[row] < running.size:
            running[cells[row]] += 1


def _scatter_rows(running: Any, cells: Any, part: Any) -> None:
    for row in range(cells.size):
        if 0 <= cells[row] < running.size:
            running[cells[row]] += part[row]


def _scatter_products(running: Any, cells: Any, first: Any, second: Any) -> None:
    for row in range(cells.size):
        if 0 <= cells[row] < running.size:
            running[cells[row]] += np.int64(first[row]) * np.int64(second[row])


Encode = Callable[[Floats, tuple[float, ...], Integers], None]


@functools.cache
def numba_encode() -> Encode | None:
    """loop(values, limits, out) sets out[i] to the code of values[i],
    or None where numba is not installed.

    `limits` are `encoding_limits`. Each step is one rounded operation, as in numpy. It reads and
    writes inside its arrays: both are as long as the loop runs (checked before).
    Checked.  tests/claims/test_exact_sums.py::test_codes_are_the_same_compiled_and_not
    """
    loop = compiled(_encode_rows, nogil=True)
    if loop is None:
        return None

    def call(values: Floats, limits: tuple[float, ...], out: Integers) -> None:
        fits = (
            values.dtype == np.float64 and values.ndim == out.ndim == 1 and len(values) == len(out)
        )
        if not fits or len(limits) != 7 or any(type(limit) is not float for limit in limits):
            raise IndexError("the sizes of a compiled encoding do not fit together")
        loop(values, limits, out)

    return call


def _encode_rows(values: Any, limits: Any, out: Any) -> None:
    low, high, missing, center, per_unit, first, last = limits
    for row in range(out.size):
        value = values[row]
        value = missing if value != value else min(max(value, low), high)
        out[row] = int(min(max(np.floor((value - center) * per_unit + 0.5), first), last))


class CellSums:
    """Σ of each term over the rows of each cell, of any number of batches of rows, exact.

    `bits` holds, for each term, those of its largest magnitude.
    """

    def __init__(self, size: int, bits: Sequence[int], scatter: Scatter = scatter_numpy) -> None:
        self._size, self._bits, self._scatter = size, tuple(bits), scatter
        self._low = [Totals((size,)) for _ in bits]
        self._high = [Totals((size,)) if one > NARROW_BITS else None for one in bits]
        # of a block: in the cache, and not below the cells
        self._rows = min(max(CACHED_ROWS, 1 << size.bit_length()), SUM_ROWS)

    def add(self, cells: Integers, terms: Sequence[Factors]) -> None:
        """Adds rows: `cells` holds 0 … size−1 or −1 (no cell), and a term its factors' codes;
        the empty term counts rows.
        """
        waiting = []
        for place, factors in enumerate(terms):
            fits = cells.size << self._bits[place] < ACCUMULATOR_LIMIT
            if (
                self._scatter is not scatter_numpy
                and self._high[place] is None
                and fits
                and len(factors) <= DIRECT
            ):
                self._scatter(
                    self._low[place].reserve(cells.size << self._bits[place]), cells, *factors
                )
            else:
                waiting.append((place, factors))
        if waiting:
            self._add_blocks(cells, waiting)

    def _add_blocks(self, cells: Integers, terms: Sequence[tuple[int, Factors]]) -> None:
        """The same, block by block: a product of codes is made before it is added."""
        rows = min(self._rows, cells.size)
        here, product, low = (np.empty(rows, dtype=np.int64) for _ in range(3))
        for start in range(0, cells.size, max(rows, 1)):
            block = slice(start, min(start + rows, cells.size))
            length = block.stop - start
            np.copyto(here[:length], cells[block])
            for place, factors in terms:
                self._add_term(
                    place, here[:length], _product(factors, block, product[:length]), low[:length]
                )

    def _add_term(
        self, place: int, cells: Integers, term: npt.NDArray[np.int64], part: npt.NDArray[np.int64]
    ) -> None:
        bits, high = self._bits[place], self._high[place]
        if high is None:
            self._scatter(self._low[place].reserve(cells.size << bits), cells, term)
            return
        np.bitwise_and(term, (1 << SPLIT_BITS) - 1, out=part)
        self._scatter(self._low[place].reserve(cells.size << SPLIT_BITS), cells, part)
        np.right_shift(term, SPLIT_BITS, out=part)
        self._scatter(high.reserve(cells.size << (bits - SPLIT_BITS)), cells, part)

    def total(self) -> ObjectIntegers:
        """Python integers of shape (size, terms)."""
        result = np.empty((self._size, len(self._bits)), dtype=object)
        for place, (low, high) in enumerate(zip(self._low, self._high, strict=True)):
            result[:, place] = (
                low.total() if high is None else high.total() * (1 << SPLIT_BITS) + low.total()
            )
        return result


def scatter_for(rows: int) -> Scatter:
    """How blocks are added: compiled where that pays for about so many rows;
    encoding is then compiled too.
    """
    if rows < NUMBA_ROWS:
        return scatter_numpy
    numba_encode()
    return numba_scatter() or scatter_numpy


def _product(factors: Factors, block: slice, out: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The product of some rows' codes, 1 for no factor, in `out`."""
    if not factors:
        out.fill(1)
        return out
    np.copyto(out, factors[0][block])
    for factor in factors[1:]:
        np.multiply(out, factor[block], out=out)
    return out


def gram(blocks: Iterable[Factors], width: int, block_rows: int, bits: int) -> ObjectIntegers:
    """Σ v vᵀ over the rows of all blocks: exact Python integers of shape (width, width).

    `block_rows` rows of products of `bits` bits stay below 2**52,
    so float64 BLAS is exact inside a block.
    """
    assert block_rows << bits <= 1 << FLOAT_BITS
    totals = Totals((width, width))
    multiply = _blas_product if blas_is_exact() else integer_product
    for columns in blocks:
        for start in range(0, len(columns[0]), block_rows):
            rows = np.stack([column[start : start + block_rows] for column in columns], axis=0)
            running = totals.reserve(rows.shape[1] << bits)
            running += multiply(rows)
    return totals.total()


def _blas_product(rows: Integers) -> npt.NDArray[np.int64]:
    matrix = rows.astype(np.float64)
    return (matrix @ matrix.T).astype(np.int64)


def integer_product(rows: Integers) -> npt.NDArray[np.int64]:
    """The same product in int64, for a BLAS that is not exact (slower)."""
    matrix = rows.astype(np.int64)
    return np.asarray(matrix @ matrix.T, dtype=np.int64)


@functools.cache
def blas_is_exact() -> bool:
    """Self-test of this machine's BLAS, once a process: extreme alternating codes against integers.

    Σ|terms| is just below 2**52 and the low bits are set, so a library that accumulates in a
    shorter type, or splits factors into shorter parts, cannot pass.
    """
    for bits in (15, 20, 22):
        rows = min(BLOCK_ROWS, 1 << (FLOAT_BITS - 2 * bits))
        largest = (1 << bits) - 1
        index = np.arange(rows)
        matrix = np.stack([largest - (index * (column + 3)) % 2 for column in range(24)]).astype(
            np.int32
        )
        matrix[::3] *= np.where(index % 2 == 0, 1, -1).astype(np.int32)
        matrix[1::3] *= np.where(index % 3 == 0, -1, 1).astype(np.int32)
        if not np.array_equal(_blas_product(matrix), integer_product(matrix)):
            return False
    return True


def in_threads(work: Callable[[int], Any], starts: range) -> list[Any]:
    """work(start) for every start, on several threads where there are several, in that order.

    Each of the threads is secluded for itself: the floating-point state and the seclusion of the
    thread that asks do not reach another.
    """
    if len(starts) < 2:
        return [work(start) for start in starts]
    threads = max(1, min(MOST_THREADS, len(starts), os.cpu_count() or 1))
    with Secluded(), ThreadPoolExecutor(threads, initializer=seclude_worker) as pool:
        return list(pool.map(work, starts))
