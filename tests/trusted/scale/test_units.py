"""Units bounded once: later questions read the rows that the first one kept."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.trusted.engines import test_unit_buckets as buckets

import discreet as dp
from discreet.errors import DataShapeRefused, SourceChanged
from discreet.neighbors import AddRemove, Replace
from discreet.specs.queries.cell_states import StatesPlan
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.specs.queries.unit_sums import UnitSumsPlan
from discreet.trusted.engines import batches
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_frame
from discreet.trusted.extensions import unit_buckets
from discreet.trusted.scale.limits import Limits
from discreet.trusted.scale.units import KeptUnits

SCHEMA = buckets.SCHEMA
RELATIONS = (Replace(unit="id", max_rows=2), AddRemove(unit="id", max_rows=1))
STATES = StatesPlan(tuple(SCHEMA))
UNIT_SUMS = UnitSumsPlan((Levels("c", 2),), number_factor(SCHEMA, "n", "a sum"))


def answers(engine):
    return (
        *buckets.answers(engine),
        execute(engine, STATES).tolist(),
        execute(engine, UNIT_SUMS).tolist(),
    )


def kept_engine(folder, neighbors, memory=3200):
    limits = Limits(memory, str(folder))
    return FileEngine(folder / "data.parquet", "parquet", SCHEMA, neighbors, scale=limits)


@pytest.mark.parametrize("kind", [pytest.param(k, marks=pytest.mark.slow) for k in buckets.IDS])
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("memory", [3200, 1 << 30])
def test_every_question_reads_the_same_rows(kind, neighbors, memory, tmp_path, monkeypatch):
    frame = buckets.table(kind, 300)
    pq.write_table(frame, tmp_path / "data.parquet", row_group_size=37)
    expected = answers(memory_engine_from_frame(frame, SCHEMA, neighbors))
    monkeypatch.setattr(batches, "BATCH_ROWS", 30)
    engine = kept_engine(tmp_path, neighbors, memory)
    assert answers(engine) == expected
    assert engine.remembered[KeptUnits].whole
    assert answers(engine) == expected


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_rows_are_dealt_out_once_for_all_questions(neighbors, tmp_path, monkeypatch):
    frame = buckets.table("text", 300)
    pq.write_table(frame, tmp_path / "data.parquet", row_group_size=37)
    expected = answers(memory_engine_from_frame(frame, SCHEMA, neighbors))
    monkeypatch.setattr(batches, "BATCH_ROWS", 30)
    dealt = []
    monkeypatch.setattr(
        unit_buckets.Buckets,
        "tables",
        lambda found, tables=unit_buckets.Buckets.tables: (dealt.append(found), tables(found))[1],
    )
    engine = kept_engine(tmp_path, neighbors)
    assert answers(engine) == expected
    # once, once more for states (of which other rows count) and once for the public number of units
    assert len(dealt) == 2 + (neighbors == RELATIONS[0])


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_one_unit_moves_later_questions_no_further_than_claimed(neighbors, tmp_path):
    """One unit's rows are others: the second question, which reads what the first one kept."""
    frame, query = buckets.table("text", 300), SumsPlan((), ((),))
    crowd = pa.table({"id": ["e"] * 50, "x": [-1.0] * 50, "n": [9] * 50}).cast(
        pa.schema([frame.schema.field(name) for name in ("id", "x", "n")])
    )
    here = frame.filter(pc.equal(frame.column("id"), "a"))
    tables = {
        "without": frame.filter(pc.not_equal(frame.column("id"), "a")),
        "with": frame,
        "crowd": pa.concat_tables([frame, here, here, here]),
        "other": pa.concat_tables([frame, crowd], promote_options="default"),
    }
    found = {}
    for name, rows in tables.items():
        folder = tmp_path / name
        folder.mkdir()
        pq.write_table(rows, folder / "data.parquet", row_group_size=41)
        engine = kept_engine(folder, neighbors)
        first, found[name] = (engine.sums(query).tolist()[0][0] for _ in range(2))
        assert first == found[name]
        assert engine.remembered[KeptUnits].whole
    assert found["with"] == found["crowd"] == found["without"] + neighbors.max_rows
    assert found["other"] - found["with"] == neighbors.max_rows


def test_rows_that_one_unit_would_lose_are_noticed(tmp_path, monkeypatch):
    """A mutant that keeps the first rows that come, not those that bounding chooses."""
    frame, neighbors = buckets.table("text", 300), RELATIONS[1]
    pq.write_table(frame, tmp_path / "data.parquet")
    engine = kept_engine(tmp_path, neighbors)
    first = KeptUnits.first

    def mutant(kept, batch, columns, number):
        for one in first(kept, batch, columns, number):
            rows, held = kept._buckets[number]
            first_come = {name: column.slice(0, rows) for name, column in columns.items()}
            kept._buckets[number] = (rows, held | first_come)
            yield one

    monkeypatch.setattr(KeptUnits, "first", mutant)
    assert buckets.answers(engine) != buckets.answers(engine)


def test_what_one_pass_left_half_is_not_kept(tmp_path, monkeypatch):
    frame, neighbors = buckets.table("text", 300), RELATIONS[1]
    pq.write_table(frame, tmp_path / "data.parquet", row_group_size=37)
    engine, plan = kept_engine(tmp_path, neighbors), SumsPlan((), ((),))
    expected = memory_engine_from_frame(frame, SCHEMA, neighbors).sums(plan).tolist()
    with monkeypatch.context() as patched:
        patched.setattr(KeptUnits, "first", lambda *_: iter([None]))
        with pytest.raises(DataShapeRefused):
            engine.sums(plan)
    assert KeptUnits not in engine.remembered
    assert engine.sums(plan).tolist() == expected


def test_a_file_that_changes_after_rows_were_kept_is_refused(tmp_path):
    neighbors, plan = RELATIONS[1], SumsPlan((), ((),))
    pq.write_table(buckets.table("text", 300), tmp_path / "data.parquet")
    engine = kept_engine(tmp_path, neighbors)
    engine.sums(plan)
    pq.write_table(buckets.table("text", 301), tmp_path / "data.parquet")
    with pytest.raises(SourceChanged):
        engine.sums(plan)


def test_missing_cells_of_units_are_those_of_memory(tmp_path):
    frame = pd.DataFrame({"x": [1.0, None, 99.0, 2.0] * 30, "id": [*range(40)] * 3})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "data.parquet")
    schema, neighbors = {"x": dp.Real(0, 5)}, dp.AddRemove(unit="id", max_rows=2)
    shown = [
        str(data.check())
        for data in (
            dp.from_frame(frame, schema=schema, neighbors=neighbors),
            dp.read_parquet(tmp_path / "data.parquet", schema=schema, neighbors=neighbors),
        )
    ]
    assert shown[0] == shown[1]
