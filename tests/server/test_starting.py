"""How a service starts, and what it refuses to start on; races of one key."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
import threading
import time
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from curators import curator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import discreet as dp
from discreet.errors import InvalidParameter, LedgerRefused
from discreet.estimators.questions import mean_question
from discreet.server.desk.desk import require_verified
from discreet.server.serving.supervisor import Supervisor, first_operator
from discreet.server.settings import Settings, settings_from_json
from discreet.server.store.opening import migrate, migrations, statements
from discreet.server.work.pool import Child


def test_it_does_not_start_on_a_ledger_that_does_not_verify(tmp_path: Path) -> None:
    here = curator(tmp_path)
    made = here.register()
    here.study(made["id"])
    require_verified(here.desk.office)
    file = tmp_path / "state" / "budgets" / f"{made['id']}.db"
    raw = sqlite3.connect(file)
    raw.execute("UPDATE tree_nodes SET spent_mu_squared = 7 WHERE id = ?", (made["node"],))
    raw.commit()
    raw.close()
    with pytest.raises(LedgerRefused, match="does not verify"):
        require_verified(here.desk.office)
    with pytest.raises(LedgerRefused, match="does not verify"):
        Supervisor(here.desk.office.settings)


def test_web_processes_are_not_told_where_data_lie(tmp_path: Path) -> None:
    told = Settings(
        state=str(tmp_path / "s"), folders={"data": str(tmp_path)}, key_file=str(tmp_path / "k")
    )
    supervisor = Supervisor(told, web=2)
    try:
        settings = {kept.module.rpartition(".")[2]: kept.settings for kept in supervisor._kept}
        assert settings_from_json(settings["web"]).folders == {}
        assert settings_from_json(settings["web"]).key_file is None
        assert settings_from_json(settings["keeper"]) == told
    finally:
        supervisor.close()
    assert first_operator(told)
    assert first_operator(told) is None, "the first one is told once"


def test_migrations_are_numbered_and_applied_once(tmp_path: Path) -> None:
    here = curator(tmp_path)
    assert [number for number, _, _ in migrations()] == list(range(1, len(migrations()) + 1))
    assert all(statements(text) for _, _, text in migrations())
    assert migrate(here.desk.office.database) == []
    with here.desk.office.database.write() as rows:
        rows.changed("UPDATE migrations SET digest = 'another' WHERE number = 1")
    with pytest.raises(InvalidParameter, match="was another one"):
        migrate(here.desk.office.database)


def test_one_key_at_the_same_time_is_one_question(tmp_path: Path) -> None:
    here = curator(tmp_path)
    study = here.study(here.register()["id"])
    anna = here.person("anna")
    public = here.connection("anna").open("survey", study="wages").public
    asked = [
        mean_question(public, column, spend=dp.GDP(0.2)).to_dict() for column in ("income", "age")
    ]
    found: list[str] = []
    together = threading.Barrier(8)

    def ask(number: int) -> None:
        together.wait()
        try:
            told = here.desk.questions.ask(
                anna, study["id"], question=asked[number % 2], key="the same"
            )
            found.append(told["answer"])
        except dp.DiscreetError:
            found.append("refused")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(found.count, set(found))) == [4, 4], "one question, and the other refused"
    node = here.desk.office.trees.node(study["dataset"], study["seat"]["node"])
    assert [entry.kind for entry in node.entries()] == ["open", "debit", "answer"]


def test_the_library_imports_nothing_of_it() -> None:
    text = (
        "import sys, discreet, discreet.cli.commands; dir(discreet); "
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('fastapi', 'starlette', 'uvicorn', 'pydantic', 'argon2', 'psycopg', 'httpx')"
        " or name.startswith('discreet.server')])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def closure(names: set[str]) -> set[str]:
    """Packages with all that they need, by the names that they are installed under."""
    found: set[str] = set()
    waiting = [(name, frozenset[str]()) for name in names]
    while waiting:
        name, extras = waiting.pop()
        place = canonicalize_name(name)
        if place in found and not extras:
            continue
        found.add(place)
        for told in metadata.distribution(name).requires or []:
            need = Requirement(told)
            marks = [{"extra": one} for one in (*extras, "")]
            if need.marker is None or any(need.marker.evaluate(one) for one in marks):
                waiting.append((need.name, frozenset(need.extras)))
    return found


def mebibytes(name: str) -> float:
    files = metadata.distribution(name).files or []
    sizes = [Path(str(one.locate())) for one in files if "__pycache__" not in str(one)]
    return sum(path.stat().st_size for path in sizes if path.is_file()) / 2**20


def test_the_server_adds_little(tmp_path: Path) -> None:
    """What `[server]` installs beside the core takes at most 60 MB."""
    told = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    core = closure({Requirement(one).name for one in told["dependencies"]})
    wanted = [Requirement(one) for one in told["optional-dependencies"]["server"]]
    binary = {"psycopg-binary"} if any("binary" in one.extras for one in wanted) else set()
    more = closure({one.name for one in wanted} | binary) - core
    assert {"fastapi", "psycopg", "psycopg-binary"} <= more
    assert sum(mebibytes(name) for name in more) * 2**20 <= 60e6


def test_ledgers_are_shared_with_workers_where_the_folder_is(tmp_path: Path) -> None:
    """A worker that runs as another user of the group can draw; others cannot even read."""
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for folder in (alone, shared):
        folder.mkdir()
        (folder / "state").mkdir(mode=0o700)
    (shared / "state").chmod(0o2770)
    modes = {}
    for folder in (alone, shared):
        here = curator(folder)
        made = here.register()
        file = folder / "state" / "budgets" / f"{made['id']}.db"
        modes[folder.name] = stat.S_IMODE(file.stat().st_mode)
        keys = [
            folder / "state" / "receipts.key",
            folder / "state" / "heads" / f"{made['id']}.pins",
        ]
        assert [stat.S_IMODE(path.stat().st_mode) for path in keys] == [0o600, 0o600]
    assert modes == {"alone": 0o600, "shared": 0o660}


def test_a_process_that_starts_while_its_pool_closes_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, made, start = threading.Event(), [], subprocess.Popen

    def slowly(_: Any, **options: Any) -> Any:
        began.set()
        time.sleep(0.1)  # long enough for `close` to come first, were it not to wait
        made.append(start([sys.executable, "-c", "input()"], **options))
        return made[-1]

    monkeypatch.setattr(subprocess, "Popen", slowly)
    child = Child("{}")
    starting = threading.Thread(target=child.begin)
    starting.start()
    began.wait()
    child.close()
    starting.join()
    assert made[0].poll() is not None
    assert child.ask({}, 5.0) is None
    assert len(made) == 1  # it starts no other
