"""All pages put in their places; signing in and out, one's account, the first page of each role."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request
from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.server.accounts.people import SCOPES_OF
from discreet.server.api.door import an_id, door_of, require_our_page
from discreet.server.pages import asking, data, ledgers, people, studies
from discreet.server.pages.forms import Sent
from discreet.server.pages.site import goes_on, looks, page, static, within
from discreet.server.refusals import status_of

routes = APIRouter()
FIRST = {"owner": "/datasets", "analyst": "/studies", "auditor": "/datasets", "operator": "/people"}
A_YEAR = "public, max-age=31536000, immutable"  # an address changes with its file


def mount(app: FastAPI) -> None:
    """Adds all pages to an application; the OpenAPI document does not name them."""
    for own in (routes, *(room.routes for room in (data, studies, asking, ledgers, people))):
        app.include_router(own, include_in_schema=False)


@routes.get("/static/{name}")
def file(name: str) -> Response:
    """The stylesheet and the script."""
    body, kind = static(name)
    return Response(body, media_type=kind, headers={"Cache-Control": A_YEAR})


@routes.get("/")
def first(request: Request) -> Response:
    """The first page of whoever is there."""
    _, person = looks(request)
    return goes_on(FIRST[person.role])


@routes.get("/login")
def login_form(request: Request) -> Response:
    words = {"to": within(request.query_params.get("to")), "login": ""}
    return page(request, "login.html", **words, provider=_has_provider(request))


@routes.post("/login")
def log_in(request: Request, form: Sent) -> Response:
    """Signs a browser in; what it held before ends."""
    require_our_page(request)
    door, to = door_of(request), within(form.text("to"))
    door.knock(request)
    before = request.cookies.get(door.cookie)
    try:
        secret, _ = door.desk.accounts.login(
            form.text("login"), form.held.get("password", [""])[0], before=before
        )
    except DiscreetError as error:
        words = {"to": to, "login": form.text("login"), "problem": error}
        words["provider"] = _has_provider(request)
        return page(request, "login.html", status_of(error), **words)
    answer = goes_on(to)
    door.let_in(answer, secret)
    return answer


@routes.post("/logout")
def log_out(request: Request) -> Response:
    """Signs a browser out."""
    require_our_page(request)
    answer = goes_on("/login", "out")
    door_of(request).let_out(request, answer)
    return answer


@routes.get("/account")
def account(request: Request) -> Response:
    """Who one is, one's tokens, one's password."""
    looks(request)
    return _account(request)


def _has_provider(request: Request) -> bool:
    """Whether one may sign in by way of an OpenID provider."""
    return door_of(request).desk.accounts.has_provider


def _account(
    request: Request, problem: DiscreetError | None = None, made: dict[str, object] | None = None
) -> Response:
    desk, person = door_of(request).desk, request.state.person
    return page(
        request,
        "account.html",
        200 if problem is None else status_of(problem),
        here="account",
        scopes=SCOPES_OF[person.role],
        tokens=desk.accounts.tokens(person),
        problem=problem,
        made=made,
    )


@routes.post("/account/tokens")
def new_token(request: Request, form: Sent) -> Response:
    """A token, shown this once."""
    desk, person = looks(request)
    try:
        days = form.number("days", "days")
        made = desk.accounts.new_token(
            person,
            name=form.text("name"),
            scopes=tuple(form.texts("scopes")),
            days=90 if days is None else days,
        )
    except DiscreetError as error:
        return _account(request, error)
    return _account(request, made=made)


@routes.post("/account/tokens/{token}/revoke")
def revoke_token(request: Request, token: str) -> Response:
    desk, person = looks(request)
    desk.accounts.revoke_token(person, an_id(token))
    return goes_on("/account", "revoked")


@routes.post("/account/elsewhere")
def log_out_elsewhere(request: Request) -> Response:
    """Ends one's logins in other browsers."""
    desk, person = looks(request)
    desk.accounts.logout_elsewhere(person, request.cookies.get(door_of(request).cookie))
    return goes_on("/account", "elsewhere")


@routes.post("/account/password")
def change_password(request: Request, form: Sent) -> Response:
    """Another password; every login and token ends, this one too."""
    door = door_of(request)
    desk, person = looks(request)
    door.knock(request)
    try:
        desk.accounts.change_password(
            person, form.held.get("old", [""])[0], form.held.get("new", [""])[0]
        )
    except DiscreetError as error:
        return _account(request, error)
    return goes_on("/login", "password")
