"""Who calls: a bearer token, or the cookie of a login whose changes come from our own pages."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from discreet.errors import DiscreetError
from discreet.server.accounts.limits import Rates
from discreet.server.accounts.oidc import SECONDS
from discreet.server.accounts.people import Person
from discreet.server.accounts.sessions import BROWSER_SECONDS
from discreet.server.api.news import News
from discreet.server.desk.desk import Desk
from discreet.server.refusals import foreign_origin, not_known, not_there, words_of

Found = TypeVar("Found")
LONGEST_ID = 64
SAFE = ("GET", "HEAD", "OPTIONS")
_OURS = ("same-origin", "none")


class Door:
    """How people come in; one a process."""

    def __init__(self, desk: Desk) -> None:
        settings = desk.office.settings
        self.desk, self.news = desk, News(desk.office.workers)
        self.cookie = "__Host-discreet" if settings.secure_cookies else "discreet"
        self.waiting = f"{self.cookie}-oidc"  # of a browser that is at an OpenID provider
        self._secure = settings.secure_cookies
        self._rates = Rates(burst=settings.burst, per_second=settings.per_second)

    def person(self, request: Request) -> Person:
        """Who calls, within their rate; 401 where nobody is recognised."""
        given = request.headers.get("authorization")
        if given is not None:
            kind, _, token = given.partition(" ")
            if kind.lower() != "bearer":
                raise not_known()
            person = self.desk.accounts.recognised(token.strip(), by="token")
        else:
            secret = request.cookies.get(self.cookie)
            if not secret:
                raise not_known()
            if request.method not in SAFE:
                require_our_page(request)
            person = self.desk.accounts.recognised(secret, by="browser")
        self._rates.take(person.id)
        shown = request.headers.get("discreet-receipt")
        if shown is not None:
            self.desk.histories.shown(person, shown)
        return person

    def knock(self, request: Request) -> None:
        """Counts a call of somebody who is not known yet, by where it comes from."""
        self._rates.take(f"from {request.client.host if request.client else ''}")

    def let_in(self, response: Response, secret: str) -> None:
        """Hands a browser the secret of its login."""
        response.set_cookie(
            self.cookie,
            secret,
            max_age=int(BROWSER_SECONDS),
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def send_away(self, secret: str, place: str) -> Response:
        """Sends a browser to an OpenID provider, with a cookie to be known again by."""
        response = RedirectResponse(place, 303)
        response.set_cookie(
            self.waiting,
            secret,
            max_age=int(SECONDS),
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",  # it comes back by a link of another site
        )
        return response

    def welcome(self, secret: str) -> Response:
        """Lets in whoever came back."""
        response = RedirectResponse("/", 303)
        response.delete_cookie(self.waiting, path="/", secure=self._secure, httponly=True)
        self.let_in(response, secret)
        return response

    def let_out(self, request: Request, response: Response) -> None:
        """Ends the login of a browser."""
        secret = request.cookies.get(self.cookie)
        if secret:
            self.desk.accounts.logout(secret)
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True)


def require_our_page(request: Request, *, strict: bool = True) -> None:
    """Refuses a change that a page of another site sent; `strict`: one that says nothing, too."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site not in _OURS:
            raise foreign_origin()
        return
    origin = request.headers.get("origin")
    if origin is not None:
        if urllib.parse.urlsplit(origin).netloc != request.headers.get("host", ""):
            raise foreign_origin()
    elif strict:
        raise foreign_origin()


def door_of(request: Request) -> Door:
    found: Door = request.app.state.door
    return found


def for_person(request: Request, act: Callable[[Desk, Person], Found]) -> Found:
    """What the desk does for whoever calls."""
    door = door_of(request)
    return act(door.desk, door.person(request))


def an_id(text: str) -> str:
    """An id of an address; what cannot be one is not there."""
    if not (0 < len(text) <= LONGEST_ID and text.isascii() and text.isprintable()):
        raise not_there()
    return text


def key_of(request: Request) -> str | None:
    """The idempotency key of a call, as it was before it became a header."""
    given = request.headers.get("idempotency-key")
    return None if given is None else urllib.parse.unquote(given)


def problem(error: DiscreetError) -> JSONResponse:
    """A refusal by HTTP."""
    words: dict[str, Any] = words_of(error)
    headers = {}
    if words["status"] == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="discreet"'
    if words["status"] in (429, 503):
        headers["Retry-After"] = "1"
    return JSONResponse(
        words, words["status"], headers=headers, media_type="application/problem+json"
    )
