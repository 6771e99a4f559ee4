"""The tables that come with the library fit their own declarations, are small, and open."""

from __future__ import annotations

import importlib.util
from importlib import resources

import pandas
import pytest

import discreet as dp
from discreet.testing import seeded_session

LOADED = {"census": dp.load_census, "visits": dp.load_visits}
BY_TABLE = pytest.mark.parametrize("load", LOADED.values(), ids=LOADED)
LARGEST = 150_000  # bytes of both files, in every wheel


@BY_TABLE
def test_every_declared_column_is_there_and_mostly_in_range(load) -> None:
    table = load()
    assert set(table.schema) <= set(table.columns)
    assert len({len(cells) for cells in table.columns.values()}) == 1
    for name, column in table.schema.items():
        held = [cell for cell in table.columns[name] if cell is not None]
        if isinstance(column, dp.Category):
            assert set(held) == set(column.levels)
        elif not isinstance(column, dp.Boolean):
            inside = sum(column.low <= cell <= column.high for cell in held)
            assert 0.98 < inside / len(held) <= 1
    assert any(None in cells for cells in table.columns.values())


@BY_TABLE
def test_a_frame_and_its_columns_give_the_same_answers(load) -> None:
    table = load()
    assert isinstance(table.frame, pandas.DataFrame)
    answers = [
        dp.mean(
            seeded_session(
                dp.from_frame(source, schema=table.schema, neighbors=table.neighbors),
                dp.GDP(1),
                "bundled",
            ),
            "hours",
            spend=dp.GDP(1),
        ).release.integers
        for source in (table.frame, table.columns)
    ]
    assert answers[0] == answers[1]


def test_without_pandas_the_columns_are_the_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def without(name: str, *more: object) -> object:
        return None if name == "pandas" else found(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(importlib.util, "find_spec", without)
    census = dp.load_census()
    assert census.frame is census.columns


def test_visits_have_several_rows_a_person() -> None:
    people = dp.load_visits().columns["person"]
    assert 2 < len(people) / len(set(people)) < 3
    assert max(map(people.count, set(people[:200]))) > 4


def test_the_files_are_small() -> None:
    files = [one for one in resources.files("discreet.bundled").iterdir() if one.name[-3:] == ".gz"]
    assert len(files) == len(LOADED)
    assert sum(len(one.read_bytes()) for one in files) < LARGEST
