"""What owners, analysts and operators do by forms; and what data hold, where a page shows it."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from curators import PASSWORD, SCHEMA, Curator, curator, write_survey
from test_pages import OURS, browser, hidden, previewed

pytestmark = pytest.mark.slow

HOSTILE = (
    "<script>alert(1)</script>",
    "=HYPERLINK(\"https://evil.test\")",
    "\" onload=\"alert(1)",
    "@SUM(1)",
    "]]><svg onload=alert(1)>",
    "--><script>alert(1)</script><!--",
)  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator(tmp_path_factory.mktemp("forms"))


def declared(**more: Any) -> dict[str, Any]:
    """The form of a data set, filled in."""
    form: dict[str, Any] = {"name": "by form", "source": "data/survey.csv", "sure": "yes"}
    for line, (name, told) in enumerate(SCHEMA.items()):
        form |= {f"column{line}": name, f"kind{line}": told["kind"], f"why{line}": "known"}
        form |= {f"low{line}": told.get("low", ""), f"high{line}": told.get("high", "")}
        form |= {f"levels{line}": ", ".join(told.get("levels", []))}
    budget = {"budget_kind": "epsilon_delta", "budget_amount": "2", "budget_delta": "1e-6"}
    return form | budget | {"listed": "yes", "relation": "replace"} | more


def test_from_a_file_to_an_approved_study(here: Curator) -> None:
    owner, analyst = browser(here, "olga"), browser(here, "anna")
    unsure = owner.post("/datasets/new", data=declared(sure=""))
    assert unsure.status_code == 422
    assert 'value="income"' in unsure.text, "what was filled in is kept"
    followed = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin"}
    seen = owner.post("/datasets/new", data=declared(sure=""), headers=followed)
    assert (seen.status_code, seen.text) == (200, unsure.text), "no fault for a browser to log"
    assert 'name="column15"' in owner.post("/datasets/new", data=declared(more="yes")).text
    odd = owner.post("/datasets/new", data=declared(low0="much"))
    assert "it is no number" in odd.text, re.findall("<h2>.*", odd.text)
    away = owner.post("/datasets/new", data=declared(source="data/../state/rows.csv"))
    assert (away.status_code, "no such file" in away.text) == (422, True)
    place = owner.post("/datasets/new", data=declared()).headers["location"].partition("?")[0]
    dataset = place.removeprefix("/datasets/")
    told = here.desk.datasets.one(here.person("olga"), dataset)
    assert told["budget"] == {"epsilon": 2.0, "delta": 1e-6}
    assert {name: one["kind"] for name, one in told["schema"].items()} == {
        name: one["kind"] for name, one in SCHEMA.items()
    }
    request = {"dataset": dataset, "name": "pay", "purpose": "why", "budget_amount": "0.3"}
    sent = analyst.post("/studies/new", data=request)
    assert sent.status_code == 303, re.findall("<h2>.*", sent.text)
    study = sent.headers["location"].partition("?")[0]
    amended = analyst.post(f"{study}/amend", data=request | {"purpose": "what for"})
    assert amended.status_code == 303, re.findall("<h2>.*", amended.text)
    assert amended.headers["location"] == f"{study}?said=amended"
    assert "what for" in owner.get("/requests").text
    decision = {"decision": "approve", "budget_amount": "0.2", "above_amount": "0.1"}
    for _ in range(2):  # the second time tells how it stands
        done = owner.post(f"{study}/decision", data=decision | {"expires": "2027-01-31"})
        assert done.headers["location"] == f"{study}?said=approved"
    name = study.removeprefix("/studies/")
    one = here.desk.studies.one(here.person("anna"), name)
    assert (one["budget"], one["ask_above"]) == ({"mu": 0.2}, {"mu": 0.1})
    waiting = asked(analyst, name, spend_amount="0.15")
    assert "The owner is asked first" in analyst.get(waiting).text
    assert "mean of income" in owner.get("/requests").text
    answer = waiting.removeprefix("/answers/")
    let = owner.post(f"/answers/{answer}/decision", data={"decision": "approve"})
    assert let.headers["location"] == "/requests?said=approved"
    assert "95% interval" in analyst.get(waiting).text
    seat = owner.post(f"{study}/seats", data={"login": "ben", "budget_amount": "5"})
    assert seat.status_code == 409
    assert owner.post(f"{study}/close").headers["location"] == f"{study}?said=closed"
    assert analyst.get(waiting).status_code == 200, "answers can still be read"


def asked(client: Any, study: str, **more: Any) -> str:
    """The address of a question that was previewed and confirmed."""
    shown = previewed(client, study, **more)
    assert shown.status_code == 200, re.findall("<h2>.*", shown.text)
    form = {name: hidden(shown.text, name) for name in ("asked", "key")} | {"sure": "yes"}
    done = client.post(f"/studies/{study}/ask", data=form)
    assert done.status_code == 303, re.findall("<h2>.*", done.text)
    place: str = done.headers["location"]
    return place


def test_an_owner_stops_and_goes_on(here: Curator) -> None:
    owner = browser(here, "olga")
    data = here.register("stopped")
    place = f"/datasets/{data['id']}"
    study = here.study(data["id"])
    owner.post(f"{place}/freeze", data={"reason": "an <b>audit</b>"})
    assert "an &lt;b&gt;audit" in owner.get(place).text
    form = {"asked": json.dumps({"estimator": "mean", "column": "age", "spend": {"mu": 0.1}})}
    analyst = browser(here, "anna")
    refused = analyst.post(f"/studies/{study['id']}/ask", data=form | {"key": "k", "sure": "yes"})
    assert refused.status_code == 423
    owner.post(f"{place}/thaw", data={})
    new = owner.post(f"{place}/versions", data={"source": "data/survey.csv"})
    assert new.headers["location"] == f"{place}?said=version"
    assert owner.post(f"{place}/close", data={}).status_code == 422, "it is not ticked"
    assert owner.post(f"{place}/close", data={"sure": "yes"}).status_code == 303
    assert owner.post(f"{place}/burn", data={}).status_code == 404
    assert "closed" in owner.get(place).text


def test_an_operator_invites_and_locks_out(here: Curator) -> None:
    operator = browser(here, "op")
    form = {"login": "zoe", "name": "Zoe <i>", "role": "analyst"}
    made = operator.post("/people", data=form)
    password = re.search(r'class="secret">([^<]+)<', made.text)
    assert password is not None
    assert "<i>" not in made.text
    assert operator.post("/people", data=form).status_code == 409
    zoe = here.client()
    words = {"login": "zoe", "password": password[1]}
    assert zoe.post("/login", data=words, headers=OURS).status_code == 303
    whom = re.search(r"/people/(pe_\w+)/lock\"[^/]*Lock out<span class=\"unseen\"> zoe", made.text)
    assert whom is not None
    operator.post(f"/people/{whom[1]}/lock")
    assert zoe.get("/studies").headers["location"] == "/login?to=/studies"
    assert "Let in" in operator.get("/people").text
    assert operator.post(f"/people/{whom[1]}/unlock").status_code == 303
    assert operator.post("/people/pe_none/lock").status_code == 404


def test_tokens_and_passwords(here: Curator) -> None:
    ben = browser(here, "ben")
    made = ben.post("/account/tokens", data={"name": "laptop", "scopes": ["read"], "days": "1"})
    token = re.search(r"dct_[\w-]{43}", made.text)
    assert token is not None
    assert token[0] not in ben.get("/account").text, "it is shown once"
    bearer = {"Authorization": f"Bearer {token[0]}"}
    assert here.client().get("/v1/me", headers=bearer).json()["scopes"] == ["read"]
    assert ben.post("/account/tokens", data={"name": "n", "days": "1"}).status_code == 422
    listed = ben.get("/account").text
    revoke = re.search(r"/(to_\w+)/revoke\"><[^>]*>Revoke <span class=\"unseen\">laptop", listed)
    assert revoke is not None
    assert ben.post(f"/account/tokens/{revoke[1]}/revoke").status_code == 303
    assert here.client().get("/v1/me", headers=bearer).status_code == 401
    wrong = ben.post("/account/password", data={"old": "x", "new": "long enough it is"})
    assert wrong.status_code == 401
    assert "do not belong together" in wrong.text
    elsewhere = browser(here, "ben")
    assert ben.post("/account/elsewhere").status_code == 303
    assert elsewhere.get("/account").status_code == 303
    form = {"old": PASSWORD, "new": "a longer horse battery"}
    assert ben.post("/account/password", data=form).headers["location"] == "/login?said=password"
    assert ben.get("/account").status_code == 303, "every login has ended"


def test_what_rows_hold_is_text_in_pages_pictures_and_tables(tmp_path: Path) -> None:
    """Open keys are learnt from the rows, so that who writes a row writes on the page."""
    here = curator(tmp_path, seed="hostile keys")
    columns = {"town": [HOSTILE[row % len(HOSTILE)] for row in range(4000)]}
    write_survey(tmp_path / "data" / "towns.csv", columns)
    data = here.register(
        "towns",
        source="data/towns.csv",
        schema={"town": {"kind": "open"}},
        budget={"epsilon": 8, "delta": 1e-6},
        delta0=5e-7,
    )
    study = here.study(data["id"], budget={"epsilon": 6, "delta": 5e-7})
    analyst = browser(here, "anna")
    words = json.dumps({"estimator": "table", "by": "town", "delta": 1e-8})
    spend = {"spend_kind": "epsilon_delta", "spend_amount": "3", "spend_delta": "2e-7"}
    place = asked(analyst, study["id"], estimator="words", words=words, **spend)
    page = analyst.get(place).text
    assert all(one in html.unescape(page) for one in HOSTILE), "they are there to be read"
    picture = analyst.get(f"/v1{place}.svg")
    table = analyst.get(f"/v1{place}.csv").text
    for text in (page, picture.text):
        assert "<script>alert" not in text
        assert not re.search(r"<[^>]*\sonload=", text)
    cells = [cell for row in csv.reader(io.StringIO(table)) for cell in row]
    assert any(HOSTILE[1] in cell for cell in cells)
    assert not [cell for cell in cells if cell[:1] in ("=", "@", "+")]
    assert "default-src 'none'" in picture.headers["content-security-policy"]


ODD = ("", "9" * 5000, "1e999", "NaN", "-1", "٣", "²", "\u202e", "x" * 30_000, "[" * 4000, "{}")
ODD_WORDS = (
    "", "[]", "{", '{"estimator": 1}', '{"estimator": "mean"}', '{"estimator": "nothing"}',
    '{"estimator": "mean", "column": ["a"], "spend": {"mu": 0.1}}',
    '{"estimator": "mean", "column": "age", "spend": {"mu": NaN}}',
    '{"estimator": "mean", "column": "age", "spend": {"mu": 1e999}}',
    '{"estimator": "mean", "column": "age", "spend": {"mu": ' + "9" * 4000 + "}}",
    '{"estimator": "mean", "column": "age", "spend": {"mu": 0.1, "nu": 1}}',
    '{"estimator": "mean", "column": "age", "spend": 0.1}',
    '{"estimator": "mean", "column": "\\ud800", "spend": {"mu": 0.1}}',
    '{"estimator": "mean", "column": "age\\u0000", "spend": {"mu": 0.1}}',
    '{"estimator": "mean", "column": "age", "where": {"age": [[]]}, "spend": {"mu": 0.1}}',
    '{"estimator": "mean", "column": "age", "share": 1}',
    '{"estimator": "m_estimate", "spend": {"mu": 0.1}}',
    '{"estimator": "mean", "column": "age", "by": {"a": 1}, "spend": {"mu": 0.1}}',
    '{"estimator": "quantile", "column": "age", "q": {"a": []}, "spend": {"mu": 0.1}}',
    '{"estimator": "histogram", "column": "age", "bins": 1e300, "spend": {"mu": 0.1}}',
    '{"estimator": "ols", "formula": "__import__(1) ~ age", "spend": {"mu": 0.1}}',
)  # fmt: skip


def test_odd_forms_are_refused_and_cost_nothing(here: Curator) -> None:
    """Whatever a form says: no answer is 5xx, and nothing is debited for what is no question."""
    data = here.register("odd")
    study = here.study(data["id"])
    place, seat = f"/studies/{study['id']}", study["seat"]["node"]
    analyst, owner = browser(here, "anna"), browser(here, "olga")
    seen = []
    for odd in ODD_WORDS:
        form = {"asked": odd, "key": f"odd {len(seen)}", "sure": "yes"}
        seen += [analyst.post(f"{place}/ask", data=form)]
        seen += [previewed(analyst, study["id"], estimator="words", words=odd)]
    for odd in ODD:
        for name in ("estimator", "column", "spend_amount", "spend_kind", "where1low", "where2"):
            seen += [previewed(analyst, study["id"], **{name: odd})]
        for name in ("name", "lines", "low0", "levels2", "kind1", "budget_amount", "unit"):
            seen += [owner.post("/datasets/new", data=declared(**{name: odd, "sure": ""}))]
        seen += [owner.post("/datasets/new", data=declared(lines=odd, more="yes"))]
        for name in ("dataset", "members", "expires", "seats", "plan"):
            words = {"dataset": data["id"], "name": "odd", "purpose": "", "budget_amount": "1"}
            seen += [analyst.post("/studies/new", data=words | {name: odd})]
    assert max(answer.status_code for answer in seen) < 500
    held = here.desk.ledgers.entries(here.person("anna"), seat)["entries"]
    assert [entry["kind"] for entry in held] == ["open"]
