"""Limits of memory: read from a text, refused where nothing fits; all sizes follow from them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.trusted.engines.batches import BATCH_ROWS
from discreet.trusted.scale.limits import BASE, LEAST_ROWS, Limits, limits

SCHEMA = {"x": dp.Real(0, 1)}


def test_limits_are_read_with_their_units():
    for asked, expected in {
        "500MB": 500 * 10**6,
        " 1.5 gb ": 1_500_000_000,
        "2GiB": 1 << 31,
        str(10**9): 10**9,
        10**9: 10**9,
        None: 1 << 30,
    }.items():
        assert limits(asked, None, 3).memory == expected


@pytest.mark.parametrize("asked", ["", "MB", "5 apples", "1e9", -5, 0, 2.5, True, "9" * 30 + "MB"])
def test_what_is_no_limit_is_refused(asked, tmp_path):
    pq.write_table(pa.table({"x": [0.5]}), tmp_path / "a.parquet")
    with pytest.raises(dp.InvalidParameter, match="memory_limit="):
        dp.read_parquet(
            tmp_path / "a.parquet", schema=SCHEMA, neighbors=dp.Replace(), memory_limit=asked
        )


@pytest.mark.parametrize("columns", [1, 12, 1000])
def test_a_limit_too_small_names_the_least_that_works(columns):
    with pytest.raises(dp.InvalidParameter) as refused:
        limits("10MB", None, columns)
    least = str(refused.value).split("at least '")[1].split("'")[0]
    made = limits(least, None, columns)
    assert made.threads(columns) >= 1
    assert made.batch_rows(columns) >= LEAST_ROWS
    with pytest.raises(dp.InvalidParameter):
        limits(made.memory - 10**6 - 1, None, columns)


def test_batches_fit_and_are_no_smaller_than_they_must_be():
    for columns in (1, 12, 300):
        for memory in (BASE + (1 << 29), 1 << 30, 1 << 36):
            made = Limits(memory, None)
            assert LEAST_ROWS <= made.batch_rows(columns) <= BATCH_ROWS
            held = 64 * columns * made.batch_rows(columns) * made.threads(columns)
            assert held <= memory or made.batch_rows(columns) == LEAST_ROWS
    assert Limits(1 << 36, None).batch_rows(12) == BATCH_ROWS
    assert Limits(1 << 36, None).batch_rows(12, 1 << 20) == 1 << 20


def test_a_cache_is_a_folder_that_can_be_written_to(tmp_path):
    pq.write_table(pa.table({"x": np.linspace(0, 1, 50)}), tmp_path / "a.parquet")

    def declared(cache):
        path = tmp_path / "a.parquet"
        return dp.read_parquet(path, schema=SCHEMA, neighbors=dp.Replace(), cache=cache)

    assert declared(None)._engine.scale.folder is None
    assert declared(tmp_path)._engine.scale.folder == str(tmp_path)
    for refused in (tmp_path / "absent", tmp_path / "a.parquet", 5):
        with pytest.raises(dp.InvalidParameter, match="cache"):
            declared(refused)
