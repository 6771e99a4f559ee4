"""Routes of questions: previews, releases, estimators by name, reservations, answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from discreet.server.accounts.people import Person
from discreet.server.api.bodies import (
    AnswerDecisionBody,
    NamedBody,
    PreviewBody,
    ReleaseBody,
    ReservationBody,
)
from discreet.server.api.door import an_id, door_of, for_person, key_of
from discreet.server.api.downloads import csv_of, json_of, svg_of
from discreet.server.desk.desk import Desk
from discreet.server.desk.questions import FINAL
from discreet.server.refusals import not_there

routes = APIRouter(tags=["questions"])
Words = dict[str, Any]
LONGEST_WAIT = 30.0


def _stands(told: Words) -> JSONResponse:
    """How a question stands: 202 as long as there is more to come."""
    return JSONResponse(told, 200 if told["status"] in FINAL else 202)


@routes.get("/estimators")
def estimators(request: Request) -> Words:
    """What can be asked by name, with the words of each."""
    return {"estimators": for_person(request, lambda desk, who: desk.named.estimators(who))}


@routes.post("/studies/{study}/previews")
def preview(request: Request, study: str, body: PreviewBody) -> Words:
    """Prices and expected widths of a question; no data is read, nothing is spent."""
    words = body.model_dump(exclude_unset=True)
    assume, level = words.pop("assume", None), words.pop("level", None) or 0.95
    return for_person(
        request,
        lambda desk, who: desk.named.preview(
            who, an_id(study), asked=words, assume=assume, level=level
        ),
    )


@routes.post("/studies/{study}/releases")
async def release(request: Request, study: str, body: ReleaseBody, wait: float = 0) -> JSONResponse:
    """One question, as the library writes it; debited before this returns. `wait`: for so many
    seconds at most, until it is answered.
    """
    asked: dict[str, Any] = {"question": body.question, "reservation": body.reservation}
    return await _asked(
        request,
        wait,
        lambda desk, who: desk.questions.ask(who, an_id(study), key=key_of(request), **asked),
    )


@routes.post("/studies/{study}/questions")
async def question(request: Request, study: str, body: NamedBody, wait: float = 0) -> JSONResponse:
    """An estimator by name; debited, as far as its first step, before this returns. `wait`: for so
    many seconds at most, until it is answered.
    """
    words = body.model_dump(exclude_unset=True)
    return await _asked(
        request,
        wait,
        lambda desk, who: desk.named.ask(who, an_id(study), asked=words, key=key_of(request)),
    )


@routes.post("/studies/{study}/reservations", status_code=201)
def reserve(request: Request, study: str, body: ReservationBody) -> Words:
    """Budget set aside for a procedure of several steps."""
    return for_person(
        request,
        lambda desk, who: desk.questions.reserve(
            who, an_id(study), spend=body.spend, delta=body.delta, key=key_of(request)
        ),
    )


@routes.delete("/studies/{study}/reservations/{reservation}")
def close_reservation(request: Request, study: str, reservation: str) -> Words:
    """Hands back what a reservation did not use."""
    if len(reservation) > 1200 or not (reservation.isascii() and reservation.isprintable()):
        raise not_there()
    return for_person(
        request,
        lambda desk, who: desk.questions.close_reservation(who, an_id(study), reservation),
    )


@routes.get("/studies/{study}/answers")
def history(request: Request, study: str, limit: int = 200) -> Words:
    """One's own questions in a study, newest first."""
    return for_person(
        request,
        lambda desk, who: {"answers": desk.questions.history(who, an_id(study), limit=limit)},
    )


@routes.post("/answers/{answer}/decision")
def decide(request: Request, answer: str, body: AnswerDecisionBody) -> Words:
    """Lets a waiting question be debited, or declines it; for the owner."""
    return for_person(
        request, lambda desk, who: desk.questions.decide(who, an_id(answer), **body.model_dump())
    )


@routes.get("/answers/{answer}.json")
def as_json(request: Request, answer: str) -> Response:
    """The result, as `dp.from_json` reads it."""
    return for_person(request, lambda desk, who: json_of(desk, who, an_id(answer)))


@routes.get("/answers/{answer}.csv")
def as_csv(request: Request, answer: str) -> Response:
    """The table of the result."""
    return for_person(request, lambda desk, who: csv_of(desk, who, an_id(answer)))


@routes.get("/answers/{answer}.svg")
def as_svg(request: Request, answer: str) -> Response:
    """The picture of the result."""
    return for_person(request, lambda desk, who: svg_of(desk, who, an_id(answer)))


@routes.get("/answers/{answer}")
async def look(request: Request, answer: str, wait: float = 0) -> JSONResponse:
    """How a question of one's own stands; `wait`: for so many seconds, until there is more."""
    return await _asked(request, wait, lambda desk, who: desk.named.look(who, an_id(answer)))


async def _asked(
    request: Request, wait: float, act: Callable[[Desk, Person], Words]
) -> JSONResponse:
    """What comes of a question, waited for as long as `wait` says."""
    door, until = door_of(request), time.monotonic() + min(max(wait, 0.0), LONGEST_WAIT)

    def acted() -> tuple[Person, Words]:
        person = door.person(request)
        return person, act(door.desk, person)

    person, told = await run_in_threadpool(acted)
    tries = 0
    while told["status"] == "pending" and (left := until - time.monotonic()) > 0:
        due = told["ready_at"] - door.desk.office.clock()
        if due > 0:
            await asyncio.sleep(min(left, due))
        else:
            await door.news.ended(told["answer"], tries, left)
            tries += 1
        told = await run_in_threadpool(door.desk.named.look, person, told["answer"])
    return _stands(told)
