"""Logins by way of an OpenID provider, with one that runs beside the test: who is let in, and what
a thief, a forger and a stranger get.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from curators import ADDRESS, Curator, curator

from discreet.errors import DiscreetError
from discreet.server.accounts.oidc import Provided, Provider
from discreet.server.desk.desk import desk_of
from discreet.server.refusals import status_of

pytestmark = pytest.mark.slow

CLIENT, SECRET = "curator", "a secret/of+the client"
PEOPLE = (
    {"sub": "1", "preferred_username": "nora", "email": "nora@example.org"},
    {"sub": "2", "preferred_username": "eve", "email": "eve@example.org"},
    {"sub": "3", "preferred_username": "anna"},
)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A provider in a process of its own."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    words = [word for one in PEOPLE for word in ("--user-claims", json.dumps(one))]
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "oidc-provider-mock"), "--port", str(port), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    place = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            with contextlib.suppress(httpx.TransportError):
                told = httpx.get(f"{place}/.well-known/openid-configuration")
                break
            time.sleep(0.05)
        yield told.json()["issuer"]
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def here(tmp_path: Path, issuer: str) -> Curator:
    """A service that knows the provider, and awaits Nora."""
    made = curator(tmp_path)
    (tmp_path / "secret").write_text(SECRET)
    told = {"issuer": issuer, "client": CLIENT, "secret_file": str(tmp_path / "secret")}
    settings = dataclasses.replace(
        made.desk.office.settings, oidc={**told, "address": ADDRESS, "claim": "preferred_username"}
    )
    made.desk = desk_of(dataclasses.replace(made.desk.office, settings=settings))
    operator = made.client("op")
    body = {"login": "nora", "name": "Nora", "role": "analyst", "provider": True}
    assert "password" not in operator.post("/v1/people", json=body).json()
    return made


def at_the_provider(place: str, subject: str) -> dict[str, str]:
    """Code and state with which somebody is sent back."""
    answer = httpx.post(place, data={"sub": subject}, follow_redirects=False)
    assert answer.status_code in (302, 303), answer.text
    back = urllib.parse.urlsplit(answer.headers["location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == f"{ADDRESS}/v1/oidc/back"
    return dict(urllib.parse.parse_qsl(back.query))


def begun(client: httpx.Client) -> str:
    answer = client.get("/v1/oidc/begin", follow_redirects=False)
    assert answer.status_code == 303
    return str(answer.headers["location"])


def test_a_person_who_is_awaited_gets_in_and_nobody_else(here: Curator) -> None:
    nora = here.client()
    place = begun(nora)
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(place).query))
    assert asked["code_challenge_method"] == "S256"
    assert len(asked["code_challenge"]) == 43
    cookie = nora.cookies.jar
    assert all(one.secure for one in cookie)
    back = nora.get("/v1/oidc/back", params=at_the_provider(place, "1"), follow_redirects=False)
    assert (back.status_code, back.headers["location"]) == (303, "/")
    assert nora.get("/v1/me").json()["person"]["login"] == "nora"
    for subject in ("2", "3"):  # a stranger, and one with the login of an account with a password
        other = here.client()
        told = at_the_provider(begun(other), subject)
        assert other.get("/v1/oidc/back", params=told).status_code == 401
        assert other.get("/v1/me").status_code == 401
    again = here.client()
    told = at_the_provider(begun(again), "1")
    assert again.get("/v1/oidc/back", params=told, follow_redirects=False).status_code == 303
    assert again.post("/v1/session", json={"login": "nora", "password": "x"}).status_code == 401
    people = {
        one["login"]: one["id"] for one in here.client("op").get("/v1/people").json()["people"]
    }
    here.client("op").post(f"/v1/people/{people['nora']}/lock")
    assert nora.get("/v1/me").status_code == 401
    told = at_the_provider(begun(again), "1")
    assert again.get("/v1/oidc/back", params=told).status_code == 401, "locked out is locked out"


def test_what_was_taken_from_another_browser_is_worth_nothing(here: Curator) -> None:
    nora, thief = here.client(), here.client()
    place = begun(nora)
    told = at_the_provider(place, "1")
    begun(thief)
    assert thief.get("/v1/oidc/back", params=told).status_code == 401, "another's state"
    assert here.client().get("/v1/oidc/back", params=told).status_code == 401, "no cookie"
    bad = {**told, "state": told["state"][:-1] + "_"}
    assert nora.get("/v1/oidc/back", params=bad).status_code == 401
    assert nora.get("/v1/oidc/back", params=told).status_code == 401, "a state is taken once"
    mine = at_the_provider(begun(nora), "1")
    here.clock.now += 601
    assert nora.get("/v1/oidc/back", params=mine).status_code == 401, "too late"
    first = here.client()
    stolen = at_the_provider(begun(first), "1")
    own = at_the_provider(begun(thief), "2")
    mixed = {"code": stolen["code"], "state": own["state"]}
    assert thief.get("/v1/oidc/back", params=mixed).status_code == 401, "PKCE: another's code"


def signed(claims: dict[str, Any], key: Any, algorithm: str = "RS256") -> str:
    from joserfc import jwt

    return jwt.encode({"alg": algorithm, "kid": key.kid}, claims, key, algorithms=[algorithm])


def test_forged_tokens() -> None:
    """Each fault of an ID token by itself, on a provider that would say it."""
    from joserfc.jwk import OctKey, RSAKey

    place = "https://login.example.org"
    key, other = (RSAKey.generate_key(2048, {"kid": "1"}) for _ in range(2))
    secret = OctKey.import_key("0123456789abcdef0123456789abcdef", {"kid": "1"})
    now = int(time.time())
    right = {"iss": place, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 60, "nonce": "n"}
    faults: dict[str, Any] = {name: {**right, name: "x"} for name in ("iss", "aud", "nonce")}
    faults |= {f"no {name}": {k: v for k, v in right.items() if k != name} for name in right}
    faults |= {"over": {**right, "exp": now - 3600, "iat": now - 7200}}
    faults |= {"several": {**right, "aud": [CLIENT, "another"]}, "party": {**right, "azp": "x"}}
    tokens = {name: signed(claims, key) for name, claims in faults.items()}
    tokens |= {"key": signed(right, other), "secret": signed(right, secret, "HS256")}
    tokens |= {"none": "eyJhbGciOiJub25lIn0." + tokens["iss"].split(".")[1] + ".", "no": "x.y.z"}

    def served(token: str, **changes: Any) -> Provided:
        document = {
            "issuer": place,
            "authorization_endpoint": f"{place}/a",
            "token_endpoint": f"{place}/t",
            "jwks_uri": f"{place}/k",
        } | changes
        told: dict[str, Any] = {
            "/.well-known/openid-configuration": document,
            "/t": {"id_token": token},
            "/k": {"keys": [key.as_dict(private=False)]},
        }
        wire = httpx.MockTransport(lambda asked: httpx.Response(200, json=told[asked.url.path]))
        return Provided(Provider(issuer=place, client=CLIENT), wire)

    claims = served(signed(right, key)).claims("c", "n", "v", "b")
    assert claims["sub"] == "1"
    for name, token in tokens.items():
        with pytest.raises(DiscreetError) as refused:
            served(token).claims("c", "n", "v", "b")
        assert status_of(refused.value) == 401, name
    with pytest.raises(DiscreetError):
        served(signed(right, key), issuer="https://else.example.org").claims("c", "n", "v", "b")
    with pytest.raises(DiscreetError, match="https"):
        Provider(issuer="http://login.example.org", client=CLIENT)


def test_without_a_provider_there_is_no_such_way(tmp_path: Path) -> None:
    client = curator(tmp_path).client()
    assert client.get("/v1/oidc/begin").status_code == 404
    assert "oidc" not in client.get("/login").text


def test_the_page_shows_the_way(here: Curator) -> None:
    assert 'href="/v1/oidc/begin"' in here.client().get("/login").text
