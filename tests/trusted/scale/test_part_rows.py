"""Random parts on disk: the rows of memory, in the same order, for the same random words."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.datasets import Dataset
from discreet.trusted.engines import batches
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.noise.assignment import balanced_parts, independent_parts
from discreet.trusted.scale import part_rows
from discreet.trusted.scale.limits import Limits
from discreet.trusted.scale.part_rows import Buckets, assigned_parts, rows_of_parts
from discreet.trusted.scale.spill import StoredRows

ROWS = 2500
CELLS = np.dtype([("kept", np.bool_), ("c0", np.float64)])


class FewWords:
    """Words of which many are equal, so that ties are met."""

    def __init__(self, seed):
        self._source = SeededSource(seed)

    def uint64(self, count):
        return (self._source.uint64(count) >> np.uint64(61)) << np.uint64(61)


@pytest.mark.parametrize("source", [SeededSource, FewWords])
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 64, 65, ROWS])
def test_assignments_in_blocks_are_those_of_memory(source, balanced, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(part_rows, "BLOCK_ROWS", 64)
    draw = balanced_parts if balanced else independent_parts
    expected = draw(source(3), rows, 7)
    for held in (200, 4000, 10**9):
        blocks = list(assigned_parts(source(3), rows, 7, balanced, str(tmp_path), held))
        assert [len(block) for block in blocks[:-1]] == [64] * (len(blocks) - 1)
        assert np.array_equal(np.concatenate([*blocks, np.zeros(0, np.int64)]), expected)


@pytest.mark.parametrize("parts", [1, 2, 50, 3 * ROWS])
@pytest.mark.parametrize("balanced", [True, False])
def test_parts_on_disk_are_those_of_memory(parts, balanced, tmp_path, monkeypatch):
    monkeypatch.setattr(part_rows, "BLOCK_ROWS", 300)
    rng = np.random.default_rng(3)
    cells = np.empty(ROWS, dtype=CELLS)
    cells["kept"], cells["c0"] = rng.random(ROWS) < 0.8, np.arange(ROWS)
    stored = StoredRows(str(tmp_path), CELLS, None)
    stored.put(1, cells[700:])
    stored.put(0, cells[:700])
    stored.sealed()
    draw = balanced_parts if balanced else independent_parts
    assigned = draw(SeededSource(1), ROWS, parts)
    largest = []
    monkeypatch.setattr(
        Buckets,
        "__iter__",
        lambda held, each=Buckets.__iter__: (largest.append(len(one)) or one for one in each(held)),
    )
    found = list(rows_of_parts(stored, parts, SeededSource(1), balanced, 3000))
    assert len(found) == parts
    for part, rows in enumerate(found):
        assert rows["c0"].tolist() == np.flatnonzero((assigned == part) & cells["kept"]).tolist()
    if parts > 2:  # what is in memory at a time does not grow with the rows
        assert max(largest) < ROWS // 4


def mean_is_large(*columns):
    numbers = columns[0]
    return float(numbers.mean() > 0) if len(numbers) else 0.5


FUNCTIONS = {
    "test": lambda s, where: dp.subsample_test(
        s, mean_is_large, columns=["x", "b", "g"], parts=20, where=where, spend=dp.GDP(1)
    ),
    "function": lambda s, where: dp.subsample(
        s,
        lambda x, g: float(np.mean(x[g == "s"])),
        columns=["x", "g"],
        parts=12,
        where=where,
        output=dp.Real(-1, 1),
        spend=dp.GDP(1),
    ),
}


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize(
    "asked",
    [pytest.param(name, marks=[pytest.mark.slow] * (name == "function")) for name in FUNCTIONS],
)
@pytest.mark.parametrize("where", [None, {"g": "s"}], ids=str)
def test_questions_on_parts_release_the_same(asked, neighbors, where, tmp_path, monkeypatch):
    rng = np.random.default_rng(6)
    frame = pa.table(
        {
            "x": np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(0, 1, ROWS)),
            "b": rng.random(ROWS) < 0.5,
            "g": rng.choice(["s", "m", "?"], ROWS),
        }
    )
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=400)
    schema = dp.Schema({"x": dp.Real(-2, 2), "b": dp.Boolean(), "g": dp.Category(["s", "m"])})
    monkeypatch.setattr(batches, "BATCH_ROWS", 150)
    monkeypatch.setattr(part_rows, "BLOCK_ROWS", 200)
    dealt = Counter()
    monkeypatch.setattr(
        part_rows,
        "rows_of_parts",
        lambda *given, deal=rows_of_parts: dealt.update([asked]) or deal(*given),
    )

    def released(made):
        session = seeded_session(made, dp.ApproxDP(20, 1e-4), seed=2)
        result = FUNCTIONS[asked](session, where)
        releases = result.releases if hasattr(result, "releases") else (result.release,)
        return [one.integers for one in releases]

    expected = released(dp.from_frame(frame, schema=schema, neighbors=neighbors))
    for limits in (None, Limits(1 << 30, str(tmp_path)), Limits(48_000, str(tmp_path))):
        engine = FileEngine(tmp_path / "rows.parquet", "parquet", schema, neighbors, scale=limits)
        assert not dealt
        assert released(Dataset(engine, schema, neighbors)) == expected
    assert dealt
