"""One record an estimator: every place of a record exists, every result is read by what wrote it,
and every public estimator has a record."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import discreet
from discreet.asking import records
from discreet.asking.records import FORMATS, RECORDS, Record, record_of, resolve, result_class
from discreet.trusted.session import Session

SOURCE = Path(discreet.__file__).parent
ROOMS = {
    "function": ("estimators.", "models."),
    "question": ("estimators.", "models."),
    "forecast": ("estimators.", "models.", "asking."),
    "plan": ("estimators.",),
}
NO_ESTIMATORS = {"preview"}  # takes a session, and forecasts estimators
BY_RECORD = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)


def test_the_table_imports_nothing_by_itself() -> None:
    tree = ast.parse((SOURCE / "asking" / "records.py").read_text())
    imported = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert set(imported) == {"__future__", "importlib", "types", "dataclasses", "typing"}
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module"
    ]
    assert len(calls) == 1, "places are resolved in one function"


@BY_RECORD
def test_every_place_of_a_record_exists(record: Record) -> None:
    for name, rooms in ROOMS.items():
        place = getattr(record, name)
        assert not place or place.startswith(rooms), f"{name} of {record.name}: {place}"
        assert not place or callable(resolve(place))
    for place in record.results.values():
        assert place.startswith("inference.")
        assert inspect.isclass(resolve(place))
    assert getattr(discreet, record.name) is resolve(record.function)
    assert record_of(getattr(discreet, record.name)) is record


@BY_RECORD
def test_a_forecast_and_a_question_take_what_preview_hands_them(record: Record) -> None:
    forecast = inspect.signature(resolve(record.forecast)).parameters
    if record.question:
        assert list(forecast) == ["session", "question", "assume", "level"]
        asked = inspect.signature(resolve(record.question)).parameters
        estimator = inspect.signature(resolve(record.function)).parameters
        assert next(iter(asked)) == "public"
        assert set(estimator) - {"session", "key"} <= set(asked) | {"alternative"}
    else:
        assert {"spend", "assume", "level"} <= set(forecast)


def test_every_public_estimator_has_a_record() -> None:
    asking_a_session = {
        name
        for name in discreet.__all__
        if inspect.isfunction(getattr(discreet, name))
        and next(iter(inspect.signature(getattr(discreet, name)).parameters), "") == "session"
    }
    assert asking_a_session - NO_ESTIMATORS == {record.name for record in RECORDS}
    assert len({record.name for record in RECORDS}) == len(RECORDS)
    assert Session  # what they ask


def test_what_a_text_is_known_by_has_one_class_and_one_reader() -> None:
    told: dict[str, str] = {}
    for record in RECORDS:
        for known, place in record.results.items():
            assert told.setdefault(known, place) == place
            assert known in FORMATS or not known.startswith("discreet-")
    for place in FORMATS.values():
        assert callable(resolve(place))
    assert {told[known] for known in told} == set(records._CLASSES.values())


def test_what_has_no_record_is_none() -> None:
    assert record_of(print) is None
    assert record_of("mean") is None
    assert result_class("bulk") is None

    def mean() -> None:
        """Named as an estimator, and none."""

    assert record_of(mean) is None
