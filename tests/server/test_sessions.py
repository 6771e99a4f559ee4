"""Logins of browsers: begun, rotated, ended, out of date; nobody is handed another one's."""

from __future__ import annotations

from typing import Any

import pytest
from curators import PASSWORD, USUAL_HASHER, Curator, curator

from discreet.server.accounts.sessions import BROWSER_SECONDS

pytestmark = pytest.mark.slow

COOKIE = "__Host-discreet"
OURS = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("sessions"))


def logged_in(here: Curator, login: str = "anna", **more: Any) -> Any:
    client = here.client()
    body = {"login": login, "password": PASSWORD}
    assert client.post("/v1/session", json=body, **more).status_code == 200
    return client


def status(here: Curator, secret: str) -> int:
    return here.client().get("/v1/me", headers={"Cookie": f"{COOKIE}={secret}"}).status_code


def test_passwords_are_kept_by_argon2id_in_64_mib() -> None:
    kept = USUAL_HASHER.hash(PASSWORD)
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,")
    assert kept != USUAL_HASHER.hash(PASSWORD), "each with a salt of its own"


def test_the_cookie_is_the_hosts_alone(here: Curator) -> None:
    client = here.client()
    answer = client.post("/v1/session", json={"login": "anna", "password": PASSWORD})
    told = answer.headers["set-cookie"]
    assert told.startswith(f"{COOKIE}=")
    parts = {part.strip().lower() for part in told.split(";")[1:]}
    assert {"secure", "httponly", "path=/", "samesite=lax"} <= parts
    assert not any(part.startswith("domain") for part in parts)
    secret = client.cookies[COOKIE]
    with here.desk.office.database.read() as rows:
        held = rows.run("SELECT * FROM browsers")
    assert all(secret not in str(row) for row in held), "its digest is kept, not the secret"


def test_a_login_ends_what_the_browser_held(here: Curator) -> None:
    """Session fixation: a secret that somebody planted is worth nothing after the login."""
    planted = logged_in(here, "ben").cookies[COOKIE]
    client = logged_in(here, headers={"Cookie": f"{COOKIE}={planted}"})
    assert client.cookies[COOKIE] != planted
    assert status(here, planted) == 401
    made_up = "dct_" + "x" * 43
    assert logged_in(here, headers={"Cookie": f"{COOKIE}={made_up}"}).cookies[COOKIE] != made_up
    assert status(here, made_up) == 401


def test_rotated_ended_and_out_of_date(here: Curator) -> None:
    accounts = here.desk.accounts
    first, anna = accounts.login("anna", PASSWORD)
    second = accounts.rotated(first)
    assert (status(here, first), status(here, second)) == (401, 200)
    other, _ = accounts.login("anna", PASSWORD)
    accounts.logout_elsewhere(anna, second)
    assert (status(here, other), status(here, second)) == (401, 200)
    here.clock.now += BROWSER_SECONDS - 1
    assert status(here, second) == 200
    third = accounts.rotated(second)
    here.clock.now += 2
    assert status(here, third) == 401, "a rotated login ends when it would have"
    with pytest.raises(Exception, match="no valid token or login"):
        accounts.rotated(third)


@pytest.mark.slow
def test_a_lockout_and_a_new_password_end_all_logins(here: Curator) -> None:
    operator = here.client("op")
    for act in ("lock", "password"):
        secret = logged_in(here, "ben").cookies[COOKIE]
        ben = here.person("ben") if act == "lock" else None
        who = here.desk.accounts.recognised(secret, by="browser").id
        assert operator.post(f"/v1/people/{who}/{act}").status_code == 200
        assert status(here, secret) == 401
        if ben is not None:
            assert operator.post(f"/v1/people/{who}/unlock").status_code == 200
            assert status(here, secret) == 401, "an unlocked person logs in anew"
