"""Populations: one box above data sets about the same people.

What is said about a person in several data sets adds up. A population's box is the promise for all
of its data sets together, whoever asks about which; each of them is carved out of it, and what a
data set did not spend goes back to it when it is closed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from discreet.asking.written import letters_of
from discreet.neighbors import neighbors_from_dict
from discreet.server.accounts.marks import new_id
from discreet.server.accounts.people import Person
from discreet.server.desk.office import Office
from discreet.server.desk.words import Words, box_words, guarantee_from, require_name, require_text
from discreet.server.records import insert, text_of
from discreet.server.refusals import conflict, invalid, not_there
from discreet.server.store.database import Row, Rows
from discreet.server.work.declared import relation_from


class Populations:
    """What owners keep for several data sets together."""

    def __init__(self, office: Office) -> None:
        self._office, self._database = office, office.database

    def listed(self, person: Person) -> list[Words]:
        """One's own; all, for auditors."""
        person.require("owner", "auditor")
        with self._database.read() as rows:
            found = rows.run("SELECT * FROM populations ORDER BY name, id")
            mine = [row for row in found if person.role == "auditor" or row["owner"] == person.id]
            return [self._told(rows, row) for row in mine]

    def one(self, person: Person, population: str) -> Words:
        """What it promises, what is left of it, and its data sets."""
        person.require("owner", "auditor")
        with self._database.read() as rows:
            row = _row(rows, population)
            if row is None or (person.role == "owner" and row["owner"] != person.id):
                raise not_there()
            return self._told(rows, row)

    def make(
        self,
        person: Person,
        *,
        name: str,
        neighbors: Any,
        budget: Mapping[str, float],
        description: str = "",
        pure: float | None = None,
        delta0: float | None = None,
    ) -> Words:
        """A population with its budget, once and for all; the same words again give the same."""
        person.require("owner", scope="decide")
        require_name(name, "name")
        require_text(description, "description")
        promised, relation = guarantee_from(budget, "budget"), relation_from(neighbors)
        row = {
            "id": new_id("po"),
            "name": name,
            "description": description,
            "owner": person.id,
            "budget": text_of(letters_of(promised)),
            "neighbors": text_of(relation.to_dict()),
            "created_at": self._office.clock(),
        }
        row["node"] = row["id"]  # until there is one
        with self._database.write() as rows:
            insert(rows, "populations", row, "ON CONFLICT (owner, name) DO NOTHING")
            known = rows.one(
                "SELECT * FROM populations WHERE owner = ? AND name = ?", person.id, name
            )
        assert known is not None
        if any(known[word] != row[word] for word in ("budget", "neighbors")):
            raise conflict(
                "a population of this name",
                "you have one that is declared otherwise",
                "its budget is never enlarged",
                "use another name",
            )
        node = self._office.trees.root(
            known["id"],
            name=name,
            budget=promised,
            neighbors=relation,
            pure=pure,
            delta0=delta0,
        )
        with self._database.write() as rows:
            rows.changed("UPDATE populations SET node = ? WHERE id = ?", node.id, known["id"])
        return self.one(person, known["id"])

    def _told(self, rows: Rows, row: Row) -> Words:
        told = {word: row[word] for word in ("id", "name", "description", "created_at")}
        told |= {"budget": json.loads(row["budget"]), "neighbors": json.loads(row["neighbors"])}
        told["datasets"] = rows.run(
            "SELECT id, name, state FROM datasets WHERE population = ? ORDER BY name, id", row["id"]
        )
        if row["node"] == row["id"]:
            return told
        box = box_words(self._office.trees.box(row["id"], row["node"]))
        return told | {"node": row["node"], "box": box}


def own_population(rows: Rows, person: Person, population: str, neighbors: Any) -> Row:
    """A population of one's own that a data set of this relation can be in."""
    row = _row(rows, population)
    if row is None or row["owner"] != person.id or row["node"] == row["id"]:
        raise not_there()
    there = neighbors_from_dict(json.loads(row["neighbors"]))
    if (type(there), there.unit) != (type(neighbors), neighbors.unit):
        raise invalid(
            "neighbors",
            "the data set protects something else than its population",
            "what data sets say about one person adds up where all protect the same",
            f"declare {json.dumps(there.to_dict())}, or leave the population out",
        )
    return row


def _row(rows: Rows, population: str) -> Row | None:
    return rows.one("SELECT * FROM populations WHERE id = ?", population)
