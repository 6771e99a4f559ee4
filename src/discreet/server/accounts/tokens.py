"""Tokens of programs: opaque, scoped, expiring, revocable, stored as digests."""

from __future__ import annotations

from typing import Any

from discreet.server.accounts.marks import digest_of, new_id, new_token
from discreet.server.accounts.people import SCOPES, SCOPES_OF, Person, person_of
from discreet.server.refusals import invalid, not_there
from discreet.server.store.database import Row, Rows

DAY = 86_400.0
LONGEST_DAYS = 366
_LONGEST = 200


def issue(
    rows: Rows, person: Person, *, name: str, scopes: tuple[str, ...], days: float, now: float
) -> tuple[str, Row]:
    """A new token, which is shown this once, and what is kept of it."""
    for scope in scopes:
        if scope not in SCOPES_OF[person.role]:
            raise invalid(
                "scopes",
                f"people with the role {person.role} have no such scope",
                "a token can do less than its person, never more",
                f"use some of {', '.join(SCOPES_OF[person.role])}",
            )
    if not scopes:
        raise invalid("scopes", "there are none", "such a token could do nothing", "name one")
    if not 0 < days <= LONGEST_DAYS:
        raise invalid("days", "out of range", "tokens expire", f"use 1 to {LONGEST_DAYS} days")
    if not 1 <= len(name) <= _LONGEST or not name.isprintable():
        raise invalid("name", "it is empty, long or unprintable", "it is read later", "shorten it")
    token = new_token()
    row = {
        "id": new_id("to"),
        "person": person.id,
        "digest": digest_of(token),
        "name": name,
        "scopes": " ".join(one for one in SCOPES if one in scopes),
        "created_at": now,
        "expires_at": now + days * DAY,
    }
    marks = ", ".join("?" * len(row))
    rows.changed(f"INSERT INTO tokens ({', '.join(row)}) VALUES ({marks})", *row.values())
    return token, row


def bearer(rows: Rows, token: str, now: float) -> Person | None:
    """Who a token belongs to; None where it is none, or dead."""
    row = rows.one(
        "SELECT people.*, tokens.scopes AS scopes FROM tokens JOIN people"
        " ON people.id = tokens.person WHERE tokens.digest = ? AND tokens.revoked_at IS NULL"
        " AND tokens.expires_at > ? AND people.active = 1",
        *(digest_of(token), now),
    )
    return None if row is None else person_of(row, tuple(row["scopes"].split()), "token")


def tokens_of(rows: Rows, person: str, now: float) -> list[Row]:
    """The tokens of a person that are alive, without what would let anybody in."""
    return rows.run(
        "SELECT id, name, scopes, created_at, expires_at FROM tokens"
        " WHERE person = ? AND revoked_at IS NULL AND expires_at > ? ORDER BY created_at, id",
        *(person, now),
    )


def revoke(rows: Rows, person: str, token: str, now: float) -> None:
    """Ends a token of one's own, by its id."""
    changed = rows.changed(
        "UPDATE tokens SET revoked_at = ? WHERE id = ? AND person = ? AND revoked_at IS NULL",
        *(now, token, person),
    )
    if not changed:
        raise not_there()


def told(row: Row) -> dict[str, Any]:
    """What a person is told of a token."""
    return {
        "id": row["id"],
        "name": row["name"],
        "scopes": row["scopes"].split(),
        "created_at": row["created_at"],
        "expires_at": row["expires_at"],
    }
