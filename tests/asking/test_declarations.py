"""Declarations as TOML files: what they say is what Python says, nothing unknown passes, what is
written is read again.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.asking.declarations import declaration_of, read_declaration

ROWS = "income;region;person\n1,5;N;a\n2,5;S;b\nNA;S;b\n"
HEAD = 'source = "survey.csv"\nneighbors = "replace"\n'
SCHEMA = """
[schema]
income = { kind = "real", low = 0, high = 10, missing = 5 }
region = { kind = "category", levels = ["N", "S"] }
"""
FULL = """
source = ["a.csv", "b.csv"]
format = "csv"
name = "survey-2024"
neighbors = { relation = "add_remove", unit = "person", max_rows = 4 }
budget = { epsilon = 1, delta = 1e-6 }

[dialect]
separator = ";"
decimal = ","
missing_text = ["NA", "-"]

[schema]
income = { kind = "real", low = 0, high = 200_000, bits = 32 }
age = { kind = "integer", low = 18, high = 90, missing = 40 }
visit = { kind = "date", low = 2020-01-01, high = 2024-12-31 }
seen = { kind = "datetime", low = 2024-01-01T00:00:00, high = "2024-12-31 23:59:59" }
region = { kind = "category", levels = ["N", 3, true], missing = "N" }
member = { kind = "boolean", missing = false }
"a city" = { kind = "open" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "survey.csv").write_text(ROWS)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    path = folder / "survey.toml"
    path.write_text(text)
    return path


def test_every_word_means_what_python_means(tmp_path: Path) -> None:
    found = read_declaration(write(tmp_path, FULL))
    assert dict(found.schema) == {
        "income": dp.Real(0, 200_000, bits=32),
        "age": dp.Integer(18, 90, missing=40),
        "visit": dp.Date(datetime.date(2020, 1, 1), datetime.date(2024, 12, 31)),
        "seen": dp.Datetime("2024-01-01", "2024-12-31 23:59:59"),
        "region": dp.Category(["N", 3, True], missing="N"),
        "member": dp.Boolean(missing=False),
        "a city": dp.Open(),
    }
    assert found.neighbors == dp.AddRemove(unit="person", max_rows=4)
    assert found.budget == dp.ApproxDP(1, 1e-6)
    assert found.source == (str(tmp_path / "a.csv"), str(tmp_path / "b.csv"))
    assert found.dialect == {"separator": ";", "decimal": ",", "missing_text": ("NA", "-")}
    assert found.name == "survey-2024"
    assert read_declaration(write(tmp_path, found.to_toml())) == found


def test_the_data_set_is_that_of_read_csv(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dialect = '\n[dialect]\nseparator = ";"\ndecimal = ","\n'
    path = write(folder, HEAD + dialect + SCHEMA)
    monkeypatch.chdir(folder.parent)  # the source is relative to the file, not to the process
    data = dp.declare(path)
    python = dp.read_csv(
        folder / "survey.csv",
        schema={"income": dp.Real(0, 10, missing=5), "region": dp.Category(["N", "S"])},
        neighbors=dp.Replace(),
        separator=";",
        decimal=",",
    )
    assert data._engine.data_id() == python._engine.data_id()
    assert (data.schema, data.neighbors) == (python.schema, python.neighbors)
    assert data.open(budget=dp.GDP(1)).public.rows == 3


def test_another_source(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = write(folder, 'neighbors = "replace"\nname = "survey"\nbudget = { mu = 1 }\n' + SCHEMA)
    with pytest.raises(dp.InvalidParameter, match="it names no source"):
        dp.declare(path)
    columns = {"income": [1.0, 2.0], "region": ["N", "S"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "other.parquet")
    assert dp.declare(path, folder / "other.parquet").open().public.rows == 2
    assert dp.declare(path, [str(folder / "other.parquet")]).open().public.rows == 2
    named = dp.declare(path, columns).open(ledger=folder / "survey.ledger")
    assert named.public.rows == 2
    assert named.ledger.budget == dp.GDP(1)
    (folder / "survey.data").write_text("income,region\n1,N\n")
    with pytest.raises(dp.InvalidParameter, match="do not tell one format"):
        dp.declare(path, folder / "survey.data")


def test_the_declared_budget_opens_ledgers_unless_another_is_given(folder: Path) -> None:
    path = write(folder, HEAD + "budget = { mu = 0.5 }\n[dialect]\nseparator = ';'\n" + SCHEMA)
    data = dp.declare(path)
    assert data.open().ledger.budget == dp.GDP(0.5)
    assert data.open(budget=dp.GDP(0.2)).ledger.budget == dp.GDP(0.2)
    data.open(budget=dp.GDP(0.2), ledger=folder / "a.ledger")
    with pytest.raises(dp.LedgerRefused, match="it was opened with"):
        data.open(ledger=folder / "a.ledger")
    ledger = dp.Ledger.open(dp.GDP(0.1))
    assert data.open(ledger=ledger).ledger is ledger


def test_what_python_writes_is_read_again(folder: Path) -> None:
    declared: dict[str, Any] = {
        "schema": {"income": dp.Real(0, 10), "region": dp.Category(["N", "S"])},
        "neighbors": dp.Replace(unit="person", max_rows=2),
    }
    path = folder / "written.toml"
    dp.write_declaration(
        path, source="survey.csv", budget=dp.PureDP(0.5), separator=";", **declared
    )
    found = read_declaration(path)
    assert (dict(found.schema), found.neighbors) == tuple(declared.values())
    assert found.budget == dp.PureDP(0.5)
    assert dp.declare(path).open().ledger.budget == dp.PureDP(0.5)
    for wrong in ({"neighbors": None}, {"separatr": ";"}, {"budget": 1}, {"format": "xls"}):
        with pytest.raises(dp.DiscreetError):
            dp.write_declaration(path, **{**declared, **wrong})
    assert read_declaration(path) == found


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
columns = st.one_of(
    st.builds(
        lambda low, width: {"kind": "integer", "low": low, "high": low + width},
        st.integers(-1000, 1000),
        st.integers(1, 1000),
    ),
    st.builds(
        lambda levels: {"kind": "category", "levels": levels},
        st.lists(names, min_size=1, max_size=3, unique=True),
    ),
    st.builds(lambda missing: {"kind": "boolean", "missing": missing}, st.booleans()),
)


@given(st.dictionaries(names, columns, min_size=1, max_size=3), names)
def test_any_names_survive_the_round_trip(
    tmp_path_factory: pytest.TempPathFactory, schema: dict[str, Any], name: str
) -> None:
    found = declaration_of({"schema": schema, "neighbors": "replace", "name": name}, "")
    path = tmp_path_factory.getbasetemp() / "round-trip.toml"
    path.write_bytes(found.to_toml().encode())
    assert read_declaration(path) == found


REAL = "[schema]\nx = { kind = 'real', low = 0, high = 1 }"
WRONG = {
    "no TOML": ("neighbors = ", "it is no TOML"),
    "an unknown word": (f"neighbours = 'replace'\n{REAL}", "did you mean 'neighbors'?"),
    "no neighbors": (REAL, "it names no neighbors"),
    "another relation": (f"neighbors = 'add-remove'\n{REAL}", "did you mean 'add_remove'?"),
    "a unit without its rows": (
        f"neighbors = {{ relation = 'replace', unit = 'person' }}\n{REAL}",
        "max_rows=",
    ),
    "no schema": ("neighbors = 'replace'", r"it has no \[schema\]"),
    "another kind": (
        "neighbors = 'replace'\n[schema]\nx = { kind = 'float', low = 0, high = 1 }",
        "has kind = 'float'",
    ),
    "no kind": ("neighbors = 'replace'\n[schema]\nx = { low = 0 }", "has kind = None"),
    "a bare column": ("neighbors = 'replace'\n[schema]\nx = 'real'", "is 'real'"),
    "another word": (
        "neighbors = 'replace'\n[schema]\nx = { kind = 'real', low = 0, hihg = 1 }",
        "did you mean 'high'?",
    ),
    "an inner word": (
        "neighbors = 'replace'\n[schema]\nx = { kind = 'date', origin = 1 }",
        "says 'origin'",
    ),
    "no bounds": (
        "neighbors = 'replace'\n[schema]\nx = { kind = 'real', low = 0 }",
        r"'x' of \[schema\], Real bounds: they were not given",
    ),
    "no levels": (
        "neighbors = 'replace'\n[schema]\nx = { kind = 'category' }",
        "has no levels",
    ),
    "another format": (f"neighbors = 'replace'\nformat = 'xlsx'\n{REAL}", "format = 'xlsx'"),
    "a bare budget": (f"neighbors = 'replace'\nbudget = 1\n{REAL}", "budget = 1 is no guarantee"),
    "no source": (f"neighbors = 'replace'\nsource = 3\n{REAL}", "source = 3"),
    "a bare dialect": (f"neighbors = 'replace'\ndialect = ';'\n{REAL}", "dialect is no table"),
    "a word of the dialect": (
        f"neighbors = 'replace'\n[dialect]\nseparater = ';'\n{REAL}",
        "did you mean 'separator'?",
    ),
    "a dialect of Parquet": (
        f"neighbors = 'replace'\nsource = 'x.parquet'\n[dialect]\nseparator = ';'\n{REAL}",
        "its source is Parquet",
    ),
    "no name": (f"neighbors = 'replace'\nname = 1\n{REAL}", "name = 1"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_refused_in_four_parts(tmp_path: Path, wrong: str) -> None:
    text, found = WRONG[wrong]
    with pytest.raises(dp.InvalidParameter, match=found) as caught:
        dp.declare(write(tmp_path, text))
    error = caught.value
    assert all((error.asked, error.found, error.why, error.remedy))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(dp.InvalidParameter, match="there is no file"):
        dp.declare(tmp_path / "none.toml")
