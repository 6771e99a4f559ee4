"""People: who they are, and what their role lets them do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from discreet.server.accounts.marks import new_id
from discreet.server.refusals import conflict, invalid, not_there, wrong_role, wrong_scope
from discreet.server.store.database import Row, Rows

ROLES = ("owner", "analyst", "auditor", "operator")
SCOPES = ("read", "ask", "decide", "manage")
# what people of a role may do, at most: a token narrows it
SCOPES_OF = {
    "owner": ("read", "decide"),
    "analyst": ("read", "ask"),
    "auditor": ("read",),
    "operator": ("read", "manage"),
}
_LOGIN = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who was recognised, with what this login or token may do."""

    id: str
    login: str
    name: str
    role: str
    scopes: tuple[str, ...]
    by: str = "browser"  # or "token"

    def require(self, *roles: str, scope: str = "read") -> None:
        """Refuses whoever has none of these roles, and a token without the scope."""
        if self.role not in roles:
            raise wrong_role(" or ".join(roles))
        if scope not in self.scopes:
            raise wrong_scope(scope)

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "login": self.login, "name": self.name, "role": self.role}


def person_of(row: Row, scopes: tuple[str, ...] | None = None, by: str = "browser") -> Person:
    """The person of a row; scopes that the role has not are left out."""
    allowed = SCOPES_OF[row["role"]]
    given = allowed if scopes is None else tuple(one for one in allowed if one in scopes)
    return Person(row["id"], row["login"], row["name"], row["role"], given, by)


def add_person(
    rows: Rows,
    *,
    login: str,
    name: str,
    role: str,
    stored: str,
    subject: str | None,
    now: float,
) -> Row:
    """A new person; `stored` is what is kept of the password, "" where there is none."""
    if not _LOGIN.fullmatch(login):
        raise invalid(
            "login",
            "it is not 1 to 64 of a-z, 0-9 and . _ @ -, beginning with a letter or a digit",
            "people are named by it in requests and members",
            "use for example the first part of an address, in small letters",
        )
    if role not in ROLES:
        raise invalid("role", "it is none", "it decides what one may do", f"use {', '.join(ROLES)}")
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise invalid("name", "it is empty, long or unprintable", "people read it", "shorten it")
    known = rows.one("SELECT id FROM people WHERE login = ?", login)
    if known is not None:
        raise conflict("a new person", "the login is taken", "it names one person", "use another")
    row = {
        "id": new_id("pe"),
        "login": login,
        "name": name,
        "role": role,
        "password": stored,
        "subject": subject,
        "active": 1,
        "created_at": now,
    }
    marks = ", ".join("?" * len(row))
    rows.changed(f"INSERT INTO people ({', '.join(row)}) VALUES ({marks})", *row.values())
    return row


def find_login(rows: Rows, login: str) -> Row | None:
    return rows.one("SELECT * FROM people WHERE login = ?", login)


def require_person(rows: Rows, person: str) -> Row:
    row = rows.one("SELECT * FROM people WHERE id = ?", person)
    if row is None:
        raise not_there()
    return row


def set_active(rows: Rows, person: str, active: bool, now: float) -> None:
    """Lets somebody in or locks them out; a lockout ends tokens and logins."""
    require_person(rows, person)
    rows.changed("UPDATE people SET active = ? WHERE id = ?", int(active), person)
    if not active:
        end_all(rows, person, now)


def set_password(rows: Rows, person: str, stored: str, now: float) -> None:
    """Another password, hashed; logins that the old one began end, tokens too."""
    require_person(rows, person)
    rows.changed("UPDATE people SET password = ? WHERE id = ?", stored, person)
    end_all(rows, person, now)


def end_all(rows: Rows, person: str, now: float) -> None:
    """No login and no token of a person is valid any more."""
    rows.changed("DELETE FROM browsers WHERE person = ?", person)
    rows.changed(
        "UPDATE tokens SET revoked_at = ? WHERE person = ? AND revoked_at IS NULL", now, person
    )
