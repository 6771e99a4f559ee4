"""The way of a web process to those that open data: one line of JSON over a Unix socket, and one
line back.

    {"do": "finish", "question": "an_…"}        a paid question: aggregated, drawn and stored
    {"do": "look", "declared": {…}}             columns, public count and pin of a source
    {"do": "list"}                              the files that could be registered
    {"do": "news"}                              from now on a line for each question that ends

No row travels, and nothing that depends on one but what the relation makes public.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from typing import Any, Protocol

from discreet import errors
from discreet.errors import DiscreetError
from discreet.server.refusals import no_worker

LONGEST_LINE = 1 << 22
PATIENCE = 120.0  # seconds, for a look at a large source


class Workers(Protocol):
    """Those who open data."""

    def finish(self, question: str, seat: str) -> None:
        """Take a paid question; returns at once."""

    def look(self, declared: dict[str, Any]) -> dict[str, Any]:
        """What is public of a source: `public_count` and its `pin`."""

    def listed(self) -> list[dict[str, Any]]:
        """The files that could be registered."""


class SocketWorkers:
    """Workers behind a Unix socket."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._told: socket.socket | None = None
        self._guard = threading.Lock()

    def finish(self, question: str, seat: str) -> None:
        """Tells the workers; where none hear it, their sweeper finds the question by itself."""
        with self._guard:
            for _ in range(2):  # the one that listened before may have ended
                try:
                    if self._told is None:
                        self._told = self._connected(2.0)
                    send(self._told, {"do": "finish", "question": question, "seat": seat})
                    return
                except OSError:
                    held, self._told = self._told, None
                    if held is None:
                        return
                    held.close()

    def look(self, declared: dict[str, Any]) -> dict[str, Any]:
        return self._answer({"do": "look", "declared": declared})

    def listed(self) -> list[dict[str, Any]]:
        return list(self._answer({"do": "list"})["sources"])

    def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            with self._connected(PATIENCE) as link:
                send(link, asked)
                told = receive(link)
        except (OSError, ValueError):
            raise no_worker() from None
        if told is None or "broken" in told:
            raise no_worker()
        if "refused" in told:
            raise refusal_of(told["refused"])
        return told

    def _connected(self, seconds: float) -> socket.socket:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(seconds)
        try:
            link.connect(self.path)
        except OSError:
            link.close()
            raise
        return link


def send(link: socket.socket, told: dict[str, Any]) -> None:
    """One line of JSON."""
    link.sendall(json.dumps(told).encode() + b"\n")


def receive(link: socket.socket) -> dict[str, Any] | None:
    """One line of JSON; None where the other side let go."""
    held = bytearray()
    while not held.endswith(b"\n"):
        piece = link.recv(1 << 16)
        if not piece or len(held) > LONGEST_LINE:
            return None
        held += piece
    told = json.loads(held)
    return told if isinstance(told, dict) else None


def refusal_words(error: DiscreetError) -> list[str]:
    """An error of ours, as it travels between processes."""
    return [type(error).__name__, error.asked, error.found, error.why, error.remedy]


def refusal_of(words: list[str]) -> DiscreetError:
    """The error that travelled."""
    kind: Any = getattr(errors, words[0], None)
    if not (isinstance(kind, type) and issubclass(kind, DiscreetError)):
        kind = errors.InvalidParameter
    return errors.raised_elsewhere(kind, words[1], words[2], words[3], words[4])
