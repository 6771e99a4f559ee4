"""Web processes and workers as two users: who talks to the network cannot open data, and what opens
data cannot sign or pin. As root both are become; otherwise the service must refuse to try.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from curators import SCHEMA, STORED, write_survey

from discreet.errors import InvalidParameter
from discreet.server.accounts.people import add_person, person_of
from discreet.server.desk.desk import desk_of, open_desk
from discreet.server.desk.office import Office
from discreet.server.serving.supervisor import Supervisor, hand_over, prepare_state
from discreet.server.settings import Settings
from discreet.server.store.opening import open_database
from discreet.server.trees import open_trees
from discreet.server.work.room import room_of

WEB, WORK = "daemon", "nobody"
MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can pass through."""
    made = Path(tempfile.mkdtemp(prefix="discreet-users-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


class Looking:
    """Workers that look at sources in this process, and finish nothing."""

    def __init__(self, room: Any) -> None:
        self.look, self.listed = room.look, room.listed

    def finish(self, question: str, seat: str) -> None:
        """Somebody else does."""


def become(user: str, group: str, act: Callable[[], Any]) -> Any:
    """What comes of a call in a process of another user."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a lock of the parent's threads must not hold it for ever
        try:
            os.setgroups([pwd.getpwnam(group).pw_gid])
            os.setgid(pwd.getpwnam(user).pw_gid)
            os.setuid(pwd.getpwnam(user).pw_uid)
            os.umask(0o007)
            told = json.dumps(act()).encode()
        except BaseException:
            told = json.dumps({"broken": traceback.format_exc()}).encode()
        os.write(writes, told)
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def opens(*paths: Path) -> list[str]:
    """Which of these this process can read."""
    found = []
    for path in paths:
        try:
            path.read_bytes()
        except PermissionError:
            continue
        found.append(path.name)
    return found


def asked(settings: Settings, study: str, person: Any, key: str) -> Any:
    """A question as a web process admits it."""
    desk = open_desk(settings)
    return desk.named.ask(person, study, asked=MEAN, key=key)


def test_a_web_process_cannot_open_data(folder: Path) -> None:
    data, keys = folder / "data", folder / "keys"
    for place in (data, keys):
        place.mkdir(mode=0o700)
    write_survey(data / "survey.csv")
    connections = keys / "connections.toml"
    connections.write_text("")
    settings = Settings(
        state=str(folder / "state"),
        folders={"data": str(data)},
        key_file=str(keys / "sources.key"),
        connections=str(connections),
        tick=0.0,
    )
    if os.geteuid() != 0:
        with pytest.raises(InvalidParameter, match="only root"):
            Supervisor(settings, web_user="root")
        return
    umask = os.umask(0o022)
    try:
        prepare_state(settings, WEB)
        office = open_desk(settings).office
        room = room_of(settings, office.database, open_trees(settings), time.time)
        desk = desk_of(
            Office(office.database, office.trees, Looking(room), settings, seal=office.seal)
        )
        people = {}
        for login, role in (("olga", "owner"), ("anna", "analyst")):
            words = {"login": login, "name": login, "role": role, "stored": STORED}
            with office.database.write() as rows:
                people[login] = person_of(add_person(rows, **words, subject=None, now=time.time()))
        made = desk.datasets.register(
            people["olga"],
            name="survey",
            source="data/survey.csv",
            schema=SCHEMA,
            neighbors="replace",
            budget={"mu": 1.0},
        )
        study = desk.studies.ask(
            people["olga"],
            dataset=made["id"],
            name="wages",
            purpose="p",
            budget={"mu": 0.5},
            members=["anna"],
        )
        first = desk.named.ask(people["anna"], study["id"], asked=MEAN, key="loads what is needed")
        room.finish(first["answer"])
        assert desk.named.look(people["anna"], first["answer"])["status"] == "answered"
        office.trees.let_go()
        hand_over(settings, WEB)
        who = pwd.getpwnam(WORK)
        for path in (data, keys, *data.iterdir(), *keys.iterdir()):
            os.chown(path, who.pw_uid, who.pw_gid)
        for path in (folder / "state").rglob("*.db*"):
            os.chown(path, -1, pwd.getpwnam(WEB).pw_gid)
            path.chmod(0o660)

        private = (data / "survey.csv", keys / "sources.key", connections)
        public = replace(settings, folders={}, key_file=None, connections=None)
        signing = [*(folder / "state" / "heads").iterdir(), folder / "state" / "receipts.key"]
        seen = become(WEB, WEB, lambda: opens(*private, *signing))
        assert seen == [path.name for path in signing], "no data, no key of sources"
        told = become(WEB, WEB, lambda: asked(public, study["id"], people["anna"], "second"))
        assert told["status"] == "pending", told
        assert become(WORK, WEB, lambda: opens(*private, *signing)) == [p.name for p in private]
        done = become(
            WORK,
            WEB,
            lambda: room_of(
                settings, open_database(settings), open_trees(settings), time.time
            ).finish(told["answer"]),
        )
        assert done == "answered", done
        again = become(WEB, WEB, lambda: asked(public, study["id"], people["anna"], "second"))
        assert again["status"] == "answered", again
    finally:
        os.umask(umask)
        sys.stdout.flush()
