"""Nobody learns of what is not theirs: every route of the OpenAPI document, with ids of others, of
nobody and of no form, gives each role the same bytes for all three.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from curators import PEOPLE, Curator, curator

pytestmark = pytest.mark.slow

MEAN = {"estimator": "mean", "column": "income", "spend": {"mu": 0.01}}
BODIES: dict[str, Any] = {
    "/versions": {"source": "data/survey.csv"},
    "/freeze": {},
    "/decision": {"decision": "decline"},
    "/amend": {"purpose": "another"},
    "/seats": {"login": "ben", "budget": {"mu": 0.01}},
    "/previews": MEAN,
    "/questions": MEAN,
    "/reservations": {"spend": {"mu": 0.01}},
    "/me/password": None,
}
NOBODY = {
    "dataset": "ds_00000000000000000000",
    "study": "st_00000000000000000000",
    "answer": "an_00000000000000000000",
    "node": "0" * 32,
    "token": "to_00000000000000000000",
    "person": "pe_00000000000000000000",
    "reservation": "re_bm9uZQ",
    "population": "po_00000000000000000000",
}
MALFORMED = ("x", "%27%20OR%201%3D1--", "..%2F..%2Fetc", "a" * 200, "é", "{}", "ds_%00")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("isolation"))


@pytest.fixture(scope="module")
def foreign(here: Curator) -> dict[str, str]:
    return planted(here)


def planted(here: Curator) -> dict[str, str]:
    """Ids of things that are Anna's and Olga's alone."""
    made = here.register("hidden", listed=True)
    study = here.study(made["id"])
    with here.desk.office.database.write() as rows:
        rows.changed("UPDATE datasets SET listed = 0 WHERE id = ?", made["id"])
    anna = here.client("anna")
    path = f"/v1/studies/{study['id']}"
    asked = anna.post(f"{path}/questions", json=MEAN, headers={"Idempotency-Key": "k"}).json()
    held = anna.post(
        f"{path}/reservations", json={"spend": {"mu": 0.01}}, headers={"Idempotency-Key": "r"}
    ).json()
    tokens = anna.get("/v1/tokens").json()["tokens"]
    people = here.desk.populations.make(
        here.person("olga"), name="hidden", neighbors="replace", budget={"mu": 1.0}
    )
    return {
        "dataset": made["id"],
        "study": study["id"],
        "answer": asked["answer"],
        "node": study["seat"]["node"],
        "token": tokens[0]["id"],
        "person": here.person("anna").id,
        "reservation": held["reservation"],
        "population": people["id"],
    }


def calls(here: Curator) -> list[tuple[str, str, Any]]:
    """Method, path and body of every operation that names something."""
    document = here.client().get("/v1/openapi.json").json()
    found = []
    for path, methods in document["paths"].items():
        if "{" not in path:
            continue
        ending = "/" + path.rpartition("/")[2]
        for method in methods:
            found.append((method.upper(), path, BODIES.get(ending, {})))
    return found


def release_body(here: Curator) -> dict[str, Any]:
    import discreet as dp
    from discreet.estimators.questions import mean_question

    study = here.desk.studies.listed(here.person("anna"))[0]
    public = here.connection("anna").open(study["dataset_name"], study=study["name"]).public
    return {"question": mean_question(public, "income", spend=dp.GDP(0.01)).to_dict()}


def outcome(client: Any, method: str, path: str, ids: dict[str, str], body: Any) -> Any:
    for name, one in ids.items():
        path = path.replace(f"{{{name}}}", one)
    json_body = body if method == "POST" else None
    answer = client.request(method, path, json=json_body, headers={"Idempotency-Key": "probe"})
    return answer.status_code, answer.content


def test_foreign_absent_and_malformed_ids_are_alike(here: Curator, foreign: dict[str, str]) -> None:
    """Ben and Otto have nothing; the operator and the auditor no part in answers."""
    releases = release_body(here)
    before = state(here)
    absent = here.client("ben").get(f"/v1/answers/{NOBODY['answer']}").content
    probes, revealed = 0, []
    listed = calls(here)
    assert len(listed) > 25
    for login in ("ben", "otto", "op", "ada"):
        client = here.client(login)
        for method, path, usual in listed:
            body = releases if path.endswith("/releases") else usual
            if login == "op" and path.startswith("/v1/people"):
                continue  # their own business
            if login == "ada" and not path.startswith(("/v1/answers", "/v1/tokens", "/v1/people")):
                continue  # auditors see what stands in ledgers
            found = [outcome(client, method, path, NOBODY, body)]
            found.append(outcome(client, method, path, foreign, body))
            for one in MALFORMED[: 7 if login == "ben" else 2]:
                found.append(outcome(client, method, path, dict.fromkeys(NOBODY, one), body))
            probes += len(found)
            statuses = {status for status, _ in found}
            if found[0] != found[1] or not statuses <= {403, 404, 422} or 500 in statuses:
                revealed.append((login, method, path, found[:2]))
            if any(status == 404 and text != absent for status, text in found):
                revealed.append((login, method, path, found))
    assert not revealed, revealed[:3]
    assert probes > 200
    assert state(here) == before, "no probe changed anything"


def state(here: Curator) -> Any:
    with here.desk.office.database.read() as rows:
        found = [
            rows.run(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
            for table in (
                "datasets",
                "versions",
                "studies",
                "seats",
                "questions",
                "people",
                "populations",
            )
        ]
    trees = [
        here.desk.office.trees.problems(row["id"]) or here.desk.office.trees.tree(row["id"]).roots()
        for row in found[0]
    ]
    return json.dumps([found, [str(one) for one in trees]], default=str)


def test_nothing_is_listed_for_those_who_have_none(here: Curator, foreign: dict[str, str]) -> None:
    for login in ("ben", "otto"):
        client = here.client(login)
        assert client.get("/v1/datasets").json() == {"datasets": []}
        assert client.get("/v1/studies").json() == {"studies": []}
    assert here.client("ada").get("/v1/datasets").json()["datasets"]
    assert set(PEOPLE) >= {"ben", "otto", "ada"}


def test_a_carved_seat_sees_the_same_whatever_its_neighbour_asks(here: Curator) -> None:
    made = here.register("neighbours")
    mine = here.study(made["id"], name="mine", login="anna", budget={"mu": 0.5})
    other = here.study(made["id"], name="other", login="ben", budget={"mu": 0.5})
    anna, ben = here.client("anna"), here.client("ben")

    def seen() -> list[bytes]:
        return [
            anna.get(path).content
            for path in (
                "/v1/datasets",
                f"/v1/datasets/{made['id']}",
                f"/v1/studies/{mine['id']}",
                f"/v1/ledger/{mine['seat']['node']}",
                f"/v1/studies/{mine['id']}/answers",
            )
        ]

    before = seen()
    for number in range(20):
        asked = ben.post(
            f"/v1/studies/{other['id']}/questions",
            json=MEAN,
            headers={"Idempotency-Key": f"neighbour {number}"},
        )
        assert asked.json()["status"] == "answered"
    assert seen() == before
