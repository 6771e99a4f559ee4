"""Pictures of the curator's pages for the tutorial, taken in Chromium from `discreet serve --demo`.

python tools/curator_pictures.py        writes docs/tutorials/curator-*.png
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

TO = Path(__file__).parents[1] / "docs" / "tutorials"
READY = "#preview:not(.stale) .spend-now:not([disabled])"
SIZE = {"width": 1080, "height": 840}


def started(folder: str) -> tuple[Any, str, dict[str, str]]:
    """The service, its address, and the passwords that it tells."""
    words = ["serve", "--demo", "--port", "0", "--tick", "0", "--state", f"{folder}/state"]
    command = [sys.executable, "-m", "discreet", *words]
    service = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    address, people = "", dict[str, str]()
    assert service.stdout is not None
    while len(people) < 5:
        told = service.stdout.readline().split()
        if told[:2] == ["listening", "at"]:
            address = told[-1]
        elif len(told) == 2:
            people[told[0]] = told[1]
    return service, address, people


def sign_in(browser: Any, address: str, login: str, password: str) -> Page:
    page: Page = browser.new_context(viewport=SIZE).new_page()
    page.goto(f"{address}/login")
    page.fill("[name=login]", login)
    page.fill("[name=password]", password)
    page.click("main button")
    return page


def picture(page: Page, name: str) -> None:
    page.wait_for_load_state()
    page.evaluate("scrollTo(0, 0)")
    page.screenshot(path=TO / f"curator-{name}.png")


def main() -> None:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        service, address, people = started(folder)
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        anna = sign_in(browser, address, "anna", people["anna"])
        while "wages" not in anna.inner_text("main"):  # the data are being registered
            anna.wait_for_timeout(200)
            anna.reload()
        anna.click("text=Ask")
        anna.select_option("[name=column]", "income")
        anna.fill("[name=spend_amount]", "0.1")
        anna.click("#question button:not([name])")
        anna.wait_for_selector(READY)
        picture(anna, "ask")
        anna.check("[name=sure]")
        anna.click(".spend-now")
        anna.wait_for_selector("figure img")
        picture(anna, "answer")
        owner = sign_in(browser, address, "owner", people["owner"])
        owner.click("text=census >> nth=0")
        picture(owner, "owner")
        browser.close()
        service.send_signal(signal.SIGTERM)
        service.wait(30)


if __name__ == "__main__":
    main()
