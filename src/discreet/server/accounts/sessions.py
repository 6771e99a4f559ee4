"""Logins of browsers, kept on this side: a cookie holds a secret, the database its digest.

A login has a secret of its own, made when somebody showed who they are; what the browser held
before is ended with it, so that nobody can be handed a login that another one knows. It ends after
a fixed time, when its person logs out or is locked out, and when their password changes.
"""

from __future__ import annotations

from discreet.server.accounts.marks import digest_of, new_token
from discreet.server.accounts.people import Person, person_of
from discreet.server.store.database import Rows

BROWSER_SECONDS = 12 * 3600.0


def begin(rows: Rows, person: str, now: float, *, before: str | None = None) -> str:
    """The secret of a new login; `before` is the one that the browser held, which ends."""
    secret = new_token()
    rows.changed("DELETE FROM browsers WHERE expires_at <= ?", now)
    if before is not None:
        end(rows, before)
    rows.changed(
        "INSERT INTO browsers (digest, person, created_at, expires_at) VALUES (?, ?, ?, ?)",
        *(digest_of(secret), person, now, now + BROWSER_SECONDS),
    )
    return secret


def rotate(rows: Rows, secret: str, now: float) -> str | None:
    """Another secret for the same login, which ends when it would have; None where it is dead."""
    fresh = new_token()
    changed = rows.changed(
        "UPDATE browsers SET digest = ? WHERE digest = ? AND expires_at > ?",
        *(digest_of(fresh), digest_of(secret), now),
    )
    return fresh if changed else None


def browser(rows: Rows, secret: str, now: float) -> Person | None:
    """Who is logged in with a cookie; None where nobody is."""
    row = rows.one(
        "SELECT people.* FROM browsers JOIN people ON people.id = browsers.person"
        " WHERE browsers.digest = ? AND browsers.expires_at > ? AND people.active = 1",
        *(digest_of(secret), now),
    )
    return None if row is None else person_of(row)


def end(rows: Rows, secret: str) -> None:
    """Logs a browser out."""
    rows.changed("DELETE FROM browsers WHERE digest = ?", digest_of(secret))


def end_others(rows: Rows, person: str, secret: str | None = None) -> int:
    """Logs a person out everywhere but here; how many logins ended."""
    kept = "" if secret is None else digest_of(secret)
    return rows.changed("DELETE FROM browsers WHERE person = ? AND digest <> ?", person, kept)
