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
FIRST_LOOK, LONGEST_LOOK = 0.002, 0.25  # seconds between looks where there are no ticks


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
def release(request: Request, study: str, body: ReleaseBody) -> JSONResponse:
    """One question, as the library writes it; debited before this returns."""
    return _stands(
        for_person(
            request,
            lambda desk, who: desk.questions.ask(
                who,
                an_id(study),
                question=body.question,
                key=key_of(request),
                reservation=body.reservation,
            ),
        )
    )


@routes.post("/studies/{study}/questions")
def question(request: Request, study: str, body: NamedBody) -> JSONResponse:
    """An estimator by name; debited, as far as its first step, before this returns."""
    words = body.model_dump(exclude_unset=True)
    return _stands(
        for_person(
            request,
            lambda desk, who: desk.named.ask(who, an_id(study), asked=words, key=key_of(request)),
        )
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
    door = door_of(request)
    person = await run_in_threadpool(door.person, request)
    until = time.monotonic() + min(max(wait, 0.0), LONGEST_WAIT)
    pause = FIRST_LOOK
    while True:
        told = await run_in_threadpool(_look(door.desk, person, an_id(answer)))
        left = until - time.monotonic()
        if told["status"] != "pending" or left <= 0:
            return _stands(told)
        due = told["ready_at"] - door.desk.office.clock()
        await asyncio.sleep(min(left, max(pause, due)))
        pause = min(2 * pause, LONGEST_LOOK)


def _look(desk: Desk, person: Person, answer: str) -> Callable[[], Words]:
    return lambda: desk.named.look(person, answer)
