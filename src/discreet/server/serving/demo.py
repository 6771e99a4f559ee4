"""`discreet serve --demo`: a service to look at, with made-up people and census incomes."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

from discreet.bundled.tables import load_census
from discreet.server.accounts import passwords
from discreet.server.accounts.marks import new_password
from discreet.server.accounts.people import add_person, find_login, person_of
from discreet.server.desk.desk import Desk

PEOPLE = {
    "owner": ("owner", "Olga, who holds the data"),
    "anna": ("analyst", "Anna, an analyst"),
    "ben": ("analyst", "Ben, an analyst"),
    "auditor": ("auditor", "Ada, an auditor"),
    "operator": ("operator", "Otto, who runs the service"),
}
FOLDER, FILE = "demo", "census.csv"
REASONS = {
    "income": "the questionnaire asks for at most 200 000 a year",
    "age": "adults; nobody over 90 was asked",
    "hours": "a week has no more working hours than 80 here",
}


def demo_folder(state: Path) -> Path:
    """The folder with the census file, which is written where it is not there."""
    folder = state / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    if not path.exists():
        table = load_census()
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table.columns)
            rows: Any = zip(*table.columns.values(), strict=True)
            writer.writerows(["" if one is None else one for one in row] for row in rows)
    return folder


def demo_people(desk: Desk) -> dict[str, str]:
    """The people of the demonstration with their passwords, new at every start."""
    told, now = {}, time.time()
    for login, (role, name) in PEOPLE.items():
        password = new_password()
        stored = passwords.hashed(password)
        with desk.office.database.write() as rows:
            if find_login(rows, login) is None:
                add_person(
                    rows, login=login, name=name, role=role, stored=stored, subject=None, now=now
                )
            else:
                rows.changed("UPDATE people SET password = ? WHERE login = ?", stored, login)
        told[login] = password
    return told


def demo_data(desk: Desk) -> None:
    """The census, registered by its owner, with a study of Anna's."""
    table = load_census()
    with desk.office.database.read() as rows:
        found = {login: find_login(rows, login) for login in ("owner", "anna")}
    owner, anna = (person_of(row) for row in found.values() if row is not None)
    data = desk.datasets.register(
        owner,
        name="census",
        description=table.description,
        source=f"{FOLDER}/{FILE}",
        schema=table.schema.to_dict(),
        neighbors="replace",
        reasons=REASONS,
        budget={"epsilon": 3.0, "delta": 1e-6},
        listed=True,
    )
    study = desk.studies.ask(
        anna,
        dataset=data["id"],
        name="wages",
        purpose="How wages differ by education and region.",
        budget={"mu": 0.3},
        plan=["mean income", "mean income by education"],
    )
    if study["state"] == "requested":
        desk.studies.decide(owner, study["id"], decision="approve", reason="as agreed")
