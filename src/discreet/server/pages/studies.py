"""Studies: asked for, amended, approved, declined, closed; and questions that wait for an owner."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.server.api.door import an_id
from discreet.server.desk.desk import Desk
from discreet.server.pages import spoken
from discreet.server.pages.forms import KINDS, Form, Sent
from discreet.server.pages.site import Words, goes_on, looks, page
from discreet.server.refusals import not_there, status_of

routes = APIRouter()


@routes.get("/studies")
def studies(request: Request) -> Response:
    """One's own studies and requests, or those on one's own data."""
    desk, person = looks(request)
    found = desk.studies.listed(person)
    if person.role == "analyst":
        found = [desk.studies.one(person, one["id"]) for one in found]
    return page(request, "studies.html", here="studies", studies=found)


@routes.get("/studies/new")
def new_form(request: Request) -> Response:
    """A request for a study."""
    desk, _ = looks(request)
    return _new(request, desk, Form({"dataset": [request.query_params.get("dataset", "")]}))


@routes.post("/studies/new")
def ask_for(request: Request, form: Sent) -> Response:
    """Sends a request to the owner; an owner's own study is open at once."""
    desk, person = looks(request)
    try:
        made = desk.studies.ask(person, dataset=form.text("dataset"), **_words(form))
    except DiscreetError as error:
        if status_of(error) in (401, 403):
            raise
        return _new(request, desk, form, error)
    return goes_on(
        f"/studies/{made['id']}", "requested" if person.role == "analyst" else "approved"
    )


@routes.get("/studies/{study}")
def one_study(request: Request, study: str) -> Response:
    """A study: its purpose, its boxes, and one's own answers in it."""
    desk, _ = looks(request)
    return _one(request, desk, an_id(study))


@routes.post("/studies/{study}/amend")
def amend(request: Request, study: str, form: Sent) -> Response:
    """Other words for a request that is not decided yet."""
    desk, person = looks(request)

    def act() -> Any:
        words = _words(form)
        return desk.studies.amend(
            person, an_id(study), **(words | {"members": words["members"] or None})
        )

    return _done(request, desk, study, act, "amended")


@routes.post("/studies/{study}/decision")
def decide(request: Request, study: str, form: Sent) -> Response:
    """Approves or declines a request."""
    desk, person = looks(request)

    def act() -> Any:
        more: Words = {"terms": form.text("terms") or None}
        if form.text("decision") == "approve":
            more["expires_at"] = form.day("expires", "the last day")
            if form.has("budget_amount"):
                more["budget"] = form.letters("budget", "the budget")
            if form.has("above_amount"):
                more["ask_above"] = form.letters("above", "the price above which you are asked")
        return desk.studies.decide(
            person,
            an_id(study),
            decision=form.text("decision"),
            reason=form.text("reason"),
            **more,
        )

    said = "approved" if form.text("decision") == "approve" else "declined"
    return _done(request, desk, study, act, said)


@routes.post("/studies/{study}/seats")
def add_seat(request: Request, study: str, form: Sent) -> Response:
    """A seat for one more analyst."""
    desk, person = looks(request)

    def act() -> Any:
        return desk.studies.add_seat(
            person,
            an_id(study),
            login=form.text("login"),
            budget=form.letters("budget", "the budget of the seat"),
        )

    return _done(request, desk, study, act, "seat")


@routes.post("/studies/{study}/close")
def close(request: Request, study: str) -> Response:
    """No more questions; what was not spent goes back."""
    desk, person = looks(request)
    return _done(request, desk, study, lambda: desk.studies.close(person, an_id(study)), "closed")


@routes.get("/requests")
def requests(request: Request) -> Response:
    """What waits for one's decision: studies and questions."""
    desk, _ = looks(request)
    return _requests(request, desk)


@routes.post("/answers/{answer}/decision")
def decide_question(request: Request, answer: str, form: Sent) -> Response:
    """Lets a waiting question be debited, or declines it."""
    desk, person = looks(request)
    decision = form.text("decision")
    try:
        desk.questions.decide(person, an_id(answer), decision=decision, reason=form.text("reason"))
    except DiscreetError as error:
        if status_of(error) in (401, 403, 404):
            raise
        return _requests(request, desk, error)
    return goes_on("/requests", "approved" if decision == "approve" else "declined")


def _words(form: Form) -> Words:
    """A request as its form says it."""
    return {
        "name": form.text("name"),
        "purpose": form.text("purpose"),
        "budget": form.letters("budget", "the budget"),
        "members": form.words("members"),
        "seats": form.text("seats", "carved"),
        "plan": form.lines("plan"),
        "expires_at": form.day("expires", "the last day"),
    }


def _done(request: Request, desk: Desk, study: str, act: Any, said: str) -> Response:
    """Does something to a study, and shows it again."""
    try:
        act()
    except DiscreetError as error:
        if status_of(error) in (401, 403, 404):
            raise
        return _one(request, desk, study, error)
    return goes_on(f"/studies/{study}", said)


def _one(
    request: Request, desk: Desk, study: str, problem: DiscreetError | None = None
) -> Response:
    person = request.state.person
    told = desk.studies.one(person, study)
    answers: list[Words] = []
    if "seat" in told:
        answers = [
            {**line, "title": spoken.title(line["asked"])}
            for line in desk.questions.history(person, study)
        ]
    return page(
        request,
        "study.html",
        200 if problem is None else status_of(problem),
        here="studies",
        study=told,
        answers=answers,
        kinds=KINDS,
        problem=problem,
    )


def _new(
    request: Request, desk: Desk, form: Form, problem: DiscreetError | None = None
) -> Response:
    person = request.state.person
    if person.role not in ("analyst", "owner"):
        raise not_there()
    datasets = [one for one in desk.datasets.listed(person) if one["state"] == "open"]
    return page(
        request,
        "new_study.html",
        200 if problem is None else status_of(problem),
        here="studies",
        datasets=datasets,
        form=form,
        kinds=KINDS,
        problem=problem,
    )


def _requests(request: Request, desk: Desk, problem: DiscreetError | None = None) -> Response:
    person = request.state.person
    asked = [desk.studies.one(person, one["id"]) for one in desk.studies.requests(person)]
    waiting = [
        {
            **one,
            "title": spoken.title(one["words"] or {}),
            "study": desk.studies.one(person, one["study"]),
            "spend": (one["words"] or {}).get("spend"),
        }
        for one in desk.questions.waiting(person)
    ]
    return page(
        request,
        "requests.html",
        200 if problem is None else status_of(problem),
        here="requests",
        studies=asked,
        questions=waiting,
        kinds=KINDS,
        problem=problem,
    )
