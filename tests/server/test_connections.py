"""Tables of databases and streams as sources: by names of the operator's, whose addresses stay with
those who open data; rows that change are noticed before anything is answered.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow
import pytest
from curators import Curator, curator

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.server.work.connections import Connections

pytestmark = pytest.mark.slow

SECRET = "hunter2-of-the-reader"
SCHEMA = {
    "cost": {"kind": "real", "low": 0, "high": 100},
    "ward": {"kind": "category", "levels": ["E", "N"]},
}
ROWS = [(float(30 + number % 41), "EN"[number % 2], number // 2) for number in range(200)]
MEAN = {"estimator": "mean", "column": "cost", "spend": {"mu": 0.3}}


def clinic(folder: Path) -> Path:
    """A database with a table that may be registered, and one that may not."""
    place = folder / f"{SECRET}.db"
    with sqlite3.connect(place) as base:
        for table in ("visits", "wages"):
            base.execute(f"CREATE TABLE {table} (cost REAL, ward TEXT, person INTEGER)")
            base.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", ROWS)
    base.close()
    return place


def connected(folder: Path, **more: Any) -> Curator:
    file = folder / "connections.toml"
    file.write_text(
        f'[clinic]\nuri = "sqlite:///{clinic(folder)}"\ntables = ["visits", "gone"]\n'
        '[events]\nreader = "streams_of_a_test:reader"\ntables = ["today"]\n'
    )
    return curator(folder, connections=str(file), **more)


def registered(here: Curator, **changes: Any) -> dict[str, Any]:
    told: dict[str, Any] = {"source": "clinic/visits", "format": "database", "schema": SCHEMA}
    return here.register(**(told | changes))


def ask(here: Curator, study: dict[str, Any], name: str) -> dict[str, Any]:
    asked = here.desk.named.ask(here.person("anna"), study["id"], asked=MEAN, key=name)
    return dict(asked)


def test_a_table_is_asked_until_a_row_changes(tmp_path: Path) -> None:
    here = connected(tmp_path)
    unit = {"relation": "replace", "unit": "person", "max_rows": 2}
    made = registered(here, neighbors=unit)
    study = here.study(made["id"])
    assert ask(here, study, "first")["status"] == "answered"
    with sqlite3.connect(tmp_path / f"{SECRET}.db") as base:
        base.execute("UPDATE visits SET ward = 'E' WHERE rowid = 2")
    base.close()
    assert ask(here, study, "other columns")["status"] == "answered", "no pass read it"
    again = connected_anew(here)
    assert ask(again, study, "after a start")["status"] == "failed"
    data = again.desk.datasets.one(again.person("olga"), made["id"])
    assert (data["state"], data["public_count"]) == ("frozen", 100)


def test_a_pass_that_reads_other_rows_answers_nothing(tmp_path: Path) -> None:
    here = connected(tmp_path)
    made = registered(here)
    assert made["public_count"] == 200
    study = here.study(made["id"])
    assert ask(here, study, "first")["status"] == "answered"
    with sqlite3.connect(tmp_path / f"{SECRET}.db") as base:
        base.execute("UPDATE visits SET cost = 99 WHERE rowid = 2")
    base.close()
    assert ask(here, study, "second")["status"] == "failed"
    data = here.desk.datasets.one(here.person("olga"), made["id"])
    assert data["state"] == "frozen"
    with pytest.raises(dp.errors.DiscreetError, match="frozen"):
        ask(here, study, "third")


def connected_anew(here: Curator) -> Curator:
    """The same service, in new processes."""
    here.desk.office.trees.let_go()
    return curator(here.folder, connections=str(here.folder / "connections.toml"))


def test_a_stream_of_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("streams_of_a_test")
    cost, ward, _ = zip(*ROWS, strict=True)
    rows = pyarrow.table({"cost": cost, "ward": ward})
    module.reader = lambda table, columns: rows.select(columns).to_reader()
    monkeypatch.setitem(sys.modules, "streams_of_a_test", module)
    here = connected(tmp_path)
    made = registered(here, source="events/today", format="stream")
    assert ask(here, here.study(made["id"]), "first")["status"] == "answered"


def test_what_the_operator_did_not_name_is_not_there(tmp_path: Path) -> None:
    here = connected(tmp_path)
    listed = here.client("olga").get("/v1/sources").json()["sources"]
    assert {"source": "clinic/visits", "format": "database"} in listed
    for source in ("clinic/wages", "clinic/visits; DROP TABLE visits", "other/visits", "clinic/"):
        with pytest.raises(InvalidParameter, match="allowed no such table"):
            registered(here, source=source)
    with pytest.raises(InvalidParameter, match="allowed no such table"):
        registered(here, format="stream")
    with pytest.raises(InvalidParameter, match="no such file"):
        registered(here, format="csv")
    with pytest.raises(dp.errors.DiscreetError) as refused:
        registered(here, source="clinic/gone")
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


def test_addresses_are_nowhere_but_in_the_operators_file(tmp_path: Path) -> None:
    here = connected(tmp_path)
    made = registered(here)
    ask(here, here.study(made["id"]), "first")
    told = here.client("olga").get(f"/v1/datasets/{made['id']}").text
    assert SECRET not in told
    for file in (tmp_path / "state").rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes(), file.name
    with here.desk.office.database.read() as rows:
        pin = rows.run("SELECT pin FROM versions")[0]["pin"]
    assert "200" not in pin.split('"key"')[0] or len(pin) > 300, "the number of rows is masked"


def test_a_file_that_says_anything_else_is_refused_without_its_words(tmp_path: Path) -> None:
    file = tmp_path / "connections.toml"
    for text in (
        f'[clinic]\nuri = "{SECRET}"',
        f'[clinic]\nuri = "{SECRET}"\ntables = [1]',
        f'[clinic]\nurl = "{SECRET}"\ntables = []',
        f'clinic = "{SECRET}"',
        f"{SECRET} {SECRET}",
    ):
        file.write_text(text)
        with pytest.raises(InvalidParameter) as refused:
            Connections(str(file), b"k" * 32)
        assert SECRET not in str(refused.value)
