"""What all operations of the desk share: where things are kept, who opens data, what time it is;
and how somebody's things are found, so that what is not theirs is not there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.server.accounts.people import Person
from discreet.server.records import dataset_row, seat_row, study_row, version_row
from discreet.server.refusals import frozen, not_there, over
from discreet.server.settings import Settings
from discreet.server.store.database import Database, Row, Rows
from discreet.server.trees import Trees
from discreet.server.work.asked import Workers
from discreet.server.work.declared import Declared, NoRows, data_name, declared_from_text
from discreet.trusted.noise.source import Source, secure_source
from discreet.trusted.session import Session
from discreet.trusted.tree.receipts import Seal

MOST_KNOWN = 256  # versions of data sets whose declarations a process remembers


@dataclass(frozen=True, slots=True)
class Office:
    """Where the desk stands. `source` is another one in tests alone."""

    database: Database
    trees: Trees
    workers: Workers
    settings: Settings
    clock: Callable[[], float] = time.time
    source: Callable[[], Source] = secure_source
    seal: Seal | None = None  # what receipts are signed with
    _known: dict[tuple[str, int], tuple[Declared, NoRows]] = field(default_factory=dict)

    def declared(self, rows: Rows, dataset: str, version: int) -> Declared:
        """What is declared of a version."""
        return self._facts(rows, dataset, version)[0]

    def session(self, rows: Rows, dataset: str, version: int, node: Any) -> Session:
        """A session that checks, prices and debits questions of a seat, and has no rows."""
        declared, engine = self._facts(rows, dataset, version)
        return Session(engine, declared.schema, declared.neighbors, node, self.source())

    def _facts(self, rows: Rows, dataset: str, version: int) -> tuple[Declared, NoRows]:
        known = self._known.get((dataset, version))
        if known is None:  # a version is never changed
            row = version_row(rows, dataset, version)
            declared = declared_from_text(row["declared"])
            name = data_name(dataset, version)
            known = declared, NoRows(declared, row["public_count"], name)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[dataset, version] = known
        return known


def visible_dataset(rows: Rows, person: Person, dataset: str) -> Row:
    """A data set that somebody may know of."""
    row = dataset_row(rows, dataset)
    if row is None or row["state"] == "opening" or not _sees(rows, person, row):
        raise not_there()
    return row


def own_dataset(rows: Rows, person: Person, dataset: str) -> Row:
    """A data set of one's own, whatever its state."""
    row = dataset_row(rows, dataset)
    if row is None or row["owner"] != person.id:
        raise not_there()
    return row


def visible_datasets(rows: Rows, person: Person) -> list[Row]:
    """The data sets that somebody may know of, by name."""
    found = rows.run("SELECT id FROM datasets WHERE state <> 'opening' ORDER BY name, id")
    known = [dataset_row(rows, row["id"]) for row in found]
    return [row for row in known if row is not None and _sees(rows, person, row)]


def visible_study(rows: Rows, person: Person, study: str) -> tuple[Row, Row]:
    """A study with its data set: one's own seat, one's own request, or one's own data."""
    row = study_row(rows, study)
    data = None if row is None else dataset_row(rows, row["dataset"])
    if row is None or data is None:
        raise not_there()
    mine = (
        person.role == "auditor"
        or (person.role == "owner" and data["owner"] == person.id)
        or (
            person.role == "analyst"
            and (row["asked_by"] == person.id or seat_row(rows, study, person.id) is not None)
        )
    )
    if not mine:
        raise not_there()
    return row, data


def owned_study(rows: Rows, person: Person, study: str) -> tuple[Row, Row]:
    """A study on data of one's own."""
    row, data = visible_study(rows, person, study)
    if data["owner"] != person.id:
        raise not_there()
    return row, data


def own_seat(rows: Rows, person: Person, study: str) -> tuple[Row, Row, Row]:
    """One's own seat in a study: the seat, the study and the data set."""
    row, data = visible_study(rows, person, study)
    seat = seat_row(rows, study, person.id)
    if seat is None:
        raise not_there()
    return seat, row, data


def require_asking(study: Row, data: Row, now: float) -> None:
    """Refuses a new question where none may be asked; what was paid can still be read."""
    if data["state"] == "frozen":
        raise frozen()
    if data["state"] != "open":
        raise over("the data set")
    if study["state"] != "open" or (study["expires_at"] is not None and study["expires_at"] <= now):
        raise over("the study")


def _sees(rows: Rows, person: Person, row: Row) -> bool:
    if person.role == "auditor":
        return True
    if person.role == "owner":
        return bool(row["owner"] == person.id)
    if person.role != "analyst":
        return False
    if row["listed"] and row["state"] == "open":
        return True
    seat = rows.one(
        "SELECT 1 AS here FROM seats JOIN studies ON studies.id = seats.study"
        " WHERE seats.person = ? AND studies.dataset = ?",
        *(person.id, row["id"]),
    )
    return seat is not None
