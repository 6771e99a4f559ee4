"""Accounts: logins, tokens, and what operators do for people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.server.accounts import limits, oidc, passwords, people, sessions, tokens
from discreet.server.accounts.marks import TOKEN, new_password
from discreet.server.accounts.people import Person
from discreet.server.desk.office import Office
from discreet.server.refusals import bad_login, not_known, not_there

Words = dict[str, Any]
BACK = "/v1/oidc/back"  # where an OpenID provider sends browsers back to


class Accounts:
    """Who is there, and what opens the door to them."""

    def __init__(self, office: Office) -> None:
        self._office, self._database = office, office.database
        self._provided = _provided(office.settings.oidc)

    # ── the door ──────────────────────────────────────────────────────────────────────────────────

    def login(self, login: str, password: str, *, before: str | None = None) -> tuple[str, Person]:
        """The secret of a new login, for a cookie, and who it is; the one `before` it ends."""
        now = self._office.clock()
        name = login.strip().lower()[:100]
        with self._database.write() as rows:
            limits.require_unlocked(rows, name, now)
            limits.note_failure(rows, name, now)  # taken back below: a crash counts as a failure
            row = people.find_login(rows, name)
        stored = row["password"] if row is not None and row["active"] else None
        if not passwords.matches(stored, password):
            raise bad_login()
        assert row is not None
        with self._database.write() as rows:
            limits.forget_failures(rows, name)
            secret = sessions.begin(rows, row["id"], now, before=before)
        return secret, people.person_of(row)

    @property
    def has_provider(self) -> bool:
        """Whether there is an OpenID provider to log in by."""
        return self._provided is not None

    def to_provider(self) -> tuple[str, str]:
        """The secret of a cookie, and the address at which somebody logs in elsewhere."""
        provided, back = self._provider()
        with self._database.write() as rows:
            secret, row = oidc.begin(rows, self._now())
        return secret, provided.address(row["state"], row["nonce"], row["verifier"], back)

    def from_provider(
        self, secret: str, *, code: str, state: str, before: str | None = None
    ) -> tuple[str, Person]:
        """The secret of a new login of whoever came back, and who it is; the one `before` ends."""
        provided, back = self._provider()
        with self._database.write() as rows:
            row = oidc.take(rows, secret, state, self._now())
        if row is None:
            raise bad_login()
        claims = provided.claims(code, row["nonce"], row["verifier"], back)
        with self._database.write() as rows:
            found = oidc.person_row(rows, provided.provider, claims)
            begun = sessions.begin(rows, found["id"], self._now(), before=before)
        return begun, people.person_of(found)

    def _provider(self) -> tuple[oidc.Provided, str]:
        if self._provided is None:
            raise not_there()
        place = self._office.settings.oidc["address"].rstrip("/")
        return self._provided, place + BACK

    def logout(self, secret: str) -> None:
        with self._database.write() as rows:
            sessions.end(rows, secret)

    def rotated(self, secret: str) -> str:
        """Another secret for the same login, for when what it may do was just confirmed."""
        with self._database.write() as rows:
            fresh = sessions.rotate(rows, secret, self._now())
        if fresh is None:
            raise not_known()
        return fresh

    def logout_elsewhere(self, person: Person, secret: str | None = None) -> int:
        """Ends one's logins in other browsers; how many there were."""
        with self._database.write() as rows:
            return sessions.end_others(rows, person.id, secret)

    def recognised(self, secret: str, *, by: str) -> Person:
        """Who holds a token (`by` "token") or a cookie (`by` "browser")."""
        person = None
        if len(secret) <= 100 and secret.startswith(TOKEN):
            with self._database.read() as rows:
                find = tokens.bearer if by == "token" else sessions.browser
                person = find(rows, secret, self._office.clock())
        if person is None:
            raise not_known()
        return person

    # ── one's own ─────────────────────────────────────────────────────────────────────────────────

    def me(self, person: Person) -> Words:
        """Who one is, and what this login or token may do."""
        return {"person": person.to_dict(), "scopes": list(person.scopes), "by": person.by}

    def tokens(self, person: Person) -> list[Words]:
        """One's tokens that are alive."""
        with self._database.read() as rows:
            return [tokens.told(row) for row in tokens.tokens_of(rows, person.id, self._now())]

    def new_token(
        self, person: Person, *, name: str, scopes: tuple[str, ...] | None = None, days: float = 90
    ) -> Words:
        """A token, shown this once; without scopes it can do what one's own login can."""
        asked = person.scopes if scopes is None else scopes
        for scope in asked:  # what a token makes can do no more than the token
            if scope in people.SCOPES_OF[person.role]:
                person.require(person.role, scope=scope)
        with self._database.write() as rows:
            token, row = tokens.issue(
                rows, person, name=name, scopes=asked, days=days, now=self._now()
            )
        return {**tokens.told(row), "token": token}

    def revoke_token(self, person: Person, token: str) -> None:
        with self._database.write() as rows:
            tokens.revoke(rows, person.id, token, self._now())

    def change_password(self, person: Person, old: str, new: str) -> None:
        """Another password of one's own; every login and token ends."""
        with self._database.read() as rows:
            row = people.require_person(rows, person.id)
        if not passwords.matches(row["password"], old):
            raise bad_login()
        stored = passwords.hashed(new)
        with self._database.write() as rows:
            people.set_password(rows, person.id, stored, self._now())

    # ── for operators ─────────────────────────────────────────────────────────────────────────────

    def people(self, person: Person) -> list[Words]:
        """Everybody, for operators."""
        person.require("operator", scope="manage")
        with self._database.read() as rows:
            found = rows.run("SELECT * FROM people ORDER BY login")
        return [_told(row) for row in found]

    def add_person(
        self,
        person: Person,
        *,
        login: str,
        name: str,
        role: str,
        password: str | None = None,
        provider: bool = False,
    ) -> Words:
        """A new person, with a password that is told once where none is given; one who comes by
        way of the OpenID `provider` has none.
        """
        person.require("operator", scope="manage")
        given = new_password() if password is None else passwords.require_password(password)
        stored = passwords.NONE if provider else passwords.hashed(given)
        with self._database.write() as rows:
            row = people.add_person(
                rows,
                login=login,
                name=name,
                role=role,
                stored=stored,
                subject=None,
                now=self._now(),
            )
        shown = password is None and not provider
        return {**_told(row), **({"password": given} if shown else {})}

    def set_active(self, person: Person, whom: str, *, active: bool) -> Words:
        """Lets somebody in, or locks them out at once."""
        person.require("operator", scope="manage")
        with self._database.write() as rows:
            people.set_active(rows, whom, active, self._now())
            return _told(people.require_person(rows, whom))

    def reset_password(self, person: Person, whom: str) -> Words:
        """A new password for somebody, told once."""
        person.require("operator", scope="manage")
        password = new_password()
        stored = passwords.hashed(password)
        with self._database.write() as rows:
            people.set_password(rows, whom, stored, self._now())
            return {**_told(people.require_person(rows, whom)), "password": password}

    def _now(self) -> float:
        return self._office.clock()


def _provided(told: Mapping[str, str]) -> oidc.Provided | None:
    """The OpenID provider of a service; its secret stands in a file of its own."""
    if not told:
        return None
    words = {word: told[word] for word in ("issuer", "client", "claim") if word in told}
    secret = Path(told["secret_file"]).read_text("utf-8").strip() if "secret_file" in told else ""
    return oidc.Provided(oidc.Provider(**words, secret=secret))


def _told(row: Words) -> Words:
    names = ("id", "login", "name", "role", "created_at")
    return {name: row[name] for name in names} | {"active": bool(row["active"])}
