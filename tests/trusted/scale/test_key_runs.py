"""Undeclared keys on disk: the names and counts of memory, and the same noise for each."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.trusted.engines.engine_kinds import counts_in

import discreet as dp
from discreet.specs import statistics
from discreet.specs.queries.keys import Between
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.statistics import KeyCounts, key_counts
from discreet.testing import seeded_session
from discreet.trusted.datasets import Dataset
from discreet.trusted.engines import batches
from discreet.trusted.engines.batches import BatchEngine
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_frame
from discreet.trusted.extensions.open_keys import counts
from discreet.trusted.extensions.open_keys.counts import KeySums
from discreet.trusted.scale import key_runs
from discreet.trusted.scale.key_runs import StoredKeys
from discreet.trusted.scale.limits import Limits
from discreet.trusted.scale.streams import StreamSource


def texts(rows=2000):
    """Keys whose order by code points is neither that of UTF-16 nor that of any language."""
    rng = np.random.default_rng(3)
    letters = ["a", "Z", "é", "ß", "中", "\uffff", "\U0001f600", "\0", " ", '"']
    return ["".join(rng.choice(letters, rng.integers(1, 4))) for _ in range(rows)]


def limits(keys, folder):
    return Limits(16 * keys * counts.KEY_BYTES, str(folder))


@pytest.mark.parametrize("keys", [1, 30, 10**6])
@pytest.mark.parametrize("threads", [1, 3])
def test_keys_on_disk_are_those_of_memory(keys, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(key_runs, "PAGE_ROWS", 7)
    monkeypatch.setattr(key_runs, "DRAWN_KEYS", 100)
    monkeypatch.setattr(statistics, "DRAWN_KEYS", 100)
    given = texts()
    states = [KeySums(limits(keys, tmp_path)) for _ in range(threads + 1)]  # one finds nothing
    for place, start in enumerate(range(0, len(given), 60)):
        some = Counter(given[start : start + 60])
        found = key_counts(list(some), np.array(list(some.values())))
        states[place % threads].add(found)
    joined, whole = KeySums.joined(states), Counter(given)
    expected = key_counts(list(whole), np.array(list(whole.values())))
    assert isinstance(joined, StoredKeys if keys < 10**6 else KeyCounts)
    pieces = [(list(one.names), one.counts.tolist()) for one in joined.pieces()]
    assert pieces == [(list(one.names), one.counts.tolist()) for one in expected.pieces()]
    assert len(pieces) > 3
    assert sum(map(sum, (held for _, held in pieces))) == len(given)


def test_what_a_thread_holds_is_bounded(tmp_path):
    sums = KeySums(limits(30, tmp_path))
    for start in range(0, 2000, 50):
        sums.add(KeyCounts([f"{start + i}" for i in range(50)], np.ones(50, dtype=np.int64)))
        assert len(sums._counts) <= 80
    assert len(sums._runs) > 10
    with pytest.raises(TypeError, match="not copied"):
        KeySums.joined([sums]).__reduce__()


@pytest.mark.parametrize("by", ["k", ["k", "j"], ["k", "g"]], ids=str)
def test_tables_by_many_keys_release_the_same(by, tmp_path, monkeypatch):
    rng, given = np.random.default_rng(4), texts(1500)
    held = pa.table(
        {
            "k": [*given, None, "x" * 300],
            "j": rng.integers(0, 40, 1502),
            "g": rng.choice(["s", "m", "?"], 1502),
        }
    )
    pq.write_table(held, tmp_path / "rows.parquet", row_group_size=200)
    schema = dp.Schema({"k": dp.Open(), "j": dp.Open(), "g": dp.Category(["s", "m"])})
    monkeypatch.setattr(batches, "BATCH_ROWS", 150)
    monkeypatch.setattr(key_runs, "DRAWN_KEYS", 64)
    monkeypatch.setattr(statistics, "DRAWN_KEYS", 64)
    made = []
    monkeypatch.setattr(
        key_runs.StoredKeys,
        "__init__",
        lambda keys, runs: made.append(runs) or setattr(keys, "_runs", runs),
    )

    def released(scale):
        engine = FileEngine(tmp_path / "rows.parquet", "parquet", schema, dp.Replace(), scale=scale)
        session = seeded_session(
            Dataset(engine, schema, dp.Replace()), dp.ApproxDP(200, 1e-2), seed=2
        )
        release = dp.table(session, by=by, spend=dp.GDP(10), delta=1e-3).release
        return release.integers, release.found

    expected = released(None)
    assert not made
    assert released(limits(40, tmp_path)) == expected
    assert len(made[0]) > 5
    assert expected[1]


def as_kind(texts, kind):
    """Text of another layout, broken UTF-8 and all."""
    return (
        texts.cast(kind)
        if kind == pa.binary()
        else pc.cast(texts, options=pc.CastOptions(kind, allow_invalid_utf8=True))
    )


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_texts_that_batches_list_alike_are_counted_once_for_each_row(kind, listed, monkeypatch):
    """Lists that are the same in turn, that change and that come again; entries that are broken,
    twice in a list, too long, empty, or that no row holds.
    """
    monkeypatch.setattr(counts, "KEYED_ROWS", 70)
    words = ["a", "b", "a", "", "é", "x" * 201, "y" * 200, "unused", b"\xff\xfe", b"\xed\xa0\x80"]
    held = [word if isinstance(word, bytes) else word.encode() for word in words]
    rng, batches_of_rows = np.random.default_rng(6), []
    for words_first in (held, held, held[::-1], held):
        places = pa.array(rng.choice([0, 1, 2, 3, 4, 5, 6, 8, 9, None], 70), pa.int32())
        texts = pa.array(words_first).cast(pa.large_binary()).view(pa.large_string())
        texts = as_kind(texts, kind)
        column = pa.DictionaryArray.from_arrays(places, texts) if listed else texts.take(places)
        batches_of_rows.append(
            pa.record_batch({"k": column, "n": pa.array(rng.integers(0, 9, 70))})
        )
    schema = dp.Schema({"k": dp.Open(), "n": dp.Integer(0, 9)})
    whole = memory_engine_from_frame(pa.Table.from_batches(batches_of_rows), schema, dp.Replace())
    source = StreamSource(lambda _: batches_of_rows, ["k", "n"], "rows")
    engine = BatchEngine(source, schema, dp.Replace())
    for keys in ((), (Between("n", 2, 5),)):
        plan = OpenPlan(("k",), keys)
        found, expected = (execute(one, plan) for one in (engine, whole))
        assert counts_in(found) == counts_in(expected)
        assert (kind == pa.binary()) != bool(len(found.names))
