"""The suite for strangers' engines: right ones pass it, and each kind of fault is caught."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.testing import engines
from discreet.testing.engines import check_engine
from discreet.testing.odd_tables import CANARY, UNIT, odd_tables
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.scale.limits import Limits

TABLES = {odd.name: odd for odd in odd_tables()}


def few(*names):
    return [TABLES[name] for name in names]


def stream(change=lambda table: table, chunk=7):
    """An engine over the batches of a table, of which something may be changed."""
    return lambda table, schema, neighbors: dp.from_batches(
        lambda columns: change(table).select(columns).to_reader(max_chunksize=chunk),
        schema=schema,
        neighbors=neighbors,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("chunk", "rows"), [(1, 60), (1 << 17, 200)])
def test_streams_pass(chunk, rows):
    """Each row a batch of its own, and all rows one batch."""
    found = check_engine(stream(chunk=chunk), rows=rows)
    assert found.passed, str(found)
    assert found.questions > 500


@pytest.mark.slow
def test_files_pass(tmp_path):
    made = iter(range(10**6))

    def kept(table, schema, neighbors):
        path = tmp_path / f"{next(made)}.parquet"
        pq.write_table(table, path, row_group_size=9)
        limits = Limits(3200, str(tmp_path))
        return FileEngine(path, "parquet", schema, neighbors, scale=limits)

    found = check_engine(kept)
    assert found.passed, str(found)


@pytest.mark.slow
def test_right_answers_are_counted():
    found = check_engine(stream(), tables=few("texts", "numbers, no rows", "odd names"))
    assert found.passed, str(found)
    assert str(found) == f"{found.questions} of {found.questions} answers are memory's"


def without_a_row(table):
    return table.slice(0, max(0, len(table) - 1))


def one_broken_text_empties_its_column(table):
    texts = table["level"].cast(pa.binary())
    broken = pc.any(pc.equal(texts, b"\xff\xfe")).as_py()
    place = table.column_names.index("level")
    return table.set_column(place, "level", pa.nulls(len(table), pa.string())) if broken else table


def nulls_are_zeros(table):
    place = table.column_names.index("double")
    return table.set_column(place, "double", table["double"].fill_null(0.0))


def units_without_the_first_rows(table):
    """Of a unit, rows by their place: another choice among those of the giant."""
    return table.slice(len(table) // 2)


FAULTS = {
    "a lost row": (without_a_row, "one giant unit"),
    "one cell for all": (one_broken_text_empties_its_column, "texts"),
    "nulls as zeros": (nulls_are_zeros, "numbers"),
    "other rows of a unit": (units_without_the_first_rows, "one giant unit"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_caught(fault):
    change, name = FAULTS[fault]
    found = check_engine(stream(change), tables=few(name))
    assert not found.passed
    assert CANARY not in str(found)
    assert name in str(found)


def by_place(table, schema, neighbors):
    """Units bounded by the order of rows, which is nobody's own."""
    if neighbors.unit is None:
        return dp.from_frame(table, schema=schema, neighbors=neighbors)
    seen, kept = {}, []
    for unit in table[UNIT].to_pylist():
        seen[unit] = seen.get(unit, 0) + 1
        kept.append(seen[unit] <= neighbors.rows)
    return dp.from_frame(table.filter(pa.array(kept)), schema=schema, neighbors=neighbors)


def test_units_that_are_bounded_by_place_are_caught():
    found = check_engine(by_place, tables=few("one giant unit"))
    assert {one.neighbors for one in found.differences} == {
        str(relation) for relation in engines.RELATIONS if relation.unit is not None
    }


def quoting(table, schema, neighbors):
    raise ValueError(f"cannot read {CANARY}")


def described(table, schema, neighbors):
    return dp.from_batches(
        lambda columns: table.select(columns), schema=schema, neighbors=neighbors, name=CANARY
    )


@pytest.mark.slow
def test_cells_in_errors_and_descriptions_are_caught():
    for make_engine, said in (
        (quoting, "declaring it: an error that quotes a cell"),
        (described, "its description: it quotes a cell"),
    ):
        found = check_engine(make_engine, tables=few("numbers, one row"))
        assert len(found.differences) == len(engines.RELATIONS)
        assert all(said in str(one) for one in found.differences)


OURS = """
import discreet as dp
def make_engine(table, schema, neighbors):
    rows = table.slice(0, {rows})
    return dp.from_batches(lambda names: rows.select(names), schema=schema, neighbors=neighbors)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "code"), [("len(table)", 0), ("3", 1)])
def test_the_command_says_it_by_its_exit(rows, code, tmp_path):
    (tmp_path / "ours.py").write_text(OURS.format(rows=rows))
    command = [sys.executable, "-W", "ignore", "-m", "discreet.testing.engines"]
    asked = [*command, "ours:make_engine", "texts", "odd names"]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.returncode == code, ended.stderr
    assert "answers are memory's" in ended.stdout.splitlines()[-1]


def test_the_command_asks_of_all_tables_where_none_is_named(monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(
        engines,
        "check_engine",
        lambda made, tables: (
            seen.append([odd.name for odd in tables]) or engines.Conformance(1, ())
        ),
    )
    assert engines.main(["discreet:from_batches"]) == 0
    assert engines.main(["discreet:from_batches", "texts"]) == 0
    assert seen == [[*TABLES], ["texts"]]
    assert "1 of 1 answers are memory's" in capsys.readouterr().out


def test_the_command_wants_a_place_and_tables_that_there_are(capsys):
    for asked in ([], ["no_colon"], ["discreet:from_batches", "no table"]):
        assert engines.main(asked) == 2
        assert "module:make_engine" in capsys.readouterr().out
