"""Pages by HTTP: signing in, asking, deciding; what is not somebody's, and what others may send."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from curators import PASSWORD, Curator, curator

from discreet.server.accounts import sessions
from discreet.server.pages.site import within

OURS = {"Sec-Fetch-Site": "same-origin"}
EVIL = "=1+<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def data(here: Curator) -> Any:
    return here.register(description=EVIL, reasons={"income": EVIL})


@pytest.fixture(scope="module")
def study(here: Curator, data: Any) -> Any:
    return here.study(data["id"], purpose=EVIL)


def browser(here: Curator, login: str) -> Any:
    """A client that is signed in, and sends what a browser sends."""
    client = here.client()
    client.headers.update(OURS)
    person = here.person(login)
    with here.desk.office.database.write() as rows:
        secret = sessions.begin(rows, person.id, here.clock())
    client.cookies.set("__Host-discreet", secret, domain="curator.test")
    return client


def hidden(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None, text
    return html.unescape(found[1])


def previewed(client: Any, study: str, **more: Any) -> Any:
    form = {"estimator": "mean", "column": "income", "spend_kind": "mu", "spend_amount": "0.1"}
    return client.post(f"/studies/{study}/preview", data=form | more)


def test_a_question_from_the_form_to_the_answer(here: Curator, study: Any) -> None:
    client = browser(here, "anna")
    place = f"/studies/{study['id']}"
    before = here.desk.studies.one(here.person("anna"), study["id"])["seat"]["boxes"][0]
    shown = previewed(client, study["id"], where1low="40", where2="1")
    assert shown.status_code == 200
    asked = json.loads(hidden(shown.text, "asked"))
    assert asked["where"] == {"income": [40, None], "region": ["N"]}
    key = hidden(shown.text, "key")
    now = here.desk.studies.one(here.person("anna"), study["id"])["seat"]["boxes"][0]
    assert now == before, "a preview spends nothing"
    form = {"asked": json.dumps(asked), "key": key}
    unsure = client.post(f"{place}/ask", data=form)
    assert unsure.status_code == 422
    assert "cannot be undone" in unsure.text
    asked_once = client.post(f"{place}/ask", data=form | {"sure": "yes"})
    asked_twice = client.post(f"{place}/ask", data=form | {"sure": "yes"})
    assert asked_once.status_code == 303
    assert asked_once.headers["location"] == asked_twice.headers["location"]
    after = here.desk.studies.one(here.person("anna"), study["id"])["seat"]["boxes"][0]
    assert after["spent"]["mu_squared"] == "0.01", "paid for once"
    for _ in range(2):
        answer = client.get(asked_once.headers["location"])
        assert answer.status_code == 200
        assert "95% interval" in answer.text
        assert "dp.mean(session, column=" in html.unescape(answer.text)
        assert "Idempotency-Key" in answer.text
    again = here.desk.studies.one(here.person("anna"), study["id"])["seat"]["boxes"][0]
    assert again == after, "reading is free"
    assert key in html.unescape(client.get(place).text)


@pytest.mark.slow
def test_every_form_of_the_builder_gives_a_preview(here: Curator, study: Any) -> None:
    from discreet.server.pages.builder import ESTIMATORS

    client = browser(here, "anna")
    words = {
        "count": {"where2": "1"},
        "mode": {"column": "region"},
        "proportion": {"column": "region", "level": "region:2"},
        "table": {"by": "region", "column": "income", "by2": "age", "by2bins": "18, 40, 90"},
        "compare": {"column": "region", "by": "region", "level": "region:1"},
        "compare_means": {"by": "region"},
        "independence_test": {"first": "region", "second": "region"},
        "describe": {"columns": ["income", "age"]},
        "missing": {"columns": ["income", "age"]},
        "correlation": {"columns": ["income", "age"]},
        "quantile": {"q": "0.9"},
        "quantiles": {"qs": "0.25, 0.5"},
        "mean_test": {"null": "40"},
        "histogram": {"bins": "10"},
    }
    models = ("ols", "robust", "logistic", "poisson")
    words |= {one: {"formula": "age ~ income"} for one in models}
    refused = {"compare", "logistic", "independence_test"}  # the columns here are not for them
    for one in ESTIMATORS:
        page = client.get(f"/studies/{study['id']}/ask?estimator={one.name}")
        assert page.status_code == 200
        if one.name in refused:
            continue
        shown = previewed(client, study["id"], estimator=one.name, **words.get(one.name, {}))
        assert shown.status_code == 200, (one.name, re.findall("<h2>.*", shown.text))
        assert 'class="spend-now"' in shown.text
    own = '{"estimator": "variance", "column": "income"}'
    assert previewed(client, study["id"], estimator="words", words=own).status_code == 200
    assert previewed(client, study["id"], estimator="words", words="[").status_code == 422
    assert previewed(client, study["id"], column="wealth").status_code == 422
    assert previewed(client, study["id"], spend_amount="much").status_code == 422


def test_made_up_rows_are_said_to_be(here: Curator, study: Any, data: Any) -> None:
    client = browser(here, "anna")
    shown = previewed(client, study["id"], rehearse="yes")
    assert shown.status_code == 200
    assert "made-up rows" in shown.text
    assert "Nothing here is about anybody" in shown.text
    page = client.get(f"/datasets/{data['id']}/dummy")
    assert "not data" in page.text
    file = client.get(f"/datasets/{data['id']}/dummy.csv")
    assert 'filename="made-up-rows.csv"' in file.headers["content-disposition"]


def test_past_the_budget_says_what_fits(here: Curator, study: Any) -> None:
    client = browser(here, "anna")
    asked = {"estimator": "mean", "column": "income", "spend": {"mu": 50}}
    form = {"asked": json.dumps(asked), "key": "too much", "sure": "yes"}
    refused = client.post(f"/studies/{study['id']}/ask", data=form)
    assert refused.status_code == 409
    assert "Largest spend that fits" in refused.text


def test_what_people_wrote_is_text(here: Curator, data: Any, study: Any) -> None:
    """No page of anybody holds what somebody wrote as anything but text."""
    asked = {"estimator": "mean", "column": "income", "spend": {"mu": 0.01}}
    form = {"key": EVIL, "asked": json.dumps(asked), "sure": "yes"}
    client = browser(here, "anna")
    answer = client.post(f"/studies/{study['id']}/ask", data=form).headers["location"]
    seat = study["seat"]["node"]
    places = {
        "anna": ["/studies", f"/studies/{study['id']}", f"/datasets/{data['id']}", answer,
                 f"/ledger/{seat}", "/datasets", f"/studies/{study['id']}/ask"],
        "olga": ["/datasets", f"/datasets/{data['id']}", f"/studies/{study['id']}", "/requests",
                 f"/ledger/{seat}", f"/ledger/{data['node']}", "/studies"],
        "ada": ["/datasets", f"/datasets/{data['id']}", f"/ledger/{seat}", "/studies"],
    }  # fmt: skip
    for login, paths in places.items():
        client = browser(here, login)
        for path in paths:
            page = client.get(path)
            assert page.status_code == 200, path
            assert "<script>" not in page.text, path
            assert " style=" not in page.text, path
            assert not re.search(r"\son[a-z]+=", page.text), path
    assert html.escape(EVIL) in client.get(f"/datasets/{data['id']}").text.replace(
        "&#34;", "&quot;"
    ).replace("&#39;", "&#x27;")


def test_the_policy_of_every_page(here: Curator, study: Any) -> None:
    client = browser(here, "anna")
    for path in ("/login", "/studies", f"/studies/{study['id']}/ask", "/nowhere"):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
    styled = re.search(r'href="(/static/style.css[^"]*)"', client.get("/login").text)
    assert styled is not None
    assert client.get(styled[1]).headers["content-type"].startswith("text/css")
    assert client.get("/static/..%2fsite.py").status_code == 404
    assert client.get("/static/site.py").status_code == 404


def test_other_sites_change_nothing(here: Curator, study: Any) -> None:
    """CSRF: every form refuses what no page of ours sent, signed in or not."""
    client = browser(here, "olga")
    dataset = study["dataset"]
    forms = [
        "/login", "/logout", "/account/tokens", "/account/password", "/account/elsewhere",
        "/datasets/new", f"/datasets/{dataset}/freeze", f"/datasets/{dataset}/close",
        "/studies/new", f"/studies/{study['id']}/decision", f"/studies/{study['id']}/close",
        "/people", f"/ledger/{dataset}/verify",
    ]  # fmt: skip
    foreign: list[dict[str, str]] = [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
        {},
    ]
    for headers in foreign:
        for path in forms:
            del client.headers["Sec-Fetch-Site"]
            client.headers.update(headers)
            answer = client.post(path, data={"login": "olga", "password": PASSWORD})
            assert answer.status_code == 403, (path, headers)
            for name in headers:
                del client.headers[name]
            client.headers.update(OURS)
    assert here.desk.datasets.one(here.person("olga"), dataset)["state"] == "open"
    assert client.get("/datasets").status_code == 200, "still signed in"


def test_what_is_not_yours_is_not_there(here: Curator, study: Any) -> None:
    """Foreign and absent ids have the same page, byte by byte."""
    asked = {"estimator": "mean", "column": "age", "spend": {"mu": 0.01}}
    form = {"asked": json.dumps(asked), "key": "of anna", "sure": "yes"}
    told = browser(here, "anna").post(f"/studies/{study['id']}/ask", data=form)
    answer = told.headers["location"].removeprefix("/answers/")
    seat = study["seat"]["node"]
    ids = {"studies": study["id"], "answers": answer, "ledger": seat}
    absent = {"studies": "st_" + "0" * 20, "answers": "an_" + "0" * 20, "ledger": "0" * 32}
    for login in ("ben", "otto"):
        client = browser(here, login)
        for kind, held in ids.items():
            for tail in ("", "/ask", "/preview", "/verify", "/decision", "/amend", "/close"):
                for act in (client.get, client.post):
                    more: Any = {"data": {"decision": "approve"}} if act == client.post else {}
                    there = act(f"/{kind}/{held}{tail}", **more)
                    none = act(f"/{kind}/{absent[kind]}{tail}", **more)
                    assert there.status_code == none.status_code, (login, kind, tail)
                    assert there.status_code in (403, 404, 405), (login, kind, tail)
                    assert there.content == none.content, (login, kind, tail)


def test_roles_are_kept_apart(here: Curator, study: Any) -> None:
    tries = {
        "anna": ["/datasets/new", "/people", "/requests"],
        "ada": ["/datasets/new", "/people", "/requests", "/studies/new"],
        "olga": ["/people"],
        "op": ["/datasets", "/datasets/new", "/studies", "/requests"],
    }
    for login, paths in tries.items():
        client = browser(here, login)
        for path in paths:
            assert client.get(path).status_code in (403, 404), (login, path)


def test_nobody_is_asked_to_sign_in_and_goes_on(here: Curator, study: Any) -> None:
    client = here.client()
    away = client.get(f"/studies/{study['id']}")
    assert away.status_code == 303
    assert away.headers["location"] == f"/login?to=/studies/{study['id']}"
    form = {"login": "anna", "password": PASSWORD, "to": f"/studies/{study['id']}"}
    back = client.post("/login", data=form, headers=OURS)
    assert back.headers["location"] == f"/studies/{study['id']}"
    for to in ("https://evil.test/", "//evil.test", "/\\evil.test", "/v1/me", "javascript:1"):
        assert within(to) == "/"
    wrong = here.client().post("/login", data={"login": "anna", "password": "x"}, headers=OURS)
    nobody = here.client().post("/login", data={"login": "zoe", "password": "x"}, headers=OURS)
    assert (wrong.status_code, nobody.status_code) == (401, 401)
    assert wrong.text.replace("anna", "zoe") == nobody.text


def test_a_login_by_the_page_ends_what_was_planted(here: Curator) -> None:
    planted = browser(here, "ben").cookies["__Host-discreet"]
    client = here.client()
    cookie = {"Cookie": f"__Host-discreet={planted}"}
    form = {"login": "anna", "password": PASSWORD}
    fresh = client.post("/login", data=form, headers=OURS | cookie)
    assert fresh.cookies["__Host-discreet"] != planted
    assert here.client().get("/studies", headers=cookie).status_code == 303


def test_the_tutorial_names_what_the_pages_show() -> None:
    """What stands bold in the tutorial can be read on a page."""
    root = Path(__file__).parents[2]
    pages = (root / "src/discreet/server/pages/templates").glob("*.html")
    shown = re.sub(r"\s+", " ", " ".join(page.read_text() for page in pages))
    named = re.findall(r"\*\*([^*]+)\*\*", (root / "docs/tutorials/curator.md").read_text())
    assert len(named) >= 10
    assert [name for name in named if name not in shown] == []


def test_odd_bodies_are_refused(here: Curator) -> None:
    client = browser(here, "anna")
    for body in (b"%00", b"\xff\xfe", b"name=%00", b"&".join(b"a=1" for _ in range(4000))):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = client.post("/studies/new", content=body, headers=kind)
        assert 400 <= answer.status_code < 500, body[:20]
    assert client.post("/studies/new", json={"name": "x"}).status_code == 422
