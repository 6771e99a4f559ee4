"""Questions: admitted, finished by those who open data, and read again for nothing.

The life of one: checked → written down → debited, in every box of its path → handed to a worker →
drawn and stored → its time has come → read. It is written down first, so that whatever crashes, the
sweeper finds what was paid for; what was refused leaves no debit and no answer.
"""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

from discreet.errors import BudgetExceeded, DiscreetError, NodeFrozen, ReleaseFailed
from discreet.exact import stored_fraction
from discreet.inference.results.stored import question_from_dict
from discreet.server.accounts.marks import new_id
from discreet.server.accounts.people import Person
from discreet.server.desk.histories import Histories
from discreet.server.desk.office import Office, own_dataset, own_seat, require_asking
from discreet.server.desk.times import public_cost, ready_at, slot_after
from discreet.server.desk.words import (
    Words,
    amounts_words,
    guarantee_from,
    largest_that_fits,
    require_text,
)
from discreet.server.records import (
    asking_row,
    inserting,
    question_row,
    study_row,
    text_of,
    version_row,
)
from discreet.server.refusals import (
    bad_key,
    conflict,
    frozen,
    invalid,
    no_key,
    not_there,
    other_question,
)
from discreet.server.store.database import Row, Rows
from discreet.trusted.ledger.requests import Reservation
from discreet.trusted.ledger.units import charge
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import Question

LONGEST_KEY = 200
FINAL = ("answered", "failed", "declined")  # what an answer says last


class Questions:
    """What analysts ask under keys of their own."""

    def __init__(self, office: Office, histories: Histories) -> None:
        self._office, self._database, self._histories = office, office.database, histories

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def ask(
        self,
        person: Person,
        study: str,
        *,
        question: Words,
        key: str | None,
        reservation: str | None = None,
        words: Words | None = None,
    ) -> Words:
        """Hands in one question: debited once it returns, unless it waits for the owner. Asking
        again under the key tells how it stands; a failed one is tried again, for nothing.
        """
        person.require("analyst", scope="ask")
        name = checked_key(key)
        asked = question_from_dict(question)
        body = text_of(asked.to_dict())
        with self._database.read() as rows:
            row = asking_row(rows, study, person.id, name)
            if row is None:
                raise not_there()
            version = row["version"]
            node = self._office.trees.node(row["dataset"], row["node"])
            session = self._office.session(rows, row["dataset"], version, node)
        if reservation is not None:
            reservation = _require_reservation(node, reservation)
        if row["known"] not in (None, "refused"):
            if (row["kind"], row["body"], row["reservation"]) != ("release", body, reservation):
                raise other_question()
            if row["known"] in ("waiting", "declined", "answered"):
                return self.look(person, row["id"])
        now = self._office.clock()
        self._require_asking(row, node, name, now)
        asked = session._checked(asked)  # refused here, it leaves no trace
        waits = reservation is None and self._waits(row, session, asked)
        line = {
            "id": new_id("an"),
            "study": study,
            "node": row["node"],
            "person": person.id,
            "key": name,
            "kind": "release",
            "version": version,
            "body": body,
            "words": None if words is None else text_of(words),
            "reservation": reservation,
            "state": "waiting" if waits else "asked",
            "reason": "",
            "asked_at": now,
            "ready_at": self._ready(now, asked, row["rows_at_most"]),
        }
        answer = self._written(line)
        if not waits:
            self._pay(answer, session, asked, line)
        return self.look(person, answer)

    def look(self, person: Person, answer: str) -> Words:
        """How a question of one's own stands, and its release once its time has come."""
        person.require("analyst")
        with self._database.read() as rows:
            row = self._own(rows, person, answer)
            state = row["state"]
            told = {"answer": row["id"], "key": row["key"], "study": row["study"]}
            if state in ("waiting", "declined"):
                return told | {"status": state, "reason": row["reason"]}
            due, now = self._due(row), self._office.clock()
            told |= {"ready_at": due}
            if state not in ("answered", "failed") or now < due:
                return told | {"status": "pending"}
            if state == "failed":
                return told | {"status": "failed"}
            if row["kind"] == "named":
                return told | {"status": "answered", "result": json.loads(row["result"])}
            node = self._office.trees.node(row["dataset"], row["node"])
            session = self._office.session(rows, row["dataset"], row["version"], node)
        return self._released(told, row, node, session)

    def history(self, person: Person, study: str, *, limit: int = 200) -> list[Words]:
        """One's own questions in a study, newest first, as `look` tells them but for releases."""
        person.require("analyst")
        with self._database.read() as rows:
            seat, _, _ = own_seat(rows, person, study)
            found = rows.run(
                "SELECT id, key, kind, body, words, state, reason, asked_at, ready_at, finished_at"
                " FROM questions WHERE node = ? AND person = ? AND state <> 'refused'"
                " ORDER BY asked_at DESC, id LIMIT ?",
                *(seat["node"], person.id, max(1, min(limit, 1000))),
            )
        return [self._line(row) for row in found]

    # ── several steps ─────────────────────────────────────────────────────────────────────────────

    def reserve(
        self, person: Person, study: str, *, spend: Words, delta: str = "0", key: str | None
    ) -> Words:
        """Budget set aside for a procedure of several steps; the same key gives the same again."""
        person.require("analyst", scope="ask")
        name, asked, beside = checked_key(key), guarantee_from(spend, "spend"), _delta(delta)
        with self._database.read() as rows:
            seat, row, data = own_seat(rows, person, study)
            node = self._office.trees.node(data["id"], seat["node"])
            session = self._office.session(rows, data["id"], data["version"], node)
        require_asking(row, data, self._office.clock())
        if self._above(row, session, price_of_spend(asked, box=node.box, delta=beside)):
            raise conflict(
                "budget for several steps",
                "the spend is above what the study allows without asking",
                "an owner decides on one question at a time",
                "use a smaller spend, or agree with the owner on another study",
            )
        try:
            held = session.reserve(asked, delta=beside, key=name)
        except BudgetExceeded as error:
            raise largest_that_fits(node, error) from None
        return {"reservation": told_name(held.id)}

    def close_reservation(self, person: Person, study: str, reservation: str) -> Words:
        """Hands back what a reservation did not use."""
        person.require("analyst", scope="ask")
        with self._database.read() as rows:
            seat, _, data = own_seat(rows, person, study)
        node = self._office.trees.node(data["id"], seat["node"])
        held = _require_reservation(node, reservation)
        return {"returned": amounts_words(node.close_reservation(held))}

    # ── what owners decide ────────────────────────────────────────────────────────────────────────

    def waiting(self, person: Person) -> list[Words]:
        """The questions on one's own data that wait for a decision, oldest first."""
        person.require("owner")
        with self._database.read() as rows:
            found = rows.run(
                "SELECT questions.id AS id, questions.study AS study, questions.body AS body,"
                " questions.words AS words, questions.asked_at AS asked_at, people.login AS login"
                " FROM questions JOIN studies ON studies.id = questions.study JOIN datasets"
                " ON datasets.id = studies.dataset JOIN people ON people.id = questions.person"
                " WHERE datasets.owner = ? AND questions.state = 'waiting'"
                " ORDER BY questions.asked_at, questions.id",
                person.id,
            )
        return [
            {
                "answer": row["id"],
                "study": row["study"],
                "login": row["login"],
                "asked_at": row["asked_at"],
                "question": json.loads(row["body"]),
                "words": None if row["words"] is None else json.loads(row["words"]),
            }
            for row in found
        ]

    def decide(self, person: Person, answer: str, *, decision: str, reason: str = "") -> Words:
        """Lets a waiting question be debited and answered, or declines it."""
        person.require("owner", scope="decide")
        if decision not in ("approve", "decline"):
            raise invalid("decision", "it is none", "one is made", "use approve or decline")
        require_text(reason, "reason")
        with self._database.read() as rows:
            row = question_row(rows, answer)
            if row is None:
                raise not_there()
            data = own_dataset(rows, person, row["dataset"])
            study = study_row(rows, row["study"])
            assert study is not None
            node = self._office.trees.node(data["id"], row["node"])
            session = self._office.session(rows, data["id"], row["version"], node)
            most = version_row(rows, data["id"], row["version"])["rows_at_most"]
        asked, now = question_from_dict(row["question"]), self._office.clock()
        if decision == "approve":
            require_asking(study, data, now)
        kind = "question approved" if decision == "approve" else "question declined"
        ready = self._ready(now, asked, most)
        with self._database.alone() as rows:  # of two decisions at once the first is the one
            told = question_row(rows, answer)
            if told is None or told["state"] != "waiting":
                raise conflict("a decision", "it was made already", "it is made once", "look at it")
            self._office.trees.note(
                data["id"],
                node.id,
                kind,
                {"key": row["key"], "by": person.login, "reason": reason[:400]},
            )
            rows.changed(
                "UPDATE questions SET state = ?, reason = ?, asked_at = ?, ready_at = ?"
                " WHERE id = ? AND state = 'waiting'",
                *("asked" if decision == "approve" else "declined", reason, now, ready, answer),
            )
        if decision == "approve":
            self._pay(answer, session, asked, row)
        return {"answer": answer, "decision": decision}

    # ── how ───────────────────────────────────────────────────────────────────────────────────────

    def _written(self, line: Row) -> str:
        """The id of a question that is written down: a new one, or the same one again.

        It is durable before its debit is: by itself, or where both are in one log, with the debit.
        """
        new = inserting("questions", line, "ON CONFLICT (node, key) DO NOTHING")
        follows = self._database.one_log and line["state"] == "asked"  # by its debit
        if follows and self._database.soon_one(*new):
            return str(line["id"])
        with self._database.write() as rows:
            rows.changed(*new)
            known = rows.one(
                "SELECT * FROM questions WHERE node = ? AND key = ?", line["node"], line["key"]
            )
            assert known is not None
            if known["state"] == "refused" or (
                known["state"] == "failed" and known["body"] == line["body"]
            ):
                again = [
                    "body",
                    "words",
                    "reservation",
                    "state",
                    "asked_at",
                    "ready_at",
                    "version",
                    "kind",
                    "person",
                ]
                words = ", ".join(f"{name} = ?" for name in again)
                rows.changed(
                    f"UPDATE questions SET {words}, finished_at = NULL, result = NULL WHERE id = ?",
                    *(*(line[name] for name in again), known["id"]),
                )
            elif (known["kind"], known["body"], known["reservation"]) != (
                line["kind"],
                line["body"],
                line["reservation"],
            ):
                raise other_question()
        return str(known["id"])

    def _require_asking(self, row: Row, node: Any, key: str, now: float) -> None:
        """Refuses a new question where none may be asked; one that was paid goes on."""
        study = {"state": row["study_state"], "expires_at": row["expires_at"]}
        try:
            require_asking(study, row, now)
        except DiscreetError:
            try:
                paid = node.holds(key)
            except NodeFrozen:  # the ledger does not know what it knew
                self._histories.suspect(row["dataset"])
                raise frozen() from None
            if not paid:
                raise

    def _ready(self, now: float, asked: Question, most: int) -> float:
        return ready_at(now, public_cost(asked, most), self._office.settings.tick)

    def _pay(self, answer: str, session: Any, asked: Question, row: Row) -> None:
        """Debits a question that is written down, and hands it to a worker."""
        held = None
        if row["reservation"] is not None:
            held = Reservation(session.ledger, row["reservation"])
        try:
            session.admit(asked, key=row["key"], reservation=held)
        except NodeFrozen:
            self._stopped(answer, session, row)
            raise frozen() from None
        except BudgetExceeded as error:
            self._refused(answer, session, row["key"])
            raise largest_that_fits(session.ledger, error) from None
        except DiscreetError:
            self._refused(answer, session, row["key"])
            raise
        self._office.workers.finish(answer, row["node"])

    def _stopped(self, answer: str, session: Any, row: Row) -> None:
        """A question that a frozen ledger refused: by its owner, or because it is an older copy."""
        with self._database.read() as rows:
            told = question_row(rows, answer)
        if told is not None:
            self._histories.suspect(told["dataset"])
        with contextlib.suppress(NodeFrozen):
            self._refused(answer, session, row["key"])

    def _refused(self, answer: str, session: Any, key: str) -> None:
        """A question that nothing was debited for: its key is free again."""
        if session.ledger.holds(key):
            return
        with self._database.write() as rows:
            rows.changed(
                "UPDATE questions SET state = 'refused' WHERE id = ? AND state = 'asked'", answer
            )

    def _released(self, told: Words, row: Row, node: Any, session: Any) -> Words:
        held = None if row["reservation"] is None else Reservation(node, row["reservation"])
        try:
            release = session.release(
                question_from_dict(row["question"]), key=row["key"], reservation=held
            )
        except ReleaseFailed:
            return told | {"status": "failed"}
        except NodeFrozen:
            self._histories.suspect(row["dataset"])
            raise frozen() from None
        words = None if row["words"] is None else json.loads(row["words"])
        return told | {
            "status": "answered",
            "release": json.loads(release.to_json()),
            "receipt": self._receipt(node, release),
            **({} if words is None else {"words": words}),
        }

    def _receipt(self, node: Any, release: Any) -> Words | None:
        """The signed place of a question's debit in its chain."""
        seal = self._office.seal
        if seal is None:
            return None
        return seal.receipt(node.chain, release.entry, release.entry_hash)

    def _due(self, row: Row) -> float:
        """When an answer may leave: its time, or where it is late the slot after it was there."""
        tick, ready = self._office.settings.tick, row["ready_at"]
        moment = row["finished_at"]
        if moment is None:
            moment = self._office.clock() if tick > 0 else ready
        return slot_after(row["asked_at"], ready, moment, tick)

    def _own(self, rows: Rows, person: Person, answer: str) -> Row:
        row = question_row(rows, answer)
        if row is None or row["person"] != person.id or row["state"] == "refused":
            raise not_there()
        return row

    def _line(self, row: Row) -> Words:
        due, now = self._due(row) if row["ready_at"] else None, self._office.clock()
        state = row["state"]
        if state in ("asked", "answered", "failed"):
            there = state != "asked" and due is not None and now >= due
            state = state if there else "pending"
        asked = json.loads(row["words"] or row["body"])
        told = {"answer": row["id"], "key": row["key"], "status": state, "reason": row["reason"]}
        return told | {"asked_at": row["asked_at"], "ready_at": due, "asked": asked}

    def _waits(self, study: Row, session: Any, asked: Question) -> bool:
        return self._above(study, session, session.price(asked))

    def _above(self, study: Row, session: Any, price: Any) -> bool:
        """Whether a price is above what the study allows without its owner."""
        above = study["ask_above"]
        if above is None:
            return False
        letters = json.loads(above) if isinstance(above, str) else above
        most = price_of_spend(guarantee_from(letters, "ask_above"), box=session.ledger.box)
        return not charge(price).fits(charge(most))


def checked_key(key: str | None) -> str:
    """The idempotency key of a call that spends."""
    if key is None or key == "":
        raise no_key()
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise bad_key()
    return key


def _delta(text: str) -> Any:
    try:
        if len(text) <= 80:
            return stored_fraction(text)
    except (ValueError, ArithmeticError, TypeError):
        pass
    raise invalid("delta", "it is no exact number", "δ₀ is spent exactly", 'use for example "0"')


def told_name(reservation: str) -> str:
    """A reservation as it is told: letters that an address can hold."""
    return "re_" + base64.urlsafe_b64encode(reservation.encode()).decode("ascii").rstrip("=")


def _require_reservation(node: Any, told: str) -> str:
    """The name of a reservation of this seat; what is none of it is not there."""
    try:
        text = told.removeprefix("re_")
        name = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        if told_name(name) == told:
            node.left_in(name)
            return name
    except (DiscreetError, ValueError):
        pass
    raise not_there()
