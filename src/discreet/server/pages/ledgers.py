"""Chains of a ledger, and whether they verify.

An analyst reads the lines of their own seat, without times; owners and auditors read every node.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from discreet.server.api.door import an_id
from discreet.server.desk.desk import Desk
from discreet.server.pages.site import Words, looks, page

routes = APIRouter()
SHOWN = 100


@routes.get("/ledger/{node}")
def ledger(request: Request, node: str, after: int = -1) -> Response:
    """The lines of a chain."""
    desk, _ = looks(request)
    return _chain(request, desk, an_id(node), after)


@routes.post("/ledger/{node}/verify")
def verify(request: Request, node: str) -> Response:
    """Replays the chain: is it whole, and does it add up?"""
    desk, person = looks(request)
    verdict = desk.ledgers.verify(person, an_id(node))
    return _chain(request, desk, node, -1, verdict)


def _chain(
    request: Request, desk: Desk, node: str, after: int, verdict: Words | None = None
) -> Response:
    person = request.state.person
    told = desk.ledgers.entries(person, node, after=after, limit=SHOWN)
    last = told["entries"][-1]["number"] if len(told["entries"]) == SHOWN else None
    here = "studies" if person.role == "analyst" else "datasets"
    words: Words = {"ledger": told, "verdict": verdict, "last": last, "after": after}
    return page(request, "ledger.html", here=here, **words)
