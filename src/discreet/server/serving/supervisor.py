"""`discreet serve`: starts the processes of a service, and starts again what ends.

Web processes hold the socket and know no folder of data; the keeper and its workers know the
folders, under another user where one is named. A ledger that does not verify is not served.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from discreet.server.accounts import passwords
from discreet.server.accounts.marks import new_password
from discreet.server.accounts.people import add_person
from discreet.server.desk.desk import open_desk, require_verified
from discreet.server.refusals import invalid
from discreet.server.settings import Settings

WEB, KEEPER = "discreet.server.serving.web", "discreet.server.work.keeper"
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0  # seconds before a process is started again
WELL = 3.0  # seconds after which a process did well


@dataclass(slots=True)
class Kept:
    """A process that is kept running."""

    module: str
    settings: str
    options: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    begun: float = 0.0
    pause: float = FIRST_PAUSE

    def start(self) -> None:
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module], stdin=subprocess.PIPE, **self.options
        )
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(self.settings.encode() + b"\n")
            self.process.stdin.flush()

    def look(self) -> None:
        """Starts it again where it ended, later each time that it ended soon."""
        if self.process is None or self.process.poll() is None:
            return
        lasted = time.monotonic() - self.begun
        self.pause = FIRST_PAUSE if lasted > WELL else min(2 * self.pause, LONGEST_PAUSE)
        if lasted >= self.pause:
            self.start()

    def end(self, seconds: float) -> None:
        """Ends it by its pipe, and by force where it does not."""
        if self.process is None:
            return
        with contextlib.suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Supervisor:
    """The processes of one service; `run` returns when it is told to stop."""

    def __init__(
        self,
        settings: Settings,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        web: int = 1,
        work: bool = True,
        web_user: str | None = None,
        worker_user: str | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        prepare_state(settings, web_user)
        require_verified(open_desk(settings).office, say)
        hand_over(settings, web_user)
        self._stopping = False
        self._socket = socket.create_server((host, port), backlog=1024)
        self.address = f"http://{host}:{self._socket.getsockname()[1]}"
        self._socket.set_inheritable(True)
        number = self._socket.fileno()
        known = replace(settings, folders={}, key_file=None, connections=None).to_json()
        options: dict[str, Any] = {
            "pass_fds": (number,),
            "env": {**os.environ, "DISCREET_SOCKET": str(number)},
            **_as_user(web_user, None),
        }
        self._kept = [Kept(WEB, known, options) for _ in range(web)]
        if work:
            beside = _as_user(worker_user, web_user)
            self._kept.insert(0, Kept(KEEPER, settings.to_json(), beside))
        self._say = say

    def start(self) -> None:
        """Starts all processes."""
        for kept in self._kept:
            kept.start()
        self._say(f"listening at {self.address}")

    def run(self) -> None:
        """Keeps them running until a signal, or `stop`, says so."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        while not self._stopping:
            for kept in self._kept:
                kept.look()
            time.sleep(0.05)
        self.close()

    def stop(self) -> None:
        self._stopping = True

    def close(self) -> None:
        """Ends all processes."""
        for kept in reversed(self._kept):
            kept.end(5.0)
        self._socket.close()

    @property
    def processes(self) -> dict[str, list[int]]:
        """The ids of running processes, by what they are."""
        found: dict[str, list[int]] = {"web": [], "keeper": []}
        for kept in self._kept:
            if kept.process is not None:
                found["web" if kept.module == WEB else "keeper"].append(kept.process.pid)
        return found


def prepare_state(settings: Settings, web_user: str | None = None) -> None:
    """The folder of the state: for this user alone, or for the group of the web processes."""
    folder = Path(settings.state)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if web_user is not None and os.geteuid() == 0:
        who = _user(web_user)
        os.chown(folder, who.pw_uid, who.pw_gid)
        os.chmod(folder, 0o2770)
        os.umask(0o007)


def hand_over(settings: Settings, web_user: str | None = None) -> None:
    """What this process made for web processes is theirs: pins, and the key of receipts."""
    if web_user is not None and os.geteuid() == 0:
        who = _user(web_user)
        for path in (settings.seal, settings.heads, *settings.heads.glob("*.pins")):
            os.chown(path, who.pw_uid, who.pw_gid)


def first_operator(settings: Settings) -> str | None:
    """The password of a first operator, told once; None where there is anybody."""
    database, password = open_desk(settings).office.database, new_password()
    stored = passwords.hashed(password)
    with database.alone() as rows:
        if rows.one("SELECT id FROM people LIMIT 1") is not None:
            return None
        add_person(
            rows,
            login="operator",
            name="Operator",
            role="operator",
            stored=stored,
            subject=None,
            now=time.time(),
        )
    return password


def _as_user(name: str | None, beside: str | None) -> dict[str, Any]:
    """Options of a process that runs as somebody, with the group of somebody else."""
    if name is None:
        return {}
    who = _user(name)
    if os.geteuid() not in (0, who.pw_uid):
        raise invalid(
            "a user for processes",
            "only root may start processes as somebody else",
            "processes that open data are kept apart from those that talk to the network",
            "start `discreet serve` as root, or start the workers by themselves as that user",
        )
    if os.geteuid() == who.pw_uid:
        return {}
    groups = [] if beside is None else [_user(beside).pw_gid]
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": groups, "umask": 0o007}


def _user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise invalid(
            "a user for processes", "there is none of that name", "it runs as one", "make it first"
        ) from None
