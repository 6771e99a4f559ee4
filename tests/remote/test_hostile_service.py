"""A service that does not keep to its words: nothing is believed that can be known beforehand, the
token goes nowhere else, and what is no answer is refused in four parts.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from remote_asks import RELATIONS, SCHEMA, survey

import discreet as dp
from discreet.errors import DiscreetError
from discreet.remote.dummy import HereSeat
from discreet.remote.receipts import Receipts
from discreet.remote.service import Service, StudySeat
from discreet.remote.session import RemoteSession

STUDY = {"id": "st", "name": "wages"}
DATA = dp.from_arrays(survey(), schema=SCHEMA, neighbors=RELATIONS[0])


class Curator:
    """A service over one seat, which says `change(path, told)` in the place of `told`."""

    def __init__(self, change: Any = lambda path, told: told) -> None:
        self.seat, self.change, self.asked = HereSeat(DATA.open(budget=dp.GDP(9))), change, []
        self.service = Service(
            "https://curator.example",
            "dct_secret",
            receipts=Receipts(),
            patience=0.0,
            transport=httpx.MockTransport(self.answer),
            sleep=lambda seconds: None,
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        path = request.url.path
        if path.endswith("/releases"):
            body, key = json.loads(request.content), request.headers["Idempotency-Key"]
            release = self.seat.release(body["question"], key, None)
            told: Any = {"status": "answered", "release": release}
        elif path.startswith("/v1/ledger"):
            after = int(request.url.params["after"])
            told = {"entries": [one for one in self.seat.entries() if one["number"] > after]}
        else:
            told = {"seat": {"boxes": [box | {"node": "n"} for box in self.seat.boxes()]}}
        return httpx.Response(200, json=self.change(path, told))

    def session(self) -> RemoteSession:
        return RemoteSession(StudySeat(self.service, self.seat.facts(), STUDY))


def changed(**words: Any) -> Any:
    """A release with other words."""

    def change(path: str, told: Any) -> Any:
        if "release" in told:
            told["release"] |= words
        return told

    return change


def test_an_honest_service_is_understood() -> None:
    session = Curator().session()
    found = dp.mean(session, "income", spend=dp.GDP(0.5), key="a")
    assert not found.release.made_up
    assert [entry.key for entry in session.ledger.entries() if entry.kind == "debit"] == ["a"]


LIES: dict[str, dict[str, Any]] = {
    "another spend": {"spend": dp.GDP(0.1).to_dict()},
    "another guarantee": {"guarantee": dp.GDP(0.1).to_dict()},
    "another relation": {"neighbors": dp.AddRemove().to_dict()},
    "another number of rows": {"public_count": 4000},
    "another question": {"asked": {"estimator": "median"}},
    "another key": {"key": "b"},
    "other values filled in": {"filled": [["income", "0"]]},
    "a number more": {"integers": ["1"] * 9},
    "no numbers": {"integers": [1, 2]},
    "endless digits": {"integers": ["9" * 5000]},
    "no place": {"entry": True},
    "no hash": {"entry_hash": "x"},
}


@pytest.mark.parametrize("lie", LIES)
def test_what_was_not_asked_is_refused(lie: str) -> None:
    with pytest.raises(DiscreetError):
        dp.mean(Curator(changed(**LIES[lie])).session(), "income", spend=dp.GDP(0.5), key="a")


def test_made_up_answers_stay_made_up() -> None:
    """The service says that it made them up: nobody reads them as others."""
    found = dp.mean(Curator(changed(made_up=True)).session(), "income", spend=dp.GDP(0.5), key="a")
    assert found.release.made_up


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"status": "ready"},
        {"status": "ready", "answer": 7},
        {"status": "answered"},
        {"entries": 3},
    ],
    ids=str,
)
def test_answers_that_are_none_are_refused_in_four_parts(told: dict[str, Any]) -> None:
    ends = ("/releases", "/n")
    session = Curator(lambda path, right: told if path.endswith(ends) else right).session()
    with pytest.raises(DiscreetError):
        dp.mean(session, "income", spend=dp.GDP(0.5), key="a")
    with pytest.raises(DiscreetError):
        session.ledger.entries()


def test_an_answer_is_waited_for_where_it_was_asked() -> None:
    """The place that a service names is one name below /v1/answers."""
    curator = Curator(
        lambda path, right: (
            {"status": "ready", "answer": "../../elsewhere?x#"}
            if path.endswith("/releases")
            else right
        )
    )
    curator.service.patience = 60.0
    with pytest.raises(DiscreetError):
        dp.mean(curator.session(), "income", spend=dp.GDP(0.5), key="a")
    asked = [one.url for one in curator.asked if b"elsewhere" in one.url.raw_path]
    assert asked
    assert all(url.raw_path.startswith(b"/v1/answers/..%2F..%2Felsewhere%3Fx%23?") for url in asked)
    assert {url.host for url in (one.url for one in curator.asked)} == {"curator.example"}


@pytest.mark.parametrize("host", ["http://localhost:8000", "http://127.0.0.1:8000"])
def test_a_proxy_is_not_shown_the_token_of_a_service_of_this_machine(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    client = Service(host, "dct_secret", receipts=Receipts(), patience=1.0)._client
    sent = client._transport_for_url(httpx.URL(f"{host}/v1/me"))
    assert sent is client._transport
