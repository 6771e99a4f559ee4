"""Reading ledgers: chains of hashes, and whether they verify."""

from __future__ import annotations

from typing import Any

from discreet.server.accounts.people import Person
from discreet.server.desk.office import Office
from discreet.server.desk.words import Words, box_words, entry_words
from discreet.server.refusals import not_there
from discreet.server.store.database import Row, Rows

MOST_SHOWN = 1000


class Ledgers:
    """What stands in the boxes that somebody may look into."""

    def __init__(self, office: Office) -> None:
        self._office = office

    def entries(self, person: Person, node: str, *, after: int = -1, limit: int = 200) -> Words:
        """The lines of a node's chain after a number; an analyst sees those of their own seat, and
        neither times nor answers.
        """
        whole, dataset = self._allowed(person, node)
        held = self._office.trees.node(dataset, node)
        most = max(1, min(limit, MOST_SHOWN))
        found = [
            entry
            for entry in held.entries()
            if entry.number > after and (whole or entry.kind != "answer")
        ]
        return {
            "node": node,
            "entries": [entry_words(entry, whole=whole) for entry in found[:most]],
            "head": held.head if whole or held.chain == held.id else "",
            "box": box_words(held.boxes()[0]),
        }

    def verify(self, person: Person, node: str) -> Words:
        """Whether the history adds up: of the whole tree, for owners and auditors."""
        whole, dataset = self._allowed(person, node)
        if whole:
            problems = self._office.trees.problems(dataset)
        else:
            problems = [*self._office.trees.node(dataset, node).verify().problems]
        held = self._office.trees.node(dataset, node)
        return {"node": node, "ok": not problems, "problems": problems, "head": held.head}

    def _allowed(self, person: Person, node: str) -> tuple[bool, str]:
        """Whether somebody may look into a node, and its data set."""
        person.require("owner", "analyst", "auditor")
        with self._office.database.read() as rows:
            row = _place(rows, node)
        if row is not None:
            if person.role == "auditor" or (person.role == "owner" and row["owner"] == person.id):
                return True, str(row["dataset"])
            if person.role == "analyst" and row["person"] == person.id:
                return False, str(row["dataset"])
        raise not_there()


def _place(rows: Rows, node: str) -> Row | None:
    """The data set, its owner and the person of the seat that a node is."""
    seat: Any = rows.one(
        "SELECT studies.dataset AS dataset, datasets.owner AS owner, seats.person AS person"
        " FROM seats JOIN studies ON studies.id = seats.study"
        " JOIN datasets ON datasets.id = studies.dataset WHERE seats.node = ?",
        node,
    )
    if seat is not None:
        return seat  # type: ignore[no-any-return]
    above = rows.one(
        "SELECT datasets.id AS dataset, datasets.owner AS owner FROM datasets"
        " LEFT JOIN studies ON studies.dataset = datasets.id"
        " WHERE datasets.node = ? OR studies.node = ?",
        *(node, node),
    )
    above = above or rows.one(
        "SELECT id AS dataset, owner FROM populations WHERE node = ? AND node <> id", node
    )
    return None if above is None else {**above, "person": None}
