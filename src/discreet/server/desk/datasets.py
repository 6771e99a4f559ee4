"""Data sets: registered once by their owner, closed or frozen, and what may be known of them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import letters_of
from discreet.errors import DiscreetError
from discreet.server.accounts.marks import new_id
from discreet.server.accounts.people import Person
from discreet.server.desk.dummy import dummy_columns
from discreet.server.desk.histories import NEVER_THAWED
from discreet.server.desk.office import (
    Office,
    own_dataset,
    visible_dataset,
    visible_datasets,
)
from discreet.server.desk.populations import own_population
from discreet.server.desk.words import (
    Words,
    box_words,
    guarantee_from,
    require_name,
    require_text,
)
from discreet.server.records import insert, text_of, version_row
from discreet.server.refusals import conflict, frozen, invalid, over
from discreet.server.store.database import Row, Rows
from discreet.server.work.declared import Declared, declared_from
from discreet.trusted.tree.node import Node

USUAL_MOST, MOST_ROWS = 1_000_000, 10**12


class DataSets:
    """What owners register, and what others may know of it."""

    def __init__(self, office: Office) -> None:
        self._office, self._database = office, office.database

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def listed(self, person: Person) -> list[Words]:
        """The data sets that somebody may know of."""
        person.require("owner", "analyst", "auditor")
        with self._database.read() as rows:
            return [self._told(rows, person, row) for row in visible_datasets(rows, person)]

    def one(self, person: Person, dataset: str) -> Words:
        """Schema, relation, public count and promise; for its owner and auditors, the rest too."""
        person.require("owner", "analyst", "auditor")
        with self._database.read() as rows:
            row = visible_dataset(rows, person, dataset)
            told = self._told(rows, person, row)
            declared = self._office.declared(rows, dataset, row["version"])
            version = version_row(rows, dataset, row["version"])
        told |= {
            "schema": declared.schema.to_dict(),
            "neighbors": declared.neighbors.to_dict(),
            "public_count": version["public_count"],
            "reasons": dict(declared.reasons),
        }
        if person.role == "owner":
            told |= {"sources": list(declared.sources), "format": declared.format}
        if person.role in ("owner", "auditor"):
            told["node"] = row["node"]
            told["box"] = box_words(self._office.trees.box(dataset, row["node"]))
        return told

    def tree(self, person: Person, dataset: str) -> Words:
        """All boxes of a data set, for its owner and for auditors."""
        person.require("owner", "auditor")
        with self._database.read() as rows:
            row = visible_dataset(rows, person, dataset)
            studies = rows.run(
                "SELECT id, name, node FROM studies WHERE dataset = ? AND node IS NOT NULL", dataset
            )
            seats = rows.run(
                "SELECT seats.node AS node, seats.study AS study, people.login AS login FROM seats"
                " JOIN people ON people.id = seats.person JOIN studies ON studies.id = seats.study"
                " WHERE studies.dataset = ?",
                dataset,
            )
        told = {one["node"]: {"study": one["id"]} for one in studies}
        told |= {one["node"]: {"study": one["study"], "login": one["login"]} for one in seats}
        return self._branch(dataset, row["node"], told)

    def dummy(self, person: Person, dataset: str, *, rows: int = 1000, seed: int = 1) -> Words:
        """Columns of rows that are made up of the schema alone."""
        person.require("owner", "analyst", "auditor")
        with self._database.read() as read:
            row = visible_dataset(read, person, dataset)
            declared = self._office.declared(read, dataset, row["version"])
        columns = dummy_columns(declared.schema, declared.neighbors, rows, seed)
        return {"made_up": True, "rows": rows, "seed": seed, "columns": columns}

    def sources(self, person: Person) -> list[Words]:
        """The files that could be registered, for owners."""
        person.require("owner", scope="decide")
        return self._office.workers.listed()

    # ── what owners decide ────────────────────────────────────────────────────────────────────────

    def register(
        self,
        person: Person,
        *,
        name: str,
        source: str | Sequence[str],
        schema: Mapping[str, Any],
        neighbors: Any,
        budget: Mapping[str, float],
        description: str = "",
        format: str | None = None,
        dialect: Mapping[str, Any] | None = None,
        reasons: Mapping[str, str] | None = None,
        pure: float | None = None,
        delta0: float | None = None,
        rows_at_most: int | None = None,
        listed: bool = False,
        population: str | None = None,
    ) -> Words:
        """A data set with its budget, once and for all; the same words again give the same one.
        In a `population`, its budget is set aside in that one's.

        The words of `schema`, `neighbors`, `format` and `dialect` are those of a declaration file.
        `rows_at_most` is public: waiting times are computed from it. `listed`: analysts may see
        that it is there, and ask for a study.
        """
        person.require("owner", scope="decide")
        require_name(name, "name")
        require_text(description, "description")
        promised = guarantee_from(budget, "budget")
        words = {"schema": schema, "neighbors": neighbors, "format": format, "dialect": dialect}
        declared = self._declared(words, source, reasons or {})
        seen = self._office.workers.look(declared.to_dict())
        most = self._most(rows_at_most, seen["public_count"])
        now = self._office.clock()
        if population is not None:
            above = self._above(person, population, declared.neighbors, (pure, delta0))
        dataset = new_id("ds") if population is None else f"{new_id('ds')}_{population}"
        row = {
            "id": dataset,
            "name": name,
            "description": description,
            "owner": person.id,
            "node": dataset,
            "budget": text_of(letters_of(promised)),
            "version": 1,
            "state": "opening",
            "reason": "",
            "listed": int(listed),
            "created_at": now,
            "population": population,
        }
        with self._database.write() as rows:
            known = rows.one(
                "SELECT id FROM datasets WHERE owner = ? AND name = ?", person.id, name
            )
            if known is None:
                insert(rows, "datasets", row)
                insert(rows, "versions", _version(dataset, 1, declared, seen, most, now))
        if known is not None:
            dataset = self._the_same(known["id"], declared, row)
        if population is None:
            node = self._office.trees.root(
                dataset,
                name=name,
                budget=promised,
                neighbors=declared.neighbors,
                pure=pure,
                delta0=delta0,
            )
        else:
            node = self._carved(dataset, above["node"], name, promised)
        with self._database.write() as rows:
            rows.changed(
                "UPDATE datasets SET state = 'open', node = ? WHERE id = ? AND state = 'opening'",
                *(node.id, dataset),
            )
        return self.one(person, dataset)

    def _above(
        self,
        person: Person,
        population: str,
        neighbors: Any,
        shares: tuple[float | None, float | None],
    ) -> Row:
        """The population that a data set's budget is set aside in; it sets the shares of pure and
        δ₀ too.
        """
        with self._database.read() as rows:
            above = own_population(rows, person, population, neighbors)
        if shares != (None, None):
            raise invalid(
                "pure and delta0",
                "a data set of a population has its share of that one's",
                "boxes are set aside in the coordinates of the one above",
                "leave them out",
            )
        return above

    def new_version(self, person: Person, dataset: str, *, source: str | Sequence[str]) -> Words:
        """Other rows about the same people, which spend the same box; a frozen data set goes on."""
        person.require("owner", scope="decide")
        with self._database.read() as rows:
            row = own_dataset(rows, person, dataset)
            before = self._office.declared(rows, dataset, row["version"])
            most = version_row(rows, dataset, row["version"])["rows_at_most"]
        if row["state"] == "closed":
            raise over("the data set")
        _require_whole(row)
        declared = self._declared(before.to_dict(), source, before.reasons)
        seen = self._office.workers.look(declared.to_dict())
        number, now = row["version"] + 1, self._office.clock()
        version = _version(dataset, number, declared, seen, most, now)
        with self._database.write() as rows:
            if not insert(rows, "versions", version, "ON CONFLICT DO NOTHING"):
                raise conflict(
                    "a new version",
                    "another one was made just now",
                    "one follows the other",
                    "look at the data set, and try again",
                )
        told = {"version": number, "by": person.login}
        self._office.trees.note(dataset, row["node"], "version", told)
        self._go_on(person, dataset, f"version {number}", version=number)
        return self.one(person, dataset)

    def freeze(self, person: Person, dataset: str, *, reason: str = "") -> Words:
        """Nothing more is debited or drawn until it is thawed; answers can still be read."""
        person.require("owner", scope="decide")
        require_text(reason, "reason")
        with self._database.write() as rows:
            row = own_dataset(rows, person, dataset)
            if row["state"] == "closed":
                raise over("the data set")
            rows.changed(
                "UPDATE datasets SET state = 'frozen', reason = ? WHERE id = ?"
                " AND reason NOT IN (?, ?)",
                *(reason, dataset, *NEVER_THAWED),
            )
        self._office.trees.freeze(dataset, row["node"], reason[:400] or "by its owner")
        return self.one(person, dataset)

    def thaw(self, person: Person, dataset: str) -> Words:
        """Goes on after a freeze, on the same version."""
        person.require("owner", scope="decide")
        with self._database.read() as rows:
            row = own_dataset(rows, person, dataset)
        if row["state"] == "frozen":
            self._go_on(person, dataset, "by its owner")
        return self.one(person, dataset)

    def close(self, person: Person, dataset: str) -> Words:
        """No more questions, for good."""
        person.require("owner", scope="decide")
        with self._database.write() as rows:
            row = own_dataset(rows, person, dataset)
            rows.changed("UPDATE datasets SET state = 'closed' WHERE id = ?", dataset)
            rows.changed(
                "UPDATE studies SET state = 'closed' WHERE dataset = ? AND state = 'open'", dataset
            )
        self._office.trees.close(dataset, row["node"])
        return self.one(person, dataset)

    # ── how ───────────────────────────────────────────────────────────────────────────────────────

    def _go_on(self, person: Person, dataset: str, why: str, *, version: int | None = None) -> None:
        """Takes a freeze back; what is never thawed stays, also where it came in between."""
        with self._database.read() as rows:
            row = own_dataset(rows, person, dataset)
        _require_whole(row)
        self._office.trees.thaw(dataset, row["node"], why)
        with self._database.write() as rows:
            done = rows.changed(
                "UPDATE datasets SET version = COALESCE(?, version), state = 'open', reason = ''"
                " WHERE id = ? AND state <> 'closed' AND reason NOT IN (?, ?)",
                *(version, dataset, *NEVER_THAWED),
            )
        if not done:
            with contextlib.suppress(DiscreetError):  # one that is closed stays closed
                self._office.trees.freeze(dataset, row["node"], "found while it was thawed")
            raise frozen()

    def _told(self, rows: Rows, person: Person, row: Row) -> Words:
        told = {
            "id": row["id"],
            "name": row["name"],
            "description": row["description"],
            "budget": row["budget"],
            "version": row["version"],
            "state": row["state"],
            "created_at": row["created_at"],
        }
        if person.role in ("owner", "auditor"):
            told |= {"reason": row["reason"], "listed": bool(row["listed"])}
            told["population"] = row["population"]
        return told

    def _branch(self, dataset: str, node: str, known: Mapping[str, Words]) -> Words:
        told = box_words(self._office.trees.box(dataset, node)) | known.get(node, {})
        below = self._office.trees.children(dataset, node)
        return {**told, "children": [self._branch(dataset, one, known) for one in below]}

    def _declared(
        self, words: Mapping[str, Any], source: str | Sequence[str], reasons: Mapping[str, str]
    ) -> Declared:
        listed = (source,) if isinstance(source, str) else tuple(source)
        return declared_from(words, listed, reasons)

    def _carved(self, dataset: str, above: str, name: str, budget: Guarantee) -> Node:
        """The box of a data set in its population's; without room there, it is not registered."""
        trees = self._office.trees
        try:
            return trees.carve(dataset, above, name=name, budget=budget, key=dataset)
        except DiscreetError:
            with self._database.write() as rows:
                opening = "SELECT id FROM datasets WHERE id = ? AND state = 'opening'"
                if rows.one(opening, dataset) is not None:
                    rows.changed("DELETE FROM versions WHERE dataset = ?", dataset)
                    rows.changed("DELETE FROM datasets WHERE id = ?", dataset)
            raise

    def _most(self, given: int | None, count: int | None) -> int:
        most = given if given is not None else max(count or USUAL_MOST, 1)
        if not 1 <= most <= MOST_ROWS:
            raise invalid(
                "rows_at_most",
                f"not 1 to {MOST_ROWS}",
                "how long an answer waits is computed from it, and never from the rows",
                "name a public number that the data will not pass",
            )
        return most

    def _the_same(self, dataset: str, declared: Declared, row: Row) -> str:
        """A data set that is registered again in the same words."""
        with self._database.read() as rows:
            known = rows.one("SELECT budget, population FROM datasets WHERE id = ?", dataset)
            before = self._office.declared(rows, dataset, 1)
        alike = known is not None and all(known[word] == row[word] for word in known)
        if not alike or before != declared:
            raise conflict(
                "a data set of this name",
                "you have one that is declared otherwise",
                "a data set is registered once, with a budget that is never enlarged",
                "use another name, or make a new version of it",
            )
        return dataset


def _require_whole(row: Row) -> None:
    """Refuses to go on with a ledger that is not what it was."""
    if row["reason"] in NEVER_THAWED:
        raise conflict(
            "going on after a freeze",
            row["reason"],
            "what an older copy forgot was spent, and people saw the answers",
            "ask the operator to bring back the newest copy, or for `discreet curator recover`",
        )


def _version(
    dataset: str, number: int, declared: Declared, seen: Words, most: int, now: float
) -> Row:
    return {
        "dataset": dataset,
        "version": number,
        "declared": text_of(declared.to_dict()),
        "public_count": seen["public_count"],
        "rows_at_most": most,
        "pin": text_of(seen["pin"]),
        "created_at": now,
    }
