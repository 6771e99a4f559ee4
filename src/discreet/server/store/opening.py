"""The database of a service, brought to the newest of its numbered migrations.

A migration is a file of plain SQL that is applied once, in the order of its number, in one
transaction together with the line that says so. What was applied is never changed afterwards: its
digest is compared at each start, and a service refuses a database that a newer version wrote.
"""

from __future__ import annotations

import hashlib
import time
from importlib import resources
from pathlib import Path

from discreet.errors import InvalidParameter
from discreet.server.settings import Settings
from discreet.server.store.database import Database, PostgresDatabase, SQLiteDatabase

FILE = "service.db"
_MADE = (
    "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " digest TEXT NOT NULL, applied_at DOUBLE PRECISION NOT NULL)"
)


def open_database(settings: Settings) -> Database:
    """The database of a service, with all migrations applied."""
    address = settings.database
    if address is not None:
        if not address.startswith(("postgresql://", "postgres://")):
            raise InvalidParameter(
                "--database",
                "it is no address of a PostgreSQL",
                "the service keeps its state in SQLite (--state) or in PostgreSQL",
                "pass for example --database postgresql://curator@/curator?host=/run/postgresql",
            )
        database: Database = PostgresDatabase(address)
    else:
        state = Path(settings.state)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        database = SQLiteDatabase(state / FILE)
    migrate(database)
    return database


def migrations() -> list[tuple[int, str, str]]:
    """(number, name, SQL) of every migration, in their order."""
    folder = resources.files("discreet.server.store").joinpath("migrations")
    files = sorted(
        (one for one in folder.iterdir() if one.name.endswith(".sql")), key=lambda one: one.name
    )
    return [
        (int(one.name[:4]), one.name.removesuffix(".sql"), one.read_text("utf-8")) for one in files
    ]


def migrate(database: Database) -> list[str]:
    """Applies what was not applied yet; returns the names of those."""
    known, applied = migrations(), []
    with database.alone() as rows:
        rows.changed(_MADE)
        before = {row["number"]: row for row in rows.run("SELECT * FROM migrations")}
        if set(before) - {number for number, _, _ in known}:
            raise _foreign("a newer version of discreet wrote it", "start that version")
        for number, name, text in known:
            digest = hashlib.sha256(text.encode()).hexdigest()
            if number in before:
                if before[number]["digest"] != digest:
                    raise _foreign(f"its migration {number} was another one", "bring it back")
                continue
            for statement in statements(text):
                rows.changed(statement)
            rows.changed(
                "INSERT INTO migrations (number, name, digest, applied_at) VALUES (?, ?, ?, ?)",
                *(number, name, digest, time.time()),
            )
            applied.append(name)
    return applied


def statements(text: str) -> list[str]:
    """The statements of a migration, without comments."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    return [one.strip() for one in "\n".join(lines).split(";\n") if one.strip(" ;\n")]


def _foreign(found: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(
        "the database of the service",
        found,
        "a state that is not understood could grant what was spent",
        remedy,
    )
