"""Routes of accounts: logins, tokens, people."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from discreet.server.api.bodies import LoginBody, PasswordBody, PersonBody, TokenBody
from discreet.server.api.door import an_id, door_of, for_person, require_our_page
from discreet.server.refusals import bad_login

routes = APIRouter(tags=["accounts"])
Words = dict[str, Any]


@routes.get("/me")
def me(request: Request) -> Words:
    """Who one is, and what this token or login may do."""
    return for_person(request, lambda desk, who: desk.accounts.me(who))


@routes.post("/session")
def log_in(request: Request, response: Response, body: LoginBody) -> Words:
    """Logs a browser in."""
    require_our_page(request, strict=False)
    door = door_of(request)
    door.knock(request)
    before = request.cookies.get(door.cookie)
    secret, person = door.desk.accounts.login(body.login, body.password, before=before)
    door.let_in(response, secret)
    return {"person": person.to_dict()}


@routes.delete("/session", status_code=204)
def log_out(request: Request, response: Response) -> None:
    """Logs a browser out."""
    require_our_page(request)
    door_of(request).let_out(request, response)


@routes.get("/oidc/begin", status_code=303, response_class=Response)
def to_provider(request: Request) -> Response:
    """Sends a browser to the OpenID provider."""
    door = door_of(request)
    door.knock(request)
    secret, place = door.desk.accounts.to_provider()
    return door.send_away(secret, place)


@routes.get("/oidc/back", status_code=303, response_class=Response)
def from_provider(request: Request, code: str = "", state: str = "") -> Response:
    """Lets in whoever comes back from the OpenID provider."""
    door = door_of(request)
    door.knock(request)
    held = request.cookies.get(door.waiting)
    if not held or not code or not state or len(code) > 4000 or len(state) > 200:
        raise bad_login()
    before = request.cookies.get(door.cookie)
    secret, _ = door.desk.accounts.from_provider(held, code=code, state=state, before=before)
    return door.welcome(secret)


@routes.post("/me/password", status_code=204)
def change_password(request: Request, body: PasswordBody) -> None:
    """Another password; every login and token ends."""
    door_of(request).knock(request)
    for_person(request, lambda desk, who: desk.accounts.change_password(who, body.old, body.new))


@routes.get("/tokens")
def tokens(request: Request) -> Words:
    """One's tokens that are alive."""
    return {"tokens": for_person(request, lambda desk, who: desk.accounts.tokens(who))}


@routes.post("/tokens", status_code=201)
def new_token(request: Request, body: TokenBody) -> Words:
    """A token, shown this once."""
    scopes = None if body.scopes is None else tuple(body.scopes)
    return for_person(
        request,
        lambda desk, who: desk.accounts.new_token(
            who, name=body.name, scopes=scopes, days=body.days
        ),
    )


@routes.delete("/tokens/{token}", status_code=204)
def revoke_token(request: Request, token: str) -> None:
    """Ends a token of one's own."""
    for_person(request, lambda desk, who: desk.accounts.revoke_token(who, an_id(token)))


@routes.get("/people")
def people(request: Request) -> Words:
    """Everybody, for operators."""
    return {"people": for_person(request, lambda desk, who: desk.accounts.people(who))}


@routes.post("/people", status_code=201)
def add_person(request: Request, body: PersonBody) -> Words:
    """A new person, for operators; a password that is made here is told once."""
    return for_person(request, lambda desk, who: desk.accounts.add_person(who, **body.model_dump()))


@routes.post("/people/{person}/lock")
def lock(request: Request, person: str) -> Words:
    """Locks somebody out at once."""
    return for_person(
        request, lambda desk, who: desk.accounts.set_active(who, an_id(person), active=False)
    )


@routes.post("/people/{person}/unlock")
def unlock(request: Request, person: str) -> Words:
    """Lets somebody in again."""
    return for_person(
        request, lambda desk, who: desk.accounts.set_active(who, an_id(person), active=True)
    )


@routes.post("/people/{person}/password")
def reset_password(request: Request, person: str) -> Words:
    """A new password for somebody, told once."""
    return for_person(request, lambda desk, who: desk.accounts.reset_password(who, an_id(person)))
