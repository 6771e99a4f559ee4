"""Estimators by name, for those who have no Python at hand: a question in the words of a plan.

    {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}

What one release answers is asked as such. A procedure of several steps runs here, as it would in a
client: it reads public facts and its own releases alone, each of its steps is a question under a
key of its own, and after a crash it goes on where it stopped.
"""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from discreet.asking.preview import Assumptions, forecast_of
from discreet.asking.reading import from_json
from discreet.asking.records import RECORDS, resolve
from discreet.asking.release_plans import PlannedQuestion, plan_of
from discreet.errors import DiscreetError, ReleaseFailed, shown
from discreet.remote.session import RemoteSession
from discreet.server.accounts.marks import new_id
from discreet.server.accounts.people import Person
from discreet.server.desk.datasets import DataSets
from discreet.server.desk.ledgers import MOST_SHOWN, Ledgers
from discreet.server.desk.office import Office, own_seat, require_asking
from discreet.server.desk.questions import FINAL, Questions, checked_key
from discreet.server.desk.studies import Studies
from discreet.server.desk.words import Words, box_words, price_words
from discreet.server.records import insert, text_of
from discreet.server.refusals import invalid, other_question
from discreet.trusted.losses.pricing import price_of_spend
from discreet.trusted.release import Question
from discreet.trusted.tree.prices import price_in

AT_ONCE = 4  # procedures that one process runs
STEPS = "/steps"  # the keys of a procedure's own questions begin so
FIRST_LOOK, LONGEST_LOOK = 0.01, 0.5  # seconds between looks at a step
FIRST_STEP = 30.0  # seconds that a call waits for a procedure's first debit
_REFUSED = (
    "m_estimate",
    "residuals",
    "subsample",
    "subsample_test",
    "watch",
    "holdout",
    "tune",
    "friendly_clusters",
    "accuracy",
)


class Named:
    """Questions by the name of an estimator, and their previews."""

    def __init__(
        self,
        office: Office,
        datasets: DataSets,
        studies: Studies,
        questions: Questions,
        ledgers: Ledgers,
    ) -> None:
        self._office, self._database = office, office.database
        self._rooms = datasets, studies, questions, ledgers
        self._questions = questions
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="procedure")
        self._running: set[str] = set()
        self._guard = threading.Lock()

    def estimators(self, person: Person) -> list[Words]:
        """What can be asked by name, with the words of each."""
        person.require("owner", "analyst", "auditor")
        found = []
        for record in RECORDS:
            if record.name in _REFUSED:
                continue
            function = resolve(record.function)
            words = {
                name: None if one.default is one.empty else _plainly(one.default)
                for name, one in inspect.signature(function).parameters.items()
                if name not in ("session", "spend", "key") and one.kind is not one.VAR_KEYWORD
            }
            text = (inspect.getdoc(function) or "").split("\n\n")[0]
            found.append(
                {"estimator": record.name, "words": words, "about": " ".join(text.split())}
            )
        return found

    def preview(
        self,
        person: Person,
        study: str,
        *,
        asked: Words,
        assume: Mapping[str, float] | None = None,
        level: float = 0.95,
    ) -> Words:
        """Price, noise and expected width of a question, and how many fit; nothing is read."""
        person.require("analyst")
        planned = planned_of(asked)
        believed = _assumptions(assume or {})
        with self._database.read() as rows:
            seat, _, data = own_seat(rows, person, study)
            node = self._office.trees.node(data["id"], seat["node"])
            session = self._office.session(rows, data["id"], data["version"], node)
        forecast = planned.call(
            lambda opened, *places, **options: forecast_of(
                planned.record, opened, *places, assume=believed, at=level, **options
            ),
            session,
        )
        summary = forecast.summary()
        told: Words = {
            "title": summary.title,
            "header": list(summary.header),
            "rows": [[str(cell) for cell in row] for row in summary.rows],
            "notes": list(summary.notes),
            "how_many": getattr(forecast, "how_many", None),
            "forecasts": [_forecast(one) for one in getattr(forecast, "forecasts", ())],
        }
        boxes, question = node.boxes(), getattr(forecast, "question", None)
        if type(question) is Question:
            price = session.price(question)
            told["price"] = price_words(price)
            prices = [price, *(price_in(box.box, price, question.mechanism) for box in boxes[1:])]
        else:
            prices = [
                price_of_spend(planned.spend, box=box.box, delta=planned.delta) for box in boxes
            ]
        told |= {
            "boxes": [box_words(box) for box in boxes],
            "prices": [price_words(price) for price in prices],
        }
        return told

    def ask(
        self,
        person: Person,
        study: str,
        *,
        asked: Words,
        key: str | None,
        reservation: str | None = None,
    ) -> Words:
        """Asks an estimator; paid for, once it returns, as far as its first step."""
        person.require("analyst", scope="ask")
        name, planned = checked_key(key), planned_of(asked)
        record = planned.record
        with self._database.read() as rows:
            seat, row, data = own_seat(rows, person, study)
            public = self._office.session(
                rows,
                data["id"],
                data["version"],
                self._office.trees.node(data["id"], seat["node"]),
            ).public
            known = rows.one(
                "SELECT id, kind FROM questions WHERE node = ? AND key = ?", seat["node"], name
            )
        question = None
        if record.question:
            question = planned.call(resolve(record.question), public)
        if type(question) is Question:
            return self._questions.ask(
                person,
                study,
                question=question.to_dict(),
                key=name,
                reservation=reservation,
                words=asked,
            )
        if reservation is not None:
            raise invalid(
                "reservation",
                f"dp.{record.name} asks in several steps, and sets budget aside by itself",
                "what is set aside is for the steps of one procedure",
                "leave it out",
            )
        if known is None:
            require_asking(row, data, self._office.clock())
        return self._procedure(person, row, seat, name, planned, asked, data["version"])

    def look(self, person: Person, answer: str) -> Words:
        """How a question stands, whichever way it was asked; a procedure that stopped goes on."""
        told = self._questions.look(person, answer)
        if told["status"] == "pending":
            self._go_on(person, answer)
        return told

    def result(self, person: Person, answer: str) -> Any:
        """The result of an answered question, to be summed up, drawn or written."""
        told = self.look(person, answer)
        if told["status"] != "answered":
            return None
        return from_json(json.dumps(told.get("result") or told["release"]))

    # ── procedures ────────────────────────────────────────────────────────────────────────────────

    def _procedure(
        self,
        person: Person,
        study: Words,
        seat: Words,
        key: str,
        planned: PlannedQuestion,
        asked: Words,
        version: int,
    ) -> Words:
        now, body = self._office.clock(), text_of(asked)
        line = {
            "id": new_id("an"),
            "study": study["id"],
            "node": seat["node"],
            "person": person.id,
            "key": key,
            "kind": "named",
            "version": version,
            "body": body,
            "words": body,
            "reservation": None,
            "state": "asked",
            "reason": "",
            "asked_at": now,
            "ready_at": now,
        }
        with self._database.write() as rows:
            insert(rows, "questions", line, "ON CONFLICT (node, key) DO NOTHING")
            known = rows.one(
                "SELECT id, kind, body, state FROM questions WHERE node = ? AND key = ?",
                *(seat["node"], key),
            )
            assert known is not None
            if known["state"] in ("refused", "failed"):
                rows.changed(
                    "UPDATE questions SET state = 'asked', kind = 'named', body = ?, words = ?,"
                    " finished_at = NULL WHERE id = ?",
                    *(body, body, known["id"]),
                )
            elif (known["kind"], known["body"]) != ("named", body):
                raise other_question()
        answer = str(known["id"])
        if known["state"] != "answered":
            first = self._start(person, answer, study["id"], key, planned)
            if first is not None:
                first.wait(FIRST_STEP)
                if first.refused is not None:
                    raise first.refused
        return self._questions.look(person, answer)

    def _go_on(self, person: Person, answer: str) -> None:
        """Starts a procedure again that no thread of this process runs."""
        with self._database.read() as rows:
            row = rows.one("SELECT * FROM questions WHERE id = ? AND kind = 'named'", answer)
        if row is not None and row["state"] == "asked":
            planned = planned_of(json.loads(row["body"]))
            self._start(person, answer, row["study"], row["key"], planned)

    def _start(
        self, person: Person, answer: str, study: str, key: str, planned: PlannedQuestion
    ) -> _FirstStep | None:
        with self._guard:
            if answer in self._running:
                return None
            self._running.add(answer)
        first = _FirstStep()
        self._threads.submit(self._run, person, answer, study, key, planned, first)
        return first

    def _run(
        self,
        person: Person,
        answer: str,
        study: str,
        key: str,
        planned: PlannedQuestion,
        first: _FirstStep,
    ) -> None:
        """One procedure, from its first step to its result; what is refused leaves no debit."""
        state, result = "failed", None
        try:
            seat = DeskSeat(*self._rooms, person, study, first)
            function = resolve(planned.record.function)
            found = planned.call(function, RemoteSession(seat), key=f"{key}{STEPS}")
            state, result = "answered", found.to_json()
        except ReleaseFailed:
            pass
        except DiscreetError as error:
            if not first.is_set():
                state, first.refused = "refused", error
        except Exception:  # a thread has nobody to tell: the answer says that it failed
            pass
        try:
            with self._database.write() as rows:
                rows.changed(
                    "UPDATE questions SET state = ?, result = ?, finished_at = ? WHERE id = ?",
                    *(state, result, self._office.clock(), answer),
                )
        finally:
            with self._guard:
                self._running.discard(answer)
            first.set()


class _FirstStep(threading.Event):
    """Whether a procedure has paid for something, or was refused before it did."""

    refused: DiscreetError | None = None


class DeskSeat:
    """A seat for procedures that run here: the six calls of a remote one, without HTTP."""

    made_up = False

    def __init__(
        self,
        datasets: DataSets,
        studies: Studies,
        questions: Questions,
        ledgers: Ledgers,
        person: Person,
        study: str,
        first: threading.Event,
    ) -> None:
        self._questions, self._studies, self._ledgers = questions, studies, ledgers
        self._person, self._study, self._first = person, study, first
        self._facts = datasets.one(person, studies.one(person, study)["dataset"])

    def facts(self) -> Words:
        return self._facts

    def boxes(self) -> list[Words]:
        found: list[Words] = self._studies.one(self._person, self._study)["seat"]["boxes"]
        return found

    def entries(self) -> list[Words]:
        node, found = self.boxes()[0]["node"], list[Words]()
        while True:
            after = found[-1]["number"] if found else -1
            page = self._ledgers.entries(self._person, node, after=after, limit=MOST_SHOWN)
            if not page["entries"]:
                return found
            found += page["entries"]

    def release(self, question: Words, key: str, reservation: str | None) -> Words:
        told = self._questions.ask(
            self._person, self._study, question=question, key=key, reservation=reservation
        )
        self._first.set()
        pause = FIRST_LOOK
        while told["status"] not in FINAL:
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK)
            told = self._questions.look(self._person, told["answer"])
        if told["status"] != "answered":
            raise ReleaseFailed(key)
        found: Words = told["release"]
        return found

    def reserve(self, spend: Words, delta: str, key: str) -> Words:
        told = self._questions.reserve(self._person, self._study, spend=spend, delta=delta, key=key)
        self._first.set()
        return told

    def close(self, reservation: str) -> Words:
        return self._questions.close_reservation(self._person, self._study, reservation)


def planned_of(asked: Words) -> PlannedQuestion:
    """One question in the words of a plan."""
    if asked.get("estimator") in _REFUSED:
        raise invalid(
            "estimator",
            f"{shown(asked['estimator'])} cannot be asked by name",
            "it takes a function, a fit or a conversation, which no text says",
            "use another one, or dp.connect in Python",
        )
    if "share" in asked:
        raise invalid("share", "there is no budget here", "each has a spend", "say its spend")
    return plan_of({"questions": {"asked": asked}}).questions[0]


def _assumptions(assume: Mapping[str, float]) -> Assumptions:
    known = ("rows", "mean", "standard_deviation", "share")
    for name in assume:
        if name not in known:
            raise invalid(
                "assume",
                f"{shown(name)} is no assumption",
                "every word is known",
                f"use {', '.join(known)}",
            )
    return Assumptions(**assume)


def _forecast(one: Any) -> Words:
    names = ("quantity", "noise", "std_error", "width", "noise_share")
    return {name: getattr(one, name) for name in names if hasattr(one, name)}


def _plainly(default: Any) -> Any:
    return default if isinstance(default, (str, int, float, bool, type(None))) else str(default)
