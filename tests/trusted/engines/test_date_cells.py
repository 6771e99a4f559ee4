"""Dates and times: every source gives the same whole days and seconds, cells that are none are
missing, and one row moves the cells of a calendar by one row.
"""

from __future__ import annotations

import datetime
import itertools
import math
import random
import zoneinfo

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.asking.cells import cells_by
from discreet.dates import seconds_of, seconds_of_text
from discreet.errors import DataShapeRefused, InvalidParameter
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Date, Datetime, Schema, column_from_dict
from discreet.specs.queries.keys import key_from_dict
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import Sum, number_factor
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.engines.memory import memory_engine_from_arrays, memory_engine_from_frame

FIRST, LAST = datetime.datetime(2023, 11, 17), datetime.datetime(2024, 4, 2, 18, 30)
SCHEMA = Schema(
    {
        "day": Date("2023-11-17", "2024-04-02", missing="2024-01-01"),
        "at": Datetime("2023-11-17", "2024-04-02 18:30", missing=LAST),
    }
)
WORDS = {
    "day": ("year", "quarter", "month", "day", "weekday"),
    "at": ("year", "quarter", "month", "weekday", "hour"),
}
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
PLANS = [
    SumsPlan(cells_by(SCHEMA, {name: word}).keys, ((), (number_factor(SCHEMA, name, "a sum"),)))
    for name, words in WORDS.items()
    for word in words
]
HOSTILE_ZONE = type("Zone", (datetime.tzinfo,), {"utcoffset": lambda *_: 1 / 0})()


def moments(rows, seed=1):
    """Some moments within the range, before and after it, and missing ones."""
    choose, found = random.Random(seed), []
    for _ in range(rows):
        cell = FIRST + datetime.timedelta(seconds=choose.randrange(-(10**6), 13 * 10**6))
        found.append(choose.choice([cell, cell, cell, None, FIRST, LAST, cell.replace(year=1901)]))
    return found


def expected(cells):
    """Counts and sums of every plan, cell by cell, with Python's own dates."""
    result = []
    for name, words in WORDS.items():
        day = name == "day"
        gone = datetime.datetime(2024, 1, 1) if day else LAST
        read = [min(max(gone if cell is None else cell, FIRST), LAST) for cell in cells]
        for word in words:
            labels = cells_by(SCHEMA, {name: word}).labels[0]
            table = {label: [0, 0] for label in labels}
            for cell in read:
                since = (cell - FIRST).days if day else math.floor((cell - FIRST).total_seconds())
                spelled = {
                    "year": "%Y",
                    "quarter": f"%Y-Q{(cell.month + 2) // 3}",
                    "month": "%Y-%m",
                    "day": "%Y-%m-%d",
                    "weekday": "%a",
                    "hour": "%H",
                }[word]
                grid = SCHEMA[name].encoding()
                table[cell.strftime(spelled)][0] += 1
                table[cell.strftime(spelled)][1] += round((since - grid.center) * grid.per_unit)
            result.append(list(table.values()))
    return result


def answers(engine):
    return [engine.sums(plan).tolist() for plan in PLANS]


def both(kind):
    return lambda cells: {"day": kind(cells), "at": kind(cells)}


def arrow(unit, zone=None):
    return both(lambda cells: pa.array(cells, pa.timestamp(unit)).cast(pa.timestamp(unit, zone)))


def text(spell):
    return both(lambda cells: [None if cell is None else spell(cell) for cell in cells])


def in_berlin(cell):
    return cell.replace(tzinfo=datetime.UTC).astimezone(BERLIN)


ARRAYS = {
    "datetimes": both(list),
    "in Berlin": text(in_berlin),
    "Timestamps": both(
        lambda cells: [pd.NaT if cell is None else pd.Timestamp(cell) for cell in cells]
    ),
    "numpy scalars": both(lambda cells: list(np.array(cells, dtype="datetime64[us]"))),
    "numpy seconds": both(lambda cells: np.array(cells, dtype="datetime64[s]")),
    "numpy us": both(lambda cells: np.array(cells, dtype="datetime64[us]")),
    "masked": both(
        lambda cells: np.ma.array(
            np.array([cell or FIRST for cell in cells], dtype="datetime64[ms]"),
            mask=[cell is None for cell in cells],
        )
    ),
    "ISO text": text(lambda cell: cell.isoformat()),
    "text with an offset": text(lambda cell: in_berlin(cell).isoformat(" ")),
    "text with parts of a second": text(lambda cell: f" {cell.isoformat()}.987654Z "),
}
TABLES = {
    **{unit: arrow(unit) for unit in ("s", "ms", "us", "ns")},
    "zoned": arrow("us", "Asia/Tokyo"),
    "dictionary": both(lambda cells: pa.array(cells, pa.timestamp("us")).dictionary_encode()),
    "text": both(lambda cells: pa.array([None if cell is None else str(cell) for cell in cells])),
}
FRAMES = {
    "Arrow": lambda table: table,
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "pandas": lambda table: table.to_pandas(),
    "DuckDB": duckdb.from_arrow,
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_and_lists_give_the_days_and_seconds_of_python(kind):
    cells = moments(60)
    assert answers(memory_engine_from_arrays(ARRAYS[kind](cells), SCHEMA, Replace())) == expected(
        cells
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", TABLES)
def test_frames_and_files_give_them_too(kind, tmp_path):
    cells = moments(60)
    table = pa.table(TABLES[kind](cells))
    wanted = expected(cells)
    for name, frame in FRAMES.items():
        if (kind, name) != ("dictionary", "DuckDB"):  # it has no dictionaries of times
            assert answers(memory_engine_from_frame(frame(table), SCHEMA, Replace())) == wanted, (
                name
            )
    pq.write_table(table, tmp_path / "data.parquet")
    table.to_pandas().to_csv(tmp_path / "data.csv", index=False)
    for format in ("parquet", "csv"):
        engine = FileEngine(tmp_path / f"data.{format}", format, SCHEMA, Replace())
        assert answers(engine) == wanted, format


def test_days_of_every_type_are_days(tmp_path):
    days = [None if cell is None else cell.date() for cell in moments(40)]
    wanted = expected(
        [None if day is None else datetime.datetime(*day.timetuple()[:3]) for day in days]
    )
    for kind in (pa.date32(), pa.date64()):
        table = pa.table({name: pa.array(days, kind) for name in SCHEMA})
        for frame in FRAMES.values():
            assert answers(memory_engine_from_frame(frame(table), SCHEMA, Replace())) == wanted
        pq.write_table(table, tmp_path / "data.parquet")
        engine = FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, Replace())
        assert answers(engine) == wanted
    for cells in (days, np.array(days, dtype="datetime64[D]"), [str(day) for day in days]):
        columns = dict.fromkeys(SCHEMA, cells)
        assert answers(memory_engine_from_arrays(columns, SCHEMA, Replace())) == wanted


NONE = [None, "", "x", "2024-13-01", "2024-02-30", "2024-1-1", "01.02.2024", "2024-01-01T25:00"]
NONE += ["20240101", "2024-01-01T10", "2024-01-01 10:00:60", "٢٠٢٤-01-01", 5, 45000.5, True, b"x"]
NONE += [pd.NaT, np.datetime64("NaT"), np.timedelta64(3, "D"), datetime.time(3), [], object()]
NONE += [FIRST.replace(tzinfo=HOSTILE_ZONE)]


def test_anything_else_is_missing_and_moves_no_other_cell():
    for cell in NONE:
        assert cell is None or seconds_of(cell) is None, cell
        cells = [FIRST, cell, LAST]
        engine = memory_engine_from_arrays(dict.fromkeys(SCHEMA, cells), SCHEMA, Replace())
        assert answers(engine) == expected([FIRST, None, LAST]), cell
    for column in (np.array([1, 2]), np.array([0.5, 2]), np.array([True, False])):
        engine = memory_engine_from_arrays(dict.fromkeys(SCHEMA, column), SCHEMA, Replace())
        assert answers(engine) == expected([None, None])


@pytest.mark.parametrize(
    "unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]
)
def test_numpy_times_of_every_unit_and_size_are_read(unit):
    """The least and greatest counts do not overflow into the range."""
    counts = np.array([-(2**63) + 1, 2**63 - 1, -(2**63), 0, -1, 1])
    column = dict.fromkeys(SCHEMA, counts.astype(f"datetime64[{unit}]"))
    found = memory_engine_from_arrays(column, SCHEMA, Replace()).values("day").tolist()
    ends = [0.0, 137.0] if unit not in ("ns", "ps", "fs", "as") else [0.0, 137.0 * (unit == "ns")]
    assert found == [*ends, 45.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("unit", ["ms", "us", "ns", "ps", "fs", "as"])
def test_parts_of_a_second_are_rounded_down_before_1970_too(unit):
    schema = Schema({"at": Datetime("1969-12-31", "1970-01-02")})
    times = np.array([-1, 0, 1]).astype(f"datetime64[{unit}]")
    for cells in (times, list(times)):
        engine = memory_engine_from_arrays({"at": cells}, schema, Replace())
        assert engine.values("at").tolist() == [86_399.0, 86_400.0, 86_400.0]


def test_text_is_read_as_python_reads_it():
    choose = random.Random(4)
    for _ in range(2000):
        moment = datetime.datetime(1, 1, 2) + datetime.timedelta(
            seconds=choose.randrange(3 * 10**11)
        )
        offset = datetime.timezone(datetime.timedelta(minutes=choose.randrange(-1400, 1400)))
        zoned = moment.replace(tzinfo=offset)
        since = zoned - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        assert (
            seconds_of_text(zoned.isoformat())
            == seconds_of(zoned)
            == since // datetime.timedelta(seconds=1)
        )


# ── claims ────────────────────────────────────────────────────────────────────────────────────────

CELLS = [None, FIRST, LAST, FIRST.replace(year=1901), datetime.datetime(2024, 2, 29, 12), "spoilt"]


def engine_kinds(cells, relation, folder):
    """One small table in every engine that can hold its cells."""
    columns = dict.fromkeys(SCHEMA, cells)
    yield memory_engine_from_arrays(columns, SCHEMA, relation)
    texts = pa.table({name: pa.array([cell and str(cell) for cell in cells]) for name in SCHEMA})
    for frame in (texts, pl.from_arrow(texts)):
        yield memory_engine_from_frame(frame, SCHEMA, relation)
    pq.write_table(texts, folder / "data.parquet")
    yield FileEngine(folder / "data.parquet", "parquet", SCHEMA, relation)
    pl.from_arrow(texts).write_csv(folder / "data.csv")
    yield FileEngine(folder / "data.csv", "csv", SCHEMA, relation)


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation", [Replace(), pytest.param(AddRemove(), marks=pytest.mark.slow)], ids=str
)
def test_one_row_moves_no_statistic_beyond_its_sensitivity(relation, tmp_path):
    """All tables of two rows and their neighbours, on every engine."""
    queries = [
        Sum(cells_by(SCHEMA, {name: word}).keys, term, False)
        for name, words in WORDS.items()
        for word in words
        for term in ((), (number_factor(SCHEMA, name, "a sum"),))
    ]
    seen = {}
    for rows in (1, 2):
        for cells in itertools.combinations_with_replacement(range(len(CELLS)), rows):
            table = [CELLS[place] for place in cells]
            found = [
                [query.assemble(engine.sums(query.plan())) for query in queries]
                for engine in engine_kinds(table, relation, tmp_path)
            ]
            assert all(one == found[0] for one in found), table
            seen[cells] = found[0]
    worst = 0.0
    for before, after in itertools.combinations(seen, 2):
        replaced = (
            len(before) == len(after)
            and sum(a != b for a, b in zip(before, after, strict=False)) == 1
        )
        removed = len(after) == len(before) + 1 and set(before) <= set(after)
        if not (replaced if isinstance(relation, Replace) else removed):
            continue
        for query, one, two in zip(queries, seen[before], seen[after], strict=True):
            moved = sum(abs(a - b) for a, b in zip(one, two, strict=True))
            bound = query.sensitivity(relation)[0].value
            assert moved <= bound, (query, before, after)
            worst = max(worst, float(moved / bound))
    assert worst == 1.0  # the bound is reached


def test_units_are_not_read_as_dates(tmp_path):
    """Two texts of one day are two persons, even where the column is declared as dates."""
    columns = {"day": ["2024-01-01", "2024-01-01T10:00", "2024-01-02"], "at": [None] * 3}
    relation = Replace(unit="day", max_rows=1)
    assert memory_engine_from_arrays(columns, SCHEMA, relation).public_count() == 3
    table = pa.table({"day": pa.array([FIRST]), "at": pa.array([FIRST])})
    pq.write_table(table, tmp_path / "data.parquet")
    with pytest.raises(DataShapeRefused, match="unit="):
        FileEngine(tmp_path / "data.parquet", "parquet", SCHEMA, relation)
    with pytest.raises(DataShapeRefused, match="unit="):
        memory_engine_from_frame(table, SCHEMA, relation)


# ── declarations ──────────────────────────────────────────────────────────────────────────────────


def test_declarations_come_back_from_their_records():
    for column in SCHEMA.values():
        assert column_from_dict(column.to_dict()) == column
    assert SCHEMA["day"].to_dict()["low"] == "2023-11-17"
    assert repr(SCHEMA["at"]) == "Datetime('2023-11-17 00:00:00', '2024-04-02 18:30:00')"
    assert Date(datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 31, 5)) == Date(
        "2024-01-01", "2024-01-31"
    )
    for word in WORDS["at"]:
        key = cells_by(SCHEMA, {"at": word}).keys[0]
        assert key_from_dict(key.to_dict()) == key


def test_labels_are_those_of_the_calendar():
    labels = cells_by(SCHEMA, {"day": "month"}).labels[0]
    assert labels == ("2023-11", "2023-12", "2024-01", "2024-02", "2024-03", "2024-04")
    assert cells_by(SCHEMA, {"day": "quarter"}).labels[0] == ("2023-Q4", "2024-Q1", "2024-Q2")
    assert cells_by(SCHEMA, {"day": "weekday"}).labels[0][0] == "Mon"
    edges = cells_by(SCHEMA, {"day": ["2023-11-17", "2024-01-01", "2024-04-02"]})
    assert edges.labels[0] == ("2023-11-17–2023-12-31", "2024-01-01–2024-04-02")
    assert not edges.optional


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Date(),
        lambda: Date("2024-01-01"),
        lambda: Date("2024-01-02", "2024-01-01"),
        lambda: Date("2024-01-01", "2024-01-01 23:00"),
        lambda: Date("yesterday", "2024-01-01"),
        lambda: Date(2020, 2024),
        lambda: Datetime("1900-01-01", "2024-01-01"),
        lambda: Date("2024-01-01", "2024-02-01", missing="2025-01-01"),
        lambda: cells_by(SCHEMA, "day"),
        lambda: cells_by(SCHEMA, {"day": "hour"}),
        lambda: cells_by(SCHEMA, {"day": "fortnight"}),
        lambda: cells_by(SCHEMA, {"day": [1, 2]}),
        lambda: cells_by(Schema({"x": dp.Real(0, 1)}), {"x": "month"}),
        lambda: key_from_dict({"kind": "cycle", "column": "day", "size": 7, "step": 0, "shift": 0}),
    ],
)
def test_what_is_no_date_or_period_is_refused_in_four_parts(wrong):
    with pytest.raises(InvalidParameter) as caught:
        wrong()
    assert all((caught.value.asked, caught.value.found, caught.value.why, caught.value.remedy))


@pytest.mark.parametrize(
    ("kind", "unread"), [(pa.date32(), 2**31 - 1), (pa.date64(), 2**60), (pa.timestamp("s"), 2**62)]
)
def test_a_date_that_python_has_not_is_its_own_rows_alone(kind, unread):
    """In a pandas column of Arrow's dates it made the whole pass fail, after the debit."""
    known = pa.scalar(datetime.datetime(2024, 1, 2), pa.timestamp("s")).cast(kind).value
    column = pd.array(pa.array([known, unread, None], kind), dtype=pd.ArrowDtype(kind))
    engine = memory_engine_from_frame(
        pd.DataFrame({"day": column, "at": column}), SCHEMA, AddRemove()
    )
    rows, total = engine.sums(PLANS[0]).sum(axis=0).tolist()
    missing, last = -47, 137  # half days from the middle of the range
    assert rows == 3
    assert total - (-45 + missing) in (missing, last)
