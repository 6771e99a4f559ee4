"""Studies: asked for by analysts, decided by owners; each opens a box and seats of its own.

Every step that an owner decides stands in the hash chain of the data set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.asking.written import letters_of
from discreet.server.accounts.marks import new_id
from discreet.server.accounts.people import Person, find_login
from discreet.server.desk.office import (
    Office,
    owned_study,
    visible_dataset,
    visible_study,
)
from discreet.server.desk.words import (
    Words,
    box_words,
    guarantee_from,
    require_name,
    require_text,
)
from discreet.server.records import dataset_row, insert, study_row, text_of
from discreet.server.refusals import conflict, frozen, invalid, not_there, over
from discreet.server.store.database import Row, Rows

MOST_MEMBERS, MOST_PLANNED = 100, 1000
MOST_NOTED = 400  # characters of a reason in the chain
DECISIONS = ("approve", "decline")
SEATS = ("carved", "pooled")


class Studies:
    """Who may ask about which data, and for how much."""

    def __init__(self, office: Office) -> None:
        self._office, self._database = office, office.database

    # ── what is there ─────────────────────────────────────────────────────────────────────────────

    def listed(self, person: Person) -> list[Words]:
        """One's own studies and requests; those on one's own data; all, for auditors."""
        person.require("owner", "analyst", "auditor")
        with self._database.read() as rows:
            return [self._told(rows, row) for row in self._mine(rows, person)]

    def one(self, person: Person, study: str) -> Words:
        """A study, with one's own seat and the boxes that it is paid from."""
        person.require("owner", "analyst", "auditor")
        with self._database.read() as rows:
            row, data = visible_study(rows, person, study)
            told = self._told(rows, row)
            seats = rows.run(
                "SELECT seats.node AS node, seats.person AS person, people.login AS login"
                " FROM seats JOIN people ON people.id = seats.person WHERE seats.study = ?"
                " ORDER BY people.login",
                study,
            )
        told["purpose"], told["plan"] = row["purpose"], row["plan"]
        if person.role in ("owner", "auditor"):
            told["seat_list"] = [{"login": one["login"], "node": one["node"]} for one in seats]
        mine = next((one["node"] for one in seats if one["person"] == person.id), None)
        if mine is not None:
            told["seat"] = {"node": mine, "boxes": self._boxes(data["id"], mine)}
        return told

    def requests(self, person: Person) -> list[Words]:
        """The studies that wait for one's decision, oldest first."""
        person.require("owner")
        return [one for one in self.listed(person) if one["state"] == "requested"]

    # ── what analysts ask ─────────────────────────────────────────────────────────────────────────

    def ask(
        self,
        person: Person,
        *,
        dataset: str,
        name: str,
        purpose: str,
        budget: Mapping[str, float],
        members: Sequence[str] = (),
        seats: str = "carved",
        plan: Sequence[str] = (),
        expires_at: float | None = None,
    ) -> Words:
        """A request for a study, which its owner decides; the same words again are the same
        request. An owner's own is open at once.
        """
        person.require("analyst", "owner", scope="ask" if person.role == "analyst" else "decide")
        row = self._checked(
            {
                "dataset": dataset,
                "name": name,
                "purpose": purpose,
                "budget": budget,
                "members": list(members) or [person.login],
                "seats": seats,
                "plan": list(plan),
                "expires_at": expires_at,
            }
        )
        now = self._office.clock()
        with self._database.write() as rows:
            data = visible_dataset(rows, person, dataset)
            if data["state"] != "open":
                raise frozen() if data["state"] == "frozen" else over("the data set")
            self._require_members(rows, person, row["members"])
            known = rows.one(
                "SELECT id FROM studies WHERE dataset = ? AND name = ? AND asked_by = ?"
                " AND state IN ('requested', 'opening', 'open')",
                *(dataset, name, person.id),
            )
            if known is None:
                study = new_id("st")
                insert(
                    rows,
                    "studies",
                    {
                        "id": study,
                        **self._stored(row),
                        "asked_by": person.id,
                        "state": "requested",
                        "reason": "",
                        "created_at": now,
                    },
                )
            else:
                study = known["id"]
                before = study_row(rows, study)
                assert before is not None
                if any(before[word] != row[word] for word in ("purpose", "budget", "members")):
                    raise conflict(
                        "a study of this name",
                        "you have one on this data set that says something else",
                        "an owner decides on what was written",
                        "amend that one, or use another name",
                    )
        if known is None:
            self._note(data, "requested", study, person)
        if person.role == "owner":
            self.decide(person, study, decision="approve")
        return self.one(person, study)

    def amend(self, person: Person, study: str, **changes: Any) -> Words:
        """Other words for a request that is not decided yet."""
        person.require("analyst", scope="ask")
        with self._database.write() as rows:
            row, data = visible_study(rows, person, study)
            if row["asked_by"] != person.id:
                raise not_there()
            if row["state"] != "requested":
                raise _decided()
            words = ("dataset", "name", "purpose", "budget", "members", "seats", "plan")
            told = {word: row[word] for word in (*words, "expires_at")}
            told |= {word: held for word, held in changes.items() if held is not None}
            self._require_members(rows, person, told["members"])
            _update(rows, study, self._stored(self._checked(told)), of=("requested",))
        self._note(data, "amended", study, person)
        return self.one(person, study)

    # ── what owners decide ────────────────────────────────────────────────────────────────────────

    def decide(
        self,
        person: Person,
        study: str,
        *,
        decision: str,
        reason: str = "",
        budget: Mapping[str, float] | None = None,
        ask_above: Mapping[str, float] | None = None,
        expires_at: float | None = None,
        terms: str | None = None,
    ) -> Words:
        """Approve or decline a request. An approval may change its budget and its end, and name a
        spend above which each question waits for the owner; with the `terms` that were read (their
        digest) it is refused where others were written since.
        """
        person.require("owner", scope="decide")
        if decision not in DECISIONS:
            raise invalid("decision", "it is none", "one is made", "use approve or decline")
        require_text(reason, "reason")
        with self._database.read() as rows:
            row, _ = owned_study(rows, person, study)
        if row["state"] == ("declined" if decision == "decline" else "open"):
            return self.one(person, study)  # decided so already
        with self._database.write() as rows:
            row, data = owned_study(rows, person, study)
            if row["state"] not in ("requested", "opening"):
                raise _decided()
            if terms is not None and terms != _terms(row)["terms"]:
                raise conflict(
                    "a decision",
                    "the request was amended since it was read",
                    "an owner decides on what was written",
                    "read it again, and decide then",
                )
            changes: Row = {"reason": reason, "decided_at": self._office.clock()}
            if decision == "decline":
                if row["state"] == "opening":
                    raise _decided()
                _update(rows, study, changes | {"state": "declined"}, of=("requested",))
            else:
                if data["state"] != "open":
                    raise frozen() if data["state"] == "frozen" else over("the data set")
                self._require_members(rows, person, row["members"])
                told = {**row, "expires_at": expires_at or row["expires_at"]}
                if budget is not None and row["state"] == "requested":
                    told["budget"] = dict(budget)
                stored = self._stored(self._checked(told))
                if ask_above is not None:
                    above = guarantee_from(ask_above, "ask_above")
                    changes["ask_above"] = text_of(letters_of(above))
                changes |= stored | {"state": "opening"}
                _update(rows, study, changes, of=("requested", "opening"))
        if decision == "decline":
            self._note(data, "declined", study, person, reason)
        else:
            self._note(data, "approved", study, person, reason)
            self._open(study)
        return self.one(person, study)

    def add_seat(
        self, person: Person, study: str, *, login: str, budget: Mapping[str, float]
    ) -> Words:
        """A seat for one more analyst, out of what the study has left."""
        person.require("owner", scope="decide")
        spend = guarantee_from(budget, "budget")
        with self._database.read() as rows:
            row, data = owned_study(rows, person, study)
            if row["state"] != "open":
                raise over("the study")
            self._require_members(rows, person, [login])
        self._seat(row, data["id"], login, spend)
        return self.one(person, study)

    def close(self, person: Person, study: str) -> Words:
        """No more questions; what was not spent goes back to the data set."""
        person.require("owner", scope="decide")
        with self._database.write() as rows:
            row, data = owned_study(rows, person, study)
            if row["state"] not in ("open", "closed"):
                raise _decided()
            _update(rows, study, {"state": "closed"}, of=("open", "closed"))
        self._office.trees.close(data["id"], row["node"])
        return self.one(person, study)

    # ── how ───────────────────────────────────────────────────────────────────────────────────────

    def _open(self, study: str) -> None:
        """The box and the seats of an approved study; each step can be done again."""
        with self._database.read() as rows:
            row = study_row(rows, study)
            assert row is not None
            data = dataset_row(rows, row["dataset"])
            assert data is not None
        budget = guarantee_from(row["budget"], "budget")
        trees, dataset = self._office.trees, data["id"]
        try:
            node = trees.carve(
                dataset, data["node"], name=row["name"], budget=budget, key=f"study {study}"
            )
        except Exception:
            with self._database.write() as rows:  # undecided again: nothing was set aside
                rows.changed(
                    "UPDATE studies SET state = 'requested', decided_at = NULL"
                    " WHERE id = ? AND state = 'opening' AND node IS NULL",
                    study,
                )
            raise
        with self._database.write() as rows:
            _update(rows, study, {"node": node.id})
        row["node"] = node.id
        shares = budget.split(dict.fromkeys(row["members"], 1))
        for login in row["members"]:
            alone = row["seats"] == "pooled" or len(row["members"]) == 1
            self._seat(row, dataset, login, budget if alone else shares[login])
        with self._database.write() as rows:
            _update(rows, study, {"state": "open"})

    def _seat(self, study: Row, dataset: str, login: str, budget: Guarantee) -> None:
        with self._database.read() as rows:
            person = find_login(rows, login)
        assert person is not None
        trees, key = self._office.trees, f"seat {person['id']}"
        made = trees.pool if study["seats"] == "pooled" else trees.carve
        node = made(dataset, study["node"], name=login, budget=budget, key=key)
        seat = {
            "study": study["id"],
            "person": person["id"],
            "node": node.id,
            "created_at": self._office.clock(),
        }
        with self._database.write() as rows:
            insert(rows, "seats", seat, "ON CONFLICT DO NOTHING")

    def _note(self, data: Row, kind: str, study: str, person: Person, reason: str = "") -> None:
        """A step of a study in the hash chain of its data set, with the terms as they then are."""
        with self._database.read() as rows:
            row = study_row(rows, study)
        assert row is not None
        told = {"study": study, "by": person.login, "reason": reason[:MOST_NOTED], **_terms(row)}
        self._office.trees.note(data["id"], data["node"], kind, told)

    def _boxes(self, dataset: str, node: str) -> list[Words]:
        return [box_words(box) for box in self._office.trees.node(dataset, node).boxes()]

    def _mine(self, rows: Rows, person: Person) -> list[Row]:
        if person.role == "auditor":
            found = rows.run("SELECT id FROM studies ORDER BY created_at, id")
        elif person.role == "owner":
            found = rows.run(
                "SELECT studies.id AS id FROM studies JOIN datasets"
                " ON datasets.id = studies.dataset WHERE datasets.owner = ?"
                " ORDER BY studies.created_at, studies.id",
                person.id,
            )
        else:
            found = rows.run(
                "SELECT id FROM studies WHERE asked_by = ? OR id IN"
                " (SELECT study FROM seats WHERE person = ?) ORDER BY created_at, id",
                *(person.id, person.id),
            )
        known = [study_row(rows, one["id"]) for one in found]
        return [row for row in known if row is not None]

    def _told(self, rows: Rows, row: Row) -> Words:
        data = rows.one("SELECT name FROM datasets WHERE id = ?", row["dataset"])
        assert data is not None
        words = ("id", "name", "dataset", "budget", "members", "seats", "state", "reason")
        times = ("expires_at", "created_at", "decided_at", "ask_above")
        told = {word: row[word] for word in (*words, *times)}
        return told | {"dataset_name": data["name"], "terms": _terms(row)["terms"]}

    def _checked(self, told: Row) -> Row:
        require_name(told["name"], "name")
        require_text(told["purpose"], "purpose")
        spend = guarantee_from(told["budget"], "budget")
        members, plan = told["members"], told["plan"]
        if not told["purpose"].strip():
            raise invalid("purpose", "it is empty", "an owner decides by it", "say what it is for")
        if not 1 <= len(members) <= MOST_MEMBERS or len(set(members)) != len(members):
            raise invalid("members", "none, too many, or one twice", "each has a seat", "name each")
        if told["seats"] not in SEATS:
            raise invalid(
                "seats",
                "neither carved nor pooled",
                "it decides what a seat promises",
                'use "carved", unless members share one budget',
            )
        if len(plan) > MOST_PLANNED:
            raise invalid("plan", f"above {MOST_PLANNED}", "an owner reads it", "shorten it")
        for line in plan:
            require_text(line, "plan")
        end = told["expires_at"]
        if end is not None and end <= self._office.clock():
            raise invalid("expires_at", "it is past", "nothing could be asked", "use a later time")
        return {**told, "budget": letters_of(spend)}

    def _stored(self, row: Row) -> Row:
        words = ("dataset", "name", "purpose", "seats", "expires_at")
        lists = {word: text_of(row[word]) for word in ("members", "budget", "plan")}
        return {word: row[word] for word in words} | lists

    def _require_members(self, rows: Rows, person: Person, members: Sequence[str]) -> None:
        """An analyst may name colleagues; a name that nobody has is refused when it is decided, so
        that asking tells nobody who is here.
        """
        if person.role == "analyst":
            return
        for login in members:
            row = find_login(rows, login)
            if row is None or row["role"] != "analyst" or not row["active"]:
                raise invalid(
                    "members",
                    "there is no analyst of one of these logins",
                    "each member has a seat of their own",
                    "ask the operator for an account, or leave the name out",
                )


def _terms(row: Row) -> Words:
    """What was asked for or agreed: the short parts as they are, all of it by its digest."""
    words = ("name", "purpose", "members", "budget", "seats", "plan", "ask_above", "expires_at")
    digest = hashlib.sha256(text_of({word: row[word] for word in words}).encode()).hexdigest()
    return {
        "budget": row["budget"],
        "seats": row["seats"],
        "members": len(row["members"]),
        "expires_at": row["expires_at"],
        "ask_above": row["ask_above"],
        "terms": digest,
    }


def _update(rows: Rows, study: str, changes: Row, *, of: Sequence[str] = ()) -> None:
    """Changes a study; where it must be `of` some states and is not, or not any more, nothing."""
    words, marks = (", ".join(f"{name} = ?" for name in changes), ", ".join("?" * len(of)))
    only = f" AND state IN ({marks})" if of else ""
    text = f"UPDATE studies SET {words} WHERE id = ?{only}"
    if not rows.changed(text, *changes.values(), study, *of):
        raise _decided()


def _decided() -> Exception:
    return conflict(
        "a decision",
        "it was made already, or cannot be made any more",
        "what was decided stands in the ledger",
        "look at the study",
    )
