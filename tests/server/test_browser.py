"""The pages in Chromium: from a file to an answer, by mouse, by keyboard alone, without scripts."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser, browsers, one_chromium, service
from tests.trusted.scale.postgresql import server

pytestmark = pytest.mark.slow
MOST_CLICKS = 12
READY = "#preview:not(.stale) .spend-now:not([disabled])"
COLUMNS = (
    ("income", "real", "0", "100", ""),
    ("age", "integer", "18", "90", ""),
    ("region", "category", "", "", "E, N, S, W"),
)


@pytest.fixture(scope="module")
def raw() -> Iterator[Any]:
    with one_chromium() as started:
        yield started


def registered(owner: Browser, name: str = "survey") -> None:
    """A data set, from a file and what is declared of it."""
    page = owner.page
    owner.click("text=Register a data set")
    page.fill("[name=name]", name)
    page.select_option("[name=source]", "data/survey.csv")
    for line, (column, kind, low, high, levels) in enumerate(COLUMNS):
        page.fill(f"[name=column{line}]", column)
        page.select_option(f"[name=kind{line}]", kind)
        page.fill(f"[name=low{line}]", low)
        page.fill(f"[name=high{line}]", high)
        page.fill(f"[name=levels{line}]", levels)
    page.fill("[name=budget_amount]", "2")
    page.check("[name=listed]")
    page.check("[name=sure]")
    owner.click("text=Register it")
    assert "Its budget is fixed" in owner.text()


def asked_for(analyst: Browser, name: str = "wages") -> None:
    """A request for a study, after a look at made-up rows."""
    page = analyst.page
    analyst.open("/datasets")
    analyst.click("text=Made-up rows")
    assert "not data" in analyst.text()
    analyst.open("/datasets")
    analyst.click("text=Request a study")
    page.fill("[name=name]", name)
    page.fill("[name=purpose]", "How much people earn.")
    page.fill("[name=budget_amount]", "0.3")
    analyst.click("text=Send the request")
    assert "with the owner" in analyst.text()


def approved(owner: Browser) -> None:
    owner.click("nav >> text=Requests")
    assert "How much people earn." in owner.text()
    owner.page.fill("[name=reason]", "as agreed")
    owner.click("button[value=approve]")
    assert "written to the ledger" in owner.text()


def answered(analyst: Browser, column: str = "income", spend: str = "0.1") -> str:
    """Preview, confirmation, answer; the address of the answer."""
    page = analyst.page
    page.select_option("[name=column]", column)
    page.fill("[name=spend_amount]", spend)
    analyst.click("#question button:not([name])")
    page.wait_for_selector(READY)
    analyst.look(again=True)
    assert "This question" in analyst.text()
    page.check("[name=sure]")
    analyst.clicks += 1
    analyst.click(".spend-now")
    page.wait_for_selector("figure img, .refusal", timeout=60_000)
    assert page.query_selector("figure img") is not None, analyst.text()
    analyst.look(again=True)
    return page.url


def left(analyst: Browser) -> str:
    return analyst.page.inner_text(".balance div:first-child dd")


def assert_all_goes_round(raw: Any, address: str, tmp_path: Path, *, by_ear: bool) -> None:
    """Everything that owner, analyst and auditor do with a data set, in turns."""
    with browsers(raw, address, by_ear=by_ear) as browser:
        owner, analyst = browser(), browser(viewport={"width": 360, "height": 780})
        owner.sign_in("olga")
        registered(owner)
        analyst.sign_in("anna")
        asked_for(analyst)
        approved(owner)
        analyst.open("/studies")
        analyst.click("text=Ask")
        page = analyst.page
        page.click("text=Try on made-up rows")
        page.wait_for_selector("#preview:not(.stale) .madeup")
        assert "Nothing here is about anybody" in analyst.text()
        analyst.look(again=True)
        place = answered(analyst)
        picture = "document.querySelector('figure img').naturalWidth"
        assert page.evaluate(picture) > 100, "there is a plot"
        interval = re.search(r"\d[\d.]* … \d[\d.]*", analyst.text())
        assert interval is not None
        for kind in ("JSON", "CSV"):
            with page.expect_download() as waited:
                page.click(f"text={kind} >> nth=0")
            file = tmp_path / f"answer.{kind}"
            waited.value.save_as(file)
        told = json.loads((tmp_path / "answer.JSON").read_text())
        assert told["asked"]["estimator"] == "mean"
        assert "95% interval" in (tmp_path / "answer.CSV").read_text()
        analyst.open("/studies")
        before = left(analyst)
        analyst.click("text=wages")
        analyst.click("td a")
        assert page.url == place
        assert interval[0] in analyst.text(), "the same answer"
        analyst.open("/studies")
        assert left(analyst) == before, "reading it again is free"
        analyst.click("text=Ask")
        page.fill("[name=spend_amount]", "0.4")
        analyst.click("#question button:not([name])")
        page.wait_for_selector("#preview:not(.stale) .refusal")
        assert "no room" in analyst.text()
        assert "Largest spend that fits" in analyst.text()
        assert not page.query_selector(".spend-now")
        auditor = browser(color_scheme="dark")
        auditor.sign_in("ada")
        auditor.click("text=survey")
        auditor.click("text=ledger >> nth=0")
        auditor.click("text=Verify the chain")
        assert "Verified" in auditor.text()
        assert "approved" in auditor.text()
        owner.open("/datasets")
        owner.click("text=survey")
        assert "limit, not a guarantee" not in owner.text()
        owner.click("text=Freeze it")
        assert "nothing more is debited" in owner.text()
        owner.click("button:has-text('Thaw it')")
        assert "questions can be asked again" in owner.text()
        operator = browser(viewport={"width": 360, "height": 780}, color_scheme="dark")
        operator.sign_in("op")
        operator.page.fill("[name=login]", "eve")
        operator.page.fill("[name=name]", "Eve")
        operator.click("text=Invite >> nth=-1")
        fresh = operator.page.inner_text(".secret")
        eve = browser()
        eve.sign_in("eve", "a wrong password")
        assert "do not belong together" in eve.text()
        eve.sign_in("eve", fresh)
        eve.click("text=Eve")
        eve.page.fill("main [name=name]", "notebook")
        eve.click("text=Make a token")
        assert "dct_" in eve.text()
        eve.click("text=Sign out >> nth=0")
        assert "signed out" in eve.text()


def test_owner_analyst_and_auditor_on_sqlite(tmp_path: Path, raw: Any) -> None:
    with service(tmp_path) as address:
        assert_all_goes_round(raw, address, tmp_path, by_ear=True)
        with browsers(raw, address, by_ear=False) as browser:  # pages that were looked at
            by_keyboard(browser())
            without_scripts(browser(java_script_enabled=False))


def test_owner_analyst_and_auditor_on_postgresql(tmp_path: Path, raw: Any) -> None:
    with server() as database, service(tmp_path, database, tick=0.5) as address:
        assert_all_goes_round(raw, address, tmp_path, by_ear=False)  # the same pages as on SQLite


def by_keyboard(analyst: Browser) -> None:
    """From the login to an answer without a mouse."""
    page, keys = analyst.page, analyst.page.keyboard
    analyst.open("/login")
    keys.type("anna")
    keys.press("Tab")
    keys.type("correct horse battery")
    keys.press("Enter")
    page.wait_for_url("**/studies")
    tab_to(analyst, "main a.button[href$='/ask']")
    keys.press("Enter")
    page.wait_for_selector("#question")
    tab_to(analyst, "#question [name=column]")
    keys.type("age")
    tab_to(analyst, "[name=spend_amount]")
    keys.press("Control+A")
    keys.type("0.01")
    page.wait_for_selector(READY)
    tab_to(analyst, "#spend [name=sure]")
    keys.press("Space")
    tab_to(analyst, ".spend-now")
    keys.press("Enter")
    page.wait_for_selector("figure img, .refusal", timeout=60_000)
    assert page.query_selector("figure img") is not None, analyst.text()
    assert "mean of age" in analyst.text()


def tab_to(browser: Browser, what: str) -> None:
    """Presses the tabulator until something has the focus."""
    for _ in range(80):
        browser.page.keyboard.press("Tab")
        if browser.page.evaluate("what => document.activeElement.matches(what)", what):
            return
    raise AssertionError(f"the keyboard does not reach {what}")


def without_scripts(analyst: Browser) -> None:
    """The same by forms alone."""
    page = analyst.page
    analyst.sign_in("anna")
    analyst.click("text=Ask")
    analyst.click("text=Try on made-up rows")
    assert "Nothing here is about anybody" in analyst.text()
    assert "Largest" not in analyst.text()
    answered(analyst, "age", "0.02")
    assert "95% interval" in analyst.text()
    assert page.query_selector("figure img") is not None


@contextlib.contextmanager
def demonstration(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """`discreet serve --demo`: its address, and the passwords that it tells."""
    command = [sys.executable, "-m", "discreet", "serve", "--demo", "--port", "0"]
    told: Any = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | {"NO_COLOR": "1"}}
    process = subprocess.Popen([*command, "--state", str(folder / "state")], **told)
    assert process.stdout is not None
    address, people = "", dict[str, str]()
    try:
        for line in process.stdout:
            words = line.split()
            if line.startswith("listening at"):
                address = words[-1]
            elif len(words) == 2:
                people[words[0]] = words[1]
            if len(people) == 5:
                break
        yield address, people
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def test_from_the_demonstration_to_an_answer_in_a_few_clicks(tmp_path: Path, raw: Any) -> None:
    with (
        demonstration(tmp_path) as (address, people),
        browsers(raw, address, by_ear=False) as browser,
    ):
        anna = browser()
        anna.sign_in("anna", people["anna"])
        for _ in range(400):  # the data are registered once workers listen
            if "wages" in anna.text():
                break
            anna.page.wait_for_timeout(100)
            anna.page.reload()
        anna.click("text=Ask")
        anna.clicks += 1  # choosing a column
        answered(anna)
        assert anna.clicks <= MOST_CLICKS, anna.clicks
        print(f"clicks={anna.clicks}")
