"""Logins by way of an OpenID provider: the code flow with PKCE, checked in full.

    begin    a state, a nonce and a verifier, kept here under the digest of a cookie; the address
             of the provider to go to
    finish   the code is exchanged, and the ID token is checked: signature by a published key of the
             provider, issuer, audience, nonce and time

A person is known by issuer and subject. Who has neither here is known at their first login by a
claim that an operator chose, if an account of that login waits for it; nobody gets in by having an
account at the provider alone.
"""

from __future__ import annotations

import base64
import hashlib
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import Any

from discreet.server.accounts.marks import digest_of, new_token, same
from discreet.server.refusals import bad_login, conflict, invalid
from discreet.server.store.database import Row, Rows

SECONDS = 600.0  # from the first step to the last
LEEWAY = 60  # seconds that clocks may differ
ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA", "RS384", "RS512", "ES384")
CLAIMS = ("preferred_username", "email", "sub")
_LONGEST = 1 << 20  # bytes of what a provider says
_KNOWN = 600.0  # seconds that its document and keys are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Who is asked; `claim` is what names an account that waits for its first login."""

    issuer: str
    client: str
    secret: str = ""
    claim: str = "preferred_username"

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.issuer)
        home = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if parts.scheme != "https" and not (home and parts.scheme == "http"):
            raise invalid(
                "--oidc-issuer",
                "it is no https address",
                "whoever stands between could log in as anybody",
                "use the https address of the provider",
            )
        if self.claim not in CLAIMS:
            raise invalid("--oidc-claim", "it is none", "it names accounts", f"use {CLAIMS}")


class Provided:
    """One provider, whose document and keys are remembered for a while."""

    def __init__(self, provider: Provider, transport: Any = None) -> None:
        self.provider, self._transport = provider, transport
        self._guard = threading.Lock()
        self._kept: dict[str, tuple[float, Any]] = {}

    def address(self, state: str, nonce: str, verifier: str, back: str) -> str:
        """Where a browser goes to log in."""
        digest = hashlib.sha256(verifier.encode()).digest()
        words = {
            "response_type": "code",
            "client_id": self.provider.client,
            "redirect_uri": back,
            "scope": "openid profile email",
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        place = self._document()["authorization_endpoint"]
        return f"{place}{'&' if '?' in place else '?'}{urllib.parse.urlencode(words)}"

    def claims(self, code: str, nonce: str, verifier: str, back: str) -> dict[str, Any]:
        """What the provider says of whoever came back with a code; refused unless all is right."""
        import httpx

        words = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": self.provider.client,
            "code_verifier": verifier,
        }
        auth = None
        if self.provider.secret:
            quoted = [
                urllib.parse.quote(one, safe="")
                for one in (self.provider.client, self.provider.secret)
            ]
            auth = httpx.BasicAuth(*quoted)
        told = self._asked("POST", self._document()["token_endpoint"], data=words, auth=auth)
        token = told.get("id_token")
        if type(token) is not str:
            raise bad_login()
        return self._checked(token, nonce)

    def _checked(self, token: str, nonce: str) -> dict[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            keys = KeySet.import_key_set(self._remembered("keys", self._keys))
            read = jwt.decode(token, keys, algorithms=list(ALGORITHMS))
            asked = jwt.JWTClaimsRegistry(
                leeway=LEEWAY,
                iss={"essential": True, "value": self.provider.issuer},
                aud={"essential": True, "value": self.provider.client},
                sub={"essential": True},
                exp={"essential": True},
                iat={"essential": True},
            )
            asked.validate(read.claims)
        except (JoseError, ValueError, TypeError, KeyError):
            raise bad_login() from None
        claims: dict[str, Any] = read.claims
        told, subject = claims.get("nonce"), claims.get("sub")
        audience, party = claims.get("aud"), claims.get("azp", self.provider.client)
        if type(told) is not str or not same(told, nonce) or type(subject) is not str:
            raise bad_login()
        if party != self.provider.client or (type(audience) is list and len(audience) != 1):
            raise bad_login()
        return claims

    def _document(self) -> dict[str, Any]:
        told = self._remembered("document", self._discovered)
        assert isinstance(told, dict)
        return told

    def _discovered(self) -> dict[str, Any]:
        place = self.provider.issuer.rstrip("/") + "/.well-known/openid-configuration"
        told = self._asked("GET", place)
        places = [told.get(f"{name}_endpoint") for name in ("authorization", "token")] + [
            told.get("jwks_uri")
        ]
        if told.get("issuer") != self.provider.issuer or not all(
            type(one) is str and one.startswith(("https://", "http://")) for one in places
        ):
            raise _away()
        return told

    def _keys(self) -> dict[str, Any]:
        return self._asked("GET", self._document()["jwks_uri"])

    def _remembered(self, name: str, find: Any) -> Any:
        with self._guard:
            held = self._kept.get(name)
        if held is not None and held[0] > time.monotonic():
            return held[1]
        found = find()
        with self._guard:
            self._kept[name] = time.monotonic() + _KNOWN, found
        return found

    def _asked(self, method: str, place: str, **more: Any) -> dict[str, Any]:
        import httpx

        try:
            with httpx.Client(timeout=10, transport=self._transport) as client:
                told = client.request(method, place, follow_redirects=False, **more)
            if 400 <= told.status_code < 500 and method == "POST":
                raise bad_login()  # a code that was used, is another's, or none
            if told.status_code != 200 or len(told.content) > _LONGEST:
                raise _away()
            read = told.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError):
            raise _away() from None
        if type(read) is not dict:
            raise _away()
        return read


def begin(rows: Rows, now: float) -> tuple[str, Row]:
    """The secret of a cookie, and what is kept under its digest until somebody comes back."""
    secret = new_token()
    row = {
        "digest": digest_of(secret),
        "state": new_token(),
        "nonce": new_token(),
        "verifier": new_token(),
        "expires_at": now + SECONDS,
    }
    rows.changed("DELETE FROM strangers WHERE expires_at <= ?", now)
    rows.changed(
        "INSERT INTO strangers (digest, state, nonce, verifier, expires_at) VALUES (?, ?, ?, ?, ?)",
        *row.values(),
    )
    return secret, row


def take(rows: Rows, secret: str, state: str, now: float) -> Row | None:
    """What was kept for a browser that comes back, which is gone with that; None where it is not
    the one.
    """
    row = rows.one("SELECT * FROM strangers WHERE digest = ?", digest_of(secret))
    gone = rows.changed("DELETE FROM strangers WHERE digest = ?", digest_of(secret))
    if row is None or not gone or row["expires_at"] <= now or not same(row["state"], state):
        return None
    return row


def person_row(rows: Rows, provider: Provider, claims: dict[str, Any]) -> Row:
    """Whose login it is; at the first one an account that waits for it takes the subject."""
    subject = f"{provider.issuer} {claims['sub']}"
    row = rows.one("SELECT * FROM people WHERE subject = ?", subject)
    if row is None:
        named = claims.get(provider.claim)
        sure = provider.claim != "email" or claims.get("email_verified") is True
        if type(named) is str and sure:
            rows.changed(
                "UPDATE people SET subject = ? WHERE login = ? AND subject IS NULL"
                " AND password = ''",
                *(subject, named.strip().lower()),
            )
            row = rows.one("SELECT * FROM people WHERE subject = ?", subject)
    if row is None or not row["active"]:
        raise bad_login()
    return row


def _away() -> Exception:
    return conflict(
        "a login by way of the provider",
        "the provider does not answer as it should",
        "who somebody is must be certain",
        "try again, or ask the operator",
    )
