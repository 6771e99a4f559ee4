"""Requests for studies: asked, amended, approved for another budget, declined, over; every step
stands in the hash chain, with the terms as they then were.
"""

from __future__ import annotations

import contextlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from curators import Curator, curator

from discreet.errors import DiscreetError
from discreet.server.desk.studies import _update
from discreet.server.refusals import status_of
from discreet.server.work.keeper import Keeper


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("approvals"))


def notes(here: Curator, node: str) -> list[dict[str, Any]]:
    """The decisions that stand in a chain, oldest first."""
    dataset = here.desk.datasets.listed(here.person("olga"))
    found = []
    for data in dataset:
        tree = here.desk.office.trees.tree(data["id"])
        with tree._places.database.read() as work:
            for line in work.ask(
                (
                    "SELECT body FROM tree_lines WHERE kind = 'note' AND chain = ? ORDER BY number",
                    (node,),
                )
            )[0]:
                told = json.loads(line[0])
                found.append({"kind": told["kind"], **json.loads(told["body"])})
    return found


def test_asked_amended_and_approved_for_less(here: Curator) -> None:
    data = here.register("amended")
    anna, olga = here.client("anna"), here.client("olga")
    body = {"dataset": data["id"], "name": "wages", "purpose": "wages", "budget": {"mu": 1.5}}
    asked = anna.post("/v1/studies", json=body | {"members": ["anna", "ben"]}).json()
    assert asked["state"] == "requested"
    path = f"/v1/studies/{asked['id']}"
    assert anna.post(f"{path}/decision", json={"decision": "approve"}).status_code == 403
    amended = anna.post(f"{path}/amend", json={"budget": {"mu": 1.2}, "plan": ["mean"]})
    assert amended.json()["budget"] == {"mu": 1.2}
    assert here.client("ben").post(f"{path}/amend", json={"purpose": "mine"}).status_code == 404
    words = {
        "decision": "approve",
        "budget": {"mu": 1.0},
        "reason": "enough",
        "ask_above": {"mu": 0.5},
    }
    told = olga.post(f"{path}/decision", json=words).json()
    assert (told["state"], told["budget"], told["ask_above"]) == ("open", {"mu": 1.0}, {"mu": 0.5})
    assert olga.post(f"{path}/decision", json={"decision": "decline"}).status_code == 409
    assert anna.post(f"{path}/amend", json={"purpose": "more"}).status_code == 409
    seats = [here.client(login).get(path).json()["seat"]["boxes"][0] for login in ("anna", "ben")]
    assert [seat["budget"] for seat in seats] == [seats[0]["budget"]] * 2, "members share it"
    steps = notes(here, data["node"])
    assert [one["kind"] for one in steps] == ["requested", "amended", "approved"]
    assert [one["budget"]["mu"] for one in steps] == [1.5, 1.2, 1.0]
    assert len({one["terms"] for one in steps}) == 3, "what changed is told by the digest"
    assert [one["by"] for one in steps] == ["anna", "anna", "olga"]


def test_declined_costs_nothing(here: Curator) -> None:
    data = here.register("declined")
    study = here.desk.studies.ask(
        here.person("anna"), dataset=data["id"], name="all", purpose="all", budget={"mu": 2.0}
    )
    told = here.desk.studies.decide(
        here.person("olga"), study["id"], decision="decline", reason="too much " * 200
    )
    assert (told["state"], "seat" in told) == ("declined", False)
    assert here.desk.office.trees.box(data["id"], data["node"]).spent.mu_squared == 0
    assert notes(here, data["node"])[-1]["kind"] == "declined"
    with pytest.raises(DiscreetError) as refused:
        here.desk.named.ask(
            here.person("anna"),
            study["id"],
            asked={"estimator": "mean", "column": "income", "spend": {"mu": 0.1}},
            key="k",
        )
    assert status_of(refused.value) == 404


def test_too_much_leaves_the_request_undecided(here: Curator) -> None:
    data = here.register("small", budget={"mu": 0.5})
    study = here.desk.studies.ask(
        here.person("anna"), dataset=data["id"], name="all", purpose="all", budget={"mu": 0.6}
    )
    with pytest.raises(DiscreetError) as refused:
        here.desk.studies.decide(here.person("olga"), study["id"], decision="approve")
    assert status_of(refused.value) == 409
    assert here.desk.studies.one(here.person("olga"), study["id"])["state"] == "requested"


def test_over_at_its_end_and_the_rest_goes_back(tmp_path: Path) -> None:
    here = curator(tmp_path)
    data = here.register()
    study = here.study(data["id"], expires_at=here.clock() + 10)
    mean = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}
    asked = here.desk.named.ask(here.person("anna"), study["id"], asked=mean, key="before")
    here.clock.now += 10
    with pytest.raises(DiscreetError, match="closed") as refused:
        here.desk.named.ask(here.person("anna"), study["id"], asked=mean, key="after")
    assert status_of(refused.value) == 423
    keeper = Keeper(here.desk.office.settings, here.desk.office.database)
    try:
        assert keeper.expire() == 1
        assert keeper.expire() == 0
    finally:
        keeper.stop()
    box = here.desk.office.trees.box(data["id"], data["node"])
    assert box.spent.exact().mu_squared <= 0.0101, "what was not spent went back"
    assert here.desk.studies.one(here.person("anna"), study["id"])["state"] == "closed"
    told = here.desk.named.look(here.person("anna"), asked["answer"])
    assert told["status"] == "answered", "what was paid can still be read"
    assert notes(here, study["seat"]["boxes"][-1]["node"]) == []
    assert here.desk.office.trees.problems(data["id"]) == []


def test_what_was_amended_since_it_was_read_is_not_approved(here: Curator) -> None:
    data = here.register("changed")
    anna, olga = here.client("anna"), here.client("olga")
    body = {"dataset": data["id"], "name": "wages", "purpose": "wages", "budget": {"mu": 0.1}}
    path = f"/v1/studies/{anna.post('/v1/studies', json=body).json()['id']}"
    read = olga.get(path).json()
    assert anna.post(f"{path}/amend", json={"budget": {"mu": 1.9}}).status_code == 200
    late = {"decision": "approve", "terms": read["terms"]}
    assert olga.post(f"{path}/decision", json=late).status_code == 409
    again = olga.get(path).json()
    assert (again["state"], again["budget"]) == ("requested", {"mu": 1.9})
    told = olga.post(f"{path}/decision", json=late | {"terms": again["terms"]}).json()
    assert told["state"] == "open"
    with here.desk.office.database.write() as rows, pytest.raises(DiscreetError, match="already"):
        _update(rows, told["id"], {"purpose": "written too late"}, of=("requested",))
    assert olga.get(path).json()["purpose"] == "wages"


def test_of_two_decisions_at_once_one_is_made(here: Curator) -> None:
    data = here.register("twice")
    study = here.study(data["id"], ask_above={"mu": 0.01})
    node = here.desk.office.trees.node(data["id"], study["seat"]["node"])
    question = {"estimator": "mean", "column": "income", "spend": {"mu": 0.1}}
    for turn in range(4):
        asked = here.desk.named.ask(
            here.person("anna"), study["id"], asked=question, key=f"turn {turn}"
        )
        assert asked["status"] == "waiting"
        waiting = here.desk.questions.waiting(here.person("olga"))[0]["answer"]
        together, made = threading.Barrier(2), list[str]()

        def decide(decision: str, answer: str = waiting, together: Any = together) -> None:
            together.wait()
            with contextlib.suppress(DiscreetError):
                here.desk.questions.decide(here.person("olga"), answer, decision=decision)
                made.append(decision)  # noqa: B023

        threads = [threading.Thread(target=decide, args=(one,)) for one in ("approve", "decline")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1, "the other one is told that it was decided"
        debits = [one.key for one in node.entries() if one.kind == "debit"]
        assert any(f"turn {turn}" in key for key in debits) == (made == ["approve"])
