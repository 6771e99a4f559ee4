"""Asking: the question, its preview, the one click that spends, and the answer."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.server.accounts.marks import new_id
from discreet.server.api.door import an_id, door_of
from discreet.server.desk.desk import Desk
from discreet.server.desk.words import largest_that_fits
from discreet.server.pages import builder, rehearsal, spoken
from discreet.server.pages.drawn import COORDINATES, delta_of
from discreet.server.pages.forms import KINDS, Form, Sent
from discreet.server.pages.site import Words, fragment, goes_on, looks, page
from discreet.server.refusals import conflict, invalid, malformed, status_of

routes = APIRouter()
FINAL = ("answered", "failed", "declined", "waiting")
PATIENCE, FIRST_LOOK, LONGEST_LOOK = 2.5, 0.01, 0.2  # seconds that a page waits for its answer
LOOK_AGAIN = 2  # seconds until a page that waits is loaded again
LONGEST = 20_000


@routes.get("/studies/{study}/ask")
def ask_form(request: Request, study: str) -> Response:
    """The question, left; what it would give, right."""
    desk, _ = looks(request)
    told = _study(request, desk, study)
    chosen = request.query_params.get("estimator", "mean")
    form = Form({"estimator": [builder.estimator_of(chosen).name]})
    return _builder(request, told, form)


@routes.post("/studies/{study}/preview")
def preview(request: Request, study: str, form: Sent) -> Response:
    """Price and widths of a question; or its answer on made-up rows. Nothing is read or spent."""
    desk, _ = looks(request)
    told = _study(request, desk, study)
    found: Words = {"preview": None, "rehearsed": None, "problem": None, "asked": None}
    status = 200
    try:
        asked = builder.words_of(form, told["data"]["schema"])
        found |= _looked_ahead(request, told, asked)
        if form.has("rehearse"):
            found["rehearsed"] = rehearsal.on_dummy_rows(
                desk, request.state.person, told["study"], asked
            )
    except DiscreetError as error:
        if status_of(error) in (401, 404):
            raise
        found["problem"], status = error, status_of(error)
    found["name"] = form.text("name")
    if request.headers.get("x-part") == "preview":
        return fragment("preview.html", **told, **found)
    return _builder(request, told, form, status, **found)


@routes.post("/studies/{study}/ask")
def ask(request: Request, study: str, form: Sent) -> Response:
    """Spends: the question that was previewed, under the key that the preview gave it."""
    desk, person = looks(request)
    told = _study(request, desk, study)
    asked, key = _asked(form.text("asked")), form.text("key")
    try:
        if not form.has("sure"):
            raise _not_sure()
        answer = desk.named.ask(person, study, asked=asked, key=key)
    except DiscreetError as error:
        if status_of(error) in (401, 404):
            raise
        found: Words = {"problem": error, "name": "", "preview": None, "rehearsed": None}
        again = Form({"estimator": [str(asked.get("estimator", ""))]})
        if again.text("estimator") not in builder.KNOWN:
            again = Form({"estimator": ["words"]})
        return _builder(request, told, again, status_of(error), **found, asked=None)
    return goes_on(f"/answers/{answer['answer']}")


@routes.get("/answers/{answer}")
def answered(request: Request, answer: str) -> Response:
    """An answer; as often as one likes, for nothing."""
    desk, person = looks(request)
    told = _settled(desk, person, an_id(answer))
    study = desk.studies.one(person, told["study"])
    history = desk.questions.history(person, told["study"], limit=1000)
    nothing: Words = {"asked": {}, "asked_at": None}
    line = next((one for one in history if one["answer"] == answer), nothing)
    asked: Words = line["asked"]
    summary, pictured = None, False
    if told["status"] == "answered":
        result = desk.named.result(person, answer)
        summary, pictured = result.summary(), hasattr(result, "plot")
    words: Words = {
        "study": study,
        "told": told,
        "asked": asked,
        "title": spoken.title(asked) if "estimator" in asked else told["key"],
        "asked_at": line["asked_at"],
        "summary": summary,
        "pictured": pictured,
        "code": _code(request, asked, study, told["key"]),
    }
    page_ = page(request, "answer.html", here="studies", **words)
    if told["status"] == "pending":
        page_.headers["Refresh"] = str(LOOK_AGAIN)
    return page_


def _study(request: Request, desk: Desk, study: str) -> Words:
    """A study with a seat of one's own, and what is declared of its data."""
    person = request.state.person
    told = desk.studies.one(person, an_id(study))
    if "seat" not in told:
        raise invalid(
            "a question",
            "the study is not open, or you have no seat in it",
            "a question is paid from a seat",
            "wait until the owner has approved it, or ask for a seat",
        )
    return {"study": told, "data": desk.datasets.one(person, told["dataset"])}


def _builder(
    request: Request, told: Words, form: Form, status: int = 200, **found: Any
) -> Response:
    """The page of a question."""
    schema = told["data"]["schema"]
    chosen = builder.estimator_of(form.text("estimator"))
    words: Words = {
        "preview": None,
        "rehearsed": None,
        "asked": None,
        "name": "",
        "form": form,
        "chosen": chosen,
        "groups": builder.grouped(),
        "columns_of": builder.columns_of,
        "levels_of": builder.levels_of,
        "most_boxes": builder.MOST_BOXES,
        "schema": schema,
        "kinds": KINDS,
        "usual": usual_spend(told["study"]["seat"]["boxes"]),
    }
    return page(request, "ask.html", status, here="studies", **told, **(words | found))


def usual_spend(boxes: list[Words]) -> Words:
    """A spend to begin with: about a tenth of what is left, in the words of the seat's box."""
    box = boxes[0]
    left = {name: float(held) for name, held in box["left"].items()}
    if left["rho"]:
        kind, whole = "rho", left["rho"]
    elif left["mu_squared"]:
        kind, whole = "mu", left["mu_squared"] ** 0.5
    else:
        kind, whole = "epsilon", left["epsilon"]
    tenth = float(f"{whole / 10:.1g}") if whole else 0.01
    return {"kind": kind, "amount": tenth, "most": whole, "delta": delta_of(box["budget"])}


def _looked_ahead(request: Request, told: Words, asked: Words) -> Words:
    """What a question would give and take."""
    desk, study = door_of(request).desk, told["study"]
    ahead = desk.named.preview(request.state.person, study["id"], asked=asked)
    boxes = [
        {"box": box, "price": price}
        for box, price in zip(ahead["boxes"], ahead["prices"], strict=True)
    ]
    if not _fits(boxes):
        node = desk.office.trees.node(told["data"]["id"], study["seat"]["node"])
        raise largest_that_fits(node, _no_room())
    key = f"{spoken.title(asked)[:100]} · {new_id('')[1:9]}"
    return {"preview": {**ahead, "paths": boxes}, "asked": json.dumps(asked), "key": key}


def _fits(paths: list[Words]) -> bool:
    """Whether every box of a path has room."""
    return all(
        Fraction(path["price"][name]) <= Fraction(path["box"]["left"][name])
        for path in paths
        for name in COORDINATES
    )


def _asked(text: str) -> Words:
    """The question that a preview was about."""
    try:
        told = json.loads(text[:LONGEST])
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("estimator"), str):
        raise malformed("it is no question", "preview it again")
    return told


def _settled(desk: Desk, person: Any, answer: str) -> Words:
    """How a question stands, after a short wait for those that are nearly there."""
    until, pause = time.monotonic() + PATIENCE, FIRST_LOOK
    while True:
        told: Words = desk.named.look(person, answer)
        left = until - time.monotonic()
        if told["status"] in FINAL or left <= 0:
            return told
        if told["ready_at"] - desk.office.clock() > left:  # it cannot be there in time
            return told
        time.sleep(min(left, pause))
        pause = min(2 * pause, LONGEST_LOOK)


def _code(request: Request, asked: Words, study: Words, key: str) -> dict[str, str]:
    """The same question for programs."""
    if "estimator" not in asked:
        return {}
    address = f"{request.url.scheme}://{request.url.netloc}"
    return {
        "Python": spoken.python(
            asked, address=address, dataset=study["dataset_name"], study=study["name"], key=key
        ),
        "curl": spoken.curl(asked, address=address, study=study["id"], key=key),
        "R": spoken.r(asked, address=address, study=study["id"], key=key),
    }


def _no_room() -> DiscreetError:
    return conflict(
        "a question",
        "a box that pays for it has no room for its price",
        "what is spent does not come back, and a budget is never enlarged",
        "spend less, read answers again for nothing, or ask the owner for another study",
    )


def _not_sure() -> DiscreetError:
    return invalid(
        "a question that spends",
        "you did not tick that you know that it cannot be undone",
        "what is spent is spent, whatever the answer is",
        "preview it again, and tick the box",
    )
