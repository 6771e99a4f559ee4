"""How a page is made: who looks, what is rendered, how refusals look, which files stand beside.

Templates escape everything that is put into them; no page has a script or a style of its own, so
that the policy of the service (`api/guard.py`) lets nothing run that is not in `static`.
"""

from __future__ import annotations

import functools
import hashlib
import urllib.parse
from importlib import resources
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from discreet.errors import DiscreetError
from discreet.server.accounts.people import Person
from discreet.server.api.door import door_of
from discreet.server.desk.desk import Desk
from discreet.server.pages import drawn
from discreet.server.refusals import not_there, status_of

Words = dict[str, Any]
API = "/v1/"
SHOWN_AGAIN = (401, 409, 422, 423)  # a form with what is wrong with it, or why it is too late
KINDS = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
# what a page says after something was done; the address names one of these, and no text
SAID = {
    "in": "You are signed in.",
    "out": "You are signed out.",
    "registered": "The data set is registered. Its budget is fixed from now on.",
    "population": "The population is there. Data sets can be registered in it.",
    "frozen": "Frozen: nothing more is debited or drawn until you thaw it.",
    "thawed": "Thawed: questions can be asked again.",
    "closed": "Closed. What was not spent went back to where it came from.",
    "version": "A new version is in place. It spends the same budget.",
    "requested": "Your request is with the owner of the data.",
    "amended": "The request was amended.",
    "approved": "Approved, and written to the ledger.",
    "declined": "Declined, and written to the ledger.",
    "seat": "There is a seat more.",
    "asked": "Asked and paid for.",
    "password": "The password is changed. Every other login and token has ended: sign in again.",
    "revoked": "The token is dead.",
    "elsewhere": "Logins in other browsers have ended.",
    "locked": "Locked out: logins and tokens ended.",
    "unlocked": "Let in again.",
}


def looks(request: Request) -> tuple[Desk, Person]:
    """The desk, and who looks at it; 401 where nobody is recognised."""
    door = door_of(request)
    person = door.person(request)
    request.state.person = person
    return door.desk, person


def page(request: Request, template: str, status: int = 200, /, **words: Any) -> HTMLResponse:
    """A page for whoever looks."""
    person = getattr(request.state, "person", None)
    said = SAID.get(request.query_params.get("said", ""))
    waiting = _waiting(door_of(request).desk, person)
    told = {
        "person": person,
        "said": said,
        "waiting": waiting,
        "problem": None,
        "here": "",
        **words,
    }
    text = templates().get_template(template).render(**told)
    if status in SHOWN_AGAIN and request.headers.get("sec-fetch-mode") == "navigate":
        status = 200  # a browser would tell its reader of a fault that the page explains
    return HTMLResponse(text, status, headers={"Referrer-Policy": "same-origin"})


def fragment(template: str, status: int = 200, /, **words: Any) -> HTMLResponse:
    """A part of a page, for a page's script."""
    return HTMLResponse(templates().get_template(template).render(**words), status)


def goes_on(path: str, said: str = "") -> Response:
    """To another page, once something was done."""
    mark = "&" if "?" in path else "?"
    return RedirectResponse(f"{path}{mark}said={said}" if said else path, 303)


def refusal_page(request: Request, error: DiscreetError) -> Response:
    """A refusal for people; who is not signed in is asked to."""
    status = status_of(error)
    if status == 401 and request.url.path != "/login":
        wanted = request.url.path if request.method in ("GET", "HEAD") else "/"
        to = "/login" if wanted == "/" else f"/login?to={urllib.parse.quote(wanted)}"
        return RedirectResponse(to, 303)
    answer = page(request, "refused.html", status, problem=error)
    if status in (429, 503):
        answer.headers["Retry-After"] = "1"
    return answer


def is_page(request: Request) -> bool:
    """Whether somebody reads what is answered, and no program."""
    return not request.url.path.startswith(API)


def within(path: str | None) -> str:
    """A path of this service, where one was named; else the first page."""
    text = path or "/"
    ours = text.startswith("/") and not text.startswith(("//", "/\\", API))
    return text if ours and text.isprintable() and len(text) <= 200 else "/"


@functools.cache
def static(name: str) -> tuple[bytes, str]:
    """A file beside the pages, and its kind."""
    kind = KINDS.get(name.rpartition(".")[2])
    if kind is None or "/" in name or name not in _files():
        raise not_there()
    return _files()[name], kind


@functools.cache
def templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("discreet.server.pages"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(drawn.FILTERS)
    made.globals.update(file=_address, problem=None, **drawn.FUNCTIONS)
    return made


@functools.cache
def _files() -> dict[str, bytes]:
    folder = resources.files("discreet.server.pages").joinpath("static")
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def _address(name: str) -> str:
    """The address of a file, which changes with what it holds."""
    return f"/static/{name}?{hashlib.sha256(_files()[name]).hexdigest()[:12]}"


def _waiting(desk: Desk, person: Person | None) -> int:
    """How many decisions an owner is waited for with."""
    if person is None or person.role != "owner":
        return 0
    try:
        return len(desk.studies.requests(person)) + len(desk.questions.waiting(person))
    except DiscreetError:  # a refusal is shown even where the database is away
        return 0
