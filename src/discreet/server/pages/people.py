"""People, for operators: invited, locked out, let in again, given another password."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from discreet.errors import DiscreetError
from discreet.server.accounts.people import ROLES
from discreet.server.api.door import an_id
from discreet.server.desk.desk import Desk
from discreet.server.pages.forms import Form, Sent
from discreet.server.pages.site import Words, goes_on, looks, page
from discreet.server.refusals import status_of

routes = APIRouter()


@routes.get("/people")
def people(request: Request) -> Response:
    """Everybody."""
    desk, _ = looks(request)
    return _people(request, desk)


@routes.post("/people")
def add_person(request: Request, form: Sent) -> Response:
    """A new person; the password is told once."""
    desk, person = looks(request)
    try:
        made = desk.accounts.add_person(
            person, login=form.text("login"), name=form.text("name"), role=form.text("role")
        )
    except DiscreetError as error:
        if status_of(error) in (401, 403):
            raise
        return _people(request, desk, problem=error, form=form)
    return _people(request, desk, made=made)


@routes.post("/people/{whom}/lock")
def lock(request: Request, whom: str) -> Response:
    desk, person = looks(request)
    desk.accounts.set_active(person, an_id(whom), active=False)
    return goes_on("/people", "locked")


@routes.post("/people/{whom}/unlock")
def unlock(request: Request, whom: str) -> Response:
    desk, person = looks(request)
    desk.accounts.set_active(person, an_id(whom), active=True)
    return goes_on("/people", "unlocked")


@routes.post("/people/{whom}/password")
def reset_password(request: Request, whom: str) -> Response:
    """A new password, told once."""
    desk, person = looks(request)
    return _people(request, desk, made=desk.accounts.reset_password(person, an_id(whom)))


def _people(
    request: Request,
    desk: Desk,
    *,
    made: Words | None = None,
    problem: DiscreetError | None = None,
    form: Form | None = None,
) -> Response:
    return page(
        request,
        "people.html",
        200 if problem is None else status_of(problem),
        here="people",
        people=desk.accounts.people(request.state.person),
        roles=ROLES,
        made=made,
        form=form or Form({}),
        problem=problem,
    )
