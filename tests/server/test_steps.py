"""A process is killed at each named step of a question, on both databases: the same key goes on,
one debit and one answer stand in the ledger. A full disk refuses, and debits nothing.
"""

from __future__ import annotations

import os
import resource
import signal
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from curators import Curator, HereWorkers, curator
from tests.trusted.scale.postgresql import server

from discreet.errors import DiscreetError
from discreet.server.desk.questions import Questions
from discreet.server.refusals import status_of
from discreet.server.work.room import Room
from discreet.trusted.session import Session
from discreet.trusted.tree.node import Node
from discreet.trusted.tree.pins import Pins

pytestmark = pytest.mark.slow

MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}
# the life of a question: what is called at each step, and whether it is over or only begins
STEPS: dict[str, tuple[type, str, bool]] = {
    "before it is written down": (Questions, "_written", False),
    "written down": (Questions, "_written", True),
    "before the debit": (Session, "admit", False),
    "debited": (Session, "admit", True),
    "handed over": (HereWorkers, "finish", False),
    "taken by a worker": (Room, "finish", False),
    "data opened": (Room, "_engine", True),
    "aggregated": (Session, "_aggregate", True),
    "before the draw": (Session, "_draw", False),
    "drawn": (Session, "_draw", True),
    "stored": (Node, "store", True),
    "marked": (Room, "finish", True),
    "before its pin": (Pins, "pin", False),
    "pinned": (Pins, "pin", True),
    "read": (Questions, "_released", True),
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with server() as address:
        yield address


def ask(here: Curator, study: str, key: str) -> dict[str, Any]:
    return here.desk.named.ask(here.person("anna"), study, asked=MEAN, key=key)


def killed_at(owner: type, name: str, over: bool) -> None:
    """From now on, this process is killed where a method begins, or where it is over."""
    usual = getattr(owner, name)

    def method(*places: Any, **names: Any) -> Any:
        if over:
            usual(*places, **names)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, method)


def in_a_child(act: Callable[[], None]) -> int:
    """How a child process ended that did something."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def once_each(here: Curator, study: dict[str, Any], keys: list[str]) -> None:
    """Each key has one debit and one answer, and what was spent is their price."""
    dataset, node = study["dataset"], study["seat"]["node"]
    entries = here.desk.office.trees.node(dataset, node).entries()
    for kind in ("debit", "answer"):
        assert Counter(one.key for one in entries if one.kind == kind) == Counter(keys)
    spent = here.desk.office.trees.box(dataset, node).spent.exact().mu_squared
    assert float(spent) == pytest.approx(0.01 * len(keys), rel=1e-6)
    assert here.desk.office.trees.problems(dataset) == []


@pytest.mark.slow
def test_a_kill_at_each_step(database: str | None, tmp_path: Path) -> None:
    here = curator(tmp_path, database=database)
    made = here.register("steps", budget={"mu": 3.0})
    study = here.study(made["id"], budget={"mu": 3.0})
    for step, where in STEPS.items():

        def asked(step: str = step, where: tuple[type, str, bool] = where) -> None:
            mine = curator(tmp_path, database=database)
            killed_at(*where)
            ask(mine, study["id"], step)

        ended = in_a_child(asked)
        assert os.WIFSIGNALED(ended), f"{step} was passed"
        assert os.WTERMSIG(ended) == signal.SIGKILL
    again = curator(tmp_path, database=database)
    with again.desk.office.database.read() as rows:
        left = [row["id"] for row in rows.run("SELECT id FROM questions WHERE state = 'asked'")]
    for question in left:  # what the sweeper does
        again.workers.room.finish(question)
    answers = {step: ask(again, study["id"], step) for step in STEPS}
    assert {told["status"] for told in answers.values()} == {"answered"}
    once_each(again, study, list(STEPS))
    last = curator(tmp_path, database=database)
    for step, told in answers.items():
        assert ask(last, study["id"], step)["release"] == told["release"]


def test_a_full_disk_refuses_and_debits_nothing(tmp_path: Path) -> None:
    here = curator(tmp_path)
    made = here.register("full", budget={"mu": 3.0})
    study = here.study(made["id"], budget={"mu": 3.0})
    keys = [f"question {number}" for number in range(12)]

    def fills() -> None:
        mine, refused = curator(tmp_path), list[int]()
        largest = max(path.stat().st_size for path in (tmp_path / "state").rglob("*.db-wal"))
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + 60_000, hard))
        for name in keys:
            try:
                ask(mine, study["id"], name)
            except DiscreetError as error:
                refused.append(status_of(error))
        assert len(refused) > 3, "the disk was not full"
        assert set(refused) == {503}
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        for name in keys:  # there is room again
            assert ask(mine, study["id"], name)["status"] in ("answered", "failed", "pending")

    assert in_a_child(fills) == 0
    again = curator(tmp_path)
    for name in keys:
        assert ask(again, study["id"], name)["status"] == "answered"
    once_each(again, study, keys)
