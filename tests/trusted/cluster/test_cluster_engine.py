"""What tasks do, over frames in this process: memory's integers, however rows are parted."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
from frames import engine_over
from pyspark import cloudpickle

import discreet as dp
from discreet.schema import Schema
from discreet.specs.statistics import Histogram
from discreet.testing import seeded_session
from discreet.testing.engines import check_engine
from discreet.testing.odd_tables import odd_tables
from discreet.trusted.cluster import tasks, units
from discreet.trusted.cluster.answers import placed, put_together
from discreet.trusted.datasets import Dataset

TABLES = {odd.name: odd for odd in odd_tables(60)}
FIRST = ["one giant unit", "texts"]
CANARY = "canary of a cell"
BUDGET = dp.ApproxDP(300, 1e-3)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [*FIRST, *sorted(set(TABLES) - {*FIRST})])
def test_conformance(name):
    found = check_engine(functools.partial(engine_over, batch_rows=7), tables=[TABLES[name]])
    assert found.passed, str(found)
    assert found.refused <= found.questions // 10


SCHEMA = Schema({"x": dp.Real(0, 5), "g": dp.Category(["s", "m"])})
UNITS = dp.Replace(unit="id", max_rows=3)


def crowded(rows=900, seed=4):
    """Units of one row and of hundreds, with many copies of the same content."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "x": rng.integers(0, 4, rows) / 2.0,
            "g": np.array(["s", "m", "?"])[rng.integers(0, 3, rows)],
            "id": np.where(rng.random(rows) < 0.5, 7, rng.integers(0, 200, rows)),
        }
    )


ROWS = crowded()


def integers(engine, neighbors=UNITS):
    session = seeded_session(Dataset(engine, SCHEMA, neighbors), BUDGET, seed=5)
    found = (
        dp.table(session, "x", by="g", spend=dp.GDP(1)),
        dp.median(session, "x", spend=dp.GDP(1)),
    )
    fit = dp.robust(session, "x ~ g", spend=dp.GDP(1))
    return [one.release.integers for one in found] + [one.integers for one in fit.releases]


@pytest.mark.few(1)
@pytest.mark.parametrize("neighbors", [UNITS, dp.AddRemove()], ids=str)
def test_integers_do_not_depend_on_parts_batches_and_attempts(neighbors):
    memory = dp.from_frame(ROWS, schema=SCHEMA, neighbors=neighbors)
    expected = integers(memory._engine, neighbors)
    for parts, batch_rows in ((1, 5), (4, 1 << 17), (11, 40)):
        engine = engine_over(
            ROWS, SCHEMA, neighbors, parts=parts, batch_rows=batch_rows, twice=parts == 4
        )
        assert integers(engine, neighbors) == expected, parts


def test_copies_are_hashed_a_few_at_a_time(monkeypatch):
    """The least hashes of 100 000 copies, of which no more than 1000 are held."""
    groups = units.Groups(
        rows=np.arange(3),
        units=np.array([0, 0, 1]),
        seeds=np.array([5, 5, 6]),
        ordered=[np.array([0.0, 1.0, 0.0])],
        values=np.array([11, 12, 13]),
        counts=np.array([100_000, 1, 2_500]),
    )
    whole = units.least_copies(groups, 3)
    monkeypatch.setattr(units, "COPIES", 1000)
    cut = units.least_copies(groups, 3)
    every = {
        group: units.final_hash(
            units.hash_step(
                np.full(groups.counts[group], groups.values[group]), np.arange(groups.counts[group])
            )
        )
        for group in range(3)
    }
    least = sorted([(value, 0) for value in every[0]] + [(value, 1) for value in every[1]])[:3]
    least += sorted((value, 2) for value in every[2])[:3]
    for group, value in (whole, cut):
        assert sorted(zip(value, group, strict=True)) == sorted(least)


def test_rows_that_change_between_passes_are_noticed_and_the_key_goes_on():
    engine = engine_over(ROWS, SCHEMA, dp.Replace())
    session = seeded_session(Dataset(engine, SCHEMA, dp.Replace()), BUDGET, seed=5)
    dp.mean(session, "x", spend=dp.GDP(1))
    whole, others = engine._frame, engine_over(crowded(seed=5), SCHEMA, dp.Replace())._frame
    engine._frame = others
    paid = len(session.ledger.entries())
    with pytest.raises(dp.ReleaseFailed):
        dp.table(session, "x", by="g", spend=dp.GDP(2))
    assert len(session.ledger.entries()) == paid + 1
    engine._frame = whole
    assert dp.table(session, "x", by="g", spend=dp.GDP(1)).release.integers


def test_a_model_whose_blocks_are_others_is_noticed():
    engine = engine_over(ROWS, SCHEMA, UNITS)
    integers(engine)
    assert engine._model is not None
    engine._model[1].parts[0] = engine._model[1].parts[0].slice(0, 0)
    session = seeded_session(Dataset(engine, SCHEMA, UNITS), BUDGET, seed=5)
    with pytest.raises(dp.ReleaseFailed):
        dp.robust(session, "x ~ g", spend=dp.GDP(1))


def test_what_looks_at_rows_is_refused_before_its_debit():
    session = seeded_session(
        Dataset(engine_over(ROWS, SCHEMA, dp.AddRemove()), SCHEMA, dp.AddRemove()), BUDGET, seed=5
    )
    asks = {
        "sgd": lambda: dp.robust(session, "x ~ g", spend=dp.GDP(1), solver=dp.SGD(delta=1e-8)),
        "parts": lambda: dp.subsample_test(
            session, lambda x: 0.5, columns="x", parts=2, spend=dp.GDP(1)
        ),
    }
    for ask in asks.values():
        with pytest.raises(dp.InvalidParameter, match="only sums of rows leave the cluster"):
            ask()
    assert [entry.kind for entry in session.ledger.entries()] == ["open"]


def test_a_task_that_fails_says_one_thing():
    def quoting(reading, batches):
        raise ValueError(next(batches).to_pylist())
        yield

    batch = pa.RecordBatch.from_pydict({"s0": [CANARY]})
    sent = cloudpickle.dumps(tasks.in_task(quoting, None, tasks.VERSION))
    with pytest.raises(RuntimeError) as failed:
        list(cloudpickle.loads(sent)(iter([batch])))
    assert str(failed.value) == tasks.FAILED
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None


def test_a_task_of_another_version_gives_nothing():
    def one(reading, batches):
        yield next(batches)

    batch = pa.RecordBatch.from_pydict({"s0": [1]})
    assert list(tasks.in_task(one, None, tasks.VERSION)(iter([batch]))) == [batch]
    with pytest.raises(RuntimeError):
        list(tasks.in_task(one, None, "0.0.0")(iter([batch])))


def test_batches_are_limited_in_rows_and_bytes(monkeypatch):
    batches = [pa.RecordBatch.from_pydict({"x": np.arange(100.0)}) for _ in range(10)]
    monkeypatch.setattr(tasks, "BATCH_ROWS", 250)
    assert [len(table) for table in tasks.tables(iter(batches))] == [200] * 5
    monkeypatch.setattr(tasks, "BATCH_BYTES", 800)
    assert [len(table) for table in tasks.tables(iter(batches))] == [100] * 10


def test_answers_go_to_places_and_come_back():
    histogram = Histogram(9, np.array([2, 5]), np.array([7, 1]))
    answer = (
        np.array([[2**70, 0], [-3, 4]], dtype=object),
        5,
        [np.array([0, 6], dtype=np.int64), histogram],
    )
    none = (
        np.zeros((2, 2), dtype=object),
        0,
        [np.zeros(2, dtype=np.int64), Histogram(9, *np.zeros((2, 0), dtype=np.int64))],
    )
    totals = {}
    for places, numbers in placed(answer):
        totals |= dict(zip(places.tolist(), numbers, strict=True))
    assert len(totals) == 3 + 1 + 1 + 2
    found = put_together(none, totals)
    assert (found[0] == answer[0]).all()
    assert found[1] == 5
    assert found[2][0].tolist() == [0, 6]
    assert found[2][0].dtype == np.int64
    assert (found[2][1].places == histogram.places).all()
    assert (found[2][1].counts == histogram.counts).all()
