"""Canaries in rows and unit ids appear nowhere: in no answer, log, database, receipt, backup or
temporary file, whatever fails; and text that data may hold acts nowhere that it is shown.
"""

from __future__ import annotations

import csv
import logging
import tempfile
from pathlib import Path
from typing import Any

import pytest
from curators import PASSWORD, SCHEMA, Curator, curator, write_survey

from discreet.server.work import room as rooms
from discreet.server.work.child import answered

pytestmark = pytest.mark.slow

CANARY, UNIT, NUMBER = "kanarienvogel7731", "unit-canary-9942", 61.77310942
EVIL = (
    "=HYPERLINK(0)",
    "<script>alert(1)</script>",
    "@SUM(1+1)",
    "+1+1",
    "-2+3",
    '"><svg onload=x>',
)
WORDS = {
    **SCHEMA,
    "town": {"kind": "open"},
    "note": {"kind": "category", "levels": ["a", CANARY[:4]]},
}
ASKED: tuple[dict[str, Any], ...] = (
    {"estimator": "mean", "column": "income", "spend": {"mu": 0.2}},
    {"estimator": "table", "by": ["region"], "spend": {"mu": 0.2}},
    {"estimator": "median", "column": "income", "spend": {"mu": 0.2}},
    {"estimator": "table", "by": "town", "spend": {"epsilon": 0.5, "delta": 1e-7}},
    {"estimator": "robust", "formula": "income ~ age", "spend": {"mu": 0.2}},
    {"estimator": "missing", "spend": {"mu": 0.2}},
)


def planted(folder: Path) -> Curator:
    """A service over rows of which one holds the canaries."""
    rows = 300
    columns: dict[str, Any] = {
        "income": [float(30 + number % 41) for number in range(rows)],
        "age": [18 + number % 73 for number in range(rows)],
        "region": ["ENSW"[number % 4] for number in range(rows)],
        "town": [EVIL[number % len(EVIL)] for number in range(rows)],
        "note": ["a"] * rows,
        "person": [f"person {number // 2}" for number in range(rows)],
    }
    columns["town"][7], columns["person"][7], columns["income"][7] = CANARY, UNIT, NUMBER
    columns["note"][7] = columns["region"][7] = CANARY
    (folder / "data").mkdir()
    write_survey(folder / "data" / "survey.csv", columns)
    return curator(folder)


def seen_in(data: bytes) -> list[str]:
    return [one for one in (CANARY, UNIT, str(NUMBER)) if one.encode() in data]


def everything(here: Curator, folder: Path) -> list[tuple[str, list[str]]]:
    """Every file that the service wrote, with the canaries in it."""
    files = [path for path in (folder / "state").rglob("*") if path.is_file()]
    return [(path.name, seen_in(path.read_bytes())) for path in files]


@pytest.mark.slow
def test_canaries_appear_nowhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    here = planted(tmp_path)
    relation = {"relation": "add_remove", "unit": "person", "max_rows": 2}
    made = here.register(schema=WORDS, neighbors=relation, budget={"epsilon": 8.0, "delta": 1e-5})
    study = here.study(made["id"], budget={"epsilon": 8.0, "delta": 1e-5})
    anna, olga, ada = (here.client(login) for login in ("anna", "olga", "ada"))
    said: list[bytes] = []

    def called(client: Any, method: str, path: str, **more: Any) -> Any:
        answer = client.request(method, path, **more)
        said.append(answer.content + str(answer.headers).encode())
        return answer

    def asked(words: dict[str, Any], key: str) -> Any:
        path = f"/v1/studies/{study['id']}/questions"
        told = called(anna, "POST", path, json=words, headers={"Idempotency-Key": key}).json()
        for end in ("", ".json", ".csv", ".svg"):
            if "answer" in told:
                called(anna, "GET", f"/v1/answers/{told['answer']}{end}")
        return told

    statuses = [asked(words, f"right {number}").get("status") for number, words in enumerate(ASKED)]
    assert statuses.count("answered") >= 4, (statuses, said[-8:])

    def fails(error: BaseException) -> Any:
        def raised(*_: Any, **__: Any) -> Any:
            raise error

        return raised

    told = f"row 7 is {CANARY} of {UNIT} with {NUMBER}"
    errors = (MemoryError(told), OSError(told), ValueError(told), RuntimeError(told))
    for number, error in enumerate(errors):
        with monkeypatch.context() as patched:
            patched.setattr(rooms.Room, "_engine", fails(error))
            here.workers.finish = lambda question, seat: answered(  # type: ignore[method-assign]
                here.workers.room, {"do": "finish", "question": question}
            )
            asked(ASKED[0], f"failed {number}")
    with (tmp_path / "data" / "survey.csv").open("a") as file:
        file.write(f"{NUMBER},20,{CANARY},{CANARY},{CANARY},{UNIT}\n")
    asked(ASKED[0], "changed source")
    for client in (olga, ada):
        for path in ("/v1/datasets", f"/v1/datasets/{made['id']}", "/v1/studies", "/v1/requests"):
            called(client, "GET", path)
        called(client, "GET", f"/v1/ledger/{study['seat']['node']}")
        called(client, "GET", f"/v1/datasets/{made['id']}/dummy")
    called(olga, "POST", "/v1/datasets", json={"name": "x", "source": "data/survey.csv"})
    assert len(said) > 30
    assert not [found for one in said if (found := seen_in(one))]
    assert not [found for found in everything(here, tmp_path) if found[1]]
    assert not seen_in(caplog.text.encode())
    out = capfd.readouterr()
    assert not seen_in((out.out + out.err).encode())
    assert not [path for path in scratch.rglob("*") if path.is_file()], "nothing is left behind"
    for secret in (PASSWORD, here.tokens["anna"]):
        assert secret not in caplog.text
        files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
        assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_text_of_data_acts_nowhere(tmp_path: Path) -> None:
    """Keys that many rows hold are shown, and are neither a formula nor a tag."""
    here = planted(tmp_path)
    made = here.register(schema=WORDS, neighbors="replace", budget={"epsilon": 20.0, "delta": 1e-3})
    study = here.study(made["id"], budget={"epsilon": 20.0, "delta": 1e-3})
    words = {"estimator": "table", "by": "town", "spend": {"epsilon": 9.0, "delta": 1e-4}}
    anna = here.client("anna")
    path = f"/v1/studies/{study['id']}/questions"
    told = anna.post(path, json=words, headers={"Idempotency-Key": "towns"}).json()
    assert told.get("status") == "answered", told
    place = f"/v1/answers/{told['answer']}"
    table = anna.get(f"{place}.csv")
    assert "attachment" in table.headers["content-disposition"]
    cells = [cell for row in csv.reader(table.text.splitlines()) for cell in row]
    shown = [cell for cell in cells if any(one in cell for one in EVIL)]
    assert len(shown) >= len(EVIL) - 1, "the keys are there"
    assert not [cell for cell in shown if cell[0] in "=+-@\t\r"]
    picture = anna.get(f"{place}.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "<script" not in picture.text
    assert "onload" not in picture.text
    assert "default-src 'none'" in picture.headers["content-security-policy"]
    assert anna.get(f"{place}.json").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "source",
    [
        "http://127.0.0.1:1/x.csv",
        "https://example.org/x.csv",
        "file:///etc/passwd",
        "s3://bucket/x.parquet",
        "data/../../etc/passwd",
        "data/%2e%2e/passwd",
        "//host/share.csv",
        "postgresql://user@host/db",
        "data/survey.csv\n",
        "data/*.csv",
        "/etc/passwd",
    ],
)
def test_no_source_leads_out(source: str, tmp_path: Path) -> None:
    here = curator(tmp_path)
    body = {
        "name": "x",
        "source": source,
        "schema": SCHEMA,
        "neighbors": "replace",
        "budget": {"mu": 1.0},
        "format": "csv",
    }
    refused = here.client("olga").post("/v1/datasets", json=body)
    assert refused.status_code == 422
    assert "passwd" not in refused.text


def test_another_sites_page_changes_nothing(tmp_path: Path) -> None:
    """With a cookie, but from elsewhere: by Sec-Fetch-Site, by Origin, and by neither."""
    here = curator(tmp_path)
    olga = here.client()
    login = {"login": "olga", "password": PASSWORD}
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert olga.post("/v1/session", json=login, headers=foreign).status_code == 403
    assert olga.post("/v1/session", json=login).status_code == 200
    assert olga.get("/v1/me").status_code == 200
    body = {"name": "token", "scopes": ["read"]}
    for headers in (foreign, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.test"}, {}):
        assert olga.post("/v1/tokens", json=body, headers=headers).status_code == 403
    for headers in ({"Sec-Fetch-Site": "same-origin"}, {"Origin": "https://curator.test"}):
        assert olga.post("/v1/tokens", json=body, headers=headers).status_code == 201


@pytest.mark.parametrize("text", ["x'; DROP TABLE people; --", 'a" OR 1=1', "%s", "?", "{node}"])
def test_names_are_values_and_no_statements(text: str, tmp_path: Path) -> None:
    here = curator(tmp_path)
    made = here.register(name=text, description=text)
    study = here.study(made["id"], name=text, purpose=text)
    words = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}
    told = here.desk.named.ask(here.person("anna"), study["id"], asked=words, key=text)
    assert told["key"] == text
    assert here.desk.datasets.one(here.person("olga"), made["id"])["name"] == text
    assert here.client("op").get("/v1/people").json()["people"]
    login = here.client().post("/v1/session", json={"login": text, "password": text})
    assert login.status_code == 401


def test_nobody_makes_themselves_another_role(tmp_path: Path) -> None:
    here = curator(tmp_path)
    person = {"login": "eve", "name": "Eve", "role": "owner"}
    for login in ("anna", "olga", "ada"):
        client = here.client(login)
        assert client.post("/v1/people", json=person).status_code == 403
        scopes = client.post("/v1/tokens", json={"name": "x", "scopes": ["manage"]})
        assert scopes.status_code == 422
        assert client.post("/v1/tokens", json={"name": "x", "role": "owner"}).status_code == 422
    narrow = here.client("olga").post("/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()
    less = {"Authorization": f"Bearer {narrow['token']}"}
    wider = here.client().post("/v1/tokens", json={"name": "y", "scopes": ["decide"]}, headers=less)
    assert wider.status_code == 403
    assert here.client().post("/v1/tokens", json={"name": "y"}, headers=less).json()["scopes"] == [
        "read"
    ]
