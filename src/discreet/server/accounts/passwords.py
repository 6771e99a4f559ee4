"""Passwords, as argon2id keeps them; one that nobody has is checked as slowly as one that somebody
has, so that the time of a login does not tell which names exist.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from discreet.server.refusals import invalid

SHORTEST, LONGEST = 12, 200
NONE = ""  # of people who come by another door
_AT_ONCE = threading.BoundedSemaphore(2)  # each takes 64 MiB


def require_password(password: str) -> str:
    """A password that may be set."""
    if not SHORTEST <= len(password) <= LONGEST or not password.isprintable():
        raise invalid(
            "a password",
            f"it has not {SHORTEST} to {LONGEST} printable characters",
            "whoever guesses it spends somebody's budget",
            "use some words that do not belong together",
        )
    return password


def hashed(password: str) -> str:
    """What is stored of a password."""
    with _AT_ONCE:
        return str(_hasher().hash(require_password(password)))


def matches(stored: str | None, password: str) -> bool:
    """Whether a password is the stored one; None is nobody's."""
    from argon2.exceptions import Argon2Error, InvalidHashError

    known = stored or _nobody()
    with _AT_ONCE:
        try:
            _hasher().verify(known, password[: LONGEST + 1])
        except (Argon2Error, InvalidHashError):
            return False
    return bool(stored)


@functools.cache
def _hasher() -> Any:
    from argon2 import PasswordHasher

    return PasswordHasher()


@functools.cache
def _nobody() -> str:
    """The hash that is compared with where there is none."""
    return str(_hasher().hash("a password of nobody"))
