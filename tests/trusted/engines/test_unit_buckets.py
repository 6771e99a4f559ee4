"""Units dealt out to parts on disk: the same rows are kept as when all are bounded together in
memory.
"""

from __future__ import annotations

import os
import random
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.trusted.engines.engine_kinds import counts_in

from discreet.neighbors import AddRemove, Replace
from discreet.schema import Category, Integer, Open, Real, Schema
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines import batches
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_frame
from discreet.trusted.extensions import unit_buckets

SCHEMA = Schema({"x": Real(-1, 1), "n": Integer(0, 9), "c": Category(["a", "b"]), "k": Open()})
IDS = {
    "text": [None, "a", "b", "é", "17", "x" * 50],
    "whole": [None, 1, 2, -5, 2**62],
    "real": [None, 0.0, -0.0, 0.25, 0.75, float("nan"), float("inf"), 1e300],
    "flag": [None, True, False],
}
TYPES = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64(), "flag": pa.bool_()}


def table(kind, rows):
    choose = random.Random(rows)
    ids = [
        choose.choice(IDS[kind])
        if choose.random() < 0.5 or kind != "text"
        else f"person {choose.randrange(60)}"
        for _ in range(rows)
    ]
    return pa.table(
        {
            "id": pa.array(ids, TYPES[kind]),
            "x": pa.array(
                [choose.choice([None, 0.5, float("nan"), 9.0, -0.25]) for _ in range(rows)],
                pa.float64(),
            ),
            "n": pa.array([choose.choice([None, 1, 5, 77]) for _ in range(rows)], pa.int32()),
            "c": pa.array(
                [choose.choice([None, "a", "b", "z"]) for _ in range(rows)]
            ).dictionary_encode(),
            "k": pa.array(
                [choose.choice([None, "p", "q", ""]) for _ in range(rows)], pa.large_string()
            ),
        }
    )


def answers(engine):
    counts = execute(engine, OpenPlan(("k",), ()))
    histogram = engine.histogram(HistogramPlan((), number_factor(SCHEMA, "n", "a sum")))
    sums = engine.sums(SumsPlan((Levels("c", 2),), ((), (number_factor(SCHEMA, "x", "a sum"),))))
    return (
        sums.tolist(),
        [*counts_in(counts).items()],
        [*counts_in(histogram).items()],
        engine.public_count(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize(
    "neighbors", [Replace(unit="id", max_rows=2), AddRemove(unit="id", max_rows=3)], ids=str
)
def test_buckets_on_disk_and_rows_in_memory_agree(kind, neighbors, tmp_path, monkeypatch):
    frame = table(kind, 500)
    pq.write_table(frame, tmp_path / "data.parquet", row_group_size=37)
    expected = answers(memory_engine_from_frame(frame, SCHEMA, neighbors))
    assert answers(FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, neighbors)) == expected
    # a unit's rows come in many batches, each dealt out by itself
    monkeypatch.setattr(batches, "BATCH_ROWS", 30)
    monkeypatch.setattr(unit_buckets, "HELD_BYTES", 200)
    dealt = []
    monkeypatch.setattr(
        unit_buckets.Buckets,
        "deal",
        lambda buckets, rows, deal=unit_buckets.Buckets.deal: (
            dealt.append(len(rows)),
            deal(buckets, rows),
        ),
    )
    assert answers(FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, neighbors)) == expected
    assert len(dealt) > 10


def test_what_is_on_disk_has_no_name_and_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr(unit_buckets, "HELD_BYTES", 500)
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    pq.write_table(table("text", 300), tmp_path / "data.parquet")
    seen = []

    def looked_at(buckets, tables=unit_buckets.Buckets.tables):
        facts = os.fstat(buckets._spill._file.fileno())
        seen.append((facts.st_mode & 0o777, facts.st_nlink, os.listdir(folder)))
        return tables(buckets)

    monkeypatch.setattr(unit_buckets.Buckets, "tables", looked_at)
    answers(
        FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, AddRemove(unit="id", max_rows=1))
    )
    assert seen
    assert all(facts == (0o600, 0, []) for facts in seen)


def test_a_bucket_by_anything_but_the_unit_would_be_noticed(tmp_path, monkeypatch):
    """A mutant that deals rows out in turn keeps more rows of a unit than max_rows."""
    frame = table("text", 400)
    pq.write_table(frame, tmp_path / "data.parquet")
    neighbors = AddRemove(unit="id", max_rows=1)
    expected = answers(memory_engine_from_frame(frame, SCHEMA, neighbors))
    monkeypatch.setattr(unit_buckets, "HELD_BYTES", 500)
    import numpy as np

    monkeypatch.setattr(
        unit_buckets, "bucket_of_rows", lambda ids, count: np.arange(len(ids)) % count
    )
    assert answers(FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, neighbors)) != expected
