"""Every refusal of the service: status, four parts, and that nothing was debited or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from curators import PASSWORD, Curator, curator

import discreet as dp
from discreet.estimators.questions import mean_question

MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}
KEY = {"Idempotency-Key": "a key"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("refusals"))


@pytest.fixture(scope="module")
def study(here: Curator) -> dict[str, Any]:
    return here.study(here.register()["id"])


def question(here: Curator, study: dict[str, Any], spend: float = 0.1) -> dict[str, Any]:
    public = here.connection("anna").open(study["dataset_name"], study=study["name"]).public
    return mean_question(public, "income", spend=dp.GDP(spend)).to_dict()


def spent(here: Curator, study: dict[str, Any]) -> Any:
    node = here.desk.office.trees.node(study["dataset"], study["seat"]["node"])
    return node.spent(), len(node.entries()), node.reserved()


def refused(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert all(told[part] for part in ("asked", "found", "why", "remedy", "code", "title"))
    assert told["status"] == status
    return told


@pytest.mark.slow
def test_no_token_and_dead_ones(here: Curator, study: dict[str, Any]) -> None:
    client = here.client()
    first = refused(client.get("/v1/me"), 401)
    for token in ("dct_nobody", "", "x" * 300, "dct_" + "é" * 3):
        header = f"Bearer {token}".encode()
        assert refused(client.get("/v1/me", headers={"Authorization": header}), 401) == first
    made = here.client("anna").post("/v1/tokens", json={"name": "short", "days": 1}).json()
    bearer = {"Authorization": f"Bearer {made['token']}"}
    assert client.get("/v1/me", headers=bearer).status_code == 200
    assert here.client("ben").delete(f"/v1/tokens/{made['id']}").status_code == 404
    assert here.client("anna").delete(f"/v1/tokens/{made['id']}").status_code == 204
    assert refused(client.get("/v1/me", headers=bearer), 401) == first
    late = here.client("anna").post("/v1/tokens", json={"name": "short", "days": 1}).json()
    here.clock.now += 2 * 86_400
    bearer = {"Authorization": f"Bearer {late['token']}"}
    assert refused(client.get("/v1/me", headers=bearer), 401) == first


def test_a_token_can_do_no_more_than_it_was_made_for(here: Curator, study: dict[str, Any]) -> None:
    anna = here.client("anna")
    made = anna.post("/v1/tokens", json={"name": "reads", "scopes": ["read"]}).json()
    reader = here.client()
    reader.headers["Authorization"] = f"Bearer {made['token']}"
    assert reader.get(f"/v1/studies/{study['id']}").status_code == 200
    before = spent(here, study)
    asked = reader.post(f"/v1/studies/{study['id']}/questions", json=MEAN, headers=KEY)
    refused(asked, 403)
    refused(reader.post("/v1/tokens", json={"name": "more", "scopes": ["ask"]}), 403)
    refused(anna.post("/v1/tokens", json={"name": "more", "scopes": ["decide"]}), 422)
    assert spent(here, study) == before


def test_bad_input_debits_and_reads_nothing(here: Curator, study: dict[str, Any]) -> None:
    anna, path = here.client("anna"), f"/v1/studies/{study['id']}"
    good = question(here, study)
    before = spent(here, study)
    here.workers.room.finish = None  # type: ignore[assignment, method-assign]  # no data is read
    try:
        for words, status in (
            ({**MEAN, "column": "incme"}, 422),
            ({**MEAN, "colum": "income"}, 422),
            ({**MEAN, "estimator": "subsample"}, 422),
            ({**MEAN, "estimator": "nothing"}, 422),
            ({**MEAN, "spend": {"mu": -1.0}}, 422),
            ({**MEAN, "spend": {"mu": 1e300}}, 422),
            ({**MEAN, "spend": {"nu": 1.0}}, 422),
            ({**MEAN, "spend": {}}, 422),
            ({**MEAN, "spend": {"mu": 5.0}}, 409),
            ({"column": "income"}, 422),
        ):
            refused(anna.post(f"{path}/questions", json=words, headers=KEY), status)
        assert (
            "age"
            in refused(
                anna.post(f"{path}/questions", json={**MEAN, "column": "incme"}, headers=KEY), 422
            )["found"]
        )
        for body in (
            {"question": {}},
            {"question": {**good, "more": 1}},
            {"question": {**good, "delta": "1/0"}},
            {"question": {**good, "mechanism": {"kind": "none"}}},
            {"question": {**good, "query": {**good["query"], "column": "nobody"}}},
            {"question": good, "more": 1},
            {"question": [good]},
            {},
        ):
            refused(anna.post(f"{path}/releases", json=body, headers=KEY), 422)
        refused(anna.post(f"{path}/releases", json={"question": good}), 400)
        refused(
            anna.post(
                f"{path}/releases",
                json={"question": good},
                headers={"Idempotency-Key": "k" * 201},
            ),
            422,
        )
        headers = {"Content-Type": "application/json", **KEY}
        for raw in (
            b"{",
            b"[" * 50_000,
            b'{"a":' * 50_000,
            b"\xff\xfe",
            b'{"question": NaN}',
            b'{"question": {"a": "\\ud800"}}',
            b'{"question": {"a": "\\u0000"}}',
            b'{"question": ' + b"9" * 5000 + b"}",
        ):
            refused(anna.post(f"{path}/releases", content=raw, headers=headers), 422)
        refused(anna.post(f"{path}/releases", content=b" " * ((1 << 20) + 1), headers=headers), 413)
    finally:
        del here.workers.room.finish
    assert spent(here, study) == before


def test_no_room_says_the_largest_spend_that_fits(here: Curator, study: dict[str, Any]) -> None:
    anna, path = here.client("anna"), f"/v1/studies/{study['id']}/questions"
    words = {**MEAN, "spend": {"mu": 1.01}}
    told = refused(anna.post(path, json=words, headers=KEY), 409)
    fits = told["fits"]["mu"]
    assert 0 < fits <= 1
    over = {**MEAN, "spend": {"mu": fits * 1.001}}
    refused(anna.post(path, json=over, headers=KEY), 409)
    asked = anna.post(path, json={**MEAN, "spend": {"mu": fits / 4}}, headers=KEY)
    assert asked.json()["status"] == "answered", "a key that was refused is free again"
    refused(anna.post(path, json={**MEAN, "column": "age"}, headers=KEY), 422)
    again = anna.post(path, json={**MEAN, "spend": {"mu": fits / 4}}, headers=KEY)
    assert again.json() == asked.json()


def test_roles_are_kept_apart(here: Curator, study: dict[str, Any]) -> None:
    data = study["dataset"]
    for login, method, path, body in (
        ("anna", "POST", f"/v1/datasets/{data}/freeze", {}),
        ("anna", "POST", f"/v1/studies/{study['id']}/decision", {"decision": "approve"}),
        ("anna", "GET", f"/v1/datasets/{data}/tree", None),
        ("ada", "POST", f"/v1/studies/{study['id']}/questions", MEAN),
        ("olga", "POST", f"/v1/studies/{study['id']}/questions", MEAN),
        ("olga", "GET", "/v1/people", None),
        ("op", "GET", "/v1/datasets", None),
        ("op", "GET", f"/v1/ledger/{study['seat']['node']}", None),
        ("anna", "GET", "/v1/sources", None),
    ):
        answer = here.client(login).request(method, path, json=body, headers=KEY)
        assert refused(answer, 403)


def test_frozen_and_closed(here: Curator) -> None:
    made = here.study(here.register("frozen")["id"], name="one")
    anna, olga = here.client("anna"), here.client("olga")
    path = f"/v1/studies/{made['id']}"
    kept = anna.post(f"{path}/questions", json=MEAN, headers=KEY).json()
    assert olga.post(f"/v1/datasets/{made['dataset']}/freeze", json={}).status_code == 200
    new = {"Idempotency-Key": "new"}
    before = spent(here, made)
    refused(anna.post(f"{path}/questions", json=MEAN, headers=new), 423)
    refused(anna.post(f"{path}/reservations", json={"spend": {"mu": 0.1}}, headers=new), 423)
    assert anna.get(f"/v1/answers/{kept['answer']}").json() == kept, "stored answers can be read"
    assert anna.post(f"{path}/questions", json=MEAN, headers=KEY).json() == kept
    assert spent(here, made) == before
    assert olga.post(f"/v1/datasets/{made['dataset']}/thaw").json()["state"] == "open"
    assert anna.post(f"{path}/questions", json=MEAN, headers=new).status_code == 200
    assert olga.post(f"{path}/close").json()["state"] == "closed"
    refused(anna.post(f"{path}/questions", json=MEAN, headers={"Idempotency-Key": "3"}), 423)
    assert anna.get(f"/v1/answers/{kept['answer']}").json() == kept
    root = here.desk.datasets.one(here.person("olga"), made["dataset"])["box"]
    assert root["reserved"]["mu_squared"] == "0", "what was not spent went back"


def test_too_fast(tmp_path: Path) -> None:
    slow = curator(tmp_path, burst=3.0, per_second=0.001)
    client = slow.client("ben")
    found = [client.get("/v1/me").status_code for _ in range(5)]
    assert found == [200, 200, 200, 429, 429]
    refused(client.get("/v1/me"), 429)
    assert slow.client("anna").get("/v1/me").status_code == 200, "nobody else waits"


@pytest.mark.slow
def test_logins_lock_and_say_nothing(tmp_path: Path) -> None:
    here = curator(tmp_path)
    client = here.client()

    def log_in(login: str, password: str) -> Any:
        return client.post("/v1/session", json={"login": login, "password": password})

    wrong = refused(log_in("anna", "not this one"), 401)
    assert refused(log_in("nobody", "not this one"), 401) == wrong
    for _ in range(5):
        log_in("anna", "not this one")
    assert refused(log_in("anna", PASSWORD), 401) == wrong, "locked, in the same words"
    here.clock.now += 31
    assert log_in("anna", PASSWORD).status_code == 200
    ours = {"Sec-Fetch-Site": "same-origin"}
    cookie = client.cookies.get("__Host-discreet")
    assert cookie
    assert client.get("/v1/me").json()["person"]["login"] == "anna"
    body = {"name": "from the page"}
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.test"}):
        refused(client.post("/v1/tokens", json=body, headers=headers), 403)
    assert client.post("/v1/tokens", json=body, headers=ours).status_code == 201
    bearer = {"Authorization": f"Bearer {cookie}"}
    refused(here.client().get("/v1/me", headers=bearer), 401)
    assert log_in("anna", PASSWORD).status_code == 200
    assert client.cookies.get("__Host-discreet") != cookie, "each login has a secret of its own"
    assert client.delete("/v1/session", headers=ours).status_code == 204
    refused(client.get("/v1/me"), 401)
