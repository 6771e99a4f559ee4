"""The fused pass over cached blocks gives the codes and counts of the plain steps, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from discreet import Boolean, Integer, Real
from discreet.encoding import Encoding
from discreet.specs.statistics import histogram_of_cells, histogram_of_counts
from discreet.trusted.engines import kernels


def plain_codes(values: np.ndarray, encoding: Encoding) -> np.ndarray:
    """⌊(x − center)·per_unit + ½⌋, clipped: one whole array at a time."""
    return np.clip(
        np.floor((values - encoding.center) * encoding.per_unit + 0.5), encoding.low, encoding.high
    ).astype(kernels.code_dtype(encoding))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "column",
    [
        Real(0, 100, missing=50),
        Real(-1e-3, 7.5, missing=1.0),
        Real(-50, 50, bits=32, missing=0),
        Integer(-3, 90, missing=43),
        Integer(0, 2**30, missing=5),
    ],
)
def test_clamping_and_encoding_at_once_changes_no_bit(column: Real | Integer) -> None:
    rng = np.random.default_rng(3)
    for rows in (
        0,
        1,
        1000,
        kernels.CACHED_ROWS,
        kernels.CACHED_ROWS + 1,
        3 * kernels.CACHED_ROWS + 17,
    ):
        numbers = rng.normal(column.low / 2 + column.high / 2, (column.high - column.low) / 2, rows)
        for position, odd in enumerate(
            (np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, column.low, column.high)
        ):
            numbers[position::97] = odd
        before = numbers.copy()
        for encoding in (column.encoding(), column.encoding(10)):
            codes = kernels.clamp_and_encode(numbers, column, encoding)
            assert codes.dtype == kernels.code_dtype(encoding)
            assert np.array_equal(codes, plain_codes(kernels.clamp(numbers, column), encoding))
            assert np.array_equal(codes, kernels.encode(kernels.clamp(numbers, column), encoding))
            # a stride, as in a frame's column
            assert np.array_equal(
                kernels.clamp_and_encode(numbers[::2], column, encoding), codes[::2]
            )
        assert np.array_equal(numbers, before, equal_nan=True)  # what is read is not written


def test_counting_in_blocks_changes_no_count() -> None:
    rng = np.random.default_rng(4)
    for rows in (0, 1, kernels.COUNTED_ROWS - 1, 2 * kernels.COUNTED_ROWS + 5):
        for encoding, stride in (
            (Real(0, 1).encoding(), 1),
            (Integer(-5, 60).encoding(), 2),
            (Boolean().encoding(), 2),
        ):
            cells = (encoding.high - encoding.low) // stride + 1
            codes = (encoding.low + stride * rng.integers(0, cells, rows)).astype(
                kernels.code_dtype(encoding)
            )
            one, two = (
                histogram_of_counts(kernels.grid_counts(codes, encoding.low, stride, cells)),
                histogram_of_cells(cells, kernels.places(codes, encoding.low, stride)),
            )
            assert one.cells == two.cells
            assert np.array_equal(one.places, two.places)
            assert np.array_equal(one.counts, two.counts)
