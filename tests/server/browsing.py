"""A service of its own processes, and a Chromium that listens for every fault of its pages."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from curators import PASSWORD, STORED, write_survey
from playwright.sync_api import Page, sync_playwright
from test_processes import started

from discreet.server.accounts.people import add_person
from discreet.server.desk.desk import open_desk
from discreet.server.settings import Settings

PEOPLE = {"olga": "owner", "anna": "analyst", "ben": "analyst", "ada": "auditor", "op": "operator"}
SERIOUS = ("serious", "critical")
LISTEN = """
addEventListener("securitypolicyviolation", (event) =>
  console.error("CSP: " + event.violatedDirective + " " + event.blockedURI));
"""


@contextlib.contextmanager
def service(tmp_path: Path, database: str | None = None, tick: float = 0.0) -> Iterator[str]:
    """The address of a service with people and one file."""
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    write_survey(data / "survey.csv")
    settings = Settings(
        state=str(tmp_path / "state"),
        database=database,
        folders={"data": str(data)},
        tick=tick,
        workers=1,
        sweep=0.2,
        secure_cookies=False,
    )
    rooms = open_desk(settings).office.database
    for login, role in PEOPLE.items():
        with rooms.write() as rows:
            words = {"login": login, "name": login.title(), "role": role}
            add_person(rows, **words, stored=STORED, subject=None, now=time.time())
    with started(settings) as (address, _, _):
        yield address


def chromium() -> str:
    """Debian's Chromium, or the one on the path."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found is not None, "Chromium is missing: install it (.ci/run does)"
    return found


class Browser:
    """One person's browser; `faults` holds what its pages complained of."""

    def __init__(self, raw: Any, address: str, *, by_ear: bool = True, **options: Any) -> None:
        self.address, self.faults, self.clicks = address, list[str](), 0
        self.by_ear = by_ear  # pages are looked at for those who do not see them
        self.looked: set[str] = set()
        self.context = raw.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        self.context.set_default_timeout(20_000)
        self.scripts = options.get("java_script_enabled", True)
        if self.scripts:
            self.context.add_init_script(LISTEN)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", self._asked)

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.look()

    def click(self, what: str) -> None:
        self.clicks += 1
        self.page.click(what)
        self.page.wait_for_load_state()
        self.look()

    def sign_in(self, login: str, password: str = PASSWORD) -> None:
        self.open("/login")
        self.page.fill("[name=login]", login)
        self.page.fill("[name=password]", password)
        self.click("main button")

    def look(self, again: bool = False) -> None:
        """Serious faults for those who read by ear or keyboard, and pages that scroll sideways."""
        place = self.page.url.partition("?")[0]
        if not self.scripts or (place in self.looked and not again):
            return
        self.looked.add(place)
        found = Axe().run(self.page).response["violations"] if self.by_ear else []
        for fault in found:
            if fault["impact"] in SERIOUS:
                where = ", ".join(str(node["target"][0]) for node in fault["nodes"][:3])
                self.faults.append(f"{place}: {fault['id']}: {where}")
        root = "document.documentElement"
        if self.page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"):
            self.faults.append(f"{place}: it scrolls sideways")

    def text(self) -> str:
        return self.page.inner_text("main")

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{self.page.url}: {message.text}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(self.address):
            self.faults.append(f"it asks {request.url}")


@contextlib.contextmanager
def one_chromium() -> Iterator[Any]:
    """A Chromium, for as many browsers as there are people."""
    with sync_playwright() as play:
        raw = play.chromium.launch(
            executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        yield raw
        raw.close()


@contextlib.contextmanager
def browsers(raw: Any, address: str, *, by_ear: bool = True) -> Iterator[Any]:
    """Makes browsers of people, each with cookies of its own; no page may have had a fault."""
    made: list[Browser] = []

    def one(**options: Any) -> Browser:
        made.append(Browser(raw, address, by_ear=by_ear, **options))
        return made[-1]

    yield one
    faults = [fault for browser in made for fault in browser.faults]
    for browser in made:
        browser.context.close()
    assert not faults, "\n".join(faults)
