"""What every call passes first: a limit of its length, plain text, headers, and one body for
whatever breaks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from discreet.server.refusals import broken, malformed, too_large, words_of

MOST_BYTES = 1 << 20
MOST_DEPTH = 100
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

# an escaped NUL, or half of a pair: no text that a database keeps
_ODD = re.compile(rb"\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})")
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
POLICY = (
    b"default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self';"
    b" connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class Guard:
    """An ASGI application behind these checks."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def guarded(message: Message) -> None:
            nonlocal began
            if message["type"] == "http.response.start":
                began = True
                held = {name.lower() for name, _ in message["headers"]}
                more = (*_HEADERS, (b"content-security-policy", POLICY))
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in more if pair[0] not in held),
                ]
            await send(message)

        try:
            body, refusal = await _body(scope, receive)
            if refusal is None:
                await self._app(scope, _again(body, receive), guarded)
                return
        except Exception:  # its text could say what nobody may see
            if began:
                raise
            refusal = words_of(broken())
        await _refuse(refusal, guarded)


async def _body(scope: Any, receive: Receive) -> tuple[bytes, dict[str, Any] | None]:
    """The body, and why it is refused where it is."""
    headers = dict(scope["headers"])
    if b"%00" in scope.get("raw_path", b"") or b"%00" in scope.get("query_string", b""):
        return b"", words_of(malformed("its address holds a character that no text has"))
    told = headers.get(b"content-length", b"0")
    if told.isdigit() and int(told[:20]) > MOST_BYTES:
        return b"", words_of(too_large(MOST_BYTES))
    held, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        held += message.get("body", b"")
        more = message.get("more_body", False)
        if len(held) > MOST_BYTES:
            return b"", words_of(too_large(MOST_BYTES))
    body = bytes(held)
    if headers.get(b"content-type", b"").startswith(b"application/json"):
        return body, _json_refusal(body)
    return body, None


def _json_refusal(body: bytes) -> dict[str, Any] | None:
    """Why a body of JSON is refused before anything reads it."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return words_of(malformed("its body is no UTF-8"))
    if "\0" in text or _depth(text) > MOST_DEPTH:
        return words_of(malformed("its body is nested too deeply, or holds what no text has"))
    if _ODD.search(body):
        try:
            told = json.dumps(json.loads(text), ensure_ascii=False)
            told.encode("utf-8")
        except (ValueError, RecursionError):
            return words_of(malformed("its body is no JSON that can be kept"))
        if "\\u0000" in told:
            return words_of(malformed("its body holds a character that no text has"))
    return None


def _depth(text: str) -> int:
    """How deeply brackets are nested, those in texts counted too."""
    depth = most = 0
    for mark in re.findall(r"[\[\]{}]", text):
        depth += 1 if mark in "[{" else -1
        most = max(most, depth)
    return most


def _again(body: bytes, receive: Receive) -> Receive:
    """The body that was read, handed over once."""
    handed = False

    async def again() -> Message:
        nonlocal handed
        if handed:
            return await receive()
        handed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(words: dict[str, Any], send: Send) -> None:
    body = json.dumps(words).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": words["status"], "headers": headers})
    await send({"type": "http.response.body", "body": body})
