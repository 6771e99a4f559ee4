"""A PostgreSQL of a test's own: in a temporary folder, behind a socket, without a port."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

PASSWORD = "a s3cret/p@ss"
OWNER = "nobody"  # the server refuses to run as root


def program(name):
    """The newest program of that name that Debian's package brought, or the one on the path."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))
    place = found[-1] if found else shutil.which(name)
    assert place is not None, f"{name} is missing: install PostgreSQL (.ci/run does)"
    return place


def run(*command):
    root = os.geteuid() == 0
    owner = {"user": OWNER, "group": "nogroup", "extra_groups": []} if root else {}
    subprocess.run(
        command, check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, **owner
    )


@contextlib.contextmanager
def server(*, durable=False):
    """The address of a database `postgres`, with the password of its owner in it; `durable`: what
    it commits is on the disk.
    """
    folder = Path(tempfile.mkdtemp(prefix="discreet-pg-"))
    (folder / "password").write_text(PASSWORD)
    if os.geteuid() == 0:
        shutil.chown(folder, OWNER)
        shutil.chown(folder / "password", OWNER)
    data, options = folder / "data", f"-k {folder} -c listen_addresses=''"
    options += "" if durable else " -F"
    try:
        run(
            *(program("initdb"), "-D", str(data), "-U", "tester", "-E", "UTF8", "--locale=C"),
            *("-A", "scram-sha-256", f"--pwfile={folder / 'password'}", "--no-sync"),
        )
        log = str(folder / "log")
        run(program("pg_ctl"), "-D", str(data), "-w", "-l", log, "-o", options, "start")
        try:
            yield f"postgresql://tester:{quote(PASSWORD, safe='')}@/postgres?host={folder}"
        finally:
            run(program("pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
