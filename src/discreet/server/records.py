"""Rows of the service's database as the desk and the workers read them: one place for each."""

from __future__ import annotations

import json
from typing import Any

from discreet.server.store.database import Row, Rows

_JSON_OF = {
    "questions": ("body",),
    "versions": ("pin",),
    "datasets": ("budget",),
    "studies": ("members", "budget", "plan", "ask_above"),
}


def read_json(row: Row, *names: str) -> Row:
    """A row whose named columns are parsed."""
    return {
        name: json.loads(held) if name in names and held is not None else held
        for name, held in row.items()
    }


def text_of(told: Any) -> str:
    """One spelling of JSON, whatever the order in which it was said."""
    return json.dumps(told, sort_keys=True, ensure_ascii=True, allow_nan=False)


def insert(rows: Rows, table: str, row: Row, ending: str = "") -> int:
    """Puts in a row; `ending` may say what happens where it is known. How many were put in."""
    return rows.changed(*inserting(table, row, ending))


def inserting(table: str, row: Row, ending: str = "") -> tuple[Any, ...]:
    """The statement of `insert`, and its values."""
    marks = ", ".join("?" * len(row))
    text = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) {ending}"
    return text, *row.values()


def asking_row(rows: Rows, study: str, person: str, key: str) -> Row | None:
    """All that is looked at before a question of somebody's seat: the seat, its study, its data
    set, and what the key was used for; `version` is that of its first use, `known` its state.
    """
    return rows.one(
        "SELECT seats.node AS node, studies.state AS study_state, studies.expires_at AS expires_at,"
        " studies.ask_above AS ask_above, datasets.id AS dataset, datasets.state AS state,"
        " versions.version AS version, versions.rows_at_most AS rows_at_most, questions.id AS id,"
        " questions.state AS known, questions.kind AS kind, questions.body AS body,"
        " questions.reservation AS reservation FROM seats"
        " JOIN studies ON studies.id = seats.study JOIN datasets ON datasets.id = studies.dataset"
        " LEFT JOIN questions ON questions.node = seats.node AND questions.key = ?"
        " JOIN versions ON versions.dataset = datasets.id"
        " AND versions.version = COALESCE(questions.version, datasets.version)"
        " WHERE seats.study = ? AND seats.person = ?",
        *(key, study, person),
    )


def paid_row(rows: Rows, question: str) -> Row | None:
    """A question with what its data set was declared and pinned as, for those who answer it."""
    row = rows.one(
        "SELECT questions.*, versions.dataset AS dataset, versions.declared AS declared,"
        " versions.pin AS pin FROM questions JOIN studies ON studies.id = questions.study"
        " JOIN versions ON versions.dataset = studies.dataset"
        " AND versions.version = questions.version WHERE questions.id = ?",
        question,
    )
    return None if row is None else read_json(row, "body", "pin")


def question_row(rows: Rows, question: str) -> Row | None:
    """A question with its data set; `question` is what was asked, rebuilt from JSON."""
    row = rows.one(
        "SELECT questions.*, studies.dataset AS dataset FROM questions JOIN studies"
        " ON studies.id = questions.study WHERE questions.id = ?",
        question,
    )
    if row is None:
        return None
    body = json.loads(row.pop("body"))
    return {**row, "question": body}


def dataset_row(rows: Rows, dataset: str) -> Row | None:
    row = rows.one("SELECT * FROM datasets WHERE id = ?", dataset)
    return None if row is None else read_json(row, *_JSON_OF["datasets"])


def version_row(rows: Rows, dataset: str, version: int) -> Row:
    """A version of a data set that is known to be there."""
    row = rows.one("SELECT * FROM versions WHERE dataset = ? AND version = ?", dataset, version)
    assert row is not None
    return read_json(row, *_JSON_OF["versions"])


def study_row(rows: Rows, study: str) -> Row | None:
    row = rows.one("SELECT * FROM studies WHERE id = ?", study)
    return None if row is None else read_json(row, *_JSON_OF["studies"])


def seat_row(rows: Rows, study: str, person: str) -> Row | None:
    """Somebody's seat in a study."""
    return rows.one("SELECT * FROM seats WHERE study = ? AND person = ?", study, person)
