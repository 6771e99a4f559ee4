"""Copies of what a service keeps, made while it runs.

The service's own database is copied before the ledgers, so that no question in the copy is older
than the debits beside it. A copy that is put back is an older one: what was answered since is told
by the pins, which are in no backup for that reason, and by receipts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

from discreet.server.refusals import conflict, invalid
from discreet.server.settings import Settings

DUMP, LEDGERS = "curator.dump", "budgets"


def backup_of(settings: Settings, to: Path) -> list[tuple[str, int]]:
    """Copies everything but keys and pins into a new folder; names and sizes of what it wrote."""
    try:
        to.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        raise invalid(
            "the folder of a backup",
            "it is there already",
            "a backup never takes the place of another one",
            "name a folder that is not there, for example with the date in it",
        ) from None
    if settings.database is not None:
        _dump(settings.database, to / DUMP)
    else:
        state = Path(settings.state)
        (to / LEDGERS).mkdir(mode=0o700)
        _copy(state / "service.db", to / "service.db")
        for ledger in sorted((state / LEDGERS).glob("*.db")):
            _copy(ledger, to / LEDGERS / ledger.name)
    files = sorted(path for path in to.rglob("*") if path.is_file())
    return [(path.relative_to(to).as_posix(), path.stat().st_size) for path in files]


def _copy(place: Path, to: Path) -> None:
    """One SQLite file as it was at one moment, and whole on the disk."""
    if not place.exists():
        raise conflict("a backup", f"{place.name} is not there", "it is the state", "see --state")
    with contextlib.closing(sqlite3.connect(f"{place.as_uri()}?mode=ro", uri=True)) as source:
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with contextlib.closing(sqlite3.connect(to)) as copy:
            source.backup(copy)
            told = copy.execute("PRAGMA integrity_check").fetchone()
    if told != ("ok",):
        raise conflict("a backup", f"{place.name} is damaged", "it would not help", "see the disk")
    with open(to, "rb") as file:
        os.fsync(file.fileno())


def _dump(address: str, to: Path) -> None:
    """What `pg_restore` reads; the password travels in the environment, not on a command line."""
    from psycopg.conninfo import conninfo_to_dict

    program = shutil.which("pg_dump")
    if program is None:
        raise conflict(
            "a backup", "pg_dump is not on the path", "it copies a PostgreSQL", "install it"
        )
    words = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}
    words |= {"dbname": "PGDATABASE", "sslmode": "PGSSLMODE", "hostaddr": "PGHOSTADDR"}
    told = {
        words[name]: str(one) for name, one in conninfo_to_dict(address).items() if name in words
    }
    done = subprocess.run(
        [program, "--format=custom", f"--file={to}"],
        env={**os.environ, **told},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode != 0:
        raise conflict(
            "a backup", "pg_dump failed", "there is no copy", "run it by hand to see what it says"
        )
    os.chmod(to, 0o600)
