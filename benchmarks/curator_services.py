"""Services for the benchmarks of the curator: a PostgreSQL that can be restarted, and replicas as
processes of their own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(HERE),
    str(HERE / "tests" / "server"),
    str(HERE / "tests" / "trusted" / "scale"),
]

from postgresql import OWNER, PASSWORD, program, run  # noqa: E402

STARTED = """
import json, sys
from discreet.server.serving.supervisor import Supervisor
from discreet.server.settings import settings_from_json
supervisor = Supervisor(settings_from_json(sys.argv[1]), web=int(sys.argv[2]))
supervisor.start()
print(supervisor.address, flush=True)
supervisor.run()
"""


@contextlib.contextmanager
def postgresql() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a durable PostgreSQL, and what restarts it at once."""
    folder = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
    (folder / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        shutil.chown(folder, OWNER)
        shutil.chown(folder / "password", OWNER)
    data = str(folder / "data")
    options = f"-k {folder} -c listen_addresses='' -c max_connections=300"
    start = (program("pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options)

    def restart() -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            run(*start, "-m", "immediate", "restart")

    try:
        run(
            *(program("initdb"), "-D", data, "-U", "tester", "-E", "UTF8", "--locale=C"),
            *("-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync"),
        )
        run(*start, "start")
        try:
            yield (
                f"postgresql://tester:{quote(PASSWORD, safe='')}@/postgres?host={folder}",
                restart,
            )
        finally:
            run(program("pg_ctl"), "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def prepared(
    folder: Path, database: str | None, analysts: list[str], *, replicas: int = 2, **changes: Any
) -> tuple[list[Any], dict[str, str], Any, Any]:
    """Settings of replicas that share a database, tokens by login, a desk, and workers that
    listen while data sets are registered.
    """
    from curators import STORED, write_survey

    from discreet.server.accounts.people import add_person, person_of
    from discreet.server.desk.desk import open_desk
    from discreet.server.settings import Settings

    data = folder / "data"
    data.mkdir(exist_ok=True)
    write_survey(data / "survey.csv")
    told: dict[str, Any] = {"tick": 0.0, "workers": 1, "sweep": 0.5, "per_second": 1e6}
    first = Settings(
        state=str(folder / "state0"),
        database=database,
        folders={"data": str(data)},
        secure_cookies=False,
        burst=1e6,
        key_file=str(folder / "source.key"),
        receipt_key=str(folder / "receipts.key"),
        **(told | changes),
    )
    settings = [
        dataclasses.replace(first, state=str(folder / f"state{number}"))
        for number in range(replicas)
    ]
    for one in settings:
        Path(one.state).mkdir(exist_ok=True)
    desk, tokens = open_desk(first), {}
    for login, role in [("olga", "owner"), *((one, "analyst") for one in analysts)]:
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
        tokens[login] = desk.accounts.new_token(person_of(row), name="benchmark")["token"]
    return settings, tokens, desk, listening(first)


@contextlib.contextmanager
def listening(settings: Any) -> Iterator[None]:
    """Workers alone, for as long as data sets are registered."""
    process = subprocess.Popen(
        [sys.executable, "-m", "discreet.server.work.keeper"], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(settings.to_json().encode() + b"\n")
    process.stdin.flush()
    while not settings.socket.exists():
        time.sleep(0.05)
    try:
        yield
    finally:
        process.stdin.close()
        process.wait(20)
        settings.socket.unlink(missing_ok=True)


@contextlib.contextmanager
def replica(settings: Any, web: int = 1) -> Iterator[tuple[str, Any]]:
    """The address and the process of a service."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, settings.to_json(), str(web)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address, "it did not start"
    try:
        yield address, process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()


def below(parent: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                told = (place / "stat").read_text().rpartition(")")[2].split()
                if int(told[1]) == parent and told[0] != "Z":
                    found += [int(place.name), *below(int(place.name))]
    return found


def resident(parent: int) -> dict[str, float]:
    """MiB of the web processes of a service, and of its workers."""
    found = {"web": 0.0, "worker": 0.0}
    for number in below(parent):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{number}/cmdline").read_text()
            kind = "web" if "serving.web" in words else "worker"
            for line in Path(f"/proc/{number}/status").read_text().splitlines():
                if line.startswith("VmRSS"):
                    found[kind] += int(line.split()[1]) / 1024
    return found
