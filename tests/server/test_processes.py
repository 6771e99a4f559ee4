"""The service as it is started: processes of its own on 127.0.0.1, killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from curators import SCHEMA, STORED, write_survey
from tests.trusted.scale.postgresql import server

import discreet as dp
from discreet.server.accounts.people import add_person, person_of
from discreet.server.desk.desk import open_desk
from discreet.server.settings import Settings

pytestmark = pytest.mark.slow
MODULE = """
import json, sys
from discreet.server.serving.supervisor import Supervisor
from discreet.server.settings import settings_from_json
supervisor = Supervisor(settings_from_json(sys.argv[1]), web=int(sys.argv[2]))
supervisor.start()
print(json.dumps([supervisor.address, supervisor.processes]), flush=True)
supervisor.run()
"""


@contextlib.contextmanager
def started(settings: Settings, web: int = 1) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """The address of a service of its own processes, and their ids."""
    process = subprocess.Popen(
        [sys.executable, "-c", MODULE, settings.to_json(), str(web)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line, "it did not start"
        address, ids = json.loads(line)
        yield address, ids, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        process.stdout.close()


def prepared(tmp_path: Path, database: str | None = None) -> tuple[Settings, dict[str, str], Any]:
    """Settings of a service with an owner and an analyst, and their tokens."""
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    write_survey(data / "survey.csv")
    settings = Settings(
        state=str(tmp_path / "state"),
        database=database,
        folders={"data": str(data)},
        tick=0.0,
        workers=1,
        sweep=0.2,
        secure_cookies=False,
    )
    desk, tokens = open_desk(settings), {}
    for login, role in (("olga", "owner"), ("anna", "analyst")):
        with desk.office.database.write() as rows:
            row = add_person(
                rows,
                login=login,
                name=login,
                role=role,
                stored=STORED,
                subject=None,
                now=time.time(),
            )
        tokens[login] = desk.accounts.new_token(person_of(row), name="tests")["token"]
    return settings, tokens, desk


def call(address: str, token: str, method: str, path: str, **body: Any) -> Any:
    """A call that is made again until the service is there."""
    for _ in range(600):
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.request(
                method,
                address + path,
                json=body or None,
                headers={"Authorization": f"Bearer {token}"},
                timeout=60,
            )
            if answer.status_code != 503:
                assert answer.is_success, answer.text
                return answer.json()
        time.sleep(0.05)
    raise AssertionError("the service does not answer")


def made(address: str, tokens: dict[str, str]) -> None:
    """A data set and a study, by HTTP alone."""
    data = call(
        address,
        tokens["olga"],
        "POST",
        "/v1/datasets",
        name="survey",
        source="data/survey.csv",
        schema=SCHEMA,
        neighbors="replace",
        budget={"mu": 1.0},
        listed=True,
    )
    study = call(
        address,
        tokens["anna"],
        "POST",
        "/v1/studies",
        dataset=data["id"],
        name="wages",
        purpose="wages",
        budget={"mu": 1.0},
    )
    body = {"decision": "approve"}
    call(address, tokens["olga"], "POST", f"/v1/studies/{study['id']}/decision", **body)


def below(parent: int) -> list[int]:
    """The processes that a process started."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                told = (place / "stat").read_text().rpartition(")")[2].split()
                if int(told[1]) == parent:
                    found.append(int(place.name))
    return found


def assert_nothing_lost(tmp_path: Path, database: str | None) -> None:
    settings, tokens, desk = prepared(tmp_path, database)
    with started(settings) as (address, ids, _):
        made(address, tokens)
        connection = dp.connect(address, token=tokens["anna"])
        session = connection.open("survey", study="wages")
        first = dp.mean(session, "income", spend=dp.GDP(0.1), key="first")
        keeper, web = ids["keeper"][0], ids["web"][0]
        for worker in below(keeper):
            os.kill(worker, signal.SIGKILL)
        dp.mean(session, "age", spend=dp.GDP(0.1), key="after a worker died")
        os.kill(web, signal.SIGKILL)
        dp.mean(session, "age", spend=dp.GDP(0.1), key="after a web process died")
        os.kill(keeper, signal.SIGKILL)
        dp.mean(session, "age", spend=dp.GDP(0.1), key="after the keeper died")
        assert dp.mean(session, "income", spend=dp.GDP(0.1), key="first").release == first.release
        debits = [entry for entry in session.ledger.entries() if entry.kind == "debit"]
        assert len(debits) == 4
        connection.close()
    with desk.office.database.read() as rows:
        dataset = rows.run("SELECT id FROM datasets")[0]["id"]
    assert desk.office.trees.problems(dataset) == []


def test_killed_processes_lose_nothing_on_sqlite(tmp_path: Path) -> None:
    assert_nothing_lost(tmp_path, None)


def test_killed_processes_lose_nothing_on_postgresql(tmp_path: Path) -> None:
    with server() as address:
        assert_nothing_lost(tmp_path, address)
