"""The desk by HTTP, with its OpenAPI document at /v1/openapi.json."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

import discreet
from discreet.errors import DiscreetError
from discreet.server.api import accounts, asking, data
from discreet.server.api.door import Door, problem
from discreet.server.api.guard import Guard
from discreet.server.desk.desk import Desk
from discreet.server.pages import entrance
from discreet.server.pages.site import is_page, refusal_page
from discreet.server.refusals import broken, malformed, not_there

_SHOWN = 200


def make_app(desk: Desk) -> Any:
    """An ASGI application on a desk."""
    app = FastAPI(
        title="discreet: the curator",
        version=discreet.__version__,
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.door = Door(desk)
    for room in (accounts, data, asking):
        app.include_router(room.routes, prefix="/v1", responses=_RESPONSES)
    entrance.mount(app)
    app.get("/v1/health", tags=["service"])(_health)
    app.add_exception_handler(DiscreetError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _of_the_framework)
    _describe(app)
    return Guard(app)


def _health(request: Request) -> dict[str, Any]:
    """Whether the service can reach its database."""
    with request.app.state.door.desk.office.database.read() as rows:
        rows.one("SELECT 1 AS one")
    return {"ok": True, "version": discreet.__version__}


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DiscreetError)
    if is_page(request):
        return await run_in_threadpool(refusal_page, request, error)
    return problem(error)


async def _malformed(request: Request, error: Exception) -> Response:
    """A body or a parameter that is not what it must be: where, and why."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part)[:60] for part in first["loc"][:6])
    return await _refused(request, malformed(f"{place}: {first['msg']}"[:_SHOWN]))


async def _of_the_framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = broken()
    if error.status_code == 404:
        refusal = not_there()
    elif error.status_code == 405:
        refusal = malformed("there is no such method here", "use one that the document names")
        refusal.status = 405
    elif 400 <= error.status_code < 500:
        refusal = malformed("its body is no JSON")
    return await _refused(request, refusal)


def _describe(app: FastAPI) -> None:
    """Says in the document how one is recognised, and what refusals look like."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        document = made()
        parts = document.setdefault("components", {})
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        parts.setdefault("schemas", {})["Problem"] = _PROBLEM
        document["security"] = [{"token": []}]
        for path, methods in document["paths"].items():
            for method, told in methods.items():
                spends = path.endswith(("/releases", "/questions", "/reservations"))
                if spends and method == "post":
                    told.setdefault("parameters", []).append(_KEY)
        return document

    app.openapi = described  # type: ignore[method-assign]


_PROBLEM = {
    "type": "object",
    "required": ["title", "status", "code", "asked", "found", "why", "remedy"],
    "properties": {
        **{
            name: {"type": "string"}
            for name in ("type", "title", "code", "asked", "found", "why", "remedy")
        },
        "status": {"type": "integer"},
        "fits": {"type": "object", "description": "The largest spend that still fits."},
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": True,
    "description": "A name of one's own for this question: one key, one question, one debit. "
    "What is not printable ASCII, and %, is written in percent signs.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
}
_REFUSALS = {
    400: "No idempotency key.",
    401: "No valid token or login.",
    403: "Another role is needed.",
    404: "Not yours, or not there.",
    405: "No such method.",
    409: "No room, or not any more.",
    413: "Too long.",
    422: "Malformed, undeclared, or the key of another question.",
    423: "Frozen or closed.",
    429: "Too fast.",
    503: "Try again with the same key.",
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": text,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    for status, text in _REFUSALS.items()
}
