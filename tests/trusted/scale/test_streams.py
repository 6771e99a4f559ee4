"""Streams: the same integers however rows come, and whatever else comes fails after the debit,
with one text, and goes on under the same key.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest

import discreet as dp
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.testing import seeded_session
from discreet.trusted.engines import batches
from discreet.trusted.scale.streams import StreamSource, mixing, words_of

SCHEMA = {
    "x": dp.Real(-3, 3),
    "y": dp.Real(-9, 9),
    "g": dp.Category(["s", "m", "l"]),
    "k": dp.Open(),
}
CANARY = "canary in a cell"
RELATIONS = (dp.Replace(), dp.AddRemove(), dp.Replace(unit="id", max_rows=2))


def table(rows=600, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, rows)
    return pa.table(
        {
            "x": np.where(rng.random(rows) < 0.05, np.nan, x),
            "y": 2 * x + rng.normal(0, 1, rows),
            "g": pa.array(rng.choice(["s", "m", "l", "?"], rows)).dictionary_encode(),
            "k": rng.choice(["a", "b", CANARY], rows, p=[0.6, 0.39, 0.01]),
            "id": rng.integers(0, rows // 3, rows),
        }
    )


ROWS = table()


def shuffled(columns):
    order = np.random.default_rng(len(columns)).permutation(len(ROWS))
    return ROWS.take(pa.array(order)).select(columns).to_reader(max_chunksize=77)


READERS = {
    "reader": lambda columns: ROWS.select(columns).to_reader(max_chunksize=50),
    "one batch": lambda columns: ROWS.select(columns).combine_chunks().to_reader(),
    "batches of one row": lambda columns: iter(ROWS.select(columns).to_batches(max_chunksize=1)),
    "more columns": lambda columns: ROWS.to_reader(max_chunksize=50),
    "columns in another order": lambda columns: ROWS.select(columns[::-1]).to_reader(),
    "a table": lambda columns: ROWS.select(columns),
    "another order of rows": shuffled,
}


def asked(session, *, fitted=False):
    fit = dp.ols(session, "y ~ x + g", spend=dp.GDP(2)).releases if fitted else ()
    return [
        dp.mean(session, "x", spend=dp.GDP(1)).release.integers,
        dp.table(session, "x", by="g", spend=dp.GDP(1)).release.integers,
        dp.table(session, by="k", spend=dp.GDP(1), delta=1e-6).release.integers,
        *(release.integers for release in fit),
    ]


def opened(make_reader, neighbors=RELATIONS[0], **named):
    data = dp.from_batches(make_reader, schema=SCHEMA, neighbors=neighbors, **named)
    return seeded_session(data, dp.ApproxDP(200, 1e-4), seed=5)


@pytest.mark.few(1)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_integers_do_not_depend_on_how_rows_come(neighbors, monkeypatch):
    frame = dp.from_frame(ROWS, schema=SCHEMA, neighbors=neighbors)
    expected = {
        fitted: asked(seeded_session(frame, dp.ApproxDP(200, 1e-4), seed=5), fitted=fitted)
        for fitted in (True, False)
    }
    for name, make_reader in READERS.items():
        fitted = name == "another order of rows"
        assert asked(opened(make_reader, neighbors), fitted=fitted) == expected[fitted], name
    monkeypatch.setattr(batches, "BATCH_ROWS", 13)
    for make_reader in (READERS["one batch"], READERS["another order of rows"]):
        assert asked(opened(make_reader, neighbors)) == expected[False]


def cut_short(columns):
    given = ROWS.select(columns)
    return pa.RecordBatchReader.from_batches(given.schema, iter(given.to_batches(200)[:-1]))


def raising(columns):
    yield from ROWS.select(columns).to_batches(200)[:2]
    raise OSError(f"{CANARY}: connection lost")


def changed(name, cells):
    place = ROWS.column_names.index(name)
    rows = ROWS.set_column(place, name, cells)
    return lambda columns: rows.select(columns).to_reader(max_chunksize=50)


def moved(column):
    return pa.chunked_array([ROWS[column].slice(1), ROWS[column].slice(0, 1)])


OTHERWISE = {
    "cut short": cut_short,
    "raises": raising,
    "raises at once": lambda columns: 1 / 0,
    "no reader": lambda columns: CANARY,
    "a row more": lambda columns: pa.concat_tables([ROWS, ROWS.slice(0, 1)]).select(columns),
    "a row twice, another not": lambda columns: pa.concat_tables(
        [ROWS.slice(0, 1), ROWS.slice(0, len(ROWS) - 1)]
    ).select(columns),
    "one cell": changed("y", pa.array([0.5, *ROWS["y"].to_pylist()[1:]])),
    "one cell is missing": changed("y", pa.array([None, *ROWS["y"].to_pylist()[1:]])),
    "cells of one column moved on": changed("y", moved("y")),
    "another type": changed("y", ROWS["y"].cast(pa.float32())),
    "a column less": lambda columns: ROWS.select(columns[:1]).to_reader(),
    "a column twice": lambda columns: pa.table([ROWS["y"], ROWS["y"]], ["y", "y"]),
    "exits": lambda columns: exit(1),
}


@pytest.mark.parametrize("otherwise", OTHERWISE)
def test_what_is_told_otherwise_fails_after_the_debit_and_goes_on_later(otherwise):
    now = [READERS["reader"]]
    session = opened(lambda columns: now[0](columns))

    def fit(key):
        return dp.covariance(session, ["x", "y"], spend=dp.GDP(1), key=key)

    first = fit("first")
    spent = session.ledger.spent()
    now[0] = OTHERWISE[otherwise]
    with pytest.raises(dp.ReleaseFailed) as failed:
        fit("second")
    assert CANARY not in str(failed.value)
    assert failed.value.__context__ is failed.value.__cause__ is None
    debited = session.ledger.spent()
    assert debited != spent
    assert fit("first").release == first.release
    now[0] = READERS["another order of rows"]
    fit("second")
    assert session.ledger.spent() == debited


def test_a_pass_that_failed_is_compared_with_no_more():
    """Columns that were never read together before: nothing is kept of a pass with other rows."""
    now = [READERS["reader"]]
    session = opened(lambda columns: now[0](columns))
    dp.mean(session, "y", spend=dp.GDP(1))
    now[0] = OTHERWISE["one cell"]
    with pytest.raises(dp.ReleaseFailed):
        dp.covariance(session, ["x", "y"], spend=dp.GDP(1), key="later")
    now[0] = READERS["reader"]
    spent = session.ledger.spent()
    dp.covariance(session, ["x", "y"], spend=dp.GDP(1), key="later")
    assert session.ledger.spent() == spent


def test_a_type_that_moves_no_cell_is_noticed():
    """Text that says the same is another reading: "3.0" is level 3 as text, and 3 as a number."""
    given = pa.table({"g": pa.array(["1", "2"])})
    now = [given]
    data = dp.from_batches(
        lambda columns: now[0], schema={"g": dp.Category(["1", "2"])}, neighbors=dp.AddRemove()
    )
    session = data.open(budget=dp.GDP(9))
    now[0] = given.set_column(0, "g", pa.array([b"1", b"2"], pa.binary()))
    with pytest.raises(dp.ReleaseFailed):
        dp.table(session, by="g", spend=dp.GDP(1))


def test_columns_read_apart_are_compared_too():
    """Passes over other columns share the cells of a column, and the number of rows."""
    now = [READERS["reader"]]
    session = opened(lambda columns: now[0](columns), dp.AddRemove())
    dp.covariance(session, ["x", "y"], spend=dp.GDP(1))
    for otherwise in ("one cell", "a row twice, another not", "a row more"):
        now[0] = OTHERWISE[otherwise]
        with pytest.raises(dp.ReleaseFailed):
            dp.mean(session, "y", spend=dp.GDP(1))
    with pytest.raises(dp.ReleaseFailed):  # never read before, but with another number of rows
        dp.table(session, by="g", spend=dp.GDP(1))


NO_STREAM = {
    "none": lambda columns: None,
    "raises": lambda columns: 1 / 0,
    "no batch": lambda columns: iter([]),
    "no batches": lambda columns: iter([CANARY]),
    "exits": lambda columns: exit(1),
    "not a function": 5,
}


@pytest.mark.parametrize("given", NO_STREAM)
def test_what_gives_no_stream_is_refused(given):
    with pytest.raises(dp.DataShapeRefused, match="make_reader") as refused:
        dp.from_batches(NO_STREAM[given], schema=SCHEMA, neighbors=dp.Replace())
    assert CANARY not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(dp.DataShapeRefused, match="'z'"):
        dp.from_batches(READERS["more columns"], schema={"z": dp.Open()}, neighbors=dp.Replace())


def test_a_stream_needs_a_name_beside_a_ledger_and_says_no_more(tmp_path):
    reader, ledger = READERS["reader"], tmp_path / "a.ledger"
    data = dp.from_batches(reader, schema=SCHEMA, neighbors=dp.Replace())
    with pytest.raises(dp.InvalidParameter, match="name="):
        data.open(budget=dp.GDP(1), ledger=ledger)
    named = [
        dp.from_batches(reader, schema=SCHEMA, neighbors=dp.Replace(), name="visits 2024")
        for _ in range(2)
    ]
    session = named[0].open(budget=dp.GDP(1), ledger=ledger)
    kept = dp.mean(session, "x", spend=dp.GDP(0.5), key="mean")
    again = named[1].open(ledger=ledger)
    assert dp.mean(again, "x", spend=dp.GDP(0.5), key="mean").release == kept.release
    assert named[0]._engine.describe()["source"] == "visits 2024"
    assert CANARY.encode() not in ledger.read_bytes()


def test_sums_of_neighbours_stay_within_the_sensitivity():
    """All tables of two rows over odd cells, as streams; a stream that lost its last row, which
    nothing would notice in a first pass, moves the count of a public number of rows.
    """
    cells = [None, math.nan, -math.inf, -3.0, 0.4, 1e300]
    schema = dp.Schema({"x": dp.Real(-3, 3, missing=0)})
    factor = number_factor(schema, "x", "a sum")
    plan, step = SumsPlan((), ((), (factor,))), factor.encoding.step
    sums = {}
    for rows in itertools.product(cells, repeat=2):
        given = pa.table({"x": pa.array(rows, pa.float64(), from_pandas=False)})
        data = dp.from_batches(
            lambda columns, given=given: given, schema=schema, neighbors=dp.Replace()
        )
        sums[rows] = data._engine.sums(plan)[0].tolist()
    largest = max(
        abs(sums[first, other][1] - sums[second, other][1])
        for first, second, other in itertools.product(cells, repeat=3)
    )
    assert {count for count, _ in sums.values()} == {2}
    assert 5.9 < largest * step <= 6.0 + step


TYPES = [
    pa.array([1, None, -5], pa.int8()),
    pa.array([1, None, 2**64 - 1], pa.uint64()),
    pa.array([1.5, None, math.nan], pa.float16()),
    pa.array([1.5, None, math.nan], pa.float32()),
    pa.array([True, None, False]),
    pa.array(["a", None, ""]),
    pa.array(["a", None, "é"]).dictionary_encode(),
    pa.array(["a", None, "é"], pa.string_view()),
    pa.array([0, None, 10**9], pa.timestamp("us", "UTC")),
    pa.array([0, None, 30], pa.date32()),
    pa.array([0, None, 86_400_000], pa.date64()),
    pa.array([1, None, 2], pa.decimal128(38, 4)),
    pa.Array.from_buffers(pa.string(), 3, pa.array([b"x", b"\xff", b"y"]).buffers()),
]


@pytest.mark.parametrize("column", TYPES, ids=lambda column: str(column.type)[:30])
def test_cells_have_words_of_their_own_in_any_piece(column):
    words = words_of(column)
    assert len(set(words.tolist())) == 3
    assert words_of(column.slice(1)).tolist() == words[1:].tolist()
    pieces = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    assert words_of(pieces).tolist() == words.tolist()
    assert len(words_of(column.slice(0, 0))) == 0


def test_mixing_moves_all_bits():
    words = np.arange(1 << 12, dtype=np.uint64)
    mixed = mixing(words)
    assert len(set(mixed.tolist())) == 1 << 12
    flipped = mixing(words ^ np.uint64(1)) ^ mixed
    bits = np.unpackbits(flipped.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert (abs(bits - 0.5) < 0.08).all()


def test_a_check_that_forgets_rows_lets_another_order_within_a_row_pass(monkeypatch):
    """The positive control: without sums of rows, cells that move between rows are not noticed."""
    now = [READERS["reader"]]
    session = opened(lambda columns: now[0](columns))
    dp.covariance(session, ["x", "y"], spend=dp.GDP(1))
    now[0] = OTHERWISE["cells of one column moved on"]
    with pytest.raises(dp.ReleaseFailed):
        dp.covariance(session, ["x", "y"], spend=dp.GDP(1))
    source = session._engine._source
    assert isinstance(source, StreamSource)
    source._sums = {about: total for about, total in source._sums.items() if about[0] != "row"}
    dp.covariance(session, ["x", "y"], spend=dp.GDP(1))
